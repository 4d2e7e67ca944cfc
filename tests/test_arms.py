"""Arms side by side: means by hand, and flips where there are some and where there are none."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.arms import flips, mean_by_arm, sortability, write_arms
from tests.synthetic import manifest


def records_of(shift: dict[str, float], trials: int = 30) -> pd.DataFrame:
    """Records of two cells an arm: bic has an SHD of about 5, mine that of bic plus the arm's shift."""
    rng = np.random.default_rng(0)
    rows = []
    for arm, more in shift.items():
        for n in (50, 500):
            for r in range(trials):
                bic = 5 + rng.normal()
                for name, shd in {"bic": bic, "mine": bic + more + rng.normal()}.items():
                    rows.append({"arm": arm, "m": 8, "nn": 2, "n": n, "replicate": r, "scorer": name, "shd": shd})
    frame = pd.DataFrame(rows).assign(error=None, varsortability=0.9, r2_sortability=0.6)
    for rule in ("best", "worst"):
        frame[f"shd_{rule}"] = frame["shd"] + (1 if rule == "worst" else -1)
    return frame.assign(shd_forward=None, shd_backward=None)


def test_means_over_cells() -> None:
    records = records_of({"raw": 0, "centred": 2})
    table = mean_by_arm(records).frame
    assert list(table.columns.unique(0)) == ["random", "best", "worst"]  # what the records have
    by_hand = records[(records["arm"] == "centred") & (records["scorer"] == "mine")].groupby("n")["shd"].mean().mean()
    assert table.loc[("centred", "mine"), ("random", "mean")] == pytest.approx(by_hand)
    wider = table["worst"]["mean"] - table["best"]["mean"]
    assert wider.tolist() == pytest.approx([2.0] * 4)


def test_a_flip_needs_a_sure_difference_on_both_sides() -> None:
    assert list(flips(records_of({"raw": 2, "centred": -2})).frame.index) == ["bic, mine"]
    row = flips(records_of({"raw": 2, "centred": -2, "unit": 2})).frame.iloc[0]
    assert [part.split(" ")[0] for part in row["first is nearer in"].split(", ")] == ["raw", "unit"]
    assert row["second is nearer in"].startswith("centred (")
    for raw, centred in ((2, 0.05), (2, 1), (0, 0)):
        assert flips(records_of({"raw": raw, "centred": centred})).frame.empty


def test_sortability_is_of_data_sets_not_of_scores() -> None:
    table = sortability(records_of({"raw": 0})).frame
    assert table["varsortability"]["trials"].tolist() == [30, 30]
    assert table["r2_sortability"]["mean"].tolist() == pytest.approx([0.6, 0.6])


def test_all_files_and_what_failed(tmp_path: Path) -> None:
    records = records_of({"raw": 2, "<b>": -2}, trials=5)
    records.loc[0, ["shd", "shd_best", "shd_worst"]] = None
    records.loc[0, "error"] = "no luck"
    write_arms(tmp_path, records, manifest([(8, 2, 50), (8, 2, 500)], ["bic", "mine"], 5))
    assert {file.name for file in (tmp_path / "tables").glob("*.csv")} == {
        f"arms_{name}.csv" for name in ("shd", "flips", "sortability")
    }
    assert (tmp_path / "figures" / "flips.svg").stat().st_size > 10_000
    page = (tmp_path / "report.html").read_text()
    assert "1 results are missing because a score failed" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
