"""Every family of m nodes, from one correlation matrix.

With L(S) the log-determinant of the correlation matrix of the nodes S, the residual variance of child j given the
parents S and the constant is τ̂ = variance_j · exp(L(S ∪ {j}) − L(S)). So one table of 2^m log-determinants serves
all m·2^(m−1) families, and no family is ever fitted by itself. A set of nodes is a bit mask; the parent sets of
child j are numbered by the *compressed* mask, which leaves out bit j.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numba
import numpy as np
import psutil

from scorers.base import Array, Block, IntArray, Scorer, code_lengths
from scorers.moments import SMALLEST_EIGENVALUE, Data, Moments

# A block of all children has up to 2^BLOCK_BITS families: it stays in the cache while a score works on it.
BLOCK_BITS = 18

# The C library gives freed memory of more than 128 kB back to the system, and its pages are faulted in anew at the
# next use, which costs more than a score's arithmetic. It stops doing so once a larger block has been freed: this one.
np.empty(4_000_000)


def block_bits(m: int) -> int:
    """The logarithm of the number of compressed masks in a block of all m children."""
    return min(m - 1, BLOCK_BITS - m.bit_length())


def expand(c: int, j: int) -> int:
    """The mask whose compressed form, without bit j, is c.

    Examples
    --------
    >>> bin(expand(0b101, 1))
    '0b1001'
    """
    low = (1 << j) - 1
    return (c & low) | (c & ~low) << 1


def members(mask: int) -> tuple[int, ...]:
    """The nodes of a mask, in order."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


