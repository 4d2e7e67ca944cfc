"""The data, checked once and reduced to their moments: the only place that touches them.

Every family has the constant among its parents, so τ̂ depends on the centred second moments alone, and shifting and
scaling the columns changes it by a known factor. `Moments` therefore keeps the correlation matrix of the columns,
whose principal minors are well scaled whatever the units, and beside it each column's variance and mean.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard, Union

import numba
import numpy as np
import numpy.typing as npt

from scorers.base import Array, all_finite

if TYPE_CHECKING:
    import pandas as pd

# Rounding changes τ̂ by about ε k / λ relative, λ being the smallest eigenvalue of the family's correlation matrix.
# This bound keeps τ̂ good to 1e-6; data beyond it are refused, not rounded.
SMALLEST_EIGENVALUE = 1e-9

# A mean of less than a millionth of the standard deviation is what centring left behind, not a mean; nor are means
# of which none is a hundredth of its standard error (centred data that were rounded later).
MEAN, STANDARD_ERRORS = 1e-6, 0.01

Data = Union[npt.ArrayLike, "pd.DataFrame"]


@dataclass(frozen=True)
class Moments:
    """The moments of an n × m data matrix, or of several of the same size: the data sets are the leading axes.

    Attributes
    ----------
    n : int
        Samples.
    names : tuple of str
        The columns' names, "x0", "x1", … for an array.
    correlation : Array
        m × m correlation matrix; … × m × m of several data sets.
    ln_variance : Array
        ln of the columns' variances (ddof 0); … × m of several data sets, as all below.
    offset : Array
        The columns' means divided by their standard deviations.
    """

    n: int
    names: tuple[str, ...]
    correlation: Array
    ln_variance: Array
    offset: Array

    @property
    def m(self) -> int:
        """The number of nodes."""
        return len(self.names)

    @cached_property
    def centred(self) -> npt.NDArray[np.bool_]:
        """Of which columns the mean is only what centring left behind."""
        offset = np.abs(self.offset)
        all_small = (offset * np.sqrt(self.n) < STANDARD_ERRORS).all(axis=-1, keepdims=True)
        centred = np.asarray(all_small | (offset < MEAN))
        centred.flags.writeable = False
        return centred

    @classmethod
    def of(cls, data: Data) -> "Moments":
        """Check the data and take their moments.

        Parameters
        ----------
        data : array_like or DataFrame
            n × m; rows are samples, columns are nodes.

        Returns
        -------
        Moments
            The moments.
        """
        return cls.of_columns(*_matrix(data))

    @classmethod
    def of_columns(cls, values: Array, names: tuple[str, ...] | None = None) -> "Moments":
        """The moments of data given as columns, m × n, or of several data sets, … × m × n. They are written over."""
        m, n = values.shape[-2:]
        names = names or tuple(f"x{i}" for i in range(m))
        _refuse_not_finite(values, names)
        shape = values.shape[:-1]
        mean, deviation, exponent = np.empty(shape), np.empty(shape), np.empty(shape)
        correlation = np.empty((*shape, m))
        columns = values.reshape(-1, m, n)
        _centre(columns, mean.reshape(-1, m), deviation.reshape(-1, m), exponent.reshape(-1, m))
        # values were brought to the order of 1: deviations of a few units of rounding are those of a constant
        constant = (deviation < 8 * np.finfo(float).eps).reshape(-1, m).any(axis=0)
        if constant.any():
            raise ValueError(
                f"{_columns([names[j] for j in np.flatnonzero(constant)])} constant, or without digits beside the "
                "mean: a node needs variance. Drop it, or take the mean off before it is stored."
            )
        _correlations(columns, deviation.reshape(-1, m), correlation.reshape(-1, m, m))
        return cls(
            n=n,
            names=names,
            correlation=correlation,
            ln_variance=2 * (np.log(deviation) + exponent * np.log(2.0)),
            offset=mean / deviation,
        )

    def __post_init__(self) -> None:
        """Scores see views of these arrays: none of them may change what the next one sees."""
        for array in (self.correlation, self.ln_variance, self.offset):
            array.flags.writeable = False

    def at(self, d: int | slice) -> "Moments":
        """The moments of one, or some, of several data sets."""
        return Moments(self.n, self.names, self.correlation[d], self.ln_variance[d], self.offset[d])

    def of_nodes(self, nodes: Sequence[int]) -> "Moments":
        """The moments of some of the columns."""
        chosen = list(nodes)
        return Moments(
            n=self.n,
            names=tuple(self.names[i] for i in chosen),
            correlation=self.correlation[..., chosen, :][..., chosen],
            ln_variance=self.ln_variance[..., chosen],
            offset=self.offset[..., chosen],
        )

    def family(self, child: int, parents: Sequence[int]) -> str:
        """Words for a family, as error messages name it."""
        return f"child {self.names[child]}, parents [{', '.join(self.names[i] for i in parents)}]"

    def refuse_dependent(self, nodes: Sequence[int], where: str = "") -> None:
        """Raise if the nodes' columns are linearly dependent, or too near to it for their Gram matrix.

        By Cauchy interlacing a set that passes vouches for all its subsets.
        """
        if self.independent(nodes):
            return
        dependent = list(nodes)
        for node in nodes:  # leave out what is not needed for the dependence
            fewer = [i for i in dependent if i != node]
            if not self.independent(fewer):
                dependent = fewer
        raise ValueError(
            f"{where}{_columns([self.names[i] for i in dependent])} linearly dependent, or so nearly that no digits "
            f"are left (smallest eigenvalue of their correlation matrix {self._smallest_eigenvalue(dependent):.1e}, "
            f"allowed is {SMALLEST_EIGENVALUE:.0e}): the design is singular. Drop one of them."
        )

    def independent(self, nodes: Sequence[int]) -> bool:
        """Whether the correlation matrix of the nodes, and so of any subset, is far enough from singular."""
        return self._smallest_eigenvalue(nodes) >= SMALLEST_EIGENVALUE

    @cached_property
    def smallest_eigenvalue(self) -> Array:
        """That of the correlation matrix; of several data sets, those of each."""
        return np.asarray(np.linalg.eigvalsh(self.correlation)[..., 0], dtype=np.float64)

    def _smallest_eigenvalue(self, nodes: Sequence[int]) -> float:
        """That of some nodes, in the data set in which it is smallest."""
        if not nodes:
            return 1.0
        of_nodes = self if len(nodes) == self.m else self.of_nodes(nodes)
        return float(of_nodes.smallest_eigenvalue.min())


def is_frame(data: object) -> "TypeGuard[pd.DataFrame]":
    """Whether the data are a DataFrame: pandas is not imported unless the caller has done so."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _matrix(data: Data) -> tuple[Array, tuple[str, ...]]:
    """The data as floats of our own, m × n (a column of the data is contiguous), and the names of the columns."""
    if is_frame(data):
        import pandas as pd

        names = tuple(str(name) for name in data.columns)
        number = [pd.api.types.is_numeric_dtype(t) and t.kind != "c" for t in data.dtypes]
        wrong = [name for name, ok in zip(names, number, strict=True) if not ok]
        if wrong:
            raise ValueError(f"{_columns(wrong)} not numeric: drop or encode before scoring.")
        given = data.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        given = np.asarray(np.ma.filled(data.astype(float), np.nan) if isinstance(data, np.ma.MaskedArray) else data)
        if given.ndim != 2:
            raise ValueError(f"data must be n × m, samples by nodes. Got shape {given.shape} instead.")
        if given.dtype.kind not in "biuf":
            raise ValueError(f"data must be real numbers. Got an array of {given.dtype} instead.")
        names = tuple(f"x{i}" for i in range(given.shape[1]))
    if len(names) < 2:
        raise ValueError(f"A network needs two nodes at least. Got m = {len(names)} column(s).")
    if len(given) < 2:
        raise ValueError(f"data must have two samples at least. Got n = {len(given)}.")
    return np.array(given.T, dtype=np.float64, order="C"), names


