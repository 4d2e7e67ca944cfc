"""Settings side by side: where the ranking of scores depends on how the data were made and how the search was set.

An arm is the same cells under other settings. Within an arm scores are compared on the same data sets; a value of an
arm is the mean over its cells of the cells' means. Two scores *flip* between two arms if one is nearer to the truth in
the one and the other in the other, both differences being significant after Holm's correction over all arms and pairs.
"""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmark.analyse import CELL, CONFIDENCE, differences, holm, p_value, pooled
from benchmark.figures import BARS, RC, Drawn, looks
from benchmark.plain_report import write_page
from benchmark.tables import NamedTable, write_table

RULES = {
    "random": "shd",
    "best": "shd_best",
    "worst": "shd_worst",
    "forward": "shd_forward",
    "backward": "shd_backward",
}
# What the figure shows differences to.
REFERENCE = "bic"


def write_arms(folder: Path, records: pd.DataFrame, manifest: Mapping[str, Any]) -> dict[str, NamedTable]:
    """Write tables, the figure and the page of an experiment with arms; return the tables for the terminal."""
    tables = {
        "arms_shd": mean_by_arm(records),
        "arms_flips": flips(records),
        "arms_sortability": sortability(records),
    }
    for name, table in tables.items():
        write_table(table.frame, folder / "tables" / name)
    write_page(folder, manifest, manifest["experiment"], summary(records, tables), drawn(records), tables)
    return tables


def mean_by_arm(records: pd.DataFrame) -> NamedTable:
    """Mean SHD of each score in each arm, under every tie rule that the records have."""
    columns = {rule: column for rule, column in RULES.items() if records[column].notna().any()}
    parts = {}
    for rule, column in columns.items():
        finished = records[records[column].notna()].assign(difference=lambda part: part[column].astype(float))  # noqa: B023
        parts[rule] = pooled(finished, ["arm", "scorer"])[["mean", "se", "low", "high", "trials"]]
    frame = pd.concat(parts, axis=1)
    means = frame["random"]["mean"].unstack("arm")  # noqa: PD010
    arms, scores = (list(frame.index.unique(level)) for level in ("arm", "scorer"))
    short = means.loc[scores, arms].map(lambda x: "–" if pd.isna(x) else f"{x:.2f}").reset_index()
    return NamedTable("mean SHD over all cells, random ties; standard errors are in the table's file", frame, short)


def flips(records: pd.DataFrame) -> NamedTable:
    """Pairs of scores whose order depends on the arm, under random ties."""
    rows = []
    for arm, part in records.groupby("arm", sort=False):
        scores = list(part.loc[part["shd"].notna(), "scorer"].unique())
        for first, second in combinations(sorted(scores), 2):
            row = pooled(differences(part, first, second, "shd"), []).iloc[0]
            rows.append({"arm": arm, "first": first, "second": second} | row.to_dict())
    table = pd.DataFrame(rows)
    table["p_holm"] = holm(p_value(table["mean"], table["se"], table["freedom"], table["fewest"]))
    sure = table[table["p_holm"] < 1 - CONFIDENCE]
    found = []
    for (first, second), pair in sure.groupby(["first", "second"]):
        nearer, farther = pair[pair["mean"] > 0], pair[pair["mean"] < 0]
        if len(nearer) and len(farther):
            found.append(
                {
                    "scores": f"{first}, {second}",
                    "first is nearer in": _by(nearer),
                    "second is nearer in": _by(farther),
                }
            )
    frame = pd.DataFrame(found, columns=["scores", "first is nearer in", "second is nearer in"])
    return NamedTable(
        "pairs of scores whose order flips between arms (SHD difference, Holm, 5 %)", frame.set_index("scores"), frame
    )


def sortability(records: pd.DataFrame) -> NamedTable:
    """Mean varsortability and R²-sortability of the data of each arm and cell."""
    once = records.drop_duplicates(["arm", *CELL, "replicate"])
    parts = {}
    for column in ("varsortability", "r2_sortability"):
        groups = once[once[column].notna()].groupby(["arm", *CELL], dropna=False, sort=False)[column]
        parts[column] = pd.DataFrame(
            {"mean": groups.mean(), "se": groups.std() / np.sqrt(groups.count()), "trials": groups.count()}
        )
    frame = pd.concat(parts, axis=1)
    of_arm = once.groupby("arm", sort=False)[["varsortability", "r2_sortability"]].mean()
    return NamedTable("mean sortability over all cells", frame, of_arm.map(lambda x: f"{x:.2f}").reset_index())


