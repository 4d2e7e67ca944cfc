"""One page that says what was run, what came out, and how sure it is: records and manifest in, HTML out.

The page is self-contained: pictures are in it, it loads nothing and runs no script. Its words are made from the
numbers. What the manifest promised and the records do not have is listed. All that comes from configs and data is
escaped by the template.
"""

import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark import claims as rules
from benchmark.analyse import CELL, MEASURES, compare, differences, pooled, wide
from benchmark.claims import VERDICTS, Judged, judge, label, ledger, load_claims, number
from benchmark.figures import figures_of
from benchmark.plain_report import Picture, pictures, studies, templates
from benchmark.records import write_whole
from benchmark.tables import NamedTable, tables_of, write_table

DEPENDS = "depending on how ties are broken"
STATISTICS = ["mean", "low", "high", "p_holm", "needed_holm"]


def write_analysis(
    folder: Path,
    records: pd.DataFrame,
    manifest: Mapping[str, Any],
    settings: Mapping[str, Any],
    claims: Path,
    certificates: Mapping[str, pd.DataFrame | str],
    figures: Callable[[], Sequence[Picture]],
) -> dict[str, NamedTable]:
    """Write tables, the ledger of claims and the report to a results folder.

    Parameters
    ----------
    folder : Path
        Where `tables/` and `report.html` go.
    records : DataFrame
        One row for each trial and score.
    manifest : mapping
        How the records were made.
    settings : mapping
        The config's `analysis`.
    claims : Path
        The file of claims.
    certificates : mapping
        By score, its certificate or why there is none.
    figures : callable
        Returns what `draw_figures` does, which may have to be waited for.

    Returns
    -------
    dict of NamedTable
        The tables, for the terminal.
    """
    tables = tables_of(records, dict(settings))
    for name, table in tables.items():
        write_table(table.frame, folder / "tables" / name)
    measured = {name: c for name, c in certificates.items() if isinstance(c, pd.DataFrame)}
    judged = judge(load_claims(claims), records, measured)
    write_table(ledger(judged), folder / "tables" / "claims")
    write_whole(folder / "tables" / "claims.json", json.dumps(_as_json(judged), indent=1, allow_nan=False).encode())
    html = page(records, manifest, settings, tables, judged, certificates, figures())
    write_whole(folder / "report.html", html.encode())
    return tables


def draw_figures(folder: Path, records: Path, settings: Mapping[str, Any]) -> list[Picture]:
    """Draw the figures of a file of records to a results folder, and return them for `write_analysis`."""
    return pictures(folder, figures_of(pd.read_parquet(records), settings))


def page(
    records: pd.DataFrame,
    manifest: Mapping[str, Any],
    settings: Mapping[str, Any],
    tables: Mapping[str, NamedTable],
    judged: Sequence[Judged],
    certificates: Mapping[str, pd.DataFrame | str],
    figures: Sequence[Picture],
) -> str:
    """The report as HTML."""
    environment = templates()
    environment.filters["trials"] = _trials
    template = environment.get_template("report.html.j2")
    missing = gaps(records, manifest)
    return template.render(
        manifest=manifest,
        studies=studies(manifest),
        scorers=manifest["scorers"],
        summary=summary(records, judged, missing),
        missing=missing.to_dict("records"),
        rules=re.findall(r"^(\w[\w, ]*)\n((?: {4}.+\n?)+)", inspect.cleandoc(rules.__doc__ or ""), re.MULTILINE),
        tested=[each for each in judged if any(f.verdict != "not tested" for f in each.findings.values())],
        untested=[each for each in judged if all(f.verdict == "not tested" for f in each.findings.values())],
        tables=[table for table in tables.values() if table.short is not None],
        comparisons=list(comparisons(records, settings["baseline"])),
        certificates={name: c if isinstance(c, str) else c.to_dict("index") for name, c in certificates.items()},
        figures=figures,
        baseline=settings["baseline"],
    )


def gaps(records: pd.DataFrame, manifest: Mapping[str, Any]) -> pd.DataFrame:
    """What the manifest promised and the records do not have.

    Returns
    -------
    DataFrame
        One row for each cell and score that is not complete: `cell`, `scorer`, trials `expected`, `finished` and
        `failed`, and the first `error`.
    """
    expected: dict[tuple[Any, ...], int] = {}
    for study in manifest["studies"]:
        d = study["design"]
        for nn in [None] if d["dags"] == "uniform" else d["nn"]:
            for m, n, name in ((m, n, name) for m in d["m"] for n in d["n"] for name in manifest["scorers"]):
                expected[m, nn, n, name] = max(d["replicates"], expected.get((m, nn, n, name), 0))
    keys = list(zip(*(records[key] for key in (*CELL, "scorer")), strict=True))
    found = Counter((m, None if pd.isna(nn) else nn, n, name) for m, nn, n, name in keys)
    broken = records[records["error"].notna()]
    failed: dict[tuple[Any, ...], list[str]] = {}
    for m, nn, n, name, error in zip(*(broken[key] for key in (*CELL, "scorer", "error")), strict=True):
        failed.setdefault((m, None if pd.isna(nn) else nn, n, name), []).append(error)
    rows = []
    for key, trials in expected.items():
        errors = failed.get(key, [])
        finished = found[key] - len(errors)
        if finished < trials:
            row = {"cell": label(*key[:3]), "scorer": key[3], "expected": trials, "finished": finished}
            rows.append(row | {"failed": len(errors), "error": errors[0] if errors else ""})
    return pd.DataFrame(rows, columns=["cell", "scorer", "expected", "finished", "failed", "error"])


