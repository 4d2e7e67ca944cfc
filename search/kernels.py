"""The inner loops of the dynamic programme: arrays in, arrays out, nothing checked.

`best[j, c]` belongs to child j and the compressed mask c (without bit j) of a set of candidate parents. `total[S]` is
the best score of a network on the nodes S. All loops release the interpreter lock, so that threads can share them.
"""

from typing import Any

import numba
import numpy as np


@numba.njit(inline="always")
def _min(a: Any, b: Any) -> Any:
    return a if a < b else b


@numba.njit(inline="always")
def _min_of_eight(y: Any, i: int, step: int) -> None:
    """y[i + c·step] = min of y over c with any of its three bits left out."""
    y0, y1, y2, y3 = y[i], y[i + step], y[i + 2 * step], y[i + 3 * step]
    y4, y5, y6, y7 = y[i + 4 * step], y[i + 5 * step], y[i + 6 * step], y[i + 7 * step]
    y1, y3, y5, y7 = _min(y0, y1), _min(y2, y3), _min(y4, y5), _min(y6, y7)
    y2, y3, y6, y7 = _min(y0, y2), _min(y1, y3), _min(y4, y6), _min(y5, y7)
    y4, y5, y6, y7 = _min(y0, y4), _min(y1, y5), _min(y2, y6), _min(y3, y7)
    y[i + step], y[i + 2 * step], y[i + 3 * step] = y1, y2, y3
    y[i + 4 * step], y[i + 5 * step], y[i + 6 * step], y[i + 7 * step] = y4, y5, y6, y7


@numba.njit(inline="always")
def _min_over_three_bits(x: Any, step: int) -> None:
    """x[c] = min of x over c with any of the bits step, 2·step, 4·step left out."""
    groups = x.reshape(-1, 8 * step)
    for g in range(groups.shape[0]):
        y = groups[g]
        for i in range(step):
            _min_of_eight(y, i, step)


@numba.njit(inline="always")
def _min_over_two_bits(x: Any, step: int) -> None:
    groups = x.reshape(-1, 4 * step)
    for g in range(groups.shape[0]):
        y = groups[g]
        for i in range(step):
            y0, y1, y2, y3 = y[i], y[i + step], y[i + 2 * step], y[i + 3 * step]
            y1, y3 = _min(y0, y1), _min(y2, y3)
            y[i + step], y[i + 2 * step], y[i + 3 * step] = y1, _min(y0, y2), _min(y1, y3)


@numba.njit(cache=True, nogil=True)
def _min_over_bits(x: Any, step: int) -> None:
    """The in-place min-zeta transform over the bits from `step` to the top of x, up to three in a pass."""
    while 8 * step <= x.shape[0]:
        _min_over_three_bits(x, step)
        step *= 8
    if 4 * step <= x.shape[0]:
        _min_over_two_bits(x, step)
    elif 2 * step <= x.shape[0]:
        pairs = x.reshape(2, step)
        for i in range(step):
            pairs[1, i] = _min(pairs[0, i], pairs[1, i])


