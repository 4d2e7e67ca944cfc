"""Bad input: an error that names the column, the child or the parents, and says what to do."""

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd
import psutil
import pytest

from scorers import BIC, RNML, Families, RNMLCentred, RNMLStirling, Scorer, network_score, score_table

RNG = np.random.default_rng(0)
DATA = RNG.normal(1, 1, (30, 4))
CHAIN = np.eye(4, k=1)


def changed(column: int, values: npt.ArrayLike) -> np.ndarray:
    data = DATA.copy()
    data[:, column] = values
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(2, [np.nan, *DATA[1:, 2]]), r"column x2 has 1 value\(s\) that are NaN or infinite, .* row 0: drop"),
        (changed(1, [*DATA[1:, 1], -np.inf]), r"column x1 has 1 value\(s\) .* row 29"),
        (changed(3, 0.1), "column x3 is constant, .* Drop it"),
        (changed(3, 0.0), "column x3 is constant"),
        (changed(3, [1.0] * 29 + [np.nextafter(1, 2)]), "column x3 is constant, or without digits beside the mean"),
        (np.ma.masked_greater(DATA, 2.5), "value.* that are NaN or infinite"),
        (changed(3, DATA[:, 0]), "columns x0, x3 are linearly dependent"),
        (changed(0, DATA[:, 1] - 2 * DATA[:, 2] + 5), "columns x0, x1, x2 are linearly dependent"),
        (DATA[:, :1], "two nodes at least. Got m = 1"),
        (DATA[:1], "two samples at least. Got n = 1"),
        (DATA[:, 0], r"must be n × m, samples by nodes. Got shape \(30,\)"),
        (DATA.astype(complex), "must be real numbers. Got an array of complex128"),
        (DATA.astype(str), "must be real numbers"),
        (pd.DataFrame(DATA, columns=list("abcd")).assign(b="no", c=1j), "columns b, c are not numeric: drop or encode"),
        (pd.DataFrame(DATA, columns=list("abcd")).assign(b=pd.array([None, *range(29)], "Int64")), "column b has 1"),
        (pd.DataFrame(DATA, columns=list("abcd")).assign(d=DATA[:, 0]), "columns a, d are linearly dependent"),
    ],
)
def test_data(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Families.of(data)  # type: ignore[arg-type]


def test_too_few_samples_for_a_family_that_is_asked_for() -> None:
    wide = RNG.normal(1, 1, (4, 6))
    with pytest.raises(ValueError, match=r"n = 4 .* 5 parents and the constant \(k = 6\).* max_parents ≤ 2"):
        Families.of(wide)
    with pytest.raises(ValueError, match=r"cannot fit families with 3 parents"):
        Families.of(wide, max_parents=3)
    Families.of(wide, max_parents=2)
    adjacency = np.zeros((6, 6))
    adjacency[[0, 2, 4], 5] = 1
    with pytest.raises(ValueError, match=r"child x5, parents \[x0, x2, x4\]: n = 4 samples cannot fit 3 parents"):
        network_score(wide, adjacency, BIC())


def test_dependent_columns_among_fewer_samples_than_nodes() -> None:
    wide = RNG.normal(1, 1, (5, 7))
    wide[:, 6] = 3 * wide[:, 2] + 1
    with pytest.raises(ValueError, match="columns x2, x6 are linearly dependent"):
        Families.of(wide, max_parents=2)


def test_dependence_that_no_pivot_shows() -> None:
    """x7 = x1 + a little of x0: x0 has all its variance left beside x7, and x7 none beside x0 and x1."""
    wide = np.random.default_rng(1).normal(size=(8, 8))
    wide[:, 7] = wide[:, 1] + 2e-4 * wide[:, 0]
    with pytest.raises(ValueError, match="columns x0, x1, x7 are linearly dependent"):
        Families.of(wide, max_parents=3)
    wide[:, 7] += 1e-8 * np.random.default_rng(2).normal(size=8)
    with pytest.raises(ValueError, match="columns x0, x1, x7 are linearly dependent"):
        Families.of(wide, max_parents=3)


def test_a_singular_family_is_named_and_others_are_scored() -> None:
    data = changed(3, DATA[:, 0])
    adjacency = np.zeros((4, 4))
    adjacency[[0, 3], 1] = 1
    with pytest.raises(ValueError, match=r"child x1, parents \[x0, x3\]: columns x0, x3 are linearly dependent"):
        network_score(data, adjacency, BIC())
    assert np.isfinite(network_score(data, np.zeros((4, 4)), BIC()))


@pytest.mark.parametrize("max_parents", [-1, 4])
def test_max_parents(max_parents: int) -> None:
    with pytest.raises(ValueError, match=f"from 0 to m − 1 = 3. Got {max_parents} instead"):
        Families.of(DATA, max_parents=max_parents)


def test_too_many_nodes_for_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError, match=r"m = 45 nodes .* need 262,144.0 GiB, and .* GiB are free"):
        Families.of(RNG.normal(1, 1, (100, 45)))
    free = psutil.virtual_memory()._replace(available=2**20)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    with pytest.raises(MemoryError, match="m = 21"):
        Families.of(RNG.normal(1, 1, (100, 21)))


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (np.eye(4, k=1) + np.eye(4, k=-3), "acyclic. Got the cycle x0 → x1 → x2 → x3 → x0 instead"),
        (np.eye(4), "acyclic. Got the cycle x0 → x0 instead"),
        (np.zeros((4, 3)), r"must be 4 × 4 for data with m = 4 columns. Got shape \(4, 3\)"),
        (np.zeros((5, 5)), r"Got shape \(5, 5\)"),
        (2 * CHAIN, "only 0 and 1"),
        (np.full((4, 4), np.nan), "only 0 and 1"),
    ],
)
def test_adjacency(adjacency: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network_score(DATA, adjacency, BIC())


def test_a_labelled_adjacency_is_brought_to_the_order_of_the_data() -> None:
    frame = pd.DataFrame(DATA, columns=list("abcd"))
    labelled = pd.DataFrame(CHAIN, index=list("abcd"), columns=list("abcd"))
    shuffled = labelled.loc[list("dbca"), list("dbca")]
    expected = network_score(DATA, CHAIN, RNML())
    assert network_score(frame, shuffled, RNML()) == expected
    assert network_score(frame, pd.DataFrame(CHAIN), RNML()) == expected
    assert network_score(frame, CHAIN, RNML()) == expected
    with pytest.raises(ValueError, match="labels of adjacency must be those of the data, a, b, c, d"):
        network_score(frame, labelled.rename(columns={"a": "e"}), RNML())
    with pytest.raises(ValueError, match="labels of adjacency"):
        network_score(DATA, labelled, RNML())


def test_the_cycle_that_is_named_is_one() -> None:
    """Also where nodes hang below the cycle."""
    adjacency = np.zeros((4, 4))
    for i, j in [(3, 2), (2, 3), (3, 1), (1, 0)]:
        adjacency[i, j] = 1
    with pytest.raises(ValueError, match=re.escape("cycle x2 → x3 → x2") + "|" + re.escape("cycle x3 → x2 → x3")):
        network_score(DATA, adjacency, BIC())


@pytest.mark.parametrize("scorer", [RNML(), RNMLStirling()], ids=repr)
@pytest.mark.parametrize("how", ["exactly", "far", "float32", "far float32", "rounded"])
def test_rnml_refuses_centred_data(scorer: Scorer, how: str) -> None:
    shifted = DATA + {"far": 1e6, "far float32": 100}.get(how, 0.0)
    if "float32" in how:
        shifted = shifted.astype(np.float32)
    centred = shifted - shifted.mean(axis=0)
    if how == "rounded":
        centred = centred.round(3)
    with pytest.raises(ValueError, match=r"child x0, parents \[\]: the data are centred.* RNMLCentred"):
        score_table(Families.of(centred), scorer)
    with pytest.raises(ValueError, match="RNMLCentred"):
        network_score(centred, CHAIN, scorer)
    assert np.isfinite(score_table(Families.of(centred), RNMLCentred())).all()


def test_centred_rnml_refuses_an_orthogonal_design() -> None:
    orthogonal = np.linalg.qr(DATA - DATA.mean(axis=0))[0]  # zero correlations, but for rounding
    with pytest.raises(ValueError, match=r"child x0, parents \[x1\]: the parents explain .* rounding noise"):
        score_table(Families.of(orthogonal), RNMLCentred())
    with pytest.raises(ValueError, match=r"child x1, parents \[x0\]: the data are centred"):
        network_score(orthogonal + np.array([1, 0, 0, 0]), CHAIN, RNML())


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (lambda f: np.where(f.k == 3, np.nan, f.ln_tau), r"returned nan for child x0, parents \[x1, x2\] \(n = 30"),
        (lambda f: np.log(f.k - 1) + f.ln_tau, r"returned -inf for child x0, parents \[\]"),
        (lambda f: f.ln_tau.sum(), r"must return real numbers of shape .* Got float64 of shape \(\)"),
        (lambda f: f.ln_tau.sum(axis=0), r"shape \(4, 8\), .* Got float64 of shape \(8,\)"),
        (lambda f: f.ln_tau.T[:1], "must return real numbers of shape"),
        (lambda f: f.ln_tau + 0j, "Got complex128"),
    ],
)
def test_a_wrong_score(scorer: Callable[..., np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_table(Families.of(DATA), scorer)


def test_no_such_child() -> None:
    with pytest.raises(IndexError, match=r"from 0 to m − 1 = 3. Got 4"):
        Families.of(DATA)[4]
