"""Networks to other libraries' forms and back: round trips, the libraries' own conventions, and refusals."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from benchmark.metrics import cpdag
from scorers import BIC, network_score
from search.graphs import (
    from_causal_learn,
    from_model_string,
    from_networkx,
    from_pcalg,
    to_causal_learn,
    to_model_string,
    to_networkx,
    to_pcalg,
)
from tests import naive


def graphs() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    dags = [naive.random_dag(int(rng.integers(1, 8)), rng).astype(np.int64) for _ in range(40)]
    return dags + [cpdag(dag) for dag in dags]


@pytest.mark.parametrize("adjacency", graphs(), ids=lambda adjacency: f"m{len(adjacency)}")
def test_there_and_back(adjacency: np.ndarray) -> None:
    names = [f"node {i}" for i in reversed(range(len(adjacency)))]
    frame = from_networkx(to_networkx(adjacency, names))
    assert list(frame.index) == list(frame.columns) == names
    np.testing.assert_array_equal(frame, adjacency)
    np.testing.assert_array_equal(from_networkx(to_networkx(frame)), adjacency)
    np.testing.assert_array_equal(from_pcalg(to_pcalg(adjacency)), adjacency)
    np.testing.assert_array_equal(from_causal_learn(to_causal_learn(adjacency)), adjacency)
    if naive.is_acyclic(adjacency):
        string = to_model_string(adjacency, names)
        back = from_model_string(string)
        pd.testing.assert_frame_equal(back.loc[names, names], frame)
        for j, node in enumerate(back.columns):  # parents are written before their children
            assert not back[node].to_numpy()[j:].any()


def test_networkx_agrees_on_the_direction() -> None:
    graph = to_networkx([[0, 1, 0], [0, 0, 1], [0, 0, 0]], ["a", "b", "c"])
    assert list(graph.nodes) == ["a", "b", "c"]
    assert list(nx.topological_sort(graph)) == ["a", "b", "c"]
    assert nx.ancestors(graph, "c") == {"a", "b"}
    other = nx.DiGraph([("sink", "elsewhere"), ("source", "sink")])
    assert from_networkx(other).loc["source", "sink"] == 1
    assert from_networkx(other).to_numpy().sum() == 2
    np.testing.assert_array_equal(nx.to_numpy_array(other), from_networkx(other))


def test_pcalg_marks_arrowheads_by_row() -> None:
    """pcalg, help of amatType: "amat[a,b] = 0 and amat[b,a] = 1 implies a --> b", both 1 imply a --- b."""
    amat = np.zeros((3, 3))
    amat[1, 0] = 1  # 0 → 1
    amat[1, 2] = amat[2, 1] = 1  # 1 − 2
    np.testing.assert_array_equal(from_pcalg(amat), [[0, 1, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.filterwarnings("default")  # the peer's own
def test_causal_learn_has_the_same_edges() -> None:
    general = pytest.importorskip("causallearn.graph.GeneralGraph", reason="the extra `peers` is not installed")
    from causallearn.graph.Edges import Edges
    from causallearn.graph.GraphNode import GraphNode

    rng = np.random.default_rng(1)
    for _ in range(20):
        adjacency = cpdag(naive.random_dag(6, rng))
        nodes = [GraphNode(f"x{i}") for i in range(6)]
        graph = general.GeneralGraph(nodes)
        for i, j in np.argwhere(adjacency):
            if not adjacency[j, i]:
                graph.add_edge(Edges().directed_edge(nodes[i], nodes[j]))
            elif i < j:
                graph.add_edge(Edges().undirected_edge(nodes[i], nodes[j]))
        np.testing.assert_array_equal(to_causal_learn(adjacency), graph.graph)
        np.testing.assert_array_equal(from_causal_learn(graph.graph), adjacency)


def test_model_strings_of_bnlearn() -> None:
    """The example of bnlearn's help of modelstring, "[A][C][F][B|A][D|A:C][E|B:F]"."""
    frame = from_model_string("[A][C][F][B|A][D|A:C][E|B:F]")
    assert {(a, b) for a in frame.index for b in frame.columns if frame.loc[a, b]} == {
        ("A", "B"),
        ("A", "D"),
        ("C", "D"),
        ("B", "E"),
        ("F", "E"),
    }
    alphabetic = frame.sort_index(axis=0).sort_index(axis=1)
    assert to_model_string(alphabetic) == "[A][B|A][C][D|A:C][F][E|B:F]"
    assert to_model_string([[0, 0], [1, 0]]) == "[x1][x0|x1]"
    pd.testing.assert_frame_equal(
        from_model_string("[B|A][A]").loc[["A", "B"], ["A", "B"]], from_model_string("[A][B|A]")
    )


