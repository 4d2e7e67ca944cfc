"""Pictures of records: DataFrame in, matplotlib figures out, and their PNG and SVG files, the same bytes every time.

A score has one look, colour, marker and line style, in all figures of an experiment. The four of the paper have
fixed ones; others get theirs from their name. Colours are those of Okabe & Ito (2008) and of Tol's muted scheme,
which the colour-blind tell apart; markers and line styles do it in grey.
"""

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from benchmark.analyse import CELL, MEASURES, compare, mean_tables, means
from benchmark.records import write_whole

# the paper's figures that show the SHD, by m
PAPER = {8: "Figure 2", 10: "Figure 3", 15: "Figure 4"}
FIXED = {
    "aic": ("#E69F00", "s", (0, (1, 1.2))),
    "bic": ("#0072B2", "o", (0, (4, 1.5))),
    "mdl": ("#009E73", "^", (0, (5, 1.2, 1, 1.2))),
    "rnml": ("#D55E00", "D", (0, ())),
}
COLOURS = (
    *("#000000", "#56B4E9", "#CC79A7", "#332288", "#882255", "#999933"),
    *("#44AA99", "#AA4499", "#661100", "#117733", "#888888", "#6699CC"),
)
MARKERS: tuple[Any, ...] = (*"PXv<>p*d8", (4, 1, 45), (3, 1, 0), (6, 1, 0))  # the last three are stars
DASHES = ((0, ()), (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)), (0, (7, 2)))
ERRORS = {"missing": ("#BBBBBB", ""), "extra": ("#56B4E9", "/////"), "reversed": ("#D55E00", "....")}
RC: dict[Any, Any] = {
    "svg.hashsalt": "gaussbench",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.5,
    "savefig.dpi": 200,
}
BARS = "bars: 95 % Monte Carlo intervals"


@dataclass(frozen=True)
class Drawn:
    """A figure and what it shows, in words."""

    figure: Figure
    caption: str


