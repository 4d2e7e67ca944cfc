"""A reading of the paper, not RNML: the gamma function of eq. (31) taken as it is misprinted."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from scorers.base import Array, Block


@dataclass(frozen=True)
class RNMLGamma:
    """Eq. (31) as printed, with Γ(n−k) where Γ((n−k)/2) is right.

    n/2 ln τ̂ − lnΓ(k/2) − lnΓ(n−k) + (k/2) ln(R̂/τ̂)

    The sign of the last term is that of eq. (32). Each parent costs about ½ ln 2n nats more than under `RNML`,
    so it learns sparser graphs. It exists to find out which formula the paper's numbers came from.

    Invariances: scale- and label-invariant. Not score-equivalent, not shift-invariant. Consistent, given an order.

    References
    ----------
    The paper, eq. (31).
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # Eq. (31): n/2 ln τ̂ − lnΓ(k/2) − lnΓ(n−k) + (k/2) ln(R̂/τ̂), without what is the same for every family
        k = np.arange(1, f.m + 1)
        ln_gammas = gammaln(k / 2) + gammaln(f.n - k)
        return f.n / 2 * f.ln_tau - ln_gammas[f.k - 1] + f.k / 2 * (f.ln_r - f.ln_tau)
