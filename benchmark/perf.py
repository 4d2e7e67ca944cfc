"""Speed: `python -m benchmark.perf [families] [search] [large m …] [cluster] [sizing]`.

Machines differ and are shared, so what counts are ratios, each taken within one run: to `np.log` over an array of a
score table's size, to a pass over the memory that must be touched, to another package, and of each m to the one
before. `families` and `search` take a minute or two each; `large 28 30` finds the best of so many nodes, 28
when left out, and compares it with hill climbing. `cluster` and `sizing` are in `benchmark.perf_cluster`.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmark.climb import climb, random_start
from benchmark.perf_cluster import cluster, sizing
from scorers import BIC, RNML, Families, Scorer, score_table
from scorers.base import Array
from scorers.families import block_bits
from scorers.moments import Moments
from search import all_dags, estimate, kernels, learn, rank


def seconds(
    task: Callable[[], object], least: float = 0.3, times: int = 5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Median time of a task, warm: repeated for `least` seconds and `times` times at least.

    On a shared machine the clock of one thread, `time.process_time`, tells more.
    """
    task()
    took: list[float] = []
    while sum(took) < least or len(took) < times:
        start = clock()
        task()
        took.append(clock() - start)
    return float(np.median(took))


def sample(m: int, n: int = 500) -> Array:
    """Data from a dense random network."""
    rng = np.random.default_rng(m)
    return rng.normal(1, 1, (n, m)) @ (np.eye(m) + 0.3 * np.triu(rng.normal(size=(m, m)), k=1))


def log_of_table(m: int) -> float:
    """Seconds for `np.log` over an array of the size of a score table."""
    positive = np.random.default_rng(m).uniform(0.1, 1, (m, 1 << (m - 1)))
    out = np.empty_like(positive)
    return seconds(lambda: np.log(positive, out=out))


def families() -> None:
    """Families and one table against `np.log`, and how they grow with m."""
    print("Families and the table of one score, n = 500, one thread; growth is the ratio to m − 1.")

    def table(m: int, scorer: Scorer) -> float:
        data, out = sample(m), np.empty((m, 1 << (m - 1)))
        return seconds(lambda: score_table(Families.of(data), scorer, out=out))

    for scorer in (BIC(), RNML()):
        before = float("nan")
        for m in range(15, 21):
            took = table(m, scorer)
            ratio = took / log_of_table(m)
            print(f"  m = {m}  {scorer!r:7} {took * 1e3:7.2f} ms  {ratio:5.2f} × np.log  growth {took / before:.2f}")
            before = took


