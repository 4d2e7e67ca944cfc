"""Baselines against plain second implementations, and in the records beside the scores."""

from itertools import combinations

import numpy as np

from benchmark.baselines import Contestant, EmptyGraph, RandomGraph, SortRegress
from benchmark.design import Design, Search, Study
from benchmark.trial import run_trials
from scorers import BIC, Families
from scorers.moments import Moments
from tests import naive


def several(data: list[np.ndarray]) -> Families:
    return Families.of_moments(Moments.of_columns(np.array([each.T for each in data])))


def rngs(count: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, i]) for i in range(count)]


def test_sort_by_variance_then_regress() -> None:
    rng = np.random.default_rng(1)
    data = [rng.normal(1, 1, (60, 4)) @ rng.normal(size=(4, 4)) for _ in range(5)]
    found = SortRegress().graphs(several(data), np.zeros((5, 4, 4), dtype=np.int64), rngs(5))
    for each, adjacency in zip(data, found, strict=True):
        order = np.argsort(each.var(axis=0))
        for place, child in enumerate(order):
            before = [int(i) for i in order[:place]]
            sets = [parents for size in range(place + 1) for parents in combinations(before, size)]
            best = min(sets, key=lambda parents: naive.family_score(each, int(child), parents, BIC()))
            assert set(np.flatnonzero(adjacency[:, child])) == set(best)


def test_on_standardised_data_the_order_is_random() -> None:
    rng = np.random.default_rng(2)
    chain = np.cumsum(rng.normal(size=(2000, 3)), axis=1)
    standard = (chain - chain.mean(axis=0)) / chain.std(axis=0)
    truth = np.array([[[0, 1, 0], [0, 0, 1], [0, 0, 0]]])
    learned = [SortRegress().graphs(several([standard]), truth, rngs(1, seed))[0] for seed in range(40)]
    assert len({tuple(each.ravel()) for each in learned}) > 3
    assert (SortRegress().graphs(several([chain]), truth, rngs(1)) == truth).all()


def test_a_random_graph_has_the_edges_of_the_truth() -> None:
    truth = np.array([naive.random_dag(6, np.random.default_rng(i)) for i in range(300)], dtype=np.int64)
    families = several([np.random.default_rng(i).normal(size=(20, 6)) for i in range(300)])
    drawn = RandomGraph().graphs(families, truth, rngs(300))
    assert (drawn.sum(axis=(1, 2)) == truth.sum(axis=(1, 2))).all()
    assert all(naive.is_acyclic(each.astype(float)) for each in drawn)
    again = RandomGraph().graphs(families, truth, rngs(300))
    assert (drawn == again).all()
    # no pair of nodes is special: each of 30 directed pairs as often as the others
    counts = drawn.sum(axis=0)[~np.eye(6, dtype=bool)]
    assert abs(counts - counts.mean()).max() < 4.5 * np.sqrt(counts.mean())


def test_in_the_records() -> None:
    study = Study(3, Design(m=(6,), nn=(2,), n=(50,), replicates=8, labels="topological"), Search("dp"))
    (cell,) = study.design.cells()
    scores: dict[str, Contestant] = {
        "bic": BIC(),
        "empty": EmptyGraph(),
        "random": RandomGraph(),
        "sort": SortRegress(),
    }
    found = run_trials(study, cell, range(8), scores)
    for name, of_scorer in found.items():
        for columns in of_scorer:
            assert "error" not in columns
            for rule in ("_best", "_worst", "_forward", "_backward"):
                tied = columns[f"shd{rule}"] != columns["shd"]
                assert name == "bic" or not tied
            assert all(0 <= x <= 1 for x in columns["varsortability"] + columns["r2_sortability"] if x is not None)
    assert [c["shd"] for c in found["empty"]] == [c["edges_true"] for c in found["empty"]]
    for columns in found["bic"]:  # the band holds what the order of the labels decides
        for rule in ("shd_forward", "shd_backward"):
            assert all(
                a <= b <= c for a, b, c in zip(columns["shd_best"], columns[rule], columns["shd_worst"], strict=True)
            )
