"""The score of one network, on data of any width: its m families are fitted by themselves."""

import numpy as np
import numpy.typing as npt

from scorers.base import Block, Scorer, code_lengths
from scorers.moments import Data, Moments, is_frame


def network_score(data: Data, adjacency: Data, scorer: Scorer) -> float:
    """The code length of a network in nats: lower is better.

    Parameters
    ----------
    data : array_like or DataFrame
        n × m; rows are samples, columns are nodes.
    adjacency : array_like or DataFrame
        m × m; `adjacency[i, j]` = 1 means i → j. A labelled frame is brought to the order of the data's columns.
    scorer : Scorer
        The score.

    Returns
    -------
    float
        The sum of the score over the network's families.

    Examples
    --------
    >>> from scorers import BIC, network_score
    >>> data = [[0.0, 1.0], [1.0, 3.0], [2.0, 4.0], [3.0, 8.0]]
    >>> round(network_score(data, [[0, 1], [0, 0]], BIC()), 6)
    0.928713
    """
    moments = Moments.of(data)
    edges = checked_adjacency(adjacency, moments.names)
    return float(code_lengths(scorer, families_of(moments, edges, scorer)).sum())


def families_of(moments: Moments, edges: npt.NDArray[np.bool_], scorer: Scorer) -> Block:
    """The block of a network's m families, one entry for each child, as the score sees them."""
    if hasattr(scorer, "moments"):
        moments = scorer.moments(moments)
    parents = [[int(i) for i in np.flatnonzero(edges[:, j])] for j in range(moments.m)]
    ln_tau, ln_det = np.empty(moments.m), np.empty(moments.m)
    for j in range(moments.m):
        family = [*parents[j], j]
        if moments.n <= len(family):
            raise ValueError(
                f"{moments.family(j, parents[j])}: n = {moments.n} samples cannot fit {len(parents[j])} parents "
                f"and the constant (k = {len(family)}): n > k is needed. Use fewer parents, or more data."
            )
        moments.refuse_dependent(family, where=f"{moments.family(j, parents[j])}: ")
        # The diagonal of the Cholesky factor: roots of the determinant of the parents and, last, of the child's
        # residual variance.
        roots = np.diag(np.linalg.cholesky(moments.correlation[np.ix_(family, family)]))
        ln_det[j] = 2 * np.log(roots[:-1]).sum() + moments.ln_variance[parents[j]].sum()
        ln_tau[j] = 2 * np.log(roots[-1]) + moments.ln_variance[j]
    return Block(
        n=moments.n,
        m=moments.m,
        k=edges.sum(axis=0, dtype=np.int64) + 1,
        ln_tau=ln_tau,
        ln_variance=moments.ln_variance,
        offset=moments.offset,
        centred=moments.centred,
        ln_det_parents=lambda: ln_det,
        label=lambda where: moments.family(where[0], parents[where[0]]),
    )


def checked_adjacency(adjacency: Data, names: tuple[str, ...], what: str = "adjacency") -> npt.NDArray[np.bool_]:
    """The adjacency as booleans, if it is that of a DAG on these nodes; an error that says why, if not."""
    m = len(names)
    if is_frame(adjacency):
        rows, columns = ([str(label) for label in axis] for axis in (adjacency.index, adjacency.columns))
    if is_frame(adjacency) and columns != [str(i) for i in range(m)]:  # labelled: bring to the data's order
        if sorted(rows) != sorted(names) or sorted(columns) != sorted(names):
            raise ValueError(f"The labels of {what} must be those of the data, {', '.join(names)}. Got others.")
        adjacency = adjacency.set_axis(rows, axis=0).set_axis(columns, axis=1).loc[list(names), list(names)]
    given = np.asarray(adjacency)
    if given.shape != (m, m):
        raise ValueError(f"{what} must be {m} × {m} for data with m = {m} columns. Got shape {given.shape} instead.")
    if not ((given == 0) | (given == 1)).all():
        raise ValueError(f"{what} must hold only 0 and 1: {what}[i, j] = 1 means i → j.")
    edges = given.astype(bool)
    left = edges.copy()  # edges among nodes that are not yet in order
    waiting = np.ones(m, dtype=bool)
    while (ready := waiting & ~left.any(axis=0)).any():
        waiting[ready] = False
        left[ready] = False
    if waiting.any():
        raise ValueError(f"{what} must be acyclic. Got the cycle {' → '.join(_cycle(left, names))} instead.")
    return edges


def _cycle(edges: npt.NDArray[np.bool_], names: tuple[str, ...]) -> list[str]:
    """A cycle, where every node that has edges has a parent: walk from parent to parent until one returns."""
    node = int(edges.any(axis=0).argmax())
    walk: list[int] = []
    while node not in walk:
        walk.append(node)
        node = int(edges[:, node].argmax())
    return [names[i] for i in [node, *reversed(walk[walk.index(node) :])]]
