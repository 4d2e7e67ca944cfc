"""The truth and the data of one trial: a DAG, its parameters, and samples of the linear-Gaussian model.

x_i = μ_i + Σ_{j ∈ π_i} b_ij (x_j − μ_j) + noise, whose variance is made of τ_i as the design reads the paper.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from benchmark.design import Cell, Design, Study, stream
from scorers.base import Array, IntArray
from search import random_dag


@dataclass(frozen=True)
class Truth:
    """A DAG and its parameters.

    Attributes
    ----------
    adjacency : IntArray
        m × m; entry [i, j] = 1 means i → j.
    order : IntArray
        The nodes, parents before children.
    coefficients : Array
        Entry [i, j] is the effect of i on j, zero where there is no edge.
    mean : Array
        The nodes' means μ.
    variance : Array
        The variances of the nodes' noise.
    """

    adjacency: IntArray
    order: IntArray
    coefficients: Array
    mean: Array
    variance: Array


def draw_truth(study: Study, cell: Cell, replicate: int) -> Truth:
    """The DAG and parameters of a trial."""
    design, m = study.design, cell.m
    adjacency, order = draw_dag(study, cell, replicate)
    rng = stream(study, cell, replicate, "parameters")
    mean, tau = rng.uniform(design.low, design.high, m), rng.uniform(design.low, design.high, m)
    coefficients = adjacency * rng.uniform(design.low, design.high, (m, m))
    if design.signs == "random":
        coefficients *= stream(study, cell, replicate, "signs").choice([-1.0, 1.0], (m, m))
    return Truth(adjacency, order, coefficients, mean, noise_variance(design, tau))


def draw_dag(study: Study, cell: Cell, replicate: int) -> tuple[IntArray, IntArray]:
    """The DAG of a trial, and an order in which its nodes can be sampled."""
    design, m = study.design, cell.m
    rng = stream(study, cell, replicate, "dag")
    if design.dags == "uniform":
        adjacency, order = random_dag(m, rng), np.empty(m, dtype=np.int64)
        _sort(adjacency, order)
    else:
        # Kalisch & Bühlmann (2007): each edge along a fixed order with the same probability
        assert cell.nn is not None
        order = np.arange(m)
        if design.labels == "random":
            order = stream(study, cell, replicate, "labels").permutation(m)
        adjacency = np.zeros((m, m), dtype=np.int64)
        _join(rng.random((m, m)), design.density * cell.nn / (m - 1), order, adjacency)
    if design.dags == "uniform" and design.labels == "topological":
        return adjacency[np.ix_(order, order)], np.arange(m)
    return adjacency, order


def noise_variance(design: Design, tau: Array) -> Array:
    """The variance of the noise under a reading of the paper's η(0, 1/τ)."""
    match design.noise:
        case "variance":
            return tau
        case "precision":
            return 1 / tau
        case "std":
            return tau**2
        case "unit":
            return np.ones_like(tau)


def draw_data(study: Study, cell: Cell, replicate: int, truth: Truth) -> Array:
    """The n × m data of a trial."""
    noise = stream(study, cell, replicate, "data").standard_normal((cell.n, cell.m))
    columns = np.empty((cell.m, cell.n))
    _propagate(noise, np.sqrt(truth.variance), truth.order, truth.coefficients, truth.mean, columns)
    data = columns.T
    match study.design.preprocessing:
        case "centred":
            data -= data.mean(axis=0)
        case "standardised":
            data -= data.mean(axis=0)
            data /= data.std(axis=0)
    return data


@numba.njit(cache=True)
def _join(uniform: Any, probability: float, order: Any, adjacency: Any) -> None:
    """adjacency[order[i], order[j]] = 1 where uniform[i, j] < probability, for i < j."""
    for i in range(order.shape[0]):
        for j in range(i + 1, order.shape[0]):
            if uniform[i, j] < probability:
                adjacency[order[i], order[j]] = 1


@numba.njit(cache=True)
def _propagate(noise: Any, deviation: Any, order: Any, coefficients: Any, mean: Any, columns: Any) -> None:
    """columns[j] = deviation_j · noise_j + Σ_i coefficients[i, j] (columns[i] − mean_i) + mean_j, in causal order.

    Loops, not a BLAS, whose sums depend on the machine and the number of threads.
    """
    for j in order:
        column = columns[j]
        for row in range(column.shape[0]):
            column[row] = noise[row, j] * deviation[j]
        for i in range(columns.shape[0]):
            b = coefficients[i, j]
            if b != 0.0:
                other = columns[i]
                for row in range(column.shape[0]):
                    column[row] += b * other[row]
    for j in range(columns.shape[0]):
        columns[j] += mean[j]


@numba.njit(cache=True)
def _sort(adjacency: Any, order: Any) -> None:
    """The nodes of a DAG, parents before children: again and again those whose parents are all in the order."""
    waiting = np.ones(order.shape[0], np.bool_)
    found = 0
    while found < order.shape[0]:
        first = found
        for j in range(order.shape[0]):
            if waiting[j] and not (waiting & (adjacency[:, j] != 0)).any():
                order[found] = j
                found += 1
        for j in order[first:found]:
            waiting[j] = False
