"""The best network, exactly, by dynamic programming over sets of nodes (Silander & Myllymäki 2006).

1. *Best parents*: for each child and each set of candidates, the best score of a parent set within it: an in-place
   minimum over subsets (a min-zeta transform) of the table of local scores.
2. *Best sinks*: total[S] = min over j in S of total[S without j] + best parents of j within S without j.
3. *Backtracking* from the set of all nodes.

Nothing but scores is stored: the choices are found again while going back. The loops are in `search.kernels`; how
several tie rules share them is told in `search.tie_kernels`, how many nodes are done in blocks and by threads in
`search.large`, and within the memory in `search.chunked`.
"""

import logging
import time
from dataclasses import dataclass
from os import cpu_count

import numpy as np

from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.families import Families
from scorers.large import LargeFamilies
from scorers.masks import expand
from scorers.moments import Data, Moments
from scorers.network import checked_adjacency
from search import limits, tie_kernels
from search.chunked import ChunkedSearch
from search.large import Meter, Progress, WholeSearch, workers
from search.ties import TOLERANCE, Ties, band_weights, edge_weights, score_size, shd_of_weights

LOG = logging.getLogger("search")

# Up to this many nodes are searched for an estimate.
SAMPLE = 20
# Up to this many nodes one thread does everything in one go; from there on threads pay.
SMALL = 15


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


@dataclass(frozen=True)
class Optima:
    """The best networks under several tie rules.

    Attributes
    ----------
    parents : ndarray of int64
        The parents of each child as a mask: rules × m; several data sets along the leading axes.
    scores : Array
        Their code lengths, without the tie weights.
    """

    parents: IntArray
    scores: Array

    @property
    def adjacencies(self) -> IntArray:
        """Rules × m × m; entry [r, i, j] = 1 means i → j in the network of rule r."""
        return self.parents[..., None, :] >> np.arange(self.parents.shape[-1])[:, None] & 1


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
    ties : {"random", "optimistic", "pessimistic", "forward", "backward", "first"}
        Which of several networks with the best score is returned; see `search.ties`.
    truth : array_like, optional
        The true adjacency, for "optimistic" and "pessimistic".
    rng : Generator or int, optional
        The source of random ties.
    threads : int, optional
        Threads to use; all cores for many nodes, one for few.
    progress : callable, optional
        Called now and then with the share of the work that is done, from 0 to 1, if there are many nodes. What it
        will take is told before: by `estimate`, and above 22 nodes as a message of the logger "search".

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
    found = optima(families, scorer, weights[None], threads=threads, progress=progress)
    return Network(found.adjacencies[0], float(found.scores[0]))


def estimate(
    data: Data | Families, scorer: Scorer, *, max_parents: int | None = None, threads: int | None = None
) -> limits.Estimate:
    """What `learn` will take, as a search of up to 20 of the nodes suggests: that takes a second at most.

    Parameters
    ----------
    data, scorer, max_parents, threads
        As in `learn`.

    Returns
    -------
    Estimate
        Time and memory; printed, a line that says so.
    """
    if isinstance(data, Families):
        seen = data.seen_by(scorer)
        return _estimate(LargeFamilies(seen.moments, seen.max_parents), scorer, threads)
    return _estimate(LargeFamilies.of_moments(Moments.of(data), max_parents).seen_by(scorer), scorer, threads)


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
    weights = band_weights(edges, edge_weights("random", families.m, rng=rng))
    found = optima(families, scorer, weights, threads=threads)
    best, random, worst = (shd_of_weights(edges, adjacency) for adjacency in found.adjacencies)
    return best, random, worst


def _families(data: Data | Families, max_parents: int | None) -> Families | LargeFamilies:
    """The families of the data, if the search fits in memory."""
    if not isinstance(data, Families):
        shape = np.shape(data)
        if len(shape) == 2:  # else the moments say what is wrong
            limits.refuse_large(shape[1])
        moments = Moments.of(data)
        return (Families if moments.m <= limits.WHOLE else LargeFamilies).of_moments(moments, max_parents)
    limits.refuse_large(data.m)
    if max_parents not in (None, data.max_parents):
        raise ValueError(
            f"The families were made for max_parents = {data.max_parents}. Got max_parents = {max_parents}: "
            "make them with Families.of(data, max_parents)."
        )
    return data


