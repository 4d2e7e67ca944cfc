"""The committed results: they come out again, and a sceptic's plain recomputation agrees with them.

The first test computes a slice of the cells once more with the harness. The second picks five trials at random and
recomputes them by second implementations: one least-squares fit a family, formulas from the paper's notation, all
DAGs or a plain dynamic programme. README must say what the results say.
"""

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmark.design import Cell, Design, Search, Study
from benchmark.generate import draw_one
from benchmark.readme import ROOT, updated
from benchmark.records import VALUES, values_of
from benchmark.streams import streams
from benchmark.trial import run_trials
from scorers import AIC, BIC, MDL, RNML, Scorer
from search.dags import adjacency_of, all_dags
from search.ties import band_weights
from tests import naive

PAPER = Path(ROOT) / "results" / "paper" / "records.parquet"
SCORERS: dict[str, Scorer] = {"aic": AIC(), "bic": BIC(), "mdl": MDL(), "rnml": RNML()}
# Code lengths that are equal on paper differ by far less, different networks by far more.
TIE = 1e-8


@pytest.fixture(scope="module")
def committed() -> pd.DataFrame:
    return pd.read_parquet(PAPER)


def study_of(cell: Cell) -> Study:
    if cell.nn is None:
        return Study(1, Design((cell.m,), (), (cell.n,), 500, dags="uniform"), Search("exhaustive", "none"))
    return Study(1, Design((cell.m,), (cell.nn,), (cell.n,), 100), Search("dp"))


@pytest.mark.parametrize(
    ("cell", "trials"),
    [
        (Cell(4, None, 50), 40),
        (Cell(5, None, 1000), 10),
        (Cell(8, 4, 50), 20),
        (Cell(10, 2, 1000), 10),
        (Cell(15, 2, 500), 3),
    ],
    ids=str,
)
def test_a_slice_of_the_cells_comes_out_again(committed: pd.DataFrame, cell: Cell, trials: int) -> None:
    nn = committed["nn"].isna() if cell.nn is None else committed["nn"] == cell.nn
    own = committed[(committed["m"] == cell.m) & nn & (committed["n"] == cell.n) & (committed["replicate"] < trials)]
    assert len(own) == 4 * trials
    for name, of_scorer in run_trials(study_of(cell), cell, range(trials), SCORERS).items():
        for columns in of_scorer:
            for replicate, values in values_of(columns).items():
                row = own[(own["scorer"] == name) & (own["replicate"] == replicate)].iloc[0]
                for column, value in zip(VALUES, values, strict=True):
                    if value is None:
                        assert pd.isna(row[column])
                    elif column.startswith("score") or column.endswith("sortability"):
                        assert row[column] == pytest.approx(value, rel=1e-9)
                    else:
                        assert row[column] == value


def nearest_and_farthest(study: Study, cell: Cell, row: Any) -> None:
    """The SHD of the best networks, under the three tie rules, and their score."""
    truth, data = draw_one(study, cell, row.replicate)
    cap = int(truth.adjacency.sum(axis=0).max())
    table = naive.score_table(np.ascontiguousarray(data), SCORERS[row.scorer], cap)
    random = next(streams(study, cell, [row.replicate], "ties")).random((cell.m, cell.m))
    weights = band_weights(truth.adjacency, random)
    masks = np.arange(1 << cell.m)
    for of_rule, expected in zip(weights, (row.shd_best, row.shd, row.shd_worst), strict=True):
        of_set = (masks[:, None] >> np.arange(cell.m) & 1) @ of_rule  # [parents, child]
        learned, _ = naive.best_network(table + TIE * of_set.T)
        assert naive.shd(truth.adjacency.astype(float), learned) == expected
        parents = (learned.astype(int) * (1 << np.arange(cell.m))[:, None]).sum(axis=0)
        assert table[np.arange(cell.m), parents].sum() == pytest.approx(row.score, rel=1e-9)


def rank_of_truth(study: Study, cell: Cell, row: Any) -> None:
    truth, data = draw_one(study, cell, row.replicate)
    table = naive.score_table(np.ascontiguousarray(data), SCORERS[row.scorer])
    powers = (1 << np.arange(cell.m))[:, None]

    def score(adjacency: np.ndarray) -> float:
        return float(table[np.arange(cell.m), (adjacency * powers).sum(axis=0)].sum())

    own = score(truth.adjacency)
    scores = np.array([score(adjacency_of(dag)) for dag in all_dags(cell.m)])
    better, within = int((scores < own - TIE).sum()), int((scores <= own + TIE).sum())
    assert (row.rank_best, row.rank_mid, row.rank_worst) == (better + 1, (better + 1 + within) / 2, within)


def test_five_trials_by_plain_means(committed: pd.DataFrame) -> None:
    few_families = committed[committed["max_parents"].isna() | (committed["m"] < 15) | (committed["max_parents"] <= 3)]
    ranked = few_families[few_families["rank_mid"].notna()].sample(2, random_state=1)
    learned = pd.concat([few_families[few_families["m"] == m].sample(1, random_state=m) for m in (8, 10, 15)])
    rows: Any = pd.concat([ranked, learned]).itertuples()
    for row in rows:
        cell = Cell(int(row.m), None if pd.isna(row.nn) else int(row.nn), int(row.n))
        (rank_of_truth if cell.nn is None else nearest_and_farthest)(study_of(cell), cell, row)


def test_readme_says_what_the_results_say() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert updated(readme, ROOT / "results") == readme


def test_the_results_are_small() -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "results"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert len(files) > 100
    assert sum(file.stat().st_size for file in files) < 15e6
