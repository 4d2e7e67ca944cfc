"""The description length of a regression under Zellner's prior, its scale fitted: gMDL."""

from dataclasses import dataclass
from math import log

import numpy as np

from scorers.base import Array, Block


@dataclass(frozen=True)
class GMDL:
    """The mixture description length gMDL of Hansen and Yu.

    N/2 ln S + (p/2) ln F + ln N    if F ≥ 1
    N/2 ln(n variance / N) + ½ ln N    otherwise, and for p = 0

    where p = k − 1 parents, N = n − 1, S = n τ̂ / (n−k) is the unbiased residual variance, and
    F = n (variance − τ̂) / (p S) the F statistic of the regression. The coefficients have Zellner's prior with
    covariance c S (X'X)⁻¹; the code for the best c = F − 1 is told in ½ ln N nats, and that for the best variance in
    as many. If F < 1 the best c is 0: what is left is the code of the child alone. Such a family ties with the one
    without parents; random ties settle for fewer edges, pessimistic ones do not, so its tie band is wide.

    Hansen and Yu write n, k and y'y for regression without an intercept. Here the intercept is in every family and
    has a flat prior: integrating over it leaves N = n − 1 contrasts of the child, p parents, and the centred
    y'y = n variance. (Their condition R² ≥ k/n becomes R² ≥ p/N, which is F ≥ 1.)

    Invariances: shift-, scale- and label-invariant. Not score-equivalent. Consistent, given an order.

    References
    ----------
    Hansen & Yu (2001), the criterion gMDL for linear regression.
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        p, N = f.k - 1, f.n - 1
        # p F = (variance − τ̂)/τ̂ (n−k)
        explained = np.expm1(f.ln_variance - f.ln_tau) * (f.n - f.k)
        fits = (p > 0) & (explained >= p)
        ln_f = np.log(np.where(fits, explained, 1.0)) - np.log(np.where(fits, p, 1))
        # N/2 ln S + (p/2) ln F + ln N    if F ≥ 1
        fitted = N / 2 * (f.ln_tau + np.log(f.n / (f.n - f.k))) + p / 2 * ln_f + log(N)
        # N/2 ln(n variance / N) + ½ ln N    otherwise
        alone = N / 2 * (f.ln_variance + log(f.n / N)) + log(N) / 2
        return np.where(fits, fitted, alone)
