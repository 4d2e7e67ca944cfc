"""The command line: `python -m benchmark +experiment=…`. Hydra composes the config; `--help` says what there is."""

import sys
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
  parallel                        loky (all cores) or serial
  parallel.n_jobs                 number of workers
  results_dir                     where results go; results/<experiment>/ by default
  stages                          of run, analyse, replay: 'stages=[run,analyse]' by default
  replay.m, .nn, .n, .replicate   the trial that stages=[replay] shows

Everything else is in conf/, and `--cfg job` prints it. A stopped run goes on where it was when started again.
Several values for a key run one after another with -m: -m design.m=8,10 seed=1,2"""


def help_text() -> str:
    """The help, with the experiments and scores that there are and each experiment's own line."""
    experiments = []
    for file in sorted((CONF / "experiment").glob("*.yaml")):
        lines = file.read_text(encoding="utf-8").splitlines()
        experiments.append(f"  {file.stem:10} {lines[2].removeprefix('# ')}")
    scorers = ", ".join(sorted(file.stem for file in (CONF / "scorers").glob("*.yaml")))
    return HELP.format(experiments="\n".join(experiments), scorers=scorers)


def main() -> None:
    """Show the help at once, or import what is needed and let Hydra compose the config."""
    if {"--help", "-h"} & set(sys.argv[1:]):
        print(help_text())
        return
    import hydra

    import benchmark.config  # noqa: F401 (Hydra finds the schema that it registers)

    failed: list[str] = []

    def job(config: "DictConfig") -> None:
        if not _do(config):
            failed.append(config.name)

    hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(job)()
    sys.exit(1 if failed else 0)


def _do(config: "DictConfig") -> bool:
    """Do what a config asks for; whether nothing failed."""
    from rich.console import Console

    from benchmark.config import ConfigError
    from benchmark.stages import Experiment

    console = Console(soft_wrap=True)
    try:
        return Experiment.of(config).do(console)
    except ConfigError as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit("\nStopped. What was finished is kept: the same command goes on from here.")


if __name__ == "__main__":
    main()
