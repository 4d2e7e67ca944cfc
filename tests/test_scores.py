"""The scores against their formulas, against each other, and against the integral behind RNML."""

from math import e, lgamma, log, pi

import numpy as np
import pytest
from scipy.special import gammaln

from scorers import BIC, RNML, Block, Families, RNMLStirling, Scorer, WithoutIntercept, network_score, score_table
from tests import naive
from tests.naive import SCORERS, random_dag


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_table_and_network_score_follow_the_formula(scorer: Scorer) -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        n, m = int(rng.integers(12, 80)), int(rng.integers(2, 6))
        data = rng.normal(1, 1, (n, m)) @ rng.normal(size=(m, m)) + 1
        families = Families.of(data)
        table = score_table(families, scorer)
        for j in range(m):
            expected = [naive.family_score(data, j, families.parents(j, c), scorer) for c in range(1 << (m - 1))]
            np.testing.assert_allclose(table[j], expected, rtol=0, atol=1e-8)
        adjacency = random_dag(m, rng)
        assert network_score(data, adjacency, scorer) == pytest.approx(
            naive.network_score(data, adjacency, scorer), abs=1e-8
        )


def test_stirling_differs_by_a_constant_and_its_remainder() -> None:
    """lnΓ(z) = (z − ½) ln z − z + ½ ln 2π + ρ(z), where 1/(12z) − 1/(360z³) < ρ(z) < 1/(12z)."""
    n, m = 40, 8
    data = np.random.default_rng(2).normal(1, 1, (n, m)) @ np.random.default_rng(3).normal(size=(m, m))
    families = Families.of(data)
    k = families[0].k
    # eq. (32) = eq. (33) + constant − ρ(k/2) − ρ((n−k)/2)
    constant = (n - 2) / 2 * log(2) + n / 2 - log(2 * pi)
    remainder = score_table(families, RNMLStirling()) + constant - score_table(families, RNML())
    upper = 1 / (6 * k) + 1 / (6 * (n - k))
    lower = upper - 8 / (360 * k**3) - 8 / (360 * (n - k) ** 3)
    assert (remainder < upper + 1e-10).all()
    assert (remainder > lower - 1e-10).all()
    assert np.ptp(remainder) > 0.1  # so the bounds were put to the test


@pytest.mark.parametrize("k", [2, 3])
def test_the_constant_of_the_constrained_nml(k: int) -> None:
    """C(τ⁰, R⁰) by Monte Carlo over R^n: exponent +k/2 and Γ((n−k)/2), not −k/2 and Γ(n−k) as printed.

    The integrand is the maximised likelihood (2πe τ̂)^(−n/2) over {τ̂ ≥ τ⁰, R̂ ≤ R⁰}; its tail asks for a proposal as
    heavy as the Cauchy distribution on R^n.
    """
    n, tau0, r0, draws = 6, 0.7, 1.6, 1_000_000
    rng = np.random.default_rng(k)
    design = rng.normal(size=(n, k))
    basis = np.linalg.qr(design)[0]
    y = rng.standard_normal((draws, n)) / np.abs(rng.standard_normal((draws, 1))) * 2
    ln_proposal = gammaln((n + 1) / 2) - gammaln(0.5) - n / 2 * log(4 * pi) - (n + 1) / 2 * np.log1p((y**2).sum(1) / 4)
    r_hat = ((y @ basis) ** 2).sum(1) / n
    tau_hat = (y**2).sum(1) / n - r_hat
    inside = (tau_hat >= tau0) & (r_hat <= r0)
    weights = np.where(inside, np.exp(-n / 2 * np.log(2 * pi * e * tau_hat) - ln_proposal), 0.0)
    measured, error = weights.mean(), weights.std() / draws**0.5

    # C = 4 n^(n/2) (R⁰/τ⁰)^(k/2) / ((2e)^(n/2) k² Γ((n−k)/2) Γ(k/2))
    ln_c = log(4) + n / 2 * log(n) + k / 2 * log(r0 / tau0) - n / 2 * log(2 * e) - 2 * log(k)
    right = np.exp(ln_c - lgamma((n - k) / 2) - lgamma(k / 2))
    printed = np.exp(ln_c - k * log(r0 / tau0) - lgamma(n - k) - lgamma(k / 2))
    assert error < 0.01 * right
    assert abs(measured - right) < 4 * error
    assert abs(measured - printed) > 20 * error


def test_three_lines_on_a_list() -> None:
    data = [[0.0, 1.0], [1.0, 3.0], [2.0, 4.0], [3.0, 8.0]]
    # by hand: slope 2.2, residuals 0.3, 0.1, −1.1, 0.7, so RSS = 1.8; variance of the first column 1.25
    expected = 2 * log(1.25) + log(4) / 2 + 2 * log(1.8 / 4) + log(4)
    assert network_score(data, [[0, 1], [0, 0]], BIC()) == pytest.approx(expected, abs=1e-12)


def test_a_score_of_ones_own_needs_no_import_from_here() -> None:
    class Halved:
        def __call__(self, f: Block) -> np.ndarray:
            return (f.n / 2 * f.ln_tau + f.k).astype(np.float32)

    data = np.random.default_rng(0).normal(1, 1, (30, 4))
    table = score_table(Families.of(data), Halved())
    assert table.dtype == np.float64
    assert np.isfinite(table).all()
    assert network_score(data, np.zeros((4, 4)), lambda f: f.k) == 4


def test_a_wide_network_needs_no_table() -> None:
    """m = 60 nodes and n = 20 samples: only the network's own families are fitted."""
    rng = np.random.default_rng(0)
    data = rng.normal(1, 1, (20, 60))
    chain = np.eye(60, k=1)
    assert network_score(data, chain, BIC()) == pytest.approx(naive.network_score(data, chain, BIC()), abs=1e-8)


def test_without_intercept_is_a_fit_through_the_origin() -> None:
    rng = np.random.default_rng(8)
    data = rng.normal(1, 1, (40, 4)) @ rng.normal(size=(4, 4)) + rng.normal(0, 3, 4)
    scorer = WithoutIntercept(BIC())
    families = Families.of(data)
    table = score_table(families, scorer)
    for j in range(4):
        for c in range(8):
            parents = list(families.parents(j, c))
            rss = (
                np.linalg.lstsq(data[:, parents], data[:, j], rcond=None)[1][0] if parents else data[:, j] @ data[:, j]
            )
            expected = 40 / 2 * log(rss / 40) + (len(parents) + 1) / 2 * log(40)
            assert table[j, c] == pytest.approx(expected, rel=1e-10)
    assert network_score(data, np.eye(4, k=1), scorer) == pytest.approx(
        sum(table[j, 1 << (j - 1) if j else 0] for j in range(4))
    )