def optima(
    families: Families | LargeFamilies,
    scorer: Scorer,
    weights: Array,
    *,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Optima:
    """The best networks under several tie rules, whose local scores are computed only once if there are few nodes.

    Parameters
    ----------
    families, scorer, threads, progress
        As in `learn`; the families may be those of several data sets.
    weights : Array
        Edge weights of each rule, as `search.ties` makes them: … × rules × m × m.
    tolerance : float
        ε, what a unit of weight adds to a score, relative to the score's size.

    Returns
    -------
    Optima
        One network for each data set and rule.
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be 1 at least. Got {threads} instead.")
    families = families.seen_by(scorer)
    if isinstance(families, Families) and families.m <= SMALL and threads in (None, 1):
        return _few_nodes(families, scorer, weights, tolerance)
    if isinstance(families, Families) and families.logdet.ndim > 1:
        found = [
            _many_nodes(families.at(d), scorer, each, tolerance, threads, progress) for d, each in enumerate(weights)
        ]
        return Optima(np.array([each.parents for each in found]), np.array([each.scores for each in found]))
    return _many_nodes(families, scorer, weights, tolerance, threads, progress)


def _few_nodes(families: Families, scorer: Scorer, weights: Array, tolerance: float) -> Optima:
    m, masks, rules = families.m, families.masks, weights.shape[-3]
    scores = code_lengths(scorer, families.block(range(m), 0, m - 1))
    many = np.searchsorted(masks, (1 << families.max_parents) - 1)
    epsilon = tolerance * score_size(scores[..., 0], scores[..., many])
    parents, local = np.empty(weights.shape[:-1], dtype=np.int64), np.empty(weights.shape[:-1])
    tie_kernels.solve(
        scores.reshape(-1, m, len(masks)),
        masks,
        weights.reshape(-1, rules, m, m),
        epsilon.reshape(-1),
        parents.reshape(-1, rules, m),
        local.reshape(-1, rules, m),
    )
    return Optima(parents, local.sum(axis=-1))


def _many_nodes(
    families: Families | LargeFamilies,
    scorer: Scorer,
    weights: Array,
    tolerance: float,
    threads: int | None,
    progress: Progress | None,
) -> Optima:
    m = families.m
    if m > limits.WHOLE and LOG.isEnabledFor(logging.INFO):
        LOG.info("%s", _estimate(LargeFamilies(families.moments, families.max_parents), scorer, threads))
    low = limits.low_nodes(m)
    room = 0 if low is None else limits.refuse_large(m)
    return _search(families, scorer, weights, tolerance, threads, progress, low, room)


def _search(
    families: Families | LargeFamilies,
    scorer: Scorer,
    weights: Array,
    tolerance: float,
    threads: int | None,
    progress: Progress | None,
    low: int | None,
    room: int,
) -> Optima:
    """The best networks; in chunks of so many low nodes, if there is a number, with so many bytes for lists."""
    m = families.m
    sizes = [np.array([expand((1 << k) - 1, j) for j in range(m)]) for k in (0, families.max_parents)]
    none, many = (code_lengths(scorer, families.network(each)) for each in sizes)
    epsilon = tolerance * score_size(none, many)
    meter = Meter(progress, len(weights))
    with workers(threads or cpu_count() or 1) as each:
        if isinstance(families, Families) and low is None:
            runs = [WholeSearch(families, scorer, epsilon * w, each, meter).best() for w in weights]
        else:
            large = LargeFamilies(families.moments, families.max_parents)
            runs = [ChunkedSearch(large, scorer, epsilon * w, each, meter, low or m, room).best() for w in weights]
    parents = np.array(runs)
    scores = np.array([code_lengths(scorer, families.network(masks)).sum() for masks in parents])
    return Optima(parents, scores)


def _estimate(all_families: LargeFamilies, scorer: Scorer, threads: int | None) -> limits.Estimate:
    """The time of some of the nodes, searched in the way that all will be, times the number of families."""
    m, few = all_families.m, min(all_families.m, SAMPLE)
    low = None if m <= limits.WHOLE else few - 3
    moments, max_parents = all_families.moments.of_nodes(range(few)), min(all_families.max_parents, few - 1)
    families = Families.of_moments(moments, max_parents) if low is None else LargeFamilies(moments, max_parents)
    took = np.inf
    for _ in range(2):  # the first time may have to compile
        start = time.perf_counter()
        _search(families, scorer, np.zeros((1, few, few)), TOLERANCE, threads, None, low, room=8 << few)
        took = min(took, time.perf_counter() - start)
    return limits.Estimate(m, took * (m << m) / (few << few), *limits.memory(m))
