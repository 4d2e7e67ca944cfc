"""Which tables an experiment has, and how they are written: CSV for programs, Markdown and LaTeX for people."""

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from benchmark.analyse import MEASURES, compare, mean_tables, table_1
from benchmark.records import write_whole


@dataclass(frozen=True)
class NamedTable:
    """A table, its title, and a short form for the terminal: strings, one row for each cell."""

    title: str
    frame: pd.DataFrame
    short: pd.DataFrame | None = None


def tables_of(records: pd.DataFrame, settings: dict[str, Any]) -> dict[str, NamedTable]:
    """All tables that the records allow, by file name.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.
    settings : dict
        The config's `analysis`: baseline, over, best_of, reading.

    Returns
    -------
    dict of NamedTable
        Means for each measure; where the records have the scores, paired comparisons with the baseline and Table 1.
    """
    tables = {}
    for measure, frame in mean_tables(records).items():
        name = "shd" if measure == "SHD" else "rank"
        rule = next(iter(MEASURES[measure]))
        title = f"mean {measure} ± its standard error, {rule} ties"
        tables[f"mean_{name}"] = NamedTable(title, frame, _short(pd.DataFrame(frame[rule])))
        scores = list(frame.index.unique("scorer"))  # that have finished a trial
        baseline = settings["baseline"]
        for other in scores if baseline in scores else ():
            if other != baseline:
                rules = {rule: compare(records, baseline, other, column) for rule, column in MEASURES[measure].items()}
                title = f"{measure}: {other} − {baseline}, paired"
                file = f"{name}_{_in_file_name(other)}_minus_{_in_file_name(baseline)}"
                tables[file] = NamedTable(title, pd.concat(rules, axis=1))
        if measure == "SHD" and {baseline, settings["over"], *settings["best_of"]} <= set(scores):
            rules = {rule: table_1(records, column=column, **settings) for rule, column in MEASURES[measure].items()}
            frame = pd.concat(rules, axis=1)
            title = f"Table 1: SHD by which {baseline} is nearer to the truth, 95 % interval"
            tables["table_1"] = NamedTable(title, frame, _short_table_1(frame))
    return tables


def write_table(frame: pd.DataFrame, file: Path) -> None:
    """Write a table as file.csv, file.md and file.tex."""
    flat = frame.copy()
    flat.columns = [" ".join(column) if isinstance(column, tuple) else column for column in frame.columns]
    flat = flat.reset_index()
    rounded = flat.map(_rounded)
    rounded.columns = [" ".join(column.split()) for column in flat.columns]
    lines = [list(rounded.columns), ["---"] * flat.shape[1], *rounded.to_numpy().tolist()]
    markdown = ["| " + " | ".join(_in_markdown(cell) for cell in line) + " |" for line in lines]
    for kind, text in {
        "csv": flat.to_csv(index=False),
        "md": "\n".join(markdown) + "\n",
        "tex": rounded.to_latex(index=False, escape=True).replace("−", "$-$"),
    }.items():
        write_whole(file.with_name(f"{file.name}.{kind}"), text.encode())


def _short(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean ± standard error, a column for each score."""
    text = frame.apply(lambda row: f"{row['mean']:.2f} ± {row['se']:.2f}", axis=1)
    scores = list(dict.fromkeys(frame.index.get_level_values("scorer")))
    return text.unstack("scorer")[scores].reset_index().map(_plain)  # noqa: PD010


def _short_table_1(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and interval, a column for each comparison, a row for each tie rule and sample size."""
    rows = []
    for rule in frame.columns.unique(0):
        part = frame[rule]
        for n in frame.index:
            row = {"ties": str(rule), "n": str(n)}
            for name in part.columns.unique(0):
                mean, low, high = (part.loc[n, (name, key)] for key in ("mean", "low", "high"))
                row[f"over {name}"] = f"{mean:.2f} [{low:.2f}, {high:.2f}]"
            rows.append(row)
    return pd.DataFrame(rows)


def _rounded(value: object) -> str:
    """A cell on one line; a dash where there is no value."""
    if isinstance(value, float):
        return "–" if pd.isna(value) else f"{value:.4g}"
    return " ".join(str(value).split())


def _in_file_name(name: str) -> str:
    """A score's name, which may be anything, as part of a file's: it cannot lead to another folder."""
    return quote(name, safe="")


def _in_markdown(text: str) -> str:
    """A cell of a table in Markdown, in which names are neither HTML nor the end of the cell."""
    return re.sub(r"([\\|])", r"\\\1", escape(text, quote=False))


def _plain(value: object) -> str:
    return f"{value:.0f}" if isinstance(value, float) else str(value)
