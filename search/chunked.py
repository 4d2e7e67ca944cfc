"""The dynamic programme for so many nodes that the table of all children does not fit in the memory.

The nodes from `low` on are *high*. For each set U of high nodes, in numeric order, tables of best scores are made: of
the low children, whose parents are within U and any low nodes, and of each child in U. Only those of one U are in
memory at a time. A parent set is listed if no subset of it is better: the minimum over the listed sets of all V ⊂ U and
over those of U itself is that over all. So each local score is computed once; only what there is no room to list is
scored again, 3^h chunks instead of 2^h for h high nodes. The best scores of all sets of nodes, 8·2^m bytes, are all
that stays beside the lists: which node is the sink of a set, and which are its parents, is found again on the way back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

import numpy as np
import numpy.typing as npt

from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.families import block_bits
from scorers.large import LargeFamilies
from scorers.masks import compressed, expand, masks_up_to, members
from search import chunk_kernels, kernels, workspace
from search.large import Each, Meter, by_child, layers
from search.limits import CHUNKS

# Sets that one thread does at a time: of one high child, and in a pass that needs no table, as powers of two. With
# fewer of a child, threads wait for each other between NumPy's calls.
CHILD_BITS, PIECE_BITS = 17, 16

# Parent sets of one child: their places in its row of the table, in order, and their scores.
Listed = tuple[npt.NDArray[np.uint32], Array]


@dataclass(frozen=True)
class Table:
    """best[i, c] is the best score of the i-th child over parent sets in c joined with subsets of the nodes `high`.

    Here c is a set of low nodes, compressed if the children are low. The smaller sets of high nodes are those whose
    parent sets are listed, in lists of each child, and those that are `unlisted`; `found` are the lists of this table.
    """

    children: range
    high: int
    best: Array
    lists: list[list[Listed]]
    unlisted: list[int]
    found: dict[int, Listed] = field(default_factory=dict)


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
        self.chunks, self.filled = [-1] * CHUNKS, -1  # those whose log-determinants, and whose tables, are there

    def best(self) -> IntArray:
        """Parent masks of the best network."""
        low, high = self.low, self.m - self.low
        shapes = (1 << high, 1 << low), (low, 1 << (low - 1)), (high, 1 << low), (CHUNKS, 1 << low)
        with workspace.arrays(*shapes) as (totals, self.of_low, self.of_high, self.logdets):
            for u in range(1 << high):
                self.best_parents(u)
                self.best_sinks(u, totals)
            return self.backtrack(totals.reshape(-1))

    def tables(self, u: int) -> list[Table]:
        """The tables of a set of high nodes: of each of these, and of the low children."""
        low = self.low
        of_high = [self.table(range(low + j, low + j + 1), u ^ 1 << j, self.of_high[j : j + 1]) for j in members(u)]
        return [*of_high, self.table(range(low), u, self.of_low)]

    def table(self, children: range, high: int, best: Array) -> Table:
        """The table of some children, to be filled."""
        smaller = [(children, v) for v in subsets(high)[:-1]]
        lists = [self.lists[each] for each in smaller if each in self.lists]
        return Table(children, high, best, lists, [v for _, v in smaller if (children, v) not in self.lists])

    def best_parents(self, u: int) -> None:
        """Fill the tables of the high nodes u, and list what larger sets need."""
        self.filled, tables = u, self.tables(u)
        for table in tables:
            self.score_again(table)
        self.log_determinants(u)
        blocks = [(table, first) for table in tables for first in self.blocks(table)]
        self.each(lambda task: self.score(*task), blocks)
        rows = [(table, i) for table in tables for i in range(len(table.children))]
        self.each(lambda task: self.minimise(*task), rows)
        for table in tables:
            if len(table.found) == len(table.children) and self.room >= 0:
                self.lists[table.children, table.high] = [table.found[i] for i in range(len(table.children))]
            else:
                self.room += sum(map(size_of, table.found.values()))

    def score_again(self, table: Table) -> None:
        """Put local scores into a table that are not listed."""

        def clear(first: int) -> None:
            table.best[:, first : first + (1 << self.block_bits(table.children))] = np.inf

        if table.unlisted:
            self.each(clear, self.blocks(table))
        for v in table.unlisted:
            self.log_determinants(self.chunk_of(table.children, v))
            self.each(partial(self.place, table, v), self.blocks(table))

    def score(self, table: Table, first: int) -> None:
        """Put the local scores of one block of a table into it."""
        self.place(table, table.high, first)
        self.meter.add((len(table.children) << self.block_bits(table.children)) / (self.m << (self.m - 1)))

    def place(self, table: Table, high: int, first: int) -> None:
        """Put local scores with the high parents `high` into one block of a table, beside what is there to stay."""
        bits, children = self.block_bits(table.children), table.children
        start, masks, scores = self.scores(children, high, first, bits)
        weights = self.weights[children.start : children.stop]
        kernels.place(scores, masks, weights, start, bool(table.unlisted), table.best, first, 1 << bits)

    def minimise(self, table: Table, i: int) -> None:
        """From local scores to the best parents of one child; and its list, if there is room."""
        row, lists = table.best[i], [each[i] for each in table.lists]
        ends = np.cumsum([0, *(len(places) for places, _ in lists)])
        joined = np.concatenate([np.empty(0, np.uint32), *(places for places, _ in lists)])
        scores = np.concatenate([np.empty(0), *(values for _, values in lists)])
        most = 0 if table.unlisted or self.room <= 0 else len(row) + 1
        places, values = np.empty(most, np.uint32), np.empty(most)
        count = chunk_kernels.minimise_and_list(row, ends, joined, scores, places, values)
        if most:
            table.found[i] = places[:count].copy(), values[:count].copy()
            with self.lock:
                self.room -= size_of(table.found[i])

    def best_sinks(self, u: int, totals: Array) -> None:
        """The best scores of the sets of a chunk, from its tables: each high child as the sink, and any low one."""
        total, piece = totals[u], 1 << min(PIECE_BITS, self.low)
        if u == 0:  # the network without nodes; no other is known yet
            total[0], total[1:] = 0.0, np.inf

        def along_high(first: int) -> None:
            here = slice(first, first + piece)
            for i, j in enumerate(members(u)):
                without, best = totals[u ^ 1 << j, here], self.of_high[j, here]
                if i == 0:
                    np.add(without, best, out=total[here])
                else:
                    kernels.relax(total[here], without, best)

        if u > 0:
            self.each(along_high, range(0, len(total), piece))
        for layer in layers(self.low):
            self.each(lambda block: kernels.sinks(self.of_low, total, block.start, block.stop), layer)

    def blocks(self, table: Table) -> range:
        """The first places of the blocks of a table."""
        return range(0, table.best.shape[1], 1 << self.block_bits(table.children))

    def block_bits(self, children: range) -> int:
        """The logarithm of the number of sets that a thread does at a time, for one high child or all low ones."""
        return min(CHILD_BITS, self.low) if children.start else min(block_bits(self.m), self.low - 1)

    def log_determinants(self, chunk: int) -> None:
        """See to it that the log-determinants of a chunk are there: those of the sets of its high nodes and any low."""
        bits, slot = min(PIECE_BITS, self.low), chunk % CHUNKS

        def fill(first: int) -> None:
            start = (chunk << self.low) + first
            self.logdets[slot, first : first + (1 << bits)] = self.families.log_determinants(start, bits)

        if self.chunks[slot] != chunk:
            self.chunks[slot] = chunk
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
        logdet = self.logdets[self.chunk_of(children, high) % CHUNKS]
        if child >= self.low:
            here = slice(first, first + (1 << bits))
            if self.chunks[high % CHUNKS] == high:
                without = self.logdets[high % CHUNKS, here]
            else:
                without = self.families.log_determinants(start + first, bits)
            block = self.families.block_of_high(child, start + first, logdet[here], without)
        else:
            block = self.families.block_of_low(children, start, logdet, first, bits)
        return mask, masks, code_lengths(self.scorer, block)

    def backtrack(self, totals: Array) -> IntArray:
        """Go back from the set of all nodes: an equal sum shows the sink of a set, the lowest of tied ones."""
        parents = np.empty(self.m, dtype=np.int64)
        s = (1 << self.m) - 1
        while s:
            scores = self.best_scores(s)
            j = next(j for j in members(s) if totals[s ^ 1 << j] + scores[j] == totals[s])
            s ^= 1 << j
            parents[j] = self.best_subset(j, s)
        return parents

    def best_scores(self, nodes: int) -> dict[int, float]:
        """The score of the best parents of each of the nodes among the others.

        They are found in lists if there are all of them, and else in tables, which may have to be filled again.
        """
        u, low = nodes >> self.low, nodes & (1 << self.low) - 1
        scores = {}

        def look_up(j: int) -> None:
            candidates = nodes ^ 1 << j
            outside = self.outside(j, candidates)
            scores[j] = min(
                chunk_kernels.least_listed(*self.list_of(j, v), outside) for v in subsets(candidates >> self.low)
            )

        if all((table.children, table.high) in self.lists and not table.unlisted for table in self.tables(u)):
            self.each(look_up, members(nodes))
            return scores
        if self.filled != u:
            self.best_parents(u)
        return {
            j: self.of_low[j, compressed(low ^ 1 << j, j)] if j < self.low else self.of_high[j - self.low, low]
            for j in members(nodes)
        }

    def best_subset(self, j: int, candidates: int) -> int:
        """The best parents of child j among the candidates, as a mask; of tied ones that with the lowest left out."""
        outside = self.outside(j, candidates)
        found = (np.inf, 0, 0)
        for v in subsets(candidates >> self.low):
            for first, places, values in self.listed(j, v, outside):
                least = chunk_kernels.least_listed(places, values, outside)
                if least <= found[0] and least < np.inf:
                    for place in places[(values == least) & (places & outside == 0)].tolist():
                        mask = expand(compressed(v << self.low, j) + first + place, j)
                        found = min(found, (least, int(f"{mask:0{self.m}b}"[::-1], 2), mask))
        return found[2]

    def listed(self, j: int, high: int, outside: int) -> Iterator[tuple[int, npt.NDArray[np.uint32], Array]]:
        """Scores of child j with parents `high` and low ones: those listed; or all in blocks that are not `outside`."""
        if (self.group(j), high) in self.lists:
            yield 0, *self.list_of(j, high)
            return
        self.log_determinants(self.chunk_of(self.group(j), high))
        bits = min(CHILD_BITS, self.low - 1)
        for first in range(0, 1 << (self.low - (j < self.low)), 1 << bits):
            if first & outside == 0:
                start, masks, scores = self.scores(range(j, j + 1), high, first, bits)
                placed = np.empty((1, 1 << bits))
                kernels.place(scores, masks, self.weights[j : j + 1], start, False, placed, 0, 1 << bits)
                yield first, np.arange(1 << bits, dtype=np.uint32), placed[0]

    def list_of(self, j: int, high: int) -> Listed:
        """The list of child j with parents `high` and low ones."""
        return self.lists[self.group(j), high][j if j < self.low else 0]

    def group(self, j: int) -> range:
        """The children that have a table together: the low ones, or a high one alone."""
        return range(self.low) if j < self.low else range(j, j + 1)

    def outside(self, j: int, candidates: int) -> int:
        """The bits of places in the rows of child j that are no candidates."""
        return int(compressed((1 << self.low) - 1 & ~candidates & ~(1 << j), j))


def subsets(mask: int) -> list[int]:
    """All subsets of a mask, in numeric order."""
    found = [0]
    for i in members(mask):
        found += [each | 1 << i for each in found]
    return found


def size_of(listed: Listed) -> int:
    """Bytes of a list."""
    return sum(each.nbytes for each in listed)
