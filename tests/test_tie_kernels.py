"""Several tie rules at once give what each gives by itself, to the bit: also where very much is tied, or nearly so."""

import numpy as np
import pytest

from scorers import GMDL, Families
from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.masks import masks_up_to
from search import kernels, tie_kernels
from search.ties import TOLERANCE, band_weights, score_size
from tests.naive import SCORERS
from tests.test_dp import sample


def solve(scores: Array, masks: IntArray, weights: Array, epsilon: float) -> tuple[IntArray, Array]:
    """Parent masks and local scores of one data set, rules × m."""
    parents = np.empty((1, *weights.shape[:2]), dtype=np.int64)
    local = np.empty(parents.shape)
    tie_kernels.solve(scores[None], masks, weights[None], np.array([epsilon]), parents, local)
    return parents[0], local[0]


def decided(scores: Array, masks: IntArray, weights: Array, epsilon: float) -> bool:
    """Whether the near-best networks were enough."""
    m = len(scores)
    best, total = np.full((m, 1 << (m - 1)), np.inf), np.empty(1 << m)
    best[:, masks] = scores
    tie_kernels._programme(best, total)
    of_child = np.swapaxes(epsilon * weights, -1, -2)[:, ~np.eye(m, dtype=bool)].reshape(-1, m, m - 1)
    parents = np.empty(weights.shape[:2], dtype=np.int64)
    return bool(tie_kernels._decide(scores, masks, np.ascontiguousarray(of_child), best, total, parents))


def check(scores: Array, masks: IntArray, weights: Array, epsilon: float) -> bool:
    """Whether the near-best networks were enough, if all is as it should be."""
    together = solve(scores, masks, weights, epsilon)
    for r in range(len(weights)):
        for one, all_of_them in zip(solve(scores, masks, weights[r : r + 1], epsilon), together, strict=True):
            assert one[0].tobytes() == all_of_them[r].tobytes()
    return decided(scores, masks, weights, epsilon)


def rules(m: int, rng: np.random.Generator) -> Array:
    """The weights of a tie band, of random labels, and of none."""
    truth = np.triu(rng.random((m, m)) < 0.4, k=1)
    p = rng.permutation(m)
    return np.concatenate([band_weights(truth[np.ix_(p, p)], rng.random((m, m))), rng.integers(-1, 2, (2, m, m))])


@pytest.mark.parametrize("grain", [0.0, 1e-9, 0.25, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-9, 1e-3])
def test_random_tables(grain: float, epsilon: float) -> None:
    """Scores that are multiples of some grain tie in all ways there are, not only within equivalence classes."""
    rng = np.random.default_rng(0)
    enough = []
    for _ in range(150):
        m = int(rng.integers(2, 9))
        masks = masks_up_to(int(rng.integers(1, m)), 0, m - 1)
        scores = rng.normal(0, 1, (m, len(masks))) + rng.uniform(0, 2) * np.bitwise_count(masks)
        scores = np.round(scores / grain) * grain if grain else scores
        enough.append(check(scores, masks, rules(m, rng), epsilon))
    assert any(enough)


def test_scores_near_each_other_and_the_tolerance() -> None:
    """Differences of the size of weights, so that a rule takes a network that is not the best."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        m = int(rng.integers(3, 8))
        masks = masks_up_to(m - 1, 0, m - 1)
        scores = rng.integers(0, 3, (m, len(masks))) + 1e-9 * rng.integers(0, 5, (m, len(masks)))
        check(scores, masks, rules(m, rng), 1e-9 * 10 ** rng.uniform(-2, 1))


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_scores_of_data(scorer: Scorer) -> None:
    """The near-best networks are enough; but GMDL gives all families with F < 1 one score, whatever their parents."""
    rng = np.random.default_rng(2)
    for m, cap in ((5, 4), (8, 3), (11, 10), (13, 4)):
        truth, data = sample(rng, 200, m, edges=2 / m)
        families = Families.of(data, cap).seen_by(scorer)
        scores = code_lengths(scorer, families.block(range(m), 0, m - 1))
        weights = band_weights(truth, rng.random((m, m)))
        epsilon = TOLERANCE * float(score_size(scores[:, 0], scores[:, -1]))
        assert check(scores, families.masks, weights, epsilon) or isinstance(scorer, GMDL)


def test_a_score_that_cannot_tell_anything() -> None:
    """All networks tie: more parent sets than are kept, so that each rule gets a programme of its own."""
    rng = np.random.default_rng(3)
    masks = masks_up_to(7, 0, 7)
    assert len(masks) > tie_kernels.MOST
    assert not check(np.ones((8, len(masks))), masks, rules(8, rng), 1e-9)
    few = masks_up_to(1, 0, 7)
    assert check(np.ones((8, len(few))), few, rules(8, rng), 1e-9)


def test_more_values_than_are_kept() -> None:
    """A child whose best score differs in each step."""
    m = 8
    masks = masks_up_to(m - 1, 0, m - 1)
    scores = np.zeros((m, len(masks)))
    scores[0] = -1e-10 * masks
    assert not check(scores, masks, rules(m, np.random.default_rng(4)), 1e-9)


def test_weights_are_added_as_in_a_table() -> None:
    """To the bit: with weights of all sizes the order of the sums shows."""
    rng = np.random.default_rng(5)
    weights, scores = rng.normal(size=14) * 10.0 ** rng.integers(-8, 1, 14), rng.normal(size=1 << 14)
    masks, placed = np.arange(1 << 14), np.empty(1 << 14)
    kernels.place(scores[None], masks, weights[None], 0, False, placed[None], 0, 1 << 14)
    assert np.array_equal(placed, [scores[c] + tie_kernels._weight(int(c), weights) for c in masks])
