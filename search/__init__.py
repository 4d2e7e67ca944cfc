"""Exact search over DAGs: every one ranked, or the best one found."""

from search.dags import all_dags, count_dags, random_dag
from search.dp import Network, learn, tie_band
from search.exhaustive import Rank, rank

__all__ = ["Network", "Rank", "all_dags", "count_dags", "learn", "random_dag", "rank", "tie_band"]
