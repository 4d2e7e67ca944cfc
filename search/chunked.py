"""The dynamic programme for so many nodes that the table of all children does not fit in the memory.

The nodes from `low` on are *high*. For each set U of high nodes, in numeric order, the table of the low children is
made: their best parents within U and any low nodes. Only one such chunk is in memory at a time. A parent set is listed
if no subset of it is better: the minimum over the listed sets of all V ⊂ U and over those of U itself is that over all.
So each local score is computed once; only what there is no room to list is scored again, 3^h chunks instead of 2^h for
h high nodes. The best scores of all sets of nodes and their sinks, 9·2^m bytes, are all that stays beside the lists.
"""

from collections.abc import Callable
from threading import Lock

import numpy as np
import numpy.typing as npt

from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.families import block_bits
from scorers.large import LargeFamilies
from scorers.masks import compressed, expand, masks_up_to, members
from search import chunk_kernels, kernels
from search.large import Each, Meter, by_child, layers

# Sets that one thread does at a time: of one high child, and in a pass that needs no table, as powers of two. With
# fewer of a child, threads wait for each other between NumPy's calls.
CHILD_BITS, PIECE_BITS = 17, 16

# Scores of one block: where those of each child end, their places in the block, and themselves.
Listed = tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32], Array]
Relax = Callable[[Array, Array, Array, int, npt.NDArray[np.int8]], object]


