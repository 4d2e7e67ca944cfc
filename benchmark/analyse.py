"""From records to tables: DataFrame in, DataFrame out."""

import pandas as pd

# What a study measures, by the column that is there.
MEASURES = {"shd": "mean SHD (random ties)", "rank_mid": "mean rank of the truth (middle of ties)"}


def mean_tables(records: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Means by cell and score, one table for each measure that the records have.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score; rows with an error are left out.

    Returns
    -------
    dict of DataFrame
        By measure: rows m, nn, n, a column for each score.
    """
    good = records[records["error"].isna()]
    tables = {}
    for column, title in MEASURES.items():
        measured = good[good[column].notna()]
        if len(measured):
            keys = [key for key in ("m", "nn", "n") if measured[key].notna().any()]
            means = measured.pivot_table(values=column, index=keys, columns="scorer", aggfunc="mean")
            tables[title] = means[[name for name in records["scorer"].unique() if name in means]]
    return tables
