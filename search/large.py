"""The dynamic programme for many nodes: in blocks, by threads, and within the memory.

Up to m = 25 the table of all children is in memory, 8·m·2^(m−1) bytes. Above, the nodes from 24 on are *high*: for each
set U of high nodes the table of the low children is made anew, as the minimum over the subsets of U, and only one such
chunk is in memory at a time. Which sink was chosen is then recorded, in one byte a set.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.families import Families, block_bits, expand, masks_up_to, members
from search import kernels

# The table of all children is kept in memory up to this many nodes; above, that of LOW nodes is.
WHOLE, LOW = 25, 24
# Sets of nodes that one thread does at a time, and parent sets of one high child, as powers of two.
SINK_BITS, CHILD_BITS = 14, 15

Progress = Callable[[float], object]
Each = Callable[[Callable[[int], object], Iterable[int]], object]


@contextmanager
def workers(threads: int) -> Iterator[Each]:
    """A function that calls another for each item, in `threads` threads, and returns when all are done."""
    if threads == 1:
        yield lambda task, items: [task(item) for item in items]
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield lambda task, items: list(pool.map(task, items))


class Meter:
    """Adds up shares of work that several threads have done, and reports the sum."""

    def __init__(self, progress: Progress | None, runs: int) -> None:
        self.progress, self.runs, self.done, self.lock = progress, runs, 0.0, Lock()

    def add(self, share: float) -> None:
        """Report that a share of one run is done."""
        if self.progress is not None:
            with self.lock:
                self.done = min(1.0, self.done + share / self.runs)
                self.progress(self.done)


class LargeSearch:
    """One run of the dynamic programme: the problem, its tie weights, and the hands that work on it."""

    def __init__(self, families: Families, scorer: Scorer, weights: Array, each: Each, meter: Meter) -> None:
        self.families, self.scorer, self.each, self.meter = families, scorer, each, meter
        self.m = families.m
        self.weights = by_child(weights)

    def best(self) -> IntArray:
        """Parent masks of the best network."""
        return self.whole() if self.m <= WHOLE else self.chunked()

    def whole(self) -> IntArray:
        """Parent masks of the best network; the table of all children in memory."""
        m = self.m
        best = np.empty((m, 1 << (m - 1)))
        self.best_parents(range(m), [0], best, share=0.8)
        total = np.full(1 << m, np.inf)
        total[0] = 0.0
        self.best_sinks(best, total)
        parents = np.empty(m, dtype=np.int64)
        kernels.backtrack(best, total, parents)
        self.meter.add(0.2)
        return parents

    def chunked(self) -> IntArray:
        """Parent masks of the best network; one chunk of the low children's table at a time."""
        m, low = self.m, LOW
        total = np.full(1 << m, np.inf)
        total[0] = 0.0
        sink = np.empty(1 << m, dtype=np.int8)
        best = np.empty((low, 1 << (low - 1)))
        of_child = np.empty((1, 1 << low))
        for u in range(1 << (m - low)):
            here = slice(u << low, (u + 1) << low)
            for j in members(u):
                without = u ^ (1 << j)
                starts = [compressed(v, j) << low for v in _subsets(without)]
                self.best_parents(range(low + j, low + j + 1), starts, of_child)
                before = slice(without << low, (without + 1) << low)
                kernels.relax_high(total[here], total[before], of_child[0], low + j, sink[here])
            share = 2 ** u.bit_count() / 3 ** (m - low)
            self.best_parents(range(low), [v << (low - 1) for v in _subsets(u)], best, share)
            self.best_sinks(best, total[here], sink[here])
        del best
        return self.backtrack(sink)

    def best_parents(self, children: range, starts: list[int], best: Array, share: float = 0.0) -> None:
        """best[i, c] = the best score of the i-th child over parent sets in c joined with the bits of `starts`.

        `starts` are compressed masks of high nodes: all subsets of a set of them. `share` is that of all work.
        """
        bits = block_bits(self.m) if len(children) > 1 else min(CHILD_BITS, best.shape[1].bit_length() - 1)
        weights = self.weights[children.start : children.stop]

        def fill(first: int) -> None:
            for start in starts:
                mask = start + first
                masks = masks_up_to(self.families.max_parents, mask, bits)
                if len(masks):
                    scores = code_lengths(self.scorer, self.families.block(children, mask, bits))
                    kernels.place(scores, masks, weights, mask, start != starts[0], best, first, 1 << bits)
                elif start == starts[0]:  # too many parents for any family of the block
                    best[:, first : first + (1 << bits)] = np.inf
            kernels.minimise_block(best, first, 1 << bits)
            self.meter.add(share * (1 << bits) / best.shape[1])

        self.each(fill, range(0, best.shape[1], 1 << bits))
        self.each(lambda i: kernels.minimise(best[i], 1 << bits), range(len(children)))

    def best_sinks(self, best: Array, total: Array, sink: npt.NDArray[np.int8] | None = None) -> None:
        """Fill `total`, layer by layer of the high bits' number, so that each thread finds what it needs."""
        bits = min(SINK_BITS, len(best))

        def step(block: int) -> None:
            first, last = block << bits, (block + 1) << bits
            kernels.sinks(best, total, first, last)
            if sink is not None:
                kernels.record_sinks(best, total, first, last, sink)

        blocks = range(1 << (len(best) - bits))
        for layer in range(len(best) - bits + 1):
            self.each(step, [block for block in blocks if block.bit_count() == layer])

    def backtrack(self, sink: npt.NDArray[np.int8]) -> IntArray:
        """Go back along recorded sinks; their parents are found by scoring all subsets of the candidates again."""
        parents = np.empty(self.m, dtype=np.int64)
        s = (1 << self.m) - 1
        while s:
            j = int(sink[s])
            s ^= 1 << j
            parents[j] = self.best_subset(j, s)
        return parents

    def best_subset(self, j: int, candidates: int) -> int:
        """The best parents of child j among the candidates, as a mask."""
        bits = min(CHILD_BITS, self.m - 1)
        allowed = compressed(candidates, j)
        inside = (np.arange(1 << bits) & ~allowed) == 0
        weighted = np.empty((1, 1 << bits))
        found = []
        for high in _subsets(allowed >> bits):
            start = high << bits
            masks = masks_up_to(self.families.max_parents, start, bits)
            if not len(masks):
                continue
            scores = code_lengths(self.scorer, self.families.block(range(j, j + 1), start, bits))
            kernels.place(scores, masks, self.weights[j : j + 1], start, False, weighted, 0, 1 << bits)
            scores = np.where(inside, weighted[0], np.inf)
            found.append((scores.min(), start + int(scores.argmin())))
        return int(expand(min(found)[1], j))


