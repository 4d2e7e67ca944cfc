"""The inner loops of the dynamic programme: arrays in, arrays out, nothing checked.

`best[j, c]` belongs to child j and the compressed mask c (without bit j) of a set of candidate parents. `total[S]` is
the best score of a network on the nodes S. All loops release the interpreter lock, so that threads can share them.
"""

from typing import Any

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

# Neighbouring sets that are done together: their scores fit into the innermost cache.
TILE = 4096


@numba.njit(inline="always")
def smaller(a: Any, b: Any) -> Any:
    """The smaller of two numbers, in a form that becomes one instruction."""
    return a if a < b else b


@numba.njit(inline="always")
def _min_over_three_bits(x: Any, step: int) -> None:
    """x[c] = min of x over c with any of the bits step, 2·step, 4·step left out."""
    groups = x.reshape(-1, 8 * step)
    for g in range(groups.shape[0]):
        y = groups[g]
        for i in range(step):
            y0, y1, y2, y3 = y[i], y[i + step], y[i + 2 * step], y[i + 3 * step]
            y4, y5, y6, y7 = y[i + 4 * step], y[i + 5 * step], y[i + 6 * step], y[i + 7 * step]
            y1, y3, y5, y7 = smaller(y0, y1), smaller(y2, y3), smaller(y4, y5), smaller(y6, y7)
            y2, y3, y6, y7 = smaller(y0, y2), smaller(y1, y3), smaller(y4, y6), smaller(y5, y7)
            y4, y5, y6, y7 = smaller(y0, y4), smaller(y1, y5), smaller(y2, y6), smaller(y3, y7)
            y[i + step], y[i + 2 * step], y[i + 3 * step] = y1, y2, y3
            y[i + 4 * step], y[i + 5 * step], y[i + 6 * step], y[i + 7 * step] = y4, y5, y6, y7


@numba.njit(inline="always")
def _min_over_two_bits(x: Any, step: int) -> None:
    groups = x.reshape(-1, 4 * step)
    for g in range(groups.shape[0]):
        y = groups[g]
        for i in range(step):
            y0, y1, y2, y3 = y[i], y[i + step], y[i + 2 * step], y[i + 3 * step]
            y1, y3 = smaller(y0, y1), smaller(y2, y3)
            y[i + step], y[i + 2 * step], y[i + 3 * step] = y1, smaller(y0, y2), smaller(y1, y3)


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
            pairs[1, i] = smaller(pairs[0, i], pairs[1, i])


@numba.njit(inline="always")
def place_child(scores: Any, masks: Any, weights: Any, start: int, join: bool, x: Any) -> None:
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
                    z[c] = smaller(y[c] + (low[c] + high[t]), z[c])
            else:
                for c in range(size):
                    z[c] = y[c] + (low[c] + high[t])
    else:
        if not join:
            x[:] = np.inf
        for i in range(masks.shape[0]):
            c = masks[i] - start
            x[c] = smaller(scores[i] + (low[c & (size - 1)] + high[c >> bits]), x[c])


@numba.njit(inline="always")
def minimise_child(x: Any) -> None:
    """The best parents of one child within a block of candidate sets: the min-zeta transform over the block's bits."""
    if x.shape[0] < TILE:
        _min_over_bits(x, 1)
    else:
        tiles = x.reshape(-1, TILE)  # constant strides make faster code
        for t in range(tiles.shape[0]):
            _min_over_three_bits(tiles[t], 1)
            _min_over_three_bits(tiles[t], 8)
            _min_over_three_bits(tiles[t], 64)
            _min_over_three_bits(tiles[t], 512)
        _min_over_bits(x, TILE)


@numba.njit(cache=True, nogil=True)
def place(scores: Any, masks: Any, weights: Any, start: int, join: bool, best: Any, first: int, size: int) -> None:
    """Move a block of local scores to its place in `best`, with tie weights added: see `place_child`."""
    for j in range(best.shape[0]):
        place_child(scores[j], masks, weights[j], start, join, best[j, first : first + size])


@numba.njit(cache=True, nogil=True)
def minimise_block(best: Any, first: int, size: int) -> None:
    """The best parents within a block of candidate sets."""
    for j in range(best.shape[0]):
        minimise_child(best[j, first : first + size])


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


