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

# The default reading, in the words of `readings.csv`.
DEFAULT = {
    "variant": "rnml",
    "noise": "variance",
    "density": "1",
    "cap": "oracle",
    "ties": "random",
    "shd": "reversal 1",
    "best of": "cell",
    "intercept": "with",
}
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


def readings(results: Path) -> str:
    """Table 1 as printed, under some readings, and under the nearest one on fresh data; and how many are compatible."""
    ledger = {row["id"]: row for row in json.loads((results / "paper" / "tables" / "claims.json").read_text("utf-8"))}
    cells = [(over, n) for over in ("mdl", "best") for n in ("50", "500", "1000", "all")]
    printed = [f"{ledger[f'table-1-{over}-{n}']['printed']:.2f}" for over, n in cells]

    def line(words: str, row: dict[str, str]) -> tuple[str, ...]:
        numbers = (f"{float(row[f'over {over} {n}']):.2f}".replace("-", "−") for over, n in cells)
        return (words, *numbers, f"{float(row['chi2']):.0f}", f"{float(row['p']):.2g}")

    found, fresh = (_rows(results / name / "tables" / "readings.csv") for name in ("readings", "nearest"))
    default = next(row for row in found if all(row[key] == value for key, value in DEFAULT.items()))
    one = {key: value for key, value in DEFAULT.items() if key != "variant"} | {"variant": "rnml_printed_c"}
    changed = next(row for row in found if all(row[key] == value for key, value in one.items()))
    nearest, axes = found[0], list(DEFAULT)
    again = next(row for row in fresh if all(row[key] == nearest[key] for key in axes))
    compatible = sum(float(row["p"]) >= 0.05 for row in found)
    head = ("reading", *(f"{'over MDL' if over == 'mdl' else 'over best'}, {n}" for over, n in cells), "χ²", "p")
    choices = ", ".join(f"{axis} {nearest[axis]}" for axis in axes if nearest[axis] != DEFAULT[axis])
    table = _markdown(
        [
            head,
            ("**printed**", *printed, "", ""),
            line("default: eq. (32), every choice at its default", default),
            line("the same with C as misprinted", changed),
            line(f"the nearest of {len(found):,}: {choices}", nearest),
            line(f"the nearest on fresh data, {again['trials']} replicates", again),
        ]
    )
    return f"Compatible with all eight numbers (p ≥ 0.05): {compatible} of {len(found):,} readings.\n\n{table}"


def fairness(results: Path) -> str:
    """Mean SHD over the 27 cells in some arms."""
    found = _rows(results / "fairness" / "tables" / "arms_shd.csv")
    arms = ("raw", "standardised", "random_signs", "unit")
    scorers = list(dict.fromkeys(row["scorer"] for row in found))
    means = {(row["arm"], row["scorer"]): float(row["random mean"]) for row in found}
    rows: list[tuple[str, ...]] = [("mean SHD", *(arm.replace("_", " ") for arm in arms))]
    order = sorted(scorers, key=lambda name: means.get(("raw", name), float("inf")))
    values = {name: [f"{means[arm, name]:.2f}" if (arm, name) in means else "–" for arm in arms] for name in order}
    return _markdown([*rows, *((f"`{name}`", *of_name) for name, of_name in values.items())])


BLOCKS: dict[str, Callable[[Path], str]] = {"claims": claims, "readings": readings, "fairness": fairness}


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


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
