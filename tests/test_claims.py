"""Verdicts on records whose truth is known, and how often they are wrong."""

import json
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from benchmark.__main__ import CONF
from benchmark.claims import STATISTICS, VERDICTS, Claim, Finding, judge, ledger, load_claims
from tests.synthetic import RANK_CELLS, SHD_CELLS, Cell, cell_records, draw, draw_wide

ONE: list[Cell] = [(8, 2, 50)]
THREE: list[Cell] = [(8, 2, 50), (8, 4, 50), (8, 6, 50)]
M4 = [cell for cell in RANK_CELLS if cell[0] == 4]


def claim(statistic: str, cells: list[Cell], **arguments: Any) -> Claim:
    return Claim("test", "so", "here", statistic, cells, arguments)


def better(cells: list[Cell], **arguments: Any) -> Claim:
    return claim("better", cells, **({"pairs": [["rnml", "mdl"]], "by": ["m", "nn", "n"]} | arguments))


def verdict(each: Claim, records: pd.DataFrame, rule: str = "random") -> Finding:
    return judge([each], records, {})[0].findings[rule]


def test_a_printed_number_by_hand() -> None:
    """Two cells with differences (1, 3) and (0, 4): mean 2, standard error √(1 + 4)/2."""
    records = pd.concat(
        [
            cell_records(cell, name, values)
            for cell, mdl in zip(THREE[:2], ([1, 3], [0, 4]), strict=True)
            for name, values in {"rnml": [0, 0], "mdl": mdl}.items()
        ]
    )
    found = verdict(claim("advantage", THREE[:2], of="rnml", over=["mdl"], printed=2.5, replicates=100), records)
    assert found.value == 2
    half = t.isf(0.025, 2) * sqrt(5) / 2
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))
    assert found.trials == 2
    assert found.verdict == "undecided"
    # variances 2 and 8, at 100 replicates a cell
    assert f"printed 2.5 ± {sqrt((2 + 8) / 100) / 2:.2f}" in found.measured


def test_best_of_two_in_three_readings() -> None:
    records = pd.concat(
        [
            cell_records(ONE[0], name, values)
            for name, values in {"rnml": [0, 0, 0], "aic": [1, 5, 3], "bic": [3, 2, 7]}.items()
        ]
    )
    for best, value in {"cell": 3, "replicate": (1 + 2 + 3) / 3, "mean": (2 + 3.5 + 5) / 3}.items():
        each = claim("advantage", ONE, of="rnml", over=["aic", "bic"], best=best, printed=1, replicates=100)
        assert verdict(each, records).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("printed", "advantage", "expected"),
    [(2.0, 2.0, "reproduced"), (2.0, 0.5, "contradicted"), (-2.0, 2.0, "contradicted"), (0.05, 0.0, "undecided")],
)
def test_printed_numbers(printed: float, advantage: float, expected: str) -> None:
    records = draw(THREE, {"rnml": 10, "mdl": 10 + advantage}, 200, np.random.default_rng(1))
    found = verdict(claim("advantage", THREE, of="rnml", over=["mdl"], printed=printed, replicates=100), records)
    assert found.verdict == expected
    assert np.isnan(found.needed) == (expected != "undecided")


def test_better_in_every_cell_in_some_and_in_none() -> None:
    rng = np.random.default_rng(2)
    assert verdict(better(THREE), draw(THREE, {"rnml": 10, "mdl": 11}, 100, rng)).verdict == "reproduced"
    mixed = draw(THREE, {"rnml": 10, "mdl": lambda cell: 9 if cell[1] == 4 else 12}, 100, rng)
    found = verdict(better(THREE), mixed)
    assert found.verdict == "contradicted"
    assert "better in 2, the other way round in 1, unsettled in 0 of 3" in found.measured
    assert "rnml against mdl, m = 8, nn = 4, n = 50" in found.measured
    assert found.value == pytest.approx(-1, abs=0.5)
    # in the mean over the cells it is better
    assert verdict(better(THREE, by=[]), mixed).verdict == "reproduced"
    half_sure = draw(THREE, {"rnml": 10, "mdl": lambda cell: 10 if cell[1] == 4 else 12}, 100, rng)
    assert verdict(better(THREE), half_sure).verdict == "undecided"


