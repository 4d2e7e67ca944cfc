"""How far a learned graph is from the truth: pure functions of two adjacencies.

`adjacency[i, j]` = 1 means i → j; in a CPDAG both entries 1 mean an undirected edge.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from scorers.base import IntArray


@dataclass(frozen=True)
class EdgeErrors:
    """What a learned DAG has wrong: pairs of nodes whose edge is missing, extra or reversed.

    Numbers, or arrays of them for several DAGs.
    """

    missing: Any
    extra: Any
    reversed: Any

    @classmethod
    def of(cls, truth: npt.ArrayLike, learned: npt.ArrayLike) -> "EdgeErrors":
        """Compare a learned DAG with the true one; or several along leading axes, as many with each truth, in order."""
        true, found = np.asarray(truth, dtype=np.int64), np.asarray(learned, dtype=np.int64)
        counts = np.zeros((*found.shape[:-2], 3), dtype=np.int64)
        _count_errors(true.reshape(-1, *true.shape[-2:]), found.reshape(-1, *true.shape[-2:]), counts.reshape(-1, 3))
        return cls(missing=counts[..., 0], extra=counts[..., 1], reversed=counts[..., 2])

    @property
    def shd(self) -> Any:
        """The structural Hamming distance, a reversal counting 1. That of the skeletons is missing + extra."""
        return self.missing + self.extra + self.reversed


def shd(truth: npt.ArrayLike, learned: npt.ArrayLike, *, reversal: int = 1) -> int:
    """The structural Hamming distance of two DAGs.

    Parameters
    ----------
    truth, learned : array_like
        Adjacencies of two DAGs.
    reversal : int
        What a reversed edge counts: 1, or 2 (a deletion and an addition).

    Returns
    -------
    int
        The number of missing, extra and reversed edges.

    Examples
    --------
    >>> shd([[0, 1], [0, 0]], [[0, 0], [1, 0]]), shd([[0, 1], [0, 0]], [[0, 0], [1, 0]], reversal=2)
    (1, 2)
    """
    errors = EdgeErrors.of(truth, learned)
    return int(errors.missing + errors.extra + reversal * errors.reversed)


def cpdag(adjacency: npt.ArrayLike) -> IntArray:
    """The CPDAG of a DAG: its edges, directed where all DAGs of its Markov equivalence class agree.

    Of several DAGs along the leading axes, all.

    Examples
    --------
    >>> cpdag([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    edges = np.array(adjacency, dtype=np.int64)
    _orient(edges.reshape(-1, *edges.shape[-2:]))
    return edges


def cpdag_shd(truth: npt.ArrayLike, learned: npt.ArrayLike) -> Any:
    """Pairs of nodes whose edges differ between the CPDAGs of two DAGs (Tsamardinos et al. 2006), or of several."""
    return differing_pairs(cpdag(truth), cpdag(learned))


def differing_pairs(one: IntArray, other: IntArray) -> Any:
    """Pairs of nodes whose edges differ between two graphs, or several."""
    counts = np.zeros(one.shape[:-2], dtype=np.int64)
    _count_differing(one.reshape(-1, *one.shape[-2:]), other.reshape(-1, *one.shape[-2:]), counts.reshape(-1))
    return counts[()]


@numba.njit(cache=True)
def _count_errors(truth: Any, learned: Any, counts: Any) -> None:
    """counts[d] = pairs of nodes whose edge learned[d] misses, has too many, and has the other way round."""
    share = learned.shape[0] // truth.shape[0]  # of one truth
    for d in range(learned.shape[0]):
        true, found = truth[d // share], learned[d]
        for i in range(true.shape[0]):
            for j in range(i):
                joined_true, joined_found = true[i, j] | true[j, i], found[i, j] | found[j, i]
                counts[d, 0] += joined_true & ~joined_found
                counts[d, 1] += joined_found & ~joined_true
                counts[d, 2] += (true[i, j] & found[j, i]) | (true[j, i] & found[i, j])


@numba.njit(cache=True)
def _count_differing(one: Any, other: Any, counts: Any) -> None:
    """counts[d] = pairs of nodes that are joined in different ways in one[d] and other[d]."""
    for d in range(one.shape[0]):
        for i in range(one.shape[1]):
            for j in range(i):
                counts[d] += one[d, i, j] != other[d, i, j] or one[d, j, i] != other[d, j, i]


@numba.njit(cache=True)
def _orient_one(edges: Any) -> None:
    """A DAG into its CPDAG, in place: v-structures, then Meek's rules 1 to 3 until nothing changes."""
    m = edges.shape[0]
    dag = edges.copy()
    for i in range(m):
        for j in range(m):
            if dag[i, j]:
                edges[j, i] = 1
    adjacent = edges.copy()
    for j in range(m):  # v-structures i → j ← k
        for i in range(m):
            if dag[i, j]:
                for k in range(i):
                    if dag[k, j] and not adjacent[i, k]:
                        edges[j, i] = 0
                        edges[j, k] = 0
    changed = True
    while changed:
        changed = False
        for i in range(m):
            for j in range(m):
                if not (dag[i, j] and edges[j, i]):
                    continue  # only undirected edges are looked at, in the direction that the DAG has
                compelled = False
                for k in range(m):
                    into_i = edges[k, i] and not edges[i, k]
                    into_j = edges[k, j] and not edges[j, k]
                    if into_i and not adjacent[k, j]:  # rule 1: k → i − j, k and j not adjacent
                        compelled = True
                    if edges[i, k] and not edges[k, i] and into_j:  # rule 2: i → k → j
                        compelled = True
                    if into_j and edges[i, k] and edges[k, i]:  # rule 3: i − k → j ← l − i, k and l not adjacent
                        for other in range(k):
                            if (
                                edges[other, j]
                                and not edges[j, other]
                                and edges[i, other]
                                and edges[other, i]
                                and not adjacent[k, other]
                            ):
                                compelled = True
                if compelled:
                    edges[j, i] = 0
                    changed = True


@numba.njit(cache=True)
def _orient(graphs: Any) -> None:
    """DAGs into their CPDAGs, in place."""
    for edges in graphs:
        _orient_one(edges)
