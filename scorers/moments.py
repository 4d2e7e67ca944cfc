"""The data, checked once and reduced to their moments: the only place that touches them.

Every family has the constant among its parents, so τ̂ depends on the centred second moments alone, and shifting and
scaling the columns changes it by a known factor. `Moments` therefore keeps the correlation matrix of the columns,
whose principal minors are well scaled whatever the units, and beside it each column's variance and mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd

from scorers.base import Array

# Rounding changes τ̂ by about ε k / λ relative, λ being the smallest eigenvalue of the family's correlation matrix.
# This bound keeps τ̂ good to 1e-6; data beyond it are refused, not rounded.
SMALLEST_EIGENVALUE = 1e-9

Data = npt.ArrayLike | pd.DataFrame


@dataclass(frozen=True)
class Moments:
    """The moments of an n × m data matrix.

    Attributes
    ----------
    n : int
        Samples.
    names : tuple of str
        The columns' names, "x0", "x1", … for an array.
    correlation : Array
        m × m correlation matrix.
    ln_variance : Array
        ln of the columns' variances (ddof 0).
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
        values, names = _matrix(data)
        _refuse_not_finite(values, names)
        # Powers of two bring every column to the order of 1 without rounding, so that no sum can overflow.
        exponent = np.frexp(np.abs(values).max(axis=1))[1]
        values = np.ldexp(values, -exponent[:, None])
        mean = values.mean(axis=1)
        values -= mean[:, None]
        rest = values.mean(axis=1)  # what rounding left of the mean: it matters for means of 1e6 standard deviations
        values -= rest[:, None]
        deviation = np.sqrt(np.mean(values**2, axis=1))
        # values were of the order of 1: deviations of a few units of rounding are those of a constant
        constant = [name for name, s in zip(names, deviation, strict=True) if s < 8 * np.finfo(float).eps]
        if constant:
            raise ValueError(f"{_columns(constant)} constant: a node needs variance. Drop it.")
        values /= deviation[:, None]
        return cls(
            n=values.shape[1],
            names=names,
            correlation=_correlation(values),
            ln_variance=2 * (np.log(deviation) + exponent * np.log(2.0)),
            offset=(mean + rest) / deviation,
        )

    def family(self, child: int, parents: Sequence[int]) -> str:
        """Words for a family, as error messages name it."""
        return f"child {self.names[child]}, parents [{', '.join(self.names[i] for i in parents)}]"

    def refuse_dependent(self, nodes: Sequence[int], where: str = "") -> None:
        """Raise if the nodes' columns are linearly dependent, or too near to it for their Gram matrix.

        By Cauchy interlacing a set that passes vouches for all its subsets.
        """
        smallest = self._smallest_eigenvalue(nodes)
        if smallest >= SMALLEST_EIGENVALUE:
            return
        dependent = list(nodes)
        for node in nodes:  # leave out what is not needed for the dependence
            fewer = [i for i in dependent if i != node]
            if self._smallest_eigenvalue(fewer) < SMALLEST_EIGENVALUE:
                dependent = fewer
        raise ValueError(
            f"{where}{_columns([self.names[i] for i in dependent])} linearly dependent, or so nearly that no digits "
            f"are left (smallest eigenvalue of their correlation matrix {self._smallest_eigenvalue(dependent):.1e}, "
            f"allowed is {SMALLEST_EIGENVALUE:.0e}): the design is singular. Drop one of them."
        )

    def _smallest_eigenvalue(self, nodes: Sequence[int]) -> float:
        return float(np.linalg.eigvalsh(self.correlation[np.ix_(nodes, nodes)])[0]) if nodes else 1.0


def _matrix(data: Data) -> tuple[Array, tuple[str, ...]]:
    """The data as floats of our own, m × n (a column of the data is contiguous), and the names of the columns."""
    if isinstance(data, pd.DataFrame):
        names = tuple(str(name) for name in data.columns)
        number = [pd.api.types.is_numeric_dtype(t) and t.kind != "c" for t in data.dtypes]
        wrong = [name for name, ok in zip(names, number, strict=True) if not ok]
        if wrong:
            raise ValueError(f"{_columns(wrong)} not numeric: drop or encode before scoring.")
        given = data.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        given = np.asarray(data)
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
    wrong = ~np.isfinite(values)
    if wrong.any():
        j = int(wrong.any(axis=1).argmax())
        raise ValueError(
            f"column {names[j]} has {wrong[j].sum()} value(s) that are NaN or infinite, the first in row "
            f"{wrong[j].argmax()}: drop those rows or impute them."
        )


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def _correlation(z: Any) -> Any:
    """zz'/n with ones on the diagonal: the same bits whatever the number of threads, unlike a BLAS."""
    m, n = z.shape
    c = np.eye(m)
    for i in range(m):
        for j in range(i):
            total = 0.0
            for row in range(n):
                total += z[i, row] * z[j, row]
            c[i, j] = c[j, i] = total / n
    return c
