"""The list of all DAGs, its sampler and its equivalence classes."""

import numpy as np
import pytest
from scipy.stats import chisquare

from search import all_dags, count_dags, random_dag
from search.dags import adjacency_of, class_representatives, masks_of
from tests import naive


@pytest.mark.parametrize(("m", "number"), [(2, 3), (3, 25), (4, 543), (5, 29_281), (6, 3_781_503)])
def test_number_of_dags(m: int, number: int) -> None:
    """OEIS A003024."""
    dags = all_dags(m)
    assert dags.shape == (number, m)
    assert count_dags(m) == number
    rows = dags.astype(np.int64) @ (1 << (m - 1) * np.arange(m)[::-1])
    assert (np.diff(rows) > 0).all()  # all different, in lexicographic order


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_dags_are_those_that_are_acyclic(m: int) -> None:
    listed = {adjacency_of(row).astype(float).tobytes() for row in all_dags(m)}
    assert listed == {adjacency.tobytes() for adjacency in naive.all_dags(m)}


def test_masks_are_those_of_the_adjacency() -> None:
    for row in all_dags(4):
        np.testing.assert_array_equal(masks_of(adjacency_of(row)), row)
    # child 2 with the parents 0 and 3: node 3 is bit 2 of its compressed mask
    assert adjacency_of(np.array([0, 0, 0b101, 0], dtype=np.uint8))[:, 2].tolist() == [1, 0, 0, 1]


def test_the_sampler_is_uniform() -> None:
    rng = np.random.default_rng(0)
    drawn = [random_dag(4, rng).tobytes() for _ in range(40 * 543)]
    _, counts = np.unique(drawn, return_counts=True)
    assert len(counts) == 543
    assert 0.001 < chisquare(counts).pvalue < 0.999


@pytest.mark.parametrize(("m", "number"), [(3, 11), (4, 185), (5, 8_782), (6, 1_067_825)])
def test_number_of_classes(m: int, number: int) -> None:
    """OEIS A007984."""
    representatives = class_representatives(m)
    assert np.count_nonzero(representatives == np.arange(len(representatives))) == number
    assert len(np.unique(representatives)) == number


def test_classes_are_those_of_verma_and_pearl() -> None:
    classes = [naive.markov_class(adjacency_of(row).astype(float)) for row in all_dags(4)]
    first = [classes.index(each) for each in classes]
    np.testing.assert_array_equal(class_representatives(4), first)


@pytest.mark.parametrize("m", [1, 7, 9])
def test_too_many_or_too_few_nodes(m: int) -> None:
    number = {1: "1", 7: "1,138,779,265", 9: "1,213,442,454,842,881"}[m]
    with pytest.raises(ValueError, match=f"from 2 to 6 nodes. Got m = {m}, which has {number} DAGs"):
        all_dags(m)
