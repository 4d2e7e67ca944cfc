"""What a score sees and what it must return.

A *family* is a child with a parent set; a `Block` is an array of families with what the data say about each of
them. A score is any callable from a block to code lengths in nats, one a family, **lower is better**; a network's
score is the sum over its families. Whoever writes one needs nothing from this project: it is enough to use the
block's attributes. How blocks are computed is the business of `scorers.families` and `scorers.network`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# The share of a variance that is explained is known to a few units of rounding; below this it is noise.
EXPLAINED = 1e-14


@dataclass(frozen=True)
class Block:
    """An array of families, and what the data say about each.

    All arrays have the block's `shape` or broadcast to it: a score written for one family works for all of them. A
    block may hold the families of several data sets of one size, along its leading axes.

    Attributes
    ----------
    n, m : int
        Samples; nodes.
    k : IntArray
        Parents + 1: the constant x₀ = 1 is a parent in every family.
    ln_tau : Array
        ln τ̂, where τ̂ = RSS/n of the least-squares fit with intercept.
    ln_variance : Array
        ln of the child's variance (ddof 0), which is ln τ̂ of the family without parents.
    offset : Array
        The child's mean divided by its standard deviation.
    centred : array of bool
        Whether that mean is only what centring left behind.
    ln_det_parents : callable
        Computes `ln_det`.
    label : callable
        The words for the family at an index, "child x3, parents [x0, x2]", for error messages.
    """

    n: int
    m: int
    k: IntArray
    ln_tau: Array
    ln_variance: Array
    offset: Array
    centred: npt.NDArray[np.bool_]
    ln_det_parents: Callable[[], Array]
    label: Callable[[tuple[int, ...]], str]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the arrays, one entry a family."""
        return self.ln_tau.shape

    @cached_property
    def tau(self) -> Array:
        """τ̂ = RSS/n, intercept included."""
        return np.exp(self.ln_tau)

    @cached_property
    def ln_det(self) -> Array:
        """ln of the determinant of the parents' covariance matrix (ddof 0); 0 for a child without parents."""
        return self.ln_det_parents()

    @cached_property
    def explained(self) -> Array:
        """The explained share of the child's variance, 1 − τ̂/variance (the R² of regression)."""
        return -np.expm1(self.ln_tau - self.ln_variance)

    @cached_property
    def r(self) -> Array:
        """R̂ = ‖fitted values‖²/n, the mean included: x̄² + variance − τ̂."""
        return np.exp(self.ln_variance) * (self.offset**2 + self.explained)

    @cached_property
    def ln_r(self) -> Array:
        """ln R̂. Refused where R̂ is rounding noise: a child without parents on centred data."""
        share = self.offset**2 + self.explained
        if self.centred.any() and (noise := self.centred & ((self.k == 1) | (share < EXPLAINED))).any():
            raise ValueError(
                f"{self.label(_first(noise))}: the data are centred, so R̂ of a child without parents (its squared "
                "mean) is rounding noise and ln R̂ has no meaning. Give the data on their original origin, or use "
                "a score that does not see the mean: RNMLCentred in place of RNML."
            )
        return self.ln_variance + np.log(share)

    @cached_property
    def ln_r_centred(self) -> Array:
        """ln(variance − τ̂), R̂ without the mean; NaN for a child without parents, where it is ln 0."""
        noise = (self.k > 1) & (self.explained < EXPLAINED)
        if noise.any():
            where = _first(noise)
            raise ValueError(
                f"{self.label(where)}: the parents explain {self.explained[where]:.1e} of the child's variance, "
                "which is rounding noise, so the logarithm of the explained variance has no meaning. The columns "
                "are orthogonal by design; a score that uses ln R̂ without the mean does not apply."
            )
        return self.ln_variance + np.log(np.where(self.k > 1, self.explained, np.nan))


class Scorer(Protocol):
    """A score: code lengths in nats of a block's families, lower is better.

    The result has the block's `shape`. Any callable will do; the scores of this project are frozen dataclasses
    whose fields are their options. A score that has a method `moments(moments)` looks at the data through the moments
    that it returns, as BGe does, whose prior adds to the scatter of the data.
    """

    def __call__(self, f: Block, /) -> npt.NDArray[Any]:
        """Score every family of the block."""
        ...


def code_lengths(scorer: Scorer, f: Block) -> Array:
    """Call the score on a block and check what it returns.

    Parameters
    ----------
    scorer : Scorer
        The score.
    f : Block
        The families.

    Returns
    -------
    Array
        Code lengths in nats.
    """
    with np.errstate(all="ignore"):  # what is not finite is reported below, with its coordinates
        value = np.asarray(scorer(f))
    if value.shape != f.shape or value.dtype.kind not in "fiu":
        raise ValueError(
            f"The score {scorer!r} must return real numbers of shape {f.shape}, one for each family of the block. "
            f"Got {value.dtype} of shape {value.shape} instead."
        )
    value = value.astype(np.float64, copy=False)
    if not all_finite(value.reshape(-1)):
        where = _first(~np.isfinite(value))
        raise ValueError(
            f"The score {scorer!r} returned {value[where]} for {f.label(where)} "
            f"(n = {f.n}, τ̂ = {f.tau[where]:.6g}). A score must be finite for every family it is asked for."
        )
    return value


@numba.njit(cache=True, nogil=True)
def all_finite(x: Any) -> bool:
    """Whether no number is infinite or NaN, in one pass."""
    wrong = 0
    for i in range(x.shape[0]):
        wrong += not abs(x[i]) < np.inf
    return wrong == 0


def _first(wrong: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Where an array is true for the first time."""
    return tuple(int(i) for i in np.argwhere(wrong)[0])
