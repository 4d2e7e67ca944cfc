"""The scores of the field against golden values, and against what they are derived from."""

from math import e, lgamma, log, pi, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import multigammaln
from scipy.stats import f as f_distribution
from scipy.stats import multivariate_t

from scorers import (
    AIC,
    BIC,
    EBIC,
    GMDL,
    HQIC,
    MDL,
    QNML,
    AICc,
    BGe,
    Families,
    Scorer,
    ZellnerG,
    network_score,
    score_table,
)
from scorers.moments import Moments
from search import learn
from tests import naive

GOLDEN = Path(__file__).parent / "golden"
SCORES = pd.read_csv(GOLDEN / "scores.csv")
ROWS = [SCORES.iloc[i] for i in range(len(SCORES))]


def golden(row: pd.Series) -> tuple[pd.DataFrame, np.ndarray]:
    data = pd.read_csv(GOLDEN / f"{row.dataset}.csv")
    m = data.shape[1]
    return data, np.loadtxt(GOLDEN / f"{row.dataset}.dags.csv", delimiter=",").reshape(-1, m, m)[row.dag]


def least_squares(y: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """RSS of the fit with intercept, and Σ(y − ȳ)²."""
    design = np.column_stack([np.ones(len(y)), x])
    residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(residuals @ residuals), float(np.sum((y - y.mean()) ** 2))


def regression(n: int, p: int, effect: float, seed: int) -> np.ndarray:
    """Data whose last column depends on the others."""
    rng = np.random.default_rng(seed)
    x = rng.normal(1, 1, (n, p)) @ rng.normal(size=(p, p))
    return np.column_stack([x, 2 + effect * x.sum(axis=1) + rng.normal(size=n)])


def into_last(m: int) -> np.ndarray:
    """The network in which all other nodes are parents of the last one."""
    adjacency = np.zeros((m, m))
    adjacency[:-1, -1] = 1
    return adjacency


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.dataset}{row.dag}")
def test_ebic_of_bnlearn(row: pd.Series) -> None:
    """bnlearn does not halve the penalty 4γ ln m, so that its γ = ½ is γ = 1."""
    data, adjacency = golden(row)
    n, m = data.shape
    k = adjacency.sum(axis=0) + 1
    # as in test_golden.py: bnlearn divides by n − k and counts the variances
    beside_tau = np.sum(n / 2 * np.log(2 * pi * n / (n - k)) + (n - k) / 2)
    ours = -network_score(data, adjacency, EBIC(gamma=1)) - beside_tau - m / 2 * log(n)
    assert ours == pytest.approx(row.ebic_g, abs=1e-8)


def test_ebic_is_bic_and_mdl_at_its_ends() -> None:
    families = Families.of(regression(40, 4, 1, seed=0))
    np.testing.assert_allclose(score_table(families, EBIC(gamma=0)), score_table(families, BIC()), rtol=1e-14)
    beside = score_table(families, MDL()) - score_table(families, EBIC(gamma=0.5))
    np.testing.assert_allclose(beside, log(5), rtol=1e-12)
    with pytest.raises(ValueError, match=r"gamma must be from 0 to 1. Got 2"):
        EBIC(gamma=2)


def test_aicc_is_the_corrected_aic() -> None:
    """−2 ln L + 2q + 2q(q+1)/(n−q−1) with q = k + 1, and Hurvich & Tsai's form n ln τ̂ + n (1+k/n)/(1−(k+2)/n)."""
    n, p = 12, 3
    data = regression(n, p, 1, seed=1)
    rss, tss = least_squares(data[:, -1], data[:, :-1])

    def corrected(rss: float, q: int) -> float:
        ln_likelihood = -n / 2 * log(2 * pi * rss / n) - n / 2
        return -ln_likelihood + q + q * (q + 1) / (n - q - 1)

    def hurvich_tsai(rss: float, k: int) -> float:
        return (n * log(rss / n) + n * (1 + k / n) / (1 - (k + 2) / n)) / 2

    gain = network_score(data, into_last(p + 1), AICc()) - network_score(data, np.zeros((p + 1, p + 1)), AICc())
    assert gain == pytest.approx(corrected(rss, p + 2) - corrected(tss, 2), abs=1e-9)
    assert gain == pytest.approx(hurvich_tsai(rss, p + 1) - hurvich_tsai(tss, 1), abs=1e-9)


