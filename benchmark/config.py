"""The config: its schema, and the sentences that say what a value may be.

Hydra composes `conf/`; a misspelt key or a wrong type is stopped by the schema below, an impossible value by
`study_of`. The names are those of the code: `design` becomes a `benchmark.design.Design`, `search` a `Search`.
"""

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, ListConfig

from benchmark.design import Design, Search, Study
from search.dags import MOST, count_dags

Dags = Enum("Dags", "uniform kalisch")
Labels = Enum("Labels", "random topological")
Signs = Enum("Signs", "positive random")
Noise = Enum("Noise", "variance precision std unit")
Preprocessing = Enum("Preprocessing", "none centred standardised")
Share = Enum("Share", "nothing network")
Kind = Enum("Kind", "exhaustive dp")
Backend = Enum("Backend", "serial loky dask")
Reading = Enum("Reading", "cell replicate")
Analysis = Enum("Analysis", "study arms readings")
Stage = Enum("Stage", "run analyse replay certify scale")


# A study of many trials with more nodes than this would not end.
LARGEST = 28


class ConfigError(ValueError):
    """A config that cannot be run."""


@dataclass
class DesignConf:
    """`design`: see `benchmark.design.Design`. The grids m, nn, n are one number or a list."""

    m: Any = MISSING
    nn: Any = MISSING
    n: Any = MISSING
    replicates: int = MISSING
    dags: Dags = MISSING
    density: float = MISSING
    labels: Labels = MISSING
    low: float = MISSING
    high: float = MISSING
    signs: Signs = MISSING
    noise: Noise = MISSING
    preprocessing: Preprocessing = MISSING
    share: Share = MISSING


@dataclass
class SearchConf:
    """`search`: see `benchmark.design.Search`."""

    kind: Kind = MISSING
    max_parents: Any = MISSING
    tolerance: float = MISSING


@dataclass
class ParallelConf:
    """`parallel`: see `benchmark.workers.Workers`."""

    backend: Backend = MISSING
    n_jobs: int = MISSING
    address: str | None = None
    time_limit: float | None = None


@dataclass
class ReplayConf:
    """`replay`: the coordinates of one trial; the first cell's where left out."""

    m: int | None = None
    nn: int | None = None
    n: int | None = None
    replicate: int = 0


@dataclass
class AnalysisConf:
    """`analysis`: of what kind, which scores Table 1 compares, how "best of" is read (`benchmark.analyse.table_1`)."""

    kind: Analysis = MISSING
    baseline: str = MISSING
    over: str = MISSING
    best_of: list[str] = MISSING
    reading: Reading = MISSING


@dataclass
class ScalingConf:
    """`scaling`: the seconds that `benchmark.scaling.scale` may take in all, and for one search of another program."""

    seconds: float = MISSING
    peer_seconds: float = MISSING


@dataclass
class Config:
    """The whole config.

    `parts` are experiments that make up this one; `arms` are settings of this one that are compared, each a name and
    the overrides that make it.
    """

    name: str = MISSING
    design: DesignConf = field(default_factory=DesignConf)
    scorers: dict[str, Any] = field(default_factory=dict)
    search: SearchConf = field(default_factory=SearchConf)
    parallel: ParallelConf = field(default_factory=ParallelConf)
    seed: int = MISSING
    results_dir: str = MISSING
    stages: list[Stage] = MISSING
    parts: list[str] = field(default_factory=list)
    arms: dict[str, list[str]] = field(default_factory=dict)
    replay: ReplayConf = field(default_factory=ReplayConf)
    analysis: AnalysisConf = field(default_factory=AnalysisConf)
    scaling: ScalingConf = field(default_factory=ScalingConf)


ConfigStore.instance().store(name="schema", node=Config)


def allowed() -> str:
    """The keys of each group, with the values of those that have only a few."""
    lines = []
    for group, conf in {
        "design": DesignConf,
        "search": SearchConf,
        "parallel": ParallelConf,
        "replay": ReplayConf,
        "analysis": AnalysisConf,
        "scaling": ScalingConf,
    }.items():
        keys = []
        for each in fields(conf):
            few = isinstance(each.type, type) and issubclass(each.type, Enum)
            keys.append(f"{each.name} ({'|'.join(each.type.__members__)})" if few else each.name)  # type: ignore[union-attr]
        lines.append(f"{group}: {', '.join(keys)}")
    return "\n".join(lines)


