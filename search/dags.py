"""All labelled DAGs on a few nodes, numbered: 25, 543, 29 281 and 3 781 503 for m = 3, 4, 5, 6.

A DAG is a row of m compressed parent masks (`masks[d, j]` leaves out bit j, as the rows of a score table do), so that
its score is m look-ups. The rows are in lexicographic order and made once in a process.
"""

from functools import cache
from math import comb
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from scorers.base import IntArray

MOST = 6

Masks = npt.NDArray[np.uint8]


def count_dags(m: int) -> int:
    """The number of labelled DAGs on m nodes, by Robinson's recurrence over the sources.

    Examples
    --------
    >>> [count_dags(m) for m in range(1, 8)]
    [1, 3, 25, 543, 29281, 3781503, 1138779265]
    """
    counts = [1]
    for k in range(1, m + 1):
        counts.append(sum((-1) ** (i + 1) * comb(k, i) * 2 ** (i * (k - i)) * counts[k - i] for i in range(1, k + 1)))
    return counts[m]


@cache
def all_dags(m: int) -> Masks:
    """Every DAG on m nodes, as rows of compressed parent masks.

    Parameters
    ----------
    m : int
        Nodes, 6 at most.

    Returns
    -------
    ndarray of uint8
        `count_dags(m)` × m, read-only.
    """
    if not 2 <= m <= MOST:
        raise ValueError(
            f"All DAGs can be gone through for m from 2 to {MOST} nodes. Got m = {m}, which has "
            f"{f'{count_dags(m):,}' if m < 20 else 'far too many'} DAGs: search for the best one with search.learn."
        )
    masks = np.empty((count_dags(m), m), dtype=np.uint8)
    _enumerate(masks)
    masks.flags.writeable = False
    return masks


def adjacency_of(masks: Masks) -> IntArray:
    """The adjacency of one row: `adjacency[i, j]` = 1 means i → j."""
    bits = _bits(len(masks))
    return np.asarray((masks & bits) != 0, dtype=np.int64)


def masks_of(adjacency: npt.NDArray[Any]) -> Masks:
    """The row of an adjacency, the inverse of `adjacency_of`; of several along the leading axes, all."""
    return np.asarray((adjacency.astype(bool) * _bits(adjacency.shape[-1])).sum(axis=-2), dtype=np.uint8)


@cache
def _bits(m: int) -> Masks:
    """Entry [i, j] is the bit of node i in the compressed mask of child j, which leaves out bit j; read-only."""
    i, j = np.indices((m, m))
    bits = np.where(i == j, 0, 1 << (i - (i > j))).astype(np.uint8)
    bits.flags.writeable = False
    return bits


def random_dag(m: int, rng: np.random.Generator) -> IntArray:
    """A DAG drawn uniformly among all labelled DAGs on m ≤ 6 nodes.

    Parameters
    ----------
    m : int
        Nodes, 6 at most.
    rng : Generator
        The source of randomness; one integer is drawn from it.

    Returns
    -------
    ndarray of int64
        m × m; entry [i, j] = 1 means i → j.
    """
    dags = all_dags(m)
    return adjacency_of(dags[rng.integers(len(dags))])


@cache
def class_representatives(m: int) -> IntArray:
    """For every DAG, the number of the first DAG of its Markov equivalence class, read-only.

    Two DAGs are equivalent if they have the same skeleton and the same v-structures (Verma & Pearl 1990). Each of
    these is given a random 64-bit word and a DAG the exclusive or of its words; that no two classes of m ≤ 6 nodes
    collide is shown by their number: 11, 185, 8 782, 1 067 825 for m = 3, 4, 5, 6.
    """
    dags = all_dags(m)
    words = np.random.default_rng(1990).integers(0, 1 << 63, size=(m, m, m), dtype=np.int64)
    keys = np.empty(len(dags), dtype=np.int64)
    _class_keys(dags, words, keys)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    representatives = first[which]
    representatives.flags.writeable = False
    return representatives


@numba.njit(cache=True)
def _enumerate(out: Any) -> None:
    """Give each node in turn all parent sets that close no cycle; rows in lexicographic order."""
    m = out.shape[1]
    row = 0
    choice = np.zeros(m, np.int64)  # compressed mask that is tried for each node
    reach = np.zeros((m + 1, m), np.int64)  # reach[t, i]: descendants of i, itself included, before node t chooses
    for i in range(m):
        reach[0, i] = 1 << i
    t = 0
    while t >= 0:
        if choice[t] == 1 << (m - 1):
            choice[t] = 0
            t -= 1
            if t >= 0:
                choice[t] += 1
            continue
        low = (1 << t) - 1
        parents = (choice[t] & low) | ((choice[t] & ~low) << 1)
        if parents & reach[t, t]:
            choice[t] += 1
            continue
        if t == m - 1:
            for j in range(m):
                out[row, j] = choice[j]
            row += 1
            choice[t] += 1
            continue
        for i in range(m):  # who reaches a parent now reaches what t reaches
            reach[t + 1, i] = reach[t, i] | (reach[t, t] if reach[t, i] & parents else 0)
        t += 1


@numba.njit(cache=True)
def _class_keys(dags: Any, words: Any, keys: Any) -> None:
    m = dags.shape[1]
    edge = np.zeros((m, m), np.bool_)
    for d in range(dags.shape[0]):
        for j in range(m):
            for i in range(m):
                edge[i, j] = i != j and (dags[d, j] >> (i - (i > j))) & 1
        key = 0
        for i in range(m):
            for k in range(i):
                if edge[i, k] or edge[k, i]:
                    key ^= words[i, k, i]
                    continue
                for j in range(m):
                    if edge[i, j] and edge[k, j]:
                        key ^= words[i, k, j]
        keys[d] = key
