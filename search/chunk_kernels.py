"""The inner loops of the dynamic programme in chunks: lists of parent sets, and sinks that are recorded.

Arrays are named as in `search.kernels`, and nothing is checked here either. A list holds scores of one block of
candidate sets: those of child j, and their places in the block, are the entries from ends[j] to ends[j + 1].
"""

from typing import Any

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from search.kernels import compress, min_of_eight, minimise_child, place_child, relax_thirty_two, smaller


@numba.njit(cache=True, nogil=True)
def join(ends: Any, places: Any, values: Any, best: Any, first: int) -> None:
    """The least of what is there and of listed scores: those of child j end at ends[j + 1]."""
    for j in range(best.shape[0]):
        x = best[j]
        for i in range(ends[j], ends[j + 1]):
            c = first + places[i]
            x[c] = smaller(values[i], x[c])


@numba.njit(cache=True, nogil=True)
def join_and_list(
    scores: Any,
    masks: Any,
    weights: Any,
    start: int,
    best: Any,
    first: int,
    size: int,
    listing: bool,
    ends: Any,
    places: Any,
    values: Any,
) -> None:
    """`place` with join, then `minimise_block`; and a list of the scores that are the best within their block.

    `places` and `values` have room for one more than there can be.
    """
    local = np.empty(size)
    k = 0
    ends[0] = 0
    for j in range(best.shape[0]):
        x = best[j, first : first + size]
        place_child(scores[j], masks, weights[j], start, False, local)
        for c in range(size):
            x[c] = smaller(local[c], x[c])
        minimise_child(x)
        if listing:
            for g in range(0, size, 64):
                y, z = local[g : g + 64], x[g : g + 64]
                equal = np.int64(0)  # bit c tells whether y[c] is to be listed: found for several c at once
                for c in range(y.shape[0]):
                    equal |= np.int64(y[c] == z[c]) << c
                while equal:
                    c = trailing_zeros(equal)  # type: ignore[call-arg]
                    places[k], values[k] = g + c, y[c]
                    k += y[c] < np.inf
                    equal &= equal - 1
        ends[j + 1] = k


@numba.njit(cache=True, nogil=True)
def still_least(ends: Any, places: Any, values: Any, best: Any, first: int) -> None:
    """Strike from a list, in place, the scores that are more than the best of their candidate set."""
    k = begin = 0
    for j in range(best.shape[0]):
        x = best[j]
        for i in range(begin, ends[j + 1]):
            least = values[i] == x[first + places[i]]
            places[k], values[k] = places[i], values[i]
            k += least
        begin = ends[j + 1]
        ends[j + 1] = k


@numba.njit(cache=True, nogil=True)
def least_listed(places: Any, values: Any, first: int, last: int, outside: int) -> Any:
    """The least of the listed scores from first to last whose place has none of the bits `outside`."""
    least = np.inf
    for i in range(first, last):
        if places[i] & outside == 0:
            least = smaller(values[i], least)
    return least


@numba.njit(cache=True, nogil=True)
def minimise_columns(x: Any, step: int, first: int, last: int) -> None:
    """The transform's bits from `step` on for sets whose lower bits are from first to last: threads share a child."""
    rows = x.shape[0] // step
    bit = 1
    while 8 * bit <= rows:
        for group in range(0, rows, 8 * bit):
            for row in range(group, group + bit):
                y = x[row * step : (row + 7 * bit + 1) * step]
                for i in range(first, last):
                    min_of_eight(y, i, bit * step)
        bit *= 8
    while 2 * bit <= rows:
        for row in range(rows):
            if row & bit:
                without, y = x[(row - bit) * step : (row - bit + 1) * step], x[row * step : (row + 1) * step]
                for i in range(first, last):
                    y[i] = smaller(without[i], y[i])
        bit *= 2


@numba.njit(cache=True, nogil=True)
def first_sink(total: Any, without: Any, best: Any, j: int, sink: Any) -> None:
    """total[i] = without[i] + best[i], with j as the sink."""
    for i in range(total.shape[0]):
        total[i] = without[i] + best[i]
        sink[i] = j


@numba.njit(cache=True, nogil=True)
def relax_high(total: Any, without: Any, best: Any, j: int, sink: Any) -> None:
    """total[i] = min(total[i], without[i] + best[i]), and j as the sink where that is not more."""
    for i in range(total.shape[0]):
        x = without[i] + best[i]
        if x <= total[i]:
            total[i] = x
            sink[i] = j


@numba.njit(inline="always")
def _record(t: Any, best: Any, j: int, run: int, found: Any) -> None:
    """Child j < 5, run = 2^j, as the sink of those of 32 sets whose score it gives."""
    for h in range(0, 32, 2 * run):
        for i in range(h, h + run):
            found[i + run] = j if t[i] + best[i - h // 2] == t[i + run] else found[i + run]


@numba.njit(cache=True, nogil=True)
def recorded_sinks(best: Any, total: Any, first: int, last: int, sink: Any) -> None:
    """As `sinks`, of five nodes at least; sink[S] = the lowest of the children whose sum is total[S], if one's is."""
    m = best.shape[0]
    # Of both, copies of our own and as wide as a score: one instruction then chooses several.
    least, found = np.empty(32), np.empty(32, np.int64)
    for s in range(first, last, 32):
        t = total[s : s + 32]
        for i in range(32):
            least[i], found[i] = t[i], sink[s + i]
        for j in range(m - 1, 4, -1):
            if (s >> j) & 1:
                without = s ^ (1 << j)
                c = compress(without, j)
                u, b = total[without : without + 32], best[j, c : c + 32]
                for i in range(32):
                    x = u[i] + b[i]
                    found[i] = j if x <= least[i] else found[i]
                    least[i] = x if x <= least[i] else least[i]
        for i in range(32):
            t[i] = least[i]
        relax_thirty_two(best, t, s >> 1)
        c = s >> 1
        _record(t, best[4, c : c + 16], 4, 16, found)
        _record(t, best[3, c : c + 16], 3, 8, found)
        _record(t, best[2, c : c + 16], 2, 4, found)
        _record(t, best[1, c : c + 16], 1, 2, found)
        _record(t, best[0, c : c + 16], 0, 1, found)
        for i in range(32):
            sink[s + i] = found[i]
