"""Ranks against plain enumeration."""

import numpy as np
import pytest

from scorers import BIC, RNML, Families, Scorer, score_table
from search import rank
from search.dags import adjacency_of, all_dags
from search.exhaustive import dag_scores
from tests import naive
from tests.naive import SCORERS


def sample(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    return rng.normal(1, 1, (n, m)) @ (np.eye(m) + np.triu(rng.normal(size=(m, m)), k=1))


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_rank_of_every_dag_by_plain_enumeration(scorer: Scorer) -> None:
    data = sample(np.random.default_rng(3), 25, 3)
    dags = naive.all_dags(3)
    scores = np.array([naive.network_score(data, dag, scorer) for dag in dags])
    for dag, score in zip(dags, scores, strict=True):
        found = rank(data, scorer, dag)
        assert found.total == 25
        assert found.best == 1 + np.count_nonzero(scores < score - 1e-8)
        assert found.worst == np.count_nonzero(scores < score + 1e-8)
        assert found.mid == (found.best + found.worst) / 2


def test_scores_of_all_dags_on_four_nodes() -> None:
    data = sample(np.random.default_rng(4), 25, 4)
    scores = dag_scores(score_table(Families.of(data), RNML()))
    expected = [naive.network_score(data, adjacency_of(row).astype(float), RNML()) for row in all_dags(4)]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("m", [4, 5, 6])
def test_equivalent_dags_tie(m: int) -> None:
    """A complete DAG ties with its m! orders, and its class with no other: rounding must not tear them apart."""
    data = sample(np.random.default_rng(m), 1000, m) * 10.0 ** np.arange(m)
    complete = np.triu(np.ones((m, m)), k=1)
    dags, classes = rank(data, BIC(), complete), rank(data, BIC(), complete, among="classes")
    assert dags.worst - dags.best + 1 == np.prod(np.arange(1, m + 1))
    assert classes.best == classes.worst


def test_rank_among_classes_is_the_rank_of_class_scores() -> None:
    data = sample(np.random.default_rng(8), 30, 4)
    scores: dict[object, float] = {}
    for dag in (adjacency_of(row).astype(float) for row in all_dags(4)):
        scores.setdefault(naive.markov_class(dag), naive.network_score(data, dag, BIC()))
    truth = np.eye(4, k=1)
    own = scores[naive.markov_class(truth)]
    found = rank(data, BIC(), truth, among="classes")
    assert found.best == 1 + sum(score < own - 1e-8 for score in scores.values())
    assert found.total == len(scores) == 185


def test_the_tolerance_decides_what_ties() -> None:
    data = sample(np.random.default_rng(8), 30, 4)
    strict, loose = rank(data, RNML(), np.eye(4, k=1)), rank(data, RNML(), np.eye(4, k=1), tolerance=10.0)
    assert strict.best > 1
    assert (loose.best, loose.worst) == (1, 543)


def test_bad_input() -> None:
    data = sample(np.random.default_rng(8), 30, 4)
    with pytest.raises(ValueError, match=r"RNML\(\) is not score-equivalent: DAGs of one class differ by up to"):
        rank(data, RNML(), np.eye(4, k=1), among="classes")
    with pytest.raises(ValueError, match="Got m = 7, which has 1,138,779,265 DAGs"):
        rank(sample(np.random.default_rng(8), 30, 7), BIC(), np.eye(7, k=1))
    with pytest.raises(ValueError, match=r"among must be one of dags, classes. Got 'class'"):
        rank(data, BIC(), np.eye(4, k=1), among="class")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"tolerance must be 0 at least. Got nan"):
        rank(data, BIC(), np.eye(4, k=1), tolerance=float("nan"))
    with pytest.raises(ValueError, match="must be n × m"):
        rank(data[0], BIC(), np.eye(4, k=1))
    with pytest.raises(ValueError, match="m = 300, which has far too many DAGs"):
        rank(np.ones((9, 300)), BIC(), np.eye(300, k=1))
    with pytest.raises(ValueError, match="acyclic"):
        rank(data, BIC(), np.ones((4, 4)))
    with pytest.raises(ValueError, match=r"needs all families. Got families with max_parents = 2"):
        rank(Families.of(data, max_parents=2), BIC(), np.eye(4, k=1))
