"""Every experiment composes; what cannot be run is refused in a sentence that says what can."""

import re
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import ConfigCompositionException, HydraException
from hydra.utils import instantiate
from omegaconf.errors import OmegaConfBaseException

import benchmark.config
from benchmark.__main__ import CONF, help_text
from benchmark.baselines import Baseline
from benchmark.config import ConfigError, study_of
from benchmark.design import Cell, Study
from scorers import RNMLPrintedC

EXPERIMENTS = sorted(file.stem for file in (CONF / "experiment").glob("*.yaml"))


def study(*overrides: str) -> Study:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return study_of(compose("config", overrides=list(overrides)))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_composes_and_says_how_it_is_run(name: str) -> None:
    study(f"+experiment={name}")
    lines = (CONF / "experiment" / f"{name}.yaml").read_text().splitlines()
    assert lines[0] == "# @package _global_"
    assert lines[1] == f"# python -m benchmark +experiment={name}"
    assert f"  {name} " in help_text()
    assert lines[2].removeprefix("# ") in help_text()


@pytest.mark.parametrize("file", sorted((CONF / "scorers").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_score_can_be_made(file: Path) -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=[f"scorers=[{file.stem}]"])
    assert list(config.scorers) == [file.stem]
    made = instantiate(config.scorers[file.stem])
    assert callable(made) or isinstance(made, Baseline)
    assert file.stem in help_text()


def test_the_studies_are_those_of_the_paper() -> None:
    for m in (8, 10, 15):
        found = study(f"+experiment=shd_m{m}")
        assert found.design.cells() == [Cell(m, nn, n) for nn in (2, 4, 6) for n in (50, 500, 1000)]
        assert found.design.replicates == 100
        assert (found.search.kind, found.search.max_parents) == ("dp", "oracle")
    for m in (4, 5):
        found = study(f"+experiment=rank_m{m}")
        assert [cell.n for cell in found.design.cells()] == [20, 50, 100, 200, 500, 1000, 2000, 5000]
        assert {(cell.m, cell.nn) for cell in found.design.cells()} == {(m, None)}
        assert (found.design.replicates, found.design.dags, found.search.kind) == (500, "uniform", "exhaustive")


def test_the_defaults_are_those_of_the_code() -> None:
    """`conf/design/shd.yaml` shows the open choices; a `Design` made in Python has the same."""
    from benchmark.design import Design, Search

    found = study()
    assert found.design == Design(m=(8, 10, 15), nn=(2, 4, 6), n=(50, 500, 1000), replicates=100)
    assert found.search == Search("dp")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["design.n=0"], "design.n must be 3 at least. Got 0"),
        (["design.n=[50,-1]"], "design.n must be 3 at least. Got -1"),
        (["design.m=8", "design.nn=8"], "at most m − 1 = 7: a node has no more neighbours. Got 1 · 8"),
        (["design.nn=0"], "must be above 0"),
        (["design.density=0"], "must be above 0"),
        (["design.m=1"], "design.m must be 2 at least. Got 1"),
        (
            ["design.m=ten"],
            r"design.m must be a whole number or a list of different ones, e.g. design.m=\[8,10\]. Got ten",
        ),
        (["design.n=[50,50]"], "list of different ones"),
        (["design.n=[]"], "list of different ones"),
        (["design.n=50.5"], "whole number"),
        (
            ["+experiment=rank_m4", "design.m=9"],
            r"up to m = 6. Got design.m = 9, which has 1,213,442,454,842,881 DAGs: use search=dp",
        ),
        (["design.dags=uniform", "design.m=8"], "design.dags=uniform draws .* design.dags=kalisch"),
        (["+experiment=rank_m5", "design.n=5"], "design.n must be more than m = 5"),
        (["search.max_parents=none", "design.m=15", "design.n=15"], "design.n must be more than m = 15"),
        (["search.max_parents=some"], "must be oracle, none or a number from 0 on. Got 'some'"),
        (["search.max_parents=-1"], "must be oracle, none or a number"),
        (["search.tolerance=2"], "from 0 to 1"),
        (["design.replicates=0"], "design.replicates must be 1 at least"),
        (["design.low=0"], "0 < low ≤ high < 1e100. Got 0 and 1"),
        (["design.low=2"], "0 < low ≤ high"),
        (["design.high=inf"], "low ≤ high < 1e100"),
        (["design.m=40", "design.nn=2"], "design.m must be 28 at most"),
        (["+experiment=rank_m4", "search.max_parents=2"], "search.max_parents must be none. Got 2"),
        (["search.max_parents=true"], "must be oracle, none or a number"),
        (["parallel.n_jobs=0"], "parallel.n_jobs must be the number of workers"),
        (["stages=[]"], "stages must name one of run, analyse, replay, certify, scale"),
        (["results_dir="], "results_dir must be a folder"),
        (["replay.replicate=-1"], "replay.replicate must be 0 at least"),
        (["scaling.seconds=0"], "scaling.peer_seconds must be above 0. Got 0 and 120"),
        (["seed=-1"], "seed must be 0 at least"),
        (["scorers=[]"], "one score at least"),
    ],
)
def test_impossible_values(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        study(*overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["design.replicats=3"], "replicats"),
        (["desing.m=3"], "desing"),
        (["design.replicates=many"], "many"),
        (["design.noise=loud"], r"variance, precision, std, unit"),
        (["stages=[dance]"], "run, analyse, replay, certify, scale"),
        (["parallel.n_jobs=two"], "two"),
        (["+experiment=shd_m99"], "(?s)Available options in 'experiment'.*shd_m10"),
    ],
)
def test_misspelt_keys_and_wrong_types(overrides: list[str], message: str) -> None:
    with pytest.raises((HydraException, ConfigCompositionException, OmegaConfBaseException)) as caught:
        study(*overrides)
    reasons: list[str] = []
    cause = caught.value.__cause__
    while cause is not None:
        reasons, cause = [*reasons, str(cause)], cause.__cause__
    assert re.search(message, "\n".join([str(caught.value), *reasons]))


def test_options_of_a_score() -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=["scorers=[rnml_printed_c]", "scorers.rnml_printed_c.keep_k_squared=true"])
    assert instantiate(config.scorers.rnml_printed_c) == RNMLPrintedC(keep_k_squared=True)


def test_what_is_allowed_is_listed() -> None:
    listed = benchmark.config.allowed()
    assert "noise (variance|precision|std|unit)" in listed
    assert "search: kind (exhaustive|dp), max_parents, tolerance" in listed
