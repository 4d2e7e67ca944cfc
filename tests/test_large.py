"""What serves above 22 nodes, on few of them: against the whole table, to the bit; its limits; and hill climbing."""

import logging
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import psutil
import pytest

from benchmark.climb import climb, random_start
from scorers import BIC, RNML, BGe, Block, Families, Scorer, network_score
from scorers.large import LargeFamilies
from scorers.masks import expand, masks_up_to
from scorers.moments import Moments
from search import chunk_kernels, dp, estimate, learn, limits, workspace
from search.chunked import ChunkedSearch
from search.ties import Ties
from tests.naive import is_acyclic
from tests.test_dp import sample

NO_LIMIT = 1 << 40


def chunks(patch: pytest.MonkeyPatch, low: int, room: int = NO_LIMIT) -> None:
    """Search by so many low nodes, in blocks so small that there are many, with so many bytes for lists."""
    for name, value in {
        "limits.WHOLE": 2,
        "limits.LOW": low,
        "limits.refuse_large": lambda m: room,
        "large.SINK_BITS": 5,
        "chunked.CHILD_BITS": 4,
        "chunked.PIECE_BITS": 6,
        "dp.SMALL": 0,
    }.items():
        patch.setattr(f"search.{name}", value)
    patch.setattr("scorers.families.BLOCK_BITS", 7)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("m", "low", "cap"), [(9, 5, None), (10, 6, 3), (10, 7, None), (8, 5, 0)])
@pytest.mark.parametrize("room", [NO_LIMIT, 20_000, 0], ids=["listed", "some listed", "none listed"])
def test_chunks_find_what_the_whole_table_finds(
    monkeypatch: pytest.MonkeyPatch, threads: int, m: int, low: int, cap: int | None, room: int
) -> None:
    """The same network to the last edge, under each tie rule: also "first", by which sums and scores do tie."""
    rng = np.random.default_rng(m)
    truth, data = sample(rng, 100, m)
    scorers: tuple[Scorer, ...] = (BIC(), RNML(), BGe(), lambda f: np.broadcast_to(-1.0 * f.k, f.shape))
    rules: tuple[Ties, ...] = ("random", "pessimistic", "first")
    for scorer, ties in product(scorers, rules):
        options = {"max_parents": cap, "ties": ties, "truth": truth, "threads": threads, "rng": 1}
        monkeypatch.setattr(dp, "SMALL", 0)
        whole = learn(data, scorer, **options)  # type: ignore[arg-type]
        with monkeypatch.context() as patch:
            chunks(patch, low, room)
            chunked = learn(data, scorer, **options)  # type: ignore[arg-type]
        assert chunked.score == whole.score
        np.testing.assert_array_equal(chunked.adjacency, whole.adjacency)


