"""The dynamic programme against enumeration, other packages, and itself in other arrangements."""

import time
from math import log
from pathlib import Path
from threading import Barrier, get_ident

import numpy as np
import pandas as pd
import psutil
import pytest

from scorers import (
    BIC,
    GMDL,
    RNML,
    Block,
    Families,
    RNMLCentred,
    Scorer,
    ZellnerG,
    network_score,
    score_table,
)
from search import dp, learn, rank, tie_band
from search.dags import adjacency_of, all_dags
from search.exhaustive import dag_scores
from search.large import workers
from search.ties import TOLERANCE, Ties, shd_of_weights
from tests import naive
from tests.naive import SCORERS

GOLDEN = Path(__file__).parent / "golden"
RULES: tuple[Ties, ...] = ("random", "optimistic", "pessimistic", "first")


def sample(rng: np.random.Generator, n: int, m: int, edges: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """A random DAG and data from it."""
    truth = np.triu(rng.random((m, m)) < edges, k=1) * 1.0
    data = np.zeros((n, m))
    for j in range(m):
        data[:, j] = data @ (truth[:, j] * rng.uniform(0.2, 1, m)) + rng.normal(0, rng.uniform(0.4, 1), n)
    p = rng.permutation(m)
    return truth[np.ix_(p, p)], data[:, p] + rng.uniform(0.3, 1.5, m)


def test_the_optimum_is_that_of_enumeration() -> None:
    """Every score, 200 data sets with m = 3, 4, 5, without and with a parent cap."""
    rng = np.random.default_rng(0)
    for trial in range(200):
        m = 3 + trial % 3
        truth, data = sample(rng, int(rng.integers(12, 200)), m)
        for cap in (None, int(rng.integers(0, m))):
            families = Families.of(data, max_parents=cap)
            for scorer in SCORERS:
                scores = dag_scores(score_table(families, scorer))
                ties = RULES[int(rng.integers(len(RULES)))]
                network = learn(families, scorer, ties=ties, truth=truth, rng=rng)
                assert network.score == pytest.approx(scores.min(), abs=1e-9)
                assert network.score == pytest.approx(network_score(data, network.adjacency, scorer), abs=1e-9)
                assert network.adjacency.sum(axis=0).max() <= families.max_parents


@pytest.mark.parametrize("scorer", [BIC(), RNML()], ids=repr)
@pytest.mark.parametrize("m", [3, 4, 5])
def test_the_tie_band_is_that_of_all_optimal_dags(scorer: Scorer, m: int) -> None:
    rng = np.random.default_rng(m)
    widths = []
    for _ in range(30):
        truth, data = sample(rng, 100, m)
        scores = dag_scores(score_table(Families.of(data), scorer))
        optimal = all_dags(m)[scores < scores.min() + 1e-9]
        distances = [naive.shd(truth, adjacency_of(row).astype(float)) for row in optimal]
        best, random, worst = tie_band(data, scorer, truth, rng=rng)
        assert (best, worst) == (min(distances), max(distances))
        assert random in distances
        widths.append(worst - best)
    assert (max(widths) > 0) == (scorer == BIC())


@pytest.mark.parametrize("m", [2, 5, 9, 13, 16])
def test_the_optimum_is_that_of_numpy(m: int) -> None:
    """A second implementation of the programme, for more nodes than can be enumerated; also by threads and blocks."""
    rng = np.random.default_rng(m)
    data = rng.normal(1, 1, (60, m)) @ (np.eye(m) + 0.5 * np.triu(rng.normal(size=(m, m)), k=1))
    table = naive.bic_table(data)
    adjacency, score = naive.best_network(table)
    assert naive.network_score(data, adjacency, BIC()) == pytest.approx(score, rel=1e-9)
    for threads in (1, 2):
        found = learn(data, BIC(), rng=0, threads=threads)
        assert found.score == pytest.approx(score, rel=1e-9)
        assert naive.markov_class(found.adjacency.astype(float)) == naive.markov_class(adjacency)


def test_tie_rules_change_no_optimum_that_is_not_tied() -> None:
    """Scores that differ by a hundred times what all tie weights together can add: the rule has no say."""

    def nearly_equivalent(f: Block) -> np.ndarray:
        gap = 100 * f.m**2 * TOLERANCE * f.n
        return BIC()(f) + gap * f.tau

    rng = np.random.default_rng(1)
    torn = 0
    for _ in range(200):
        truth, data = sample(rng, 200, 5)
        scores = dag_scores(score_table(Families.of(data), nearly_equivalent))
        best, second = np.sort(scores)[:2]
        size = np.abs(score_table(Families.of(data), nearly_equivalent)[:, 0]).sum()
        if second - best < 10 * 25 * TOLERANCE * size:
            continue
        torn += second - best < 1e-6
        for ties in RULES:
            network = learn(data, nearly_equivalent, ties=ties, truth=truth, rng=rng)
            np.testing.assert_array_equal(network.adjacency, adjacency_of(all_dags(5)[scores.argmin()]))
    assert torn > 20  # the gaps were small


def test_random_ties_prefer_no_label() -> None:
    """Two dependent nodes: each direction half of the time; a fixed seed gives one of them for ever."""
    _, data = sample(np.random.default_rng(2), 100, 2, edges=1)
    forward = sum(learn(data, BIC(), rng=seed).adjacency[0, 1] for seed in range(400))
    assert abs(forward - 200) < 4 * 10
    assert len({learn(data, BIC(), rng=5).adjacency.tobytes() for _ in range(5)}) == 1


@pytest.mark.parametrize("scorer", naive.EQUIVALENT, ids=repr)
def test_equivalent_scores_give_one_class_whatever_the_ties(scorer: Scorer) -> None:
    rng = np.random.default_rng(4)
    for m in (6, 9):
        truth, data = sample(rng, 150, m)
        found = [learn(data, scorer, ties=ties, truth=truth, rng=rng).adjacency for ties in RULES * 2]
        assert len({naive.markov_class(each.astype(float)) for each in found}) == 1


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_permuted_labels_permute_the_result(scorer: Scorer) -> None:
    rng = np.random.default_rng(6)
    for m in (4, 7, 10):
        _, data = sample(rng, 120, m)
        p = rng.permutation(m)
        one, two = learn(data, scorer, rng=rng), learn(data[:, p], scorer, rng=rng)
        assert two.score == pytest.approx(one.score, abs=1e-9)
        back = np.empty_like(two.adjacency)
        back[np.ix_(p, p)] = two.adjacency
        if scorer in naive.EQUIVALENT:
            assert naive.markov_class(back.astype(float)) == naive.markov_class(one.adjacency.astype(float))
        elif scorer not in (RNMLCentred(), GMDL(), ZellnerG()):  # they tie on an edge between two roots
            np.testing.assert_array_equal(back, one.adjacency)


@pytest.mark.parametrize("name", ["a", "c", "e", "g"])
def test_pcalg_finds_the_same_class(name: str) -> None:
    """`pcalg::simy` under the Gaussian BIC, m = 4, 8, 12, 15."""
    data = pd.read_csv(GOLDEN / f"{name}.csv")
    theirs = np.loadtxt(GOLDEN / f"{name}.simy.csv", delimiter=",")
    ours = learn(data, BIC(), rng=0)
    assert ours.score == pytest.approx(network_score(data, theirs, BIC()), abs=1e-8)
    assert naive.markov_class(ours.adjacency.astype(float)) == naive.markov_class(theirs)


@pytest.mark.parametrize("m", [3, 5, 8])
@pytest.mark.filterwarnings("default")  # the peer's own
def test_causal_learn_finds_the_same_class(m: int) -> None:
    """Its exact search fits without an intercept, so the data are centred."""
    exact = pytest.importorskip(
        "causallearn.search.ScoreBased.ExactSearch", reason="the extra `peers` is not installed"
    )
    _, data = sample(np.random.default_rng(m), 200, m)
    data -= data.mean(axis=0)
    theirs, _ = exact.bic_exact_search(data, search_method="dp")
    ours = learn(data, BIC(), rng=0)
    assert ours.score == pytest.approx(network_score(data, theirs, BIC()), abs=1e-8)
    assert naive.markov_class(ours.adjacency.astype(float)) == naive.markov_class(theirs)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_item_is_done_once_by_some_thread(threads: int) -> None:
    done: list[int] = []
    by: set[int] = set()

    def task(item: int) -> None:
        if item < threads:
            everybody.wait()  # until every thread has an item
        done.append(item)
        by.add(get_ident())

    with workers(threads) as each:
        for count in (0, 1, 1000):
            done.clear()
            everybody = Barrier(max(1, min(count, threads)), timeout=30)
            each(task, range(count))
            assert sorted(done) == list(range(count))
    assert len(by) == threads


@pytest.mark.parametrize("where", ["this thread", "another"])
def test_after_an_error_no_thread_goes_on(where: str) -> None:
    done: list[int] = []

    def task(item: int) -> None:
        if item < 2:
            both.wait()
        if (get_ident() == here) == (where == "this thread"):
            raise ArithmeticError(where)
        time.sleep(0.01)
        done.append(item)

    here, both = get_ident(), Barrier(2, timeout=30)
    with workers(2) as each:
        with pytest.raises(ArithmeticError, match=where):
            each(task, range(1000))
        assert len(done) < 5
        each(done.append, range(10))
        assert sorted(done[-10:]) == list(range(10))


@pytest.mark.parametrize("cap", [None, 3])
def test_threads_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, cap: int | None) -> None:
    """All in one go, or in blocks by one or two threads; 18 nodes have more sets than one pass of the cache."""
    truth, data = sample(np.random.default_rng(10), 100, 18, edges=0.2)
    options = {"max_parents": cap, "ties": "optimistic", "truth": truth}
    one, two = (learn(data, BIC(), threads=threads, **options) for threads in (1, 2))  # type: ignore[arg-type]
    monkeypatch.setattr(dp, "SMALL", 18)
    in_one_go = learn(data, BIC(), threads=1, **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(one.adjacency, two.adjacency)
    assert one.score == two.score == pytest.approx(in_one_go.score, abs=1e-9)
    assert shd_of_weights(truth, one.adjacency) == shd_of_weights(truth, in_one_go.adjacency)


def test_ties_by_the_order_of_the_labels() -> None:
    """Of all optimal DAGs, one with the most, or the fewest, edges from a lower to a higher label."""
    rng = np.random.default_rng(4)
    different = 0
    for _ in range(20):
        _, data = sample(rng, 100, 4)
        scores = dag_scores(score_table(Families.of(data), BIC()))
        along = [np.triu(adjacency_of(row)).sum() for row in all_dags(4)[scores < scores.min() + 1e-9]]
        forward, backward = (np.triu(learn(data, BIC(), ties=rule).adjacency).sum() for rule in ("forward", "backward"))
        assert (forward, backward) == (max(along), min(along))
        different += forward != backward
    assert different > 10


@pytest.mark.parametrize("drop", [False, True], ids=["standardised", "gain"])
def test_ties_of_scores_near_zero(drop: bool) -> None:
    """Standardised data, or a score that leaves out what all structures share: the empty network has no size."""

    def gain(f: Block) -> np.ndarray:
        return f.n / 2 * (f.ln_tau - f.ln_variance) + (f.k - 1) / 2 * log(f.n)

    scorer: Scorer = gain if drop else BIC()
    rng = np.random.default_rng(3)
    for _ in range(5):
        truth, data = sample(rng, 100_000, 4)
        data = (data - data.mean(axis=0)) / data.std(axis=0)
        families = Families.of(data)
        scores = dag_scores(score_table(families, scorer))
        optimal = all_dags(4)[scores < scores.min() + 1e-7]
        distances = [naive.shd(truth, adjacency_of(row).astype(float)) for row in optimal]
        best, _, worst = tie_band(families, scorer, truth, rng=rng)
        assert (best, worst) == (min(distances), max(distances))
        assert rank(families, scorer, np.zeros((4, 4)), among="classes").total == 185


def test_the_random_optimum_is_random() -> None:
    _, data = sample(np.random.default_rng(2), 100, 2, edges=1)
    forward = np.array([[0, 1], [0, 0]])
    assert {tie_band(data, BIC(), forward, rng=seed)[1] for seed in range(20)} == {0, 1}


def test_any_scorer_that_follows_the_protocol() -> None:
    class SlowFloat32:
        def __call__(self, f: Block) -> np.ndarray:
            time.sleep(0.01)
            return BIC()(f).astype(np.float32)

    _, data = sample(np.random.default_rng(11), 100, 6)
    assert learn(data, SlowFloat32(), rng=0).score == pytest.approx(learn(data, BIC(), rng=0).score, rel=1e-6)
    edges = learn(data, lambda f: np.broadcast_to(-1.0 * f.k, f.shape), ties="first").adjacency.sum()
    assert edges == 15  # the more parents the better: a complete DAG
    capped = learn(data, lambda f: np.broadcast_to(-1.0 * f.k, f.shape), ties="first", max_parents=1).adjacency
    assert capped.sum(axis=0).max() == 1


@pytest.mark.parametrize("m", [16, 17])
def test_progress_goes_from_zero_to_one(m: int) -> None:
    seen: list[float] = []
    learn(sample(np.random.default_rng(12), 50, m)[1], BIC(), rng=0, progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) > 2**m / 2**15
    assert seen[0] < 0.6
    assert seen[-1] == pytest.approx(1)


def test_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = sample(np.random.default_rng(13), 50, 4)
    with pytest.raises(
        ValueError, match=r"ties must be one of random, optimistic, pessimistic, forward, backward, first. Got 'none'"
    ):
        learn(data, BIC(), ties="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs the truth"):
        learn(data, BIC(), ties="optimistic")
    with pytest.raises(ValueError, match="truth must be 4 × 4"):
        learn(data, BIC(), ties="optimistic", truth=np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"made for max_parents = 3. Got max_parents = 1"):
        learn(Families.of(data), BIC(), max_parents=1)
    with pytest.raises(ValueError, match="threads must be 1 at least"):
        learn(data, BIC(), threads=0)
    with pytest.raises(ValueError, match="so large that their sum is not finite"):
        learn(data, lambda f: np.full(f.shape, 1e308))
    with pytest.raises(ValueError, match="must be n × m"):
        learn(data[:, 0], BIC())
    with pytest.raises(MemoryError, match="sets of 2\\^1500"):
        learn(np.ones((5, 1500)), BIC())
    with pytest.raises(MemoryError, match=r"m = 40 nodes needs 8,196.4 GiB, and .* GiB are free"):
        learn(np.ones((50, 40)), BIC())
    free = psutil.virtual_memory()._replace(available=2**28)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    with pytest.raises(MemoryError, match="m = 20"):
        learn(np.ones((50, 20)), BIC())
