"""From records to tables with uncertainty: DataFrame in, DataFrame out.

Every mean comes with its Monte Carlo standard error and its number of trials. Every comparison of two scores is
*paired*: both saw the same data sets, so the difference is taken within each trial and only then averaged. Tie rules
are carried through as columns: what is measured under random ties also has a value under the best and the worst.
Trials that failed, and trials that only one of two scores finished, are left out and show in the counts.
"""

import numpy as np
import pandas as pd
from scipy.stats import t

# What a study measures, by tie rule. The first of each is what is shown where there is room for one.
MEASURES = {
    "SHD": {"random": "shd", "best": "shd_best", "worst": "shd_worst"},
    "rank of the truth": {"mid": "rank_mid", "best": "rank_best", "worst": "rank_worst"},
}
CELL = ["m", "nn", "n"]
CONFIDENCE = 0.95


def interval(mean: pd.Series, se: pd.Series, count: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Student's confidence interval of a mean; NaN where there is only one trial."""
    half = pd.Series(t.ppf((1 + CONFIDENCE) / 2, count - 1), index=mean.index) * se
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


def differences(records: pd.DataFrame, baseline: str, other: str, column: str) -> pd.DataFrame:
    """The paired differences of two scores: other − baseline, positive where the baseline is nearer to the truth.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.
    baseline, other : str
        Two scores. Both may be several joined by "/": the smaller value of each trial counts.
    column : str
        What is compared.

    Returns
    -------
    DataFrame
        One row for each trial that both finished: its cell, replicate, and `difference`.
    """
    keys = [*CELL, "replicate"]
    values = {}
    for name in (baseline, other):
        of_name = records[records["scorer"].isin(name.split("/")) & records[column].notna()]
        groups = of_name.groupby(keys, dropna=False, sort=False)[column]
        values[name] = groups.min()[groups.count() == len(name.split("/"))]
    both = pd.concat(values, axis=1, join="inner")
    return (both[other] - both[baseline]).rename("difference").reset_index()


def compare(records: pd.DataFrame, baseline: str, other: str, column: str) -> pd.DataFrame:
    """Two scores compared in every cell: the mean paired difference and how sure it is.

    Returns
    -------
    DataFrame
        By cell: `mean` difference (other − baseline), `se`, `low`, `high`, `count`, the two-sided `p` of no difference,
        `p_holm` corrected over all cells (Holm), and `needed`, the trials a cell that would settle the sign at 95 %
        if the mean and the spread stay as they are.
    """
    paired = differences(records, baseline, other, column)
    by = [key for key in CELL if paired[key].notna().any()]
    table = means(paired, "difference", by)
    statistic = table["mean"].abs() / table["se"].where(table["se"] > 0)
    table["p"] = np.where(table["se"] > 0, 2 * t.sf(statistic, table["count"] - 1), (table["mean"] == 0) * 1.0)
    table["p_holm"] = holm(table["p"])
    spread = table["se"] * np.sqrt(table["count"])
    table["needed"] = np.ceil((t.ppf((1 + CONFIDENCE) / 2, table["count"] - 1) * spread / table["mean"].abs()) ** 2)
    return table


def holm(p: pd.Series) -> pd.Series:
    """Holm's (1979) correction: the chance of one false rejection among all stays below the level."""
    order = p.sort_values(na_position="last")
    stepped = (order * np.arange(len(p), 0, -1)).cummax().clip(upper=1.0)
    return stepped.reindex(p.index)


def table_1(
    records: pd.DataFrame,
    *,
    baseline: str = "rnml",
    over: str = "mdl",
    best_of: tuple[str, str] = ("aic", "bic"),
    reading: str = "cell",
    column: str = "shd",
) -> pd.DataFrame:
    """The paper's Table 1: the advantage of the baseline by sample size, and over all.

    The mean over cells of the cells' mean differences. Cells have data of their own, so their errors add up as
    independent ones.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.
    baseline, over : str
        RNML and MDL in the paper.
    best_of : tuple of str
        AIC and BIC in the paper.
    reading : {"cell", "replicate"}
        "best" is the score with the smaller mean in the cell, or the smaller value in each trial.
    column : str
        What is compared, e.g. "shd_worst" for the worst ties.

    Returns
    -------
    DataFrame
        Indexed by n and "all"; for each of the two columns `mean`, `se`, `low`, `high` and the number of `trials`.
    """
    best = "/".join(best_of)
    compared = {over: differences(records, baseline, over, column)}
    if reading == "replicate":
        compared[f"best of {best}"] = differences(records, baseline, best, column)
    elif reading == "cell":
        single = {name: differences(records, baseline, name, column) for name in best_of}
        by_cell = {name: each.groupby(CELL, dropna=False)["difference"].mean() for name, each in single.items()}
        smaller = by_cell[best_of[0]] <= by_cell[best_of[1]].reindex(by_cell[best_of[0]].index)
        parts = []
        for name, chosen in ((best_of[0], smaller), (best_of[1], ~smaller)):
            index = pd.MultiIndex.from_frame(single[name][CELL])
            parts.append(single[name][chosen.reindex(index).fillna(False).to_numpy(dtype=bool)])
        compared[f"best of {best}"] = pd.concat(parts)
    else:
        raise ValueError(f'reading must be "cell" or "replicate". Got {reading!r} instead.')
    return pd.concat({name: _advantage(each) for name, each in compared.items()}, axis=1)


def _advantage(paired: pd.DataFrame) -> pd.DataFrame:
    """Means over cells of mean differences, by n and over all."""
    cells = means(paired, "difference", CELL).reset_index()
    sizes = sorted(cells["n"].unique())
    groups = {n: cells[cells["n"] == n] for n in sizes} | {"all": cells}
    rows = {}
    for name, group in groups.items():
        mean = group["mean"].mean()
        se = float(np.sqrt((group["se"] ** 2).sum())) / len(group)
        freedom = int((group["count"] - 1).sum())
        half = t.ppf((1 + CONFIDENCE) / 2, freedom) * se if freedom else np.nan
        rows[name] = {"mean": mean, "se": se, "low": mean - half, "high": mean + half, "trials": group["count"].sum()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("n")
