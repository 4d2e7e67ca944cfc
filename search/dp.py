"""The best network, exactly, by dynamic programming over sets of nodes (Silander & Myllymäki 2006).

1. *Best parents*: for each child and each set of candidates, the best score of a parent set within it: an in-place
   minimum over subsets (a min-zeta transform) of the table of local scores.
2. *Best sinks*: total[S] = min over j in S of total[S without j] + best parents of j within S without j.
3. *Backtracking* from the set of all nodes.

Nothing but scores is stored: the choices are found again while going back. Up to m = 25 the table of all children
is in memory, 8·m·2^(m−1) bytes. Above, the nodes from 24 on are *high*: for each set U of high nodes the table of
the low children is made anew, as the minimum over the subsets of U, and only one such chunk is in memory at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from os import cpu_count
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.families import Families, block_bits, expand, members, score_table
from scorers.moments import Data
from scorers.network import checked_adjacency
from search import kernels
from search.ties import TOLERANCE, Ties, band_weights, edge_weights, score_size, shd_of_weights

# The table of all children is kept in memory up to this many nodes; above, that of LOW nodes is.
WHOLE, LOW = 25, 24
# Up to this many nodes one thread does everything in one go; from there on threads pay.
SMALL = 15
# Sets of nodes that one thread does at a time, and parent sets of one high child, as powers of two.
SINK_BITS, CHILD_BITS = 14, 15

Progress = Callable[[float], object]


@dataclass(frozen=True)
class Network:
    """A network and its score.

    Attributes
    ----------
    adjacency : ndarray of int64
        m × m; `adjacency[i, j]` = 1 means i → j.
    score : float
        Code length in nats: lower is better.
    """

    adjacency: IntArray
    score: float


def learn(
    data: Data | Families,
    scorer: Scorer,
    *,
    max_parents: int | None = None,
    ties: Ties = "random",
    truth: Data | None = None,
    rng: np.random.Generator | int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Network:
    """Find a network with the best score of all.

    Parameters
    ----------
    data : array_like, DataFrame or Families
        n × m data; or their families, to be shared by several searches.
    scorer : Scorer
        The score.
    max_parents : int, optional
        The largest number of parents a node may have.
    ties : {"random", "optimistic", "pessimistic", "first"}
        Which of several networks with the best score is returned; see `search.ties`.
    truth : array_like, optional
        The true adjacency, for "optimistic" and "pessimistic".
    rng : Generator or int, optional
        The source of random ties.
    threads : int, optional
        Threads to use; all cores for many nodes, one for few.
    progress : callable, optional
        Called now and then with the share of the work that is done, from 0 to 1, if there are many nodes.

    Returns
    -------
    Network
        The network and its score, without the tie weights.

    Examples
    --------
    >>> data = np.random.default_rng(1).normal(1, 1, size=(50, 3))
    >>> data[:, 2] += data[:, 0] - data[:, 1]
    >>> from scorers import BIC
    >>> learn(data, BIC(), ties="first").adjacency
    array([[0, 0, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """
    families = _families(data, max_parents)
    if truth is not None:
        truth = checked_adjacency(truth, families.moments.names, "truth")
    weights = edge_weights(ties, families.m, truth, rng)
    return optima(families, scorer, weights[None], threads=threads, progress=progress)[0]


def tie_band(
    data: Data | Families,
    scorer: Scorer,
    truth: Data,
    *,
    max_parents: int | None = None,
    rng: np.random.Generator | int | None = None,
    threads: int | None = None,
) -> tuple[int, int, int]:
    """SHD between the truth and the best networks: the nearest of them, a random one, and the farthest.

    Parameters
    ----------
    data, scorer, max_parents, rng, threads
        As in `learn`.
    truth : array_like or DataFrame
        The true adjacency.

    Returns
    -------
    tuple of int
        Best, random and worst SHD; a reversed edge counts 1.
    """
    families = _families(data, max_parents)
    edges = checked_adjacency(truth, families.moments.names, "truth")
    networks = optima(families, scorer, band_weights(edges, rng), threads=threads)
    best, random, worst = (shd_of_weights(edges, network.adjacency) for network in networks)
    return best, random, worst


def _families(data: Data | Families, max_parents: int | None) -> Families:
    """The families of the data, if the search fits in memory."""
    if not isinstance(data, Families):
        shape = np.shape(data)
        if len(shape) == 2:  # else the families say what is wrong
            _refuse_large(shape[1], 8)
        return Families.of(data, max_parents)
    _refuse_large(data.m, 0)
    if max_parents not in (None, data.max_parents):
        raise ValueError(
            f"The families were made for max_parents = {data.max_parents}. Got max_parents = {max_parents}: "
            "make them with Families.of(data, max_parents)."
        )
    return data


def optima(
    families: Families,
    scorer: Scorer,
    weights: Array,
    *,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Network]:
    """The best networks under several tie rules, whose local scores are computed only once if there are few nodes.

    Parameters
    ----------
    families, scorer, threads, progress
        As in `learn`.
    weights : Array
        Edge weights of each rule, as `search.ties` makes them.
    tolerance : float
        ε, what a unit of weight adds to a score, relative to the score's size.

    Returns
    -------
    list of Network
        One for each rule.
    """
    m = families.m
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be 1 at least. Got {threads} instead.")
    if m <= SMALL and threads in (None, 1):
        table = score_table(families, scorer)
        epsilon = tolerance * score_size(table[:, 0], table[:, (1 << families.max_parents) - 1])
        parents = np.empty((len(weights), m), dtype=np.int64)
        kernels.solve(table, np.array([_by_child(epsilon * each) for each in weights]), parents)
        scores = table[np.arange(m), _compressed(parents, np.arange(m))].sum(axis=1)
    else:
        masks = [np.array([expand((1 << k) - 1, j) for j in range(m)]) for k in (0, families.max_parents)]
        none, many = (code_lengths(scorer, families.network(each)) for each in masks)
        epsilon = tolerance * score_size(none, many)
        meter = _Meter(progress, len(weights))
        with _workers(threads or cpu_count() or 1) as each:
            searches = [_Search(families, scorer, epsilon * w, each, meter) for w in weights]
            parents = np.array([search.whole() if m <= WHOLE else search.chunked() for search in searches])
        scores = np.array([code_lengths(scorer, families.network(masks)).sum() for masks in parents])
    adjacencies = parents[:, None, :] >> np.arange(m)[:, None] & 1
    return [Network(adjacency, float(score)) for adjacency, score in zip(adjacencies, scores, strict=True)]


def _by_child(weights: Array) -> Array:
    """The weights of each child's edges, by the bits of its compressed masks."""
    m = len(weights)
    return weights.T[~np.eye(m, dtype=bool)].reshape(m, m - 1)


Each = Callable[[Callable[[int], object], Iterable[int]], object]


@contextmanager
def _workers(threads: int) -> Iterator[Each]:
    """A function that calls another for each item, in `threads` threads, and returns when all are done."""
    if threads == 1:
        yield lambda task, items: [task(item) for item in items]
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield lambda task, items: list(pool.map(task, items))


class _Meter:
    """Adds up shares of work that several threads have done, and reports the sum."""

    def __init__(self, progress: Progress | None, runs: int) -> None:
        self.progress, self.runs, self.done, self.lock = progress, runs, 0.0, Lock()

    def add(self, share: float) -> None:
        """Report that a share of one run is done."""
        if self.progress is not None:
            with self.lock:
                self.done = min(1.0, self.done + share / self.runs)
                self.progress(self.done)


class _Search:
    """One run of the dynamic programme: the problem, its tie weights, and the hands that work on it."""

    def __init__(self, families: Families, scorer: Scorer, weights: Array, each: Each, meter: _Meter) -> None:
        self.families, self.scorer, self.each, self.meter = families, scorer, each, meter
        self.m = families.m
        self.weights = _by_child(weights)

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
                starts = [_compressed(v, j) << low for v in _subsets(without)]
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
                if mask.bit_count() <= self.families.max_parents:
                    scores = code_lengths(self.scorer, self.families.block(children, mask, bits))
                    kernels.place(scores, weights, mask, start != starts[0], best, first)
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
        allowed = _compressed(candidates, j)
        inside = (np.arange(1 << bits) & ~allowed) == 0
        weighted = np.empty((1, 1 << bits))
        found = []
        for high in _subsets(allowed >> bits):
            start = high << bits
            scores = code_lengths(self.scorer, self.families.block(range(j, j + 1), start, bits))
            kernels.place(scores, self.weights[j : j + 1], start, False, weighted, 0)
            scores = np.where(inside, weighted[0], np.inf)
            found.append((scores.min(), start + int(scores.argmin())))
        return expand(min(found)[1], j)


def _compressed(mask: Any, j: Any) -> Any:
    """The mask, in which bit j is zero, without bit j."""
    low = (1 << j) - 1
    return mask & low | mask >> 1 & ~low


def _subsets(mask: int) -> list[int]:
    """All subsets of a mask, the empty one first."""
    return [v for v in range(mask + 1) if v & ~mask == 0]


def _refuse_large(m: int, families: int) -> None:
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
