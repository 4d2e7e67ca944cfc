"""Second implementations, slow and plain: one least-squares fit a family, formulas from the paper's notation."""

from collections.abc import Callable, Sequence
from itertools import combinations, product
from math import lgamma, log, pi

import numpy as np

from scorers import (
    AIC,
    BIC,
    EBIC,
    GMDL,
    HQIC,
    MDL,
    QNML,
    RNML,
    AICc,
    RNMLCentred,
    RNMLGamma,
    RNMLPrintedC,
    RNMLStirling,
    Scorer,
    ZellnerG,
)
from scorers.base import Array


def fit(data: Array, child: int, parents: Sequence[int]) -> tuple[float, float]:
    """τ̂ and R̂ of one family by a QR least-squares fit with intercept."""
    n = len(data)
    design = np.column_stack([np.ones(n), data[:, list(parents)]])
    q, r = np.linalg.qr(design)
    fitted = design @ np.linalg.solve(r, q.T @ data[:, child])
    return float(np.mean((data[:, child] - fitted) ** 2)), float(np.mean(fitted**2))


def _centred(n: int, m: int, k: int, tau: float, r: float, variance: float) -> float:
    p = k - 1
    if p == 0:
        return n / 2 * log(tau) - lgamma(n / 2)
    return n / 2 * log(tau) - lgamma(p / 2) - lgamma((n - p) / 2) + p / 2 * log((variance - tau) / tau)


def _printed_c(n: int, m: int, k: int, tau: float, r: float, variance: float) -> float:
    return n / 2 * log(tau) - k / 2 * log(r / tau) - lgamma(k / 2) - lgamma(n - k)


def _gmdl(n: int, m: int, k: int, tau: float, r: float, variance: float) -> float:
    if k == 1 or (variance - tau) / (k - 1) < tau / (n - k):
        return (n - 1) / 2 * log(n * variance / (n - 1)) + log(n - 1) / 2
    s = n * tau / (n - k)
    return (n - 1) / 2 * log(s) + (k - 1) / 2 * log(n * (variance - tau) / (k - 1) / s) + log(n - 1)


def _zellner_g(n: int, m: int, k: int, tau: float, r: float, variance: float) -> float:
    bayes_factor = (n - k) / 2 * log(1 + n) - (n - 1) / 2 * log(1 + n * tau / variance)  # against no parents
    return (n - 1) / 2 * log(variance) - bayes_factor


def _qnml(n: int, m: int, k: int, tau: float, r: float, variance: float) -> float:
    return n / 2 * log(tau) - lgamma((n - k) / 2) - (k - 1) / 2 * log(pi)


# local code lengths from (n, m, k, τ̂, R̂, variance of the child)
FORMULAS: dict[Scorer, Callable[[int, int, int, float, float, float], float]] = {
    AIC(): lambda n, m, k, tau, r, v: n / 2 * log(tau) + k,
    BIC(): lambda n, m, k, tau, r, v: n / 2 * log(tau) + k / 2 * log(n),
    MDL(): lambda n, m, k, tau, r, v: n / 2 * log(tau) + k * (log(n) / 2 + log(m)),
    RNML(): lambda n, m, k, tau, r, v: n / 2 * log(tau) - lgamma(k / 2) - lgamma((n - k) / 2) + k / 2 * log(r / tau),
    RNMLStirling(): lambda n, m, k, tau, r, v: 0.5 * ((n - k) * log(tau / (n - k)) + k * log(r / k) + log(k * (n - k))),
    RNMLGamma(): lambda n, m, k, tau, r, v: n / 2 * log(tau) - lgamma(k / 2) - lgamma(n - k) + k / 2 * log(r / tau),
    RNMLPrintedC(): _printed_c,
    RNMLPrintedC(keep_k_squared=True): lambda n, m, k, tau, r, v: _printed_c(n, m, k, tau, r, v) - 2 * log(k),
    RNMLCentred(): _centred,
    AICc(): lambda n, m, k, tau, r, v: n / 2 * log(tau) + k + 1 + (k + 1) * (k + 2) / (n - k - 2),
    HQIC(): lambda n, m, k, tau, r, v: n / 2 * log(tau) + k * log(log(n)),
    EBIC(): lambda n, m, k, tau, r, v: n / 2 * log(tau) + k / 2 * log(n) + 2 * (k - 1) * log(m),
    EBIC(gamma=0.5): lambda n, m, k, tau, r, v: n / 2 * log(tau) + k / 2 * log(n) + (k - 1) * log(m),
    GMDL(): _gmdl,
    ZellnerG(): _zellner_g,
    QNML(): _qnml,
    QNML(volume=3): lambda n, m, k, tau, r, v: _qnml(n, m, k, tau, r, v) + (k - 1) * log(3),
}
# these score all members of a Markov equivalence class alike
EQUIVALENT = [AIC(), BIC(), MDL(), AICc(), HQIC(), EBIC(), EBIC(gamma=0.5), QNML(), QNML(volume=3)]
SCORERS = list(FORMULAS)


def family_score(data: Array, child: int, parents: Sequence[int], scorer: Scorer) -> float:
    n, m = data.shape
    tau, r = fit(data, child, parents)
    return FORMULAS[scorer](n, m, len(parents) + 1, tau, r, float(data[:, child].var()))


