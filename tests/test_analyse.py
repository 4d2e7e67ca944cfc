"""Tables against values by hand, and intervals against their promise."""

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmark.analyse import compare, differences, holm, mean_tables, means, needed, table_1
from benchmark.tables import tables_of, write_table


def tidy(values: Mapping[str, Sequence[float | None]], m: int = 8, nn: int = 2, n: int = 50) -> pd.DataFrame:
    """Records of one cell: the SHD of each score in each trial; None is a trial that failed."""
    rows = [
        {
            "m": m,
            "nn": nn,
            "n": n,
            "replicate": r,
            "scorer": name,
            "shd": x,
            "shd_best": x,
            "shd_worst": x,
            "rank_mid": None,
        }
        for name, column in values.items()
        for r, x in enumerate(column)
    ]
    return pd.DataFrame(rows).assign(rank_best=None, rank_worst=None, error=None)


def test_mean_and_its_error() -> None:
    table = means(tidy({"bic": [1, 2, 6]}), "shd", ["scorer"]).loc["bic"]
    assert table["mean"] == 3
    assert table["se"] == pytest.approx(sqrt((4 + 1 + 9) / 2) / sqrt(3))  # sd with n − 1, over √n
    assert table["count"] == 3
    assert table["high"] - table["mean"] == pytest.approx(
        4.302652729911275 * table["se"]
    )  # t with 2 degrees of freedom


def test_tables_have_every_tie_rule_and_only_what_was_measured() -> None:
    records = tidy({"bic": [1, 2, 6], "rnml": [0, 1, 2]})
    records["shd_worst"] += 2
    tables = mean_tables(records)
    assert list(tables) == ["SHD"]
    assert tables["SHD"].loc[(8, 2, 50, "bic"), ("worst", "mean")] == 5
    assert tables["SHD"].loc[(8, 2, 50, "rnml"), ("random", "mean")] == 1


def test_differences_are_taken_within_trials() -> None:
    records = tidy({"rnml": [1, 5, 2, None], "mdl": [3, 4, 2, 7], "aic": [9, 4, None, 1], "bic": [2, 6, 3, 3]})
    assert differences(records, "rnml", "mdl", "shd")["difference"].tolist() == [2, -1, 0]
    best = differences(records, "rnml", ["aic", "bic"], "shd")  # trials in which one of the two failed do not count
    assert best["difference"].tolist() == [2 - 1, 4 - 5]


def test_comparison_by_hand() -> None:
    records = tidy({"rnml": [1, 2, 3, 4], "mdl": [2, 4, 3, 7]})
    row = compare(records, "rnml", "mdl", "shd").iloc[0]
    result = stats.ttest_rel([2, 4, 3, 7], [1, 2, 3, 4])
    assert row["mean"] == 1.5
    assert row["p"] == pytest.approx(result.pvalue)
    low, high = result.confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    sd = np.std([1, 2, 0, 3], ddof=1)
    enough = [n for n in range(2, 100) if stats.t.ppf(0.975, n - 1) * sd / sqrt(n) <= 1.5]
    assert row["needed"] == enough[0] == 6


def test_scores_that_never_differ() -> None:
    row = compare(tidy({"rnml": [1, 2, 3], "mdl": [1, 2, 3]}), "rnml", "mdl", "shd").iloc[0]
    assert (row["mean"], row["low"], row["high"], row["p"]) == (0, 0, 0, 1)


def test_too_few_trials_prove_nothing() -> None:
    """One trial has no p-value below 1; three that all differ by 2 are three tosses of a coin."""
    row = compare(tidy({"rnml": [1], "mdl": [3]}), "rnml", "mdl", "shd").iloc[0]
    assert (row["mean"], row["p"], row["p_holm"]) == (2, 1, 1)
    assert np.isnan(row["needed"])
    row = compare(tidy({"rnml": [1, 2, 3], "mdl": [3, 4, 5]}), "rnml", "mdl", "shd").iloc[0]
    assert (row["p"], row["needed"]) == (2 * 0.5**3, 6)  # 2·½⁶ is the first below 5 %


