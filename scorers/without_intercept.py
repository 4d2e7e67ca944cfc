"""A reading of the paper: another score, of regressions without an intercept."""

from dataclasses import dataclass, replace

import numpy as np

from scorers.base import Array, Block, Scorer
from scorers.moments import Moments


@dataclass(frozen=True)
class WithoutIntercept:
    """Another score, whose τ̂ is that of the least-squares fit through the origin.

    The data are seen through their second moments about zero in place of their covariances. k still counts x₀: one for
    each family, which is the same for every structure. It exists to find out which formula the paper's numbers came
    from: its competitors may have been fitted so.

    Invariances: those of the other score, but for shifts: not shift-invariant.

    Parameters
    ----------
    scorer : Scorer
        The other score; one that does not use R̂.
    """

    scorer: Scorer

    def moments(self, moments: Moments) -> Moments:
        """The moments through which the data are seen: x̄x̄' is added to the covariance matrix."""
        second = 1 + moments.offset**2  # of the standardised columns
        correlation = moments.correlation + moments.offset[..., :, None] * moments.offset[..., None, :]
        correlation /= np.sqrt(second[..., :, None] * second[..., None, :])
        diagonal = np.arange(moments.m)
        correlation[..., diagonal, diagonal] = 1.0
        ln_variance = moments.ln_variance + np.log(second)
        return replace(moments, correlation=correlation, ln_variance=ln_variance, offset=np.zeros_like(second))

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        return np.asarray(self.scorer(f))