def network_score(data: Array, adjacency: Array, scorer: Scorer) -> float:
    m = data.shape[1]
    return sum(family_score(data, j, [int(i) for i in np.flatnonzero(adjacency[:, j])], scorer) for j in range(m))


def score_table(data: Array, scorer: Scorer, max_parents: int | None = None) -> Array:
    """A fit for each family: entry [j, S] is child j with the parents S, a bit mask; +inf where there is no score."""
    m = data.shape[1]
    table = np.full((m, 1 << m), np.inf)
    for j in range(m):
        others = [i for i in range(m) if i != j]
        for size in range((m - 1 if max_parents is None else max_parents) + 1):
            for parents in combinations(others, size):
                table[j, sum(1 << i for i in parents)] = family_score(data, j, parents, scorer)
    return table


def random_dag(m: int, rng: np.random.Generator) -> Array:
    """adjacency[i, j] = 1 means i → j; random order, each forward edge with probability ½."""
    order = rng.permutation(m)
    adjacency = np.zeros((m, m))
    adjacency[np.ix_(order, order)] = np.triu(rng.random((m, m)) < 0.5, k=1)
    return adjacency


def is_acyclic(adjacency: Array) -> bool:
    """No power of the adjacency has a trace."""
    power = np.eye(len(adjacency))
    for _ in adjacency:
        power = power @ adjacency
        if np.trace(power):
            return False
    return True


def all_dags(m: int) -> list[Array]:
    """Every acyclic one of all 2^(m(m−1)) digraphs."""
    off = [(i, j) for i in range(m) for j in range(m) if i != j]
    dags = []
    for bits in product((0.0, 1.0), repeat=len(off)):
        adjacency = np.zeros((m, m))
        for (i, j), bit in zip(off, bits, strict=True):
            adjacency[i, j] = bit
        if is_acyclic(adjacency):
            dags.append(adjacency)
    return dags


def shd(truth: Array, learned: Array) -> int:
    """Pairs of nodes whose edge, its direction included, differs: a reversal counts 1."""
    m = len(truth)
    return sum((truth[i, j], truth[j, i]) != (learned[i, j], learned[j, i]) for i in range(m) for j in range(i + 1, m))


def markov_class(adjacency: Array) -> tuple[frozenset[frozenset[int]], frozenset[tuple[frozenset[int], int]]]:
    """Skeleton and v-structures, which are the same for equivalent DAGs and for no others (Verma & Pearl 1990)."""
    m = len(adjacency)
    skeleton = frozenset(frozenset((i, j)) for i in range(m) for j in range(m) if adjacency[i, j])
    v_structures = frozenset(
        (frozenset((i, k)), j)
        for i, k in combinations(range(m), 2)
        for j in range(m)
        if adjacency[i, j] and adjacency[k, j] and frozenset((i, k)) not in skeleton
    )
    return skeleton, v_structures


def bic_table(data: Array) -> Array:
    """BIC of every family in NumPy: entry [j, S] is child j with the parents S, a bit mask; +inf where j is in S."""
    n, m = data.shape
    covariance = np.cov(data.T, bias=True)
    masks = np.arange(1 << m)
    ln_det = np.zeros(1 << m)
    for size in range(1, m + 1):
        sets = masks[np.bitwise_count(masks) == size]
        nodes = np.nonzero(sets[:, None] >> np.arange(m) & 1)[1].reshape(-1, size)
        ln_det[sets] = np.linalg.slogdet(covariance[nodes[:, :, None], nodes[:, None, :]])[1]
    table = np.full((m, 1 << m), np.inf)
    for j in range(m):
        sets = masks[masks >> j & 1 == 0]
        table[j, sets] = n / 2 * (ln_det[sets | 1 << j] - ln_det[sets]) + (np.bitwise_count(sets) + 1) / 2 * log(n)
    return table


def best_network(table: Array) -> tuple[Array, float]:
    """The dynamic programme of Silander & Myllymäki (2006) in NumPy, on such a table: adjacency and score."""
    m = len(table)
    masks = np.arange(1 << m)
    best = table.copy()  # of the subsets of S
    for b in range(m):
        pairs = best.reshape(m, -1, 2, 1 << b)
        pairs[:, :, 1] = np.minimum(pairs[:, :, 0], pairs[:, :, 1])
    total = np.full(1 << m, np.inf)
    total[0] = 0.0
    for size in range(1, m + 1):
        sets = masks[np.bitwise_count(masks) == size]
        for j in range(m):
            with_j = sets[sets >> j & 1 == 1]
            total[with_j] = np.minimum(total[with_j], total[with_j ^ 1 << j] + best[j, with_j ^ 1 << j])
    adjacency = np.zeros((m, m))
    left = (1 << m) - 1
    while left:
        sink = min((j for j in range(m) if left >> j & 1), key=lambda j: total[left ^ 1 << j] + best[j, left ^ 1 << j])
        left ^= 1 << sink
        parents = int(np.where(masks & ~left, np.inf, table[sink]).argmin())
        adjacency[:, sink] = parents >> np.arange(m) & 1
    return adjacency, float(total[-1])
