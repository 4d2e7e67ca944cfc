"""The whole, side by side, in one run on one machine: `python -m benchmark.speed [a] [b] …`, all parts when left out.

(a) the whole `paper` run, (b) one search by another tool, (c) one data set of 15 nodes, (d) what is not compiled, (e)
two workers against one, (f) starting. Times of commands are those of a user: a process of their own, kernels compiled
before, nothing in the store. Machines differ and are shared: ratios count, and only where the load is near zero.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from cProfile import Profile
from pathlib import Path
from pstats import Stats
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from benchmark import generate, trial
from benchmark.design import Cell, Design, Search, Study
from benchmark.peers import peers
from benchmark.streams import streams
from benchmark.trial import load_kernels, run_trials
from scorers import AIC, BIC, MDL, RNML, Families, Scorer
from scorers.base import Array, IntArray
from search import learn, tie_band

SCORERS: dict[str, Scorer] = {"aic": AIC(), "bic": BIC(), "mdl": MDL(), "rnml": RNML()}
# Seconds that pcalg::simy took for m = 15 on two cores like those that the targets were set on.
SIMY = (0.9, 1.3)
# A peer that takes longer than this is given up.
PATIENCE = 600
# How often one worker and two are compared.
PAIRS = 7

took: dict[str, tuple[float, float]] = {}


def study(m: int, replicates: int) -> Study:
    """The paper's SHD study of m nodes."""
    return Study(1, Design(m=(m,), nn=(2, 4, 6), n=(50, 500, 1000), replicates=replicates), Search("dp"))


def command(*arguments: str) -> float:
    """Wall time of a command of this project, as a user gives it."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "benchmark", *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def run_command(experiment: str, *overrides: str) -> tuple[float, float]:
    """Wall time of a command that finds nothing done before, and what its manifest says of the run stage alone."""
    with TemporaryDirectory() as folder:
        whole = command(f"+experiment={experiment}", f"results_dir={folder}", *overrides)
        manifest = json.loads((Path(folder) / experiment / "manifest.json").read_text())
    return whole, manifest["wall_seconds"]


def paper() -> None:
    """(a): 2 700 best networks and 8 000 rankings, four scores each; tables, claims, figures and report."""
    took["paper"] = whole, run = run_command("paper", "parallel.n_jobs=2")
    print(f"(a) the whole paper, 2 workers: {run:.1f} s the run, {whole:.1f} s the command with its analysis")


def one_search() -> None:
    """(b): the other tool's search for one best network."""
    search = peers()[0].get("causal-learn")
    if search is None:
        print("(b) causal-learn is not installed (extra `peers`): not compared.")
        return
    found = search(one_trial()[1], PATIENCE)
    if found.seconds is None:
        print(f"(b) causal-learn, one data set, m = 15: {found.note}")
        return
    print(f"(b) causal-learn, one data set, m = 15, one score: {found.seconds:.1f} s")
    if "paper" in took:
        whole, run = (found.seconds / seconds for seconds in took["paper"])
        print(f"    (b) / (a) = {run:.1f} by the run, {whole:.2f} with analysis; to reach: 3, {_verdict(whole > 3)}")


def one_trial() -> tuple[IntArray, Array]:
    """The true adjacency and the data of the first trial of m = 15, nn = 4, n = 500."""
    truth, data = generate.draw_one(study(15, 1), Cell(15, 4, 500), 0)
    return truth.adjacency, data


def fifteen_nodes() -> None:
    """(c): one score, and four with tie bands, in one thread, families included."""
    truth, data = one_trial()
    one = warm(lambda: learn(data, BIC(), rng=0, threads=1))

    def bands() -> None:
        families = Families.of(data)
        for scorer in SCORERS.values():
            tie_band(families, scorer, truth, rng=0, threads=1)

    four = warm(bands)
    print(f"(c) m = 15, one thread: one score {one * 1e3:.2f} ms, four scores with tie bands {four * 1e3:.1f} ms")
    if simy := peers()[0].get("pcalg::simy"):
        other = simy(data, PATIENCE).seconds
        if other is None:
            print("    pcalg::simy did not end")
        else:
            _compare("pcalg::simy", other, one, four)
        return
    from tests.naive import best_network, bic_table, score_table

    low, high = (f"{seconds / one:.0f} and {seconds / four:.0f}" for seconds in SIMY)
    print(f"    pcalg::simy is not here; at the {SIMY[0]} … {SIMY[1]} s that it took elsewhere: {low} … {high}")
    fits = once(lambda: best_network(score_table(data, BIC())))
    _compare("in its place, the formula for each family from a fit of its own (tests/naive.py)", fits, one, four)
    other = warm(lambda: best_network(bic_table(data)), times=3)
    print(f"    NumPy with shared determinants (same file): {other:.3f} s, {other / one:.0f} and {other / four:.1f}")


def _compare(name: str, other: float, one: float, four: float) -> None:
    ratios = other / one, other / four
    reached = _verdict(ratios[0] >= 150 and ratios[1] >= 25)
    print(f"    {name}: {other:.2f} s, ratios {ratios[0]:.0f} and {ratios[1]:.0f}; to reach: 150 and 25, {reached}")