def study_of(config: DictConfig, arm: str | None = None) -> Study:
    """The study that a config describes, one arm of an experiment; an error in one sentence if it describes none."""
    design, search = config.design, config.search
    values = {f.name: _plain(design[f.name]) for f in fields(Design)}
    values |= {name: _grid(name, design[name]) for name in ("m", "n")}
    values["nn"] = () if design.dags == Dags.uniform else _grid("nn", design.nn)
    study = Study(
        seed=config.seed,
        design=Design(**values),
        search=Search(**{f.name: _plain(search[f.name]) for f in fields(Search)}),
        arm=arm,
        scorers=None if arm is None else tuple(str(name) for name in config.scorers),
    )
    _refuse_impossible(study)
    if config.parallel.n_jobs == 0:
        raise ConfigError("parallel.n_jobs must be the number of workers, or −1 for one on each core. Got 0.")
    if config.parallel.time_limit is not None:
        if config.parallel.backend == Backend.dask:
            raise ConfigError(
                "parallel.time_limit needs parallel=loky or serial: dask's workers cannot be interrupted."
            )
        if not config.parallel.time_limit > 0:
            raise ConfigError(f"parallel.time_limit must be above 0 seconds. Got {config.parallel.time_limit:g}.")
    if not config.stages:
        named = ", ".join(Stage.__members__)
        raise ConfigError(f"stages must name one of {named} at least, e.g. 'stages=[run,analyse]'.")
    if not config.results_dir:
        raise ConfigError("results_dir must be a folder. Got nothing.")
    if not min(config.scaling.seconds, config.scaling.peer_seconds) > 0:
        raise ConfigError(
            "scaling.seconds and scaling.peer_seconds must be above 0. "
            f"Got {config.scaling.seconds:g} and {config.scaling.peer_seconds:g}."
        )
    if config.replay.replicate < 0:
        raise ConfigError(f"replay.replicate must be 0 at least. Got {config.replay.replicate}.")
    if not config.scorers:
        raise ConfigError("scorers must name one score at least, e.g. 'scorers=[bic,rnml]'.")
    return study


def _refuse_impossible(study: Study) -> None:
    design, search = study.design, study.search
    uniform, exhaustive = design.dags == "uniform", search.kind == "exhaustive"
    for m in design.m:
        if m < 2:
            raise ConfigError(f"design.m must be 2 at least. Got {m}.")
        if m > LARGEST:
            raise ConfigError(f"design.m must be {LARGEST} at most: the best network of more needs too much. Got {m}.")
        if m > MOST and (exhaustive or uniform):
            what = "search=exhaustive goes" if exhaustive else "design.dags=uniform draws"
            raise ConfigError(
                f"{what} through all DAGs, which is possible up to m = {MOST}. Got design.m = {m}, which has "
                f"{count_dags(m):,} DAGs: use {'search=dp' if exhaustive else 'design.dags=kalisch'}."
            )
        for nn in () if uniform else design.nn:
            if not 0 < design.density * nn <= m - 1:
                raise ConfigError(
                    f"design.density · design.nn must be above 0 and at most m − 1 = {m - 1}: a node has no more "
                    f"neighbours. Got {design.density:g} · {nn}."
                )
        for n in design.n:
            if n <= m and (exhaustive or search.max_parents != "oracle"):
                raise ConfigError(f"design.n must be more than m = {m}, or families cannot be fitted. Got {n}.")
    if min(design.n) < 3:
        raise ConfigError(f"design.n must be 3 at least. Got {min(design.n)}.")
    if design.replicates < 1:
        raise ConfigError(f"design.replicates must be 1 at least. Got {design.replicates}.")
    if not 0 < design.low <= design.high < 1e100:
        raise ConfigError(
            f"design.low and design.high must be 0 < low ≤ high < 1e100. Got {design.low:g} and {design.high:g}."
        )
    cap = search.max_parents
    if exhaustive and cap != "none":
        raise ConfigError(f"search=exhaustive goes through all DAGs: search.max_parents must be none. Got {cap!r}.")
    if cap not in ("oracle", "none") and not (type(cap) is int and cap >= 0):
        raise ConfigError(f"search.max_parents must be oracle, none or a number from 0 on. Got {cap!r}.")
    if not 0 <= search.tolerance < 1:
        raise ConfigError(f"search.tolerance must be from 0 to 1. Got {search.tolerance:g}.")
    if study.seed < 0:
        raise ConfigError(f"seed must be 0 at least. Got {study.seed}.")


def _grid(name: str, value: object) -> tuple[int, ...]:
    """One whole number or a list of different ones."""
    values: list[Any] = list(value) if isinstance(value, ListConfig) else [value]
    if not values or not all(type(each) is int for each in values) or len(set(values)) < len(values):
        raise ConfigError(
            f"design.{name} must be a whole number or a list of different ones, e.g. design.{name}=[8,10]. Got {value}."
        )
    return tuple(int(each) for each in values)


def _plain(value: object) -> Any:
    return value.name if isinstance(value, Enum) else value
