"""The paper's simplified RNML: Stirling's approximation of eq. (33)."""

from dataclasses import dataclass

import numpy as np

from scorers.base import Array, Block


@dataclass(frozen=True)
class RNMLStirling:
    """RNML with Stirling's approximation of the gamma functions, eq. (33), halved to be on eq. (32)'s scale.

    ½ [ (n−k) ln(τ̂/(n−k)) + k ln(R̂/k) + ln(k(n−k)) ]

    Equal to `RNML` up to a constant and the remainder of Stirling's formula, which is 1/(6k) + 1/(6(n−k)) at most:
    up to 0.15 nats between families with k = 1 and with many parents. It is kept to show that the approximation
    does not matter.

    Invariances: those of `RNML`: scale- and label-invariant; not score-equivalent, not shift-invariant. Consistent,
    given an order.

    References
    ----------
    The paper, eq. (33), right as printed up to the factor 2.
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # Eq. (33), halved: ½ [ (n−k) ln(τ̂/(n−k)) + k ln(R̂/k) + ln(k(n−k)) ]
        k = np.arange(1, f.m + 1)
        rest = f.n - k
        of_k: Array = np.log(k * rest) - rest * np.log(rest) - k * np.log(k)
        return ((f.n - f.k) * f.ln_tau + f.k * f.ln_r + of_k[f.k - 1]) / 2