def test_labels_find_the_columns_of_the_data() -> None:
    data = pd.DataFrame(np.random.default_rng(2).normal(1, 1, (30, 3)), columns=["A", "B", "C"])
    expected = network_score(data, [[0, 0, 0], [1, 0, 0], [1, 0, 0]], BIC())
    for adjacency in (from_model_string("[C][B][A|B:C]"), from_networkx(nx.DiGraph([("C", "A"), ("B", "A")]))):
        assert network_score(data, adjacency, BIC()) == expected


def test_what_has_no_such_form_is_refused() -> None:
    edge, cycle = [[0, 1], [0, 0]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    for convert in (to_networkx, to_pcalg, to_causal_learn, to_model_string):
        with pytest.raises(ValueError, match=r"adjacency must be acyclic. Got the cycle"):
            convert(cycle)
        with pytest.raises(ValueError, match=r"must have no loops. Got x1 → x1"):
            convert([[0, 1], [0, 1]])
        with pytest.raises(ValueError, match="must hold only 0 and 1"):
            convert([[0, 2], [0, 0]])
        with pytest.raises(ValueError, match=r"must be m × m. Got shape \(1, 2\)"):
            convert([[0, 1]])
    with pytest.raises(ValueError, match="amat must hold only 0 and 1"):
        from_pcalg([[0, 2], [3, 0]])
    with pytest.raises(ValueError, match="amat must be acyclic"):
        from_pcalg(cycle)
    with pytest.raises(ValueError, match="between nodes 0 and 1 has the ends 1 and 1"):
        from_causal_learn([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="between nodes 0 and 1 has the ends 2 and 1"):
        from_causal_learn([[0, 2], [1, 0]])
    with pytest.raises(ValueError, match="graph must be m × m"):
        from_causal_learn([0, 1])
    with pytest.raises(ValueError, match=r"must be an nx.DiGraph. Got a Graph"):
        from_networkx(nx.Graph([("a", "b")]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must be an nx.DiGraph. Got a MultiDiGraph"):
        from_networkx(nx.MultiDiGraph([("a", "b")]))
    with pytest.raises(ValueError, match="Got the cycle a → b → c → a"):
        from_networkx(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]))
    for name in ("a[0]", "a:b", "a|b", ""):
        with pytest.raises(ValueError, match="cannot name a node"):
            to_model_string(edge, [name, "other"])
    with pytest.raises(ValueError, match=r"m = 2 nodes. Got 3 names"):
        to_networkx(edge, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"Names must be different. Got a more than once"):
        to_networkx(edge, ["a", "a"])
    with pytest.raises(ValueError, match="same labels, in the same order"):
        to_networkx(pd.DataFrame(edge, index=["a", "b"], columns=["b", "a"]))
    with pytest.raises(ValueError, match="adjacency must be acyclic"):
        to_model_string(cpdag(edge))
    for wrong in ("", "A", "[A][B|]", "[A][B|A:]", "[A] [B]", "[A][[B]", "[A|B|C]"):
        with pytest.raises(ValueError, match="A model string looks like"):
            from_model_string(wrong)
    with pytest.raises(ValueError, match="B has the parent A, which is not a node"):
        from_model_string("[B|A]")
    with pytest.raises(ValueError, match="The model string must be acyclic"):
        from_model_string("[A|B][B|A]")
    with pytest.raises(ValueError, match="Got A more than once"):
        from_model_string("[A][A]")
