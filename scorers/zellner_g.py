"""The marginal likelihood of a regression under Zellner's prior with the information of one sample."""

from dataclasses import dataclass
from math import log

import numpy as np

from scorers.base import Array, Block


@dataclass(frozen=True)
class ZellnerG:
    """Minus the log marginal likelihood under Zellner's g-prior with unit information, g = n.

    (n−1)/2 ln(variance + g τ̂) − (n−k)/2 ln(1+g)

    The coefficients of the parents have the prior N(0, g τ (X'X)⁻¹) with centred X; the intercept has a flat prior
    and the residual variance τ the prior 1/τ, both in every family, so that their constants are the same for every
    structure and are dropped. With g = n the prior tells as much as one sample; the score is BIC in the limit.

    Mind strong effects (the information paradox of a fixed g): once τ̂ is below variance/n the first term hardly sees
    it any more, so where parents explain all but 1/n of a child's variance the true ones gain little over others.
    Dense networks of many nodes, whose variances grow along the order, have such children even at n = 1000.

    Invariances: shift-, scale- and label-invariant. Not score-equivalent: each family has a prior of its own, and
    no joint distribution makes them agree (`BGe` is built from one that does). Consistent, given an order.

    References
    ----------
    Zellner (1986); Kass & Wasserman (1995) for g = n; Liang, Paulo, Molina, Clyde & Berger (2008), eq. (6).
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        g = f.n
        # (n−1)/2 ln(variance + g τ̂) − (n−k)/2 ln(1+g)
        return (f.n - 1) / 2 * np.logaddexp(f.ln_variance, log(g) + f.ln_tau) - (f.n - f.k) / 2 * log(1 + g)
