"""An experiment from its config to its results folder: the stages run, analyse, replay, certify and scale."""

import json
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from hydra import compose
from hydra.core.hydra_config import HydraConfig
from hydra.errors import InstantiationException
from hydra.types import RunMode
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table

from benchmark.baselines import Baseline, Contestant
from benchmark.config import ConfigError, Stage, study_of
from benchmark.design import Cell, Study
from benchmark.records import alone, keep_other_results, write_records, write_whole
from benchmark.runner import Outcome, run
from benchmark.workers import Workers
from scorers.base import Scorer
from scorers.certify import UPSIDE_DOWN, is_upside_down

if TYPE_CHECKING:
    import pandas as pd

    from benchmark.tables import NamedTable

PACKAGES = ("numpy", "scipy", "numba", "pandas", "pyarrow", "joblib", "hydra-core")
CLAIMS = Path(__file__).resolve().parent.parent / "conf" / "claims" / "paper.yaml"


@dataclass(frozen=True)
class Experiment:
    """A config, made ready: the studies it consists of, its scores, and where its results go."""

    config: DictConfig
    studies: list[Study]
    scorer_configs: Mapping[str, Any]
    scorers: Mapping[str, Contestant]
    folder: Path

    @classmethod
    def of(cls, config: DictConfig) -> "Experiment":
        """Check a config and make its studies and scores."""
        name = config.name
        if not name or Path(name).name != name or name.startswith(".") or not name.isprintable():
            raise ConfigError(f"name must be the plain name of a folder. Got {name!r}.")
        hydra = HydraConfig.get()
        if hydra.mode == RunMode.MULTIRUN:  # each job of a sweep has a folder of its own
            name += "," + hydra.job.override_dirname.replace("/", "_")
        parts = _parts(config)
        studies = list(dict.fromkeys(study_of(part, arm) for arm, part in parts))
        scorers: dict[str, Any] = {}
        for _, part in parts:
            for key, each in part.scorers.items():
                if scorers.setdefault(str(key), each) != each:
                    raise ConfigError(f"scorers.{key} differs between the arms: give it another name in one of them.")
        return cls(config, studies, scorers, _scorers(scorers), Path(config.results_dir) / name)

    def do(self, console: Console) -> bool:
        """Do the stages that are asked for; return whether no trial failed, and no program found another optimum."""
        stages = set(self.config.stages)
        outcome = self.run(console) if Stage.run in stages else None
        if Stage.analyse in stages:
            self.analyse(outcome, console)
        if Stage.replay in stages:
            self.replay(console)
        certified = self.certify(console) if Stage.certify in stages else True
        same = self.scale(console) if Stage.scale in stages else True
        return certified and same and not (outcome and outcome.failures)

    def run(self, console: Console) -> Outcome:
        """Compute what is missing; write records and manifest."""
        start = time.time()
        configs = self._configs()
        parallel = self.config.parallel
        workers = Workers(parallel.backend.name, parallel.n_jobs, parallel.address, parallel.time_limit)
        store = Path(self.config.results_dir) / ".store"
        outcome = run(self.studies, configs, self.scorers, store, workers, console)
        wall = time.time() - start
        with alone(store):
            if aside := keep_other_results(self.folder, outcome.table):
                console.print(f"{self.folder} held results of other settings: they are now in {aside}.")
            before = self.records.read_bytes() if self.records.exists() else None
            write_records(outcome.table, self.records)
            # where nothing has changed, the manifest that is there says how the records were made
            if before != self.records.read_bytes() or not self.manifest.exists():
                write_whole(self.manifest, json.dumps(self._manifest(outcome, wall), indent=2).encode())
        trials = sum(len(study.design.cells()) * study.design.replicates for study in self.studies)
        console.print(
            f"{trials:,} trials × {len(self.scorers)} scores, {outcome.computed:,} computed now, {wall:.1f} s"
        )
        for name in self.scorers:
            failed = [row for row in outcome.failures if row["scorer"] == name]
            if failed:
                console.print(f"{name} failed in {len(failed):,} of {trials:,} trials, first: {failed[0]['error']}")
        return outcome

    def analyse(self, outcome: Outcome | None, console: Console) -> None:
        """Write tables, figures and report, show the means, say where things are; of this run, or of the folder."""
        if outcome is None and not self.records.exists():
            raise ConfigError(f"There are no records at {self.records} to analyse: run with stages=[run,analyse].")
        try:
            records = (outcome.table if outcome else pq.read_table(self.records)).to_pandas()
        except pa.ArrowInvalid as error:
            raise ConfigError(
                f"{self.records} is not a Parquet file: run with stages=[run,analyse]. {error}"
            ) from error
        manifest = json.loads(self.manifest.read_text())
        with console.status("Analysis: tables, figures, report"):
            tables = self._analysis(records, manifest)
        for table in tables.values():
            if table.short is not None:
                shown = Table(*(str(key) for key in table.short.columns), title=table.title)
                for row in table.short.itertuples(index=False):
                    shown.add_row(*row)
                console.print(shown)
        made = shlex.join(manifest["command"])
        for what, where in {
            "records": f"{self.records}, made by {made}",
            "manifest": self.manifest,
            "tables": self.folder / "tables",
            "figures": self.folder / "figures",
            "report": self.folder / "report.html",
        }.items():
            console.print(f"{what + ':':9} {where}", soft_wrap=True)

    def _analysis(self, records: "pd.DataFrame", manifest: dict[str, Any]) -> "dict[str, NamedTable]":
        settings: Any = OmegaConf.to_container(self.config.analysis, enum_to_str=True)
        match settings.pop("kind"):
            case "arms":
                from benchmark.arms import write_arms

                return write_arms(self.folder, records, manifest)
            case "readings":
                from benchmark.readings import write_readings

                return write_readings(self.folder, records, manifest, CLAIMS)
        from benchmark.aside import aside
        from benchmark.certificates import certificate
        from benchmark.report import draw_figures, write_analysis

        configs = self._configs()
        store = Path(self.config.results_dir) / ".store"
        with aside(draw_figures, self.folder, self.records, settings) as drawn:  # takes as long as all the rest
            certificates = {
                name: certificate(store, configs[name], scorer)
                for name, scorer in self.scorers.items()
                if not isinstance(scorer, Baseline)
                and manifest["scorers"].get(name) == configs[name]  # what made the records
            }
            return write_analysis(
                self.folder, records, manifest, settings, CLAIMS, certificates, figures=lambda: drawn(None)
            )

    def certify(self, console: Console) -> bool:
        """Show what each score is, measured; return whether all could be."""
        from benchmark.certificates import certificate, show_certificate

        configs, store = self._configs(), Path(self.config.results_dir) / ".store"
        shown = [
            show_certificate(name, certificate(store, configs[name], scorer), scorer, console)
            for name, scorer in self.scorers.items()
            if not isinstance(scorer, Baseline)
        ]
        return all(shown)

    def replay(self, console: Console) -> None:
        """Show one trial."""
        from benchmark.replay import replay

        wanted = self.config.replay
        for study in self.studies:
            for cell in study.design.cells():
                if all(wanted[key] in (None, getattr(cell, key)) for key in ("m", "nn", "n")):
                    density = "" if cell.nn is None else f"_nn{cell.nn}"
                    name = f"replay_m{cell.m}{density}_n{cell.n}_r{wanted.replicate}.png"
                    replay(study, cell, wanted.replicate, self.scorers, self.folder / name, console)
                    return
        cells = [cell for study in self.studies for cell in study.design.cells()]
        raise ConfigError(f"No cell has the coordinates of replay. The cells are {_listed(cells)}.")

    def scale(self, console: Console) -> bool:
        """Time one exact search against m; write table, figure and manifest. Whether all found the same optimum."""
        from benchmark.scaling import scale, write_scaling

        designs = [study.design for study in self.studies]
        if list(self.scorers) != ["bic"] or len(designs) > 1 or len(designs[0].nn) > 1 or len(designs[0].n) > 1:
            raise ConfigError(
                "stages=[scale] compares searches for the same optimum: it needs scorers=[bic], which all programs "
                "have, and one design.nn and design.n."
            )
        start = time.time()
        frame = scale(self.studies[0], **self.config.scaling, say=lambda line: console.print(line, soft_wrap=True))
        same = write_scaling(self.folder, frame)
        write_whole(self.manifest, json.dumps(self._made(time.time() - start), indent=2).encode())
        if not same:
            console.print("Not all programs found the same optimum: see the notes.")
        console.print(f"table:    {self.folder / 'scaling.md'}", soft_wrap=True)
        console.print(f"figure:   {self.folder / 'figures' / 'scaling.svg'}", soft_wrap=True)
        return same

    @property
    def records(self) -> Path:
        """The file of all rows."""
        return self.folder / "records.parquet"

    @property
    def manifest(self) -> Path:
        """The file that says how the records were made."""
        return self.folder / "manifest.json"

    def _configs(self) -> dict[str, Any]:
        """The scores' configs in plain dictionaries."""
        return {name: OmegaConf.to_container(each, resolve=True) for name, each in self.scorer_configs.items()}

    def _manifest(self, outcome: Outcome, wall: float) -> dict[str, Any]:
        return self._made(wall) | {
            "cells": sum(len(study.design.cells()) for study in self.studies),
            "rows": len(outcome.table),
            "failures": len(outcome.failures),
            "computed_trials": outcome.computed,
            "records_sha256": sha256(self.records.read_bytes()).hexdigest(),
        }

    def _made(self, wall: float) -> dict[str, Any]:
        """How results were made."""
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
        return {
            "experiment": self.config.name,
            "command": ["python", "-m", "benchmark", *sys.argv[1:]],
            "seed": self.config.seed,
            "config": OmegaConf.to_container(self.config, resolve=True, enum_to_str=True),
            "scorers": self._configs(),
            "studies": [asdict(study) for study in self.studies],
            "wall_seconds": round(wall, 3),
            "revision": commit.stdout.strip() or "unknown",
            "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
            "machine": {
                "system": platform.platform(),
                "cores": psutil.cpu_count(),
                "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
            },
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }


