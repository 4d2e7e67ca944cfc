"""The inner loops of the dynamic programme in chunks: best parents of one child, and lists of the sets that are best.

Arrays are named as in `search.kernels`, and nothing is checked here either. A list holds parent sets of one child in
numeric order: their places in the child's row of candidate sets, and their scores.
"""

from typing import Any

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from search.kernels import TILE, minimise_child, smaller


@numba.njit(inline="always")
def _without_one(x: Any, t: int, tile: int) -> None:
    """The least of what is there and of x without one of the nodes of t, for the sets from t to t + tile."""
    y = x[t : t + tile]
    nodes = t
    while nodes:
        bit = nodes & -nodes
        nodes ^= bit
        one = x[t - bit : t - bit + tile]
        if nodes:  # two at a time
            bit = nodes & -nodes
            nodes ^= bit
            other = x[t - bit : t - bit + tile]
            for c in range(tile):
                y[c] = smaller(smaller(one[c], other[c]), y[c])
        else:
            for c in range(tile):
                y[c] = smaller(one[c], y[c])


@numba.njit(cache=True, nogil=True)
def minimise_and_list(x: Any, ends: Any, joined: Any, scores: Any, places: Any, values: Any) -> int:
    """The best parents of one child, from its local scores x and from lists; and a list of those local ones that stay.

    The l-th of the lists are the places `joined` and the `scores` from ends[l] to ends[l + 1]. `places` and `values`
    have room for one entry more than x has, or for none if no list is asked for. Returns how many were listed.

    Tiles are finished one by one, from left to right: what is without one of their nodes is finished before.
    """
    tile = min(x.shape[0], TILE)
    local = np.empty(tile)
    at = ends[:-1].copy()  # how far each list has been read
    k = 0
    for t in range(0, x.shape[0], tile):
        y = x[t : t + tile]
        local[:] = y
        for i in range(at.shape[0]):
            a = at[i]
            while a < ends[i + 1] and joined[a] < t + tile:
                c = joined[a] - t
                y[c] = smaller(scores[a], y[c])
                a += 1
            at[i] = a
        _without_one(x, t, tile)
        minimise_child(y)
        if values.shape[0] == 0:
            continue
        for g in range(0, tile, 64):
            own, least = local[g : g + 64], y[g : g + 64]
            equal = np.int64(0)  # bit c tells whether own[c] is to be listed: found for several c at once
            for c in range(own.shape[0]):
                equal |= np.int64(own[c] == least[c]) << c
            while equal:
                c = trailing_zeros(equal)  # type: ignore[call-arg]
                places[k], values[k] = t + g + c, own[c]
                k += own[c] < np.inf
                equal &= equal - 1
    return k


@numba.njit(cache=True, nogil=True)
def least_listed(places: Any, values: Any, outside: int) -> Any:
    """The least of the listed scores whose place has none of the bits `outside`."""
    least = np.inf
    for i in range(places.shape[0]):
        if places[i] & outside == 0:
            least = smaller(values[i], least)
    return least
