"""What a score is, measured: equivalence, invariances, consistency.

Nothing here is declared by the score. Each property is tried on random data and graphs, and the certificate says
how large a violation was seen in how many cases. "Holds" means that no case refuted it.

Consistency is that of the paper's Theorem 1: among the networks that follow an order, the best is the minimal I-map,
with a probability that goes to 1 as n grows. A minimal I-map is itself a network that generates the distribution in
that order, so random networks are tried with their own order. What is compared are the misses at two sample sizes
that are both so large that no true edge is missed by chance; only their moments are drawn, not the data.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.families import Families, score_table
from scorers.masks import expand
from scorers.moments import Moments

if TYPE_CHECKING:
    import pandas as pd

Edges = npt.NDArray[np.bool_]
# A network, with the families of the data that it is scored on.
Scored = tuple[Families, Edges]
# What ought to be equal: scores of networks, or by how much they exceed those of other networks on the same data.
Case = list[tuple[Scored, ...]]

# Equal scores that are computed in two ways differ by rounding, which stays far below this many nats.
ROUNDING = 1e-6
# Changes that leave the scores of networks, or their differences, as they are if a score has the property.
CHANGES = {
    "score-equivalent": "reversing a covered edge",
    "shift-invariant": "moving the origins of the columns",
    "scale-invariant": "changing the units of the columns",
    "label-invariant": "permuting the nodes",
}
# What is said of a score of which `is_upside_down` is true.
UPSIDE_DOWN = (
    "prefers the empty graph to a strong truth at n = 100,000. Code lengths are wanted, lower is better: if higher is "
    "better in yours, return its negative."
)
# What it means for its user if a score has not a property.
ADVICE = {
    "score-equivalent": "DAGs that no data can tell apart get different scores: the directions it finds are its own",
    "shift-invariant": "results depend on the units' origin: Celsius or Kelvin makes a difference",
    "scale-invariant": "results depend on the units: standardise the data, or choose the units with care",
    "label-invariant": "results depend on the order of the columns: look for a mistake in the score",
    "consistent": "more data need not lead to the right graph",
}
# Sample sizes at which consistency is looked at, and with how many networks. A score is called consistent if at the
# last size it misses at most FEW of the minimal I-maps, or fewer than at the second with a p-value of SURELY.
SIZES = (100, 10_000, 100_000_000)
NETWORKS = 1000
FEW = 0.002
SURELY = 1e-4


@dataclass(frozen=True)
class _Networks:
    """Random linear-Gaussian networks whose effects, noises and means are all well away from zero.

    They are the leading axis of all arrays. `order` has the nodes of each in an order that its edges follow.
    """

    order: IntArray
    edges: Edges
    coefficients: Array
    noise: Array
    mean: Array

    @classmethod
    def draw(cls, count: int, m: int, rng: np.random.Generator) -> "_Networks":
        order, edges = _random_dags(count, m, rng)
        coefficients = edges * rng.uniform(0.3, 1.0, edges.shape) * rng.choice([-1, 1], edges.shape)
        return cls(order, edges, coefficients, rng.uniform(0.5, 1.0, order.shape), rng.uniform(0.5, 2.0, order.shape))

    def sample(self, d: int, n: int, rng: np.random.Generator) -> Array:
        """Samples of the d-th network, n × m."""
        data: Array = np.zeros((n, self.order.shape[1]))
        for j in self.order[d]:
            data[:, j] = data @ self.coefficients[d, :, j] + self.noise[d, j] * rng.standard_normal(n)
        data += self.mean[d]
        return data

    def sample_moments(self, n: int, rng: np.random.Generator) -> Moments:
        """The moments of n samples of each, from their own distribution: the scatter is Wishart's (Bartlett 1933)."""
        count, m = self.order.shape
        # a sample is noise @ effects, the noise being independent with unit variance
        effects = np.linalg.inv(np.eye(m) - self.coefficients) * self.noise[:, :, None]
        roots = np.sqrt(rng.chisquare(n - 1 - np.arange(m), (count, m)))
        bartlett = np.tril(rng.standard_normal((count, m, m)), k=-1) + np.eye(m) * roots[:, None]
        root = np.swapaxes(bartlett, 1, 2) @ effects
        scatter = np.swapaxes(root, 1, 2) @ root
        deviation = np.sqrt(np.diagonal(scatter, axis1=1, axis2=2) / n)
        mean = self.mean + (rng.standard_normal((count, 1, m)) / np.sqrt(n) @ effects)[:, 0]
        return Moments(
            n=n,
            names=tuple(f"x{i}" for i in range(m)),
            correlation=scatter / n / (deviation[:, :, None] * deviation[:, None]),
            ln_variance=2 * np.log(deviation),
            offset=mean / deviation,
        )


