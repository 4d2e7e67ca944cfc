"""The scaling experiment on tiny grids: the same optimum by all, time limits, what is refused, table and figure."""

import json
import stat
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark import peers, scaling
from benchmark.design import Design, Search, Study
from benchmark.peers import Searched
from benchmark.scaling import scale, write_scaling
from scorers import BIC, network_score
from scorers.base import Array
from search import learn
from tests.test_command_line import do

STUDY = Study(3, Design(m=(4, 5, 6), nn=(2,), n=(60,), replicates=1), Search("dp", max_parents="none"))


def exact(data: Array, limit: float) -> Searched:
    return Searched(0.001, runs=1, peak_gb=0.1, adjacency=learn(data, BIC()).adjacency)


def test_the_command(tmp_path: Path) -> None:
    said = do("+experiment=scaling", "design.m=[4,5,6]", "design.nn=2", f"results_dir={tmp_path}", "scaling.seconds=60")
    folder = tmp_path / "scaling"
    table = pd.read_csv(folder / "scaling.csv")
    ours = table[table["search"] == "gaussbench, 1 thread"]
    assert list(ours["m"]) == [4, 5, 6]
    assert (ours["seconds"] > 0).all()
    assert (ours["first_seconds"] > 0).all()
    assert (ours["runs"] >= 3).all()
    assert (ours["peak_gb"] > 0.01).all()
    assert (table["off"] < 1e-6).all()
    assert ("causal-learn" in set(table["search"])) != ("causal-learn is not installed" in said)
    assert ("pcalg::simy" in set(table["search"])) != ("pcalg::simy needs Rscript" in said)
    for name in ("scaling.md", "scaling.tex", "figures/scaling.png", "figures/scaling.svg"):
        assert (folder / name).stat().st_size > 300
    assert json.loads((folder / "manifest.json").read_text())["config"]["scaling"]["seconds"] == 60


@pytest.mark.parametrize("override", ["scorers=[bic,aic]", "design.nn=[2,3]", "design.n=[50,60]"])
def test_only_searches_for_the_same_are_compared(tmp_path: Path, override: str) -> None:
    said = do("+experiment=scaling", "design.m=6", "design.nn=2", override, f"results_dir={tmp_path}", code=1)
    assert "it needs scorers=[bic]" in said


def test_another_optimum_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(data: Array, limit: float) -> Searched:
        return Searched(0.001, runs=1, adjacency=np.zeros((data.shape[1],) * 2, dtype=np.int64))

    monkeypatch.setattr(scaling, "searches", lambda: {"ours": exact})
    said: list[str] = []
    monkeypatch.setattr(scaling, "peers", lambda: ({"other": exact}, []))
    assert write_scaling(tmp_path, scale(STUDY, 10, 1, said.append))
    monkeypatch.setattr(scaling, "peers", lambda: ({"other": wrong}, []))
    frame = scale(STUDY, 10, 1, said.append)
    assert not write_scaling(tmp_path, frame)
    assert "NOT THE SAME OPTIMUM" in said[-1]
    assert frame["off"].max() > 1e-6


def test_time_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def slow(data: Array, limit: float) -> Searched:
        return exact(data, limit) if data.shape[1] < 5 else peers._stopped(limit)

    monkeypatch.setattr(scaling, "searches", lambda: {"ours": exact})
    monkeypatch.setattr(scaling, "peers", lambda: ({"slow": slow, "other": exact}, ["a third is missing"]))
    said: list[str] = []
    frame = scale(STUDY, 10, 0.5, said.append)
    assert said[0] == "a third is missing"
    assert list(frame.loc["slow"].index) == [4, 5]  # after a stop, no more nodes are tried
    assert frame.loc[("slow", 5), "stopped"] == 0.5
    assert "time limit, 0.5 s" in str(frame.loc[("slow", 5), "note"])
    assert list(frame.loc["other"].index) == [4, 5, 6]
    assert write_scaling(tmp_path, frame)

    def takes_its_time(data: Array, limit: float) -> Searched:
        time.sleep(0.2)
        return exact(data, limit)

    monkeypatch.setattr(scaling, "peers", lambda: ({"other": takes_its_time}, []))
    frame = scale(STUDY, 0.3, 5, said.append)
    assert len(frame.loc["other"]) < 3
    assert "other: no time left" in said[-1]


def _sleep(data: Array) -> Searched:
    time.sleep(60)
    return Searched()


def _fail(data: Array) -> Searched:
    raise MemoryError("too many nodes")


def _end(data: Array) -> Searched:
    raise SystemExit


def test_a_process_of_its_own() -> None:
    data = np.zeros((3, 2))
    start = time.monotonic()
    assert peers.alone(_sleep, data, 0.5).stopped == 0.5
    assert time.monotonic() - start < 30
    assert peers.alone(_fail, data, 60).note == "MemoryError: too many nodes"
    assert "its process ended" in peers.alone(_end, data, 60).note


def test_simy_is_asked_and_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for Rscript: it reads the data, and answers in the form of the R script, row by row."""
    script = tmp_path / "Rscript"
    script.write_text(
        "#!/bin/sh\n"
        'case "$2" in *requireNamespace*) printf TRUE; exit;; esac\n'
        'test "$(wc -l < "$3")" = 7 || { echo "not the data" >&2; exit 1; }\n'
        'echo "loading"; echo; echo "1.25 150000 0 1 0 0"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    peers.has_simy.cache_clear()
    assert peers.has_simy()
    data = np.random.default_rng(1).normal(size=(7, 2))
    found = peers._simy(data, 10)
    peers.has_simy.cache_clear()
    assert (found.seconds, found.first, found.peak_gb) == (1.25, 1.25, 0.15)
    assert found.adjacency is not None
    assert found.adjacency.tolist() == [[0, 1], [0, 0]]
    assert peers._simy(data[:5], 10).note == "R: not the data"


@pytest.mark.skipif(not peers.has_simy(), reason="pcalg is not installed")
def test_simy_finds_our_optimum() -> None:
    data = np.random.default_rng(2).normal(1, 1, size=(50, 6)) @ np.triu(np.ones((6, 6)))
    found = peers._simy(data, 60)
    assert found.adjacency is not None
    assert network_score(data, found.adjacency, BIC()) == pytest.approx(learn(data, BIC()).score, rel=1e-9)