@pytest.mark.parametrize("room", [NO_LIMIT, 0], ids=["listed", "none listed"])
def test_chunks_of_several_tiles_find_what_the_whole_table_finds(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """In blocks and tiles of the usual size."""
    _, data = sample(np.random.default_rng(9), 300, 16)
    whole = learn(data, BIC(), rng=1)
    for name, value in {"limits.WHOLE": 2, "limits.LOW": 14, "limits.refuse_large": lambda m: room}.items():
        monkeypatch.setattr(f"search.{name}", value)
    np.testing.assert_array_equal(learn(data, BIC(), rng=1, threads=2).adjacency, whole.adjacency)


@pytest.mark.parametrize("bits", [3, 7, 12, 14])
def test_the_best_parents_of_a_row_and_its_list(bits: int) -> None:
    """Whole numbers, of which many tie; some sets have no score, and two lists join."""
    rng = np.random.default_rng(bits)
    size = 1 << bits
    scores = rng.integers(100, 200, size) - 5.0 * np.bitwise_count(np.arange(size))
    row = np.where(rng.random(size) < 0.1, np.inf, scores)
    lists = []
    for share in (0.02, 0.1):
        chosen = np.flatnonzero(rng.random(size) < share).astype(np.uint32)
        lists.append((chosen, rng.integers(80, 200, len(chosen)).astype(float)))
    expected = row.copy()
    for chosen, values in lists:
        expected[chosen] = np.minimum(expected[chosen], values)
    for i in range(bits):
        pairs = expected.reshape(-1, 2, 1 << i)
        pairs[:, 1] = pairs.min(axis=1)
    best, places, values = row.copy(), np.empty(size + 1, np.uint32), np.empty(size + 1)
    joined, its = (np.concatenate(each) for each in zip(*lists, strict=True))
    ends = np.cumsum([0, *(len(each) for each, _ in lists)])
    count = chunk_kernels.minimise_and_list(best, ends, joined, its, places, values)
    np.testing.assert_array_equal(best, expected)
    stay = np.flatnonzero((row == expected) & np.isfinite(row))
    np.testing.assert_array_equal(places[:count], stay)
    np.testing.assert_array_equal(values[:count], row[stay])
    unlisted = row.copy()
    assert chunk_kernels.minimise_and_list(unlisted, ends, joined, its, places[:0], values[:0]) == 0
    np.testing.assert_array_equal(unlisted, expected)
    for outside in (0, 5, size - 1):
        inside = values[:count][places[:count] & outside == 0]
        assert chunk_kernels.least_listed(places[:count], values[:count], outside) == inside.min(initial=np.inf)


def test_each_local_score_is_computed_once_if_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def counting(f: Block) -> np.ndarray:
        counted.append(f.ln_tau.size)
        return BIC()(f)

    m, low = 9, 5
    _, data = sample(np.random.default_rng(1), 100, m)
    for room, expected in ((NO_LIMIT, m << (m - 1)), (0, None)):
        counted.clear()
        with monkeypatch.context() as patch:
            chunks(patch, low, room)
            patch.setattr(ChunkedSearch, "backtrack", lambda self, sinks: np.zeros(m, dtype=np.int64))
            learn(data, counting, threads=1)
        networks = 3 * m  # the score's size takes two, and the result one
        if expected:
            assert sum(counted) == expected + networks
        else:  # 3^h chunks of the low children, and h·3^(h−1) of the high ones
            assert sum(counted) == 3**4 * low * 2 ** (low - 1) + 4 * 3**3 * 2**low + networks


def test_the_estimate_searches_a_few_nodes_as_all_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """With lists, by which each local score is computed once; twice in all, for the first time may have to compile."""
    counted = []

    def counting(f: Block) -> np.ndarray:
        counted.append(f.ln_tau.size)
        return BIC()(f)

    m, few = 17, 15  # of so many, lists are small beside the table
    _, data = sample(np.random.default_rng(2), 100, m)
    monkeypatch.setattr(limits, "WHOLE", 16)
    monkeypatch.setattr(dp, "SAMPLE", few)
    estimate(data, counting, threads=1)
    assert sum(counted) == 2 * ((few << (few - 1)) + 3 * few)


@pytest.mark.parametrize("cap", [None, 3])
def test_families_without_a_table_have_its_bits(cap: int | None) -> None:
    m, low, bits = 9, 6, 4
    data = sample(np.random.default_rng(3), 60, m)[1]
    table, large = Families.of(data, cap), LargeFamilies.of_moments(Moments.of(data), cap)
    for high in range(0, 1 << m, 1 << low):
        chunk = large.log_determinants(high, low)
        for first in range(0, 1 << (low - 1), 1 << bits):
            if not len(masks_up_to(table.max_parents, high // 2 + first, bits)):
                continue  # a search does not ask for it
            ours = large.block_of_low(range(low), high, chunk, first, bits)
            assert_same_blocks(ours, table.block(range(low), high // 2 + first, bits))
        for child in range(low, m):
            if not high >> child & 1 and high.bit_count() <= table.max_parents:
                with_child = large.log_determinants(high | 1 << child, bits)
                start = high & (1 << child) - 1 | high >> 1 & -1 << child
                ours = large.block_of_high(child, high, with_child, large.log_determinants(high, bits))
                assert_same_blocks(ours, table.block(range(child, child + 1), start, bits))
    parents = np.array([expand(int(c), j) for j, c in enumerate(masks_up_to(table.max_parents, 0, m - 1)[5 : 5 + m])])
    for attribute in ("ln_tau", "ln_det", "k"):
        theirs = getattr(table.network(parents), attribute)
        np.testing.assert_array_equal(getattr(large.network(parents), attribute), theirs)


def assert_same_blocks(ours: Block, theirs: Block) -> None:
    for attribute in ("k", "ln_tau", "ln_det", "ln_variance", "offset", "centred"):
        np.testing.assert_array_equal(getattr(ours, attribute), getattr(theirs, attribute))
    last = (ours.shape[0] - 1, ours.shape[1] - 1)
    assert ours.label(last) == theirs.label(last)


def test_dependent_columns_matter_only_where_they_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer samples than nodes; and a column that is the sum of two others, with and without room for the three."""
    chunks(monkeypatch, 5)
    rng = np.random.default_rng(4)
    few = sample(rng, 8, 9)[1]
    assert learn(few, BIC(), max_parents=2, rng=0).adjacency.sum(axis=0).max() <= 2
    _, data = sample(rng, 50, 9)
    data[:, 7] = data[:, 1] + data[:, 6]
    with pytest.raises(ValueError, match="columns x1, x6, x7 are linearly dependent"):
        learn(data, BIC())
    with pytest.raises(ValueError, match="columns x1, x6, x7 are linearly dependent"):
        learn(data, BIC(), max_parents=2)
    learn(data, BIC(), max_parents=1)


def test_the_estimate_is_told_before_the_search(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, data = sample(np.random.default_rng(5), 50, 12)
    assert 0 < estimate(data, BIC(), threads=1).seconds < 5
    chunks(monkeypatch, 8)
    seen: list[float] = []

    def progress(share: float) -> None:
        assert len(caplog.messages) == 1
        seen.append(share)

    with caplog.at_level(logging.INFO, "search"):
        learn(data, BIC(), rng=0, progress=progress)
    assert caplog.messages[0].startswith("The best of m = 12 nodes will take about 0.")
    assert seen == sorted(seen)
    assert len(seen) > 100
    assert seen[-1] == pytest.approx(1)


def test_the_estimate_grows_with_the_families() -> None:
    """From 20 nodes on by the number of families: 28 nodes have 358 times as many."""
    data = np.random.default_rng(6).normal(size=(100, 30))
    few, many = (estimate(data[:, :m], BIC(), threads=1) for m in (28, 30))
    assert 2 < many.seconds / few.seconds < 9
    # totals, tables of 24 low and of 6 high children, log-determinants of 5 chunks, and what does not grow
    assert many.memory == (8 << 30) + (8 * 24 << 23) + (8 * 6 << 24) + (8 * 5 << 24) + (1 << 28)
    assert str(many).endswith("11.9 to 20.5 GB.")


def test_memory_decides_what_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    need, lists = limits.memory(26)
    memory = psutil.virtual_memory()
    monkeypatch.setattr(workspace, "kept", lambda: 0)
    for free, expected in ((need + 8, 4), (need + 3 * lists, lists)):
        monkeypatch.setattr(psutil, "virtual_memory", lambda free=free: memory._replace(available=free))
        assert limits.refuse_large(26) == expected
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory._replace(available=need - 1))
    with pytest.raises(MemoryError, match="m = 26 nodes needs"):
        limits.refuse_large(26)
    monkeypatch.setattr(workspace, "kept", lambda: 2)  # is free for the search, too
    assert limits.refuse_large(26) == 0


def test_memory_is_left_to_the_next_search_unless_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MOST", 1 << 20)
    monkeypatch.setattr(workspace, "_kept", np.empty(0))
    with workspace.arrays((3, 1000), (5,)) as (a, b):
        a[:], b[:] = 1.0, 2.0
        assert (a == 1).all()
        assert not np.shares_memory(a, b)
        with workspace.arrays((3, 1000)) as (other,):  # at the same time: memory of its own
            assert not np.shares_memory(a, other)
    assert workspace.kept() == (3072 + 512) * 8
    with workspace.arrays((1000,)) as (again,):
        assert np.shares_memory(again, a)
        assert workspace.kept() == 0
    with pytest.raises(ZeroDivisionError), workspace.arrays((4000,)):
        _ = 1 / 0
    assert workspace.kept() == 4096 * 8  # what failed leaves its memory, too
    with workspace.arrays((1 << 18,)):
        pass
    assert workspace.kept() == 0


def test_searches_at_once_do_not_share_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks(monkeypatch, 6)
    rng = np.random.default_rng(8)
    many = [sample(rng, 60, 10)[1] for _ in range(12)]
    alone = [learn(data, BIC(), rng=0, threads=1).score for data in many]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda data: learn(data, BIC(), rng=0, threads=1).score, many))
    assert together == alone


@pytest.mark.parametrize("scorer", [BIC(), RNML(), BGe()], ids=repr)
def test_hill_climbing_ends_where_no_change_improves_and_never_beats_the_optimum(scorer: Scorer) -> None:
    rng = np.random.default_rng(7)
    m = 6
    _, data = sample(rng, 100, m)
    moments = Moments.of(data)
    seen = scorer.moments(moments) if hasattr(scorer, "moments") else moments
    best = learn(data, scorer, rng=0).score
    for _ in range(10):
        adjacency, score = climb(seen, scorer, random_start(m, rng))
        assert is_acyclic(adjacency.astype(float))
        assert score == pytest.approx(network_score(data, adjacency, scorer), abs=1e-9)
        assert score >= best - 1e-9
        for i, j in product(range(m), range(m)):
            for changed in changes(adjacency, i, j):
                if is_acyclic(changed.astype(float)):
                    assert network_score(data, changed, scorer) >= score - 1e-8


def changes(adjacency: np.ndarray, i: int, j: int) -> list[np.ndarray]:
    """The edge i → j put in or taken out, or reversed if it is there."""
    toggled = adjacency.copy()
    toggled[i, j] ^= i != j
    if not adjacency[i, j]:
        return [toggled]
    reversed_ = toggled.copy()
    reversed_[j, i] = 1
    return [toggled, reversed_]
