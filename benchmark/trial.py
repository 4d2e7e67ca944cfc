"""Trials: draw the truths and the data, build their families at once, and let every score have its say.

Trials of one cell are done in batches, so that no Python runs for each family or DAG and little for each trial. What a
trial gives does not depend on the batch it is in. Where something fails, the batch is taken apart until the trial that
failed is found.
"""

import faulthandler
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.baselines import Baseline, Contestant
from benchmark.design import Cell, Design, Search, Study
from benchmark.generate import Truth, draw_data, draw_truth
from benchmark.metrics import EdgeErrors, cpdag, differing_pairs
from benchmark.sortability import explained_by_others, sortabilities
from benchmark.streams import streams
from scorers.base import Array, Block, IntArray, Scorer, code_lengths
from scorers.families import BLOCK_BITS, Families
from scorers.masks import masks_up_to
from scorers.moments import Moments
from scorers.network import families_of
from search import tie_kernels
from search.dags import count_dags, masks_of
from search.dp import Optima, optima
from search.exhaustive import ranks
from search.ties import band_weights, edge_weights

# What some trials gave: for each column of the records, one value a trial.
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Trials:
    """Some trials of a cell whose searches have the same parent cap.

    Attributes
    ----------
    study, cell : Study, Cell
        What they are trials of.
    replicates : list of int
        Their numbers.
    truth : IntArray
        The true adjacencies, trials × m × m.
    families : Families
        The families of the data, up to the search's parent cap.
    ties : Array
        Weights of the tie rules, trials × rules × m × m; the same for all scores. The rules are optimistic, random and
        pessimistic; where labels are in causal order, also forward and backward.
    """

    study: Study
    cell: Cell
    replicates: list[int]
    truth: IntArray
    families: Families
    ties: Array

    @classmethod
    def draw(cls, study: Study, cell: Cell, replicates: Sequence[int], truth: Truth) -> "Trials":
        """Draw the data of some trials with these truths, which have one parent cap."""
        columns = draw_data(study, cell, replicates, truth)
        random = np.empty(truth.adjacency.shape)
        for rng, each in zip(streams(study, cell, replicates, "ties"), random, strict=True):
            rng.random(out=each)
        ties = band_weights(truth.adjacency, random)
        if study.design.labels == "topological":
            by_label = np.array([edge_weights(rule, cell.m) for rule in ("forward", "backward")])
            ties = np.concatenate([ties, np.broadcast_to(by_label, (len(ties), *by_label.shape))], axis=1)
        families = Families.of_moments(Moments.of_columns(columns), parent_caps(study.search, truth.adjacency)[0])
        return cls(study, cell, list(replicates), truth.adjacency, families, ties)

    def at(self, d: int) -> "Trials":
        """One of the trials."""
        one = slice(d, d + 1)
        return replace(
            self,
            replicates=self.replicates[one],
            truth=self.truth[one],
            families=self.families.at(one),
            ties=self.ties[one],
        )

    def learn(self, scorer: Scorer) -> Optima:
        """The best networks under a score: the nearest to the truth, a random one, and the farthest."""
        return optima(self.families, scorer, self.ties, tolerance=self.study.search.tolerance, threads=1)

    def graphs(self, baseline: Baseline) -> IntArray:
        """The graphs of a baseline, trials × m × m."""
        rngs = list(streams(self.study, self.cell, self.replicates, "baseline"))
        return baseline.graphs(self.families, self.truth, rngs)

    def score_of_truth(self, scorer: Scorer) -> Array:
        """The code lengths of the true networks."""
        if (block := self._true_families) is not None:
            return np.asarray(code_lengths(scorer, block).sum(axis=-1))
        pairs = ((self.families.moments.at(d), truth.astype(bool)) for d, truth in enumerate(self.truth))
        return np.array([code_lengths(scorer, families_of(*pair, scorer)).sum() for pair in pairs])

    def measure(self, scorer: Contestant, time_limit: float | None = None) -> list[Columns]:
        """What the trials give under a score. One that fails gives the reason in the column `error`.

        Failing is also to take longer than `time_limit` seconds a trial, which needs the main thread of a process.
        """
        if hasattr(
            scorer, "graphs"
        ):  # a Baseline; isinstance would look at the protocol for longer than a search takes
            measured: Callable[[Any], dict[str, Any]] = self._baseline
        elif self.study.search.kind == "exhaustive":
            measured = self._ranks
        else:
            measured = self._distances
        try:
            with _at_most(time_limit, len(self.replicates)):
                values = measured(scorer)
        except (Exception, SystemExit) as error:  # whatever a score raises is a result, not the end of the run
            if len(self.replicates) == 1:
                return [failure(self.replicates[0], error)]
            singles = (self.at(d).measure(scorer, time_limit) for d in range(len(self.replicates)))
            return [columns for single in singles for columns in single]
        columns: Columns = {"replicate": self.replicates}
        return [columns | {name: value.tolist() for name, value in (self.of_data | values).items()}]

    @cached_property
    def _true_families(self) -> Block | None:
        """The families of the true networks; None if one of them has more parents than the search may use."""
        if self.truth.sum(axis=-2).max() > self.families.max_parents:
            return None
        return self.families.network(((1 << np.arange(self.truth.shape[-1]))[:, None] * self.truth).sum(axis=-2))

    @cached_property
    def _true_cpdag(self) -> IntArray:
        return cpdag(self.truth)

    @cached_property
    def of_data(self) -> dict[str, Any]:
        """What does not depend on the score."""
        moments = self.families.moments
        explained = explained_by_others(moments.correlation, moments.smallest_eigenvalue)
        sorted_by = {"varsortability": moments.ln_variance, "r2_sortability": explained}
        found = {name: sortabilities(values, self.truth) for name, values in sorted_by.items()}
        return {
            "edges_true": self.truth.sum(axis=(-1, -2)),
            **{name: np.array([None if np.isnan(x) else x for x in values]) for name, values in found.items()},
        }

    def _ranks(self, scorer: Scorer) -> dict[str, Any]:
        best, worst = ranks(self.families, scorer, masks_of(self.truth), self.study.search.tolerance)
        return {
            "rank_best": best,
            "rank_mid": (best + worst) / 2,
            "rank_worst": worst,
            "dags": np.full(len(best), count_dags(self.families.m)),
        }

    def _distances(self, scorer: Scorer) -> dict[str, Any]:
        families = self.families.seen_by(scorer)
        seen = self if families is self.families else replace(self, families=families)
        found = seen.learn(scorer)
        scores = {"score": found.scores[:, 1], "score_true": seen.score_of_truth(scorer)}
        return self._errors(found.adjacencies) | scores

    def _baseline(self, baseline: Baseline) -> dict[str, Any]:
        learned = self.graphs(baseline)
        return self._errors(np.repeat(learned[:, None], self.ties.shape[1], axis=1))  # nothing ties

    def _errors(self, learned: IntArray) -> dict[str, Any]:
        """How far learned networks are from the truth, one under each tie rule."""
        rules = ("_best", "", "_worst", "_forward", "_backward")[: learned.shape[1]]
        errors = EdgeErrors.of(self.truth, learned)
        shd = errors.shd
        return {
            "edges": learned[:, 1].sum(axis=(-1, -2)),
            "max_parents": np.full(len(learned), self.families.max_parents),
            **{f"shd{rule}": shd[:, r] for r, rule in enumerate(rules)},
            "shd_cpdag": differing_pairs(self._true_cpdag, cpdag(learned[:, 1])),
            "missing": errors.missing[:, 1],
            "extra": errors.extra[:, 1],
            **{f"reversed{rule}": errors.reversed[:, r] for r, rule in enumerate(rules)},
        }


