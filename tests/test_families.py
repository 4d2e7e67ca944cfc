"""τ̂, R̂ and k of every family against one least-squares fit for each."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers import BIC, RNML, Block, Families, network_score, score_table
from scorers.base import Array
from scorers.determinants import log_determinants
from scorers.families import BLOCK_BITS
from scorers.masks import members
from scorers.moments import Moments
from tests.naive import fit


def mixed(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Correlated columns with means of the order of their spread."""
    return rng.normal(1, 1, (n, m)) @ rng.normal(size=(m, m)) + rng.normal(size=m)


def assert_all_families(families: Families, data: np.ndarray, rtol: float, rtol_r: float) -> None:
    for j in range(families.m):
        block = families[j]
        sets = [c for c in range(1 << (families.m - 1)) if c.bit_count() <= families.max_parents]
        assert families.masks.tolist() == sets
        assert block.shape == (len(sets),)
        for i, c in enumerate(sets):
            parents = families.parents(j, c)
            tau, r = fit(data, j, parents)
            assert block.k[i] == len(parents) + 1
            assert block.tau[i] == pytest.approx(tau, rel=rtol)
            assert block.r[i] == pytest.approx(r, rel=rtol_r)
            covariance = np.atleast_2d(np.cov(data[:, parents].T, ddof=0)) if parents else np.eye(1)
            assert block.ln_det[i] == pytest.approx(np.linalg.slogdet(covariance)[1], abs=rtol * 1e3)


@pytest.mark.parametrize("m", range(2, 9))
def test_tau_and_r_of_all_families(m: int) -> None:
    data = mixed(np.random.default_rng(m), 40, m)
    assert_all_families(Families.of(data), data, rtol=1e-10, rtol_r=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(8, 60),
    m=st.integers(2, 5),
    exponents=st.lists(st.integers(-140, 140), min_size=5, max_size=5),
    shifts=st.lists(st.floats(-10, 10), min_size=5, max_size=5),
)
def test_any_shape_scale_and_shift(seed: int, n: int, m: int, exponents: list[int], shifts: list[float]) -> None:
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n, m)) @ (np.eye(m) + 0.3 * rng.normal(size=(m, m))) + shifts[:m]
    scale = 10.0 ** np.array(exponents[:m])
    families = Families.of(data * scale)
    for j in range(m):  # τ̂ and R̂ of the fit to the unscaled data, scaled: a fit to the scaled data would overflow
        block = families[j]
        for c in range(1 << (m - 1)):
            tau, r = fit(data, j, families.parents(j, c))
            assert block.ln_tau[c] == pytest.approx(np.log(tau) + 2 * np.log(scale[j]), abs=1e-9)
            if abs(data[:, j].mean()) > 1e-3:
                assert block.ln_r[c] == pytest.approx(np.log(r) + 2 * np.log(scale[j]), abs=1e-9)


def test_means_a_million_times_the_spread() -> None:
    rng = np.random.default_rng(0)
    data = mixed(rng, 200, 5)
    data = data + 1e6 * data.std(axis=0) * rng.choice([-1, 1], 5)
    assert_all_families(Families.of(data), data, rtol=1e-6, rtol_r=1e-10)


def test_means_that_leave_few_digits() -> None:
    """Whole numbers beside 10¹²: the moments are those of the numbers alone, which a fit to the data could not find."""
    small = np.random.default_rng(2).integers(-40, 40, (50, 3)).astype(float)
    ours, exact = Moments.of(small + 1e12), Moments.of(small)
    np.testing.assert_allclose(ours.correlation, exact.correlation, rtol=1e-12)
    np.testing.assert_allclose(ours.ln_variance, exact.ln_variance, rtol=1e-12)
    np.testing.assert_allclose(ours.offset, (1e12 + small.mean(axis=0)) / small.std(axis=0), rtol=1e-14)


def test_many_samples_lose_no_digits() -> None:
    """Summing 10⁶ products one after another would cost four digits."""
    z = np.random.default_rng(3).normal(size=(1_000_000, 2)) + 0.5
    centred = z.astype(np.longdouble) - z.astype(np.longdouble).mean(axis=0)
    x, y = centred.T
    exact = (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())
    assert Moments.of(z).correlation[0, 1] == pytest.approx(float(exact), rel=1e-12)


