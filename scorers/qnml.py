"""A score-equivalent normalised maximum likelihood: the quotient of two Gaussian codes."""

from dataclasses import dataclass
from math import log, pi

import numpy as np
from scipy.special import gammaln

from scorers.base import Array, Block


@dataclass(frozen=True)
class QNML:
    """The quotient normalised maximum likelihood of a Gaussian network.

    n/2 ln τ̂ − lnΓ((n−k)/2) − ((k−1)/2) ln π + (k−1) ln c

    The code length of a family is L(π ∪ i) − L(π), where L(A) is the normalised maximum likelihood code length of
    the columns A under an unrestricted Gaussian. Silander et al. (2018) made this score for discrete data; whatever
    L is, such a difference is score-equivalent, because reversing a covered edge gives the same sum.

    *Derivation.* For d columns the maximised likelihood is (2πe)^(−nd/2) |Σ̂|^(−n/2). Means and covariances
    (μ̂, Σ̂) of n samples have, with respect to Lebesgue measure on the data, the density
    n^(nd/2) π^((n−1)d/2) / Γ_d((n−1)/2) · |Σ̂|^((n−d−2)/2), so the normaliser is

    C_d = (n/2e)^(nd/2) π^(−d/2) / Γ_d((n−1)/2) · V_d,    V_d = ∫ |Σ|^(−(d+2)/2) dμ dΣ over a region,

    and L = n/2 ln |Σ̂| − lnΓ_d((n−1)/2) + ln V_d + a multiple of d. With |Σ̂_(π∪i)| / |Σ̂_π| = τ̂ and
    Γ_k(x) / Γ_(k−1)(x) = π^((k−1)/2) Γ(x − (k−1)/2) the difference is the formula, where ln V_k − ln V_(k−1) is left.

    *The region.* The integral over all parameters diverges, so a region has to be chosen. In standard deviations σ
    and correlations C the integrand is Π 2 dσ/σ · dμ/σ times |C|^(−(d+2)/2) dC: bounds on the means and scales give
    each column a factor of its own, which every structure pays once. Correlation matrices are the images of d(d−1)/2
    free numbers in (−1, 1), the partial correlations ρ given 0, 1, …, d−2 others in turn (a vine; Joe 2006), and the
    integrand is the product of (1−ρ²)^(−(l+4)/2) dρ, l being the number of the others. The region is |ρ| ≤ r_l with
    each r_l such that this number's integral is c. A column that joins k − 1 others brings k − 1 of them, so that
    ln V_k − ln V_(k−1) = (k−1) ln c, up to the column's own factor.

    *What it costs.* A parent costs ½ ln(n/2π) + ln c nats in the limit. c = 1 means |ρ| ≤ 0.43 for a correlation
    (0.39 for a partial one given four others), c = √2π = 2.5 means 0.73 and is BIC in the limit, c = 6.2 means 0.9.
    The code is minimax only for data in the region; beyond it, it is used as a formula. The default is the score
    without the term: it takes edges more easily than BIC does, by 0.92 nats an edge.

    Invariances: score-equivalent; shift-, scale- and label-invariant. Consistent, whatever c is.

    Parameters
    ----------
    volume : float
        c, the invariant volume of the region of each (partial) correlation.

    References
    ----------
    Silander, Leppä-aho, Jääsaari & Roos (2018), for discrete data; Rissanen (2000) for the Gaussian normaliser.
    """

    volume: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a region without volume."""
        if not 0 < self.volume < float("inf"):
            raise ValueError(f"volume must be positive and finite. Got {self.volume} instead.")

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        k = np.arange(1, f.m + 1)
        # n/2 ln τ̂ − lnΓ((n−k)/2) − ((k−1)/2) ln π + (k−1) ln c
        of_k = -gammaln((f.n - k) / 2) + (k - 1) * (log(self.volume) - log(pi) / 2)
        return f.n / 2 * f.ln_tau + of_k[f.k - 1]
