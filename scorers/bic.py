"""Schwarz's Bayesian information criterion."""

from dataclasses import dataclass
from math import log

from scorers.base import Array, Block


@dataclass(frozen=True)
class BIC:
    """Schwarz's Bayesian information criterion, half of its usual scale.

    n/2 ln τ̂ + (k/2) ln n

    The large-sample marginal likelihood of the family; the two-part code of eq. (8).

    Invariances: score-equivalent; shift-, scale- and label-invariant. Consistent.

    References
    ----------
    Schwarz (1978); the paper's competitor in section 6.
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # BIC: n/2 ln τ̂ + (k/2) ln n
        return f.n / 2 * f.ln_tau + f.k / 2 * log(f.n)
