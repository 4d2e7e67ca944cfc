"""Records whose truth is known, in the columns of records.parquet."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Cell = tuple[int, int | None, int]
SHD_CELLS: list[Cell] = [(m, nn, n) for m in (8, 10, 15) for nn in (2, 4, 6) for n in (50, 500, 1000)]
RANK_CELLS: list[Cell] = [(m, None, n) for m in (4, 5) for n in (20, 50, 100, 200, 500, 1000, 2000, 5000)]


def cell_records(
    cell: Cell, scorer: str, values: npt.ArrayLike, width: float = 0, *, rank: bool = False
) -> pd.DataFrame:
    """A cell under a score: values under random ties, by `width` less under the best, more under the worst."""
    random = np.asarray(values, dtype=float)
    nothing = np.full(len(random), np.nan)
    m, nn, n = cell
    shd, ranks = (nothing, random) if rank else (random, nothing)
    return pd.DataFrame(
        {
            "m": m,
            "nn": np.nan if nn is None else nn,
            "n": n,
            "replicate": np.arange(len(random)),
            "scorer": scorer,
            "shd": shd,
            "shd_best": shd - width,
            "shd_worst": shd + width,
            "missing": shd / 2,
            "extra": shd / 4,
            "reversed": shd / 4,
            "rank_mid": ranks,
            "rank_best": ranks - width,
            "rank_worst": ranks + width,
            "error": pd.Series([None] * len(random), dtype=object),
        }
    )


def draw(
    cells: Sequence[Cell],
    means: Mapping[str, Callable[[Cell], float] | float],
    trials: int,
    rng: np.random.Generator,
    *,
    rank: bool = False,
    noise: float = 1.0,
    widths: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Records of several scores: in each trial a common part, and noise for each score whose sum is exactly zero."""
    parts = []
    for cell in cells:
        common = rng.normal(0, 2, trials)
        for name, mean in means.items():
            own = common + rng.normal(0, noise, trials)
            values = (mean(cell) if callable(mean) else mean) + own - own.mean()
            parts.append(cell_records(cell, name, values, (widths or {}).get(name, 0), rank=rank))
    return pd.concat(parts, ignore_index=True)


def draw_wide(
    cells: Sequence[Cell], means: Mapping[str, Sequence[float]], trials: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Trials × scores as `benchmark.analyse.wide` has them: means by cell, a common part, noise of deviation 1."""
    index = [(m, np.nan if nn is None else nn, n, r) for m, nn, n in cells for r in range(trials)]
    common = rng.normal(0, 2, len(index))
    values = {
        name: np.repeat(np.asarray(levels, dtype=float), trials) + common + rng.normal(0, 1, len(index))
        for name, levels in means.items()
    }
    return pd.DataFrame(values, index=pd.MultiIndex.from_tuples(index, names=["m", "nn", "n", "replicate"]))


def manifest(cells: Sequence[Cell], scorers: Sequence[str], replicates: int) -> dict[str, Any]:
    """The manifest of a run that would have made such records: one study for each cell."""
    studies = [
        {
            "seed": 1,
            "design": {"m": [m], "nn": [] if nn is None else [nn], "n": [n], "replicates": replicates}
            | {"dags": "uniform" if nn is None else "kalisch"},
            "search": {"kind": "exhaustive" if nn is None else "dp"},
        }
        for m, nn, n in cells
    ]
    return {
        "experiment": "synthetic",
        "command": ["python", "-m", "benchmark", "+experiment=synthetic", "scorers=[bic,rnml]"],
        "seed": 1,
        "config": {},
        "scorers": {name: {"_target_": f"scorers.{name.upper()}"} for name in scorers},
        "studies": studies,
        "rows": len(cells) * len(scorers) * replicates,
        "failures": 0,
        "computed_trials": 0,
        "wall_seconds": 1.5,
        "records_sha256": "0" * 64,
        "revision": "f" * 40,
        "versions": {"python": "3.11"},
        "machine": {"system": "Linux", "cores": 2, "memory_gb": 8.0},
        "finished": "2026-01-01T00:00:00Z",
    }
