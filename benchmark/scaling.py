"""How one exact search grows with m: time and peak memory, for this project and for other programs, side by side.

All search the same data under Gaussian BIC, and what they find must have the same score. This project goes first, from
few nodes to many; the others share the time that is left. The *floor* is what reading and writing the table of best
parents once, 8·m·2^(m−1) bytes, takes one thread of this machine.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmark.design import Study
from benchmark.figures import COLOURS, MARKERS, RC, write_figure
from benchmark.generate import draw_one
from benchmark.peers import Search, peers, searches
from benchmark.tables import write_table
from scorers import BIC, network_score

# A search of ours is not started if there is not this many times as much time left as the one before took.
GROWTH = 3
# Scores that differ by less than this share are those of the same optimum.
SAME = 1e-6
# Bytes that are streamed at most: the floor of larger tables is in proportion.
STREAM = 1 << 28


def scale(study: Study, seconds: float, peer_seconds: float, say: Callable[[str], object]) -> pd.DataFrame:
    """Time the searches of a study's cells, as far as fits into some seconds.

    Parameters
    ----------
    study : Study
        Its cells differ in m only; the first trial of each is searched.
    seconds : float
        The time for all.
    peer_seconds : float
        The time after which one search by another program is stopped.
    say : callable
        Told what there is to say, as it is found.

    Returns
    -------
    DataFrame
        One row for each program and m: seconds (the median of `runs`), first_seconds (the first run, in fresh memory),
        stopped (the time limit, where it was met), peak_gb, floor_seconds, score, off, note. `off` is the relative
        difference of the score to that of this project; a note says why there is no score, or that it is not the same.
    """
    end = time.monotonic() + seconds
    data = {cell.m: draw_one(study, cell, 0)[1] for cell in sorted(study.design.cells())}
    floor = {m: floor_seconds(m) for m in data}
    others, missing = peers()
    for line in missing:
        say(line)
    optimum: dict[int, float] = {}
    rows = []

    def add(name: str, search: Search, m: int, limit: float) -> float | None:
        found = search(data[m], limit)
        row: dict[str, Any] = {"m": m, "search": name, "seconds": found.seconds, "first_seconds": found.first}
        row |= {
            "stopped": found.stopped,
            "runs": found.runs,
            "peak_gb": found.peak_gb,
            "floor_seconds": floor[m],
            "score": None,
            "off": None,
            "note": found.note,
        }
        if found.adjacency is not None:
            row["score"] = score = network_score(data[m], found.adjacency, BIC())
            row["off"] = abs(score / optimum.setdefault(m, score) - 1)
            if row["off"] > SAME:
                row["note"] = f"NOT THE SAME OPTIMUM as {optimum[m]:.6f}"
        rows.append(row)
        say(_line(row))
        return found.seconds

    ours = searches()
    for search in ours.values():  # kernels that were never compiled here are so now, not in a measured process
        search(data[min(data)], max(0.0, end - time.monotonic()))
    for name, search in ours.items():
        took: float | None = 0.0
        for m in data:
            if took is not None and GROWTH * took > end - time.monotonic():
                say(f"{name}: no time left for m = {m} and more")
                break
            took = add(name, search, m, max(0.0, end - time.monotonic()))
            if took is None:
                break
    for i, (name, search) in enumerate(others.items()):
        until = time.monotonic() + (end - time.monotonic()) / (len(others) - i)
        for m in data:
            limit = min(peer_seconds, until - time.monotonic())
            if limit <= 0:
                say(f"{name}: no time left for m = {m} and more")
            if limit <= 0 or add(name, search, m, limit) is None:
                break
    return pd.DataFrame(rows).set_index(["search", "m"])


def floor_seconds(m: int) -> float:
    """Seconds for one pass that reads and writes 8·m·2^(m−1) bytes, in one thread; warm median."""
    size = 8 * m * (1 << (m - 1))
    table = np.zeros(min(size, STREAM) // 8)
    took = []
    for _ in range(4):
        start = time.perf_counter()
        np.add(table, 1.0, out=table)
        took.append(time.perf_counter() - start)
    return float(np.median(took[1:])) * size / table.nbytes


def write_scaling(folder: Path, frame: pd.DataFrame) -> bool:
    """Write table and figure to a results folder; whether all optima are the same."""
    write_table(frame, folder / "scaling")
    write_figure(scaling_figure(frame), folder / "figures" / "scaling")
    return bool((frame["off"].dropna() <= SAME).all())


def scaling_figure(frame: pd.DataFrame) -> Figure:
    """Seconds and memory against m, on logarithmic scales, with the floor; open arrows where a search was stopped."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        of_time, of_memory = figure.subplots(1, 2)
        stopped = {"marker": "^", "markerfacecolor": "none", "linestyle": "none", "markersize": 7}
        for i, (name, part) in enumerate(frame.reset_index().groupby("search", sort=False)):
            look: Mapping[str, Any] = {"color": COLOURS[i], "marker": MARKERS[i], "label": name}
            of_time.plot(part["m"], part["seconds"], **look)
            of_time.plot(part["m"], part["stopped"], color=COLOURS[i], **stopped)
            of_memory.plot(part["m"], part["peak_gb"], **look)
        floor = frame.groupby("m")["floor_seconds"].first()
        dotted: Mapping[str, Any] = {"color": "#666666", "linestyle": (0, (1, 1.2))}
        of_time.plot(floor.index, floor, **dotted, label="8·m·2$^{m−1}$ bytes: read and written once, and held")
        of_memory.plot(floor.index, 8e-9 * floor.index * 2.0 ** (floor.index - 1), **dotted)
        if frame["stopped"].notna().any():
            of_time.plot([], [], color="#666666", **stopped, label="stopped at a time limit")
        for axes, what in ((of_time, "seconds"), (of_memory, "peak memory of the process, GB")):
            axes.set(xlabel="m", ylabel=what, yscale="log")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        of_memory.set_ylim(bottom=0.02)  # less is less than an interpreter takes
        figure.legend(
            handles=of_time.get_legend_handles_labels()[0], loc="outside lower center", ncols=3, frameon=False
        )
        return figure


def _line(row: Mapping[str, Any]) -> str:
    took = "–" if row["seconds"] is None else f"{row['seconds']:.4g} s"
    peak = "" if row["peak_gb"] is None else f", {row['peak_gb']:.2f} GB"
    return f"m = {row['m']:2}  {row['search']:22} {took}{peak}{', ' * bool(row['note'])}{row['note']}"
