"""What a paper says, judged by records: each claim with its statistic, interval and verdict, under every tie rule.

The claims are data, `conf/claims/*.yaml`. Every comparison is paired within trials; a group's value is the mean over
its cells of the cells' means. The verdicts, at the level of 5 %:

advantage
    A printed mean difference. It is a mean over data sets, too, so it gets the standard error that our spread has at
    the paper's number of replicates. *Contradicted* if measured − printed differs from zero. Otherwise *reproduced* if
    the measured advantage differs from zero on the printed side; if it does not, nothing can be told from no
    advantage, and the claim is *undecided*.
better, faster
    One score before another in each group of cells: a smaller mean, or a steeper line through ln(mean) against ln n.
    All pairs and groups are one family, corrected by Holm. *Reproduced* if every comparison is significant as claimed,
    *contradicted* if one is significantly the other way round, otherwise *undecided*.
similar
    The ratio of two means stays within a margin that the claim names. *Reproduced* if in every cell the ratio is
    significantly inside (two one-sided tests), *contradicted* if in some cell, after Holm, it is significantly outside.
certificate
    A property of scores. *Reproduced* if no case of `scorers.certify` refuted it, otherwise *contradicted*.

An undecided claim says how many trials a cell would settle it, if means and spreads stay as they are. A claim whose
scores or cells are not in the records is *not tested*.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import OmegaConf
from scipy.special import stdtrit

from benchmark.analyse import CELL, CONFIDENCE, MEASURES, holm, needed, p_value, pooled, wide

LEVEL = 1 - CONFIDENCE
VERDICTS = ("reproduced", "contradicted", "undecided", "not tested")


@dataclass(frozen=True)
class Claim:
    """A sentence or number, where it is printed, and the statistic with its arguments that tests it."""

    id: str
    says: str
    where: str
    statistic: str
    cells: Sequence[tuple[int, int | None, int]]
    arguments: Mapping[str, Any]
    reading: str = ""
    short: str = ""

    @property
    def scorers(self) -> list[str]:
        """The scores that it is about."""
        a = self.arguments
        names = [*a.get("scorers", ()), *(name for pair in a.get("pairs", ()) for name in pair)]
        return list(dict.fromkeys([*names, *([a["of"], *a["over"]] if "of" in a else ())]))

    @property
    def measure(self) -> str:
        """What is compared: SHD, or the rank of the truth."""
        return str(self.arguments.get("measure", "SHD"))


@dataclass(frozen=True)
class Finding:
    """What records say about a claim under one tie rule.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    measured : str
        What was found, in words; what is missing, if it was not tested.
    value, low, high : float
        The statistic with its 95 % interval, in the comparison that decided; NaN where there is none.
    trials : int
        The fewest trials in a cell.
    needed : float
        Trials a cell that would settle an undecided claim; inf if none would, NaN if that is not the question.
    """

    verdict: str
    measured: str
    value: float = nan
    low: float = nan
    high: float = nan
    trials: int = 0
    needed: float = nan


@dataclass(frozen=True)
class Judged:
    """A claim with its findings by tie rule; "any" where ties do not matter."""

    claim: Claim
    findings: Mapping[str, Finding] = field(default_factory=dict)


def load_claims(file: Path) -> list[Claim]:
    """The claims of a file."""
    content: Any = OmegaConf.to_container(OmegaConf.load(file))
    claims = []
    for each in content["claims"]:
        values = dict(each)
        grid = content["cells"][values.pop("cells")] if "cells" in values else {"m": (), "nn": (), "n": ()}
        cells = [(m, nn, n) for m in grid["m"] for nn in grid["nn"] for n in grid["n"]]
        known = {key: values.pop(key) for key in ("id", "says", "where", "statistic")}
        if known["statistic"] not in (*STATISTICS, "certificate", "none"):
            raise ValueError(f"{file}: {known['id']} has the statistic {known['statistic']!r}, which there is not.")
        known |= {key: values.pop(key) for key in ("reading", "short") if key in values}
        claims.append(Claim(**known, cells=cells, arguments=values))
    return claims


def judge(claims: Sequence[Claim], records: pd.DataFrame, certificates: Mapping[str, pd.DataFrame]) -> list[Judged]:
    """Judge claims under each tie rule.

    Parameters
    ----------
    claims : sequence of Claim
        What is said.
    records : DataFrame
        One row for each trial and score.
    certificates : mapping of DataFrame
        What `scorers.certify` found, by score.
    """
    columns = {column for rules in MEASURES.values() for column in rules.values()}
    trials = {column: wide(records, column).reset_index().astype(dict.fromkeys(CELL, float)) for column in columns}
    judged = []
    for claim in claims:
        if claim.statistic == "none":
            findings = {"any": Finding("not tested", claim.reading)}
        elif claim.statistic == "certificate":
            findings = {"any": _certificate(claim, certificates)}
        else:
            rules = MEASURES[claim.measure]
            findings = {rule: _finding(claim, trials[column]) for rule, column in rules.items()}
        judged.append(Judged(claim, findings))
    return judged


def ledger(judged: Sequence[Judged]) -> pd.DataFrame:
    """All findings as a table: one row for each claim and tie rule."""
    rows = [
        {
            "claim": each.claim.id,
            "ties": rule,
            "says": each.claim.says,
            "where": each.claim.where,
            "reading": each.claim.reading,
            "printed": each.claim.arguments.get("printed", nan),
            **vars(finding),
        }
        for each in judged
        for rule, finding in each.findings.items()
    ]
    return pd.DataFrame(rows).set_index(["claim", "ties"])


def _finding(claim: Claim, trials: pd.DataFrame) -> Finding:
    """Judge a claim by its own cells and scores, if they are all there, with two common trials a cell at least."""
    cells = pd.DataFrame(claim.cells, columns=CELL).astype(float)
    names = [name for name in claim.scorers if name in trials]
    own = cells.merge(trials[[*CELL, "replicate", *names]], how="left", on=CELL)  # pandas merges NaN with NaN
    own = own.set_index([*CELL, "replicate"])
    absent = [name for name in claim.scorers if name not in names or own[name].isna().all()]
    if absent:
        return Finding("not tested", f"no {claim.measure} by {', '.join(absent)} in the cells that it is about")
    counts = own.notna().all(axis=1).groupby(CELL, dropna=False, sort=False).sum()
    few = [label(*cell) for cell, count in zip(claim.cells, counts, strict=True) if count < 2]
    if few:
        more = f" and {len(few) - 3} more cells" if len(few) > 3 else ""
        return Finding("not tested", f"no two trials by all of {', '.join(names)} at {'; '.join(few[:3])}{more}")
    return STATISTICS[claim.statistic](claim, own)


def number(value: float) -> str:
    """A number with two digits and a real minus sign; a dash where there is none."""
    return "–" if np.isnan(value) else f"{round(value, 2) + 0.0:.2f}".replace("-", "−")  # + 0: no −0.00


def label(m: float, nn: float | None, n: float) -> str:
    """A cell in words."""
    density = "" if nn is None or np.isnan(nn) else f"nn = {nn:g}, "
    return f"m = {m:g}, {density}n = {n:g}"


def _advantage(claim: Claim, trials: pd.DataFrame) -> Finding:
    of, over, printed = claim.arguments["of"], claim.arguments["over"], claim.arguments["printed"]
    trials = trials[[of, *over]].dropna()
    how = claim.arguments.get("best", "cell")
    if how == "cell":
        cell_means = trials[over].groupby(CELL, dropna=False).transform("mean")
        rival = pd.Series(
            trials[over].to_numpy()[np.arange(len(trials)), cell_means.to_numpy().argmin(axis=1)], trials.index
        )
    else:
        rival = trials[over].min(axis=1) if how == "replicate" else trials[over].mean(axis=1)
    paired = (rival - trials[of]).rename("difference").reset_index()
    row = pooled(paired, []).iloc[0]
    mean, se, freedom, fewest = (float(row[key]) for key in ("mean", "se", "freedom", "fewest"))
    # the paper's cells had networks of their own, so that the variances of its cells' means add up
    variances = paired.groupby(CELL, dropna=False)["difference"].var()
    printed_se = sqrt(variances.sum() / claim.arguments["replicates"]) / len(variances)
    both = sqrt(se**2 + printed_se**2)
    p = p_value(*(pd.Series([x]) for x in (mean - printed, both, freedom, fewest)))[0]
    p_none = p_value(*(pd.Series([x]) for x in (mean, se, freedom, fewest)))[0]
    if p < LEVEL:
        verdict = "contradicted"
    elif p_none < LEVEL and mean * printed > 0:
        verdict = "reproduced"
    else:
        verdict = "undecided"
    half = -stdtrit(freedom, LEVEL / 2) * both
    off = mean - printed
    words = (
        f"printed {printed:g} ± {printed_se:.2f} (its standard error); measured − printed {number(off)} "
        f"[{number(off - half)}, {number(off + half)}]"
    )
    more = nan
    if verdict == "undecided":
        spread = se * sqrt(fewest)
        from_zero = float(needed(pd.Series([abs(mean)]), pd.Series([spread]), LEVEL)[0])
        # t² (spread²/N + printed_se²) = (mean − printed)², if the paper's own noise leaves anything to be seen
        left = ((mean - printed) / stdtrit(freedom, LEVEL / 2)) ** 2 - printed_se**2
        more = min(from_zero, np.ceil(spread**2 / left) if left > 0 else inf)
    return Finding(verdict, words, mean, float(row["low"]), float(row["high"]), int(fewest), more)


def _better(claim: Claim, trials: pd.DataFrame) -> Finding:
    by = list(claim.arguments["by"])
    return _in_every_group(pooled(_paired(claim, trials, lambda x, y: y - x), ["pair", *by]), "better")


def _faster(claim: Claim, trials: pd.DataFrame) -> Finding:
    # The slope of the least-squares line through ln(mean) is Σ w ln(mean), w = (x − x̄)/Σ(x − x̄)², x = ln n.
    sizes = np.log(sorted({n for _, _, n in claim.cells}))

    def slope(x: pd.Series, y: pd.Series) -> pd.Series:
        ln_n = np.log(x.index.get_level_values("n").to_numpy(dtype=float))
        weight = (ln_n - sizes.mean()) / ((sizes - sizes.mean()) ** 2).sum()
        # `pooled` divides by the number of cells
        return (_ln_mean(y) - _ln_mean(x)) * pd.Series(weight * len(claim.cells), index=x.index)

    return _in_every_group(pooled(_paired(claim, trials, slope), ["pair"]), "faster")


def _similar(claim: Claim, trials: pd.DataFrame) -> Finding:
    table = pooled(_paired(claim, trials, lambda x, y: _ln_mean(x) - _ln_mean(y)), ["pair", *CELL])
    margin = log(claim.arguments["ratio"])
    distance = margin - table["mean"].abs()  # to the nearer end of the margin, negative outside
    # two one-sided tests: half of the two-sided p-value of that distance
    p = p_value(distance, table["se"], table["freedom"], table["fewest"]) / 2
    inside = (distance > 0) & (p < LEVEL)
    outside = (distance < 0) & (holm(p.where(distance < 0, 1.0)) < LEVEL)
    verdict = _verdict(inside, outside)
    where = int((distance / table["se"].where(table["se"] > 0)).fillna(inf).argmin())
    row = table.iloc[where]
    words = (
        f"ratio of means within the margin in {inside.sum()}, outside in {outside.sum()}, unsettled in "
        f"{(~inside & ~outside).sum()} of {len(table)} cells; shown: {_name(table, where)}"
    )
    value, low, high = (float(np.exp(row[key])) for key in ("mean", "low", "high"))
    more = _still_needed(table, distance, inside, 2 * LEVEL) if verdict == "undecided" else nan
    return Finding(verdict, words, value, low, high, int(table["fewest"].min()), more)


def _certificate(claim: Claim, certificates: Mapping[str, pd.DataFrame]) -> Finding:
    absent = [name for name in claim.scorers if name not in certificates]
    if absent:
        return Finding("not tested", f"no certificate of {', '.join(absent)}")
    rows = {name: certificates[name].loc[claim.arguments["property"]] for name in claim.scorers}
    words = "; ".join(f"{name}: {row['evidence']}" for name, row in rows.items())
    return Finding("reproduced" if all(row["holds"] for row in rows.values()) else "contradicted", words)


STATISTICS: dict[str, Callable[[Claim, pd.DataFrame], Finding]] = {
    "advantage": _advantage,
    "better": _better,
    "faster": _faster,
    "similar": _similar,
}


def _paired(claim: Claim, trials: pd.DataFrame, effect: Callable[[pd.Series, pd.Series], pd.Series]) -> pd.DataFrame:
    """The effects in each trial of all pairs of a claim, one below the other."""
    parts = []
    for first, second in claim.arguments["pairs"]:
        both = trials[[first, second]].dropna()
        part = effect(both[first], both[second]).rename("difference").reset_index()
        parts.append(part.assign(pair=f"{first} against {second}"))
    return pd.concat(parts)


def _ln_mean(x: pd.Series) -> pd.Series:
    """A trial's part in the logarithm of its cell's mean, linearised (delta method); their mean is that logarithm."""
    mean = x.groupby(CELL, dropna=False).transform("mean")
    return pd.Series(np.log(mean), index=x.index) + x / mean - 1


def _in_every_group(table: pd.DataFrame, word: str) -> Finding:
    """The verdict on one score before another in every row, and the row that is least in favour."""
    p = holm(p_value(table["mean"], table["se"], table["freedom"], table["fewest"]))
    won, lost = (p < LEVEL) & (table["mean"] > 0), (p < LEVEL) & (table["mean"] < 0)
    verdict = _verdict(won, lost)
    where = int((table["mean"] / table["se"].where(table["se"] > 0)).fillna(0.0).argmin())
    words = (
        f"{word} in {won.sum()}, the other way round in {lost.sum()}, unsettled in {(~won & ~lost).sum()} of "
        f"{len(table)} comparisons; shown: {_name(table, where)}"
    )
    more = _still_needed(table, table["mean"], won, LEVEL / len(table)) if verdict == "undecided" else nan
    value, low, high = (float(table[key].iloc[where]) for key in ("mean", "low", "high"))
    return Finding(verdict, words, value, low, high, int(table["fewest"].min()), more)


def _verdict(favourable: pd.Series, adverse: pd.Series) -> str:
    if favourable.all():
        return "reproduced"
    return "contradicted" if adverse.any() else "undecided"


def _still_needed(table: pd.DataFrame, distance: pd.Series, favourable: pd.Series, level: float) -> float:
    """Trials a cell until one row that leans the other way is sure of it or, if there is none, until all are sure."""
    trials = needed(distance.abs(), table["se"] * np.sqrt(table["fewest"]), level)
    adverse = distance < 0
    return float(trials[adverse].min() if adverse.any() else trials[~favourable].max())


def _name(table: pd.DataFrame, where: int) -> str:
    """A row's pair and group in words."""
    row = table.index[where]
    values = row if isinstance(row, tuple) else (row,)
    known = [(key, x) for key, x in zip(table.index.names, values, strict=True) if not pd.isna(x)]
    return ", ".join(str(x) if key == "pair" else f"{key} = {x:g}" for key, x in known)