def test_aicc_refuses_too_few_samples() -> None:
    data = regression(6, 3, 1, seed=2)
    with pytest.raises(
        ValueError, match=r"child x3, parents \[x0, x1, x2\]: AICc needs n > k \+ 2. Got n = 6 and k = 4"
    ):
        network_score(data, into_last(4), AICc())
    with pytest.raises(ValueError, match="AICc needs n > k"):
        score_table(Families.of(data), AICc())
    assert np.isfinite(network_score(data[:, 1:], into_last(3), AICc()))


def test_aicc_tends_to_aic_and_hqic_lies_between_aic_and_bic() -> None:
    data = regression(100_000, 3, 1, seed=3)
    networks = [np.zeros((4, 4)), into_last(4)]
    gain: dict[Scorer, float] = {
        scorer: network_score(data, networks[1], scorer) - network_score(data, networks[0], scorer)
        for scorer in (AIC(), AICc(), HQIC(), BIC())
    }
    assert gain[AICc()] == pytest.approx(gain[AIC()], abs=1e-3)
    assert gain[AIC()] + 3 < gain[HQIC()] < gain[BIC()] - 3
    assert gain[HQIC()] - gain[AIC()] == pytest.approx(3 * (log(log(100_000)) - 1), abs=1e-6)


@pytest.mark.parametrize(("effect", "fits"), [(1.0, True), (0.01, False)])
def test_gmdl_from_the_f_statistic(effect: float, fits: bool) -> None:
    """Hansen & Yu's two branches from the F statistic of plain least squares, p-value and all."""
    n, p = 30, 3
    data = regression(n, p, effect, seed=4)
    rss, tss = least_squares(data[:, -1], data[:, :-1])
    s = rss / (n - 1 - p)
    f = (tss - rss) / (p * s)
    assert (f >= 1) == fits == (1 - rss / tss >= p / (n - 1))
    assert (f_distribution.sf(f, p, n - 1 - p) < 0.01) == fits
    alone = (n - 1) / 2 * log(tss / (n - 1)) + log(n - 1) / 2
    expected = (n - 1) / 2 * log(s) + p / 2 * log(f) + log(n - 1) if fits else alone
    families = Families.of(data)
    assert score_table(families, GMDL())[p, -1] == pytest.approx(expected, abs=1e-9)
    assert score_table(families, GMDL())[p, 0] == pytest.approx(alone, abs=1e-9)


