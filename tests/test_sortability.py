"""Sortability against plain enumeration of paths, by hand, and under what must not change it."""

from collections.abc import Iterator

import numpy as np
import pytest

from benchmark.sortability import r2_sortability, varsortability
from tests import naive


def paths_from(start: int, adjacency: np.ndarray) -> Iterator[list[int]]:
    """All directed paths with at least one edge that begin at a node."""
    for child in np.flatnonzero(adjacency[start]):
        yield [start, int(child)]
        for rest in paths_from(int(child), adjacency):
            yield [start, *rest]


def plain(values: np.ndarray, adjacency: np.ndarray) -> float | None:
    ends = {(p[0], p[-1], len(p)) for start in range(len(adjacency)) for p in paths_from(start, adjacency)}
    if not ends:
        return None
    return sum(float(values[a] < values[b]) + float(values[a] == values[b]) / 2 for a, b, _ in ends) / len(ends)


def r2_by_regression(data: np.ndarray) -> np.ndarray:
    m = data.shape[1]
    return np.array([1 - naive.fit(data, j, [i for i in range(m) if i != j])[0] / data[:, j].var() for j in range(m)])


def network(m: int, rng: np.random.Generator, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    adjacency = naive.random_dag(m, rng)
    effects = np.linalg.inv(np.eye(m) - adjacency * rng.uniform(0.3, 1.5, (m, m)))
    return adjacency, rng.normal(size=(n, m)) @ effects + 1


@pytest.mark.parametrize("m", [2, 3, 5, 7])
def test_plain_enumeration(m: int) -> None:
    rng = np.random.default_rng(m)
    seen = set()
    for _ in range(30):
        adjacency, data = network(m, rng)
        data *= rng.uniform(0.2, 2, m)
        covariance = np.cov(data.T)
        assert varsortability(covariance, adjacency) == plain(data.var(axis=0), adjacency)
        if m > 2:  # two nodes have the same R²
            assert r2_sortability(covariance, adjacency) == plain(r2_by_regression(data), adjacency)
        seen.add(varsortability(covariance, adjacency))
    assert len(seen) > 2


def test_by_hand() -> None:
    """0 → 1 → 2 with 0 → 2: the pair (0, 2) counts twice, by length 1 and by length 2."""
    triangle = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert varsortability(np.diag([1, 2, 3]), triangle) == 1
    assert varsortability(np.diag([3, 2, 1]), triangle) == 0
    assert varsortability(np.diag([1, 3, 2]), triangle) == 3 / 4
    assert varsortability(np.diag([2, 1, 3]), triangle) == 3 / 4
    assert varsortability(np.diag([2, 2, 3]), triangle) == 3.5 / 4
    # two ways from 0 to 3 of length 2 count once: pairs 01, 02, 13, 23, and 03
    diamond = [[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert varsortability(np.diag([2, 3, 3, 1]), diamond) == 2 / 5
    # a chain with unit noise and effects has the covariance min(i, j)
    chain = np.eye(3, k=1)
    covariance = np.minimum.outer([1, 2, 3], [1, 2, 3])
    np.testing.assert_allclose(np.linalg.inv(covariance), [[2, -1, 0], [-1, 2, -1], [0, -1, 1]], atol=1e-12)
    assert varsortability(covariance, chain) == 1
    # R² = 1 − 1/(2·1), 1 − 1/(2·2), 1 − 1/(1·3) = 1/2, 3/4, 2/3: 0 → 1 and 0 → 2 grow, 1 → 2 does not
    assert r2_sortability(covariance, chain) == 2 / 3


def test_standardised_data_are_not_varsortable() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        adjacency, data = network(6, rng)
        if adjacency.any():
            standardised = (data - data.mean(axis=0)) / data.std(axis=0)
            assert varsortability(np.cov(standardised.T), adjacency) == 0.5


def test_units_labels_and_direction() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        adjacency, data = network(6, rng)
        if not adjacency.any():
            continue
        covariance, scaled = np.cov(data.T), np.cov((data * 10 ** rng.uniform(-3, 3, 6)).T)
        assert r2_sortability(scaled, adjacency) == r2_sortability(covariance, adjacency)
        p = rng.permutation(6)
        for sortability in (varsortability, r2_sortability):
            found = sortability(covariance, adjacency)
            assert found is not None
            assert sortability(covariance[np.ix_(p, p)], adjacency[np.ix_(p, p)]) == found
            assert sortability(covariance, adjacency.T) == pytest.approx(1 - found, abs=1e-12)


def test_two_nodes_explain_each_other_alike() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        data = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 2))
        assert r2_sortability(np.cov(data.T), [[0, 1], [0, 0]]) == 0.5


def test_no_edge_has_no_sortability() -> None:
    assert varsortability(np.eye(3), np.zeros((3, 3))) is None
    assert r2_sortability(np.eye(3), np.zeros((3, 3))) is None


def test_bad_input() -> None:
    edge = [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match=r"covariance must be m × m. Got shape \(5, 2\)"):
        varsortability(np.ones((5, 2)), edge)
    for wrong in ([[1, np.nan], [np.nan, 1]], [[1, 0.5], [0.2, 1]], [[1, 0], [0, 0]]):
        with pytest.raises(ValueError, match="finite and symmetric, with positive variances"):
            r2_sortability(wrong, edge)
    with pytest.raises(ValueError, match=r"needs independent columns. Got .* the eigenvalue"):
        r2_sortability([[1, 1], [1, 1]], edge)
    with pytest.raises(ValueError, match="acyclic"):
        varsortability(np.eye(2), [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="adjacency must be 2 × 2"):
        varsortability(np.eye(2), np.zeros((3, 3)))
