"""Akaike's information criterion."""

from dataclasses import dataclass

from scorers.base import Array, Block


@dataclass(frozen=True)
class AIC:
    """Akaike's information criterion, half of its usual scale.

    n/2 ln τ̂ + k

    One nat for each regression coefficient; the residual variance is in every family and is dropped. It aims at
    prediction, not at the true structure: it keeps superfluous edges however large n is.

    Invariances: score-equivalent; shift-, scale- and label-invariant. Not consistent.

    References
    ----------
    Akaike (1974); the paper's competitor in section 6.
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # AIC: n/2 ln τ̂ + k
        return f.n / 2 * f.ln_tau + f.k