def test_gmdl_is_the_shortest_of_its_mixtures() -> None:
    """ln of the marginal likelihood over the contrasts, minimised over the prior's scales c and a by brute force."""
    n, p = 20, 2
    data = regression(n, p, 0.5, seed=5)
    rss, tss = least_squares(data[:, -1], data[:, :-1])
    N = n - 1

    def mixture(c: float, a: float) -> float:
        # y ~ N(Xβ, τ), β ~ N(0, cτ(X'X)⁻¹), τ ~ τ^(−3/2) exp(−a/2τ) √a/√2π, integrated: without what depends on N alone
        return p / 2 * log(1 + c) - log(a) / 2 + (N + 1) / 2 * log(a + tss - c / (1 + c) * (tss - rss))

    grid = [mixture(c, a) for c in np.geomspace(0.01, 1000, 1500) for a in np.geomspace(0.001, 100, 1500)]
    free_of_c = [mixture(0, a) for a in np.geomspace(0.001, 100, 1500)]
    # the second ½ ln N is what telling c costs
    expected = min(grid) - min(free_of_c) + log(N) / 2
    table = score_table(Families.of(data), GMDL())
    assert table[p, -1] - table[p, 0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("p", [1, 2])
def test_zellner_g_is_a_marginal_likelihood(p: int) -> None:
    """The contrasts of the child given τ are N(0, τ(I + g H)), and the prior 1/τ makes them improper: a Bayes factor.

    With the prior Γ⁻¹(ν/2, ν s²/2) on τ the contrasts have a multivariate t distribution; ν → 0 is 1/τ, up to a
    factor that the family without parents has as well.
    """
    n, nu = 12, 1e-7
    data = regression(n, p, 0.4, seed=6 + p)
    contrasts = np.linalg.svd(np.eye(n) - 1 / n)[0][:, : n - 1].T  # orthonormal and orthogonal to the constant
    y, x = contrasts @ data[:, -1], contrasts @ data[:, :-1]
    hat = x @ np.linalg.inv(x.T @ x) @ x.T
    fitted, alone = (multivariate_t.logpdf(y, shape=np.eye(n - 1) + g * hat, df=nu) for g in (n, 0))  # type: ignore[arg-type]
    table = score_table(Families.of(data), ZellnerG())
    assert table[p, -1] - table[p, 0] == pytest.approx(alone - fitted, abs=1e-5)


def test_zellner_g_by_integration() -> None:
    """One parent: the integral over its coefficient and ln τ, the intercept integrated out by hand."""
    n = 8
    data = regression(n, 1, 0.4, seed=9)
    x, y = (data - data.mean(axis=0)).T
    xx, xy, yy = x @ x, x @ y, y @ y

    def integrand(u: float, ln_tau: float) -> float:
        b, tau = u * sqrt(np.exp(ln_tau) / xx), np.exp(ln_tau)
        prior = np.exp(-u * u / (2 * n)) / sqrt(2 * pi * n)
        return float(np.exp(-(n - 1) / 2 * ln_tau - (yy - 2 * b * xy + b * b * xx) / (2 * tau)) * prior)

    with_parent, _ = dblquad(integrand, -4, 10, -60, 60, epsabs=0, epsrel=1e-10)
    without, _ = quad(lambda t: np.exp(-t * (n - 1) / 2 - yy / 2 * np.exp(-t)), -4, 10, epsabs=0, epsrel=1e-11)
    table = score_table(Families.of(data), ZellnerG())
    assert table[1, 1] - table[1, 0] == pytest.approx(log(without / with_parent), abs=1e-6)


def test_qnml_normaliser_of_one_and_two_columns() -> None:
    """C_1 and C_2 by Monte Carlo over the data, R^n and R^2n, on the region that the docstring names.

    Within it the maximised likelihood is a bounded multiple of the standard normal density, from which is drawn.
    """
    n, draws, r = 6, 2_000_000, 0.732
    low, high, far = 0.6, 1.5, 0.6  # bounds of the standard deviations, and of |mean| / standard deviation
    x = np.random.default_rng(0).standard_normal((2, n, draws))
    mean = x.mean(axis=1)
    sd = x.std(axis=1)
    correlation = ((x[0] - mean[0]) * (x[1] - mean[1])).mean(axis=0) / (sd[0] * sd[1])
    inside = (sd > low) & (sd < high) & (np.abs(mean) < far * sd)
    # maximised likelihood / density of the draws: |Σ̂|^(−n/2) exp(½ Σx² − nd/2)
    ln_weight = -n * np.log(sd) + n / 2 * (sd**2 + mean**2) - n / 2
    one = np.where(inside[0], np.exp(ln_weight[0]), 0.0)
    two = np.where(
        inside.all(axis=0) & (np.abs(correlation) < r),
        np.exp(ln_weight.sum(axis=0)) * (1 - correlation**2) ** (-n / 2),
        0.0,
    )
    own = 2 * log(high / low) * 2 * far  # ∫ 2 dσ/σ dμ/σ
    c = quad(lambda rho: (1 - rho * rho) ** -2.0, -r, r)[0]
    assert c == pytest.approx(sqrt(2 * pi), abs=0.01)  # as the docstring says
    normalisers = []
    for d, weights, volume in ((1, one, own), (2, two, own**2 * c)):
        expected = n * d / 2 * log(n / (2 * e)) - d / 2 * log(pi) - multigammaln((n - 1) / 2, d) + log(volume)
        error = weights.std() / weights.mean() / sqrt(draws)
        assert error < 0.005
        assert log(weights.mean()) == pytest.approx(expected, abs=4 * error)
        normalisers.append((log(weights.mean()), error))

    # L(two columns) − L(one), from the measured normalisers, is the score but for what a column itself costs
    data = np.random.default_rng(1).normal(1, 1, (n, 2)) @ [[1, 0.5], [0, 1]]
    ln_det = [log(data[:, 0].var()), np.linalg.slogdet(np.cov(data.T, ddof=0))[1]]
    lengths = [n * d / 2 * log(2 * pi * e) + n / 2 * ln_det[d - 1] + normalisers[d - 1][0] for d in (1, 2)]
    column = n / 2 * log(n * pi) - log(pi) / 2 + log(own)
    table = score_table(Families.of(data), QNML(volume=c))
    assert table[0, 0] + column == pytest.approx(lengths[0], abs=4 * normalisers[0][1])
    assert table[1, 1] + column == pytest.approx(
        lengths[1] - lengths[0], abs=4 * sum(error for _, error in normalisers)
    )


def test_qnml_partial_correlations_are_free_coordinates() -> None:
    """dC = Π (1−ρ²)^((d−2−l)/2) dρ for d = 3 and 4, and |C| = Π (1−ρ²): the volume that the docstring claims."""

    def correlations(partial: np.ndarray, d: int) -> np.ndarray:
        """From ρ_ij given all before i, by the recursion for partial correlations."""
        c = np.eye(d)
        free = iter(partial)
        for i in range(d - 1):
            for j in range(i + 1, d):
                rho = next(free)
                for before in reversed(range(i)):  # take the conditions away one by one
                    a, b = (_given(c, before, t) for t in (i, j))
                    rho = rho * np.sqrt((1 - a * a) * (1 - b * b)) + a * b
                c[i, j] = c[j, i] = rho
        return c

    def _given(c: np.ndarray, before: int, j: int) -> float:
        """Correlation of `before` and j given all that is before `before`."""
        nodes = [before, j]
        others = list(range(before))
        rest = c[np.ix_(nodes, nodes)]
        if others:
            cross = c[np.ix_(nodes, others)]
            rest = rest - cross @ np.linalg.solve(c[np.ix_(others, others)], cross.T)
        return float(rest[0, 1] / np.sqrt(rest[0, 0] * rest[1, 1]))

    rng = np.random.default_rng(2)
    for d in (3, 4):
        pairs = np.triu_indices(d, k=1)
        for _ in range(5):
            partial = rng.uniform(-0.8, 0.8, len(pairs[0]))
            others = pairs[0]  # ρ_ij is given the i nodes before i
            assert np.linalg.det(correlations(partial, d)) == pytest.approx(np.prod(1 - partial**2), rel=1e-10)
            step = 1e-6 * np.eye(len(partial))
            jacobian = [(correlations(partial + h, d) - correlations(partial - h, d))[pairs] / 2e-6 for h in step]
            expected = np.prod((1 - partial**2) ** ((d - 2 - others) / 2))
            assert abs(np.linalg.det(jacobian)) == pytest.approx(expected, rel=1e-6)


def test_qnml_is_a_difference_of_set_functions() -> None:
    """The complete network's score does not depend on its order, and is the code of all columns at once."""
    data = regression(25, 3, 1, seed=10)
    n, m = data.shape
    complete = network_score(data, np.triu(np.ones((m, m)), k=1), QNML())
    ln_det = np.linalg.slogdet(np.cov(data.T, ddof=0))[1]
    assert complete == pytest.approx(n / 2 * ln_det - multigammaln((n - 1) / 2, m), abs=1e-8)


def test_qnml_against_bic_in_the_limit() -> None:
    """With c = √2π a parent costs ½ ln n in the limit; c is worth ln c a parent."""
    n = 1_000_000
    k = np.array([1, 2])
    penalty = [-lgamma((n - i) / 2) - (i - 1) / 2 * log(pi) + (i - 1) / 2 * log(2 * pi) for i in k]
    assert penalty[1] - penalty[0] == pytest.approx(log(n) / 2, abs=1e-5)
    data = regression(30, 2, 1, seed=11)
    one, many = (network_score(data, into_last(3), QNML(volume=volume)) for volume in (1, 5))
    assert many - one == pytest.approx(2 * log(5), abs=1e-9)
    with pytest.raises(ValueError, match=r"volume must be positive and finite. Got 0"):
        QNML(volume=0)


@pytest.mark.parametrize("scorer", [*naive.SCORERS, BGe(), BGe(alpha_mu=2, alpha_w=20)], ids=repr)
@pytest.mark.parametrize("max_parents", [None, 2])
def test_several_data_sets_at_once_have_the_same_bits(scorer: Scorer, max_parents: int | None) -> None:
    data = [regression(30, 5, 0.5, seed=seed) for seed in range(6)]
    columns = np.array([each.T for each in data]).reshape(2, 3, 6, 30)
    together = score_table(Families.of_moments(Moments.of_columns(columns), max_parents), scorer)
    for d, each in enumerate(data):
        alone = score_table(Families.of(each, max_parents), scorer)
        np.testing.assert_array_equal(together[divmod(d, 3)], alone)


@pytest.mark.parametrize("scorer", [AICc(), HQIC(), EBIC(), GMDL(), ZellnerG(), QNML(), BGe()], ids=repr)
def test_they_find_a_clear_structure(scorer: Scorer) -> None:
    """x0 → x2 ← x1, x2 → x3: all but unmistakable at n = 2000."""
    rng = np.random.default_rng(12)
    data = rng.normal(1, 1, (2000, 4))
    data[:, 2] += data[:, 0] - data[:, 1]
    data[:, 3] += data[:, 2]
    found = learn(data, scorer, rng=0).adjacency
    np.testing.assert_array_equal(found, [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
