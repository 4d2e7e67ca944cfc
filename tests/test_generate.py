"""What is drawn: degrees, labels, parameters, data; and that streams depend on nothing but their content."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from benchmark.design import Cell, Design, Search, Study
from benchmark.generate import draw_dags, draw_one, draw_truth
from benchmark.streams import Purpose, seed_words, streams


def study(**design: Any) -> Study:
    grid: dict[str, Any] = {"m": (8,), "nn": (2,), "n": (50,), "replicates": 10}
    return Study(7, Design(**grid | design), Search("dp"))


@pytest.mark.parametrize("m", [8, 10, 15])
@pytest.mark.parametrize("nn", [2, 4, 6])
def test_mean_degree_is_nn(m: int, nn: int) -> None:
    trials = 400
    edges = draw_dags(study(), Cell(m, nn, 50), range(trials))[0].sum(axis=(1, 2))
    p = nn / (m - 1)
    pairs = m * (m - 1) / 2
    error = np.sqrt(pairs * p * (1 - p) / trials) * 2 / m  # of the mean degree, 2·edges/m
    assert abs(edges.mean() * 2 / m - nn) < 4 * error
    halved = draw_dags(study(density=0.5), Cell(m, nn, 50), range(trials))[0].sum(axis=(1, 2))
    assert abs(halved.mean() * 2 / m - nn / 2) < 4 * error


def test_no_label_is_special() -> None:
    """In- and out-degree of every label are alike under random labels, and are not in causal order."""
    cell, trials = Cell(8, 4, 50), 2000
    drawn = draw_dags(study(), cell, range(trials))[0]
    for axis in (1, 2):
        degrees = drawn.sum(axis=axis)
        contrasts = degrees[:, 1:] - degrees[:, :1]  # all have mean 0: Hotelling's statistic, here as good as χ²
        mean, spread = contrasts.mean(axis=0), np.cov(contrasts.T)
        assert chi2.sf(trials * mean @ np.linalg.solve(spread, mean), len(mean)) > 0.001
    ordered = draw_dags(study(labels="topological"), cell, range(trials))[0]
    assert not np.tril(ordered).any()
    assert ordered.sum(axis=1).sum(axis=0)[-1] > 3 * ordered.sum(axis=1).sum(axis=0)[1]
    # the in-degree of the last node in order is binomial with m − 1 trials
    assert abs(ordered[:, :, -1].sum(axis=1).mean() - 4) < 4 * np.sqrt(7 * 4 / 7 * 3 / 7 / trials)


@pytest.mark.parametrize("labels", ["random", "topological"])
def test_uniform_dags_and_their_order(labels: str) -> None:
    chosen = study(dags="uniform", labels=labels)
    for adjacency, order in zip(*draw_dags(chosen, Cell(5, None, 50), range(200)), strict=True):
        assert not np.tril(adjacency[np.ix_(order, order)]).any()
        assert labels == "random" or not np.tril(adjacency).any()


@pytest.mark.parametrize("signs", ["positive", "random"])
@pytest.mark.parametrize("noise", ["variance", "precision", "std", "unit"])
def test_a_large_sample_recovers_the_parameters(noise: str, signs: str) -> None:
    chosen = study(noise=noise, signs=signs)
    cell = Cell(6, 3, 200_000)
    truth, data = draw_one(chosen, cell, 3)
    for j in range(6):
        parents = np.flatnonzero(truth.adjacency[:, j])
        design = np.column_stack([data[:, parents] - truth.mean[parents], np.ones(cell.n)])
        b, rss = np.linalg.lstsq(design, data[:, j], rcond=None)[:2]
        variance = rss[0] / cell.n
        errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
        assert (np.abs(b - np.append(truth.coefficients[parents, j], truth.mean[j])) < 4.5 * errors).all()
        assert variance == pytest.approx(truth.variance[j], rel=4.5 * np.sqrt(2 / cell.n))


def test_parameters_are_uniform_and_noise_is_read_as_told() -> None:
    cell = Cell(15, 6, 50)
    drawn = {
        noise: draw_truth(study(noise=noise), cell, range(100)) for noise in ("variance", "precision", "std", "unit")
    }
    truth = drawn["variance"]
    tau = truth.variance
    for values in (tau, truth.mean, truth.coefficients[truth.adjacency == 1]):
        assert kstest(values.ravel(), "uniform", args=(0.1, 0.9)).pvalue > 0.001
    np.testing.assert_allclose(drawn["precision"].variance, 1 / tau)
    np.testing.assert_allclose(drawn["std"].variance, tau**2)
    assert (drawn["unit"].variance == 1).all()
    flipped = draw_truth(study(signs="random"), cell, range(100)).coefficients
    assert abs((flipped > 0).sum() / (flipped != 0).sum() - 0.5) < 0.03


def test_preprocessing() -> None:
    cell = Cell(8, 2, 50)
    raw, centred, standard = (
        draw_one(study(preprocessing=how), cell, 0)[1] for how in ("none", "centred", "standardised")
    )
    np.testing.assert_allclose(centred, raw - raw.mean(axis=0))
    np.testing.assert_allclose(standard, centred / raw.std(axis=0))


def test_streams_are_keyed_by_content() -> None:
    """Another cell, replicate, purpose or seed is another stream; the rest of the design does not matter."""
    base, cell = study(), Cell(8, 2, 50)

    def number(study: Study, cell: Cell, replicate: int, purpose: Purpose) -> float:
        return next(streams(study, cell, [replicate], purpose)).random()

    first = number(base, cell, 0, "data")
    assert number(study(m=(8, 10), nn=(2, 4), replicates=99, noise="unit"), cell, 0, "data") == first
    assert [rng.random() for rng in streams(base, cell, (1, 0), "data")] == [number(base, cell, 1, "data"), first]
    others = [
        number(base, Cell(10, 2, 50), 0, "data"),
        number(base, Cell(8, 4, 50), 0, "data"),
        number(base, Cell(8, 2, 500), 0, "data"),
        number(base, cell, 1, "data"),
        number(base, cell, 0, "dag"),
        number(replace(base, seed=8), cell, 0, "data"),
    ]
    assert len({first, *others}) == 7
    # a stream of long standing: records can only be made again if it never changes
    assert first == 0.2943849550636939


@given(
    st.integers(0, 1 << 200),
    st.lists(st.integers(0, (1 << 32) - 1), max_size=5),
    st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=3),
)
def test_trials_are_seeded_as_numpy_does_it(seed: int, key: list[int], replicates: list[int]) -> None:
    words = seed_words(seed, tuple(key), np.array(replicates), 28)
    for replicate, row in zip(replicates, words, strict=True):
        sequence = np.random.SeedSequence(seed, spawn_key=(*key, replicate))
        np.testing.assert_array_equal(row, sequence.generate_state(28, np.uint64))


def test_cells_that_differ_in_n_can_share_the_network() -> None:
    small, large = Cell(8, 2, 50), Cell(8, 2, 500)
    for share in ("nothing", "network"):
        one, two = (draw_truth(study(share=share), cell, [0]) for cell in (small, large))
        same = (one.coefficients == two.coefficients).all() and (one.mean == two.mean).all()
        assert same == (share == "network")