def by_child(weights: Array) -> Array:
    """The weights of each child's edges, by the bits of its compressed masks: … × m × (m − 1)."""
    m = weights.shape[-1]
    of_child = np.swapaxes(weights, -1, -2)[..., ~np.eye(m, dtype=bool)]
    return of_child.reshape(*weights.shape[:-1], m - 1)


def compressed(mask: Any, j: Any) -> Any:
    """The mask, in which bit j is zero, without bit j."""
    low = (1 << j) - 1
    return mask & low | mask >> 1 & ~low


def _subsets(mask: int) -> list[int]:
    """All subsets of a mask, the empty one first."""
    return [v for v in range(mask + 1) if v & ~mask == 0]


def refuse_large(m: int, families: int) -> None:
    """Raise if the search needs more memory than is free; its families take some bytes a set, if not there yet."""
    if m > 60:
        raise MemoryError(f"The best network of m = {m} nodes is one of sets of 2^{m}: no memory holds them.")
    low = m if m <= WHOLE else LOW
    per_set = (8 if m <= WHOLE else 9) + families
    need = per_set * (1 << m) + 8 * low * (1 << (low - 1)) + (1 << 28)
    if m >= 20 and need > (free := psutil.virtual_memory().available):
        raise MemoryError(
            f"The best network of m = {m} nodes needs {need / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are free. "
            "Search fewer nodes: each node less halves it."
        )
