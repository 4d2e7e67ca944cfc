"""The truth and the data of trials: DAGs, their parameters, and samples of the linear-Gaussian model.

x_i = μ_i + Σ_{j ∈ π_i} b_ij (x_j − μ_j) + noise, whose variance is made of τ_i as the design reads the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from benchmark.design import Cell, Design, Study
from benchmark.streams import streams
from scorers.base import Array, IntArray
from search import random_dag


@dataclass(frozen=True)
class Truth:
    """A DAG and its parameters; of several trials, along the leading axes.

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

    def at(self, d: int | IntArray) -> "Truth":
        """The truth of one, or some, of several trials."""
        return Truth(self.adjacency[d], self.order[d], self.coefficients[d], self.mean[d], self.variance[d])


def draw_truth(study: Study, cell: Cell, replicates: Sequence[int]) -> Truth:
    """The DAGs and parameters of some trials."""
    design, m = study.design, cell.m
    adjacency, order = draw_dags(study, cell, replicates)
    uniform = np.empty((len(replicates), m + 2, m))
    for rng, each in zip(streams(study, cell, replicates, "parameters"), uniform, strict=True):
        rng.random(out=each)
    drawn = design.low + (design.high - design.low) * uniform
    mean, tau, coefficients = drawn[:, 0], drawn[:, 1], adjacency * drawn[:, 2:]
    if design.signs == "random":
        coefficients *= [rng.choice([-1.0, 1.0], (m, m)) for rng in streams(study, cell, replicates, "signs")]
    return Truth(adjacency, order, coefficients, mean, noise_variance(design, tau))


def draw_dags(study: Study, cell: Cell, replicates: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The DAGs of some trials, and orders in which their nodes can be sampled."""
    design, m = study.design, cell.m
    order = np.tile(np.arange(m), (len(replicates), 1))
    if design.dags == "uniform":
        adjacency = np.array([random_dag(m, rng) for rng in streams(study, cell, replicates, "dag")])
        _sort(adjacency, order)
        if design.labels == "topological":
            adjacency = np.array([each[np.ix_(by, by)] for each, by in zip(adjacency, order, strict=True)])
            order[:] = np.arange(m)
        return adjacency, order
    # Kalisch & Bühlmann (2007): each edge along a fixed order with the same probability
    assert cell.nn is not None
    if design.labels == "random":
        for rng, each in zip(streams(study, cell, replicates, "labels"), order, strict=True):
            each[:] = rng.permutation(m)
    uniform = np.empty((len(replicates), m, m))
    for rng, each in zip(streams(study, cell, replicates, "dag"), uniform, strict=True):
        rng.random(out=each)
    adjacency = np.zeros((len(replicates), m, m), dtype=np.int64)
    _join(uniform, design.density * cell.nn / (m - 1), order, adjacency)
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


def draw_data(study: Study, cell: Cell, replicates: Sequence[int], truth: Truth) -> Array:
    """The data of some trials as columns: trials × m × n."""
    columns = np.empty((len(replicates), cell.m, cell.n))
    noise, deviation = np.empty((cell.n, cell.m)), np.sqrt(truth.variance)
    for d, rng in enumerate(streams(study, cell, replicates, "data")):
        rng.standard_normal(out=noise)
        _propagate(noise, deviation[d], truth.order[d], truth.coefficients[d], truth.mean[d], columns[d])
    if study.design.preprocessing != "none":
        columns -= columns.mean(axis=-1, keepdims=True)
    if study.design.preprocessing == "standardised":
        columns /= columns.std(axis=-1, keepdims=True)
    return columns


def draw_one(study: Study, cell: Cell, replicate: int) -> tuple[Truth, Array]:
    """The truth of one trial, and its n × m data."""
    truth = draw_truth(study, cell, [replicate])
    return truth.at(0), draw_data(study, cell, [replicate], truth)[0].T


@numba.njit(cache=True)
def _join(uniform: Any, probability: float, order: Any, adjacency: Any) -> None:
    """adjacency[d, order[d, i], order[d, j]] = 1 where uniform[d, i, j] < probability, for i < j."""
    for d in range(order.shape[0]):
        for i in range(order.shape[1]):
            for j in range(i + 1, order.shape[1]):
                if uniform[d, i, j] < probability:
                    adjacency[d, order[d, i], order[d, j]] = 1


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
def _sort(adjacency: Any, orders: Any) -> None:
    """The nodes of DAGs, parents before children: again and again those whose parents are all in the order."""
    for d in range(orders.shape[0]):
        edges, order = adjacency[d], orders[d]
        waiting = np.ones(order.shape[0], np.bool_)
        found = 0
        while found < order.shape[0]:
            first = found
            for j in range(order.shape[0]):
                if waiting[j] and not (waiting & (edges[:, j] != 0)).any():
                    order[found] = j
                    found += 1
            for j in order[first:found]:
                waiting[j] = False
