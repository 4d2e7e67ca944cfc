"""How much of the causal order can be read off the variances, or off how well each node is predicted by all others.

In many simulated networks a quantity grows from causes to effects, and a method that sorts by it looks good for no
good reason. The sortability by a quantity is the share of directed paths at whose end it is larger than at their
start: 1 if sorting by it gives a causal order, 0 if sorting in the other direction does, ½ if it tells nothing. Paths
with the same start, end and length count as one, and equal values count ½.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from scorers.base import Array, IntArray
from scorers.moments import SMALLEST_EIGENVALUE
from scorers.network import checked_adjacency

# Logarithms of variances, and R², that differ by less than this are equal: standardised columns have equal variances.
TOLERANCE = 1e-9


def varsortability(covariance: npt.ArrayLike, adjacency: npt.ArrayLike) -> float | None:
    """The sortability by variance.

    Parameters
    ----------
    covariance : array_like
        m × m covariance matrix of the data, or of the distribution; only its diagonal is looked at.
    adjacency : array_like
        m × m, the true DAG; `adjacency[i, j]` = 1 means i → j.

    Returns
    -------
    float or None
        The share of paths along which the variance grows; None if there is no edge, and so no path to be sorted.

    References
    ----------
    Reisach, Seiler & Weichwald (2021), section 3.1.

    Examples
    --------
    >>> varsortability([[1, 1, 1], [1, 2, 2], [1, 2, 3]], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    1.0
    """
    return _single(np.log(_variances(covariance)), adjacency)


def r2_sortability(covariance: npt.ArrayLike, adjacency: npt.ArrayLike) -> float | None:
    """The sortability by R², the share of a node's variance that all other nodes explain together.

    It does not depend on the units, so standardising the data does not help against it.

    Parameters
    ----------
    covariance : array_like
        m × m covariance or correlation matrix of the data, or of the distribution.
    adjacency : array_like
        m × m, the true DAG; `adjacency[i, j]` = 1 means i → j.

    Returns
    -------
    float or None
        The share of paths along which R² grows; None if there is no edge, and so no path to be sorted.

    References
    ----------
    Reisach, Tami, Seiler, Chambaz & Weichwald (2023), eq. (3).

    Examples
    --------
    >>> r2_sortability([[2, 0, 2], [0, 1, 1], [2, 1, 4]], [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    1.0
    """
    deviation = np.sqrt(_variances(covariance))
    correlation = np.asarray(covariance, dtype=np.float64) / np.outer(deviation, deviation)
    smallest = np.linalg.eigvalsh(correlation)[0]
    if not smallest >= SMALLEST_EIGENVALUE:
        raise ValueError(
            "R² of the nodes needs independent columns. Got a correlation matrix with the eigenvalue "
            f"{smallest:.1e}; allowed is {SMALLEST_EIGENVALUE:.0e}."
        )
    return _single(explained_by_others(correlation, smallest), adjacency)


def _variances(covariance: npt.ArrayLike) -> Array:
    """The diagonal of a covariance matrix, if it is one."""
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"covariance must be m × m. Got shape {matrix.shape} instead: give np.cov(data.T) for data.")
    variances = np.diag(matrix)
    if not (np.isfinite(matrix).all() and np.allclose(matrix, matrix.T, rtol=1e-9, atol=0) and (variances > 0).all()):
        raise ValueError("covariance must be finite and symmetric, with positive variances on its diagonal.")
    return variances


def explained_by_others(correlation: Array, smallest_eigenvalue: Array) -> Array:
    """R² of each node given all others: … × m, of … × m × m correlation matrices; NaN where columns are dependent."""
    independent = smallest_eigenvalue >= SMALLEST_EIGENVALUE
    regular = np.where(independent[..., None, None], correlation, np.eye(correlation.shape[-1]))
    # the diagonal of the inverse of a correlation matrix is 1 / (1 − R²)
    explained = 1 - 1 / np.linalg.inv(regular).diagonal(axis1=-2, axis2=-1)
    return np.where(independent[..., None], explained, np.nan)


def sortabilities(values: Array, truth: IntArray) -> Array:
    """The sortability by some values of the nodes of several DAGs, NaN for those without an edge or with NaN values.

    Parameters
    ----------
    values : Array
        One for each node: DAGs × m.
    truth : IntArray
        The DAGs, not checked: DAGs × m × m.

    Returns
    -------
    Array
        One for each DAG.
    """
    found = np.empty(len(truth))
    _increasing(values, truth, found)
    return found


def _single(values: Array, adjacency: npt.ArrayLike) -> float | None:
    edges = checked_adjacency(adjacency, tuple(f"x{i}" for i in range(len(values)))).astype(np.int64)
    found = float(sortabilities(values[None], edges[None])[0])
    return None if np.isnan(found) else found


@numba.njit(cache=True)
def _increasing(values: Any, graphs: Any, out: Any) -> None:
    """The share of paths, one for each start, end and length, along which the value grows; ½ for equal values."""
    m = values.shape[1]
    children = np.empty(m, np.int64)  # as masks
    paths = np.empty(m, np.int64)  # paths[i]: where paths of one length from i end
    for g in range(graphs.shape[0]):
        for i in range(m):
            children[i] = 0
            for j in range(m):
                if graphs[g, i, j]:
                    children[i] |= 1 << j
        paths[:] = children
        total, found, longer = 0, 0.0, True
        while longer:  # paths of length 1, 2, …: those of a DAG come to an end
            longer = False
            for i in range(m):
                ends = 0
                for j in range(m):
                    if (paths[i] >> j) & 1:
                        longer = True
                        ends |= children[j]
                        total += 1
                        growth = values[g, j] - values[g, i]
                        if abs(growth) < TOLERANCE:
                            found += 0.5
                        elif growth > 0:
                            found += 1.0
                paths[i] = ends
        out[g] = found / total if total and not np.isnan(values[g]).any() else np.nan
