"""README's tables of what came out, made from the committed results: `python -m benchmark.readme`.

A block of README that begins with `<!-- NAME -->` and ends with `<!-- end -->` is replaced by what a function here
makes of the files under `results/`. A test fails where README and results disagree.
"""

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmark.records import write_whole

ROOT = Path(__file__).resolve().parent.parent


def updated(readme: str, results: Path) -> str:
    """The README with its blocks made anew."""
    for name, make in BLOCKS.items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not block.search(readme):
            raise ValueError(f"README has no block <!-- {name} --> … <!-- end -->.")
        text = make(results)
        readme = block.sub(lambda found: f"{found[1]}{text}{found[2]}", readme)  # noqa: B023
    return readme


def claims(results: Path) -> str:
    """The ledger's claims that have a short form, with their verdict under each tie rule."""
    ledger = json.loads((results / "paper" / "tables" / "claims.json").read_text(encoding="utf-8"))
    rows = [("the paper says", "printed", "measured", "random ties", "best ties", "worst ties")]
    for claim in ledger:
        if claim["short"]:
            found = list(claim["findings"].values())
            measured = _interval(found[0]) if claim["statistic"] == "advantage" else ""
            printed = "" if claim["printed"] is None else f"{claim['printed']:.4f}"
            verdicts = [each["verdict"] for each in found]
            rows.append((claim["short"], printed, measured, *(verdicts if len(verdicts) == 3 else verdicts * 3)))
    return _markdown(rows)


def fairness(results: Path) -> str:
    """Mean SHD over the 27 cells in some arms."""
    with (results / "fairness" / "tables" / "arms_shd.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    arms = ("raw", "standardised", "random_signs", "unit")
    scorers = list(dict.fromkeys(row["scorer"] for row in found))
    means = {(row["arm"], row["scorer"]): float(row["random mean"]) for row in found}
    rows: list[tuple[str, ...]] = [("mean SHD", *(arm.replace("_", " ") for arm in arms))]
    order = sorted(scorers, key=lambda name: means.get(("raw", name), float("inf")))
    values = {name: [f"{means[arm, name]:.2f}" if (arm, name) in means else "–" for arm in arms] for name in order}
    return _markdown([*rows, *((f"`{name}`", *of_name) for name, of_name in values.items())])


BLOCKS: dict[str, Callable[[Path], str]] = {"claims": claims, "fairness": fairness}


def _interval(finding: dict[str, Any]) -> str:
    value, low, high = (f"{finding[key]:.2f}".replace("-", "−") for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _markdown(rows: Sequence[tuple[str, ...]]) -> str:
    head, *body = rows
    lines = [head, ("---",) * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    file = ROOT / "README.md"
    write_whole(file, updated(file.read_text(encoding="utf-8"), ROOT / "results").encode())