@numba.njit(inline="always", cache=True, nogil=True)
def relax(total: Any, without: Any, best: Any) -> None:
    """total[i] = min(total[i], without[i] + best[i])."""
    for i in range(total.shape[0]):
        total[i] = smaller(without[i] + best[i], total[i])


@numba.njit(inline="always")
def _relax_eight(t: Any, b0: Any, b1: Any, b2: Any) -> None:
    """The sets of nodes 0, 1, 2 on top of one set of higher nodes, in numeric order."""
    t[1] = smaller(t[0] + b0[0], t[1])
    t[2] = smaller(t[0] + b1[0], t[2])
    t[3] = smaller(smaller(t[2] + b0[1], t[1] + b1[1]), t[3])
    t[4] = smaller(t[0] + b2[0], t[4])
    t[5] = smaller(smaller(t[4] + b0[2], t[1] + b2[1]), t[5])
    t[6] = smaller(smaller(t[4] + b1[2], t[2] + b2[2]), t[6])
    t[7] = smaller(smaller(smaller(t[6] + b0[3], t[5] + b1[3]), t[3] + b2[3]), t[7])


@numba.njit(inline="always")
def _relax_thirty_two(best: Any, t: Any, c: int) -> None:
    """The sets of nodes 0 to 4 on top of one set of higher nodes, whose compressed mask is c."""
    _relax_eight(t[:8], best[0, c : c + 4], best[1, c : c + 4], best[2, c : c + 4])
    relax(t[8:16], t[:8], best[3, c : c + 8])
    _relax_eight(t[8:16], best[0, c + 4 : c + 8], best[1, c + 4 : c + 8], best[2, c + 4 : c + 8])
    relax(t[16:], t[:16], best[4, c : c + 16])
    _relax_eight(t[16:24], best[0, c + 8 : c + 12], best[1, c + 8 : c + 12], best[2, c + 8 : c + 12])
    relax(t[24:], t[16:24], best[3, c + 8 : c + 16])
    _relax_eight(t[24:], best[0, c + 12 : c + 16], best[1, c + 12 : c + 16], best[2, c + 12 : c + 16])


@numba.njit(inline="always")
def compress(s: int, j: int) -> int:
    """The mask s, in which bit j is zero, without bit j."""
    low = (1 << j) - 1
    return (s & low) | ((s >> 1) & ~low)


@numba.njit(cache=True, nogil=True)
def sinks(best: Any, total: Any, first: int, last: int) -> None:
    """total[S] = min over j in S of total[S without j] + best[j, S without j], for the sets from first to last.

    S without j is less than S, so numeric order finds all it needs. The sets of a tile are done together: first along
    each node that all of them have; then, at every 32nd of them, the 2^j sets from there on along node j, the lowest
    of that one's, which all of them have; and the 32 from there on, which differ in nodes 0 to 4, among themselves.
    """
    m = best.shape[0]
    if m < 5:
        for s in range(max(first, 1), last):
            for j in range(m):
                if (s >> j) & 1:
                    without = s ^ (1 << j)
                    total[s] = smaller(total[without] + best[j, compress(without, j)], total[s])
        return
    tile = min(last - first, TILE)
    for start in range(first, last, tile):
        t = total[start : start + tile]
        for j in range(5, m):
            if (start >> j) & 1:
                without = start ^ (1 << j)
                c = compress(without, j)
                relax(t, total[without : without + tile], best[j, c : c + tile])
        for i in range(0, tile, 32):
            if i > 0:
                j = trailing_zeros(i)  # type: ignore[call-arg]
                run = 1 << j
                c = compress(start + i - run, j)
                relax(t[i : i + run], t[i - run : i], best[j, c : c + run])
            _relax_thirty_two(best, t[i : i + 32], (start + i) >> 1)


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
        while j < m - 1 and ((s >> j) & 1 == 0 or total[s ^ (1 << j)] + best[j, compress(s ^ (1 << j), j)] != total[s]):
            j += 1
        s ^= 1 << j
        c = compress(s, j)
        score = best[j, c]
        for b in range(m - 1):
            if (c >> b) & 1 and best[j, c ^ (1 << b)] == score:
                c ^= 1 << b
        low = (1 << j) - 1
        parents[j] = (c & low) | ((c & ~low) << 1)
