"""Networks in the forms that other libraries use.

Here `adjacency[i, j]` = 1 means i → j, and both entries 1 an undirected edge, of a CPDAG. `to_…` leaves this project
and `from_…` comes to it: networkx, the matrices of pcalg and causal-learn, which have it the other way round, and the
model strings of bnlearn. What has no such form is refused. Names are those of the data's columns, in their order.
"""

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd

from scorers.base import IntArray
from scorers.moments import Data, is_frame
from scorers.network import checked_adjacency

RESERVED = "[]|:"


def to_networkx(adjacency: Data, names: Iterable[Hashable] | None = None) -> "nx.DiGraph[Any]":
    """A graph of networkx.

    Parameters
    ----------
    adjacency : array_like or DataFrame
        m × m, of a DAG or a CPDAG; an undirected edge becomes two edges, one in each direction.
    names : iterable, optional
        The nodes' names, for instance `data.columns`; else the frame's labels, or "x0", "x1", ….

    Returns
    -------
    networkx.DiGraph
        The graph; its nodes are the names, in their order.

    Examples
    --------
    >>> list(to_networkx([[0, 1], [0, 0]], ["rain", "river"]).edges)
    [('rain', 'river')]
    """
    edges, labels = _labelled(adjacency, names)
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from(labels)
    graph.add_edges_from((labels[i], labels[j]) for i, j in np.argwhere(edges))
    return graph


