"""Log-determinants of principal minors: those of all sets of nodes, or of the sets on top of one.

A set of nodes is a bit mask. The sets from `start` on, 2^bits of them where start is a multiple of that, are the nodes
of `start` with any of the nodes below `bits`: eliminating the former once leaves a smaller problem of the same kind, so
that a part of the table costs no more than its share, and has the same bits as in the whole.
"""

from typing import Any

import numba
import numpy as np

from scorers.base import Array


def log_determinants(correlation: Array, size: int, start: int = 0, bits: int | None = None) -> Array:
    """ln det of the correlation matrix of each of the 2^bits sets of nodes from `start` on.

    Parameters
    ----------
    correlation : Array
        m × m; … × m × m of several data sets.
    size : int
        The largest set that is asked for.
    start : int
        The first set, a multiple of 2^bits.
    bits : int, optional
        The logarithm of the number of sets: m when left out.

    Returns
    -------
    Array
        2^bits numbers, NaN for larger sets; … × 2^bits of several data sets.

    Examples
    --------
    >>> log_determinants(np.array([[1.0, 0.6], [0.6, 1.0]]), 2).round(3)
    array([ 0.   ,  0.   ,  0.   , -0.446])
    """
    m = correlation.shape[-1]
    logdet = np.empty((*correlation.shape[:-2], 1 << (m if bits is None else bits)))
    chain = np.ones((*correlation.shape[:-2], m))
    sets, chains = logdet.reshape(-1, logdet.shape[-1]), chain.reshape(-1, m)
    _pivots(correlation.reshape(-1, m, m), size, start, chains, sets)
    with np.errstate(invalid="ignore", divide="ignore"):
        np.log(chains, out=chains)
        np.log(sets, out=sets)
    _accumulate(chains, sets)
    return logdet


@numba.njit(cache=True, nogil=True, error_model="numpy")  # a zero pivot is found by the caller, not raised here
def _pivots(correlation: Any, size: int, start: int, chain: Any, out: Any) -> None:
    """out[d, s] = residual variance of the lowest node of start + s given its other nodes, for up to `size` of them.

    `chain[d]` are the pivots of the nodes of `start` themselves, from the highest on. Numeric order visits S after P,
    which is S without its lowest node b. The Schur complement of P, in rows and columns below P's lowest node, is kept
    at that node's level of `w`; its entry [b, b] is the pivot, and eliminating b gives the complement of S at level b.
    Sets that differ in nodes 0, 1, 2 are done eight at a time: about 6 operations a set in all.
    """
    m = correlation.shape[1]
    w = np.empty((m + 1, m, m))
    count = np.zeros(m + 1, np.int64)  # nodes of the set whose complement is at that level
    step = 8 if out.shape[1] >= 8 else 1
    for d in range(out.shape[0]):
        w[m] = correlation[d]
        base = m
        for b in range(m - 1, -1, -1):
            if (start >> b) & 1:
                chain[d, count[base]] = w[base, b, b]
                _eliminate(w[base], b, w[b])
                count[b] = count[base] + 1
                base = b
        out[d, 0] = 1.0
        for s in range(0, out.shape[1], step):
            b = base
            if s > 0:
                b = 0
                while (s >> b) & 1 == 0:
                    b += 1
                level = b + 1
                while level < base and (s >> level) & 1 == 0:
                    level += 1
                count[b] = count[level] + 1
                if count[b] <= size:
                    out[d, s] = w[level, b, b]
                    _eliminate(w[level], b, w[b])
            if count[b] > size:
                out[d, s : s + step] = np.nan
            elif step == 8:
                _pivots_of_three(w[b], out[d, s : s + 8])
                for t in range(1, 8):
                    if count[b] + (t & 1) + ((t >> 1) & 1) + (t >> 2) > size:
                        out[d, s + t] = np.nan


@numba.njit(inline="always", error_model="numpy")
def _eliminate(x: Any, b: int, out: Any) -> None:
    """The Schur complement of node b in x, in rows and columns below b."""
    for i in range(b):
        factor = x[b, i] / x[b, b]
        for j in range(i + 1):
            out[i, j] = x[i, j] - factor * x[b, j]


@numba.njit(inline="always", error_model="numpy")
def _pivots_of_three(x: Any, out: Any) -> None:
    """out[t] = the pivot of the lowest node of t, for the subsets t ≠ ∅ of nodes 0, 1, 2: as by elimination."""
    out[1], out[2], out[4] = x[0, 0], x[1, 1], x[2, 2]
    out[3] = x[0, 0] - x[1, 0] / x[1, 1] * x[1, 0]
    first, second = x[2, 0] / x[2, 2], x[2, 1] / x[2, 2]
    y00, y10, y11 = x[0, 0] - first * x[2, 0], x[1, 0] - second * x[2, 0], x[1, 1] - second * x[2, 1]
    out[5], out[6] = y00, y11
    out[7] = y00 - y10 / y11 * y10


@numba.njit(cache=True, nogil=True)
def _accumulate(chain: Any, logdet: Any) -> None:
    """From logarithms of pivots to log-determinants: L(S) = ln pivot(S) + L(S without its lowest node)."""
    for d in range(logdet.shape[0]):
        of_set = logdet[d]
        for i in range(chain.shape[1]):  # what is no node of the first set has the pivot 1
            of_set[0] += chain[d, i]
        for s in range(1, of_set.shape[0]):
            of_set[s] += of_set[s & (s - 1)]


@numba.njit(cache=True)
def small_shares(logdet: Any, size: int, least: float) -> Any:
    """The sets S of up to `size` nodes in which a node has less than a share `least` of its variance left."""
    m = 0
    while 1 << m < logdet.shape[0]:
        m += 1
    found = []
    nodes = np.zeros(logdet.shape[0], np.int8)
    for s in range(1, logdet.shape[0]):
        nodes[s] = nodes[s & (s - 1)] + 1
        if nodes[s] <= size:
            for i in range(m):
                if (s >> i) & 1 and not logdet[s] - logdet[s ^ (1 << i)] >= np.log(least):  # NaN is less, too
                    found.append(s)
                    break
    return np.array(found, dtype=np.int64)
