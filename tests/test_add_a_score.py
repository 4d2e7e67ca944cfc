"""README's recipe for a new score, done word for word in a folder of a stranger's own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("## Add a score") :].partition("\n## ")[0]
CODE, YAML = (re.findall(rf"```{kind}\n(.*?)```", SECTION, re.DOTALL)[0] for kind in ("python", "yaml"))
SMALL = ["design.replicates=4", "design.nn=2", "design.n=[50,500]", "stages=[run]"]


def do(folder: Path, *words: str, code: int = 0) -> str:
    """A command of README, in that folder; words with a blank in README are quoted there."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-m", "benchmark", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "DIR" / "scorers").mkdir(parents=True)
    (tmp_path / "DIR" / "scorers" / "ric.yaml").write_text(YAML)
    return tmp_path


@pytest.mark.parametrize("parallel", ["loky", "dask"])
def test_a_new_score_is_compared_on_the_same_data(folder: Path, parallel: str) -> None:
    if parallel == "dask":
        pytest.importorskip("distributed", reason="needs the extra `cluster`")
    recipe = re.findall(r"`python -m benchmark (\+experiment=shd_m10 '[^`]*)`", SECTION)
    assert recipe == ["+experiment=shd_m10 'scorers=[bic,rnml,ric]'"]
    experiment, scorers = (word.strip("'") for word in recipe[0].split(" "))
    do(folder, "+experiment=shd_m10", "scorers=[bic,rnml]", *SMALL)
    before = (folder / "results" / "shd_m10" / "records.parquet").read_bytes()
    old = pq.read_table(folder / "results" / "shd_m10" / "records.parquet")
    kept = {file: file.stat().st_mtime_ns for file in (folder / "results" / ".store").rglob("*.json")}
    said = do(folder, "--config-dir", "DIR", experiment, scorers, *SMALL, f"parallel={parallel}", "parallel.n_jobs=2")
    assert "8 trials × 3 scores, 8 computed now" in said
    new = pq.read_table(folder / "results" / "shd_m10" / "records.parquet")
    assert set(new["scorer"].to_pylist()) == {"bic", "rnml", "ric"}
    assert new.filter(pq.filters_to_expression([("scorer", "!=", "ric")])).equals(old)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept  # nothing was computed or written again
    do(folder, "+experiment=shd_m10", "scorers=[bic,rnml]", *SMALL)  # the old ones alone: the same bytes
    assert (folder / "results" / "shd_m10" / "records.parquet").read_bytes() == before


def test_its_certificate(folder: Path) -> None:
    said = do(folder, "--config-dir", "DIR", "stages=[certify]", "scorers=[ric]")
    assert "score-equivalent   yes" in said
    assert "× the time of BIC" in said


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("-f.n / 2 * f.ln_tau - f.k", "lower is better: if higher is better in yours, return its negative"),
        ("f.ln_tau.sum()", "must return real numbers of shape"),
        ("f.ln_tau * float('nan')", "A score must be finite for every family"),
        ("f.no_such_thing", "has no attribute 'no_such_thing'"),
    ],
)
def test_a_wrong_score_is_told_what_is_wrong(folder: Path, body: str, message: str) -> None:
    wrong = re.sub(r"return .*", f"return {body}", CODE)
    (folder / "mine.py").write_text(wrong)
    said = do(folder, "--config-dir", "DIR", "+experiment=smoke", "scorers=[bic,ric]", "stages=[run]", code=1)
    assert message in " ".join(said.split())
    assert "Traceback" not in said
