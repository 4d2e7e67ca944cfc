"""What is studied: cells and trials.

A *cell* is one (m, nn, n), a *trial* one replicate of it.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True, order=True)
class Cell:
    """One (m, nn, n): nodes, expected neighbours (None for uniform DAGs), samples."""

    m: int
    nn: int | None
    n: int


@dataclass(frozen=True)
class Design:
    """How the truth and the data of a trial are drawn, and of which cells.

    Attributes
    ----------
    m, nn, n : tuple of int
        The grid; `nn` is not used by uniform DAGs.
    replicates : int
        Trials a cell.
    dags : {"uniform", "kalisch"}
        Uniform among all labelled DAGs (m ≤ 6), or forward edges with probability density · nn/(m−1).
    density : float
        The factor of that probability.
    labels : {"random", "topological"}
        Whether nodes are permuted, or numbered in causal order.
    low, high : float
        μ, b and τ are uniform on [low, high].
    signs : {"positive", "random"}
        Of the coefficients b.
    noise : {"variance", "precision", "std", "unit"}
        What τ is: the noise's variance, 1/variance, or standard deviation; "unit" is variance 1.
    preprocessing : {"none", "centred", "standardised"}
        What is done to the data before they are scored.
    share : {"nothing", "network"}
        Whether cells that differ only in n have DAG and parameters in common.
    """

    m: tuple[int, ...]
    nn: tuple[int, ...]
    n: tuple[int, ...]
    replicates: int
    dags: Literal["uniform", "kalisch"] = "kalisch"
    density: float = 1.0
    labels: Literal["random", "topological"] = "random"
    low: float = 0.1
    high: float = 1.0
    signs: Literal["positive", "random"] = "positive"
    noise: Literal["variance", "precision", "std", "unit"] = "variance"
    preprocessing: Literal["none", "centred", "standardised"] = "none"
    share: Literal["nothing", "network"] = "nothing"

    def cells(self) -> list[Cell]:
        """All cells, in order."""
        of_nn: tuple[int | None, ...] = (None,) if self.dags == "uniform" else self.nn
        return [Cell(m, nn, n) for m in self.m for nn in of_nn for n in self.n]

    def settings(self) -> dict[str, object]:
        """All that determines the data of a trial, beside its cell, replicate and the seed."""
        grid = {"m", "nn", "n", "replicates"}
        return {name: value for name, value in asdict(self).items() if name not in grid}


@dataclass(frozen=True)
class Search:
    """What is done with the data of a trial.

    Attributes
    ----------
    kind : {"exhaustive", "dp"}
        Rank the truth among all DAGs (m ≤ 6), or find the best network and its distance to the truth.
    max_parents : "oracle", "none" or int
        The parent cap of the search for the best network; "oracle" is the true DAG's largest in-degree.
    tolerance : float
        Scores that differ by less than this share of their size tie.
    """

    kind: Literal["exhaustive", "dp"]
    max_parents: str | int = "oracle"
    tolerance: float = 1e-12


@dataclass(frozen=True)
class Study:
    """A design, what is done in each trial, and the root seed of all random numbers.

    Studies of an experiment that differ in more than their cells are its *arms*: records tell them apart by that name,
    and each may have scores of its own.
    """

    seed: int
    design: Design
    search: Search
    arm: str | None = None
    scorers: tuple[str, ...] | None = None

    def names(self, all_scorers: Iterable[str]) -> tuple[str, ...]:
        """The scores that are compared in this study: its own, or all."""
        return tuple(all_scorers) if self.scorers is None else self.scorers
