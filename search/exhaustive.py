"""Every DAG on m ≤ 6 nodes scored, and the truth ranked among them."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numba
import numpy as np

from scorers.base import Array, IntArray, Scorer
from scorers.families import Families, score_table
from scorers.moments import Data
from scorers.network import checked_adjacency
from search.dags import Masks, all_dags, class_representatives, count_dags, masks_of
from search.ties import TOLERANCE, score_size

Among = Literal["dags", "classes"]


@dataclass(frozen=True)
class Rank:
    """The rank of a network among all.

    Attributes
    ----------
    best : int
        1 + the number of networks with a strictly better score.
    mid : float
        The middle of `best` and `worst`.
    worst : int
        The rank if all networks that tie with it are counted before it.
    total : int
        The number of networks.
    """

    best: int
    mid: float
    worst: int
    total: int


def rank(
    data: Data | Families,
    scorer: Scorer,
    adjacency: Data,
    *,
    among: Among = "dags",
    tolerance: float = TOLERANCE,
) -> Rank:
    """Rank a network among all DAGs on its nodes, or its class among all Markov equivalence classes.

    Parameters
    ----------
    data : array_like, DataFrame or Families
        n × m data with m ≤ 6; or their families, to be shared by several rankings.
    scorer : Scorer
        The score.
    adjacency : array_like or DataFrame
        m × m; `adjacency[i, j]` = 1 means i → j.
    among : {"dags", "classes"}
        What is counted. "classes" is for score-equivalent scores, and refused for others.
    tolerance : float
        Scores that differ by less than this share of their size tie; see `search.ties`.

    Returns
    -------
    Rank
        Best, mid and worst rank, and the number of networks.

    Examples
    --------
    >>> from scorers import BIC
    >>> data = np.random.default_rng(1).normal(1, 1, size=(50, 3))
    >>> data[:, 2] += data[:, 0]
    >>> rank(data, BIC(), [[0, 0, 1], [0, 0, 0], [0, 0, 0]])
    Rank(best=1, mid=1.5, worst=2, total=25)
    >>> rank(data, BIC(), [[0, 0, 1], [0, 0, 0], [0, 0, 0]], among="classes")
    Rank(best=1, mid=1.0, worst=1, total=11)
    """
    if among not in get_args(Among):
        raise ValueError(f"among must be one of {', '.join(get_args(Among))}. Got {among!r} instead.")
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be 0 at least. Got {tolerance} instead.")
    shape = (data.n, data.m) if isinstance(data, Families) else np.shape(data)
    if len(shape) == 2:  # else the families say what is wrong
        all_dags(shape[1])  # refuses many nodes before anything is computed
    families = data if isinstance(data, Families) else Families.of(data)
    m = families.m
    if families.max_parents < m - 1:
        raise ValueError(
            f"Ranking all DAGs needs all families. Got families with max_parents = {families.max_parents} instead."
        )
    truth = masks_of(checked_adjacency(adjacency, families.moments.names))
    if among == "dags":
        best, worst = ranks(families, scorer, truth, tolerance)
        return Rank(best=int(best), mid=float(best + worst) / 2, worst=int(worst), total=count_dags(m))
    table = score_table(families, scorer)
    scores = dag_scores(table)
    slack = tolerance * score_size(table[:, 0], table[:, -1])
    representatives = class_representatives(m)
    spread = float(np.max(np.abs(scores - scores[representatives])))
    if spread > slack:
        raise ValueError(
            f"The score {scorer!r} is not score-equivalent: DAGs of one class differ by up to {spread:.2g} nats. "
            'Rank it among DAGs (among="dags").'
        )
    scores = scores[representatives == np.arange(len(representatives))]
    own = table[np.arange(m), truth].sum()
    better = int(np.count_nonzero(scores < own - slack))
    within = int(np.count_nonzero(scores <= own + slack))
    return Rank(best=better + 1, mid=(better + 1 + within) / 2, worst=within, total=len(scores))


def ranks(families: Families, scorer: Scorer, truth: Masks, tolerance: float) -> tuple[IntArray, IntArray]:
    """Best and worst rank of a network among all DAGs, or of one in each of several data sets.

    Parameters
    ----------
    families : Families
        All families of one data set or several.
    scorer : Scorer
        The score.
    truth : ndarray of uint8
        Rows of compressed parent masks, as `masks_of` makes them, one for each data set.
    tolerance : float
        Scores that differ by less than this share of their size tie.

    Returns
    -------
    tuple of IntArray
        Best and worst ranks, one for each data set.
    """
    table = score_table(families, scorer)
    m, size = table.shape[-2:]
    own = np.take_along_axis(table, truth[..., None].astype(np.int64), axis=-1)[..., 0].sum(axis=-1)
    slack = tolerance * score_size(table[..., 0], table[..., -1])
    better, within = np.empty(own.shape, dtype=np.int64), np.empty(own.shape, dtype=np.int64)
    _count(
        all_dags(m),
        table.reshape(-1, m, size),
        np.reshape(own - slack, -1),
        np.reshape(own + slack, -1),
        better.reshape(-1),
        within.reshape(-1),
    )
    return better + 1, within


def dag_scores(table: Array) -> Array:
    """The scores of all DAGs, in the order of `all_dags`, from a table of local scores."""
    scores = np.empty(len(all_dags(len(table))))
    _sum_rows(all_dags(len(table)), table, scores)
    return scores


@numba.njit(cache=True)
def _sum_rows(dags: Any, table: Any, scores: Any) -> None:
    for d in range(dags.shape[0]):
        total = 0.0
        for j in range(dags.shape[1]):
            total += table[j, dags[d, j]]
        scores[d] = total


@numba.njit(cache=True, nogil=True)
def _count(dags: Any, tables: Any, low: Any, high: Any, better: Any, within: Any) -> None:
    """Of all DAGs, how many score less than low[d] and how many not more than high[d], by each table."""
    for d in range(tables.shape[0]):
        table = tables[d]
        less, not_more = 0, 0
        for row in range(dags.shape[0]):
            total = 0.0
            for j in range(dags.shape[1]):
                total += table[j, dags[row, j]]
            less += total < low[d]
            not_more += total <= high[d]
        better[d], within[d] = less, not_more
