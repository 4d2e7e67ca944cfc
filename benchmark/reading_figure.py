"""The picture of all readings of Table 1: which numbers they give, and what each choice does to the distance."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import chi2

from benchmark.figures import BARS, RC, Drawn, looks
from benchmark.reading_grid import AXES, Printed, changes, default_of, neighbours, rows_of

COLUMNS = {"mdl": "advantage over MDL", "best": "advantage over the best of AIC and BIC"}
# a label, how it looks, and the reading
Shown = tuple[str, dict[str, Any], Mapping[str, Any]]
TITLES = {
    "variant": "RNML",
    "noise": "noise",
    "density": "density",
    "cap": "parent cap",
    "ties": "ties",
    "shd": "SHD",
    "best of": "best of",
    "intercept": "rivals",
}


def draw(table: pd.DataFrame, printed: Printed, level: float) -> Drawn:
    """Draw the printed numbers among those of the nearest readings, and the distances by the value of each axis.

    Parameters
    ----------
    table : DataFrame
        All readings, nearest first; at least one.
    printed : Printed
        Table 1.
    level : float
        A reading is compatible if its p-value is not smaller.
    """
    critical = float(chi2.isf(level, printed.six.size))
    with mpl.rc_context(RC):
        figure = Figure(figsize=(7.2, 9.6), layout="constrained")
        upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=(4.8, 4.9)).ravel()
        shown = _shown(table)
        axes = upper.subplots(1, 2, sharey=True)
        for axis, (rival, title) in zip(axes, COLUMNS.items(), strict=True):
            _numbers(axis, rival, shown, printed)
            axis.set_title(title)
        entries = [Line2D([], [], color="black", linewidth=2, label="printed in the paper")]
        entries += [Line2D([], [], **style, label=text) for text, style, _ in shown]
        upper.legend(handles=entries, loc="outside lower center", frameon=False, fontsize=7, title=BARS)
        _strips(lower.subplots(), table, critical)
    caption = (
        "Above: the eight numbers of Table 1 as printed (black lines), under the default reading and after the one "
        "change to it that helps most (hollow), and under the nearest reading with each variant of RNML; right of 0 "
        "RNML is nearer to the truth. The printed numbers carry noise of their own, that "
        f"of {printed.replicates} replicates a cell. "
        "Below: the distances χ² of all readings with some choice: the nearest (dot), the middle half (thick line), "
        "all (thin line). A choice can be behind Table 1 only if its dot lies in the shaded region, "
        f"χ² ≤ {critical:.1f}. Bold: the default."
    )
    return Drawn(figure, caption)


def _shown(table: pd.DataFrame) -> list[Shown]:
    """The readings above: the default, the best single change to it, and the nearest with each variant of RNML."""
    look = {name: style | {"linestyle": "none"} for name, style in looks(AXES["variant"]).items()}
    found: list[Shown] = []
    nearest = table.drop_duplicates("variant")
    if (default := default_of(table)) is not None:
        hollow = look[default["variant"]] | {"markerfacecolor": "white"}
        found.append((f"χ² = {default['chi2']:.1f}: default reading", hollow, default))
        one = neighbours(table, default).head(1).drop(columns="axis")
        for row in rows_of(one[~one.index.isin(nearest.index)]):
            text = f"χ² = {row['chi2']:.1f}: {changes(row)} (one change to the default)"
            found.append((text, look[row["variant"]] | {"markerfacecolor": "white"}, row))
    found += [(f"χ² = {row['chi2']:.1f}: {changes(row)}", look[row["variant"]], row) for row in rows_of(nearest)]
    return found


def _numbers(axis: Axes, rival: str, shown: list[Shown], printed: Printed) -> None:
    names = [name for name in printed.names if name.startswith(f"over {rival} ")]
    values = [*printed.six[list(COLUMNS).index(rival)], printed.both[list(COLUMNS).index(rival)]]
    y = -np.arange(len(names), dtype=float)
    axis.vlines(values, y - 0.42, y + 0.42, color="black", linewidth=2, zorder=2)
    for i, (_, style, row) in enumerate(shown):
        mean, low, high = (np.array([row[name + end] for name in names]) for end in ("", " low", " high"))
        place = y + 0.72 * (0.5 - (i + 0.5) / len(shown))
        axis.errorbar(mean, place, xerr=[mean - low, high - mean], elinewidth=0.8, zorder=3, **style)
    for edge in y[1:] + 0.5:
        axis.axhline(edge, color="#DDDDDD", linewidth=0.5, zorder=0)
    axis.axvline(0, color="#888888", linewidth=0.7, zorder=1)
    axis.set_yticks(y, ["all n" if name.endswith("all") else f"n = {name.split()[-1]}" for name in names])
    axis.set_ylim(y[-1] - 0.5, 0.5)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel("SHD of the other − SHD of RNML")
    axis.grid(axis="x", color="#EEEEEE", linewidth=0.5, zorder=0)


def _strips(axis: Axes, table: pd.DataFrame, critical: float) -> None:
    """A line for each value of each axis: from the nearest to the farthest reading that has it."""
    y, places, labels, bold = 0.0, [], [], []
    for name, values in AXES.items():
        groups: Mapping[Any, pd.Series] = dict(list(table.groupby(name)["chi2"]))
        top = y
        for value, text in values.items():
            if value not in groups or value == "any":
                continue
            low, first, third, high = np.quantile(groups[value], [0, 0.25, 0.75, 1])
            axis.hlines(y, low, high, color="#999999", linewidth=0.8, zorder=2)
            axis.hlines(y, first, third, color="#56B4E9", linewidth=4, zorder=3)
            axis.plot(low, y, "o", color="#0072B2" if low <= critical else "#D55E00", zorder=4)
            places.append(y)
            labels.append(text)
            bold.append(value == next(iter(values)))
            y -= 1
        axis.annotate(
            TITLES[name], (1.01, (top + y + 1) / 2), xycoords=("axes fraction", "data"), va="center", fontsize=7
        )
        axis.axhline(y + 0.3, color="#DDDDDD", linewidth=0.5, zorder=0)
        y -= 0.4
    axis.set_yticks(places, labels, fontsize=7)
    for tick, is_bold in zip(axis.get_yticklabels(), bold, strict=True):
        tick.set_fontweight("bold" if is_bold else "normal")
    axis.set_ylim(y + 0.7, 0.7)
    axis.tick_params(axis="y", length=0)
    axis.set_xscale("log")
    axis.set_xlim(table["chi2"].min() / 1.5, table["chi2"].max() * 1.2)
    axis.axvspan(axis.get_xlim()[0], critical, color="#009E73", alpha=0.12, linewidth=0, zorder=0)
    axis.set_xlabel("distance χ² from the printed numbers (6 degrees of freedom); shaded: compatible with them")
