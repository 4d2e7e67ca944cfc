"""What a cluster costs and what a study needs: the sections `cluster` and `sizing` of `python -m benchmark.perf`.

`cluster` compares dask with loky in one run: tasks that do nothing but carry batches there and answers back show what
sending costs, and the batches of shd_m10 how many trials share it. `sizing` measures a trial for each m, and
multiplies.
"""

import time
import tracemalloc
from importlib.util import find_spec
from typing import Any

import psutil

from benchmark.design import Design, Search, Study
from benchmark.records import VALUES, table_of, values_of
from benchmark.runner import _arguments, _batches, _together
from benchmark.trial import run_trials
from benchmark.workers import Workers
from scorers import AIC, BIC, MDL, RNML, Scorer

SCORERS: dict[str, Scorer] = {"aic": AIC(), "bic": BIC(), "mdl": MDL(), "rnml": RNML()}
TRIALS = (10**4, 10**6, 10**8)


def study(m: int, replicates: int = 100) -> Study:
    """The paper's study of m nodes: nine cells."""
    return Study(1, Design(m=(m,), nn=(2, 4, 6), n=(50, 500, 1000), replicates=replicates), Search("dp"))


def cluster() -> None:
    """Overhead a trial of dask against loky on shd_m10, in time of all processors, two workers each."""
    if find_spec("distributed") is None:
        print("dask is not installed (extra `cluster`): not compared.")
        return
    whole = study(10)
    batches = [b for cell in whole.design.cells() for b in _batches(whole, cell, {name: {} for name in SCORERS})]
    trials = sum(len(batch.replicates) for batch in batches)
    work = _trial_seconds(10) * trials
    print(f"shd_m10, {trials} trials × 4 scores: {work:.2f} s of work")
    for workers in (Workers("loky", 2), Workers("dask", 2)):
        tasks = list(_together(range(len(batches)), dict(enumerate(batches)), workers))
        first = [(i, *_arguments(batches[i], SCORERS, workers)) for i in tasks[0]]
        with workers.ready():
            list(workers.each(_answer, [(first,)] * 20))  # starts the workers
            before = _processor_seconds()
            list(workers.each(_answer, [(first,)] * 500))
            sending = (_processor_seconds() - before) / 500
        of_all = sending * len(tasks)
        print(
            f"  {workers.backend:4}  {len(tasks)} tasks, {sending * 1e3:.1f} ms each, {of_all / trials * 1e6:.0f} µs a "
            f"trial, {of_all / work:.1%} of the work"
        )


def sizing() -> None:
    """Core-hours by m and number of trials, four scores each, and the memory that the records take."""
    print("| m | trials a core-hour | " + " | ".join(f"{trials:,} trials" for trials in TRIALS) + " |")
    print("|---" * (2 + len(TRIALS)) + "|")
    for m in (8, 10, 12, 15, 18, 20):
        seconds = _trial_seconds(m)
        hours = (_readable(trials * seconds / 3600) for trials in TRIALS)
        print(f"| {m} | {3600 / seconds:,.0f} | {' | '.join(hours)} |")
    print(f"Memory of the process that runs it: {_bytes_a_trial() / 1e3:.1f} kB a trial of four scores.")


def _answer(batches: list[tuple[Any, ...]]) -> list[tuple[int, Any]]:
    """An answer like that of `run_batches`, without the work."""
    return [
        (number, {name: [{column: list(replicates) for column in VALUES[:13]}] for name in scorers})
        for number, _, _, replicates, scorers, _ in batches
    ]


def _processor_seconds() -> float:
    """Processor time of this process and all below it: that of a shared machine does not depend on its other users."""
    process = psutil.Process()
    times = (each.cpu_times() for each in (process, *process.children(recursive=True)))
    return float(sum(each.user + each.system for each in times))


def _trial_seconds(m: int, least: float = 3.0) -> float:
    """Mean processor time of a trial of four scores, over the cells of its study, for `least` seconds in all."""
    whole = study(m)
    cells = whole.design.cells()
    run_trials(whole, cells[0], [0], SCORERS)  # loads the kernels
    count, replicates, spent = 0, 1, 0.0
    while spent < least:
        start = time.process_time()
        for cell in cells:
            run_trials(whole, cell, range(count, count + replicates), SCORERS)
        spent += time.process_time() - start
        count += replicates
        replicates = min(2 * replicates, 100)
    return spent / (count * len(cells))


def _bytes_a_trial(trials: int = 1000) -> float:
    """Memory that the rows of a trial take at most, from workers' answers to the table."""
    whole = study(8, trials)
    given = run_trials(whole, whole.design.cells()[0], range(trials), SCORERS)

    def table() -> None:
        found = {name: {r: row for each in given[name] for r, row in values_of(each).items()} for name in SCORERS}
        table_of((None, 8, 2, 50, r, name, *found[name][r]) for r in range(trials) for name in SCORERS)

    table()
    tracemalloc.start()
    table()
    peak: int = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / trials


def _readable(hours: float) -> str:
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
