"""An experiment from its config to its results folder: the stages run, analyse and replay."""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from hydra import compose
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table

from benchmark.config import ConfigError, Stage, study_of
from benchmark.design import Cell, Study
from benchmark.records import keep_other_results, write_records, write_whole
from benchmark.runner import Outcome, Workers, run
from scorers.base import Scorer

PACKAGES = ("numpy", "scipy", "numba", "pandas", "pyarrow", "joblib", "hydra-core")


@dataclass(frozen=True)
class Experiment:
    """A config, made ready: the studies it consists of, its scores, and where its results go."""

    config: DictConfig
    studies: list[Study]
    scorers: Mapping[str, Scorer]
    folder: Path

    @classmethod
    def of(cls, config: DictConfig) -> "Experiment":
        """Check a config and make its studies and scores."""
        name = config.name
        if not name or Path(name).name != name or name.startswith("."):
            raise ConfigError(f"name must be the plain name of a folder. Got {name!r}.")
        folder = Path(config.results_dir) / name
        hydra = HydraConfig.get()
        if hydra.mode == RunMode.MULTIRUN:  # each job of a sweep has a folder of its own
            folder /= hydra.job.override_dirname.replace("/", "_")
        return cls(config, [study_of(part) for part in _parts(config)], _scorers(config), folder)

    def do(self, console: Console) -> bool:
        """Do the stages that are asked for; return whether no trial failed."""
        stages = set(self.config.stages)
        failures = 0
        if Stage.run in stages:
            failures = len(self.run(console).failures)
        if Stage.analyse in stages:
            self.analyse(console)
        if Stage.replay in stages:
            self.replay(console)
        return failures == 0

    def run(self, console: Console) -> Outcome:
        """Compute what is missing; write records and manifest."""
        start = time.time()
        configs = OmegaConf.to_container(self.config.scorers, resolve=True)
        workers = Workers(self.config.parallel.backend.name, self.config.parallel.n_jobs)
        store = Path(self.config.results_dir) / ".store"
        outcome = run(self.studies, configs, self.scorers, store, workers, console)  # type: ignore[arg-type]
        aside = keep_other_results(self.folder, outcome.rows)
        if aside:
            console.print(f"{self.folder} held results of other settings: they are now in {aside}.")
        write_records(outcome.rows, self.records)
        wall = time.time() - start
        write_whole(self.folder / "manifest.json", json.dumps(self._manifest(outcome, wall), indent=2).encode())
        trials = len(outcome.rows) // len(self.scorers)
        console.print(
            f"{trials:,} trials × {len(self.scorers)} scores, {outcome.computed:,} computed now, {wall:.1f} s"
        )
        if outcome.failures:
            console.print(f"{len(outcome.failures):,} rows failed; the first reasons:")
            for reason in sorted({str(row["error"]) for row in outcome.failures})[:3]:
                console.print(f"  {reason}", markup=False)
        return outcome

    def analyse(self, console: Console) -> None:
        """Write the tables, show the means, and say where things are."""
        import pandas as pd

        from benchmark.tables import tables_of, write_table

        if not self.records.exists():
            raise ConfigError(f"There are no records at {self.records} to analyse: run with stages=[run,analyse].")
        settings = OmegaConf.to_container(self.config.analysis, enum_to_str=True)
        for name, table in tables_of(pd.read_parquet(self.records), settings).items():  # type: ignore[arg-type]
            write_table(table.frame, self.folder / "tables" / name)
            if table.short is not None:
                shown = Table(*(str(key) for key in table.short.columns), title=table.title)
                for row in table.short.itertuples(index=False):
                    shown.add_row(*row)
                console.print(shown)
        console.print(f"records:  {self.records}")
        console.print(f"manifest: {self.folder / 'manifest.json'}")
        console.print(f"tables:   {self.folder / 'tables'}")

    def replay(self, console: Console) -> None:
        """Show one trial."""
        from benchmark.replay import replay

        wanted = self.config.replay
        for study in self.studies:
            for cell in study.design.cells():
                if all(wanted[key] in (None, getattr(cell, key)) for key in ("m", "nn", "n")):
                    name = f"replay_m{cell.m}_nn{cell.nn}_n{cell.n}_r{wanted.replicate}.png"
                    replay(study, cell, wanted.replicate, self.scorers, self.folder / name, console)
                    return
        cells = [cell for study in self.studies for cell in study.design.cells()]
        raise ConfigError(f"No cell has the coordinates of replay. The cells are {_listed(cells)}.")

    @property
    def records(self) -> Path:
        """The file of all rows."""
        return self.folder / "records.parquet"

    def _manifest(self, outcome: Outcome, wall: float) -> dict[str, Any]:
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
            "cells": sum(len(study.design.cells()) for study in self.studies),
            "rows": len(outcome.rows),
            "failures": len(outcome.failures),
            "computed_trials": outcome.computed,
            "wall_seconds": round(wall, 3),
            "records_sha256": sha256(self.records.read_bytes()).hexdigest(),
            "revision": commit.stdout.strip() or "unknown",
            "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
            "machine": {
                "system": platform.platform(),
                "cores": psutil.cpu_count(),
                "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
            },
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }


def _parts(config: DictConfig) -> list[DictConfig]:
    """The config itself, or those of the experiments that it consists of, with the same overrides."""
    if not config.parts:
        return [config]
    overrides = [o for o in HydraConfig.get().overrides.task if not o.lstrip("+").startswith("experiment=")]
    return [compose("config", overrides=[f"+experiment={part}", *overrides]) for part in config.parts]


def _scorers(config: DictConfig) -> dict[str, Scorer]:
    scorers = {}
    for name, each in config.scorers.items():
        if not isinstance(each, DictConfig) or "_target_" not in each:
            raise ConfigError(f"scorers.{name} must have a _target_, the path of its class. Got {each}.")
        scorer = instantiate(each)
        if not callable(scorer):
            raise ConfigError(f"scorers.{name}: {each._target_} must make a callable. Got {scorer!r}.")
        scorers[str(name)] = scorer
    return scorers


def _listed(cells: list[Cell]) -> str:
    return "; ".join(f"m={cell.m} nn={cell.nn} n={cell.n}" for cell in cells)