def test_a_dataframe_gives_the_same_numbers() -> None:
    data = mixed(np.random.default_rng(1), 30, 4)
    frame = pd.DataFrame(data, columns=list("abcd"))
    np.testing.assert_array_equal(Families.of(frame).logdet, Families.of(data).logdet)


def test_the_data_are_left_alone() -> None:
    data = np.asfortranarray(mixed(np.random.default_rng(1), 30, 4))
    before = data.copy()
    Families.of(data)
    np.testing.assert_array_equal(data, before)


@pytest.mark.parametrize("m", [4, 15, 16])
def test_blocks_cover_every_family_once(m: int) -> None:
    """Above m = 15 the table is made in several blocks; each row is the child's own block."""
    families = Families.of(mixed(np.random.default_rng(m), 60, m))
    blocks = list(families.blocks())
    assert (len(blocks) == 1) == (m <= 15)
    assert all(block.ln_tau.size <= 1 << BLOCK_BITS for _, block in blocks)
    seen = np.full((m, 1 << (m - 1)), np.nan)
    for masks, block in blocks:
        seen[:, masks] = block.ln_tau
        last = (m - 1, block.shape[1] - 1)
        names = ", ".join(f"x{i}" for i in families.parents(m - 1, masks[last[1]]))
        assert block.label(last) == f"child x{m - 1}, parents [{names}]"
    table = score_table(families, BIC())
    for j in range(m):
        np.testing.assert_array_equal(seen[j], families[j].ln_tau)
        np.testing.assert_array_equal(table[j], BIC()(families[j]))


def test_fewer_samples_than_nodes_with_a_parent_cap() -> None:
    data = mixed(np.random.default_rng(3), 6, 8)
    families = Families.of(data, max_parents=2)
    assert_all_families(families, data, rtol=1e-9, rtol_r=1e-9)
    for scorer in (BIC(), lambda f: np.broadcast_to(f.k, f.shape)):  # also one that does not look at the data
        table = score_table(families, scorer)
        many = np.bitwise_count(np.arange(1 << 7)) > 2
        np.testing.assert_array_equal(np.isinf(table), np.broadcast_to(many, table.shape))


@pytest.mark.parametrize("max_parents", [None, 2])
def test_several_data_sets_at_once_have_the_same_bits(max_parents: int | None) -> None:
    rng = np.random.default_rng(5)
    data = [mixed(rng, 30, 6) for _ in range(4)]
    columns = np.array([each.T for each in data])
    together = Families.of_moments(Moments.of_columns(columns.reshape(2, 2, 6, 30)), max_parents)
    truth = np.array([0, 1, 2, 5, 0, 3])
    for d, each in enumerate(data):
        alone, where = Families.of(each, max_parents), divmod(d, 2)
        np.testing.assert_array_equal(together.logdet[where], alone.logdet)
        for scorer in (BIC(), RNML()):
            np.testing.assert_array_equal(score_table(together, scorer)[where], score_table(alone, scorer))
        np.testing.assert_array_equal(together[3].ln_det[where], alone[3].ln_det)
        of_network = together.network(np.broadcast_to(truth, (2, 2, 6)))
        np.testing.assert_array_equal(of_network.ln_tau[where], alone.network(truth).ln_tau)
        np.testing.assert_array_equal(of_network.ln_det[where], alone.network(truth).ln_det)
        assert together[3].label((*where, 2)) == alone[3].label((2,)) == "child x3, parents [x1]"


