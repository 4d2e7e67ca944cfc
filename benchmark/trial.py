"""One trial: draw the truth and the data, build the families once, and let every score have its say."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.design import Cell, Search, Study, stream
from benchmark.generate import Truth, draw_data, draw_truth
from benchmark.metrics import EdgeErrors, cpdag_shd
from scorers.base import Array, Block, Scorer, code_lengths
from scorers.families import Families
from scorers.network import families_of
from search import Network, rank, shd_of_weights
from search.dp import optima
from search.ties import band_weights

Row = dict[str, int | float | str | None]


@dataclass(frozen=True)
class Trial:
    """One trial, drawn by its coordinates: the truth, and the families of its data.

    Attributes
    ----------
    truth : Truth
        The DAG and its parameters.
    families : Families
        The families of the data, up to the search's parent cap.
    truth_block : Block
        The truth's own families.
    ties : Array
        Weights of the tie rules optimistic, random and pessimistic; the same for all scores.
    tolerance : float
        What counts as a tie.
    """

    truth: Truth
    families: Families
    truth_block: Block
    ties: Array
    tolerance: float

    @classmethod
    def draw(cls, study: Study, cell: Cell, replicate: int) -> "Trial":
        """Draw the truth and the data."""
        truth = draw_truth(study, cell, replicate)
        families = Families.of(draw_data(study, cell, replicate, truth), parent_cap(study.search, truth))
        ties = band_weights(truth.adjacency, stream(study, cell, replicate, "ties"))
        if truth.adjacency.sum(axis=0).max() <= families.max_parents:
            block = families.network((1 << np.arange(cell.m)) @ truth.adjacency)
        else:
            block = families_of(families.moments, truth.adjacency.astype(bool))
        return cls(truth, families, block, ties, study.search.tolerance)

    def learn(self, scorer: Scorer) -> list[Network]:
        """The best networks under a score: the nearest to the truth, a random one, and the farthest."""
        return optima(self.families, scorer, self.ties, tolerance=self.tolerance, threads=1)


def parent_cap(search: Search, truth: Truth) -> int | None:
    """The largest number of parents that the search may use."""
    if search.kind == "exhaustive" or search.max_parents == "none":
        return None
    if search.max_parents == "oracle":
        return int(truth.adjacency.sum(axis=0).max())
    return min(int(search.max_parents), len(truth.adjacency) - 1)


def run_trials(
    study: Study, cell: Cell, replicates: Sequence[int], scorers: Mapping[str, Scorer]
) -> dict[str, list[Row]]:
    """The rows of some trials of a cell, for each score. A score that fails gives a row that says why."""
    rows: dict[str, list[Row]] = {name: [] for name in scorers}
    for replicate in replicates:
        trial: Trial | None = None
        measure = _rank_row if study.search.kind == "exhaustive" else _shd_row
        for name, scorer in scorers.items():
            row: Row = {"m": cell.m, "nn": cell.nn, "n": cell.n, "replicate": replicate, "scorer": name}
            try:
                trial = trial or Trial.draw(study, cell, replicate)
                row |= measure(study, trial, scorer)
            except (Exception, SystemExit) as error:  # whatever a score raises is a result, not the end of the run
                # without the address in memory that Python names nameless things by: it differs from run to run
                row["error"] = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}")
            rows[name].append(row)
    return rows


def _rank_row(study: Study, trial: Trial, scorer: Scorer) -> Row:
    found = rank(trial.families, scorer, trial.truth.adjacency, tolerance=study.search.tolerance)
    return {
        "edges_true": int(trial.truth.adjacency.sum()),
        "rank_best": found.best,
        "rank_mid": found.mid,
        "rank_worst": found.worst,
        "dags": found.total,
    }


def _shd_row(study: Study, trial: Trial, scorer: Scorer) -> Row:
    truth = trial.truth.adjacency
    nearest, learned, farthest = trial.learn(scorer)
    errors = EdgeErrors.of(truth, learned.adjacency)
    return {
        "edges_true": int(truth.sum()),
        "edges": int(learned.adjacency.sum()),
        "max_parents": trial.families.max_parents,
        "shd": errors.missing + errors.extra + errors.reversed,
        "shd_best": shd_of_weights(truth, nearest.adjacency),
        "shd_worst": shd_of_weights(truth, farthest.adjacency),
        "shd_cpdag": cpdag_shd(truth, learned.adjacency),
        "missing": errors.missing,
        "extra": errors.extra,
        "reversed": errors.reversed,
        "score": learned.score,
        "score_true": float(code_lengths(scorer, trial.truth_block).sum()),
    }