def from_networkx(graph: "nx.DiGraph[Any]") -> pd.DataFrame:
    """The adjacency of a directed graph of networkx, a DAG or a CPDAG.

    Parameters
    ----------
    graph : networkx.DiGraph
        The graph; edges in both directions are an undirected edge.

    Returns
    -------
    DataFrame
        The adjacency, labelled by the nodes in the graph's order: `network_score` and `rank` bring it to that of the
        data's columns.
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise ValueError(f"The graph must be an nx.DiGraph. Got a {type(graph).__name__} instead.")
    nodes = list(graph.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    adjacency = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for parent, child in graph.edges():
        adjacency[place[parent], place[child]] = 1
    return _frame(_checked(adjacency, nodes), nodes)


def to_pcalg(adjacency: Data) -> IntArray:
    """The matrix of type `amat.cpdag` of pcalg: entry [a, b] = 0 and [b, a] = 1 mean a → b, both 1 mean a − b.

    Examples
    --------
    >>> to_pcalg([[0, 1], [0, 0]])
    array([[0, 0],
           [1, 0]])
    """
    edges, _ = _labelled(adjacency, None)
    return np.ascontiguousarray(edges.T)


def from_pcalg(amat: Data) -> IntArray:
    """The adjacency of a matrix of type `amat.cpdag` of pcalg: amat[a, b] = 0 and amat[b, a] = 1 mean a → b.

    Matrices of type `amat.pag`, which also hold 2 and 3, are refused.
    """
    edges, _ = _labelled(amat, None, "amat")
    return np.ascontiguousarray(edges.T)


def to_causal_learn(adjacency: Data) -> IntArray:
    """The matrix `GeneralGraph.graph` of causal-learn: [j, i] = 1 and [i, j] = −1 mean i → j, both −1 mean i − j.

    Examples
    --------
    >>> to_causal_learn([[0, 1], [0, 0]])
    array([[ 0, -1],
           [ 1,  0]])
    """
    edges, _ = _labelled(adjacency, None)
    return np.where(edges == 1, -1, edges.T)


def from_causal_learn(graph: npt.ArrayLike) -> IntArray:
    """The adjacency of a matrix `GeneralGraph.graph` of causal-learn: [j, i] = 1 and [i, j] = −1 mean i → j.

    Edges that are neither directed nor undirected (i ↔ j, circles) are refused.
    """
    ends = np.asarray(graph)
    if ends.ndim != 2 or ends.shape[0] != ends.shape[1]:
        raise ValueError(f"graph must be m × m, a GeneralGraph.graph. Got shape {ends.shape} instead.")
    known = ((ends == 0) & (ends.T == 0)) | ((ends == -1) & np.isin(ends.T, (-1, 1))) | ((ends == 1) & (ends.T == -1))
    if not known.all():
        i, j = (int(each) for each in np.argwhere(~known)[0])
        raise ValueError(
            f"The edge between nodes {i} and {j} has the ends {ends[i, j]} and {ends[j, i]}: only directed (−1 and 1) "
            "and undirected edges (−1 and −1) have a place in a DAG or CPDAG."
        )
    return _checked((ends == -1).astype(np.int64), [f"x{i}" for i in range(len(ends))], "graph")


def to_model_string(adjacency: Data, names: Iterable[Hashable] | None = None) -> str:
    """The model string of bnlearn: each node with its parents in brackets, parents before children.

    Parameters
    ----------
    adjacency : array_like or DataFrame
        m × m, of a DAG.
    names : iterable, optional
        The nodes' names, for instance `data.columns`; else the frame's labels, or "x0", "x1", ….

    Returns
    -------
    str
        The model string, for bnlearn's `model2network`.

    Examples
    --------
    >>> to_model_string([[0, 0, 1], [0, 0, 1], [0, 0, 0]], ["A", "B", "C"])
    '[A][B][C|A:B]'
    """
    edges, labels = _labelled(adjacency, names)
    words = [str(label) for label in labels]
    for word in words:
        if not word or any(sign in word for sign in RESERVED):
            raise ValueError(
                f"A model string cannot name a node {word!r}: names must not be empty or have [ ] | : in them."
            )
    _refuse_repeated(words)
    checked_adjacency(edges, tuple(words))  # a model string is of a DAG: no undirected edges
    written = ""
    waiting = list(range(len(words)))
    while waiting:
        j = next(j for j in waiting if not edges[waiting, j].any())  # the first whose parents are all written
        waiting.remove(j)
        parents = ":".join(words[i] for i in np.flatnonzero(edges[:, j]))
        written += f"[{words[j]}|{parents}]" if parents else f"[{words[j]}]"
    return written


def from_model_string(string: str) -> pd.DataFrame:
    """The adjacency of a model string of bnlearn.

    Parameters
    ----------
    string : str
        Each node with its parents in brackets, in any order: "[A][C|A:B][B|A]".

    Returns
    -------
    DataFrame
        The adjacency, labelled by the nodes in the string's order: `network_score` and `rank` bring it to that of the
        data's columns.

    Examples
    --------
    >>> from_model_string("[A][B|A]")
       A  B
    A  0  1
    B  0  0
    """
    name = r"[^\[\]|:]+"
    if not re.fullmatch(rf"(\[{name}(\|{name}(:{name})*)?\])+", string):
        raise ValueError(f'A model string looks like "[A][B|A][C|A:B]". Got {string!r} instead.')
    families = [part.partition("|") for part in string[1:-1].split("][")]
    nodes = [child for child, _, _ in families]
    _refuse_repeated(nodes)
    adjacency = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for j, (child, _, parents) in enumerate(families):
        for parent in parents.split(":") if parents else ():
            if parent not in nodes:
                raise ValueError(f"{child} has the parent {parent}, which is not a node of {string!r}: list all nodes.")
            adjacency[nodes.index(parent), j] = 1
    checked_adjacency(adjacency, tuple(nodes), "The model string")
    return _frame(adjacency, nodes)


def _labelled(
    adjacency: Data, names: Iterable[Hashable] | None, what: str = "adjacency"
) -> tuple[IntArray, list[Hashable]]:
    """A checked adjacency, and the names of its nodes."""
    given = np.asarray(adjacency)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"{what} must be m × m. Got shape {given.shape} instead.")
    if is_frame(adjacency):
        if list(adjacency.index) != list(adjacency.columns):
            raise ValueError(f"The rows and columns of {what} must have the same labels, in the same order.")
        names = list(adjacency.columns) if names is None else names
    labels: list[Hashable] = [f"x{i}" for i in range(len(given))] if names is None else list(names)
    if len(labels) != len(given):
        raise ValueError(f"{what} has m = {len(given)} nodes. Got {len(labels)} names.")
    _refuse_repeated(labels)
    return _checked(given, labels, what), labels


def _checked(adjacency: npt.NDArray[Any], names: Sequence[Hashable], what: str = "adjacency") -> IntArray:
    """The adjacency as integers, if it can be that of a DAG or a CPDAG: no loops, no directed cycles."""
    if not ((adjacency == 0) | (adjacency == 1)).all():
        raise ValueError(f"{what} must hold only 0 and 1.")
    loops = np.flatnonzero(np.diag(adjacency))
    if loops.size:
        raise ValueError(f"{what} must have no loops. Got {names[loops[0]]} → {names[loops[0]]} instead.")
    directed = (adjacency == 1) & (adjacency.T == 0)
    checked_adjacency(directed, tuple(str(name) for name in names), what)
    return adjacency.astype(np.int64)


def _frame(adjacency: IntArray, nodes: Sequence[Hashable]) -> pd.DataFrame:
    return pd.DataFrame(adjacency, index=list(nodes), columns=list(nodes))


def _refuse_repeated(names: Sequence[Hashable]) -> None:
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise ValueError(f"Names must be different. Got {repeated[0]} more than once.")
