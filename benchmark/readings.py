"""Which reading of the paper gives Table 1? Tables, a figure and a page, with words made from the numbers.

`benchmark.reading_grid` measures; what is here compares the readings: the nearest ones, what a single change does to
the default reading and to the nearest, and what the readings have in common that are compatible with what is printed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyse import CONFIDENCE
from benchmark.claims import number
from benchmark.plain_report import write_page
from benchmark.reading_figure import draw
from benchmark.reading_grid import (
    AXES,
    MEASURES,
    RIVALS,
    SENTENCES,
    Printed,
    changes,
    default_of,
    grid,
    neighbours,
    rows_of,
)
from benchmark.records import write_whole
from benchmark.tables import NamedTable, write_table

LEVEL = 1 - CONFIDENCE
NEAREST = 10
TITLE = "Which reading of the paper gives Table 1?"


def write_readings(
    folder: Path, records: pd.DataFrame, manifest: Mapping[str, Any], claims: Path
) -> dict[str, NamedTable]:
    """Write tables, figure and page of all readings to a results folder.

    Parameters
    ----------
    folder : Path
        Where `tables/`, `figures/` and `report.html` go.
    records : DataFrame
        One row for each trial and score of each arm.
    manifest : mapping
        How the records were made.
    claims : Path
        The file of claims, for the printed numbers.

    Returns
    -------
    dict of NamedTable
        The tables, for the terminal.
    """
    printed = Printed.of(claims)
    table, expected = grid(records, manifest, printed)
    missing = gaps(records, manifest, printed)
    tables = {}
    if len(table):
        tables["nearest"] = _nearest(table, printed)
        if (default := default_of(table)) is not None:
            tables["one_change"] = _changed(neighbours(table, default), default, "one change to the default reading")
            if len(back := _back(table, default)):
                tables["one_change_back"] = _changed(
                    back, rows_of(table.head(1))[0], "the nearest reading, one choice set back"
                )
        tables["choices"] = _choices(table)
    if len(missing):
        tables["missing"] = NamedTable("missing results", missing, missing.astype(str).reset_index(drop=True))
    for name, each in tables.items():
        write_table(each.frame, folder / "tables" / name)
    # thousands of rows are for programs only, and six digits are more than they have
    csv = table.to_csv(index=False, float_format="%.6g")
    write_whole(folder / "tables" / "readings.csv", csv.encode())
    figures = {"readings": draw(table, printed, LEVEL)} if len(table) else {}
    write_page(folder, manifest, TITLE, statement(table, expected, missing, printed), figures, tables)
    if len(table):  # eight numbers with intervals are too broad for a terminal
        wide = tables["nearest"]
        short = None if wide.short is None else wide.short[["reading", "χ²", "p"]].iloc[1:]
        tables["nearest"] = NamedTable(f"the {len(wide.frame)} nearest readings", wide.frame, short)
    return tables


def gaps(records: pd.DataFrame, manifest: Mapping[str, Any], printed: Printed) -> pd.DataFrame:
    """What the readings need and the records do not have: one row for each arm and score that is not complete."""
    names = [*AXES["variant"], *(name for rivals in RIVALS.values() for name in rivals)]
    needed = records["m"].isin([m for m, _ in printed.networks]) & records["nn"].isin(
        [nn for _, nn in printed.networks]
    )
    done = records[needed & records["n"].isin(printed.sizes) & records["shd"].notna()]
    counts = done.groupby(["arm", "scorer"]).size()
    rows = []
    for study in manifest["studies"]:
        trials = len(printed.networks) * len(printed.sizes) * study["design"]["replicates"]
        finished = {name: int(counts.get((study["arm"], name), 0)) for name in names}
        rows += [
            {"arm": study["arm"], "score": name, "expected": trials, "finished": count}
            for name, count in finished.items()
            if count < trials
        ]
    return pd.DataFrame(rows, columns=["arm", "score", "expected", "finished"])


def statement(table: pd.DataFrame, expected: int, missing: pd.DataFrame, printed: Printed) -> list[str]:
    """What came out, in sentences made from the numbers."""
    found = []
    if len(missing):
        lost = int((missing["expected"] - missing["finished"]).sum())
        arms, scores = missing["arm"].nunique(), missing["score"].nunique()
        found.append(
            f"{lost:,} results of {scores} score{'s' * (scores > 1)} in {arms} arm{'s' * (arms > 1)} are missing. The "
            "rest is analysed; a trial that one of the compared scores did not finish is left out."
        )
    if table.empty:
        return [*found, "No reading can be measured: no arm has two trials in each of the paper's cells by all scores."]
    if len(table) < expected:
        absent = [AXES["ties"][rule] for rule, _ in MEASURES if rule not in set(table["ties"])]
        listed = f" The records have nothing about {', '.join(dict.fromkeys(absent))}." if absent else ""
        found.append(f"{expected - len(table):,} of {expected:,} readings cannot be measured.{listed}")
    good = table[table["p"] >= LEVEL]
    nearest = rows_of(table.head(1))[0]
    how_far = f"χ² = {nearest['chi2']:.1f} with {printed.six.size} degrees of freedom, p = {nearest['p']:.2g}"
    tried = f"{len(table):,} readings, measured with at least {table['trials'].min()} trials a cell,"
    which = f"{changes(nearest)}; all else as in the default reading ({how_far})"
    if len(good):
        found.append(
            f"Of {tried} {len(good):,} are compatible with all eight printed numbers (p ≥ {LEVEL:.2g}). The nearest "
            f"is: {which}. It was selected among all of them, so its p-value flatters it: that a reading is compatible "
            "does not show that it is the paper's."
        )
        found += _in_common(good)
    else:
        found.append(
            f"Of {tried} none is compatible with all eight printed numbers (p ≥ {LEVEL:.2g}), although the nearest was "
            f"selected among all of them. It is: {which}."
        )
    found.append(f"The nearest reading gives {_numbers(nearest, printed)}.")
    default = default_of(table)
    if default is None:
        found.append("The default reading could not be measured.")
    else:
        found.append(
            f"The default reading (eq. 32, τ the variance of the noise, edges with probability nn/(m−1), the true "
            f"in-degree as parent cap, random ties, a reversal counts 1, best of AIC/BIC by cell, all with intercept) "
            f"gives {_numbers(default, printed)}: χ² = {default['chi2']:.1f}, p = {default['p']:.2g}."
        )
        found += _single_changes(table, default)
    found += [_sentences(good if len(good) else table.head(1), "compatible" if len(good) else "nearest", printed)]
    return [*found, _freedom(printed)]


def _in_common(good: pd.DataFrame) -> list[str]:
    """The choices that all compatible readings make, among those that are open."""
    same = [axis for axis in AXES if (good[axis] == good[axis].iloc[0]).all() and axis != "ties"]
    if not same or len(good) == 1:
        return []
    listed = "; ".join(AXES[axis].get(good[axis].iloc[0], str(good[axis].iloc[0])) for axis in same)
    return [f"What all compatible readings have in common: {listed}."]


def _single_changes(table: pd.DataFrame, default: Mapping[str, Any]) -> list[str]:
    found = []
    near = neighbours(table, default)
    if len(near):
        best = rows_of(near)[0]
        word = "reduces" if best["chi2"] < default["chi2"] else "raises the least"
        to = "compatible" if best["p"] >= LEVEL else "not compatible"
        found.append(
            f"The single change to the default reading that {word} χ² {'most ' * (word == 'reduces')}is "
            f"{_from_to(default, best)}: from {default['chi2']:.1f} to {best['chi2']:.1f} (p = {best['p']:.2g}, {to})."
        )
        others = near[near["axis"] != best["axis"]]
        if len(others):
            second = rows_of(others)[0]
            found[-1] += f" No change of another choice comes below {second['chi2']:.1f} ({_from_to(default, second)})."
    back = _back(table, default)
    if len(back):
        worst = rows_of(back)[-1]
        nearest = rows_of(table.head(1))[0]
        found.append(
            f"Of the choices in which the nearest reading is not the default, the one that matters most is "
            f"{_from_to(nearest, worst)}: set back, it raises χ² from {nearest['chi2']:.1f} to {worst['chi2']:.1f}."
        )
    return found


def _back(table: pd.DataFrame, default: Mapping[str, Any]) -> pd.DataFrame:
    """The nearest reading with one of its choices as in the default, least harm first."""
    nearest = rows_of(table.head(1))[0]
    near = neighbours(table, nearest)
    back = [row[row["axis"]] == default[row["axis"]] for row in rows_of(near)]
    near = near[np.array(back, dtype=bool)]
    # from the CPDAG there is a way back under every tie rule: only the default's counts
    return near[near["ties"].isin([default["ties"], nearest["ties"]])]


def _from_to(start: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    axis = row["axis"]
    return " → ".join(AXES[axis].get(each[axis], str(each[axis])) for each in (start, row))


def _sentences(rows: pd.DataFrame, which: str, printed: Printed) -> str:
    cells = rows["rnml smallest in cells"]
    total = len(printed.networks) * len(printed.sizes)
    held = [f"“{text}” holds in {int(rows[key].sum()):,}" for key, text in SENTENCES.items()]
    count = f"{len(rows):,} {which} reading{'s' * (len(rows) > 1)}"
    return (
        f"The sentences, judged by the means of the {count}: {', '.join(held)}. RNML is the smallest in each of the "
        f"{total} cells in {int((cells == total).sum()):,}; at most it is so in {cells.max()} cells."
    )


def _freedom(printed: Printed) -> str:
    means = printed.six.mean(axis=1)
    pairs = " and ".join(f"{a:.4f} for {b:.4f}" for a, b in zip(means, printed.both, strict=True))
    return (
        f"Both printed rows “all” are the means of the three above ({pairs}), here as there. So the eight numbers have "
        f"{printed.six.size} degrees of freedom: the covariance of the eight has rank {printed.six.size}, and χ² is "
        f"taken over the {printed.six.size} numbers of single n, with the measured covariance plus the same at the "
        f"paper's {printed.replicates} replicates a cell for the noise of the printed numbers."
    )


def _numbers(row: Mapping[str, Any], printed: Printed) -> str:
    """The eight numbers beside the printed ones."""
    truth = [*printed.six[0], printed.both[0], *printed.six[1], printed.both[1]]
    parts = [f"{number(row[name])} ({number(true)})" for name, true in zip(printed.names, truth, strict=True)]
    sizes = ", ".join(str(n) for n in printed.sizes)
    half = len(parts) // 2
    return (
        f"over MDL {', '.join(parts[:half])} and over the best of AIC and BIC {', '.join(parts[half:])} at n = {sizes} "
        "and over all (printed)"
    )


def _nearest(table: pd.DataFrame, printed: Printed) -> NamedTable:
    """The nearest readings with their numbers, below the printed ones."""
    first = table.head(NEAREST)
    truth = [*printed.six[0], printed.both[0], *printed.six[1], printed.both[1]]
    rows: list[dict[str, str]] = [
        {"reading": "printed", "χ²": "", "p": ""} | {n: f"{x:.4f}" for n, x in zip(printed.names, truth, strict=True)}
    ]
    for row in rows_of(first):
        numbers = {
            name: f"{number(row[name])} [{number(row[name + ' low'])}, {number(row[name + ' high'])}]"
            for name in printed.names
        }
        rows.append({"reading": changes(row), "χ²": f"{row['chi2']:.2f}", "p": f"{row['p']:.2g}"} | numbers)
    title = f"the {len(first)} nearest readings: what is not as in the default, and the numbers with 95 % intervals"
    return NamedTable(title, first.set_index(list(AXES)), pd.DataFrame(rows))


def _changed(rows: pd.DataFrame, start: Mapping[str, Any], title: str) -> NamedTable:
    """What single changes do to χ²."""
    frame = pd.DataFrame(
        {
            "choice": rows["axis"],
            "from": [AXES[axis].get(start[axis], str(start[axis])) for axis in rows["axis"]],
            "to": [AXES[row["axis"]].get(row[row["axis"]], str(row[row["axis"]])) for row in rows_of(rows)],
            "chi2": rows["chi2"],
            "p": rows["p"],
            "change": rows["chi2"] - start["chi2"],
        }
    ).set_index("choice")
    short = frame.reset_index().assign(
        chi2=[f"{x:.1f}" for x in frame["chi2"]],
        p=[f"{x:.2g}" for x in frame["p"]],
        change=[f"{x:+.1f}".replace("-", "−") for x in frame["change"]],
    )
    short = short.rename(columns={"chi2": "χ²", "change": "change of χ²"})
    return NamedTable(f"{title}, χ² = {start['chi2']:.1f}", frame, short)


def _choices(table: pd.DataFrame) -> NamedTable:
    """For each value of each axis the nearest reading that has it, and how many are compatible."""
    rows = []
    for axis, values in AXES.items():
        present = table[axis].unique()
        for value in [*(x for x in values if x in present), *(x for x in present if x not in values)]:
            own = table[table[axis] == value]
            row = own.iloc[0]
            text = values.get(value, str(value))
            counts = {"readings": len(own), "compatible": int((own["p"] >= LEVEL).sum())}
            rows.append({"choice": axis, "value": text} | counts | {"chi2": row["chi2"], "p": row["p"]})
    frame = pd.DataFrame(rows).set_index(["choice", "value"])
    short = frame.reset_index().astype({"readings": str, "compatible": str})
    short["chi2"] = [f"{x:.1f}" for x in frame["chi2"]]
    short["p"] = [f"{x:.2g}" for x in frame["p"]]
    short = short.rename(columns={"chi2": "χ² of the nearest"})
    return NamedTable("what each choice can come to: the nearest of all readings that make it", frame, short)
