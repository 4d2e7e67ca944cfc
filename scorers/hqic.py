"""The information criterion of Hannan and Quinn."""

from dataclasses import dataclass
from math import log

from scorers.base import Array, Block


@dataclass(frozen=True)
class HQIC:
    """The information criterion of Hannan and Quinn, half of its usual scale.

    n/2 ln τ̂ + k ln ln n

    The penalty that grows as slowly as it may: by the law of the iterated logarithm a superfluous edge gains ln ln n
    again and again, so a smaller factor than 1 would not do.

    Invariances: score-equivalent; shift-, scale- and label-invariant. Consistent.

    References
    ----------
    Hannan & Quinn (1979).
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # HQIC: n/2 ln τ̂ + k ln ln n
        return f.n / 2 * f.ln_tau + f.k * log(log(f.n))