def _refuse_not_finite(values: Array, names: Sequence[str]) -> None:
    if not all_finite(values.reshape(-1)):
        finite = np.isfinite(values)
        *data_set, j, row = (int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(
            f"column {names[j]} has {np.count_nonzero(~finite[*data_set, j])} value(s) that are NaN or infinite, the "
            f"first in row {row}: drop those rows or impute them."
        )


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def _dot(x: Any, y: Any) -> Any:
    """Σ x·y: the same bits whatever the number of threads, unlike a BLAS. 1024 terms are summed, then the sums."""
    total = 0.0
    for start in range(0, x.shape[0], 1024):
        a, b = x[start : start + 1024], y[start : start + 1024]
        part = 0.0
        for i in range(a.shape[0]):
            part += a[i] * b[i]
        total += part
    return total


@numba.njit(cache=True, fastmath={"reassoc", "nnan", "nsz"})  # a maximum is only fast if nothing can be NaN
def _largest(x: Any) -> Any:
    top = 0.0
    for i in range(x.shape[0]):
        top = max(top, abs(x[i]))
    return top


@numba.njit(cache=True)
def _centre(x: Any, mean: Any, deviation: Any, exponent: Any) -> None:
    """Take the mean off the columns x[d, i] of data sets, in place, and find their deviations.

    A column is 2^exponent times one of the order of 1, without rounding, so that no sum can overflow; what is left in
    x, and `mean` and `deviation`, are of that one.
    """
    ones = np.ones(x.shape[2])
    for d in range(x.shape[0]):
        for i in range(x.shape[1]):
            column = x[d, i]
            e = math.frexp(_largest(column))[1]
            half = -e // 2
            first, second = math.ldexp(1.0, half), math.ldexp(1.0, -e - half)  # 2^−e itself may not be a number
            for row in range(column.shape[0]):
                column[row] = column[row] * first * second
            centre = _dot(column, ones) / column.shape[0]
            for row in range(column.shape[0]):
                column[row] -= centre
            # what rounding left: it matters for means beyond 1e9 standard deviations
            rest = _dot(column, ones) / column.shape[0]
            for row in range(column.shape[0]):
                column[row] -= rest
            exponent[d, i], mean[d, i] = e, centre + rest
            deviation[d, i] = math.sqrt(_dot(column, column) / column.shape[0])


@numba.njit(cache=True)
def _correlations(x: Any, deviation: Any, out: Any) -> None:
    """The correlation matrices of data sets of centred columns."""
    for d in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[d, i, i] = 1.0
            for j in range(i):
                covariance = _dot(x[d, i], x[d, j]) / x.shape[2]
                out[d, i, j] = out[d, j, i] = covariance / deviation[d, i] / deviation[d, j]
