"""Run what is missing: trials in batches, by joblib's workers, kept as they are finished.

A run computes exactly the (trial, score) pairs that are not in the store yet. Workers only compute; this process
writes. Kernels in a worker use one thread, so that workers do not get in each other's way.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from joblib import Parallel, delayed, parallel_config
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmark.design import Cell, Design, Search, Study
from benchmark.records import Pieces, Values, pieces, table_of, values_of
from benchmark.trial import run_batch, run_trials
from scorers.base import Scorer
from search import count_dags, kernels

# A batch of trials takes about this long, so that sending it to a worker costs next to nothing.
BATCH_SECONDS = 0.2


@dataclass(frozen=True)
class Workers:
    """joblib's backend and the number of workers; see `conf/parallel`."""

    backend: str
    n_jobs: int


@dataclass(frozen=True)
class _Batch:
    study: Study
    cell: Cell
    replicates: tuple[int, ...]
    scorers: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """The records of a run, in the order of the design, and how many trials were computed for it."""

    table: pa.Table
    computed: int

    @cached_property
    def failures(self) -> list[dict[str, Any]]:
        """The rows of scores that failed."""
        rows: list[dict[str, Any]] = self.table.filter(self.table["error"].is_valid()).to_pylist()
        return rows


def run(
    studies: list[Study],
    configs: Mapping[str, Mapping[str, Any]],
    scorers: Mapping[str, Scorer],
    store: Path,
    workers: Workers,
    console: Console,
) -> Outcome:
    """Compute all trials of some studies that are not in the store, and return the records of all.

    Parameters
    ----------
    studies : list of Study
        What to run.
    configs, scorers : mapping
        The scores by name: as configs, which make their keys in the store, and as objects.
    store : Path
        The folder of finished pieces.
    workers : Workers
        Who computes.
    console : Console
        Where progress is shown, if it is a terminal.

    Returns
    -------
    Outcome
        The records of all trials, finished now or before.
    """
    found: dict[tuple[Study, Cell, str], dict[int, Values]] = {}
    places: dict[tuple[Study, Cell, str], Pieces] = {}
    batches: list[_Batch] = []
    for study in studies:
        for cell in study.design.cells():
            for name, config in configs.items():
                places[study, cell, name] = place = pieces(store, study, cell, config)
                found[study, cell, name] = place.load()
            batches += _batches(study, cell, {name: found[study, cell, name] for name in configs})
    # long ones first, so that all workers end at about the same time
    batches.sort(key=lambda b: (-b.cell.m, -b.cell.n, b.replicates))

    if batches:
        compile_kernels(console)
    with _bar(batches, console) as advance, _backend(workers):
        tasks = (
            delayed(run_batch)(i, b.study, b.cell, b.replicates, {name: scorers[name] for name in b.scorers})
            for i, b in enumerate(batches)
        )
        for i, given in Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")(tasks):
            batch = batches[i]
            for name, of_scorer in given.items():
                for columns in of_scorer:
                    places[batch.study, batch.cell, name].save(columns)
                    found[batch.study, batch.cell, name] |= values_of(columns)
            advance(batch)
    rows = (
        (study.arm, cell.m, cell.nn, cell.n, replicate, name, *found[study, cell, name][replicate])
        for study in studies
        for cell in study.design.cells()
        for replicate in range(study.design.replicates)
        for name in configs
    )
    return Outcome(table_of(rows), computed=sum(len(b.replicates) for b in batches))


def compile_kernels(console: Console) -> None:
    """Have the kernels compiled once, here, before workers need them."""
    cache = Path(str(kernels.sinks.stats.cache_path))
    if not any(cache.glob("kernels.sinks-*.nbi")):
        console.print("First run on this machine: compiling kernels, which takes about half a minute.")
    design = Design(m=(4,), nn=(1,), n=(20,), replicates=1)
    for search in (Search("dp"), Search("exhaustive")):
        run_trials(Study(0, design, search), design.cells()[0], [0], {"": lambda f: f.ln_tau + f.k})


def _batches(study: Study, cell: Cell, found: Mapping[str, Mapping[int, Values]]) -> Iterator[_Batch]:
    """Batches of the trials that some scores have not done; trials that the same scores lack go together."""
    lacking: dict[tuple[str, ...], list[int]] = {}
    for replicate in range(study.design.replicates):
        names = tuple(name for name, rows in found.items() if replicate not in rows)
        if names:
            lacking.setdefault(names, []).append(replicate)
    for names, replicates in lacking.items():
        size = max(1, round(BATCH_SECONDS / _estimated_seconds(study, cell, len(names))))
        for start in range(0, len(replicates), size):
            yield _Batch(study, cell, tuple(replicates[start : start + size]), names)


def _estimated_seconds(study: Study, cell: Cell, scorers: int) -> float:
    """Roughly what one trial takes: only the size of batches depends on it."""
    if study.search.kind == "exhaustive":
        return 1e-3 + scorers * (2e-4 + 1e-8 * count_dags(cell.m))
    return 1e-3 + scorers * 3 * (3e-4 + 2e-9 * cell.m * (1 << cell.m))


@contextmanager
def _backend(workers: Workers) -> Iterator[None]:
    if workers.backend == "serial":
        with parallel_config(backend="sequential"):
            yield
    else:
        with parallel_config(backend=workers.backend, n_jobs=workers.n_jobs, inner_max_num_threads=1):
            yield


@contextmanager
def _bar(batches: list[_Batch], console: Console) -> Iterator[Callable[[_Batch], None]]:
    """A progress bar of trials and cells; nothing where output is not a terminal."""
    left: dict[tuple[Study, Cell], int] = {}
    for batch in batches:
        left[batch.study, batch.cell] = left.get((batch.study, batch.cell), 0) + len(batch.replicates)
    cells = len(left)
    with Progress(
        TextColumn("cell {task.fields[cells]} of " + str(cells)),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials, {task.fields[rate]}/s,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        disable=not (console.is_terminal and batches),
        transient=True,
    ) as progress:
        task = progress.add_task("", total=sum(left.values()), cells=0, rate="…")

        def advance(batch: _Batch) -> None:
            left[batch.study, batch.cell] -= len(batch.replicates)
            done = sum(count == 0 for count in left.values())
            speed = progress.tasks[0].speed
            progress.update(task, advance=len(batch.replicates), cells=done, rate=f"{speed:.0f}" if speed else "…")

        yield advance