@dataclass(frozen=True)
class _Cases:
    """What all scores are tried on.

    Attributes
    ----------
    changes : dict
        The cases of each of the `CHANGES`.
    sampled : list of tuple
        For each of the `SIZES`, random networks and the families of samples from them.
    """

    changes: dict[str, list[Case]]
    sampled: list[tuple[_Networks, Families]]


def is_upside_down(scorer: Scorer) -> bool:
    """Whether a score prefers the empty graph to a strong truth at n = 100 000: for it, higher must be better."""
    m = 4
    chain = np.eye(m, k=1)[None]
    truth = _Networks(np.arange(m)[None], chain > 0, chain, np.full((1, m), 0.5), np.ones((1, m)))
    families = Families.of_moments(truth.sample_moments(100_000, np.random.default_rng(0))).at(0)
    of_truth, of_empty = (_score(scorer, (families, edges)) for edges in (chain[0] > 0, np.zeros((m, m), dtype=bool)))
    return of_truth > of_empty


def certify(scorer: Scorer, *, cases: int = 60, m: int = 4, seed: int = 0) -> "pd.DataFrame":
    """Measure the properties of a score on random data and graphs.

    Parameters
    ----------
    scorer : Scorer
        The score.
    cases : int
        Random networks with data, on which equivalence and invariances are tried.
    m : int
        Nodes of those networks.
    seed : int
        Seed of the random cases.

    Returns
    -------
    DataFrame
        One row for each property: whether it holds, the largest violation seen, the number of cases, and what was
        measured in words. Violations of equivalence and invariance are in nats (of score differences between
        networks, for shift and scale); that of consistency is the share of minimal I-maps that are missed at the
        largest n.
    """
    if is_upside_down(scorer):
        raise ValueError(f"The score {scorer!r} {UPSIDE_DOWN}")
    import pandas as pd  # slow to import, and searching does not need it

    tried = _cases(cases, m, seed)
    rows = []
    for name, what in CHANGES.items():
        seen = [_violation(scorer, case) for case in tried.changes[name]]
        rows.append((name, max(seen) < ROUNDING, max(seen), len(seen), f"change by {what}, in nats"))
    misses, of = zip(*(_misses(scorer, *sampled) for sampled in tried.sampled), strict=True)
    evidence = ", ".join(f"{a} of {b} at n = {n:,}" for n, a, b in zip(SIZES, misses, of, strict=True))
    # of all misses at the last two sizes, how probable is it that so few are at the last, if both are as likely?
    fewer = bdtr(misses[-1], misses[-2] + misses[-1], 0.5) < SURELY
    consistent = bool(misses[-1] <= FEW * of[-1] or fewer)
    rows.append(("consistent", consistent, misses[-1] / of[-1], of[-1], f"minimal I-maps missed: {evidence}"))
    return pd.DataFrame(rows, columns=["property", "holds", "violation", "cases", "evidence"]).set_index("property")


