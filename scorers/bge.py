"""The Bayesian Gaussian equivalent score: the marginal likelihood under one normal-Wishart prior."""

from dataclasses import dataclass, replace
from math import log, pi

import numpy as np
from scipy.special import gammaln

from scorers.base import Array, Block
from scorers.moments import Moments


@dataclass(frozen=True)
class BGe:
    """Minus the log marginal likelihood of a family under a normal-Wishart prior of all nodes.

    (a+n)/2 ln r + ½ ln|R_π| − lnΓ((a+n)/2) + lnΓ(a/2) − (a+k−1)/2 ln t + n/2 ln π + ½ ln((α_μ+n)/α_μ)

    where a = α_w − m + k, and the posterior scatter matrix R = t I + n Σ̂, with Σ̂ the covariance matrix of the
    data, takes the place of the data: |R_π| is the determinant of its part that belongs to the parents, and
    r = |R_(π∪i)| / |R_π|. The prior has the precision matrix W ~ Wishart(α_w, (t I)⁻¹) and the mean
    μ ~ N(ν, (α_μ W)⁻¹), t = α_μ (α_w − m − 1) / (α_μ + 1) and ν the means of the columns (bnlearn's choice), which
    is why their means do not appear. Nothing is dropped: this is bnlearn's `bge`, times −1.

    The marginal likelihoods of subsets are those of the correction by Kuipers, Moffa and Heckerman: l of the nodes
    have a Wishart prior with α_w − m + l degrees of freedom and their part of t I.

    Invariances: score-equivalent; shift- and label-invariant. **Not scale-invariant**: t is a variance in the units
    of the data, so that raw and standardised data can have different optima; columns whose variances are far below
    t / n are no data beside the prior, and the best network is then complete. Consistent.

    Parameters
    ----------
    alpha_mu : float
        α_μ, the imaginary sample size of the mean.
    alpha_w : float, optional
        α_w, the imaginary sample size of the covariance matrix, above m + 1; m + 2 when left out.

    References
    ----------
    Geiger & Heckerman (2002); Kuipers, Moffa & Heckerman (2014), who correct it and choose this t.
    """

    alpha_mu: float = 1.0
    alpha_w: float | None = None

    def __post_init__(self) -> None:
        """Refuse a prior of the mean that is none."""
        if not 0 < self.alpha_mu < float("inf"):
            raise ValueError(f"alpha_mu must be positive and finite. Got {self.alpha_mu} instead.")

    def moments(self, moments: Moments) -> Moments:
        """The moments through which the data are seen: R/n = Σ̂ + (t/n) I in place of the covariance matrix Σ̂."""
        _, t = self._prior(moments.m)
        ln_variance = np.logaddexp(moments.ln_variance, log(t / moments.n))
        shrunk = np.exp((moments.ln_variance - ln_variance) / 2)
        correlation = moments.correlation * shrunk[..., :, None] * shrunk[..., None, :]
        correlation[..., np.arange(moments.m), np.arange(moments.m)] = 1.0
        return replace(moments, correlation=correlation, ln_variance=ln_variance, offset=moments.offset * shrunk)

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        alpha_w, t = self._prior(f.m)
        k = np.arange(1, f.m + 1)
        a = alpha_w - f.m + k
        # − lnΓ((a+n)/2) + lnΓ(a/2) − (a+k−1)/2 ln t + n/2 ln π + ½ ln((α_μ+n)/α_μ), and the n of R/n
        of_k = gammaln(a / 2) - gammaln((a + f.n) / 2) - (a + k - 1) / 2 * log(t) + (a + f.n + k - 1) / 2 * log(f.n)
        constant = f.n / 2 * log(pi) + log((self.alpha_mu + f.n) / self.alpha_mu) / 2
        # (a+n)/2 ln r + ½ ln|R_π|
        return (alpha_w - f.m + f.k + f.n) / 2 * f.ln_tau + f.ln_det / 2 + (of_k + constant)[f.k - 1]

    def _prior(self, m: int) -> tuple[float, float]:
        """α_w and t for m nodes."""
        alpha_w = m + 2 if self.alpha_w is None else self.alpha_w
        if not m + 1 < alpha_w < float("inf"):
            raise ValueError(f"alpha_w must be finite and above m + 1 = {m + 1} for m = {m} nodes. Got {alpha_w}.")
        return alpha_w, self.alpha_mu * (alpha_w - m - 1) / (self.alpha_mu + 1)
