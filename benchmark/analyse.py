"""From records to tables with uncertainty: DataFrame in, DataFrame out.

Every mean comes with its Monte Carlo standard error and its number of trials. Every comparison of two scores is
*paired*: both saw the same data sets, so the difference is taken within each trial and only then averaged. Tie rules
are carried through as columns: what is measured under random ties also has a value under the best and the worst.
Trials that failed, and trials that only one of two scores finished, are left out and show in the counts.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtr, stdtrit  # norm.ppf, t.cdf, t.ppf; scipy.stats takes half a second to import

# What a study measures, by tie rule. The first of each is what is shown where there is room for one.
MEASURES = {
    "SHD": {"random": "shd", "best": "shd_best", "worst": "shd_worst"},
    "rank of the truth": {"mid": "rank_mid", "best": "rank_best", "worst": "rank_worst"},
}
CELL = ["m", "nn", "n"]
CONFIDENCE = 0.95
# Nobody will run more trials a cell than this.
REACH = 1e9


def interval(mean: pd.Series, se: pd.Series, count: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Student's confidence interval of a mean; NaN where there is only one trial."""
    half = pd.Series(stdtrit(count - 1, (1 + CONFIDENCE) / 2), index=mean.index) * se
    return mean - half, mean + half


def means(records: pd.DataFrame, column: str, by: list[str]) -> pd.DataFrame:
    """Mean, standard error and number of trials of a column.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.
    column : str
        What is averaged; rows without it are left out.
    by : list of str
        The groups.

    Returns
    -------
    DataFrame
        Indexed by group: `mean`, `se`, `low`, `high` (95 % interval), `count`.
    """
    groups = records[records[column].notna()].groupby(by, dropna=False, sort=False)[column]
    table = pd.DataFrame({"mean": groups.mean(), "se": groups.std() / np.sqrt(groups.count()), "count": groups.count()})
    table["low"], table["high"] = interval(table["mean"], table["se"], table["count"])
    return table[["mean", "se", "low", "high", "count"]]