def test_a_score_that_looks_through_moments_of_its_own() -> None:
    """Ridge regression: variance 1 is added to every column of every family, and to a single network alike."""

    class Ridge:
        def moments(self, seen: Moments) -> Moments:
            deviation = np.exp(seen.ln_variance / 2)
            covariance = seen.correlation * deviation * deviation[:, None] + np.eye(seen.m)
            wider = np.sqrt(np.diag(covariance))
            correlation = covariance / wider / wider[:, None]
            return replace(seen, correlation=correlation, ln_variance=2 * np.log(wider), offset=seen.offset)

        def __call__(self, f: Block) -> Array:
            return f.ln_tau + f.ln_det

    data = mixed(np.random.default_rng(6), 30, 4)
    table = score_table(Families.of(data), Ridge())
    covariance = np.cov(data.T, ddof=0) + np.eye(4)
    logdet = {nodes: np.linalg.slogdet(covariance[np.ix_(nodes, nodes)])[1] for nodes in [(0, 1), (0, 1, 2)]}
    assert table[2, 0b011] == pytest.approx(logdet[0, 1, 2])  # ln τ̂ + ln det of the parents
    adjacency = np.zeros((4, 4))
    adjacency[[0, 1], 2] = 1
    alone = np.log(np.diag(covariance))[[0, 1, 3]].sum()
    assert network_score(data, adjacency, Ridge()) == pytest.approx(logdet[0, 1, 2] + alone)


def test_dependent_columns_matter_only_where_they_meet() -> None:
    """Shares of a whole: any four determine the fifth, but families of three columns are sound."""
    data = mixed(np.random.default_rng(3), 30, 5)
    data[:, 4] = 10 - data[:, :4].sum(axis=1)
    assert_all_families(Families.of(data, max_parents=2), data, rtol=1e-10, rtol_r=1e-10)
    with pytest.raises(ValueError, match="columns x0, x1, x2, x3, x4 are linearly dependent"):
        Families.of(data, max_parents=4)


def test_a_table_of_the_callers_own() -> None:
    families = Families.of(mixed(np.random.default_rng(3), 30, 4))
    out = np.empty((4, 8))
    assert score_table(families, BIC(), out=out) is out
    np.testing.assert_array_equal(out, score_table(families, BIC()))
    with pytest.raises(ValueError, match=r"out must be float64 of shape \(4, 8\). Got float32 of shape \(4, 8\)"):
        score_table(families, BIC(), out=np.empty((4, 8), dtype=np.float32))
    with pytest.raises(ValueError, match=r"Got float64 of shape \(4, 16\)"):
        score_table(families, BIC(), out=np.empty((4, 16)))


def test_a_score_cannot_change_the_data() -> None:
    def greedy(f: Block) -> np.ndarray:
        offset = f.offset
        offset *= 3
        return f.ln_tau

    with pytest.raises(ValueError, match="read-only"):
        score_table(Families.of(mixed(np.random.default_rng(3), 30, 4)), greedy)


@pytest.mark.parametrize("n", [100, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_collinearity_is_accurate_or_refused(n: int, seed: int) -> None:
    """A nearly duplicated column: τ̂ is good to 1e-6, or the data are refused; nothing in between."""
    refused = []
    for exponent in np.arange(3, 6, 0.125):
        rng = np.random.default_rng(seed)
        data = mixed(rng, n, 4)
        data[:, 3] = data[:, 1] + 10**-exponent * rng.normal(size=n)
        try:
            families = Families.of(data)
        except ValueError as error:
            assert "columns x1, x3 are linearly dependent" in str(error)  # noqa: PT017
            refused.append(True)
        else:
            assert_all_families(families, data, rtol=1e-6, rtol_r=1e-6)
            refused.append(False)
    assert refused == sorted(refused)
    assert not refused[0]  # a thousandth of the spread is still data
    assert refused[-1]


@pytest.mark.parametrize(("m", "cap"), [(2, None), (3, 1), (5, None), (9, 3), (12, None)])
def test_a_part_of_the_log_determinants_has_the_bits_of_the_whole(m: int, cap: int | None) -> None:
    """On top of any set of high nodes; and the whole is that of NumPy."""
    families = Families.of(mixed(np.random.default_rng(m), 60, m), cap)
    correlation, size = families.moments.correlation, families.max_parents + 1
    for bits in range(m + 1):
        for start in range(0, 1 << m, 1 << bits)[:: max(1, (1 << m - bits) // 64)]:
            part = log_determinants(correlation, size, start, bits)
            np.testing.assert_array_equal(part, families.logdet[start : start + (1 << bits)])
    for s in range(1, 1 << m):
        nodes = members(s)
        expected = np.linalg.slogdet(correlation[np.ix_(nodes, nodes)])[1] if len(nodes) <= size else np.nan
        assert families.logdet[s] == pytest.approx(expected, abs=1e-9, nan_ok=True)
