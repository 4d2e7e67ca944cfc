"""What a score is, measured: equivalence, invariances, consistency.

Nothing here is declared by the score. Each property is tried on random data and graphs, and the certificate says
how large a violation was seen in how many cases. "Holds" means that no case refuted it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from scorers.base import Array, Scorer
from scorers.families import Families, score_table
from scorers.network import network_score

Edges = npt.NDArray[np.bool_]

# Equal scores that are computed in two ways differ by rounding, which stays far below this many nats.
ROUNDING = 1e-6
# Where consistency is looked at, and the share of minimal I-maps at the last of them that counts as nearly all.
SIZES = (100, 1_000, 10_000, 100_000)
NEARLY_ALL = 0.95


@dataclass(frozen=True)
class _Network:
    """A random linear-Gaussian network whose effects, noises and means are all well away from zero."""

    order: npt.NDArray[np.int64]
    edges: Edges
    coefficients: Array
    noise: Array
    mean: Array

    @classmethod
    def draw(cls, m: int, rng: np.random.Generator) -> "_Network":
        order, edges = _random_dag(m, rng)
        coefficients = edges * rng.uniform(0.3, 1.0, (m, m)) * rng.choice([-1, 1], (m, m))
        return cls(order, edges, coefficients, rng.uniform(0.5, 1.0, m), rng.uniform(0.5, 2.0, m))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        data = np.zeros((n, len(self.order)))
        for j in self.order:
            data[:, j] = data @ self.coefficients[:, j] + self.noise[j] * rng.standard_normal(n)
        return data + self.mean


def certify(scorer: Scorer, *, cases: int = 60, m: int = 4, seed: int = 0) -> pd.DataFrame:
    """Measure the properties of a score on random data and graphs.

    Parameters
    ----------
    scorer : Scorer
        The score.
    cases : int
        Random networks, each with its data.
    m : int
        Nodes of those networks.
    seed : int
        Seed of the random cases.

    Returns
    -------
    DataFrame
        One row for each property: whether it holds, the largest violation seen, the number of cases, and what was
        measured in words. Violations of equivalence and invariance are in nats (of score differences between
        networks, for shift and scale); that of consistency is the share of optima at the largest n, among all
        networks that follow the true order, that are not the minimal I-map.
    """
    rng = np.random.default_rng(seed)
    networks = [_Network.draw(m, rng) for _ in range(cases)]
    samples = [network.sample(int(rng.integers(50, 500)), rng) for network in networks]
    changes: dict[str, tuple[str, Callable[[Scorer, Array, np.random.Generator], Iterator[float]]]] = {
        "score-equivalent": ("reversing a covered edge", _covered_reversals),
        "shift-invariant": ("moving the origins of the columns", _shifts),
        "scale-invariant": ("changing the units of the columns", _scales),
        "label-invariant": ("permuting the nodes", _permutations),
    }
    rows = []
    for name, (what, violations) in changes.items():
        seen = [v for data in samples for v in violations(scorer, data, rng)]
        rows.append((name, max(seen) < ROUNDING, max(seen), len(seen), f"change by {what}, in nats"))
    shares = _minimal_imap_shares(scorer, networks, rng)
    evidence = ", ".join(f"{share:.2f} at n = {n}" for n, share in zip(SIZES, shares, strict=True))
    consistent = shares[-1] >= NEARLY_ALL
    rows.append(("consistent", consistent, 1 - shares[-1], cases, f"share of minimal I-maps: {evidence}"))
    return pd.DataFrame(rows, columns=["property", "holds", "violation", "cases", "evidence"]).set_index("property")


def _random_dag(m: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], Edges]:
    """A random order, and a DAG that has each of its forward edges with probability ½."""
    order = rng.permutation(m)
    edges = np.zeros((m, m), dtype=bool)
    edges[np.ix_(order, order)] = np.triu(rng.random((m, m)) < 0.5, k=1)
    return order, edges


def _covered_reversals(scorer: Scorer, data: Array, rng: np.random.Generator) -> Iterator[float]:
    """Chickering (1995): equivalent DAGs are linked by reversals of covered edges i → j, π_j = π_i ∪ {i}."""
    _, edges = _random_dag(data.shape[1], rng)
    for i, j in np.argwhere(edges):
        if (edges[:, j] == (edges[:, i] | (np.arange(len(edges)) == i))).all():
            reversed_edge = edges.copy()
            reversed_edge[i, j], reversed_edge[j, i] = False, True
            yield abs(network_score(data, edges, scorer) - network_score(data, reversed_edge, scorer))


def _shifts(scorer: Scorer, data: Array, rng: np.random.Generator) -> Iterator[float]:
    yield _change_of_difference(scorer, data, data + rng.normal(0, 10, data.shape[1]), rng)


def _scales(scorer: Scorer, data: Array, rng: np.random.Generator) -> Iterator[float]:
    yield _change_of_difference(scorer, data, data * 10 ** rng.uniform(-3, 3, data.shape[1]), rng)


def _change_of_difference(scorer: Scorer, before: Array, after: Array, rng: np.random.Generator) -> float:
    """How the score difference between a random DAG and the empty one changes."""
    _, edges = _random_dag(before.shape[1], rng)
    empty = np.zeros_like(edges)
    old, new = (network_score(data, edges, scorer) - network_score(data, empty, scorer) for data in (before, after))
    return abs(new - old)


def _permutations(scorer: Scorer, data: Array, rng: np.random.Generator) -> Iterator[float]:
    _, edges = _random_dag(data.shape[1], rng)
    p = rng.permutation(len(edges))
    yield abs(network_score(data, edges, scorer) - network_score(data[:, p], edges[np.ix_(p, p)], scorer))


def _minimal_imap_shares(scorer: Scorer, networks: list[_Network], rng: np.random.Generator) -> list[float]:
    """For each sample size, how often the best network that follows the true order is the minimal I-map.

    The minimal I-map for a network's own order is that network, since all its coefficients differ from zero.
    """
    hits = np.zeros(len(SIZES))
    for network in networks:
        data = network.sample(SIZES[-1], rng)
        for which, n in enumerate(SIZES):
            hits[which] += (_best_given_order(scorer, data[:n], network.order) == network.edges).all()
    return [float(share) for share in hits / len(networks)]


def _best_given_order(scorer: Scorer, data: Array, order: npt.NDArray[np.int64]) -> Edges:
    families = Families.of(data)
    table = score_table(families, scorer)
    edges = np.zeros((families.m, families.m), dtype=bool)
    for position, j in enumerate(order):
        before = set(order[:position])
        choices = [c for c in range(table.shape[1]) if before.issuperset(families.parents(j, c))]
        best = min(choices, key=lambda c: table[j, c])
        edges[list(families.parents(j, best)), j] = True
    return edges