def not_compiled() -> None:
    """(d): the share of a run in one process that is spent outside compiled code, by two clocks."""
    print("(d) outside kernels, LAPACK, arithmetic of scores and drawing of random numbers, one process, warm:")
    load_kernels()
    for m, replicates, most in ((15, 20, 0.15), (10, 100, 0.20)):
        wanted = study(m, replicates)

        def trials(scorers: dict[str, Scorer], wanted: Study = wanted) -> None:
            for cell in wanted.design.cells():
                run_trials(wanted, cell, range(wanted.design.replicates), scorers)

        trials(SCORERS)
        plain = warm(lambda: trials(SCORERS), times=3)
        with compiled_timed() as (clock, timed):
            scorers: dict[str, Scorer] = {name: timed(scorer) for name, scorer in SCORERS.items()}
            shares = []
            for _ in range(3):
                clock[0], start = 0.0, time.perf_counter()
                trials(scorers)
                shares.append(1 - clock[0] / (time.perf_counter() - start))
            profile = Profile()
            profile.runcall(trials, scorers)
        calls: dict[Any, Any] = Stats(profile).stats  # type: ignore[attr-defined]
        inside = sum(values[3] for (_, _, name), values in calls.items() if name == "timed_call")
        profiled = 1 - inside / sum(values[2] for values in calls.values())
        share = median(shares)
        print(
            f"    shd_m{m}, {plain / replicates / 9e-3:.2f} ms a trial: {share:.1%} by timers around compiled code "
            f"({profiled:.1%} by cProfile, which slows Python down); to reach: {most:.0%}, {_verdict(share < most)}"
        )


@contextmanager
def compiled_timed() -> Iterator[tuple[list[float], Callable[[Any], Any]]]:
    """A clock that runs while compiled code does: every kernel that Python calls, LAPACK, random numbers being drawn.

    Kernels are found by looking for compiled functions in all modules of the project. Also yields what makes a function
    be timed, for the scores.
    """
    clock = [0.0]

    def timed(function: Any) -> Any:
        def timed_call(*arguments: Any, **options: Any) -> Any:
            before, start = clock[0], time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                clock[0] = before + time.perf_counter() - start  # what is called within is not counted again

        return timed_call

    drawing = [name for name in dir(np.random.Generator) if name[0] != "_" and name not in ("bit_generator", "spawn")]
    methods = {name: timed(getattr(np.random.Generator, name)) for name in drawing}
    generator: Any = type("Timed", (np.random.Generator,), methods)
    replaced: list[tuple[Any, str, Any]] = [(module, "streams", streams) for module in (generate, trial)]
    replaced += [(np.linalg, name, getattr(np.linalg, name)) for name in ("eigvalsh", "inv")]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("benchmark", "scorers", "search"):
            kernels = {key: value for key, value in vars(module).items() if isinstance(value, Dispatcher)}
            replaced += [(module, key, value) for key, value in kernels.items()]
    for module, key, value in replaced:
        new = timed(value) if value is not streams else lambda *a: (generator(x.bit_generator) for x in streams(*a))
        setattr(module, key, new)
    try:
        yield clock, timed
    finally:
        for module, key, value in replaced:
            setattr(module, key, value)


def two_workers() -> None:
    """(e): the same run by one worker and by two, which are started as a user's are; in turns, for noise hits both."""
    stage = "stages=[run]"
    pairs = [[run_command("shd_m15", stage, f"parallel.n_jobs={n}") for n in (1, 2)] for _ in range(PAIRS)]
    (whole_1, run_1), (whole_2, run_2) = np.median(pairs, axis=0)
    ratios = sorted(one / two for (_, one), (_, two) in pairs)
    ratio = median(ratios)
    print(
        f"(e) shd_m15: run stage {run_1:.1f} s by 1 worker, {run_2:.1f} s by 2; ratio {ratio:.2f}, the median of "
        f"{PAIRS} from {ratios[0]:.2f} to {ratios[-1]:.2f}; to reach: 1.85, {_verdict(ratio >= 1.85)}"
    )
    print(f"    whole command {whole_1:.1f} s and {whole_2:.1f} s, ratio {whole_1 / whole_2:.2f}")


def start_up() -> None:
    """(f): the help, and the smallest study with its analysis."""
    shown = median(command("--help") for _ in range(3))
    with TemporaryDirectory() as folder:
        smoke = command("+experiment=smoke", f"results_dir={folder}")
    print(f"(f) --help {shown:.2f} s; to reach: 1 s, {_verdict(shown < 1)}")
    print(f"    smoke, run and analysis: {smoke:.1f} s; to reach: 10 s, {_verdict(smoke < 10)}")


def warm(task: Callable[[], object], times: int = 7) -> float:
    """Median seconds of a task after it was done once."""
    task()
    return median(once(task) for _ in range(times))


def once(task: Callable[[], object]) -> float:
    """Seconds of a task."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def _verdict(reached: bool) -> str:
    return "reached" if reached else "NOT reached"


if __name__ == "__main__":
    parts = dict(zip("abcdef", (paper, one_search, fifteen_nodes, not_compiled, two_workers, start_up), strict=True))
    if wrong := set(sys.argv[1:]) - set(parts):
        sys.exit(f"The parts are {', '.join(parts)}. Got {', '.join(wrong)} instead.")
    load_kernels()  # compiles them on a new machine
    for name in sys.argv[1:] or parts:
        print(f"    load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        parts[name]()
