"""Distances between graphs against plain definitions."""

import numpy as np
import pytest

from benchmark.metrics import EdgeErrors, cpdag, cpdag_shd, shd
from search.dags import adjacency_of, all_dags, class_representatives
from search.ties import shd_of_weights
from tests import naive


@pytest.mark.parametrize("m", [3, 4, 5])
def test_a_cpdag_has_the_edges_of_all_members_of_the_class(m: int) -> None:
    """By definition: an edge is undirected if some members have it one way and some the other."""
    representatives = class_representatives(m)
    adjacencies = np.array([adjacency_of(row) for row in all_dags(m)])
    union = np.zeros_like(adjacencies)
    np.maximum.at(union, representatives, adjacencies)
    step = 1 if m < 5 else 23
    for d in range(0, len(adjacencies), step):
        np.testing.assert_array_equal(cpdag(adjacencies[d]), union[representatives[d]])


def test_distances_of_random_pairs() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        m = int(rng.integers(2, 9))
        truth, learned = naive.random_dag(m, rng), naive.random_dag(m, rng)
        errors = EdgeErrors.of(truth, learned)
        assert shd(truth, learned) == naive.shd(truth, learned) == shd_of_weights(truth, learned)
        assert shd(truth, learned) == errors.missing + errors.extra + errors.reversed
        assert shd(truth, learned, reversal=2) == shd(truth, learned) + errors.reversed
        skeletons = (np.maximum(each, each.T) for each in (truth, learned))
        assert errors.missing + errors.extra == np.abs(np.subtract(*skeletons)).sum() / 2
        assert errors.missing - errors.extra == truth.sum() - learned.sum()
        assert cpdag_shd(truth, learned) == naive.shd(cpdag(truth).astype(float), cpdag(learned).astype(float))
        same = naive.markov_class(truth) == naive.markov_class(learned)
        assert (cpdag_shd(truth, learned) == 0) == same


def test_several_at_once_are_what_they_are_one_by_one() -> None:
    rng = np.random.default_rng(1)
    truths = np.array([naive.random_dag(6, rng) for _ in range(4)])
    learned = np.array([[naive.random_dag(6, rng) for _ in range(3)] for _ in truths])  # three to each truth
    together = EdgeErrors.of(truths, learned)
    for d, r in np.ndindex(4, 3):
        alone = EdgeErrors.of(truths[d], learned[d, r])
        assert (together.missing[d, r], together.extra[d, r], together.reversed[d, r], together.shd[d, r]) == (
            *(alone.missing, alone.extra, alone.reversed, alone.shd),
        )
    np.testing.assert_array_equal(
        cpdag_shd(truths, learned[:, 0]), [cpdag_shd(*pair) for pair in zip(truths, learned[:, 0], strict=True)]
    )


def test_by_hand() -> None:
    truth = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])  # 0 → 1 → 2 → 3
    learned = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]])  # 1 → 0, 2 → 3, 3 → 0
    assert EdgeErrors.of(truth, learned) == EdgeErrors(missing=1, extra=1, reversed=1)
    assert (shd(truth, learned), shd(truth, learned, reversal=2)) == (3, 4)