class ChunkedSearch:
    """One run of the dynamic programme: the problem, its tie weights, the hands that work on it, and room for lists."""

    def __init__(
        self, families: LargeFamilies, scorer: Scorer, weights: Array, each: Each, meter: Meter, low: int, room: int
    ) -> None:
        self.families, self.scorer, self.each, self.meter, self.room = families, scorer, each, meter, room
        self.m, self.low = families.m, low
        self.weights = by_child(weights)
        self.lists: dict[tuple[range, int], list[Listed]] = {}
        self.lock = Lock()
        self.logdet, self.chunk = np.empty(1 << low), -1  # of the sets of one chunk, and which

    def best(self) -> IntArray:
        """Parent masks of the best network."""
        m, low = self.m, self.low
        totals, sinks = np.empty((1 << (m - low), 1 << low)), np.empty((1 << (m - low), 1 << low), dtype=np.int8)
        of_low, of_high = np.empty((low, 1 << (low - 1))), np.empty((1, 1 << low))
        for u, (total, sink) in enumerate(zip(totals, sinks, strict=True)):
            if u == 0:  # the network without nodes; no other is known yet
                total[0], total[1:] = 0.0, np.inf
            self.prepare(u)
            for j in reversed(members(u)):  # the lowest of tied sinks comes last, and stays
                without = u ^ (1 << j)
                self.best_parents(range(low + j, low + j + 1), without, of_high)
                relax = chunk_kernels.relax_high if u >> (j + 1) else chunk_kernels.first_sink
                self.high_sink(relax, total, totals[without], of_high[0], low + j, sink)
            self.best_parents(range(low), u, of_low)
            self.best_sinks(of_low, total, sink)
        del totals, of_low, of_high
        return self.backtrack(sinks.reshape(-1))

    def best_parents(self, children: range, high: int, best: Array) -> None:
        """best[i, c] = the best score of the i-th child over parent sets in c joined with subsets of `high`."""
        bits = self.block_bits(children)
        size = 1 << bits
        blocks = range(0, best.shape[1], size)
        weights = self.weights[children.start : children.stop]
        before = [v for v in subsets(high) if v != high]
        again = [v for v in before if (children, v) not in self.lists]
        lists = [self.lists[children, v] for v in before if (children, v) in self.lists]
        new: dict[int, Listed] = {}

        def clear(first: int) -> None:
            best[:, first : first + size] = np.inf

        def score_again(first: int) -> None:
            start, masks, scores = self.scores(children, v, first, bits)
            kernels.place(scores, masks, weights, start, True, best, first, size)

        def score(first: int) -> None:
            if not again:
                clear(first)
            for of_block in lists:
                chunk_kernels.join(*of_block[first >> bits], best, first)
            start, masks, scores = self.scores(children, high, first, bits)
            listing = self.room > 0
            most = scores.size + 1 if listing else 0
            listed = np.empty(len(children) + 1, np.int32), np.empty(most, np.uint32), np.empty(most)
            chunk_kernels.join_and_list(scores, masks, weights, start, best, first, size, listing, *listed)
            if listing:
                self.keep(new, first >> bits, listed)
            self.meter.add(len(children) * size / (self.m << (self.m - 1)))

        def strike(block: int) -> None:
            chunk_kernels.still_least(*new[block], best, block << bits)
            self.keep(new, block, new[block])

        if again:
            self.each(clear, blocks)
        for v in again:
            self.prepare(self.chunk_of(children, v))
            self.each(score_again, blocks)
        self.prepare(self.chunk_of(children, high))
        self.each(score, blocks)
        self.minimise(best, size)
        others = (1 << (self.m - self.low)) - 1 & ~(1 << children.start >> self.low)
        if len(new) == len(blocks) and high != others:  # the list of the largest set is read only on the way back
            self.each(strike, range(len(blocks)))
        if len(new) == len(blocks) and self.room > 0:
            self.lists[children, high] = [new[block] for block in range(len(blocks))]
        else:
            self.room += sum(map(size_of, new.values()))

    def keep(self, lists: dict[int, Listed], block: int, listed: Listed) -> None:
        """Put a list in the place of the one that is there, if any, in no more memory than it needs."""
        ends, places, values = listed
        count = ends[-1]
        kept = (ends, places[:count].copy(), values[:count].copy())
        with self.lock:
            self.room += (size_of(lists[block]) if block in lists else 0) - size_of(kept)
            lists[block] = kept

    def block_bits(self, children: range) -> int:
        """The logarithm of the number of sets that a thread does at a time, for one high child or all low ones."""
        return min(CHILD_BITS, self.low) if children.start else min(block_bits(self.m), self.low - 1)

    def prepare(self, high: int) -> None:
        """Log-determinants of a chunk."""
        bits = min(PIECE_BITS, self.low)

        def fill(first: int) -> None:
            start = (high << self.low) + first
            self.logdet[first : first + (1 << bits)] = self.families.log_determinants(start, bits)

        if self.chunk != high:
            self.chunk = high
            self.each(fill, range(0, 1 << self.low, 1 << bits))

    def chunk_of(self, children: range, high: int) -> int:
        """The high nodes of the chunk whose log-determinants are needed: a high child is one of them."""
        return high | 1 << children.start >> self.low

    def scores(self, children: range, high: int, first: int, bits: int) -> tuple[int, IntArray, Array]:
        """Local scores of one block: its first compressed mask, those of up to `max_parents` members, and theirs."""
        start, child = high << self.low, children.start
        mask = compressed(start, child) + first
        masks = masks_up_to(self.families.max_parents, mask, bits)
        if not len(masks):
            return mask, masks, np.empty((len(children), 0))
        if child >= self.low:
            block = self.families.block_of_high(child, start, self.logdet[first : first + (1 << bits)], first)
        else:
            block = self.families.block_of_low(children, start, self.logdet, first, bits)
        return mask, masks, code_lengths(self.scorer, block)

    def minimise(self, best: Array, size: int) -> None:
        """The best parents of all candidate sets, from those within blocks of a size."""
        if len(best) > 1:
            self.each(lambda i: kernels.minimise(best[i], size), range(len(best)))
            return
        piece = min(1 << PIECE_BITS, best.shape[1])
        self.each(lambda i: kernels.minimise(best[0, i : i + piece], size), range(0, best.shape[1], piece))
        columns = min(piece, 1 << 12)
        self.each(lambda i: chunk_kernels.minimise_columns(best[0], piece, i, i + columns), range(0, piece, columns))

    def high_sink(
        self, relax: Relax, total: Array, without: Array, best: Array, j: int, sink: npt.NDArray[np.int8]
    ) -> None:
        """The high child j as the sink of the sets of a chunk."""
        piece = 1 << PIECE_BITS

        def step(i: int) -> None:
            here = slice(i, i + piece)
            relax(total[here], without[here], best[here], j, sink[here])

        self.each(step, range(0, len(total), piece))

    def best_sinks(self, best: Array, total: Array, sink: npt.NDArray[np.int8]) -> None:
        """The low children as sinks of the sets of a chunk."""
        for layer in layers(self.low):
            self.each(lambda block: chunk_kernels.recorded_sinks(best, total, block.start, block.stop, sink), layer)

    def backtrack(self, sinks: npt.NDArray[np.int8]) -> IntArray:
        """Go back along recorded sinks, and find the parents of each among the nodes that are left."""
        parents = np.empty(self.m, dtype=np.int64)
        s = (1 << self.m) - 1
        while s:
            j = int(sinks[s])
            s ^= 1 << j
            parents[j] = self.best_subset(j, s)
        return parents

    def best_subset(self, j: int, candidates: int) -> int:
        """The best parents of child j among the candidates, as a mask; of tied ones that with the lowest left out."""
        children = range(j, j + 1) if j >= self.low else range(self.low)
        bits = self.block_bits(children)
        allowed = compressed(candidates, j)
        inner = allowed & (1 << bits) - 1  # candidates that are told apart within a block, and of its number
        outer = compressed(candidates & (1 << self.low) - 1, j) & ~inner
        outside = ~inner & (1 << bits) - 1
        found = (np.inf, 0, 0)
        for v in subsets(candidates >> self.low):
            if (children, v) not in self.lists:
                self.prepare(self.chunk_of(children, v))
            for first in subsets(outer):
                places, values, begin, end = self.weighted(children, j, v, first, bits)
                least = chunk_kernels.least_listed(places, values, begin, end, outside)
                if least <= found[0] and least < np.inf:
                    for place in places[begin:end][values[begin:end] == least].tolist():
                        if place & outside == 0:
                            mask = expand(compressed(v << self.low, j) + first + place, j)
                            found = min(found, (least, int(f"{mask:0{self.m}b}"[::-1], 2), mask))
        return found[2]

    def weighted(
        self, children: range, j: int, high: int, first: int, bits: int
    ) -> tuple[npt.NDArray[np.uint32], Array, int, int]:
        """Scores of child j in one block, the listed ones or all, with tie weights: places, values, and which."""
        if (children, high) in self.lists:
            ends, places, values = self.lists[children, high][first >> bits]
            return places, values, ends[j - children.start], ends[j - children.start + 1]
        start, masks, scores = self.scores(range(j, j + 1), high, first, bits)
        placed = np.empty((1, 1 << bits))
        kernels.place(scores, masks, self.weights[j : j + 1], start, False, placed, 0, 1 << bits)
        return np.arange(1 << bits, dtype=np.uint32), placed[0], 0, 1 << bits


def subsets(mask: int) -> list[int]:
    """All subsets of a mask, in numeric order."""
    found = [0]
    for i in members(mask):
        found += [each | 1 << i for each in found]
    return found


def size_of(listed: Listed) -> int:
    """Bytes of a list."""
    return sum(each.nbytes for each in listed)
