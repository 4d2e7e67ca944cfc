"""Families of so many nodes that no table of all sets is made: log-determinants are computed where they are needed.

The nodes from `low` on are *high*. A chunk is a set of high nodes with any of the low ones, 2^low sets: its
log-determinants follow from the correlations alone (`scorers.determinants`) and have the bits that a table would have.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from scorers.base import Array, Block, IntArray, Scorer
from scorers.determinants import log_determinants
from scorers.families import block_of, checked_cap, log_residuals, log_residuals_of
from scorers.masks import compressed, expand, masks_up_to, members
from scorers.moments import SMALLEST_EIGENVALUE, Moments


@dataclass(frozen=True)
class LargeFamilies:
    """All families with up to `max_parents` parents, made in blocks.

    Attributes
    ----------
    moments : Moments
        The data's moments.
    max_parents : int
        The largest number of parents asked for.
    """

    moments: Moments
    max_parents: int

    @classmethod
    def of_moments(cls, moments: Moments, max_parents: int | None = None) -> "LargeFamilies":
        """The families of data, checked as far as it can be done before they are computed."""
        families = cls(moments, checked_cap(moments, max_parents))
        if families.max_parents == moments.m - 1:
            moments.refuse_dependent(range(moments.m))
        return families

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.moments.n

    @property
    def m(self) -> int:
        """The number of nodes."""
        return self.moments.m

    def seen_by(self, scorer: Scorer) -> "LargeFamilies":
        """The families that a score looks at: these, or those of the moments that the score makes of these."""
        change = getattr(scorer, "moments", None)
        return self if change is None else LargeFamilies.of_moments(change(self.moments), self.max_parents)

    def log_determinants(self, start: int, bits: int) -> Array:
        """Those of the 2^bits sets from `start` on."""
        return log_determinants(self.moments.correlation, self.max_parents + 1, start, bits)

    def block_of_low(self, children: range, high: int, chunk: Array, first: int, bits: int) -> Block:
        """Low children, whose parents are the nodes `high` and some low ones.

        `chunk` are the log-determinants from `high` on. Entry [j, i] is the j-th of the children with the i-th of
        `masks_up_to(max_parents, high // 2 + first, bits)`.
        """
        masks = masks_up_to(self.max_parents, high // 2 + first, bits)
        ln_variance = self.moments.ln_variance[None, children.start : children.stop]
        ln_tau = np.empty((1, len(children), len(masks)))
        if len(masks) == 1 << bits:
            log_residuals(chunk[None], ln_variance, children.start, first, ln_tau)
        else:
            log_residuals_of(chunk[None], ln_variance, children.start, masks - high // 2, ln_tau)
        return self._checked(children, masks, ln_tau[0], lambda: chunk[[expand(masks, j) - high for j in children]])

    def block_of_high(self, child: int, start: int, with_child: Array, without: Array) -> Block:
        """One high child, whose parents are one of the sets from `start` on, in which the child is not.

        `with_child` and `without` are the log-determinants of these sets, with the child and without it.
        """
        bits = len(without).bit_length() - 1
        masks = masks_up_to(self.max_parents, compressed(start, child), bits)
        if len(masks) < 1 << bits:
            without, with_child = (each[masks & (1 << bits) - 1] for each in (without, with_child))
        ln_tau = (with_child - without + self.moments.ln_variance[child])[None]
        return self._checked(range(child, child + 1), masks, ln_tau, lambda: without[None])

    def network(self, parents: IntArray) -> Block:
        """The m families of a network, given as one parent mask (not compressed) for each child."""
        without = np.array([self.log_determinants(int(mask), 0)[0] for mask in parents])
        with_child = np.array([self.log_determinants(int(mask) | 1 << j, 0)[0] for j, mask in enumerate(parents)])
        return Block(
            n=self.n,
            m=self.m,
            k=np.bitwise_count(parents).astype(np.int64) + 1,
            ln_tau=with_child - without + self.moments.ln_variance,
            ln_variance=self.moments.ln_variance,
            offset=self.moments.offset,
            centred=self.moments.centred,
            ln_det_parents=lambda: without + self._ln_variances(parents),
            label=lambda where: self.moments.family(where[-1], members(int(parents[where]))),
        )

    def _checked(self, children: range, masks: IntArray, ln_tau: Array, logdet: Callable[[], Array]) -> Block:
        """The block, unless a family in it has dependent columns: see `Families.of_moments`."""
        if self._suspect:
            shares = ln_tau - self.moments.ln_variance[children.start : children.stop, None]
            for j, i in np.argwhere(~(shares >= log(self.m * SMALLEST_EIGENVALUE))):
                family = expand(int(masks[i]), children[j]) | 1 << children[j]
                self.moments.refuse_dependent(members(family))

        def ln_det() -> Array:
            variances: Array = np.array([self._ln_variances(expand(masks, j)) for j in children])
            return logdet() + variances

        return block_of(self.moments, children, masks, ln_tau, ln_det)

    @cached_property
    def _suspect(self) -> bool:
        """Whether some families, though perhaps not those asked for, have dependent columns."""
        return not self.moments.independent(range(self.m))

    def _ln_variances(self, parents: IntArray) -> Array:
        """The sums of the parents' ln variances, in the order in which `Families.ln_det` adds them."""
        sums = np.zeros(parents.shape)
        for i in range(self.m):
            sums += np.where(parents >> i & 1, self.moments.ln_variance[i], 0.0)
        return sums
