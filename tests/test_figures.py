"""Figures: what is drawn is what was measured, nothing is cut off, and the same records give the same bytes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from benchmark.figures import FIXED, figures_of, looks, write_figure
from tests.synthetic import RANK_CELLS, SHD_CELLS, Cell, draw

SETTINGS = {"baseline": "rnml"}
FOUR: dict[str, float] = {"aic": 9, "bic": 8, "mdl": 7.5, "rnml": 7}
TIED = {"aic": 0.5, "bic": 1.0, "mdl": 1.0}
MANY = {f"a_score_{i}": 5.0 + i for i in range(10)}


def records(cells: Sequence[Cell], means: Mapping[str, float], trials: int = 5, *, rank: bool = False) -> pd.DataFrame:
    return draw(cells, means, trials, np.random.default_rng(0), rank=rank, widths=TIED)


def test_a_score_looks_the_same_everywhere() -> None:
    alone = looks(["rnml", "mine"])
    among = looks([*FIXED, "mine", "zzz"])
    assert alone["rnml"] == among["rnml"]
    assert alone["mine"] == among["mine"]
    assert (among["rnml"]["color"], among["rnml"]["marker"], among["rnml"]["linestyle"]) == FIXED["rnml"]


def test_sixteen_scores_differ_in_colour_and_in_grey() -> None:
    found = looks([*FIXED, *(f"score{i}" for i in range(12))])
    assert len({each["color"] for each in found.values()}) == 16
    assert len({str(each["marker"]) for each in found.values()}) == 16
    assert len(looks(f"score{i}" for i in range(40))) == 40


def points(figure: Figure, panel: int, name: str) -> ErrorbarContainer:
    axis = figure.axes[panel]
    colour = looks([name])[name]["color"]
    found = [
        each for each in axis.containers if isinstance(each, ErrorbarContainer) and each.lines[0].get_color() == colour
    ]
    assert len(found) == 1
    return found[0]


def test_points_bars_and_ribbons_are_the_means_and_their_intervals() -> None:
    data = records(SHD_CELLS, FOUR, trials=20)
    figure = figures_of(data, SETTINGS)["shd_m10"].figure
    assert [axis.get_title() for axis in figure.axes] == [f"m = 10, nn = {nn}" for nn in (2, 4, 6)]
    own = data.query("m == 10 and nn == 4 and scorer == 'bic'").groupby("n")["shd"]
    drawn = points(figure, 1, "bic")
    np.testing.assert_allclose(np.asarray(drawn.lines[0].get_ydata(), dtype=float), own.mean())
    half = 2.0930240544082634 * own.std() / np.sqrt(20)  # t with 19 degrees of freedom
    segments = [np.ptp(segment[:, 1]) for segment in drawn.lines[2][0].get_segments()]
    np.testing.assert_allclose(segments, 2 * half)
    ribbons = [each for each in figure.axes[1].collections if isinstance(each, FillBetweenPolyCollection)]
    assert len(ribbons) == 3  # RNML has no ties
    heights = ribbons[1].get_paths()[0].get_extents()
    np.testing.assert_allclose([heights.y0, heights.y1], [own.mean().min() - 1, own.mean().max() + 1])


def test_ranks_are_on_log_axes_as_in_the_paper() -> None:
    drawn = figures_of(records(RANK_CELLS, {k: 10 * v for k, v in FOUR.items()}, rank=True), SETTINGS)
    assert list(drawn) == ["rank"]
    assert "Figure 1" in drawn["rank"].caption
    for axis, m in zip(drawn["rank"].figure.axes, (4, 5), strict=True):
        assert (axis.get_xscale(), axis.get_yscale(), axis.get_title()) == ("log", "log", f"m = {m}")
        assert [label.get_text() for label in axis.get_xticklabels()][-1] == "5000"


def test_differences_and_what_is_sure() -> None:
    """27 cells in each panel; BIC is worse by 1 in every trial but has some noise, so that all points are filled."""
    data = records(SHD_CELLS, {"rnml": 5, "bic": 8}, trials=30)
    figure = figures_of(data, SETTINGS)["differences"].figure
    (panel,) = figure.axes
    scatter = next(each for each in panel.collections if np.shape(each.get_offsets()) == (27, 2))
    offsets = np.asarray(scatter.get_offsets())
    np.testing.assert_allclose(offsets[:, 0], 3)
    np.testing.assert_array_equal(offsets[:, 1], -np.arange(27))
    assert len({tuple(colour) for colour in scatter.get_facecolors()}) == 1  # type: ignore[attr-defined]


def test_kinds_of_errors_add_up_to_the_shd() -> None:
    data = records(SHD_CELLS, FOUR)
    figure = figures_of(data, SETTINGS)["errors"].figure
    assert len(figure.axes) == 9
    tops = [bar.get_y() + bar.get_height() for bar in figure.axes[0].containers[-1]]
    cell = data.query("m == 8 and nn == 2").groupby(["n", "scorer"])["shd"].mean()
    np.testing.assert_allclose(tops, cell)


CASES: dict[str, tuple[Sequence[Cell], Mapping[str, float]]] = {
    "paper": (SHD_CELLS, FOUR),
    "one score, one cell": ([(6, 2, 50)], {"bic": 3}),
    "one n": ([(6, nn, 50) for nn in (1, 2)], FOUR),
    "uniform DAGs": ([(5, None, n) for n in (50, 500)], FOUR),
    "uniform and not": ([(5, None, 50), (5, 2, 50), (5, 2, 500)], FOUR),
    "five densities": ([(9, nn, n) for nn in (1, 2, 3, 4, 5) for n in (50, 100)], FOUR),
    "fourteen scores": (SHD_CELLS[:9], FOUR | MANY),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_cut_off_or_overlaps_in_any_experiment(case: str) -> None:
    drawn = figures_of(records(*CASES[case]), SETTINGS)
    assert {"errors", f"shd_m{CASES[case][0][0][0]}"} <= set(drawn)
    for each in drawn.values():
        each.figure.draw_without_rendering()
        width, height = each.figure.get_size_inches()
        box = each.figure.get_tightbbox()  # of all that is drawn
        assert (box.x0 > -0.01, box.y0 > -0.01, box.x1 < width + 0.01, box.y1 < height + 0.01) == (True,) * 4
        boxes = [axis.get_tightbbox() for axis in each.figure.axes if axis.get_visible()]
        boxes += [legend.get_window_extent() for legend in each.figure.legends]
        for i, one in enumerate(boxes):
            assert one is not None
            assert one.count_overlaps([other for other in boxes[i + 1 :] if other is not None]) == 0


def test_a_single_trial_and_a_cell_that_failed() -> None:
    """No interval, no warning; a score without data in a cell is marked."""
    data = records([(6, 2, 50), (6, 2, 500)], FOUR, trials=1)
    data.loc[(data["scorer"] == "aic") & (data["n"] == 500), ["shd", "shd_best", "shd_worst", "missing"]] = np.nan
    figures = figures_of(data, SETTINGS)
    texts = [text.get_text() for text in figures["errors"].figure.axes[0].texts]
    assert texts.count(" no data") == 1
    assert figures_of(data.assign(shd=np.nan), SETTINGS) == {}


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    data = records(SHD_CELLS[:9], FOUR)
    for run in ("first", "second"):
        for name, each in figures_of(data, SETTINGS).items():
            write_figure(each.figure, tmp_path / run / name)
    files = sorted((tmp_path / "first").iterdir())
    assert [file.name for file in files] == [
        f"{name}.{kind}" for name in ("differences", "errors", "shd_m8") for kind in ("png", "svg")
    ]
    for file in files:
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes()
        assert b"Matplotlib v" not in file.read_bytes()
