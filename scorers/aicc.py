"""Akaike's information criterion, corrected for few samples."""

from dataclasses import dataclass

import numpy as np

from scorers.base import Array, Block


@dataclass(frozen=True)
class AICc:
    """Akaike's information criterion with the correction for small samples, half of its usual scale.

    n/2 ln τ̂ + n (k+1) / (n−k−2)

    The second term is q + q (q+1) / (n−q−1) with q = k + 1 parameters, the residual variance included: the unbiased
    estimate of the expected discrepancy of one regression. Each family is corrected as a regression of its own, with
    all n samples, so that the score is a sum over families. It needs n > k + 2, one sample more than the others.

    Invariances: score-equivalent; shift-, scale- and label-invariant. Not consistent: AIC in the limit.

    References
    ----------
    Sugiura (1978); Hurvich & Tsai (1989).
    """

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        k = np.broadcast_to(f.k, f.shape)
        if (k >= f.n - 2).any():
            where = tuple(int(i) for i in np.argwhere(k >= f.n - 2)[0])
            raise ValueError(
                f"{f.label(where)}: AICc needs n > k + 2. Got n = {f.n} and k = {k[where]}. Use fewer parents, or "
                "more data."
            )
        # AICc: n/2 ln τ̂ + n (k+1) / (n−k−2)
        return f.n / 2 * f.ln_tau + f.n * (f.k + 1) / (f.n - f.k - 2)