def mean_tables(records: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Means by cell and score under every tie rule, one table for each measure that the records have.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.

    Returns
    -------
    dict of DataFrame
        By measure: rows m, nn, n, scorer; columns (tie rule, statistic).
    """
    tables = {}
    for measure, columns in MEASURES.items():
        measured = records[records[next(iter(columns.values()))].notna()]
        if len(measured):
            by = [key for key in CELL if measured[key].notna().any()] + ["scorer"]
            tables[measure] = pd.concat({rule: means(measured, column, by) for rule, column in columns.items()}, axis=1)
    return tables


def wide(records: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row for each trial, one column for each score; NaN where a score failed or was not tried."""
    measured = records[records[column].notna()]
    keyed = measured.set_index([*CELL, "replicate", "scorer"])[column].astype(float)
    return keyed.unstack("scorer")  # noqa: PD010


def differences(records: pd.DataFrame, baseline: str, other: str | Sequence[str], column: str) -> pd.DataFrame:
    """The paired differences of two scores: other − baseline, positive where the baseline is nearer to the truth.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.
    baseline, other : str
        Two scores. The other may be several: the smallest value of each trial counts.
    column : str
        What is compared.

    Returns
    -------
    DataFrame
        One row for each trial that all finished: its cell, replicate, and `difference`.
    """
    names = [other] if isinstance(other, str) else list(other)
    trials = wide(records[records["scorer"].isin([baseline, *names])], column)
    trials = trials.reindex(columns=[baseline, *names]).dropna()
    return (trials[names].min(axis=1) - trials[baseline]).rename("difference").reset_index()


def compare(records: pd.DataFrame, baseline: str, other: str, column: str) -> pd.DataFrame:
    """Two scores compared in every cell: the mean paired difference and how sure it is.

    Returns
    -------
    DataFrame
        By cell: `mean` difference (other − baseline), `se`, `low`, `high`, `count`, the two-sided `p` of no difference,
        `p_holm` corrected over all cells (Holm), and `needed`, the trials a cell that would settle the sign at 95 %
        if the mean and the spread stay as they are; `needed_holm` does so among all cells, as Holm's first step.
    """
    paired = differences(records, baseline, other, column)
    by = [key for key in CELL if key != "nn" or paired["nn"].notna().any()]
    table = means(paired, "difference", by)
    table["p"] = p_value(table["mean"], table["se"], table["count"] - 1, table["count"])
    table["p_holm"] = holm(table["p"])
    for name, level in {"needed": 1 - CONFIDENCE, "needed_holm": (1 - CONFIDENCE) / max(len(table), 1)}.items():
        table[name] = needed(table["mean"].abs(), table["se"] * np.sqrt(table["count"]), level)
    return table


def p_value(mean: pd.Series, se: pd.Series, freedom: pd.Series, trials: pd.Series) -> pd.Series:
    """Student's two-sided p-value of a mean that is zero.

    Trials that all differ by the same amount have no spread to judge by; then each is only a toss of a coin, whose
    sign was always the same: 2^(1 − trials). One trial says nothing.
    """
    student = 2 * stdtr(freedom, -mean.abs() / se.where(se > 0))
    coin = np.where(mean == 0, 1.0, 2.0 ** (1.0 - trials))
    return pd.Series(np.where(se > 0, student, coin), index=mean.index)


def needed(distance: pd.Series, spread: pd.Series, level: float) -> pd.Series:
    """The fewest trials a cell whose interval is shorter than a distance on either side; inf if that is beyond reach.

    Parameters
    ----------
    distance : Series
        From the mean to what the interval is to exclude.
    spread : Series
        Standard deviation of a trial; NaN (one trial) has no answer.
    level : float
        1 − confidence of the interval. Without spread, so many tosses of a coin as can be significant.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(spread == 0, np.nan, spread / distance)
    trials = np.maximum(2.0, np.ceil((ndtri(level / 2) * ratio) ** 2))
    trials = np.where(trials > REACH, np.inf, trials)
    while (few := trials < (stdtrit(trials - 1, level / 2) * ratio) ** 2).any():
        trials = trials + few  # Student's t needs a few more than the normal distribution
    certain = np.where(distance > 0, np.ceil(1 - np.log2(level)), np.inf)
    return pd.Series(np.where(spread == 0, certain, trials), index=spread.index)


def holm(p: pd.Series) -> pd.Series:
    """Holm's (1979) correction: the chance of one false rejection among all stays below the level."""
    order = p.sort_values(na_position="last")
    stepped = (order * np.arange(len(p), 0, -1)).cummax().clip(upper=1.0)
    return stepped.reindex(p.index)


def pooled(paired: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Means over cells of the cells' mean differences: every cell weighs the same, however many trials it has.

    Cells have data of their own, but those that differ only in n may have networks in common (`design.share`), so the
    standard error is that of sums over equal (m, nn, replicate), which are independent in any case.

    Parameters
    ----------
    paired : DataFrame
        One row for each trial: its cell, replicate, `difference`, and the columns of `by`.
    by : list of str
        The groups of cells; none for all in one.

    Returns
    -------
    DataFrame
        By group: `mean`, `se`, `low`, `high`, `freedom`, and the number of `cells`, of `trials`, and of the `fewest`
        trials in a cell. NaN where a cell has one trial only.
    """
    groups = list(by) or ["all"]
    paired = paired if by else paired.assign(all="all")
    cell = list(dict.fromkeys([*groups, *CELL]))
    cells = paired.groupby(cell, dropna=False, sort=False)["difference"].agg(["mean", "count"])
    of_group = cells.groupby(groups, dropna=False, sort=False)
    table = pd.DataFrame(
        {
            "mean": of_group["mean"].mean(),
            "cells": of_group["count"].size(),
            "trials": of_group["count"].sum(),
            "fewest": of_group["count"].min(),
        }
    )
    keyed = paired.groupby(cell, dropna=False, sort=False)["difference"]
    share = paired.assign(part=(paired["difference"] - keyed.transform("mean")) / keyed.transform("count"))
    network = list(dict.fromkeys([*groups, "m", "nn"]))
    sums = share.groupby([*network, "replicate"], dropna=False, sort=False)["part"].sum()
    squares = (sums**2).groupby(network, dropna=False, sort=False).agg(["sum", "count"])
    # the usual factor of a variance that is taken around its own mean; infinite where there is one trial
    squares["variance"] = np.where(
        squares["count"] > 1, squares["sum"] * squares["count"] / np.maximum(squares["count"] - 1, 1), np.inf
    )
    squares["freedom"] = squares["count"] - 1
    total = squares.groupby(groups, dropna=False, sort=False)[["variance", "freedom"]].sum()
    table["se"] = (np.sqrt(total["variance"]) / table["cells"]).replace(np.inf, np.nan)
    table["freedom"] = total["freedom"]
    table["low"], table["high"] = interval(table["mean"], table["se"], table["freedom"] + 1)
    return table[["mean", "se", "low", "high", "freedom", "cells", "trials", "fewest"]]


def best_in_cell(records: pd.DataFrame, baseline: str, others: Sequence[str], column: str) -> pd.DataFrame:
    """Paired differences to whichever of the others has the smallest mean in the cell.

    Only cells that all the scores have count. Of equal means the first counts.
    """
    single = {name: differences(records, baseline, name, column) for name in others}
    cell_means = pd.DataFrame({name: x.groupby(CELL, dropna=False)["difference"].mean() for name, x in single.items()})
    best = cell_means.dropna().idxmin(axis=1)
    chosen = [x[best.reindex(pd.MultiIndex.from_frame(x[CELL])).to_numpy() == name] for name, x in single.items()]
    return pd.DataFrame(pd.concat(chosen))


def table_1(
    records: pd.DataFrame,
    *,
    baseline: str = "rnml",
    over: str = "mdl",
    best_of: Sequence[str] = ("aic", "bic"),
    reading: str = "cell",
    column: str = "shd",
) -> pd.DataFrame:
    """The paper's Table 1: the advantage of the baseline by sample size, and over all.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.
    baseline, over : str
        RNML and MDL in the paper.
    best_of : sequence of str
        AIC and BIC in the paper.
    reading : {"cell", "replicate"}
        "best" is the score with the smaller mean in the cell, or the smaller value in each trial.
    column : str
        What is compared, e.g. "shd_worst" for the worst ties.

    Returns
    -------
    DataFrame
        Indexed by n and "all"; for each of the two columns `mean`, `se`, `low`, `high` (see `pooled`) and the number
        of `cells` and `trials`.
    """
    if reading not in ("cell", "replicate"):
        raise ValueError(f'reading must be "cell" or "replicate". Got {reading!r} instead.')
    best = best_in_cell if reading == "cell" else differences
    compared = {
        over: differences(records, baseline, over, column),
        f"best of {'/'.join(best_of)}": best(records, baseline, best_of, column),
    }
    parts = {}
    for name, paired in compared.items():
        table = pd.concat([pooled(paired, ["n"]).sort_index(), pooled(paired, [])]).rename_axis("n")
        parts[name] = table[["mean", "se", "low", "high", "cells", "trials"]]
    return pd.concat(parts, axis=1)