@numba.njit(inline="always")
def _place_child(scores: Any, masks: Any, weights: Any, start: int, join: bool, x: Any) -> None:
    """One child's local scores, of the parent sets `masks`, to their places in x, with tie weights added.

    x[c] belongs to the parent set start + c; what has no score is infinite. weights[b] is the weight of bit b. With
    `join`, what is in its place already stays where it is less.
    """
    size = min(x.shape[0], 1024)
    low = np.empty(size)  # weights of the low bits' subsets
    low[0] = 0.0
    bits = 0
    while 1 << bits < size:
        for c in range(1 << bits):
            low[(1 << bits) + c] = low[c] + weights[bits]
        bits += 1
    high = np.zeros(x.shape[0] // size)
    for t in range(high.shape[0]):
        for b in range(bits, weights.shape[0]):
            if ((start + t * size) >> b) & 1:
                high[t] += weights[b]
    if masks.shape[0] == x.shape[0]:  # all of them
        for t in range(high.shape[0]):
            y = scores[t * size : (t + 1) * size]
            z = x[t * size : (t + 1) * size]
            if join:
                for c in range(size):
                    z[c] = _min(y[c] + (low[c] + high[t]), z[c])
            else:
                for c in range(size):
                    z[c] = y[c] + (low[c] + high[t])
    else:
        if not join:
            x[:] = np.inf
        for i in range(masks.shape[0]):
            c = masks[i] - start
            x[c] = _min(scores[i] + (low[c & (size - 1)] + high[c // size]), x[c])


@numba.njit(inline="always")
def _minimise_child(x: Any) -> None:
    """The best parents of one child within a block of candidate sets: the min-zeta transform over the block's bits."""
    if x.shape[0] < 4096:
        _min_over_bits(x, 1)
    else:
        tiles = x.reshape(-1, 4096)  # one fits the innermost cache; constant strides make faster code
        for t in range(tiles.shape[0]):
            _min_over_three_bits(tiles[t], 1)
            _min_over_three_bits(tiles[t], 8)
            _min_over_three_bits(tiles[t], 64)
            _min_over_three_bits(tiles[t], 512)
        _min_over_bits(x, 4096)


@numba.njit(cache=True, nogil=True)
def place(scores: Any, masks: Any, weights: Any, start: int, join: bool, best: Any, first: int, size: int) -> None:
    """Move a block of local scores to its place in `best`, with tie weights added: see `_place_child`."""
    for j in range(best.shape[0]):
        _place_child(scores[j], masks, weights[j], start, join, best[j, first : first + size])


@numba.njit(cache=True, nogil=True)
def minimise_block(best: Any, first: int, size: int) -> None:
    """The best parents within a block of candidate sets."""
    for j in range(best.shape[0]):
        _minimise_child(best[j, first : first + size])


@numba.njit(cache=True, nogil=True)
def join(ends: Any, places: Any, values: Any, best: Any, first: int) -> None:
    """The least of what is there and of listed scores: those of child j end at ends[j + 1]."""
    for j in range(best.shape[0]):
        x = best[j]
        for i in range(ends[j], ends[j + 1]):
            c = first + places[i]
            x[c] = _min(values[i], x[c])


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
        _place_child(scores[j], masks, weights[j], start, False, local)
        for c in range(size):
            x[c] = _min(local[c], x[c])
        _minimise_child(x)
        if listing:
            for c in range(size):
                places[k], values[k] = c, local[c]  # written over if it is not to be listed
                k += (local[c] == x[c]) & (local[c] < np.inf)
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
def minimise(x: Any, step: int) -> None:
    """The best parents of all candidate sets of one child: the transform's bits from `step` on.

    Bits within 2^16 entries are done while these are in the cache.
    """
    size = min(x.shape[0], 1 << 16)
    blocks = x.reshape(-1, size)
    for b in range(blocks.shape[0]):
        _min_over_bits(blocks[b], step)
    _min_over_bits(x, size)


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
                    _min_of_eight(y, i, bit * step)
        bit *= 8
    while 2 * bit <= rows:
        for row in range(rows):
            if row & bit:
                without, y = x[(row - bit) * step : (row - bit + 1) * step], x[row * step : (row + 1) * step]
                for i in range(first, last):
                    y[i] = _min(without[i], y[i])
        bit *= 2


@numba.njit(inline="always")
def _relax(total: Any, without: Any, best: Any) -> None:
    """total[i] = min(total[i], without[i] + best[i])."""
    for i in range(total.shape[0]):
        total[i] = _min(without[i] + best[i], total[i])


@numba.njit(inline="always")
def _relax_eight(t: Any, b0: Any, b1: Any, b2: Any) -> None:
    """The sets of nodes 0, 1, 2 on top of one set of higher nodes, in numeric order."""
    t[1] = _min(t[0] + b0[0], t[1])
    t[2] = _min(t[0] + b1[0], t[2])
    t[3] = _min(_min(t[2] + b0[1], t[1] + b1[1]), t[3])
    t[4] = _min(t[0] + b2[0], t[4])
    t[5] = _min(_min(t[4] + b0[2], t[1] + b2[1]), t[5])
    t[6] = _min(_min(t[4] + b1[2], t[2] + b2[2]), t[6])
    t[7] = _min(_min(_min(t[6] + b0[3], t[5] + b1[3]), t[3] + b2[3]), t[7])


@numba.njit(inline="always")
def _relax_thirty_two(best: Any, t: Any, c: int) -> None:
    """The sets of nodes 0 to 4 on top of one set of higher nodes, whose compressed mask is c."""
    _relax_eight(t[:8], best[0, c : c + 4], best[1, c : c + 4], best[2, c : c + 4])
    _relax(t[8:16], t[:8], best[3, c : c + 8])
    _relax_eight(t[8:16], best[0, c + 4 : c + 8], best[1, c + 4 : c + 8], best[2, c + 4 : c + 8])
    _relax(t[16:], t[:16], best[4, c : c + 16])
    _relax_eight(t[16:24], best[0, c + 8 : c + 12], best[1, c + 8 : c + 12], best[2, c + 8 : c + 12])
    _relax(t[24:], t[16:24], best[3, c + 8 : c + 16])
    _relax_eight(t[24:], best[0, c + 12 : c + 16], best[1, c + 12 : c + 16], best[2, c + 12 : c + 16])


@numba.njit(inline="always")
def _compress(s: int, j: int) -> int:
    """The mask s, in which bit j is zero, without bit j."""
    low = (1 << j) - 1
    return (s & low) | ((s >> 1) & ~low)


@numba.njit(cache=True, nogil=True)
def sinks(best: Any, total: Any, first: int, last: int) -> None:
    """total[S] = min over j in S of total[S without j] + best[j, S without j], for the sets from first to last.

    S without j is less than S, so numeric order finds all it needs. 32 sets that differ in nodes 0 to 4 are done
    together: along each higher node all of them at once, and then among themselves.
    """
    m = best.shape[0]
    if m < 5:
        for s in range(max(first, 1), last):
            for j in range(m):
                if (s >> j) & 1:
                    without = s ^ (1 << j)
                    total[s] = _min(total[without] + best[j, _compress(without, j)], total[s])
        return
    for s in range(first, last, 32):
        t = total[s : s + 32]
        for j in range(5, m):
            if (s >> j) & 1:
                without = s ^ (1 << j)
                c = _compress(without, j)
                _relax(t, total[without : without + 32], best[j, c : c + 32])
        _relax_thirty_two(best, t, s >> 1)


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
    found = np.empty(32, np.int64)  # as wide as a score: one instruction chooses eight of both
    for s in range(first, last, 32):
        t = total[s : s + 32]
        for i in range(32):
            found[i] = sink[s + i]
        for j in range(m - 1, 4, -1):
            if (s >> j) & 1:
                without = s ^ (1 << j)
                c = _compress(without, j)
                u, b = total[without : without + 32], best[j, c : c + 32]
                for i in range(32):
                    x = u[i] + b[i]
                    found[i] = j if x <= t[i] else found[i]
                    t[i] = x if x <= t[i] else t[i]
        _relax_thirty_two(best, t, s >> 1)
        c = s >> 1
        _record(t, best[4, c : c + 16], 4, 16, found)
        _record(t, best[3, c : c + 16], 3, 8, found)
        _record(t, best[2, c : c + 16], 2, 4, found)
        _record(t, best[1, c : c + 16], 1, 2, found)
        _record(t, best[0, c : c + 16], 0, 1, found)
        for i in range(32):
            sink[s + i] = found[i]


@numba.njit(cache=True, nogil=True)
def backtrack(best: Any, total: Any, parents: Any) -> None:
    """parents[j] = the parents of child j in the best network, as a mask.

    No choice was recorded: an equal sum shows the sink of a set, and a candidate can be left out of the parents as
    long as the best score stays the same.
    """
    m = best.shape[0]
    s = (1 << m) - 1
    while s:
        j = 0
        while j < m - 1 and (
            (s >> j) & 1 == 0 or total[s ^ (1 << j)] + best[j, _compress(s ^ (1 << j), j)] != total[s]
        ):
            j += 1
        s ^= 1 << j
        c = _compress(s, j)
        score = best[j, c]
        for b in range(m - 1):
            if (c >> b) & 1 and best[j, c ^ (1 << b)] == score:
                c ^= 1 << b
        low = (1 << j) - 1
        parents[j] = (c & low) | ((c & ~low) << 1)


@numba.njit(cache=True, nogil=True)
def solve(scores: Any, masks: Any, weights: Any, parents: Any) -> None:
    """parents[d, r] = the best network's parent masks, for each data set's scores[d] and tie weights[d, r].

    scores[d, j, i] belongs to child j with the compressed mask masks[i].
    """
    m = scores.shape[1]
    best = np.empty((m, 1 << (m - 1)))
    total = np.empty(1 << m)
    for d in range(parents.shape[0]):
        for r in range(parents.shape[1]):
            for j in range(m):
                _place_child(scores[d, j], masks, weights[d, r, j], 0, False, best[j])
                _minimise_child(best[j])
            total[:] = np.inf
            total[0] = 0.0
            sinks(best, total, 0, 1 << m)
            backtrack(best, total, parents[d, r])
