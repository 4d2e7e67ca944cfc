"""RNML without the constant among the parents: a score that does not see the mean."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from scorers.base import Array, Block


@dataclass(frozen=True)
class RNMLCentred:
    """Eq. (32) with the constant x₀ left out: p = k − 1 parents are counted, and R̂ is centred.

    n/2 ln τ̂ − lnΓ(p/2) − lnΓ((n−p)/2) + (p/2) ln(R̂/τ̂)    for p ≥ 1, with R̂ = variance − τ̂
    n/2 ln τ̂ − lnΓ(n/2)                                     for p = 0

    τ̂ is still that of the fit with intercept: the data are taken as centred. For p = 0 there is no R̂ to normalise
    over, and what remains is the code of the residual variance alone. It is the reading for data without an origin.

    Invariances: shift-, scale- and label-invariant. Not score-equivalent. **Not consistent**: an irrelevant parent
    of a child without other parents has R̂/τ̂ = χ²/n, so that ½ ln(R̂/τ̂) pays back the ½ ln n that lnΓ charges for
    it; the parent costs ½ ln(χ²/2π) − χ²/2 nats, which is negative for every value of χ², and is always taken.
    (`RNML` escapes this because the mean keeps R̂ away from zero.)

    References
    ----------
    Rissanen (2000) for regression without an intercept; the paper always includes it (end of section 2).
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # Eq. (32) with p in place of k: n/2 ln τ̂ − lnΓ(p/2) − lnΓ((n−p)/2) + (p/2) ln(R̂/τ̂)
        p = np.arange(f.m)
        ln_gammas = gammaln((f.n - p) / 2)
        ln_gammas[1:] += gammaln(p[1:] / 2)
        ratio = np.where(f.k > 1, f.ln_r_centred - f.ln_tau, 0.0)
        return f.n / 2 * f.ln_tau - ln_gammas[f.k - 1] + (f.k - 1) / 2 * ratio
