"""A reading of the paper, not RNML: the constant C(τ⁰, R⁰) taken as it is misprinted."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from scorers.base import Array, Block


@dataclass(frozen=True)
class RNMLPrintedC:
    """The code length that follows from the constant C(τ⁰, R⁰) as printed, exponent −k/2 and Γ(n−k).

    n/2 ln τ̂ − (k/2) ln(R̂/τ̂) − lnΓ(k/2) − lnΓ(n−k)  [− 2 ln k]

    The right constant has exponent +k/2 and Γ((n−k)/2): see `RNML`. This reading rewards a large R̂/τ̂ where RNML
    charges for it, so it prefers the other direction of an edge. It exists to find out which formula the paper's
    numbers came from, and for nothing else.

    Invariances: scale- and label-invariant. Not score-equivalent, not shift-invariant. Consistent, given an order.

    Parameters
    ----------
    keep_k_squared : bool
        Keep the k² in the denominator of C, − 2 ln k, which the second normalisation cancels.

    References
    ----------
    The paper, the equation for C(τ⁰, R⁰) at the end of its section on the normalised maximum likelihood.
    """

    keep_k_squared: bool = False

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # −ln of (2πeτ̂)^(−n/2) / C, C as printed: n/2 ln τ̂ − (k/2) ln(R̂/τ̂) − lnΓ(k/2) − lnΓ(n−k) [− 2 ln k]
        k = np.arange(1, f.m + 1)
        of_k = -gammaln(k / 2) - gammaln(f.n - k)
        if self.keep_k_squared:
            of_k -= 2 * np.log(k)
        return f.n / 2 * f.ln_tau - f.k / 2 * (f.ln_r - f.ln_tau) + of_k[f.k - 1]
