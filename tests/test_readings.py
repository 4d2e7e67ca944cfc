"""Readings of Table 1: numbers by hand and by the other implementation, the law of the distance, what is missing."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from benchmark.__main__ import CONF
from benchmark.analyse import table_1
from benchmark.reading_grid import (
    AXES,
    DEFAULT,
    MEASURES,
    RIVALS,
    Measured,
    Printed,
    arrays,
    changes,
    default_of,
    distance,
    eight,
    grid,
    measure,
    neighbours,
    sentences,
)
from benchmark.readings import write_readings
from tests.synthetic import SHD_CELLS, manifest
from tests.test_report import CHROMIUM, look

CLAIMS = CONF / "claims" / "paper.yaml"
PRINTED = Printed.of(CLAIMS)
SCORES = [*AXES["variant"], *RIVALS["with"], *RIVALS["without"]]
COLUMNS = list(dict.fromkeys(column for columns in MEASURES.values() for column in columns))


def synthetic(arms: list[str], replicates: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of all scores; a trial's values have a part in common, a score's their own level."""
    keys = [(arm, *cell, r, s) for arm in arms for cell in SHD_CELLS for r in range(replicates) for s in SCORES]
    records = pd.DataFrame(keys, columns=["arm", "m", "nn", "n", "replicate", "scorer"])
    common = np.repeat(rng.poisson(5, len(keys) // len(SCORES)), len(SCORES))
    level = np.tile(rng.uniform(1, 4, len(SCORES)), len(keys) // len(SCORES))
    for column in COLUMNS:
        records[column] = common + rng.poisson(level)
    return records.assign(error=None)


def made(arms: dict[str, tuple[str, float, str]], replicates: int) -> dict[str, Any]:
    """The manifest of such records."""
    found = manifest(SHD_CELLS[:1], SCORES, replicates)
    (study,) = found["studies"]
    found["studies"] = [
        study
        | {"arm": arm, "search": {"kind": "dp", "max_parents": cap}}
        | {"design": study["design"] | {"noise": noise, "density": density}}
        for arm, (noise, density, cap) in arms.items()
    ]
    return found


ARMS = {"a": ("variance", 1.0, "oracle"), "b": ("unit", 0.5, "none")}


def test_printed_numbers() -> None:
    np.testing.assert_array_equal(PRINTED.six, [[0.7333, 0.6078, 0.5656], [3.59, 1.4422, 0.5789]])
    np.testing.assert_array_equal(PRINTED.both, [0.6356, 1.8704])
    assert (PRINTED.replicates, PRINTED.sizes, len(PRINTED.networks)) == (100, [50, 500, 1000], 9)


def test_numbers_and_intervals_are_those_of_table_1() -> None:
    """Every reading of one arm against `benchmark.analyse`; arms are told apart by the manifest."""
    records = synthetic(["a", "b"], 4, np.random.default_rng(0))
    table, expected = grid(records, made(ARMS, 4), PRINTED)
    assert len(table) == expected == 2 * 2 * 6 * 11 * 2
    assert not table.duplicated(list(AXES)).any()
    own = table[table["noise"] == "unit"]
    assert set(own["arm"]) == {"b"}
    for _, row in own.iloc[::13].iterrows():
        used = records[records["arm"] == "b"].copy()
        used["x"] = _measure(used, row["ties"], row["shd"])
        mdl, aic, bic = RIVALS[row["intercept"]]
        other = table_1(used, baseline=row["variant"], over=mdl, best_of=(aic, bic), reading=row["best of"], column="x")
        for rival, name in {"mdl": mdl, "best": f"best of {aic}/{bic}"}.items():
            for n in (50, 500, 1000, "all"):
                for end, key in {"": "mean", " low": "low", " high": "high"}.items():
                    assert row[f"over {rival} {n}{end}"] == pytest.approx(other.loc[n, (name, key)], rel=1e-9)


def _measure(records: pd.DataFrame, ties: str, kind: str) -> "pd.Series[float]":
    if kind == "CPDAG":
        return records["shd_cpdag"].astype(float)
    end = "" if ties == "random" else f"_{ties}"
    return records[f"shd{end}"] + (records[f"reversed{end}"] if kind == "reversal 2" else 0.0)


def by_hand() -> pd.DataFrame:
    """Two trials, the same in all cells: (SHD, of which reversed)."""
    trials = {"rnml": [(3, 1), (2, 0)], "mdl": [(4, 0), (5, 3)], "aic": [(5, 2), (3, 1)], "bic": [(4, 1), (6, 2)]}
    rows = [
        {"m": m, "nn": nn, "n": n, "replicate": r, "scorer": name, "shd": pair[0], "reversed": pair[1]}
        for m, nn, n in SHD_CELLS
        for name, pairs in trials.items()
        for r, pair in enumerate(pairs)
    ]
    return pd.DataFrame(rows).assign(**{column: np.nan for column in COLUMNS if column not in ("shd", "reversed")})


def four_of(records: pd.DataFrame) -> npt.NDArray[np.float64]:
    values = arrays(records, PRINTED)
    four = np.stack([values[name] for name in ("rnml", "mdl", "aic", "bic")], axis=1)
    places = [list(MEASURES).index(("random", kind)) for kind in ("reversal 1", "reversal 2")]
    return four[places]


def test_reversals_and_the_best_of_by_hand() -> None:
    """With reversals twice: RNML 4, 2; MDL 4, 8; AIC 7, 4; BIC 5, 8. AIC has the smaller mean, BIC wins a trial."""
    found = measure(four_of(by_hand()), 100)
    for kind, over_mdl, by_cell, by_replicate in ((0, 2.0, 1.5, 1.0), (1, 3.0, 2.5, 1.5)):
        np.testing.assert_allclose(found.six[kind, 0], [[over_mdl] * 3, [by_cell] * 3])
        np.testing.assert_allclose(found.six[kind, 1], [[over_mdl] * 3, [by_replicate] * 3])


def test_sentences_by_hand() -> None:
    records = by_hand()
    found = sentences(four_of(records))  # means 2.5, 4.5, 4, 5 and 3, 6, 5.5, 6.5
    assert {key: list(value) for key, value in found.items()} == {
        "rnml smallest": [True, True],
        "mdl second": [False, False],
        "rnml smallest in cells": [27, 27],
    }
    records.loc[(records["scorer"] == "mdl"), "shd"] -= 1  # 3.5, 5: before AIC
    records.loc[(records["scorer"] == "rnml") & (records["n"] == 50) & (records["m"] == 8), "shd"] += 3
    found = sentences(four_of(records))
    assert list(found["rnml smallest"]) == [True, True]
    assert list(found["mdl second"]) == [True, True]
    assert list(found["rnml smallest in cells"]) == [24, 24]


def test_covariance_against_trial_by_trial() -> None:
    """With trials missing here and there: covariances of cell means, summed as cells are averaged."""
    rng = np.random.default_rng(1)
    four = rng.poisson(6, (1, 4, 3, 9, 8)).astype(float)
    four[0, 2, 1, 4, 3] = np.nan
    four[0, 0, 2, 7, :3] = np.nan
    found = measure(four, 100)
    ours, printed = np.zeros((6, 6)), np.zeros((6, 6))
    six: dict[tuple[int, int], list[float]] = {}
    for network in range(9):
        parts: list[dict[int, npt.NDArray[np.float64]]] = []
        for n in range(3):
            trials = [four[0, :, n, network, r] for r in range(8)]
            done = {r: x for r, x in enumerate(trials) if not np.isnan(x).any()}
            best = 2 if np.mean([x[2] for x in done.values()]) <= np.mean([x[3] for x in done.values()]) else 3
            pairs = {r: np.array([x[1] - x[0], x[best] - x[0]]) for r, x in done.items()}
            middle = np.mean(list(pairs.values()), axis=0)
            size = len(pairs)
            parts.append({r: (x - middle) / np.sqrt(size * (size - 1)) for r, x in pairs.items()})
            cell = np.cov(np.array(list(pairs.values())).T)
            for a in range(2):
                six.setdefault((a, n), []).append(middle[a])
                for b in range(2):
                    printed[3 * a + n, 3 * b + n] += cell[a, b] / 100 / 81
        for n, k in np.ndindex(3, 3):
            for r in set(parts[n]) & set(parts[k]):
                block = np.outer(parts[n][r], parts[k][r]) / 81
                for a, b in np.ndindex(2, 2):
                    ours[3 * a + n, 3 * b + k] += block[a, b]
    np.testing.assert_allclose(found.ours[0, 0], ours, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.printed[0, 0], printed, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.six[0, 0], [[np.mean(six[a, n]) for n in range(3)] for a in range(2)])
    np.testing.assert_array_equal(found.freedom[0, 0], [63, 62, 60, 63])


def world(sims: int, replicates: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Trials whose true advantages are the printed ones: scores with noise in common, BIC always far behind."""
    shape = (sims, 3, 9, replicates)
    rnml, own, shared = (rng.normal(0, s, shape) for s in (1.5, 1.0, 2.0))
    mdl, aic = (x[None, :, None, None] for x in PRINTED.six)
    return np.stack([rnml, mdl + own, aic + 0.5 * own + shared, aic + 50 + shared], axis=1)


def test_the_distance_is_chi_squared_with_six_degrees_of_freedom() -> None:
    """The printed numbers are themselves means of 100 trials a cell; ours are of 60. Without their noise it fails."""
    rng = np.random.default_rng(2)
    sims = 1200
    found = [measure(world(200, 60, rng), 100) for _ in range(6)]
    paper = [measure(world(200, 100, rng), 100).six for _ in range(6)]
    ours = Measured(*(np.concatenate([getattr(x, key) for x in found])[:, :1] for key in Measured.__annotations__))
    theirs = Printed(PRINTED.networks, PRINTED.sizes, np.concatenate(paper)[:, :1], PRINTED.both, 100)
    result = distance(ours, theirs)
    assert abs(result["chi2"].mean() - 6) < 3 * np.sqrt(12 / sims)
    for level in (0.05, 0.25, 0.5, 0.9):
        assert abs((result["p"] < level).mean() - level) < 3 * np.sqrt(level * (1 - level) / sims)
    blind = distance(Measured(ours.six, ours.ours, 0 * ours.printed, ours.freedom), theirs)
    assert (blind["p"] < 0.05).mean() > 0.1


def test_eight_numbers_have_six_degrees_of_freedom() -> None:
    """The covariance of the eight has rank six; χ² over all eight, by its pseudo-inverse, is that over the six."""
    found = measure(world(1, 30, np.random.default_rng(3)), 100)
    to_eight = np.kron(np.eye(2), np.vstack([np.eye(3), np.full(3, 1 / 3)]))
    total = (found.ours + found.printed)[0, 0]
    covariance = to_eight @ total @ to_eight.T
    assert np.linalg.matrix_rank(covariance, hermitian=True) == 6
    values = eight(found, PRINTED)
    measured = np.array([values[name][0] for name in PRINTED.names])
    off = measured - to_eight @ PRINTED.six.ravel()
    whole = off @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ off
    assert distance(found, PRINTED)["chi2"][0] == pytest.approx(whole, rel=1e-8)


def test_neighbours_differ_in_one_choice() -> None:
    arms = {f"{n} {d} {c}": (n, d, c) for n in AXES["noise"] for d in AXES["density"] for c in AXES["cap"]}
    table, expected = grid(synthetic(list(arms), 2, np.random.default_rng(4)), made(arms, 2), PRINTED)
    assert len(table) == expected == 4224
    assert table["chi2"].is_monotonic_increasing
    default = default_of(table)
    assert default is not None
    assert {axis: default[axis] for axis in AXES} == DEFAULT
    counts = neighbours(table, default)["axis"].value_counts().to_dict()
    rest = {"variant": 5, "noise": 3, "density": 1, "cap": 1, "best of": 1, "intercept": 1}
    assert counts == rest | {"ties": 4, "shd": 2}
    of_cpdag = neighbours(table, DEFAULT | {"shd": "CPDAG", "ties": "any"})["axis"].value_counts().to_dict()
    assert of_cpdag == rest | {"shd": 10}
    assert changes(default) == "eq. 32"
    assert changes(DEFAULT | {"ties": "worst", "cap": "none"}) == "eq. 32; no parent cap; worst ties"


def text_of(folder: Path) -> str:
    return re.sub(r"\s+", " ", (folder / "report.html").read_text().replace("\u00a0", " "))


def test_missing_arms_scores_and_trials(tmp_path: Path) -> None:
    """Arm b has no trials; in arm a one score is not there, another failed once, and a tie rule was not tried."""
    records = synthetic(["a"], 4, np.random.default_rng(5)).query("scorer != 'bic_no_intercept'").copy()
    records[["shd_forward", "reversed_forward"]] = np.nan
    failed = (records["scorer"] == "rnml") & (records["m"] == 8) & (records["replicate"] == 1)
    records[COLUMNS] = records[COLUMNS].mask(failed)
    tables = write_readings(tmp_path, records, made(ARMS, 4), CLAIMS)
    missing = tables["missing"].frame.set_index(["arm", "score"])["finished"]
    assert missing["a"].to_dict() == {"rnml": 99, "bic_no_intercept": 0}
    assert missing["b"].to_dict() == dict.fromkeys(SCORES, 0)
    readings = pd.read_csv(tmp_path / "tables" / "readings.csv", keep_default_na=False)
    assert len(readings) == 6 * 9 * 2
    assert set(readings["intercept"]) == {"with"}
    assert "forward" not in set(readings["ties"])
    assert set(readings.query("variant == 'rnml'")["trials"]) == {3}
    assert set(readings.query("variant != 'rnml'")["trials"]) == {4}
    whole = records.drop(index=records[(records["m"] == 8) & (records["replicate"] == 1)].index)
    again, _ = grid(whole, made(ARMS, 4), PRINTED)
    columns = [*AXES, "chi2", *PRINTED.names]
    left, right = (x.query("variant == 'rnml'")[columns].reset_index(drop=True) for x in (readings, again))
    pd.testing.assert_frame_equal(left, right, rtol=1e-5, check_dtype=False)
    text = text_of(tmp_path)
    assert "1,413 results of 12 scores in 2 arms are missing." in text
    assert "420 of 528 readings cannot be measured. The records have nothing about ties along the order." in text


@pytest.mark.parametrize("left", ["n == 50", "replicate == 0", "replicate < 0"])
def test_nothing_to_measure_is_said(tmp_path: Path, left: str) -> None:
    records = synthetic(["a"], 2, np.random.default_rng(6)).query(left)
    tables = write_readings(tmp_path, records, made({"a": ARMS["a"]}, 2), CLAIMS)
    assert list(tables) == ["missing"]
    assert "No reading can be measured" in text_of(tmp_path)


def test_a_distance_that_cannot_be_computed_is_an_error() -> None:
    with pytest.raises(ValueError, match="Run with more replicates"):
        distance(measure(four_of(by_hand()), 100), PRINTED)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world in which C as printed has just the printed advantages, and nothing else has."""
    rng = np.random.default_rng(7)
    records = synthetic(["a", "b"], 20, rng)
    records["shd"] = records["shd"].astype(float)
    own = {
        name: (records["scorer"] == name) & (records["arm"] == "a") for name in ("rnml_printed_c", "mdl", "aic", "bic")
    }
    over_mdl, over_best = PRINTED.six[:, np.searchsorted(PRINTED.sizes, records.loc[own["mdl"], "n"])]
    common = rng.normal(20, 2, len(over_mdl))
    for rows, level in zip(own.values(), (0 * over_mdl, over_mdl, over_best, over_best + 30), strict=True):
        records.loc[rows, "shd"] = common + level + rng.normal(0, 1, len(common))
    folder = tmp_path_factory.mktemp("readings")
    write_readings(folder, records, made(ARMS, 20), CLAIMS)
    return folder


def test_the_page_says_what_came_out(page: Path) -> None:
    text = text_of(page)
    for words in (
        "Of 528 readings, measured with at least 20 trials a cell, ",
        " are compatible with all eight printed numbers (p ≥ 0.05). The nearest is: C as printed; ",
        "The single change to the default reading that reduces χ² most is eq. 32 → C as printed: from ",
        "the one that matters most is C as printed → eq. 32: set back, it raises χ²",
        "have 6 degrees of freedom",
        "(0.6356 for 0.6356 and 1.8704 for 1.8704)",
    ):
        assert words in text, words
    assert "nan" not in re.sub(r"data:image[^\"]*", "", text).lower().replace("dominant", "")
    files = {file.name for file in (page / "tables").iterdir()}
    assert {"readings.csv", "nearest.csv", "one_change.md", "one_change_back.tex", "choices.csv"} <= files
    assert {file.name for file in (page / "figures").iterdir()} == {"readings.png", "readings.svg"}
    assert len(pd.read_csv(page / "tables" / "nearest.csv")) == 10


def test_no_compatible_reading_is_said(tmp_path: Path) -> None:
    records = synthetic(["a"], 4, np.random.default_rng(8))
    records.loc[records["scorer"].str.startswith("rnml"), COLUMNS] += 30
    write_readings(tmp_path, records, made({"a": ARMS["a"]}, 4), CLAIMS)
    text = text_of(tmp_path)
    assert "Of 264 readings, measured with at least 4 trials a cell, none is compatible with all eight" in text
    assert "“RNML has the smallest mean SHD over all cells” holds in 0" in text


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page in: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_no_text_is_clipped(page: Path, tmp_path: Path, width: int) -> None:
    assert look(page / "report.html", width, tmp_path) == {"window": width, "page": width, "wrong": []}
