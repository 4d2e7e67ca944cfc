"""The paper's three-part code."""

from dataclasses import dataclass
from math import log

from scorers.base import Array, Block


@dataclass(frozen=True)
class MDL:
    """The three-part code of eq. (9): BIC, and ln m nats to name each parent.

    n/2 ln τ̂ + k (½ ln n + ln m)

    The first part of the code lists the parents, the second and third are a two-part code of the child given them.
    The constant is counted as a parent, as the paper does; it costs every structure the same.

    Invariances: score-equivalent; shift-, scale- and label-invariant. Consistent.

    References
    ----------
    The paper, eq. (9), after Lam & Bacchus (1994).
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # Eq. (9): n/2 ln τ̂ + k (½ ln n + ln m), without n/2 ln 2πe, the same for every family
        return f.n / 2 * f.ln_tau + f.k * (log(f.n) / 2 + log(f.m))