@lru_cache(maxsize=1)
def _cases(cases: int, m: int, seed: int) -> _Cases:
    """Draw what scores are tried on: once for all of them, since it depends on none."""
    rng = np.random.default_rng(seed)
    networks = _Networks.draw(cases, m, rng)
    samples = [networks.sample(d, int(rng.integers(50, 500)), rng) for d in range(cases)]
    changes: dict[str, list[Case]] = {name: [] for name in CHANGES}
    for data in samples:
        families = Families.of(data)
        changes["score-equivalent"] += [
            [((families, edges),), ((families, equivalent),)] for edges, equivalent in _covered_reversals(m, rng)
        ]
        units = {"shift-invariant": data + rng.normal(0, 10, m), "scale-invariant": data * 10 ** rng.uniform(-3, 3, m)}
        for name, changed in units.items():
            edges = _random_dags(1, m, rng)[1][0]
            both = families, Families.of(changed)
            changes[name].append([((each, edges), (each, np.zeros_like(edges))) for each in both])
        edges, p = _random_dags(1, m, rng)[1][0], rng.permutation(m)
        permuted = Families.of(data[:, p]), edges[np.ix_(p, p)]
        changes["label-invariant"].append([((families, edges),), (permuted,)])
    drawn = [(_Networks.draw(NETWORKS, m, rng), n) for n in SIZES]
    return _Cases(changes, [(each, Families.of_moments(each.sample_moments(n, rng))) for each, n in drawn])


def _random_dags(count: int, m: int, rng: np.random.Generator) -> tuple[IntArray, Edges]:
    """Random orders, and for each a DAG that has each of its forward edges with probability ½."""
    order = rng.permuted(np.tile(np.arange(m), (count, 1)), axis=1)
    edges = np.zeros((count, m, m), dtype=bool)
    forward = np.triu(rng.random((count, m, m)) < 0.5, k=1)
    edges[np.arange(count)[:, None, None], order[:, :, None], order[:, None]] = forward
    return order, edges


def _covered_reversals(m: int, rng: np.random.Generator) -> Iterator[tuple[Edges, Edges]]:
    """Chickering (1995): equivalent DAGs are linked by reversals of covered edges i → j, π_j = π_i ∪ {i}."""
    covered: list[tuple[int, int]] = []
    while not covered:
        edges = _random_dags(1, m, rng)[1][0]
        parents = edges | np.eye(m, dtype=bool)  # column i: π_i ∪ {i}
        covered = [(i, j) for i, j in np.argwhere(edges) if (edges[:, j] == parents[:, i]).all()]
    for i, j in covered:
        reversed_edge = edges.copy()
        reversed_edge[i, j], reversed_edge[j, i] = False, True
        yield edges, reversed_edge


def _violation(scorer: Scorer, case: Case) -> float:
    """By how much what ought to be equal is not."""
    return float(np.ptp([np.subtract.reduce([_score(scorer, each) for each in networks]) for networks in case]))


def _score(scorer: Scorer, network: Scored) -> float:
    families, edges = network
    return float(code_lengths(scorer, families.seen_by(scorer).network((1 << np.arange(families.m)) @ edges)).sum())


def _misses(scorer: Scorer, networks: _Networks, families: Families) -> tuple[int, int]:
    """How many networks are not the best, on their samples, of those that follow their order; and of how many.

    Data that the score refuses (a correlation that is zero to all digits, at large n) do not count.
    """
    tables = _tables(scorer, families)
    if not tables:
        score_table(families.at(0), scorer)  # says why
    m, kept = families.m, list(tables)
    masks = np.array([[expand(c, j) for c in range(1 << (m - 1))] for j in range(m)])
    order = networks.order[kept]
    before = np.empty_like(order)  # the nodes before each in the order
    np.put_along_axis(before, order, np.cumsum(1 << order, axis=1) - (1 << order), axis=1)
    best = np.where(masks & ~before[:, :, None], np.inf, [*tables.values()]).argmin(axis=2)
    truth = (1 << np.arange(m)) @ networks.edges[kept]
    return int((masks[np.arange(m), best] != truth).any(axis=1).sum()), len(kept)


def _tables(scorer: Scorer, families: Families, first: int = 0) -> dict[int, Array]:
    """The score tables of data sets of one size, by their numbers from `first` on, without those that are refused."""
    count = len(families.logdet)
    try:
        tables = score_table(families, scorer)
    except ValueError:
        half = count // 2
        parts = ((slice(0, half), first), (slice(half, count), first + half)) if half else ()
        return {d: table for part, start in parts for d, table in _tables(scorer, families.at(part), start).items()}
    return dict(enumerate(tables, first))
