"""Hill climbing over DAGs, small and plain: what an exact search must never do worse than.

From some DAG the best of all single changes is made, an edge added, deleted or reversed, until none improves the
score. Families are scored through NumPy's determinants, so that nothing is shared with the exact search but the score.
"""

import numpy as np

from scorers.base import Array, IntArray, Scorer, code_lengths
from scorers.families import block_of
from scorers.masks import compressed
from scorers.moments import Moments

# A change must improve the score by more than rounding does, or climbing need not end.
LEAST = 1e-9


def climb(moments: Moments, scorer: Scorer, adjacency: IntArray) -> tuple[IntArray, float]:
    """Climb from a DAG to one that no single change improves.

    Parameters
    ----------
    moments : Moments
        The data's moments.
    scorer : Scorer
        The score.
    adjacency : ndarray of int64
        The DAG to start from; `adjacency[i, j]` = 1 means i → j.

    Returns
    -------
    adjacency : ndarray of int64
        The DAG that was reached.
    score : float
        Its code length.
    """
    m = moments.m
    edges = adjacency.astype(bool)
    local, toggled = np.empty(m), np.empty((m, m))  # each child's score; and with i a parent no more, or now
    stale = list(range(m))
    while True:
        for j in stale:
            local[j], toggled[:, j] = _scores(moments, scorer, edges[:, j], j)
        change = toggled - local
        reach = np.linalg.matrix_power(np.eye(m) + edges, m - 1) > 0  # [i, j]: a path from i to j, or i = j
        detour = (edges.astype(float) @ reach - edges) > 0  # from i to j over another child of i
        add = np.where(edges | reach.T, np.inf, change)
        delete = np.where(edges, change, np.inf)
        reverse = np.where(edges & ~detour, change + change.T, np.inf)
        best = np.argmin([add, delete, reverse])
        move, i, j = (int(x) for x in np.unravel_index(best, (3, m, m)))
        if not (add, delete, reverse)[move][i, j] < -LEAST:
            return edges.astype(np.int64), float(local.sum())
        edges[i, j] = move == 0
        edges[j, i] |= move == 2
        stale = [i, j] if move == 2 else [j]


def random_start(m: int, rng: np.random.Generator) -> IntArray:
    """A DAG with a random order and two expected neighbours a node."""
    order = rng.permutation(m)
    forward = np.triu(rng.random((m, m)) < 2 / (m - 1), k=1)
    adjacency = np.zeros((m, m), dtype=np.int64)
    adjacency[np.ix_(order, order)] = forward
    return adjacency


def _scores(moments: Moments, scorer: Scorer, parents: np.ndarray, j: int) -> tuple[float, Array]:
    """The score of child j with these parents, and with each node i in turn put in or taken out; NaN for i = j."""
    m = moments.m
    others = np.delete(np.arange(m), j)
    sets = np.vstack([parents, parents ^ np.eye(m, dtype=bool)[others]])
    without = _ln_det(moments.correlation, sets)
    ln_tau = _ln_det(moments.correlation, sets | (np.arange(m) == j)) - without + moments.ln_variance[j]
    ln_det = (without + sets @ moments.ln_variance)[None]
    masks = compressed(sets @ (1 << np.arange(m)), j)
    scores = code_lengths(scorer, block_of(moments, range(j, j + 1), masks, ln_tau[None], lambda: ln_det))[0]
    toggled = np.full(m, np.nan)
    toggled[others] = scores[1:]
    return float(scores[0]), toggled


def _ln_det(correlation: Array, sets: np.ndarray) -> Array:
    """ln det of the correlation matrix of each set of nodes: those that are not in it are put in as independent."""
    inside = sets[:, :, None] & sets[:, None, :]
    return np.asarray(np.linalg.slogdet(np.where(inside, correlation, np.eye(len(correlation))))[1])