def parent_caps(search: Search, truths: IntArray) -> list[int | None]:
    """The largest number of parents that the search may use in each trial."""
    if search.kind == "exhaustive" or search.max_parents == "none":
        return [None] * len(truths)
    if search.max_parents == "oracle":
        caps: list[int | None] = truths.sum(axis=-2).max(axis=-1).tolist()
        return caps
    return [min(int(search.max_parents), truths.shape[-1] - 1)] * len(truths)


def run_trials(
    study: Study,
    cell: Cell,
    replicates: Sequence[int],
    scorers: Mapping[str, Contestant],
    time_limit: float | None = None,
) -> dict[str, list[Columns]]:
    """What some trials of a cell give, for each score."""
    truth = draw_truth(study, cell, replicates)
    of_cap: dict[int | None, list[int]] = {}
    for d, cap in enumerate(parent_caps(study.search, truth.adjacency)):
        of_cap.setdefault(cap, []).append(d)
    found: dict[str, list[Columns]] = {name: [] for name in scorers}
    for cap, alike in of_cap.items():
        # as many at once as keep their families and their data in the cache
        sets = len(masks_up_to(cell.m if cap is None else cap, 0, cell.m - 1))
        size = max(1, (2 << BLOCK_BITS) // (cell.m * max(cell.n, sets)))
        for start in range(0, len(alike), size):
            chosen = np.array(alike[start : start + size])
            for trials in _drawn(study, cell, [replicates[d] for d in chosen], truth.at(chosen)):
                for name, scorer in scorers.items():
                    found[name] += [trials] if isinstance(trials, dict) else trials.measure(scorer, time_limit)
    return {name: _joined(of_scorer) for name, of_scorer in found.items()}


def run_batches(batches: Sequence[tuple[Any, ...]]) -> list[tuple[int, dict[str, list[Columns]]]]:
    """What a worker is asked to do: `run_trials` of some batches, each behind its number."""
    return [(number, run_trials(*batch)) for number, *batch in batches]


def kernels_are_compiled() -> bool:
    """Whether the kernels were compiled on this machine before: they are kept beside their source."""
    cache = Path(str(tie_kernels.solve.stats.cache_path))
    return any(cache.glob("tie_kernels.solve-*.nbi"))


def load_kernels() -> None:
    """Load all kernels that trials need, or compile them, by doing a trial of each kind."""
    design = Design(m=(4,), nn=(1,), n=(20,), replicates=1)
    for search in (Search("dp"), Search("exhaustive")):
        run_trials(Study(0, design, search), design.cells()[0], [0], {"": lambda f: f.ln_tau + f.k})


def _joined(found: list[Columns]) -> list[Columns]:
    """The columns of all finished trials as one, and those of trials that failed."""
    finished = [columns for columns in found if "error" not in columns]
    failed = [columns for columns in found if "error" in columns]
    if not finished:
        return failed
    return [{name: [x for each in finished for x in each[name]] for name in finished[0]}, *failed]


def _drawn(study: Study, cell: Cell, replicates: Sequence[int], truth: Truth) -> list[Trials | Columns]:
    """The trials, ready to be scored; of those whose data cannot be fitted, the reason."""
    try:
        return [Trials.draw(study, cell, replicates, truth)]
    except Exception as error:
        if len(replicates) == 1:
            return [failure(replicates[0], error)]
        singles = (_drawn(study, cell, [r], truth.at(np.array([d]))) for d, r in enumerate(replicates))
        return [each for single in singles for each in single]


@contextmanager
def _at_most(time_limit: float | None, trials: int) -> Iterator[None]:
    """Raise a TimeoutError in what takes longer than so many seconds a trial.

    Compiled code does not notice; a worker that is still in it after twice that time is ended.
    """
    if time_limit is None:
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError(f"it took longer than parallel.time_limit, {time_limit:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, time_limit * trials)
    with Path(os.devnull).open("w") as nowhere:
        if parent_process():
            faulthandler.dump_traceback_later(2 * time_limit * trials, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def failure(replicate: int, error: BaseException) -> Columns:
    """The columns of a trial that failed."""
    # without the address in memory that Python names nameless things by: it differs from run to run
    reason = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}")
    return {"replicate": [replicate], "error": [reason]}