@pytest.mark.parametrize(("distance", "spread"), [(0.0, 1.0), (1e-17, 1.0), (0.0, 0.0)])
def test_no_number_of_trials_tells_equal_scores_apart(distance: float, spread: float) -> None:
    assert needed(pd.Series([distance]), pd.Series([spread]), 0.05).tolist() == [np.inf]


def test_needed_is_the_fewest() -> None:
    distance, spread = pd.Series([0.1, 0.5, 2.0, 40.0]), pd.Series([1.0, 1.0, 1.0, 1.0])
    for d, found in zip(distance, needed(distance, spread, 0.05), strict=True):
        enough = [n for n in range(2, 1000) if stats.t.ppf(0.975, n - 1) / sqrt(n) <= d]
        assert found == enough[0]


def test_holm_by_hand() -> None:
    p = pd.Series([0.01, 0.04, 0.03, 0.005], index=list("abcd"))
    assert holm(p).to_dict() == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})


def test_table_1_in_both_readings() -> None:
    """Two cells of n = 50 and one of n = 500; the better of AIC and BIC changes with the cell and the trial."""
    records = pd.concat(
        [
            tidy({"rnml": [1, 1], "mdl": [2, 4], "aic": [3, 1], "bic": [2, 6]}, nn=2),
            tidy({"rnml": [2, 2], "mdl": [2, 2], "aic": [5, 9], "bic": [4, 4]}, nn=4),
            tidy({"rnml": [1, 3], "mdl": [0, 3], "aic": [1, 3], "bic": [1, 4]}, n=500),
        ]
    )
    table = table_1(records)
    assert table["mdl"]["mean"].to_dict() == {50: (2 + 0) / 2, 500: -0.5, "all": (2 + 0 - 0.5) / 3}
    # cell means: AIC 2 against BIC 4, then 7 against 4, then 2 against 2.5
    assert table["best of aic/bic"]["mean"].to_dict() == {50: (1 + 2) / 2, 500: 0, "all": 1.0}
    # smaller in each trial: (2, 1), (4, 4), (1, 3)
    smaller = table_1(records, reading="replicate")["best of aic/bic"]["mean"]
    assert smaller.to_dict() == {50: (0.5 + 2) / 2, 500: 0, "all": pytest.approx((0.5 + 2 + 0) / 3)}
    # errors of independent cells: differences (1, 3) and (0, 0) have se 1 and 0
    assert table["mdl"].loc[50, "se"] == pytest.approx(1 / 2)
    assert table["mdl"].loc["all", "trials"] == 6
    with pytest.raises(ValueError, match=r"cell.* or .*replicate"):
        table_1(records, reading="both")


def test_cells_that_are_missing_are_not_averaged_away() -> None:
    """Where one of AIC and BIC lacks a cell there is no best of both, and Table 1 says of how many cells it is."""
    whole = tidy({"rnml": [1, 1], "mdl": [2, 4], "aic": [3, 1], "bic": [2, 6]}, nn=2)
    part = tidy({"rnml": [1, 1], "mdl": [7, 7], "aic": [9, 9]}, nn=4)
    table = table_1(pd.concat([whole, part])).loc["all"]
    assert (table["mdl", "mean"], table["mdl", "cells"]) == ((2 + 6) / 2, 2)
    assert (table["best of aic/bic", "mean"], table["best of aic/bic", "cells"]) == (1, 1)
    one = table_1(pd.concat([whole, part[part["replicate"] == 0]])).loc["all"]
    assert one["mdl", "mean"] == 4
    assert np.isnan(one["mdl", "se"])  # a cell with one trial has no known error