@dataclass(frozen=True)
class Families:
    """All families with up to `max_parents` parents.

    `families[j]` is the block of child j: entry c is the family whose parents are `families.parents(j, c)`.

    Attributes
    ----------
    moments : Moments
        The data's moments.
    max_parents : int
        The largest number of parents asked for.
    logdet : Array
        2^m log-determinants of the correlation matrix's principal minors, NaN where not asked for.
    """

    moments: Moments
    max_parents: int
    logdet: Array

    @classmethod
    def of(cls, data: Data, max_parents: int | None = None) -> "Families":
        """Take the moments of the data and the log-determinants of all sets of nodes.

        Parameters
        ----------
        data : array_like or DataFrame
            n × m; rows are samples, columns are nodes.
        max_parents : int, optional
            The largest number of parents asked for; all families when left out.

        Returns
        -------
        Families
            The families.
        """
        return cls.of_moments(Moments.of(data), max_parents)

    @classmethod
    def of_moments(cls, moments: Moments, max_parents: int | None = None) -> "Families":
        """The families of data of which only the moments are known."""
        n, m = moments.n, moments.m
        if max_parents is None:
            max_parents = m - 1
        if not 0 <= max_parents < m:
            raise ValueError(f"max_parents must be from 0 to m − 1 = {m - 1}. Got {max_parents} instead.")
        if n <= max_parents + 1:
            raise ValueError(
                f"n = {n} samples cannot fit families with {max_parents} parents and the constant "
                f"(k = {max_parents + 1}): n > k is needed. Give max_parents ≤ {n - 2}, or more data."
            )
        _refuse_large(m, 8 * (1 << m))
        independent = moments.independent(range(m))
        if not independent and max_parents == m - 1:
            moments.refuse_dependent(range(m))
        logdet = np.empty(1 << m)
        _pivots(moments.correlation, max_parents + 1, logdet)
        with np.errstate(invalid="ignore", divide="ignore"):
            np.log(logdet, out=logdet)
        _accumulate(logdet)
        if not independent:  # but the sets that are asked for may be
            # λ ≥ min share / |S|: only sets in which a node has a small share of its variance left can fail
            for suspect in _small_shares(logdet, max_parents + 1, m * SMALLEST_EIGENVALUE):
                moments.refuse_dependent(members(int(suspect)))
        logdet.flags.writeable = False
        return cls(moments, max_parents, logdet)

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.moments.n

    @property
    def m(self) -> int:
        """The number of nodes."""
        return self.moments.m

    def parents(self, j: int, c: int) -> tuple[int, ...]:
        """The parents of child j whose compressed mask is c.

        Examples
        --------
        >>> families = Families.of(np.random.default_rng(1).normal(1, 1, size=(10, 4)))
        >>> families.parents(1, 0b101)
        (0, 3)
        """
        return members(expand(int(c), int(j)))

    def __getitem__(self, j: int) -> Block:
        """All parent sets of child j."""
        if not 0 <= j < self.m:
            raise IndexError(f"child must be from 0 to m − 1 = {self.m - 1}. Got {j} instead.")
        _refuse_large(self.m, 8 * 8 * (1 << (self.m - 1)))  # the block and what a score makes of it
        block = self.block(range(j, j + 1), 0, self.m - 1)
        return replace(
            block,
            ln_tau=block.ln_tau[0],
            ln_variance=block.ln_variance[0],
            offset=block.offset[0],
            centred=block.centred[0],
            label=lambda where: block.label((0, *where)),
        )

    def blocks(self) -> Iterator[tuple[slice, Block]]:
        """All families, a few parent sets of all children at a time: their compressed masks, and their block.

        Entry [j, i] of a block is child j with the i-th of those masks; up to m = 15 there is only one block.
        """
        bits = block_bits(self.m)
        for start in range(0, 1 << (self.m - 1), 1 << bits):
            yield slice(start, start + (1 << bits)), self.block(range(self.m), start, bits)

    def block(self, children: range, start: int, bits: int) -> Block:
        """The families of consecutive children with the 2^bits compressed masks from `start` on.

        Entry [i, c] is the i-th of the children with the parents `families.parents(children[i], start + c)`.
        """
        ln_tau = np.empty((len(children), 1 << bits))
        _log_residuals(self.logdet, children.start, start, self.moments.ln_variance, ln_tau)
        rows = slice(children.start, children.stop)
        return Block(
            n=self.n,
            m=self.m,
            k=np.bitwise_count(np.arange(start, start + (1 << bits))).astype(np.int64) + 1,
            most=self.max_parents + 1,
            ln_tau=ln_tau,
            ln_variance=self.moments.ln_variance[rows, None],
            offset=self.moments.offset[rows, None],
            centred=self.moments.centred[rows, None],
            label=partial(self._label, children.start, start),
        )

    def network(self, parents: IntArray) -> Block:
        """The m families of a network, given as one parent mask (not compressed) for each child."""
        child = 1 << np.arange(self.m)
        return Block(
            n=self.n,
            m=self.m,
            k=np.bitwise_count(parents).astype(np.int64) + 1,
            most=self.max_parents + 1,
            ln_tau=self.logdet[parents | child] - self.logdet[parents] + self.moments.ln_variance,
            ln_variance=self.moments.ln_variance,
            offset=self.moments.offset,
            centred=self.moments.centred,
            label=lambda where: self.moments.family(where[0], members(int(parents[where[0]]))),
        )

    def _label(self, child: int, start: int, where: tuple[int, ...]) -> str:
        j = child + where[0]
        return self.moments.family(j, self.parents(j, start + where[1]))


def score_table(families: Families, scorer: Scorer, out: Array | None = None) -> Array:
    """Code lengths of all families under a score.

    Parameters
    ----------
    families : Families
        The families.
    scorer : Scorer
        The score.
    out : Array, optional
        An m × 2^(m−1) table of doubles to write to.

    Returns
    -------
    Array
        Entry [j, c] is the code length of child j with the parents `families.parents(j, c)`; +inf above
        `max_parents`.
    """
    shape = (families.m, 1 << (families.m - 1))
    if out is None:
        _refuse_large(families.m, 8 * shape[0] * shape[1])
        if block_bits(families.m) == families.m - 1:  # one block is the table
            return code_lengths(scorer, families.block(range(families.m), 0, families.m - 1))
        table = np.empty(shape)
    elif out.shape == shape and out.dtype == np.float64:
        table = out
    else:
        raise ValueError(f"out must be float64 of shape {shape}. Got {out.dtype} of shape {out.shape} instead.")
    for masks, block in families.blocks():
        table[:, masks] = code_lengths(scorer, block)
    return table