def test_the_trials_that_are_needed_settle_it() -> None:
    """With the same mean and spread, the verdict comes at the number that was promised, not before."""
    few = draw(ONE, {"rnml": 10, "mdl": 10.15}, 50, np.random.default_rng(4))
    found = verdict(better(ONE), few)
    assert found.verdict == "undecided"
    assert found.value > 0

    def repeated(times: int) -> pd.DataFrame:
        return pd.concat([few.assign(replicate=few["replicate"] + 50 * i) for i in range(times)])

    times = int(found.needed // 50)
    assert times > 1
    assert verdict(better(ONE), repeated(times - 1)).verdict == "undecided"
    assert verdict(better(ONE), repeated(times + 1)).verdict == "reproduced"


def test_holm_is_over_all_comparisons() -> None:
    """One cell of 27 that is significant only by itself neither reproduces nor contradicts."""
    exact = np.array([1.0, -1.0] * 50)
    parts = []
    for cell in SHD_CELLS:
        shift = 0.25 if cell == (8, 2, 50) else 0.0  # p = 0.014, which 27 cells do not bear
        parts += [cell_records(cell, "rnml", np.full(100, 5.0)), cell_records(cell, "mdl", 5.0 - shift + exact)]
    records = pd.concat(parts)
    assert verdict(better(SHD_CELLS), records).verdict == "undecided"
    assert verdict(better(ONE), records).verdict == "contradicted"


def test_the_tie_rule_decides() -> None:
    records = draw(ONE, {"rnml": 10, "bic": 10.1}, 100, np.random.default_rng(5), widths={"bic": 2})
    found = judge([better(ONE, pairs=[["rnml", "bic"]])], records, {})[0].findings
    assert [found[rule].verdict for rule in ("random", "best", "worst")] == ["undecided", "contradicted", "reproduced"]


def slow(power: float) -> Any:
    return lambda cell: 1e5 * cell[2] ** -power


def test_faster_is_the_slope_of_the_logarithms() -> None:
    records = draw(M4, {"rnml": slow(0.9), "aic": slow(0.3)}, 100, np.random.default_rng(6), rank=True)
    pairs = {"pairs": [["rnml", "aic"]], "measure": "rank of the truth"}
    found = verdict(claim("faster", M4, **pairs), records, "mid")
    level = records.groupby(["scorer", "n"])["rank_mid"].mean()
    slopes = {name: np.polyfit(np.log(level[name].index), np.log(level[name]), 1)[0] for name in ("rnml", "aic")}
    assert found.value == pytest.approx(slopes["aic"] - slopes["rnml"])
    assert found.verdict == "reproduced"
    assert (
        verdict(claim("faster", M4, **pairs | {"pairs": [["aic", "rnml"]]}), records, "mid").verdict == "contradicted"
    )


@pytest.mark.parametrize(("ratio", "expected"), [(1.02, "reproduced"), (1.5, "contradicted"), (1.25, "undecided")])
def test_similar(ratio: float, expected: str) -> None:
    records = draw(M4, {"mdl": 20 * ratio, "bic": 20}, 100, np.random.default_rng(7), rank=True)
    each = claim("similar", M4, pairs=[["mdl", "bic"]], ratio=1.25, measure="rank of the truth")
    found = verdict(each, records, "mid")
    assert found.verdict == expected
    assert found.value == pytest.approx(ratio, rel=0.05)
    assert np.isnan(found.needed) == (expected != "undecided")


RUNS = 200


def rate(make: Callable[[np.random.Generator], tuple[Claim, pd.DataFrame]], wrong: set[str]) -> float:
    """How often a verdict is one of the wrong ones, on new records each time."""
    verdicts = []
    for i in range(RUNS):
        each, trials = make(np.random.default_rng(1000 + i))
        verdicts.append(STATISTICS[each.statistic](each, trials).verdict)
    return float(np.mean([v in wrong for v in verdicts]))


ERROR = 3 * sqrt(0.05 * 0.95 / RUNS)  # of a rate of 5 %


def test_equal_scores_are_seldom_told_apart() -> None:
    """With no difference in any of three cells, five in a hundred verdicts may say that there is one."""
    equal = {"rnml": [10, 10, 10], "mdl": [10, 10, 10]}
    found = rate(lambda rng: (better(THREE), draw_wide(THREE, equal, 20, rng)), {"reproduced", "contradicted"})
    assert found < 0.05 + ERROR


def test_true_printed_numbers_are_contradicted_as_often_as_promised() -> None:
    """The printed number is a mean of another sample of 30 trials: five in a hundred are contradicted."""
    means = {"rnml": [10, 10, 10], "mdl": [11, 11, 11]}

    def make(rng: np.random.Generator) -> tuple[Claim, pd.DataFrame]:
        theirs = draw_wide(THREE, means, 30, rng).mean()
        printed = float(theirs["mdl"] - theirs["rnml"])
        each = claim("advantage", THREE, of="rnml", over=["mdl"], printed=printed, replicates=30)
        return each, draw_wide(THREE, means, 50, rng)

    assert abs(rate(make, {"contradicted"}) - 0.05) < ERROR


def test_scores_at_the_margin_are_seldom_called_similar() -> None:
    one: list[Cell] = [(4, None, 50)]
    each = claim("similar", one, pairs=[["mdl", "bic"]], ratio=1.25)
    found = rate(lambda rng: (each, draw_wide(one, {"mdl": [25], "bic": [20]}, 50, rng)), {"reproduced"})
    assert abs(found - 0.05) < ERROR


def test_intervals_of_slopes_cover() -> None:
    cells: list[Cell] = [(4, None, n) for n in (50, 200, 1000)]
    each = claim("faster", cells, pairs=[["rnml", "bic"]])
    means = {"bic": [40, 30, 20], "rnml": [40, 25, 15]}
    sizes = np.log([n for _, _, n in cells])
    slope = {name: np.polyfit(sizes, np.log(levels), 1)[0] for name, levels in means.items()}
    hits = []
    for i in range(RUNS):
        found = STATISTICS["faster"](each, draw_wide(cells, means, 40, np.random.default_rng(i)))
        hits.append(found.low <= slope["bic"] - slope["rnml"] <= found.high)
    assert abs(np.mean(hits) - 0.95) < ERROR


def test_what_is_missing_is_not_tested() -> None:
    records = draw(THREE, {"rnml": 10, "mdl": 12}, 10, np.random.default_rng(8))
    assert verdict(better(THREE), records).verdict == "reproduced"
    for gone, words in {
        "scorer == 'mdl'": "no SHD by mdl",
        "nn == 4": "at m = 8, nn = 4, n = 50",
        "nn == 4 and replicate > 0 and scorer == 'rnml'": "no two trials by all of rnml, mdl at m = 8, nn = 4, n = 50",
        "nn > 0": "no SHD by rnml, mdl",
        "nn == 4 and (replicate % 2 == 1) == (scorer == 'mdl')": "no two trials by all of rnml, mdl",  # none in common
    }.items():
        found = verdict(better(THREE), records.query(f"not ({gone})"))
        assert found.verdict == "not tested"
        assert words in found.measured
    assert verdict(
        claim("faster", M4, pairs=[["rnml", "mdl"]], measure="rank of the truth"), records, "mid"
    ).verdict == ("not tested")


def test_properties_come_from_certificates() -> None:
    rows = {"holds": [True], "evidence": ["0 of 9 missed"]}
    certificates = {"rnml": pd.DataFrame(rows, index=["consistent"])}
    each = claim("certificate", [], scorers=["rnml"], property="consistent")
    assert judge([each], draw(ONE, {"rnml": 1}, 2, np.random.default_rng(0)), certificates)[0].findings[
        "any"
    ] == Finding("reproduced", "rnml: 0 of 9 missed")
    certificates["rnml"]["holds"] = False
    records = draw(ONE, {"rnml": 1}, 2, np.random.default_rng(0))
    assert judge([each], records, certificates)[0].findings["any"].verdict == "contradicted"
    assert judge([each], records, {})[0].findings["any"].verdict == "not tested"


def test_the_claims_of_the_paper() -> None:
    """All printed numbers are there, and on records where the paper is right all its claims are reproduced."""
    claims = load_claims(CONF / "claims" / "paper.yaml")
    assert len({each.id for each in claims}) == len(claims)
    printed = [each.arguments["printed"] for each in claims if "printed" in each.arguments]
    assert set(printed) == {0.7333, 0.6078, 0.5656, 0.6356, 3.59, 1.4422, 0.5789, 1.8704}
    rng = np.random.default_rng(9)
    over_mdl = {50: 0.7333, 500: 0.6078, 1000: 0.5656}
    over_best = {50: 3.59, 500: 1.4422, 1000: 0.5789}
    shd: dict[str, Any] = {
        "rnml": 10.0,
        "mdl": lambda cell: 10 + over_mdl[cell[2]],
        "bic": lambda cell: 10 + over_best[cell[2]],
        "aic": lambda cell: 15 + over_best[cell[2]],
    }
    rank: dict[str, Any] = {
        "rnml": slow(1.0),
        "mdl": slow(0.8),
        "bic": lambda cell: 1.1 * slow(0.8)(cell),
        "aic": slow(0.4),
    }
    records = pd.concat(
        [draw(SHD_CELLS, shd, 100, rng, noise=0.02), draw(RANK_CELLS, rank, 100, rng, rank=True, noise=0.02)]
    )
    certificate = pd.DataFrame({"holds": True, "evidence": "none missed"}, index=["consistent"])
    table = ledger(judge(claims, records, dict.fromkeys(("rnml", "mdl", "bic"), certificate)))
    assert set(table["verdict"]) <= set(VERDICTS)
    others = ["decomposable", "other-two-all"]  # nothing to measure; by these words the paper's numbers disagree
    assert set(table.drop(index=others, level="claim")["verdict"]) == {"reproduced"}
    assert set(table.loc["decomposable"]["verdict"]) == {"not tested"}
    assert set(table.loc["other-two-all"]["verdict"]) == {"contradicted"}


def test_an_unknown_statistic_is_named(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(json.dumps({"cells": {}, "claims": [{"id": "x", "says": "", "where": "", "statistic": "luck"}]}))
    with pytest.raises(ValueError, match="x has the statistic 'luck'"):
        load_claims(file)
