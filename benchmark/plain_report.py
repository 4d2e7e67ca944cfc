"""A page in plain order, for experiments that are more than one study: paragraphs, figures, tables, and what was run.

Like the report of a study it is self-contained, loads nothing and runs no script; all that comes from configs and
data is escaped by the template. Templates and the parts that both pages share are files beside this one.
"""

import base64
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmark.claims import number
from benchmark.figures import Drawn, write_figure
from benchmark.records import write_whole
from benchmark.tables import NamedTable

# A figure for a template: its name, caption, width in pixels, and SVG in base64.
Picture = tuple[str, str, int, str]


def write_page(
    folder: Path,
    manifest: Mapping[str, Any],
    title: str,
    paragraphs: Sequence[str],
    figures: Mapping[str, Drawn],
    tables: Mapping[str, NamedTable],
) -> None:
    """Write `report.html` and its figures to a results folder.

    Parameters
    ----------
    folder : Path
        Where `figures/` and `report.html` go.
    manifest : mapping
        How the records were made.
    title : str
        The headline.
    paragraphs : sequence of str
        What came out, in plain text.
    figures : mapping of Drawn
        By file name.
    tables : mapping of NamedTable
        Those with a short form are shown; the whole ones are written by the caller.
    """
    html = (
        templates()
        .get_template("plain_report.html.j2")
        .render(
            manifest=manifest,
            studies=studies(manifest),
            title=title,
            paragraphs=paragraphs,
            figures=pictures(folder, figures),
            tables=[table for table in tables.values() if table.short is not None],
        )
    )
    write_whole(folder / "report.html", html.encode())


def templates() -> Environment:
    """The templates of this package, which escape what they are given."""
    loader = PackageLoader("benchmark", "")
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.filters |= {"number": number, "command": shlex.join, "tight": _tight}
    return found


def pictures(folder: Path, figures: Mapping[str, Drawn]) -> list[Picture]:
    """Write figures; return them for the template."""
    found = []
    for name, each in figures.items():
        write_figure(each.figure, folder / "figures" / name)
        picture = base64.b64encode((folder / "figures" / f"{name}.svg").read_bytes()).decode()
        found.append((name, each.caption, round(96 * each.figure.get_figwidth()), picture))
    return found


def studies(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The settings of each study, for the template: one level, lists as text."""
    flat = [study | study["design"] | study["search"] for study in manifest["studies"]]
    return [
        {key: ", ".join(map(str, x)) if isinstance(x, list | tuple) else x for key, x in study.items()}
        for study in flat
    ]


def _tight(text: str) -> str:
    """Text whose lines do not break within "m = 8" and "95 %"."""
    return text.replace(" = ", "\u00a0=\u00a0").replace(" %", "\u00a0%")
