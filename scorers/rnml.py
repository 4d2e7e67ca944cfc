"""The paper's main score: the renormalised maximum likelihood of eq. (32)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from scorers.base import Array, Block


@dataclass(frozen=True)
class RNML:
    """Rissanen's renormalised normalised maximum likelihood, eq. (32).

    n/2 ln τ̂ − lnΓ(k/2) − lnΓ((n−k)/2) + (k/2) ln(R̂/τ̂)

    The maximum likelihood of the family, normalised over all data with τ̂ ≥ τ⁰ and R̂ ≤ R⁰, and normalised once more
    over those two bounds, set to their estimates. R̂ is the uncentred explained second moment: it contains the mean.

    Invariances: scale- and label-invariant. Not score-equivalent; not shift-invariant: moving the origin of a column
    changes R̂ and with it the ranking of structures. On centred data R̂ of a child without parents is rounding noise
    and the score is refused; `RNMLCentred` is the same idea without the constant. Consistent, given an order.

    References
    ----------
    The paper, eq. (32), right as printed; Rissanen (2000); Roos (2004).
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # Eq. (32): n/2 ln τ̂ − lnΓ(k/2) − lnΓ((n−k)/2) + (k/2) ln(R̂/τ̂)
        k = np.arange(1, f.m + 1)  # the gamma functions of each k are computed once and looked up
        ln_gammas = gammaln(k / 2) + gammaln((f.n - k) / 2)
        return f.n / 2 * f.ln_tau - ln_gammas[f.k - 1] + f.k / 2 * (f.ln_r - f.ln_tau)