def search() -> None:
    """The best network: time by m and threads, against np.log and memory traffic."""
    data = sample(5)
    ranked = Families.of(data)
    truth = np.triu(np.ones((5, 5)), k=1)
    took = seconds(lambda: rank(ranked, BIC(), truth))
    print(f"All {len(all_dags(5)):,} DAGs on 5 nodes ranked, after the families: {took * 1e3:.2f} ms")

    print("The best network under BIC, n = 500, families included; growth is that of one thread for one node more.")
    took_by: dict[int, tuple[float, float]] = {}
    for m in (10, 12, 15, 18, 20, 22, 25):
        one, two = took_by[m] = (_learn_seconds(m, 1), _learn_seconds(m, 2))
        less = max((fewer for fewer in took_by if fewer < m), default=None)
        growth = (one / took_by[less][0]) ** (1 / (m - less)) if less else float("nan")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            peak = pool.submit(_learn_once, m).result()[0]
        print(
            f"  m = {m}  1 thread {one * 1e3:8.2f} ms  2 threads {two * 1e3:8.2f} ms  growth {growth:4.2f}  "
            f"peak {peak:5.2f} GB"
        )
    one, two = ((large / small) ** (1 / 7) for small, large in zip(took_by[18], took_by[25], strict=True))
    print(f"From m = 18 to 25 the growth is {one:.2f} by one thread and {two:.2f} by two.")

    m = 15
    log, whole, part = log_of_table(m), _learn_seconds(m, 1), _programme_seconds(m)
    print(f"m = {m}, one thread: {whole / log:.1f} × np.log over its table, the programme alone {part / log:.1f} ×")
    m = 22
    parents, stream = _best_parents_seconds(m), _stream_seconds(m)
    # in the blocks of the scores, in blocks of 2^16 sets, and three of the other bits of m − 1 at a time
    floor = stream * (2 + -(-(m - 1 - 16) // 3))
    print(
        f"m = {m}, best parents: {parents * 1e3:.0f} ms; their bytes streamed once for each of {floor / stream:.0f} "
        f"passes: {floor * 1e3:.0f} ms; ratio {parents / floor:.2f}"
    )


def large(m: int) -> None:
    """The best of m nodes, with an estimate and progress, in a process of its own; and what hill climbing finds."""
    data = sample(m)
    print(estimate(data, BIC()))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        peak, took, cpu, score = pool.submit(_learn_once, m, True).result()
    print(f"m = {m}: score {score:.6f} in {took:.1f} s, {cpu:.1f} s of processors; peak {peak:.2f} GB")
    moments = Moments.of(data)
    climbed = [climb(moments, BIC(), random_start(m, np.random.default_rng(seed)))[1] for seed in range(20)]
    print(
        f"m = {m}: hill climbing from 20 random starts reaches {min(climbed):.6f} to {max(climbed):.6f}, "
        f"{'none better' if score <= min(climbed) + 1e-9 else 'WHICH IS BETTER'}"
    )


def _learn_seconds(m: int, threads: int) -> float:
    data = sample(m)
    clock = time.process_time if threads == 1 else time.perf_counter
    return seconds(lambda: learn(data, BIC(), rng=0, threads=threads), times=3, clock=clock)


def _programme_seconds(m: int) -> float:
    """The dynamic programme alone: best parents, sinks, backtracking."""
    table = score_table(Families.of(sample(m)), BIC())
    best, total, parents = np.empty_like(table), np.empty(1 << m), np.empty(m, dtype=np.int64)

    def programme() -> None:
        best[:] = table
        _best_parents(best)
        total.fill(np.inf)
        total[0] = 0.0
        kernels.sinks(best, total, 0, 1 << m)
        kernels.backtrack(best, total, parents)

    return seconds(programme)


def _best_parents(best: Array) -> None:
    m, size = best.shape[0], 1 << block_bits(best.shape[0])
    for first in range(0, best.shape[1], size):
        kernels.minimise_block(best, first, size)
    for j in range(m):
        kernels.minimise(best[j], size)


def _best_parents_seconds(m: int) -> float:
    best = score_table(Families.of(sample(m)), BIC())
    return seconds(lambda: _best_parents(best), clock=time.process_time)


def _stream_seconds(m: int) -> float:
    """One pass that reads and writes the table of m nodes."""
    table = np.zeros(m << (m - 1))
    return seconds(lambda: np.add(table, 1.0, out=table), clock=time.process_time)


def _learn_once(m: int, progress: bool = False) -> tuple[float, float, float, float]:
    """The best of m nodes, in a process that does nothing else: its peak memory in GB, time, processor time, and score.

    With `progress`, a line for every tenth of the work.
    """
    tenth = 0

    def show(share: float) -> None:
        nonlocal tenth
        if share * 10 >= tenth + 1:
            tenth = int(share * 10)
            print(f"  {share:4.0%}  {time.perf_counter() - start:7.1f} s", flush=True)

    start, cpu = time.perf_counter(), time.process_time()
    score = learn(sample(m), BIC(), rng=0, progress=show if progress else None).score
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()  # ru_maxrss would count the parent's
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6, took, cpu, score


if __name__ == "__main__":
    sections = {"families": families, "search": search, "cluster": cluster, "sizing": sizing}
    names = [name for name in sys.argv[1:] if not name.isdigit()] or ["families", "search"]
    for name in names:
        if name == "large":
            for m in [int(number) for number in sys.argv[1:] if number.isdigit()] or [28]:
                large(m)
        elif name in sections:
            sections[name]()
        else:
            sys.exit(f"The sections are {', '.join(sections)} and large. Got {name!r} instead.")
