"""Every family of m nodes, from one correlation matrix.

With L(S) the log-determinant of the correlation matrix of the nodes S, the residual variance of child j given the
parents S and the constant is τ̂ = variance_j · exp(L(S ∪ {j}) − L(S)). So one table of 2^m log-determinants serves
all m·2^(m−1) families, and no family is ever fitted by itself. A set of nodes is a bit mask; the parent sets of
child j are numbered by the *compressed* mask, which leaves out bit j. Several data sets of one size can be done
together: they are the leading axes of all arrays.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numba
import numpy as np
import psutil

from scorers.base import Array, Block, IntArray, Scorer, code_lengths
from scorers.determinants import log_determinants, small_shares
from scorers.masks import expand, masks_up_to, members
from scorers.moments import SMALLEST_EIGENVALUE, Data, Moments

# A block of all children has up to 2^BLOCK_BITS families: it stays in the cache while a score works on it.
BLOCK_BITS = 18

# The C library gives freed memory of more than 128 kB back to the system, and its pages are faulted in anew at the
# next use, which costs more than a score's arithmetic. It stops doing so once a larger block has been freed: this one.
np.empty(4_000_000)


def block_bits(m: int) -> int:
    """The logarithm of the number of compressed masks in a block of all m children."""
    return min(m - 1, BLOCK_BITS - m.bit_length())


@dataclass(frozen=True)
class Families:
    """All families with up to `max_parents` parents.

    `families[j]` is the block of child j: entry i is the family whose parents are `families.parents(j, c)`, where c is
    `families.masks[i]`, the i-th compressed mask with up to `max_parents` members.

    Attributes
    ----------
    moments : Moments
        The data's moments.
    max_parents : int
        The largest number of parents asked for.
    logdet : Array
        2^m log-determinants of the correlation matrix's principal minors, NaN where not asked for; … × 2^m of
        several data sets.
    viewer : Scorer, optional
        The score through whose moments the data are seen, if it has moments of its own.
    """

    moments: Moments
    max_parents: int
    logdet: Array
    viewer: Scorer | None = None

    @classmethod
    def of(cls, data: Data, max_parents: int | None = None) -> "Families":
        """Take the moments of the data and the log-determinants of all sets of nodes.

        Parameters
        ----------
        data : array_like or DataFrame
            n × m; rows are samples, columns are nodes.
        max_parents : int, optional
            The largest number of parents asked for; all families when left out.

        Returns
        -------
        Families
            The families.
        """
        return cls.of_moments(Moments.of(data), max_parents)

    @classmethod
    def of_moments(cls, moments: Moments, max_parents: int | None = None) -> "Families":
        """The families of data of which only the moments are known."""
        m, max_parents = moments.m, checked_cap(moments, max_parents)
        _refuse_large(m, 8 * (1 << m))
        independent = moments.independent(range(m))
        if not independent and max_parents == m - 1:
            moments.refuse_dependent(range(m))
        logdet = log_determinants(moments.correlation, max_parents + 1)
        if not independent:  # but the sets that are asked for may be
            # λ ≥ min share / |S|: only sets in which a node has a small share of its variance left can fail
            for of_set in logdet.reshape(-1, 1 << m):
                for suspect in small_shares(of_set, max_parents + 1, m * SMALLEST_EIGENVALUE):
                    moments.refuse_dependent(members(int(suspect)))
        logdet.flags.writeable = False
        return cls(moments, max_parents, logdet)

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.moments.n

    @property
    def m(self) -> int:
        """The number of nodes."""
        return self.moments.m

    @property
    def masks(self) -> IntArray:
        """The compressed masks of all parent sets with up to `max_parents` members, in numeric order."""
        return masks_up_to(self.max_parents, 0, self.m - 1)

    def seen_by(self, scorer: Scorer) -> "Families":
        """The families that a score looks at: these, or those of the moments that the score makes of these."""
        change = getattr(scorer, "moments", None)
        if change is None or self.viewer is scorer:
            return self
        return replace(Families.of_moments(change(self.moments), self.max_parents), viewer=scorer)

    def at(self, d: int | slice) -> "Families":
        """The families of one, or some, of several data sets."""
        return replace(self, moments=self.moments.at(d), logdet=self.logdet[d])

    def parents(self, j: int, c: int) -> tuple[int, ...]:
        """The parents of child j whose compressed mask is c.

        Examples
        --------
        >>> families = Families.of(np.random.default_rng(1).normal(1, 1, size=(10, 4)))
        >>> families.parents(1, 0b101)
        (0, 3)
        """
        return members(expand(int(c), int(j)))

    def __getitem__(self, j: int) -> Block:
        """All parent sets of child j."""
        if not 0 <= j < self.m:
            raise IndexError(f"child must be from 0 to m − 1 = {self.m - 1}. Got {j} instead.")
        _refuse_large(self.m, 8 * 8 * (1 << (self.m - 1)))  # the block and what a score makes of it
        block = self.block(range(j, j + 1), 0, self.m - 1)
        return replace(
            block,
            ln_tau=block.ln_tau[..., 0, :],
            ln_variance=block.ln_variance[..., 0, :],
            offset=block.offset[..., 0, :],
            centred=block.centred[..., 0, :],
            ln_det_parents=lambda: block.ln_det[..., 0, :],
            label=lambda where: block.label((*where[:-1], 0, where[-1])),
        )

    def blocks(self) -> Iterator[tuple[IntArray, Block]]:
        """All families, a few parent sets of all children at a time: their compressed masks, and their block.

        Entry [j, i] of a block is child j with the i-th of those masks; up to m = 15 there is only one block.
        """
        bits = block_bits(self.m)
        for start in range(0, 1 << (self.m - 1), 1 << bits):
            masks = masks_up_to(self.max_parents, start, bits)
            if len(masks):
                yield masks, self.block(range(self.m), start, bits)

    def block(self, children: range, start: int, bits: int) -> Block:
        """The families of consecutive children with the parent sets `masks_up_to(max_parents, start, bits)`.

        Entry [j, i] is the j-th of the children with the i-th of those compressed masks.
        """
        rows = slice(children.start, children.stop)
        masks = masks_up_to(self.max_parents, start, bits)
        ln_variance = self.moments.ln_variance[..., rows, None]
        ln_tau = np.empty((*ln_variance.shape[:-1], len(masks)))
        sets = (self.logdet.reshape(-1, 1 << self.m), ln_variance.reshape(-1, len(children)))
        out = ln_tau.reshape(-1, len(children), len(masks))
        if len(masks) == 1 << bits:
            log_residuals(*sets, children.start, start, out)
        else:
            log_residuals_of(*sets, children.start, masks, out)
        return block_of(
            self.moments, children, masks, ln_tau, lambda: self.ln_det[..., [expand(masks, j) for j in children]]
        )

    def network(self, parents: IntArray) -> Block:
        """The m families of a network, given as one parent mask (not compressed) for each child: … × m."""
        with_child = np.take_along_axis(self.logdet, parents | 1 << np.arange(self.m), axis=-1)
        return Block(
            n=self.n,
            m=self.m,
            k=np.bitwise_count(parents).astype(np.int64) + 1,
            ln_tau=with_child - np.take_along_axis(self.logdet, parents, axis=-1) + self.moments.ln_variance,
            ln_variance=self.moments.ln_variance,
            offset=self.moments.offset,
            centred=self.moments.centred,
            ln_det_parents=lambda: np.take_along_axis(self.ln_det, parents, axis=-1),
            label=lambda where: self.moments.family(where[-1], members(int(parents[where]))),
        )

    @cached_property
    def ln_det(self) -> Array:
        """ln of the determinant of the covariance matrix of every set of nodes."""
        sums = np.zeros_like(self.logdet)  # of ln variances
        for i in range(self.m):
            sums[..., 1 << i : 2 << i] = sums[..., : 1 << i] + self.moments.ln_variance[..., i : i + 1]
        return self.logdet + sums


def checked_cap(moments: Moments, max_parents: int | None) -> int:
    """The largest number of parents asked for, m − 1 when left out; an error if the data cannot fit it."""
    n, m = moments.n, moments.m
    if max_parents is None:
        max_parents = m - 1
    if not 0 <= max_parents < m:
        raise ValueError(f"max_parents must be from 0 to m − 1 = {m - 1}. Got {max_parents} instead.")
    if n <= max_parents + 1:
        raise ValueError(
            f"n = {n} samples cannot fit families with {max_parents} parents and the constant "
            f"(k = {max_parents + 1}): n > k is needed. Give max_parents ≤ {n - 2}, or more data."
        )
    return max_parents


def block_of(moments: Moments, children: range, masks: IntArray, ln_tau: Array, ln_det: Callable[[], Array]) -> Block:
    """The block whose entry [j, i] is the j-th of the children with the i-th of the compressed masks."""
    rows = slice(children.start, children.stop)
    return Block(
        n=moments.n,
        m=moments.m,
        k=np.bitwise_count(masks).astype(np.int64) + 1,
        ln_tau=ln_tau,
        ln_variance=moments.ln_variance[..., rows, None],
        offset=moments.offset[..., rows, None],
        centred=moments.centred[..., rows, None],
        ln_det_parents=ln_det,
        label=lambda where: moments.family(
            children[where[-2]], members(expand(int(masks[where[-1]]), children[where[-2]]))
        ),
    )


def score_table(families: Families, scorer: Scorer, out: Array | None = None) -> Array:
    """Code lengths of all families under a score.

    Parameters
    ----------
    families : Families
        The families.
    scorer : Scorer
        The score.
    out : Array, optional
        An m × 2^(m−1) table of doubles to write to.

    Returns
    -------
    Array
        Entry [j, c] is the code length of child j with the parents `families.parents(j, c)`; +inf above
        `max_parents`.
    """
    families = families.seen_by(scorer)
    m = families.m
    shape = (*families.logdet.shape[:-1], m, 1 << (m - 1))
    if out is None:
        _refuse_large(m, 8 * m * (1 << (m - 1)))
        if block_bits(m) == m - 1 and families.max_parents == m - 1:  # one block is the table
            return code_lengths(scorer, families.block(range(m), 0, m - 1))
        out = np.empty(shape)
    elif out.shape != shape or out.dtype != np.float64:
        raise ValueError(f"out must be float64 of shape {shape}. Got {out.dtype} of shape {out.shape} instead.")
    capped = families.max_parents < m - 1
    if capped:
        out.fill(np.inf)
    for masks, block in families.blocks():
        out[..., masks if capped else slice(masks[0], masks[-1] + 1)] = code_lengths(scorer, block)
    return out


def _refuse_large(m: int, need: int) -> None:
    """Raise if what the families of m nodes need, in bytes, is not free."""
    if m > 20 and need > (free := psutil.virtual_memory().available):
        raise MemoryError(
            f"m = {m} nodes have 2^{m} sets of parents: their families need {need / 2**30:,.1f} GiB, and "
            f"{free / 2**30:,.1f} GiB are free. Score fewer nodes, or single networks with network_score."
        )


@numba.njit(cache=True, nogil=True)
def log_residuals(logdet: Any, ln_variance: Any, child: int, start: int, out: Any) -> None:
    """out[d, row, i] = L(S ∪ {j}) − L(S) + ln variance_j, where j = child + row.

    S is the compressed mask start + i with a zero put in at bit j. In numeric order each run of 2^j sets without j
    is followed by the run of the same sets with j.
    """
    size = out.shape[2]
    for d in range(out.shape[0]):
        for row in range(out.shape[1]):
            j = child + row
            run = 1 << j
            if run < size:
                pairs = logdet[d, 2 * start : 2 * (start + size)].reshape(-1, 2, run)
                residuals = out[d, row].reshape(-1, run)
                for h in range(residuals.shape[0]):
                    for i in range(run):
                        residuals[h, i] = pairs[h, 1, i] - pairs[h, 0, i] + ln_variance[d, row]
            else:
                first = ((start >> j) << (j + 1)) + (start & (run - 1))
                without = logdet[d, first : first + size]
                with_j = logdet[d, first + run : first + run + size]
                for i in range(size):
                    out[d, row, i] = with_j[i] - without[i] + ln_variance[d, row]


@numba.njit(cache=True, nogil=True)
def log_residuals_of(logdet: Any, ln_variance: Any, child: int, masks: Any, out: Any) -> None:
    """The same for some compressed masks: S is masks[i] with a zero put in at bit j."""
    for d in range(out.shape[0]):
        for row in range(out.shape[1]):
            j = child + row
            low = (1 << j) - 1
            for i in range(masks.shape[0]):
                s = (masks[i] & low) | ((masks[i] & ~low) << 1)
                out[d, row, i] = logdet[d, s | (1 << j)] - logdet[d, s] + ln_variance[d, row]