def summary(records: pd.DataFrame, tables: Mapping[str, NamedTable]) -> list[str]:
    """What came out, in sentences made from the numbers."""
    means = tables["arms_shd"].frame["random"]["mean"]
    sentences = []
    for arm in means.index.unique("arm"):
        order = means[arm].sort_values()
        sentences.append(f"{arm}: " + ", ".join(f"{name} {value:.2f}" for name, value in order.items()) + ".")
    flipped = tables["arms_flips"].frame
    data_sets = len(records.drop_duplicates(["arm", *CELL, "replicate"]))
    intro = [
        f"{data_sets:,} data sets in {means.index.unique('arm').size} arms. Mean SHD over all cells, random ties, the "
        "nearest to the truth first:"
    ]
    verdict = [
        f"The order of {len(flipped)} pairs of scores flips between arms: each of the two is significantly nearer to "
        "the truth in some arm."
        if len(flipped)
        else "No pair of scores flips between arms."
    ]
    failed = records["error"].notna().sum()
    missing = [f"{failed:,} results are missing because a score failed."] if failed else []
    return [*intro, *sentences, *verdict, *missing]


def drawn(records: pd.DataFrame) -> dict[str, Drawn]:
    """The figure: differences to BIC in each arm, of which a flip is a crossing."""
    arms = list(dict.fromkeys(records["arm"]))
    scores = [name for name in dict.fromkeys(records["scorer"]) if name != REFERENCE]
    look = looks([*scores, REFERENCE])
    with mpl.rc_context(RC):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        axis = figure.subplots()
        axis.axhline(0, color="black", linewidth=0.7)
        for i, name in enumerate(scores):
            x, rows = [], []
            for a, arm in enumerate(arms):
                paired = differences(records[records["arm"] == arm], REFERENCE, name, "shd")
                if len(paired):
                    x.append(a + 0.5 * (i / max(len(scores) - 1, 1) - 0.5))
                    rows.append(pooled(paired, []).iloc[0])
            table = pd.DataFrame(rows)
            if len(table):
                errors = np.array([table["mean"] - table["low"], table["high"] - table["mean"]])
                axis.errorbar(
                    x,
                    table["mean"],
                    errors,
                    label=name,
                    capsize=1.5,
                    elinewidth=0.8,
                    linewidth=0.8,
                    **_without_dashes(look[name]),
                )
        axis.set_yscale("symlog", linthresh=1)
        ticks = [-10, -5, -2, -1, -0.5, 0, 0.5, 1, 2, 5, 10, 20]
        axis.set_yticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
        axis.minorticks_off()
        axis.set_xticks(range(len(arms)), [arm.replace("_", " ") for arm in arms], rotation=25, ha="right")
        axis.set_ylabel(f"SHD − SHD of {REFERENCE}, mean over all cells")
        axis.grid(axis="y", color="#DDDDDD", linewidth=0.6)
        axis.set_axisbelow(True)
        figure.legend(
            loc="outside right upper",
            frameon=False,
            title=f"{BARS};\nbelow 0: nearer to the\ntruth than {REFERENCE}",
            title_fontsize=7,
        )
    caption = (
        f"Where the ranking of scores flips: mean paired difference of the SHD to that of {REFERENCE} in each arm "
        "over all cells, random ties. Lines only guide the eye. The scale is linear from −1 to 1, logarithmic beyond."
    )
    return {"flips": Drawn(figure, caption)}


def _without_dashes(look: Mapping[str, Any]) -> dict[str, Any]:
    return {"color": look["color"], "marker": look["marker"], "linestyle": (0, (1, 2))}


def _by(pairs: pd.DataFrame) -> str:
    """The arms of some comparisons, each with its difference."""
    return ", ".join(f"{arm} ({abs(mean):.2f})" for arm, mean in zip(pairs["arm"], pairs["mean"], strict=True))
