"""The dynamic programme for many nodes, by threads: the table of all children in blocks that fit the cache.

It takes 8·m·2^(m−1) bytes; what is done for more nodes than that allows is told in `search.chunked`.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Protocol, TypeVar

import numpy as np

from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.families import Families, block_bits
from scorers.masks import masks_up_to
from search import kernels, workspace

# Sets of nodes that one thread does at a time, as a power of two.
SINK_BITS = 14

T = TypeVar("T")
Progress = Callable[[float], object]


class Each(Protocol):
    """Calls a function for each item, perhaps in several threads, and returns when all are done."""

    def __call__(self, task: Callable[[T], object], items: Iterable[T], /) -> object:
        """Call `task` for each of the items."""
        ...


@contextmanager
def workers(threads: int) -> Iterator[Each]:
    """A function that calls another for each item, in `threads` threads, and returns when all are done.

    This thread is one of them, and each takes the next item when it has done one: none is woken only to hand on work.
    """
    with ThreadPoolExecutor(max(1, threads - 1)) as pool:  # has no thread until it is asked for something

        def each(task: Callable[[T], object], items: Iterable[T]) -> None:
            todo = list(items)
            left = iter(todo)

            def work() -> None:
                try:
                    for item in left:
                        task(item)
                except BaseException:
                    for _ in left:  # nobody needs to go on
                        pass
                    raise

            helpers = [pool.submit(work) for _ in todo[1:threads]]
            try:
                work()
            finally:
                for helper in helpers:
                    helper.result()

        yield each


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


class WholeSearch:
    """One run of the dynamic programme: the problem, its tie weights, and the hands that work on it."""

    def __init__(self, families: Families, scorer: Scorer, weights: Array, each: Each, meter: Meter) -> None:
        self.families, self.scorer, self.each, self.meter = families, scorer, each, meter
        self.m = families.m
        self.weights = by_child(weights)

    def best(self) -> IntArray:
        """Parent masks of the best network."""
        m = self.m
        parents = np.empty(m, dtype=np.int64)
        with workspace.arrays((m, 1 << (m - 1)), (1 << m,)) as (best, total):
            self.best_parents(best, share=0.8)
            total[0], total[1:] = 0.0, np.inf
            for layer in layers(m):
                self.each(lambda block: kernels.sinks(best, total, block.start, block.stop), layer)
            kernels.backtrack(best, total, parents)
        self.meter.add(0.2)
        return parents

    def best_parents(self, best: Array, share: float) -> None:
        """best[j, c] = the best score of child j over parent sets in c; `share` is that of all work."""
        bits = block_bits(self.m)

        def fill(first: int) -> None:
            masks = masks_up_to(self.families.max_parents, first, bits)
            if len(masks):
                scores = code_lengths(self.scorer, self.families.block(range(self.m), first, bits))
                kernels.place(scores, masks, self.weights, first, False, best, first, 1 << bits)
            else:  # too many parents for any family of the block
                best[:, first : first + (1 << bits)] = np.inf
            kernels.minimise_block(best, first, 1 << bits)
            self.meter.add(share * (1 << bits) / best.shape[1])

        self.each(fill, range(0, best.shape[1], 1 << bits))
        self.each(lambda j: kernels.minimise(best[j], 1 << bits), range(self.m))


def by_child(weights: Array) -> Array:
    """The weights of each child's edges, by the bits of its compressed masks: … × m × (m − 1)."""
    m = weights.shape[-1]
    of_child = np.swapaxes(weights, -1, -2)[..., ~np.eye(m, dtype=bool)]
    return of_child.reshape(*weights.shape[:-1], m - 1)


def layers(m: int) -> list[list[range]]:
    """Blocks of the sets of m nodes, in layers of the same number of high bits: each needs only layers before it."""
    bits = min(SINK_BITS, m)
    of_layer: list[list[range]] = [[] for _ in range(m - bits + 1)]
    for block in range(1 << (m - bits)):
        of_layer[block.bit_count()].append(range(block << bits, (block + 1) << bits))
    return of_layer
