"""What a score is, measured: equivalence, invariances, consistency.

Nothing here is declared by the score. Each property is tried on random data and graphs, and the certificate says
how large a violation was seen in how many cases. "Holds" means that no case refuted it.

Consistency is that of the paper's Theorem 1: among the networks that follow an order, the best is the minimal I-map,
with a probability that goes to 1 as n grows. A minimal I-map is itself a network that generates the distribution in
that order, so random networks are tried with their own order. What is compared are the misses at two sample sizes
that are both so large that no true edge is missed by chance; only their moments are drawn, not the data.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scorers.base import Array, Scorer, code_lengths
from scorers.families import Families, score_table
from scorers.masks import expand
from scorers.moments import Moments
from scorers.network import network_score

if TYPE_CHECKING:
    import pandas as pd

Edges = npt.NDArray[np.bool_]

# Equal scores that are computed in two ways differ by rounding, which stays far below this many nats.
ROUNDING = 1e-6
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

    def sample_moments(self, n: int, rng: np.random.Generator) -> Moments:
        """The moments of n samples, drawn from their own distribution: the scatter is Wishart's (Bartlett 1933)."""
        m = len(self.order)
        # a sample is noise @ effects, the noise being independent with unit variance
        effects = np.linalg.inv(np.eye(m) - self.coefficients) * self.noise[:, None]
        bartlett = np.tril(rng.standard_normal((m, m)), k=-1) + np.diag(np.sqrt(rng.chisquare(n - 1 - np.arange(m))))
        root = bartlett.T @ effects
        scatter = root.T @ root
        deviation = np.sqrt(np.diag(scatter) / n)
        mean = self.mean + rng.standard_normal(m) / np.sqrt(n) @ effects
        return Moments(
            n=n,
            names=tuple(f"x{i}" for i in range(m)),
            correlation=scatter / n / np.outer(deviation, deviation),
            ln_variance=2 * np.log(deviation),
            offset=mean / deviation,
        )


def is_upside_down(scorer: Scorer) -> bool:
    """Whether a score prefers the empty graph to a strong truth at n = 100 000: for it, higher must be better."""
    m = 4
    chain = np.eye(m, k=1)
    truth = _Network(np.arange(m), chain > 0, chain, np.full(m, 0.5), np.ones(m))
    families = Families.of_moments(truth.sample_moments(100_000, np.random.default_rng(0))).seen_by(scorer)
    masks = (1 << np.arange(m)) @ truth.edges
    of_truth, of_empty = (code_lengths(scorer, families.network(each)).sum() for each in (masks, np.zeros_like(masks)))
    return bool(of_truth > of_empty)


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
    import pandas as pd  # these two are slow to import, and searching needs neither
    from scipy.stats import binom

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
    misses, tried = zip(*(_misses(scorer, m, n, rng) for n in SIZES), strict=True)
    evidence = ", ".join(f"{a} of {b} at n = {n:,}" for n, a, b in zip(SIZES, misses, tried, strict=True))
    # of all misses at the last two sizes, how probable is it that so few are at the last, if both are as likely?
    fewer = binom.cdf(misses[-1], misses[-2] + misses[-1], 0.5) < SURELY
    consistent = bool(misses[-1] <= FEW * tried[-1] or fewer)
    rows.append(("consistent", consistent, misses[-1] / tried[-1], tried[-1], f"minimal I-maps missed: {evidence}"))
    return pd.DataFrame(rows, columns=["property", "holds", "violation", "cases", "evidence"]).set_index("property")


def _random_dag(m: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], Edges]:
    """A random order, and a DAG that has each of its forward edges with probability ½."""
    order = rng.permutation(m)
    edges = np.zeros((m, m), dtype=bool)
    edges[np.ix_(order, order)] = np.triu(rng.random((m, m)) < 0.5, k=1)
    return order, edges


def _covered_reversals(scorer: Scorer, data: Array, rng: np.random.Generator) -> Iterator[float]:
    """Chickering (1995): equivalent DAGs are linked by reversals of covered edges i → j, π_j = π_i ∪ {i}."""
    covered: list[tuple[int, int]] = []
    while not covered:
        _, edges = _random_dag(data.shape[1], rng)
        parents = edges | np.eye(len(edges), dtype=bool)  # column i: π_i ∪ {i}
        covered = [(i, j) for i, j in np.argwhere(edges) if (edges[:, j] == parents[:, i]).all()]
    for i, j in covered:
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


def _misses(scorer: Scorer, m: int, n: int, rng: np.random.Generator) -> tuple[int, int]:
    """How many random networks are not the best, at sample size n, of those that follow their order; and of how many.

    Data that the score refuses (a correlation that is zero to all digits, at large n) do not count.
    """
    networks, moments = [], []
    for _ in range(NETWORKS):
        networks.append(_Network.draw(m, rng))
        moments.append(networks[-1].sample_moments(n, rng))
    tables = _tables(scorer, moments)
    if not tables:
        score_table(Families.of_moments(moments[0]), scorer)  # says why
    masks = np.array([[expand(c, j) for c in range(1 << (m - 1))] for j in range(m)])
    missed = 0
    for d, table in tables.items():
        order = networks[d].order
        before = np.empty(m, dtype=np.int64)  # the nodes before each in the order
        before[order] = np.concatenate([[0], np.cumsum(1 << order)[:-1]])
        best = np.where(masks & ~before[:, None], np.inf, table).argmin(axis=1)
        truth = (1 << np.arange(m)) @ networks[d].edges
        missed += int((masks[np.arange(m), best] != truth).any())
    return missed, len(tables)


def _tables(scorer: Scorer, moments: Sequence[Moments], first: int = 0) -> dict[int, Array]:
    """The score tables of data sets of one size, by their numbers from `first` on, without those that are refused."""
    together = replace(
        moments[0],
        correlation=np.array([each.correlation for each in moments]),
        ln_variance=np.array([each.ln_variance for each in moments]),
        offset=np.array([each.offset for each in moments]),
    )
    try:
        tables = score_table(Families.of_moments(together), scorer)
    except ValueError:
        half = len(moments) // 2
        parts = ((moments[:half], first), (moments[half:], first + half)) if half else ()
        return {d: table for part in parts for d, table in _tables(scorer, *part).items()}
    return dict(enumerate(tables, first))
