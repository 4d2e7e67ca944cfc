"""The command line: `python -m benchmark +experiment=…`. Hydra composes the config; `--help` says what there is."""

import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegaconf import DictConfig

CONF = Path(__file__).resolve().parent.parent / "conf"

HELP = """\
python -m benchmark +experiment=NAME [KEY=VALUE …]

Experiments:
{experiments}

Keys:
  design.m, design.nn, design.n   grids of nodes, expected neighbours, samples: a number or a list, design.n=[50,500]
  design.replicates               trials a cell
  scorers                         scores to compare, 'scorers=[bic,rnml]', of: {scorers}
  seed                            root of all random numbers
  parallel                        loky (all cores), dask (a cluster) or serial
  parallel.n_jobs                 number of workers
  parallel.time_limit             seconds that one trial under one score may take; no limit by default
  results_dir                     where <experiment>/ goes; results by default
  stages                          of run, analyse, replay, certify, scale: 'stages=[run,analyse]' by default
  replay.m, .nn, .n, .replicate   the trial that stages=[replay] shows
  scaling.seconds, .peer_seconds  the time for stages=[scale], and for one search of another program

Options come first: --config-dir DIR adds experiments and scorers of your own, -m runs several values of a key one after
another, e.g. -m design.m=8,10 seed=1,2. Everything else is in conf/, and `--cfg job` prints it.
A stopped run goes on where it was when started again."""


def help_text() -> str:
    """The help, with the experiments and scores that there are and each experiment's own line."""
    experiments = []
    for file in sorted((CONF / "experiment").glob("*.yaml")):
        lines = file.read_text(encoding="utf-8").splitlines()
        experiments.append(f"  {file.stem:10} {lines[2].removeprefix('# ')}")
    return HELP.format(experiments="\n".join(experiments), scorers=_options("scorers"))


def main() -> None:
    """Show the help at once, or import what is needed and let Hydra compose the config."""
    if {"--help", "-h"} & set(sys.argv[1:]):
        print(help_text())
        return
    from benchmark.workers import start_early

    if not any(argument.startswith(("parallel=", "stages=")) and "run" not in argument for argument in sys.argv[1:]):
        start_early()  # the workers, while the config is being read
    import hydra

    from benchmark.config import allowed  # Hydra finds the schema that this module registers

    jobs: list[bool] = []
    started: list[str] = []

    def job(config: "DictConfig") -> None:
        started.append(config.name)
        jobs.append(_do(config))

    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(job)()
    except SystemExit as stop:
        if stop.code == 1 and not started:  # Hydra has said what it could not compose
            print(
                f"\nexperiments: {_options('experiment')}\nscorers: {_options('scorers')}\n{allowed()}", file=sys.stderr
            )
        raise
    sys.exit(0 if all(jobs) else 1)


def _options(group: str) -> str:
    """The names in a config group, ours and those of the caller's --config-dir."""
    folders = [CONF]
    for i, argument in enumerate(sys.argv):
        if argument in ("--config-dir", "-cd"):
            folders += [Path(name) for name in sys.argv[i + 1 : i + 2]]
        elif argument.startswith("--config-dir="):
            folders.append(Path(argument.partition("=")[2]))
    return ", ".join(sorted(file.stem for folder in folders for file in (folder / group).glob("*.yaml")))


def _do(config: "DictConfig") -> bool:
    """Do what a config asks for; whether nothing failed."""
    from rich.console import Console

    from benchmark.config import ConfigError
    from benchmark.stages import Experiment
    from benchmark.workers import ClusterError

    gc.freeze()  # what is imported stays: going through it for garbage takes as long as some trials
    console = Console(markup=False, highlight=False)
    try:
        return Experiment.of(config).do(console)
    except ConfigError as error:
        sys.exit(f"{error}")
    except (OSError, ClusterError) as error:
        sys.exit(f"{error}. What was finished before is kept: the same command goes on when this is mended.")


def whole() -> None:
    """The program: `main`, which SIGINT and SIGTERM stop with a message, without leaving a process behind."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        main()
    except KeyboardInterrupt:
        print("\nStopped. What was finished is kept: the same command goes on from here.", file=sys.stderr, flush=True)
        import psutil

        for child in psutil.Process().children(recursive=True):  # workers, which may be starting only now
            with suppress(psutil.NoSuchProcess):
                # those that tidy up end by themselves; the name alone is also in an option of all the others
                if not any("resource_tracker import" in word for word in child.cmdline()):
                    child.kill()
        os._exit(130)  # without waiting for the threads that served them


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    whole()