def _parts(config: DictConfig) -> list[tuple[str | None, DictConfig]]:
    """The config itself, or those of the experiments or the arms that it consists of, with the same overrides."""
    overrides = list(HydraConfig.get().overrides.task)
    if config.arms:
        if config.parts:
            raise ConfigError(f"{config.name} must have parts or arms. Got both.")
        return [(str(arm), compose("config", overrides=[*overrides, *own])) for arm, own in config.arms.items()]
    if not config.parts:
        return [(None, config)]
    overrides = [each for each in overrides if not each.lstrip("+").startswith("experiment=")]
    plain = compose("config", overrides=overrides)
    if any(config[key] != plain[key] for key in ("design", "search", "scorers", "seed")):
        raise ConfigError(
            f"{config.name} has parts, which have their own design, search, scorers and seed: it must give only name "
            "and parts. Override the others on the command line."
        )
    return [(None, compose("config", overrides=[f"+experiment={part}", *overrides])) for part in config.parts]


def _scorers(configs: Mapping[str, Any]) -> dict[str, Contestant]:
    scorers = {}
    for name, each in configs.items():
        if not isinstance(each, DictConfig) or "_target_" not in each:
            raise ConfigError(
                f"scorers must hold a name with a _target_, the path of its class: a file of two lines, "
                f"'mine:' and '  _target_: my_module.Mine'. Got {name}: {each}."
            )
        try:
            scorer = instantiate(each)
        except InstantiationException as error:
            raise ConfigError(f"scorers.{name} cannot be made: {error}") from error
        if not (callable(scorer) or isinstance(scorer, Baseline)):
            raise ConfigError(f"scorers.{name}: {each._target_} must make a callable. Got {scorer!r}.")
        if not isinstance(scorer, Baseline) and _upside_down(scorer):
            raise ConfigError(f"scorers.{name} {UPSIDE_DOWN}")
        scorers[name] = scorer
    return scorers


def _upside_down(scorer: Scorer) -> bool:
    try:
        return is_upside_down(scorer)
    except Exception:
        return False  # whatever else is wrong with it: its trials, or its certificate, will say


def _listed(cells: list[Cell]) -> str:
    return "; ".join(f"m={cell.m} nn={cell.nn} n={cell.n}" for cell in cells)
