"""Run what is missing: trials in batches, by workers, kept as they are finished.

A run computes exactly the (trial, score) pairs that are not in the store yet. Workers only compute; this process
writes. A worker whose process ends takes nothing with it but the batch it was at, which is done again; a trial and
score that end their process each time, at last alone, are a failure like any other.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmark.baselines import Contestant
from benchmark.design import Cell, Study
from benchmark.records import Pieces, Values, pieces, score_key, table_of, values_of
from benchmark.trial import Columns, failure, kernels_are_compiled, load_kernels, run_batches
from benchmark.workers import ClusterError, WorkerDiedError, Workers
from search import count_dags

# A batch of trials, or some sent together, takes about this long: sending it to a worker costs next to nothing.
BATCH_SECONDS = 0.2


@dataclass(frozen=True)
class _Batch:
    study: Study
    cell: Cell
    replicates: tuple[int, ...]
    scorers: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Roughly what it takes."""
        return len(self.replicates) * _estimated_seconds(self.study, self.cell, len(self.scorers))

    def parts(self) -> "list[_Batch]":
        """The batch taken apart: by scores or, if there is only one, by trials."""
        if len(self.scorers) > 1:
            return [replace(self, scorers=(name,)) for name in self.scorers]
        return [replace(self, replicates=(r,)) for r in self.replicates]


Given = dict[str, list[Columns]]


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
    scorers: Mapping[str, Contestant],
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
    keys = {name: score_key(config) for name, config in configs.items()}
    for study in studies:
        for cell in study.design.cells():
            names = study.names(configs)
            for name in names:
                places[study, cell, name] = place = pieces(store, study, cell, keys[name])
                found[study, cell, name] = place.load()
            batches += _batches(study, cell, {name: found[study, cell, name] for name in names})
    # long ones first, so that all workers end at about the same time: parents allowed make more work than samples
    batches.sort(key=lambda b: (-b.cell.m, -(b.cell.nn or 0), -b.cell.n, b.replicates))

    if batches and not kernels_are_compiled():
        console.print("First run on this machine: compiling kernels, which takes about half a minute.")
        load_kernels()
    with _bar(batches, console) as advance, workers.ready():
        for batch, given in _computed(batches, scorers, workers):
            for name, of_scorer in given.items():
                for columns in of_scorer:
                    if "error" not in columns:  # what failed is not kept: the next run tries it again
                        places[batch.study, batch.cell, name].save(columns)
                    found[batch.study, batch.cell, name] |= values_of(columns)
            advance(batch)
    rows = (
        (study.arm, cell.m, cell.nn, cell.n, replicate, name, *values[replicate])
        for study in studies
        for cell in study.design.cells()
        for of_cell in [{name: found[study, cell, name] for name in study.names(configs)}]
        for replicate in range(study.design.replicates)
        for name, values in of_cell.items()
    )
    return Outcome(table_of(rows), computed=sum(len(b.replicates) for b in batches))


def _computed(
    batches: list[_Batch], scorers: Mapping[str, Contestant], workers: Workers
) -> Iterator[tuple[_Batch, Given]]:
    """The batches with what they gave, as they are finished; all of them, also if workers die.

    Nobody knows which of the batches at work was the end of a worker, if any was. They are done again, after the
    others; one that was at work at two deaths is done alone. To a cluster, short ones are sent together.
    """
    left = dict(enumerate(batches))
    deaths: Counter[int] = Counter()
    at_work: set[int] = set()

    def asked() -> Iterator[tuple[list[tuple[Any, ...]]]]:
        for numbers in _together(sorted(left, key=deaths.__getitem__), left, workers):
            at_work.update(numbers)
            yield ([(i, *_arguments(left[i], scorers, workers)) for i in numbers],)

    while left:
        at_work.clear()
        try:
            for finished in workers.each(run_batches, asked()):
                for i, given in finished:
                    at_work.discard(i)
                    yield left.pop(i), given
        except WorkerDiedError:
            deaths.update(at_work)
            _refuse_if_none_lives(workers)
        for i in sorted(i for i in at_work if deaths[i] > 1):
            batch = left.pop(i)
            yield batch, _alone(batch, scorers, workers)


def _refuse_if_none_lives(workers: Workers) -> None:
    """Raise if workers end with nothing to do, too: then it is not a trial that ends them."""
    for _ in range(3):  # one of them may have been killed just now
        try:
            list(workers.each(run_batches, [([],)]))
            return
        except WorkerDiedError:
            pass
    raise ClusterError(
        "The processes that compute end at once, with nothing to do: there is too little memory for them, or they "
        "cannot import what they need. With parallel=serial one process does everything, and says what it meets"
    )


def _alone(batch: _Batch, scorers: Mapping[str, Contestant], workers: Workers) -> Given:
    """What a batch gives with nothing else at work, taken apart until the trial that ends its process is found."""
    try:
        (((_, given),),) = workers.each(run_batches, [([(0, *_arguments(batch, scorers, workers))],)])
    except WorkerDiedError as error:
        if len(batch.scorers) == len(batch.replicates) == 1:
            return {batch.scorers[0]: [failure(batch.replicates[0], error)]}
        given = {name: [] for name in batch.scorers}
        for part in batch.parts():
            for name, columns in _alone(part, scorers, workers).items():
                given[name] += columns
    return given  # type: ignore[no-any-return]


def _together(numbers: Iterable[int], batches: Mapping[int, _Batch], workers: Workers) -> Iterator[list[int]]:
    """The batches that make one task: one, or for a cluster, to which tasks cost more, as many as take long enough."""
    task: list[int] = []
    for i in numbers:
        task.append(i)
        if workers.backend != "dask" or sum(batches[j].seconds for j in task) >= BATCH_SECONDS:
            yield task
            task = []
    if task:
        yield task


def _arguments(batch: _Batch, scorers: Mapping[str, Contestant], workers: Workers) -> tuple[Any, ...]:
    """What `run_trials` is called with."""
    chosen = {name: scorers[name] for name in batch.scorers}
    return batch.study, batch.cell, batch.replicates, chosen, workers.time_limit


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
    """Roughly what one trial takes: only the size of batches depends on it. See `python -m benchmark.perf sizing`."""
    if study.search.kind == "exhaustive":
        return 1e-3 + scorers * (2e-4 + 1e-8 * count_dags(cell.m))
    return 1e-4 + scorers * (5e-5 + 6e-9 * cell.m * (1 << cell.m))


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
