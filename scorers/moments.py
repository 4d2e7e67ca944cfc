"""The data, checked once and reduced to their moments: the only place that touches them.

Every family has the constant among its parents, so τ̂ depends on the centred second moments alone, and shifting and
scaling the columns changes it by a known factor. `Moments` therefore keeps the correlation matrix of the columns,
whose principal minors are well scaled whatever the units, and beside it each column's variance and mean.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, Union

import numba
import numpy as np
import numpy.typing as npt

from scorers.base import Array

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

    @property
    def centred(self) -> npt.NDArray[np.bool_]:
        """Of which columns the mean is only what centring left behind."""
        offset = np.abs(self.offset)
        least = np.inf if (offset * np.sqrt(self.n) < STANDARD_ERRORS).all() else MEAN
        return offset < least

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
        rest = values.mean(axis=1)  # what rounding left: it matters for means beyond 1e9 standard deviations
        values -= rest[:, None]
        deviation = np.sqrt(np.mean(values**2, axis=1))
        # values were of the order of 1: deviations of a few units of rounding are those of a constant
        constant = [name for name, s in zip(names, deviation, strict=True) if s < 8 * np.finfo(float).eps]
        if constant:
            raise ValueError(
                f"{_columns(constant)} constant, or without digits beside the mean: a node needs variance. Drop it, "
                "or take the mean off before it is stored."
            )
        values /= deviation[:, None]
        return cls(
            n=values.shape[1],
            names=names,
            correlation=_correlation(values),
            ln_variance=2 * (np.log(deviation) + exponent * np.log(2.0)),
            offset=(mean + rest) / deviation,
        )

    def __post_init__(self) -> None:
        """Scores see views of these arrays: none of them may change what the next one sees."""
        for array in (self.correlation, self.ln_variance, self.offset):
            array.flags.writeable = False

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

    def _smallest_eigenvalue(self, nodes: Sequence[int]) -> float:
        return float(np.linalg.eigvalsh(self.correlation[np.ix_(nodes, nodes)])[0]) if nodes else 1.0


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
    """zz'/n with ones on the diagonal: the same bits whatever the number of threads, unlike a BLAS.

    Sums of 1024 rows are summed, so that rounding does not grow with n.
    """
    m, n = z.shape
    c = np.eye(m)
    for i in range(m):
        for j in range(i):
            total = 0.0
            for start in range(0, n, 1024):
                part = 0.0
                for row in range(start, min(start + 1024, n)):
                    part += z[i, row] * z[j, row]
                total += part
            c[i, j] = c[j, i] = total / n
    return c
