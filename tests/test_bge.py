"""BGe against bnlearn's values, and against what it is derived from."""

from math import log, pi

import numpy as np
import pandas as pd
import pytest
from scipy.special import multigammaln
from scipy.stats import multivariate_t

from scorers import BIC, BGe, Families, network_score, score_table
from search import learn, rank
from search.exhaustive import dag_scores
from tests import naive
from tests.test_field_scores import GOLDEN, ROWS, SCORES, golden, regression


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.dataset}{row.dag}")
def test_bge_of_bnlearn(row: pd.Series) -> None:
    """Nothing is dropped: bnlearn's default prior, iss.mu = 1 and iss.w = m + 2, to all its digits."""
    data, adjacency = golden(row)
    assert -network_score(data, adjacency, BGe()) == pytest.approx(row.bge, abs=1e-8)
    assert -network_score(data, adjacency, BGe(alpha_mu=1, alpha_w=data.shape[1] + 2)) == pytest.approx(
        row.bge, abs=1e-8
    )


@pytest.mark.parametrize("prior", [BGe(), BGe(alpha_mu=0.3, alpha_w=9.5)], ids=repr)
def test_bge_of_a_complete_network_predicts_sample_by_sample(prior: BGe) -> None:
    """Under a normal-Wishart prior each sample given those before has a multivariate t distribution."""
    data = regression(15, 3, 1, seed=13)
    m = data.shape[1]
    alpha_w = 6.0 if prior.alpha_w is None else prior.alpha_w
    mean, weight, freedom = data.mean(axis=0), prior.alpha_mu, alpha_w - m + 1
    scatter = prior.alpha_mu * (alpha_w - m - 1) / (prior.alpha_mu + 1) * np.eye(m)
    ln_likelihood = 0.0
    for sample in data:
        shape = scatter * (weight + 1) / (weight * freedom)
        ln_likelihood += float(multivariate_t.logpdf(sample, mean, shape, df=freedom))
        scatter = scatter + weight / (weight + 1) * np.outer(sample - mean, sample - mean)
        mean, weight, freedom = (weight * mean + sample) / (weight + 1), weight + 1, freedom + 1
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        complete = np.zeros((m, m))
        complete[np.ix_(order, order)] = np.triu(np.ones((m, m)), k=1)
        assert network_score(data, complete, prior) == pytest.approx(-ln_likelihood, abs=1e-8)


@pytest.mark.parametrize("prior", [BGe(), BGe(alpha_mu=2, alpha_w=20)], ids=repr)
def test_bge_of_a_family_is_a_ratio_of_two_sets(prior: BGe) -> None:
    """The whole table against the marginal likelihoods of Kuipers, Moffa & Heckerman (2014), eq. (2), set by set."""
    data = regression(25, 4, 1, seed=14)
    n, m = data.shape
    alpha_w = m + 2 if prior.alpha_w is None else prior.alpha_w
    t = prior.alpha_mu * (alpha_w - m - 1) / (prior.alpha_mu + 1)
    scatter = t * np.eye(m) + n * np.cov(data.T, ddof=0)

    def ln_marginal(nodes: list[int]) -> float:
        size, freedom = len(nodes), alpha_w - m + len(nodes)
        if not nodes:
            return 0.0
        return float(
            size / 2 * log(prior.alpha_mu / (n + prior.alpha_mu))
            + multigammaln((n + freedom) / 2, size)
            - multigammaln(freedom / 2, size)
            - size * n / 2 * log(pi)
            + freedom / 2 * size * log(t)
            - (n + freedom) / 2 * np.linalg.slogdet(scatter[np.ix_(nodes, nodes)])[1]
        )

    families = Families.of(data)
    table = score_table(families, prior)
    for j in range(m):
        for c in range(1 << (m - 1)):
            parents = list(families.parents(j, c))
            expected = ln_marginal(parents) - ln_marginal([*parents, j])
            assert table[j, c] == pytest.approx(expected, abs=1e-8)


def test_bge_by_dynamic_programming() -> None:
    """The optimum of m = 5 nodes is that of all DAGs; of 8, no random network and no neighbour is better."""
    rng = np.random.default_rng(15)
    for _ in range(5):
        data = regression(40, 4, 0.5, seed=int(rng.integers(1000)))
        scores = dag_scores(score_table(Families.of(data), BGe()))
        best = learn(data, BGe(), rng=rng)
        assert best.score == pytest.approx(scores.min(), abs=1e-8)
        assert network_score(data, best.adjacency, BGe()) == pytest.approx(best.score, abs=1e-8)
        assert rank(data, BGe(), best.adjacency, among="classes").best == 1
    data = pd.read_csv(GOLDEN / "c.csv").to_numpy()
    best = learn(data, BGe(), rng=0)
    assert best.score == pytest.approx(network_score(data, best.adjacency, BGe()), abs=1e-8)
    assert best.score < -SCORES.query("dataset == 'c'").bge.max() + 1e-8
    for i, j in np.argwhere(~np.eye(8, dtype=bool)):
        other = best.adjacency.astype(float)
        other[i, j] = 1 - other[i, j]
        if naive.is_acyclic(other):
            assert network_score(data, other, BGe()) > best.score - 1e-8


def test_bge_with_a_parent_cap_and_a_prior_that_is_none() -> None:
    data = regression(40, 5, 1, seed=16)
    free, capped = score_table(Families.of(data), BGe()), score_table(Families.of(data, max_parents=2), BGe())
    few = np.bitwise_count(np.arange(1 << 5)) <= 2
    np.testing.assert_allclose(capped[:, few], free[:, few], rtol=1e-12)
    assert np.isinf(capped[:, ~few]).all()
    assert learn(data, BGe(), max_parents=2).adjacency.sum(axis=0).max() <= 2
    with pytest.raises(ValueError, match=r"alpha_w must be finite and above m \+ 1 = 7 for m = 6 nodes. Got 7"):
        learn(data, BGe(alpha_w=7))
    with pytest.raises(ValueError, match="alpha_mu must be positive and finite"):
        BGe(alpha_mu=0)


def test_bge_depends_on_the_units() -> None:
    """The prior's t is a variance: beside it small numbers are no data, and then the complete network is the best."""
    data = np.random.default_rng(17).normal(1, 1, (200, 4))
    assert learn(data, BGe(), rng=0).adjacency.sum() == 0
    assert learn(data / 1e3, BGe(), rng=0).adjacency.sum() == 6
    assert learn(data / 1e3, BIC(), rng=0).adjacency.sum() == 0
