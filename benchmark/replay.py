"""One trial by its coordinates: the true DAG, and what each score learned from the data, printed and drawn."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmark.baselines import Baseline, Contestant
from benchmark.design import Cell, Study
from benchmark.generate import draw_truth
from benchmark.metrics import EdgeErrors, shd
from benchmark.trial import Trials
from scorers.base import IntArray

# Colours of Okabe & Ito, told apart by the colour-blind; the line styles tell them apart in grey.
STYLES: dict[str, dict[str, Any]] = {
    "right": {"edge_color": "#000000", "style": "-", "width": 2.0},
    "reversed": {"edge_color": "#D55E00", "style": "--", "width": 2.0},
    "extra": {"edge_color": "#0072B2", "style": "-.", "width": 2.0},
    "missing": {"edge_color": "#999999", "style": ":", "width": 2.0},
}


def replay(
    study: Study, cell: Cell, replicate: int, scorers: Mapping[str, Contestant], file: Path, console: Console
) -> None:
    """Draw a trial again, let every score learn from it (random ties), print the outcome and draw it to a file."""
    trial = Trials.draw(study, cell, [replicate], draw_truth(study, cell, [replicate]))
    truth = trial.truth[0]
    table = Table("scorer", "score", "of truth", "edges", "right", "reversed", "extra", "missing", "SHD", box=SIMPLE)
    learned = {}
    for name, scorer in scorers.items():
        try:
            if isinstance(scorer, Baseline):
                adjacency, scores = trial.graphs(scorer)[0], ("", "")
            else:
                seen = replace(trial, families=trial.families.seen_by(scorer))
                found = seen.learn(scorer)
                adjacency = found.adjacencies[0, 1]
                scores = (f"{found.scores[0, 1]:.1f}", f"{seen.score_of_truth(scorer)[0]:.1f}")
        except Exception as error:  # whatever a score raises: the others are shown
            console.print(f"{name} failed: {type(error).__name__}: {error}")
            continue
        learned[name] = adjacency
        errors = EdgeErrors.of(truth, adjacency)
        counts = (adjacency.sum(), (truth & adjacency).sum(), errors.reversed, errors.extra, errors.missing, errors.shd)
        table.add_row(name, *scores, *(str(count) for count in counts))
    console.print(f"m = {cell.m}, nn = {cell.nn}, n = {cell.n}, replicate {replicate}: {truth.sum()} true edges")
    console.print(", ".join(f"x{i} → x{j}" for i, j in zip(*truth.nonzero(), strict=True)) or "none")
    console.print(table)
    _draw(truth, learned, file, f"m = {cell.m}, nn = {cell.nn}, n = {cell.n}, replicate {replicate}")
    console.print(f"drawn: {file}")


def _draw(truth: IntArray, learned: Mapping[str, IntArray], file: Path, title: str) -> None:
    """The truth and all learned graphs side by side, nodes in the same places, edges in four styles."""
    figure, axes = plt.subplots(1, 1 + len(learned), figsize=(3.2 * (1 + len(learned)), 3.9), squeeze=False)
    _draw_graph(axes[0, 0], truth, truth)
    axes[0, 0].set_title("truth")
    for axis, (name, adjacency) in zip(axes[0, 1:], learned.items(), strict=True):
        _draw_graph(axis, truth, adjacency)
        axis.set_title(f"{name}: SHD {shd(truth, adjacency)}")
    handles = [
        Line2D([], [], color=s["edge_color"], linestyle=s["style"], linewidth=s["width"], label=name)
        for name, s in STYLES.items()
    ]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), frameon=False)
    figure.suptitle(title)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def _draw_graph(axis: Axes, truth: IntArray, learned: IntArray) -> None:
    true, found = truth.astype(bool), learned.astype(bool)
    kinds = {
        "right": true & found,
        "reversed": found & true.T,
        "extra": found & ~true & ~true.T,
        "missing": true & ~found & ~found.T,
    }
    graph = nx.empty_graph(len(truth), create_using=nx.DiGraph)
    places = nx.circular_layout(graph)
    nx.draw_networkx_nodes(graph, places, ax=axis, node_color="white", edgecolors="black", node_size=330)
    nx.draw_networkx_labels(graph, places, ax=axis, font_size=9)
    for kind, edges in kinds.items():
        pairs = [(int(i), int(j)) for i, j in zip(*edges.nonzero(), strict=True)]
        if pairs:
            graph.add_edges_from(pairs)
            nx.draw_networkx_edges(graph, places, edgelist=pairs, ax=axis, node_size=330, **STYLES[kind])
    axis.set_aspect("equal")
    axis.axis("off")
    axis.margins(0.15)