def looks(scorers: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and line style of each score.

    A name that is not of the paper has a place of its own in the palette, by its hash; where two names have the same,
    the later in the alphabet moves on. Up to 12 such scores all differ; more repeat colours with other markers.
    """
    found: dict[str, dict[str, Any]] = {}
    taken: set[int] = set()
    for name in sorted(scorers):
        if name in FIXED:
            colour, marker, dashes = FIXED[name]
        else:
            place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
            size = len(COLOURS) * (1 + len(taken) // len(COLOURS))
            place = next(p % size for p in range(place % size, place % size + size) if p % size not in taken)
            taken.add(place)
            turn = place // len(COLOURS)
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[(place + turn) % len(MARKERS)]
            dashes = DASHES[(place + turn) % len(DASHES)]
        found[name] = {"color": colour, "marker": marker, "linestyle": dashes}
    return found


def figures_of(records: pd.DataFrame, settings: Mapping[str, Any]) -> dict[str, Drawn]:
    """All figures that the records allow, by file name.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.
    settings : mapping
        The config's `analysis`: the baseline of the differences.

    Returns
    -------
    dict of Drawn
        Means against n for each measure; where there is SHD, differences to the baseline and kinds of errors.
    """
    with mpl.rc_context(RC):
        found = {}
        look = looks(records["scorer"].unique())
        tables = mean_tables(records)
        if "rank of the truth" in tables:
            found["rank"] = _rank(tables["rank of the truth"].reset_index(), look)
        if "SHD" in tables:
            table = tables["SHD"].reset_index()
            for m in table["m"].unique():
                found[f"shd_m{m}"] = _shd(table[table["m"] == m], int(m), look)
            shd = records[records["shd"].notna()]
            scores = [name for name in look if name in set(shd["scorer"])]
            baseline = settings["baseline"]
            if baseline in scores and len(scores) > 1:
                found["differences"] = _differences(shd, baseline, [s for s in scores if s != baseline], look)
            found["errors"] = _errors(shd, scores)
        return found


def write_figure(figure: Figure, file: Path) -> None:
    """Write a figure as file.png and file.svg, without dates or versions."""
    with mpl.rc_context(RC):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # what was laid out once stays, for both files
    for kind, metadata in {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}.items():
        buffer = io.BytesIO()
        with mpl.rc_context(RC):
            figure.savefig(buffer, format=kind, metadata=metadata)
        write_whole(file.with_suffix(f".{kind}"), buffer.getvalue())


def _rank(table: pd.DataFrame, look: Mapping[str, dict[str, Any]]) -> Drawn:
    sizes = table["m"].unique()
    densities = "nn" in table
    panels = [(f"m = {m}", table[table["m"] == m]) for m in sizes]
    if densities:
        panels = [
            (f"{name}, nn = {nn:g}", part[part["nn"] == nn]) for name, part in panels for nn in part["nn"].unique()
        ]
    figure = _curves(panels, "rank of the truth", look, log=True)
    paper = " (the paper's Figure 1)" if set(sizes) <= {4, 5} else ""
    caption = f"Mean rank of the generating network among all DAGs against the sample size{paper}. Lower is better."
    return Drawn(figure, caption + _explained(table, "rank of the truth"))


def _shd(table: pd.DataFrame, m: int, look: Mapping[str, dict[str, Any]]) -> Drawn:
    panels = [(f"m = {m}", table)]
    if "nn" in table:
        panels = [
            (f"m = {m}, nn = {nn:g}", table[table["nn"] == nn]) for nn in sorted(table["nn"].dropna().unique())
        ] + [(f"m = {m}, uniform DAGs", part) for part in [table[table["nn"].isna()]] if len(part)]
    figure = _curves(panels, "SHD", look, log=False)
    paper = f" (the paper's {PAPER[m]})" if m in PAPER else ""
    caption = f"Mean SHD between the learned and the generating network against the sample size, m = {m}{paper}."
    return Drawn(figure, caption + " Lower is better." + _explained(table, "SHD"))


def _explained(table: pd.DataFrame, measure: str) -> str:
    first = next(iter(MEASURES[measure]))
    bands = " Ribbons: from the best to the worst way of breaking ties." if _tied(table).any() else ""
    return f" Points: {first} ties, moved sideways a little where they would overlap; {BARS}.{bands}"


def _tied(table: pd.DataFrame) -> pd.Series:
    return table[("worst", "mean")] > table[("best", "mean")]


def _curves(
    panels: Sequence[tuple[str, pd.DataFrame]], measure: str, look: Mapping[str, dict[str, Any]], *, log: bool
) -> Figure:
    """Means against n, a panel for each table: points with intervals, lines, and ribbons for tie bands."""
    rule = next(iter(MEASURES[measure]))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    scores = [name for name in look if any((part["scorer"] == name).any() for _, part in panels)]
    tied = any(_tied(part).any() for _, part in panels)
    figure = Figure(figsize=(7.2 if columns > 1 else 4.5, 2.5 * rows + 0.9), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=False if log else "row").ravel()
    for axis, (title, part) in zip(axes, panels, strict=False):
        _panel(axis, part, rule, look, scores)
        axis.set_title(title)
        axis.set_xlabel("sample size n")
        if log:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.yaxis.set_minor_locator(NullLocator())
        axis.grid(axis="y", color="#DDDDDD", linewidth=0.5, zorder=0)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis in axes[: len(panels) : columns]:
        axis.set_ylabel(f"mean {measure}")
        if not log:
            axis.set_ylim(bottom=0)
    entries = [Line2D([], [], **look[name], label=name) for name in scores]
    letters = max(len(name) for name in scores)
    fit = int(figure.get_figwidth() / (0.65 + 0.075 * letters))  # entries beside each other
    bands = "; ribbons: from best to worst ties" if tied else ""
    legend: dict[str, Any] = {"ncols": max(1, min(len(scores), fit)), "title": BARS + bands, "frameon": False}
    figure.legend(handles=entries, loc="outside lower center", handlelength=3.2, **legend)
    return figure


def _panel(
    axis: Axes, part: pd.DataFrame, rule: str, look: Mapping[str, dict[str, Any]], scores: Sequence[str]
) -> None:
    sizes = np.sort(part["n"].unique().astype(float))
    axis.set_xscale("log")
    gap = np.diff(np.log(sizes)).min() if len(sizes) > 1 else 1.0
    step = min(0.45 * gap / len(scores), 0.05 * np.ptp(np.log(sizes)) if len(sizes) > 1 else 0.1)
    for i, name in enumerate(scores):
        own = part[part["scorer"] == name].sort_values("n")
        if own.empty:
            continue
        n = own["n"].to_numpy(dtype=float) * np.exp(step * (i - (len(scores) - 1) / 2))
        mean, low, high = (own[(rule, key)].to_numpy(dtype=float) for key in ("mean", "low", "high"))
        style = look[name]
        best, worst = (own[(end, "mean")].to_numpy(dtype=float) for end in ("best", "worst"))
        if (worst > best).any():
            if len(n) > 1:
                axis.fill_between(n, best, worst, color=style["color"], alpha=0.13, linewidth=0, zorder=1)
            else:
                axis.plot([n[0], n[0]], [best[0], worst[0]], color=style["color"], alpha=0.2, linewidth=7, zorder=1)
        axis.errorbar(
            n,
            mean,
            yerr=np.nan_to_num([mean - low, high - mean]),  # one trial has no interval: no bar
            elinewidth=0.8,
            capsize=1.5,
            markeredgecolor="white",
            markeredgewidth=0.4,
            zorder=3,
            **style,
        )
    axis.set_xlim(sizes[0] * np.exp(-0.5 * gap), sizes[-1] * np.exp(0.5 * gap))
    shown = sizes[:: -(-len(sizes) // 8)]
    axis.set_xticks(shown, [f"{n:g}" for n in shown], fontsize=7)
    axis.xaxis.set_minor_locator(NullLocator())


def _differences(records: pd.DataFrame, baseline: str, others: Sequence[str], look: Mapping[str, Any]) -> Drawn:
    """A forest plot: every cell's paired difference to the baseline, a panel for each other score."""
    columns = min(4, len(others))
    rows = -(-len(others) // columns)
    tables = {
        name: {rule: compare(records, baseline, name, c) for rule, c in MEASURES["SHD"].items()} for name in others
    }
    cells = records[CELL].drop_duplicates().sort_values(CELL, ignore_index=True)
    places = {_key(cell): -i for i, cell in enumerate(cells.itertuples(index=False))}
    figure = Figure(
        figsize=(1.7 + 1.75 * max(columns, 2), (0.16 * len(cells) + 0.75) * rows + 0.75), layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True, sharex=True).ravel()
    for axis, name in zip(axes, others, strict=False):
        first, best, worst = (table.reset_index() for table in tables[name].values())
        y = [places[_key(cell)] for cell in first.reindex(columns=CELL).itertuples(index=False)]
        colour = look[name]["color"]
        axis.hlines(y, best["mean"], worst["mean"], color=colour, alpha=0.25, linewidth=4, zorder=2)
        bars = np.nan_to_num([first["mean"] - first["low"], first["high"] - first["mean"]])
        axis.errorbar(first["mean"], y, xerr=bars, fmt="none", ecolor=colour, elinewidth=0.9, zorder=3)
        sure = (first["p_holm"] < 0.05).to_numpy()
        faces = np.where(sure, colour, "white")
        axis.scatter(
            first["mean"], y, c=faces, edgecolors=colour, marker=look[name]["marker"], s=11, linewidths=0.8, zorder=4
        )
        axis.axvline(0, color="black", linewidth=0.7, zorder=1)
        axis.set_title(name)
        axis.set_ylim(-len(cells) + 0.4, 0.6)
        for i in range(1, len(cells)):
            if cells["m"][i] != cells["m"][i - 1]:
                axis.axhline(0.5 - i, color="#BBBBBB", linewidth=0.5, zorder=0)
        axis.grid(axis="x", color="#DDDDDD", linewidth=0.5, zorder=0)
        axis.set_xlabel(f"SHD − SHD of {baseline}")
        axis.tick_params(axis="x", labelbottom=True)
        axis.tick_params(axis="y", labelsize=6.5)
    axes[0].set_yticks(list(places.values()), [_label(cell) for cell in cells.itertuples(index=False)])
    for axis in axes[len(others) :]:
        axis.set_visible(False)
    title = f"right of 0: {baseline} is nearer to the truth; {BARS}"
    grey: dict[str, Any] = {"color": "#555555", "linestyle": "none", "marker": "o", "markersize": 4}
    entries: list[Any] = [
        Line2D([], [], **grey, label="differs from 0 (Holm, 5 %)"),
        Line2D([], [], **grey, markerfacecolor="white", label="does not"),
        Line2D([], [], color="#555555", alpha=0.3, linewidth=4, label="best to worst ties"),
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=3, frameon=False, title=title)
    caption = (
        f"Paired differences in SHD to {baseline} in every cell, on the same data sets; {BARS}. Filled: different from "
        "zero after Holm's correction over the cells. Light lines: from best to worst ties, for both scores alike."
    )
    return Drawn(figure, caption)


def _errors(records: pd.DataFrame, scores: Sequence[str]) -> Drawn:
    """Stacked bars: missing, extra and reversed edges of each score; rows are m, columns nn, groups n."""
    records = records.assign(nn=records["nn"].astype(float).fillna(0))  # 0 stands for uniform DAGs here
    sizes, densities = sorted(records["m"].unique()), sorted(records["nn"].unique())
    samples = sorted(records["n"].unique())
    table = {kind: means(records, kind, [*CELL, "scorer"])["mean"] for kind in ERRORS}
    bars = [(n, name) for n in samples for name in scores]
    x = np.array([samples.index(n) * (len(scores) + 1) + scores.index(name) for n, name in bars], dtype=float)
    width = max(2.3, 0.13 * (x[-1] + 2))
    columns = len(densities) if width < 3.5 else 1  # many scores need all the breadth
    panels = [(m, nn) for m in sizes for nn in densities]
    rows = len(panels) // columns
    figure = Figure(figsize=(max(0.5 + width * columns, 4.2), 0.5 + 2.0 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey="row").ravel()
    for axis, (m, nn) in zip(axes, panels, strict=True):
        bottom = np.zeros(len(bars))
        for kind, (colour, hatch) in ERRORS.items():
            height = np.array([table[kind].get((m, nn, n, name), 0.0) for n, name in bars])
            axis.bar(x, height, 0.85, bottom, color=colour, hatch=hatch, edgecolor="#333333", linewidth=0.3)
            bottom += height
        for place, (n, name) in zip(x, bars, strict=True):
            if (m, nn, n, name) not in table["missing"].index:
                axis.text(place, 0, " no data", rotation=90, ha="center", va="bottom", fontsize=5.5)
        axis.set_xticks(x, [name for _, name in bars], rotation=90, fontsize=5.5)
        axis.tick_params(axis="x", length=0, pad=1)
        axis.margins(x=0.02)
        axis.set_title(f"m = {m}" + (f", nn = {nn:g}" if nn else ""), pad=12)
        for k, n in enumerate(samples):
            place = (k * (len(scores) + 1) + (len(scores) - 1) / 2, 1.01)
            axis.text(*place, f"n = {n}", ha="center", va="bottom", fontsize=6, transform=axis.get_xaxis_transform())
    for axis in axes[::columns]:
        axis.set_ylabel("mean number of edges")
    entries = [Patch(facecolor=c, hatch=h, edgecolor="#333333", linewidth=0.3, label=k) for k, (c, h) in ERRORS.items()]
    figure.legend(handles=entries, loc="outside lower center", ncols=3, frameon=False)
    caption = "What the SHD consists of: mean numbers of missing, extra and reversed edges, random ties."
    return Drawn(figure, caption)


def _key(cell: tuple[Any, ...]) -> tuple[float, ...]:
    return tuple(-1.0 if pd.isna(x) else float(x) for x in cell)


def _label(cell: tuple[Any, ...]) -> str:
    m, nn, n = cell
    return f"m={m:g} " + ("" if pd.isna(nn) else f"nn={nn:g} ") + f"n={n:g}"
