"""The extended Bayesian information criterion."""

from dataclasses import dataclass
from math import log

from scorers.base import Array, Block


@dataclass(frozen=True)
class EBIC:
    """The extended Bayesian information criterion, half of its usual scale.

    n/2 ln τ̂ + (k/2) ln n + 2γ (k−1) ln m

    BIC with a prior on structures that gives every number of edges a fair share, rather than every structure: an
    edge costs 2γ ln m nats more. For γ = ½ this is the paper's three-part code, `MDL`, up to m ln m, so the default
    is the other value in use. bnlearn adds 4γ ln m to what it calls `ebic-g`, a log-likelihood, where the halved
    criterion has 2γ: its γ = ½ is γ = 1 here.

    Invariances: score-equivalent; shift-, scale- and label-invariant. Consistent.

    Parameters
    ----------
    gamma : float
        γ, from 0 (BIC) to 1.

    References
    ----------
    Foygel & Drton (2010), −2 ln L + |E| ln n + 4γ |E| ln m; Chen & Chen (2008).
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a γ that is not in use."""
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma must be from 0 to 1. Got {self.gamma} instead.")

    def __call__(self, f: Block) -> Array:
        """Score every family of the block."""
        # EBIC: n/2 ln τ̂ + (k/2) ln n + 2γ (k−1) ln m
        return f.n / 2 * f.ln_tau + f.k / 2 * log(f.n) + 2 * self.gamma * log(f.m) * (f.k - 1)
