"""Exact search over DAGs: every one ranked, or the best one found."""

from search.dags import all_dags, count_dags, random_dag
from search.dp import Network, estimate, learn, tie_band
from search.exhaustive import Rank, rank
from search.ties import shd_of_weights

__all__ = [
    "Network",
    "Rank",
    "all_dags",
    "count_dags",
    "estimate",
    "learn",
    "random_dag",
    "rank",
    "shd_of_weights",
    "tie_band",
]