def summary(records: pd.DataFrame, judged: Sequence[Judged], missing: pd.DataFrame) -> list[str]:
    """What came out, in sentences made from the numbers."""
    cells = len(records[CELL].drop_duplicates())
    trials = len(records[[*CELL, "replicate"]].drop_duplicates())
    scores = list(records["scorer"].unique())
    count = f"{trials:,} data sets in {cells} cell{'s' * (cells > 1)}"
    sentences = [f"{count}, each given to {len(scores)} score{'s' * (len(scores) > 1)}: {', '.join(scores)}."]
    if len(missing):
        lost = int((missing["expected"] - missing["finished"]).sum())
        failed = int(missing["failed"].sum())
        sentences.append(f"Missing results: {lost:,}, of which {failed:,} because a score failed.")
    for measure, rule_columns in MEASURES.items():
        rule, column = next(iter(rule_columns.items()))
        sentences += _standing(records[records[column].notna()], measure, rule, column)
    verdicts = Counter(overall(each) for each in judged)
    if tested := verdicts.total() - verdicts["not tested"]:
        listed = [f"{verdicts[verdict]} {verdict}" for verdict in (*VERDICTS[:3], DEPENDS) if verdicts[verdict]]
        sentences.append(f"Of the readings of the paper's claims {tested} could be tested: {', '.join(listed)}.")
    else:
        sentences.append("None of the paper's claims can be tested with these cells and scores.")
    return sentences


def overall(judged: Judged) -> str:
    """One verdict for all tie rules, or that it depends on them."""
    verdicts = {finding.verdict for finding in judged.findings.values()}
    return verdicts.pop() if len(verdicts) == 1 else DEPENDS


def _standing(records: pd.DataFrame, measure: str, rule: str, column: str) -> list[str]:
    """Who is nearest to the truth: SHD in the mean over cells, ranks at the largest n of each m."""
    sentences = []
    groups = [("", records)] if measure == "SHD" else [(f"m = {m:g}", part) for m, part in records.groupby("m")]
    for name, part in groups:
        if measure != "SHD":
            part = part[part["n"] == part["n"].max()]
            name = f"At {name} and n = {part['n'].max():g}"
        whole = wide(part, column).dropna()  # trials that all scores finished
        if whole.empty:
            continue
        level = whole.groupby(CELL, dropna=False).mean()
        name = name or f"In the mean over {len(level)} cell{'s' * (len(level) > 1)}"
        order = level.mean().sort_values()
        values = ", ".join(f"{value:.2f} for {score}" for score, value in order.items())
        text = f"{name} the {measure} ({rule} ties) is {values}."
        if len(order) > 1:
            first, second = order.index[:2]
            row = pooled(differences(part, first, second, column), []).iloc[0]
            settled = row["low"] > 0 or row["high"] < 0
            difference = f"{number(row['mean'])} [{number(row['low'])}, {number(row['high'])}]"
            text += f" The first two differ by {difference}, which is {'' if settled else 'not '}settled at 95 %."
        sentences.append(text)
    return sentences


def comparisons(
    records: pd.DataFrame, baseline: str
) -> Iterator[tuple[str, list[str], dict[str, dict[str, dict[Any, Any]]]]]:
    """Paired differences to the baseline by cell, for each measure: a title, the other scores, and rows of text."""
    for measure, rule_columns in MEASURES.items():
        rule, column = next(iter(rule_columns.items()))
        measured = records[records[column].notna()]
        others = [name for name in measured["scorer"].unique() if name != baseline]
        if baseline not in set(measured["scorer"]) or not others:
            continue
        rows: dict[str, dict[str, dict[Any, Any]]] = {}
        for other in others:
            table = compare(measured, baseline, other, column).reset_index().reindex(columns=[*CELL, *STATISTICS])
            for row in table.to_dict("records"):
                rows.setdefault(label(row["m"], row["nn"], row["n"]), {})[other] = row
        yield f"{measure}, other − {baseline}, paired, {rule} ties", others, rows


def _trials(value: float) -> str:
    """A number of trials that may be beyond reach."""
    return f"{value:,.0f}" if isfinite(value) else "no number of"


def _as_json(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """The ledger for programs: NaN and infinity become null."""
    found = []
    for each in judged:
        claim = {key: getattr(each.claim, key) for key in ("id", "short", "says", "where", "statistic", "reading")}
        findings = {
            rule: {k: None if isinstance(x, float) and not isfinite(x) else x for k, x in vars(finding).items()}
            for rule, finding in each.findings.items()
        }
        found.append(claim | {"printed": each.claim.arguments.get("printed"), "findings": findings})
    return found
