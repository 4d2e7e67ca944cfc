"""Every reading of the paper's Table 1, measured: records in, a table with one row for each reading out.

A *reading* is one choice on each of the axes that the paper leaves open or prints in two ways. Each gives the six
numbers of Table 1 that can differ freely, the advantage of RNML over MDL and over the best of AIC and BIC at three n,
and their covariance. The distance to the printed numbers is

    χ² = δ' (V + V_printed)⁻¹ δ,    δ = measured − printed,

where V is the measured covariance and V_printed the same at the paper's replicates, because the printed numbers are
means over data sets, too. Both rows "all" are the means of the three above: they add no degree of freedom, so there
are six, not eight (see `eight`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import chi2, t

from benchmark.analyse import CONFIDENCE
from benchmark.claims import load_claims

Array = npt.NDArray[np.float64]

# The axes and their values, as they are called in words; the first of each is the default reading's.
AXES: dict[str, dict[Any, str]] = {
    "variant": {
        "rnml": "eq. 32",
        "rnml_stirling": "eq. 33 (Stirling)",
        "rnml_gamma": "gamma of eq. 31",
        "rnml_printed_c": "C as printed",
        "rnml_printed_c_k2": "C as printed, k² kept",
        "rnml_centred": "centred R̂",
    },
    "noise": {
        "variance": "τ is the variance",
        "precision": "τ is the precision",
        "std": "τ is the standard deviation",
        "unit": "variance 1",
    },
    "density": {1.0: "edges nn/(m−1)", 0.5: "half as many edges"},
    "cap": {"oracle": "true in-degree", "none": "no parent cap"},
    "ties": {
        "random": "random ties",
        "best": "best ties",
        "worst": "worst ties",
        "forward": "ties along the order",
        "backward": "ties against the order",
        "any": "any ties",
    },
    "shd": {"reversal 1": "reversal counts 1", "reversal 2": "reversal counts 2", "CPDAG": "SHD of CPDAGs"},
    "best of": {"cell": "best of AIC/BIC by cell", "replicate": "best of AIC/BIC by replicate"},
    "intercept": {"with": "rivals with intercept", "without": "rivals without intercept"},
}
DEFAULT = {axis: next(iter(values)) for axis, values in AXES.items()}
RIVALS = {"with": ("mdl", "aic", "bic"), "without": ("mdl_no_intercept", "aic_no_intercept", "bic_no_intercept")}
# What a tie rule and a kind of SHD are in the records: sums of columns. The CPDAG is that of the random ties; those of
# score-equivalent scores have the same under any.
MEASURES: dict[tuple[str, str], tuple[str, ...]] = {
    ("random", "reversal 1"): ("shd",),
    **{(rule, "reversal 1"): (f"shd_{rule}",) for rule in ("best", "worst", "forward", "backward")},
    ("random", "reversal 2"): ("shd", "reversed"),
    **{(rule, "reversal 2"): (f"shd_{rule}", f"reversed_{rule}") for rule in ("best", "worst", "forward", "backward")},
    ("any", "CPDAG"): ("shd_cpdag",),
}
SENTENCES = {
    "rnml smallest": "RNML has the smallest mean SHD over all cells",
    "mdl second": "MDL comes second, before AIC and BIC, in the mean over all cells",
}


@dataclass(frozen=True)
class Printed:
    """What the paper prints in Table 1.

    Attributes
    ----------
    networks : list of (m, nn)
        Whose cells each row is a mean over.
    sizes : list of int
        The n of the rows.
    six : array, 2 × n
        Over MDL, over the best of AIC and BIC.
    both : array of 2
        The row "all".
    replicates : int
        Of a cell.
    """

    networks: list[tuple[int, int | None]]
    sizes: list[int]
    six: Array
    both: Array
    replicates: int

    @classmethod
    def of(cls, claims: Path) -> "Printed":
        """Table 1 from the file of claims."""
        table = [
            each
            for each in load_claims(claims)
            if each.statistic == "advantage" and each.arguments.get("best", "cell") == "cell"
        ]
        networks = sorted({(m, nn) for each in table for m, nn, _ in each.cells})
        sizes = sorted({n for each in table for _, _, n in each.cells})
        values = {
            (len(each.arguments["over"]) > 1, *sorted({n for _, _, n in each.cells})): each.arguments["printed"]
            for each in table
        }
        six = np.array([[values[best, n] for n in sizes] for best in (False, True)])
        both = np.array([values[best, *sizes] for best in (False, True)])
        if abs(six.mean(axis=1) - both).max() > 1e-4:
            raise ValueError(
                f"{claims}: the printed numbers over all n, {both}, must be the means of those by n, {six}."
            )
        return cls(networks, sizes, six, both, table[0].arguments["replicates"])

    @property
    def names(self) -> list[str]:
        """The names of the eight numbers."""
        return [f"over {rival} {n}" for rival in ("mdl", "best") for n in (*self.sizes, "all")]


@dataclass(frozen=True)
class Measured:
    """The numbers of Table 1 under many readings, which are the first axes of each array.

    Attributes
    ----------
    six : array, … × 2 × n
        Over MDL, over the best of AIC and BIC.
    ours, printed : array, … × 6 × 6
        Covariance of the six as measured here, and at the paper's replicates.
    freedom : array, … × (n + 1)
        Degrees of freedom of their variances, the last for all n.
    """

    six: Array
    ours: Array
    printed: Array
    freedom: Array


def grid(records: pd.DataFrame, manifest: Mapping[str, Any], printed: Printed) -> tuple[pd.DataFrame, int]:
    """All readings that the records allow, nearest first, and how many there should be.

    Parameters
    ----------
    records : DataFrame
        One row for each trial and score.
    manifest : mapping
        How the records were made; its studies say which noise, density and parent cap an arm has.
    printed : Printed
        Table 1.

    Returns
    -------
    DataFrame
        The axes; `chi2` and `p` of the distance; the eight numbers with their 95 % intervals; whether each of
        `SENTENCES` holds in the means; in how many cells RNML is the smallest; the fewest `trials` in a cell.
    """
    parts = []
    for study in manifest["studies"]:
        arm = study["arm"]
        noise, density, cap = study["design"]["noise"], study["design"]["density"], study["search"]["max_parents"]
        axes = {"arm": arm, "noise": noise, "density": float(density), "cap": str(cap)}
        own = records[records["arm"] == arm]
        if len(own):
            parts += [part.assign(**axes) for part in _readings(arrays(own, printed), printed)]
    expected = len(manifest["studies"]) * len(RIVALS) * len(AXES["variant"]) * len(MEASURES) * len(AXES["best of"])
    first = [*AXES, "arm", "chi2", "p"]
    if not parts:
        return pd.DataFrame(columns=first), expected
    table = pd.concat(parts, ignore_index=True)
    table = table[[*first, *(name for name in table.columns if name not in first)]]
    return table.sort_values("chi2", kind="stable", ignore_index=True), expected


def arrays(records: pd.DataFrame, printed: Printed) -> dict[str, Array]:
    """For each score its values by measure × n × (m, nn) × replicate; NaN where there is none."""
    keys = zip(records["m"], records["nn"].astype(float), strict=True)
    network = pd.Index(printed.networks).get_indexer(pd.Index(list(keys), tupleize_cols=True))
    size = pd.Index(printed.sizes).get_indexer(pd.Index(records["n"]))
    wanted = (network >= 0) & (size >= 0)
    shape = (len(MEASURES), len(printed.sizes), len(printed.networks), int(records["replicate"].max()) + 1)
    found = {}
    for name in {*AXES["variant"], *(rival for rivals in RIVALS.values() for rival in rivals)}:
        rows = wanted & (records["scorer"] == name).to_numpy()
        own = records[rows]
        if own.empty:
            continue
        found[name] = np.full(shape, np.nan)
        place = size[rows], network[rows], own["replicate"].to_numpy()
        for i, columns in enumerate(MEASURES.values()):
            found[name][i][place] = own[list(columns)].astype(float).sum(axis=1, skipna=False)
    return found


def _readings(values: Mapping[str, Array], printed: Printed) -> Iterator[pd.DataFrame]:
    """The readings of one arm, a part for each variant of RNML and each set of rivals."""
    for intercept, names in RIVALS.items():
        for variant in AXES["variant"]:
            if not {variant, *names} <= set(values):
                continue
            four = np.stack([values[name] for name in (variant, *names)], axis=1)
            trials = np.isfinite(four).all(axis=1).sum(axis=-1).min(axis=(1, 2))  # of the cell with the fewest
            enough = trials > 1
            if not enough.any():
                continue
            axes = [
                {"variant": variant, "intercept": intercept, "ties": rule, "shd": kind, "best of": best}
                for (rule, kind), is_enough in zip(MEASURES, enough, strict=True)
                if is_enough
                for best in AXES["best of"]
            ]
            four = four[enough]
            found = measure(four, printed.replicates)
            twice = {
                name: np.repeat(column, 2) for name, column in (sentences(four) | {"trials": trials[enough]}).items()
            }
            yield pd.DataFrame(axes).assign(**distance(found, printed), **eight(found, printed), **twice)


def measure(four: Array, replicates: int) -> Measured:
    """The six numbers of Table 1 and their covariance, for many measures at once.

    Parameters
    ----------
    four : array, measures × 4 × n × (m, nn) × replicates
        RNML, MDL, AIC and BIC. A trial without a value of all four is left out.
    replicates : int
        The paper's.

    Returns
    -------
    Measured
        For measures × 2: the best of AIC and BIC by cell, and by replicate.
    """
    finished = np.asarray(np.isfinite(four).all(axis=1))
    counts = finished.sum(axis=-1)
    rnml, mdl, *pair = np.moveaxis(np.where(finished[:, None], four, 0.0), 1, 0)
    two = np.stack(pair)
    better = two.sum(axis=-1, keepdims=True).argmin(axis=0)[None]  # of equal means the first counts
    best = np.stack([np.take_along_axis(two, better, axis=0)[0], two.min(axis=0)], axis=1)
    over_mdl = np.broadcast_to((mdl - rnml)[:, None], best.shape)
    difference = np.stack([over_mdl, best - rnml[:, None]], axis=2)  # measure × best of × column × n × network × trial
    among = counts[:, None, None, ..., None]
    mean = difference.sum(axis=-1, keepdims=True) / among
    six = mean[..., 0].mean(axis=-1)
    # A trial's part in the number of its n; the root is the usual factor of a variance around its own mean.
    part = np.where(finished[:, None, None], difference - mean, 0.0) / among * np.sqrt(among / (among - 1))
    part /= four.shape[-2]
    # Sums over equal (m, nn, replicate), as `analyse.pooled` has them: cells of different n may share networks.
    flat = part.reshape(*part.shape[:2], 6, -1)
    ours = flat @ np.swapaxes(flat, -1, -2)
    # The paper's cells have data of their own and as many trials as it says: blocks of 2 × 2, one for each n.
    scaled = part * np.sqrt(among / replicates)
    blocks = np.einsum("...anwr,...bnwr->...abn", scaled, scaled)
    printed = np.einsum("...abn,nk->...anbk", blocks, np.eye(blocks.shape[-1])).reshape(ours.shape)
    in_all = finished.any(axis=1).sum(axis=-1)
    freedom = np.concatenate([(counts - 1).sum(axis=-1), (in_all - 1).sum(axis=-1, keepdims=True)], axis=-1)
    return Measured(six, ours, printed, np.repeat(freedom[:, None], 2, axis=1).astype(float))


def distance(found: Measured, printed: Printed) -> dict[str, Array]:
    """The χ² distance of the six numbers from the printed ones, and its p-value with six degrees of freedom."""
    off = (found.six - printed.six).reshape(*found.six.shape[:-2], -1)
    try:
        weighted = np.linalg.solve(found.ours + found.printed, off[..., None])[..., 0]
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "There is no distance to Table 1: in some reading the advantage over MDL or over AIC/BIC is the same in "
            "all trials of an n, or both are. Run with more replicates."
        ) from error
    square = (off * weighted).sum(axis=-1)
    return {"chi2": square.ravel(), "p": chi2.sf(square, off.shape[-1]).ravel()}


def eight(found: Measured, printed: Printed) -> dict[str, Array]:
    """The eight numbers with 95 % intervals: the six, and their means over n. Their covariance has rank six."""
    rows = len(printed.sizes)
    to_four = np.vstack([np.eye(rows), np.full(rows, 1 / rows)])  # the three rows of a column, and their mean
    to_eight = np.kron(np.eye(2), to_four)
    means = found.six.reshape(*found.six.shape[:-2], -1) @ to_eight.T
    se = np.sqrt(np.einsum("ia,...ab,ib->...i", to_eight, found.ours, to_eight))
    half = t.ppf((1 + CONFIDENCE) / 2, np.concatenate([found.freedom, found.freedom], axis=-1)) * se
    columns: dict[str, Array] = {}
    for i, name in enumerate(printed.names):
        ends = {"": means, " low": means - half, " high": means + half}
        columns |= {name + end: value[..., i].ravel() for end, value in ends.items()}
    return columns


def sentences(four: Array) -> dict[str, npt.NDArray[Any]]:
    """Which sentences hold in the means, by measure, and in how many cells RNML is the smallest."""
    finished = np.isfinite(four).all(axis=1, keepdims=True)
    cells = np.where(finished, four, 0.0).sum(axis=-1) / finished.sum(axis=-1)
    rnml, mdl, *pair = np.moveaxis(cells.mean(axis=(-2, -1)), 1, 0)
    return {
        "rnml smallest": (rnml < mdl) & (rnml < np.minimum(*pair)),
        "mdl second": (rnml < mdl) & (mdl < np.minimum(*pair)),
        "rnml smallest in cells": (cells[:, :1] < cells[:, 1:]).all(axis=1).sum(axis=(-2, -1)),
    }


def neighbours(table: pd.DataFrame, reading: Mapping[str, Any]) -> pd.DataFrame:
    """The readings that differ from one on a single axis, which the column `axis` names.

    The CPDAG does not depend on ties: from and to it, the tie rule is no further difference.
    """
    differs = pd.DataFrame({axis: table[axis] != reading[axis] for axis in AXES})
    differs["ties"] &= (table["shd"] != "CPDAG") & (reading["shd"] != "CPDAG")
    one = differs.sum(axis=1) == 1
    return table[one].assign(axis=differs[one].idxmax(axis=1))


def default_of(table: pd.DataFrame) -> dict[str, Any] | None:
    """The row of the default reading, if it is there."""
    rows = table[(table[list(AXES)] == pd.Series(DEFAULT)).all(axis=1)]
    return next(iter(rows_of(rows)), None)


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows, each by the names of the columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def changes(reading: Mapping[str, Any]) -> str:
    """In which choices a reading is not the default, in words; the variant of RNML in any case."""
    chosen = [axis for axis in AXES if axis == "variant" or reading[axis] not in (DEFAULT[axis], "any")]
    return "; ".join(AXES[axis].get(reading[axis], f"{axis} {reading[axis]}") for axis in chosen)