def test_errors_of_cells_with_networks_in_common() -> None:
    """Cells that differ only in n may share networks: then their errors add up within a replicate, not in squares."""
    same = [tidy({"rnml": [0, 0, 0], "mdl": [1, 2, 6]}, n=n) for n in (50, 500)]
    alone = np.std([1, 2, 6], ddof=1) / sqrt(3)
    assert table_1(pd.concat([*same, *_two_more(same)]))["mdl"].loc["all", "se"] == pytest.approx(alone)
    other = tidy({"rnml": [0, 0, 0], "mdl": [1, 2, 6]}, nn=4)
    records = pd.concat([same[0], other, *_two_more([same[0], other])])
    assert table_1(records)["mdl"].loc["all", "se"] == pytest.approx(alone / sqrt(2))


def _two_more(parts: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The records of RNML again as those of AIC and BIC, which Table 1 asks for."""
    return [p[p["scorer"] == "rnml"].assign(scorer=name) for p in parts for name in ("aic", "bic")]


@pytest.mark.parametrize("trials", [5, 100])
def test_intervals_cover_as_they_promise(trials: int) -> None:
    """95 % of intervals contain the true difference, within Monte Carlo error, also for few trials."""
    rng = np.random.default_rng(trials)
    times = 2000
    cells = np.repeat(np.arange(times), trials)  # each repetition is a cell of its own
    common = rng.normal(10, 3, times * trials)
    values = {"rnml": common, "mdl": common + rng.normal(0.5, 1, times * trials)}
    grid = {"m": 8, "nn": cells, "n": 50, "replicate": np.tile(np.arange(trials), times)}
    records = pd.concat([pd.DataFrame(grid | {"scorer": name, "shd": shd}) for name, shd in values.items()])
    table = compare(records, "rnml", "mdl", "shd")
    hits = ((table["low"] <= 0.5) & (table["high"] >= 0.5)).mean()
    assert len(table) == times
    assert abs(hits - 0.95) < 4 * sqrt(0.95 * 0.05 / times)


SETTINGS = {"baseline": "rnml", "over": "mdl", "best_of": ["aic", "bic"], "reading": "cell"}


def test_the_tables_that_records_allow(tmp_path: Path) -> None:
    records = tidy({"aic": [3, 1], "bic": [2, 6], "mdl": [2, 4], "rnml": [1, 1]})
    tables = tables_of(records, SETTINGS)
    assert set(tables) == {"mean_shd", "table_1", *(f"shd_{name}_minus_rnml" for name in ("aic", "bic", "mdl"))}
    short = tables["mean_shd"].short
    assert short is not None
    assert short.iloc[0].tolist() == ["8", "2", "50", "2.00 ± 1.00", "4.00 ± 2.00", "3.00 ± 1.00", "1.00 ± 0.00"]
    write_table(tables["table_1"].frame, tmp_path / "table_1")
    assert pd.read_csv(tmp_path / "table_1.csv")["random mdl mean"].tolist() == [2.0, 2.0]
    assert "| 50 | 2 | 1 |" in (tmp_path / "table_1.md").read_text()
    assert r"\begin{tabular}" in (tmp_path / "table_1.tex").read_text()


def test_partial_records_give_the_tables_they_can() -> None:
    """A score that is missing, a failed trial, a cell with one trial: no wrong mean, and the counts say so."""
    records = tidy({"bic": [2, None, 5], "rnml": [1, 1, None]})
    tables = tables_of(records, SETTINGS)
    assert set(tables) == {"mean_shd", "shd_bic_minus_rnml"}
    assert tables["mean_shd"].frame["random"]["count"].tolist() == [2, 2]
    paired = tables["shd_bic_minus_rnml"].frame["random"].iloc[0]
    assert (paired["count"], paired["mean"]) == (1, 1)
    assert np.isnan(paired["low"])
    assert set(tables_of(tidy({"bic": [2, 3]}), SETTINGS)) == {"mean_shd"}
    assert tables_of(tidy({"bic": [None, None]}), SETTINGS) == {}
    never = tidy({"bic": [None, None], "rnml": [1, 2]})
    assert set(tables_of(never, SETTINGS)) == {"mean_shd"}
    apart = tidy({"bic": [None, 3], "rnml": [1, None]})  # no trial that both finished
    assert tables_of(apart, SETTINGS)["shd_bic_minus_rnml"].frame.empty