def _refuse_large(m: int, need: int) -> None:
    """Raise if what the families of m nodes need, in bytes, is not free."""
    if m > 20 and need > (free := psutil.virtual_memory().available):
        raise MemoryError(
            f"m = {m} nodes have 2^{m} sets of parents: their families need {need / 2**30:,.1f} GiB, and "
            f"{free / 2**30:,.1f} GiB are free. Score fewer nodes, or single networks with network_score."
        )


@numba.njit(cache=True, error_model="numpy")  # a zero pivot is found by the caller, not raised here
def _pivots(c: Any, size: int, out: Any) -> None:
    """out[S] = residual variance of the lowest node of S given its other nodes, for all |S| ≤ size, else NaN.

    Numeric order visits S after P, which is S without its lowest node b. The Schur complement of P, in rows and
    columns below P's lowest node, is kept at that node's level of `w`; its entry [b, b] is the pivot, and
    eliminating b gives the complement of S at level b. Half of all sets end at b = 0 and need no elimination:
    about 6·2^m operations in all.
    """
    m = c.shape[0]
    w = np.empty((m + 1, m, m))
    count = np.zeros(m + 1, np.int64)  # nodes of the set whose complement is at that level
    w[m] = c
    out[0] = 1.0
    for s in range(1, 1 << m):
        b = 0
        while (s >> b) & 1 == 0:
            b += 1
        level = b + 1
        while level < m and (s >> level) & 1 == 0:
            level += 1
        count[b] = count[level] + 1
        if count[b] > size:
            out[s] = np.nan
            continue
        pivot = w[level, b, b]
        out[s] = pivot
        for i in range(b):
            factor = w[level, b, i] / pivot
            for j in range(i + 1):
                w[b, i, j] = w[level, i, j] - factor * w[level, b, j]


@numba.njit(cache=True)
def _accumulate(logdet: Any) -> None:
    """From logarithms of pivots to log-determinants: L(S) = ln pivot(S) + L(S without its lowest node)."""
    logdet[0] = 0.0
    for s in range(1, logdet.shape[0]):
        logdet[s] += logdet[s & (s - 1)]


@numba.njit(cache=True)
def _small_shares(logdet: Any, size: int, least: float) -> Any:
    """The sets S of up to `size` nodes in which a node has less than a share `least` of its variance left."""
    m = 0
    while 1 << m < logdet.shape[0]:
        m += 1
    found = []
    nodes = np.zeros(logdet.shape[0], np.int8)
    for s in range(1, logdet.shape[0]):
        nodes[s] = nodes[s & (s - 1)] + 1
        if nodes[s] <= size:
            for i in range(m):
                if (s >> i) & 1 and not logdet[s] - logdet[s ^ (1 << i)] >= np.log(least):  # NaN is less, too
                    found.append(s)
                    break
    return np.array(found, dtype=np.int64)


@numba.njit(cache=True)
def _log_residuals(logdet: Any, child: int, start: int, ln_variance: Any, out: Any) -> None:
    """out[row, i] = L(S ∪ {j}) − L(S) + ln variance_j, where j = child + row.

    S is the compressed mask start + i with a zero put in at bit j. In numeric order each run of 2^j sets without j
    is followed by the run of the same sets with j.
    """
    size = out.shape[1]
    for row in range(out.shape[0]):
        j = child + row
        run = 1 << j
        if run < size:
            pairs = logdet[2 * start : 2 * (start + size)].reshape(-1, 2, run)
            residuals = out[row].reshape(-1, run)
            for h in range(residuals.shape[0]):
                for i in range(run):
                    residuals[h, i] = pairs[h, 1, i] - pairs[h, 0, i] + ln_variance[j]
        else:
            first = ((start >> j) << (j + 1)) + (start & (run - 1))
            without = logdet[first : first + size]
            with_j = logdet[first + run : first + run + size]
            for i in range(size):
                out[row, i] = with_j[i] - without[i] + ln_variance[j]
