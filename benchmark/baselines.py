"""Graphs that any score must beat: they are compared like scores, but they look at less.

A baseline is put beside the scores in a config. It has a method `graphs` in place of a score's call: from the families
of some data sets, the true graphs (of which it may know how many edges they have, and no more) and random numbers to
one graph for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from scorers.base import IntArray, Scorer
from scorers.bic import BIC
from scorers.families import Families, score_table
from scorers.masks import expand


@runtime_checkable
class Baseline(Protocol):
    """Something that learns graphs without searching for the best score."""

    def graphs(self, families: Families, truth: IntArray, rngs: Sequence[np.random.Generator]) -> IntArray:
        """One adjacency for each data set: … × m × m."""
        ...


# What a config's `scorers` may hold.
Contestant = Scorer | Baseline


@dataclass(frozen=True)
class EmptyGraph:
    """No edges: its SHD is the number of true edges."""

    def graphs(self, families: Families, truth: IntArray, rngs: Sequence[np.random.Generator]) -> IntArray:
        """One adjacency for each data set."""
        return np.zeros_like(truth)


@dataclass(frozen=True)
class RandomGraph:
    """A random DAG with as many edges as the truth: edges between random pairs of nodes, along a random order."""

    def graphs(self, families: Families, truth: IntArray, rngs: Sequence[np.random.Generator]) -> IntArray:
        """One adjacency for each data set."""
        drawn = np.zeros_like(truth)
        for graph, true, rng in zip(drawn, truth, rngs, strict=True):
            order = rng.permutation(len(true))
            first, second = np.triu_indices(len(true), k=1)
            pairs = rng.choice(len(first), size=int(true.sum()), replace=False)
            graph[order[first[pairs]], order[second[pairs]]] = 1
        return drawn


@dataclass(frozen=True)
class SortRegress:
    """Sort the nodes by their variance, then regress each on those before it (Reisach et al. 2021).

    The parents of a node are those of its predecessors that make the best family under a score, exactly. Where
    variances grow along the causal order this does well without having learned anything of causes; on standardised
    data, where they are equal, it falls back to a random order.

    Parameters
    ----------
    scorer : Scorer
        What chooses among the predecessors.
    """

    scorer: Scorer = field(default_factory=BIC)

    def graphs(self, families: Families, truth: IntArray, rngs: Sequence[np.random.Generator]) -> IntArray:
        """One adjacency for each data set."""
        m = families.m
        # variances that are equal up to rounding are in random order
        jitter = 1e-9 * np.array([rng.random(m) for rng in rngs])
        order = np.argsort(families.moments.ln_variance + jitter, axis=-1)
        before = np.zeros_like(order)  # masks of the nodes before each
        np.put_along_axis(before, order, np.cumsum(1 << order, axis=-1) - (1 << order), axis=-1)
        sets = np.array([expand(np.arange(1 << (m - 1)), j) for j in range(m)])
        table = score_table(families, self.scorer)
        best = np.where(sets & ~before[..., None], np.inf, table).argmin(axis=-1)
        parents = np.take_along_axis(np.broadcast_to(sets, table.shape), best[..., None], axis=-1)[..., 0]
        return parents[..., None, :] >> np.arange(m)[:, None] & 1
