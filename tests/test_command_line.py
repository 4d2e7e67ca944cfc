"""The command line as a user meets it: whole runs in processes of their own, stopped, killed and continued."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.mishaps import command as in_small_batches

SMALL = ["+experiment=smoke", "design.m=7", "design.n=[40,80]", "design.replicates=6", "parallel.n_jobs=2"]


def command(*overrides: str) -> list[str]:
    return [sys.executable, "-m", "benchmark", *overrides]


def do(*overrides: str, code: int = 0) -> str:
    done = subprocess.run(command(*overrides), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_whole_way(tmp_path: Path) -> None:
    said = do(*SMALL, f"results_dir={tmp_path}")
    folder = tmp_path / "smoke"
    records = pq.read_table(folder / "records.parquet")
    assert records.num_rows == 2 * 6 * 4
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["seed"] == 1
    assert manifest["config"]["design"]["n"] == [40, 80]
    assert manifest["rows"] == 48
    assert {"revision", "versions", "machine", "wall_seconds", "command", "records_sha256"} <= set(manifest)
    assert "12 trials × 4 scores, 12 computed now" in said
    assert str(folder / "records.parquet") in said
    assert "mean SHD" in said
    for where in ("tables/claims.csv", "tables/claims.json", "figures/shd_m7.svg", "figures/errors.png", "report.html"):
        assert (folder / where).stat().st_size > 1000
    assert str(folder / "report.html") in said
    assert len(list((tmp_path / ".store" / "certificates").glob("*.json"))) == 4
    assert "0 computed now" in do(*SMALL, f"results_dir={tmp_path}", "stages=[run]")


def test_help_is_quick_and_lists_what_there_is() -> None:
    said = do("--help")
    for word in ("shd_m10", "paper", "smoke", "design.replicates", "results_dir", "rnml_centred"):
        assert word in said


def test_unknown_names_are_answered_with_those_that_exist() -> None:
    said = do("+experiment=smoke", "scorers=[bic,best]", code=1)
    for words in ("scorers/best", "rnml_stirling", "shd_m10", "replicates, dags (uniform|kalisch)"):
        assert words in said
    assert "plain name of a folder" in do("+experiment=smoke", "name=../../x", code=1)
    said = do("+experiment=smoke", "+scorers.mine._target_=no.such.Score", code=1)
    assert "scorers.mine cannot be made" in said
    assert "Traceback" not in said


def test_runs_at_once_all_finish_and_lose_nothing(tmp_path: Path) -> None:
    """Three in one folder: two that do the same, and one with another seed, whose results are kept beside."""
    study = ["+experiment=smoke", f"results_dir={tmp_path}", "stages=[run]", "parallel=serial"]
    seeds = (1, 1, 2)
    runs = [subprocess.Popen(command(*study, f"seed={seed}"), stdout=subprocess.DEVNULL) for seed in seeds]
    assert [process.wait(timeout=120) for process in runs] == [0, 0, 0]
    manifests = [json.loads(file.read_text()) for file in tmp_path.glob("smoke*/manifest.json")]
    assert {manifest["seed"] for manifest in manifests} == {1, 2}
    checksums = {(manifest["seed"], manifest["records_sha256"]) for manifest in manifests}
    assert len(checksums) == 2
    assert "0 computed now" in do(*study, "seed=1")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = do(*SMALL, f"results_dir={tmp_path / 'file'}", code=1)
    assert "the same command goes on when this is mended" in said
    assert "Traceback" not in said


def test_killed_at_five_moments_and_continued(tmp_path: Path) -> None:
    study = ["+experiment=smoke", "design.m=10", "design.nn=[2,3]", "design.replicates=150", "stages=[run]"]
    do(*study, f"results_dir={tmp_path / 'undisturbed'}", "parallel=serial")
    everything = 2 * 150 * 4
    moments, finished = random.Random(0), 0
    for _ in range(5):
        arguments = in_small_batches(*study, f"results_dir={tmp_path / 'killed'}")
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        wanted = finished + moments.randint(1, 20)
        while finished < wanted:  # pieces, however fast the machine is
            assert process.poll() is None
            time.sleep(moments.uniform(0, 0.02))
            finished = len(list((tmp_path / "killed").rglob("*.json")))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert 5 <= finished < everything // 2  # a batch is a trial or two
    do(*study, f"results_dir={tmp_path / 'killed'}")
    files = [(tmp_path / name / "smoke" / "records.parquet").read_bytes() for name in ("undisturbed", "killed")]
    assert files[0] == files[1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_the_user(tmp_path: Path, how: signal.Signals) -> None:
    study = ["+experiment=shd_m15", "stages=[run]", "design.replicates=300", f"results_dir={tmp_path}"]
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(command(*study), stderr=said)
    deadline = time.time() + 60
    while not list(tmp_path.rglob("*.json")):  # until something is finished
        assert time.time() < deadline
        time.sleep(0.05)
    process.send_signal(how)
    assert process.wait(timeout=20) == 130
    assert "the same command goes on from here" in (tmp_path / "said").read_text()
    assert list(tmp_path.rglob("*.json"))
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_failing_score_fails_the_command(tmp_path: Path) -> None:
    awkward = ["+scorers.awkward._target_=tests.test_runner.Awkward", "+scorers.awkward.how=raise"]
    said = do(*SMALL, *awkward, "design.replicates=20", f"results_dir={tmp_path}", code=1)
    assert "awkward failed in" in said
    assert "no luck today" in said
    records = pq.read_table(tmp_path / "smoke" / "records.parquet").to_pylist()
    assert sum(row["error"] is not None for row in records) > 0
    assert all(row["error"] is None for row in records if row["scorer"] != "awkward")


def test_a_sweep(tmp_path: Path) -> None:
    few = ["design.replicates=2", "stages=[run]", f"results_dir={tmp_path}"]
    said = do("-m", "+experiment=smoke", "design.m=5,6", "seed=1,2", *few)
    assert said.count("4 computed now") == 4
    folders = sorted(file.parent.name for file in tmp_path.rglob("records.parquet"))
    assert folders == [f"smoke,design.m={m},design.replicates=2,seed={seed}" for m in (5, 6) for seed in (1, 2)]


def test_an_experiment_of_parts(tmp_path: Path) -> None:
    """Overrides reach the parts, and the manifest says what they were."""
    do("+experiment=paper", "design.replicates=1", f"results_dir={tmp_path}", "stages=[run]")
    manifest = json.loads((tmp_path / "paper" / "manifest.json").read_text())
    assert manifest["rows"] == (27 + 16) * 4
    assert [study["search"]["kind"] for study in manifest["studies"]] == ["exhaustive"] * 2 + ["dp"] * 3
    own = tmp_path / "conf" / "experiment"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("# @package _global_\nname: mine\nseed: 7\nparts: [shd_m8, rank_m4]\n")
    said = do("--config-dir", str(tmp_path / "conf"), "+experiment=mine", f"results_dir={tmp_path}", code=1)
    assert "must give only name and parts" in said


def test_arms_are_told_apart(tmp_path: Path) -> None:
    """Each arm has its settings and its scores; the same settings share what is computed."""
    own = tmp_path / "conf" / "experiment"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text(
        "# @package _global_\nname: mine\ndesign: {m: 5, nn: 2, n: 50, replicates: 3}\n"
        "arms: {raw: [], again: [], standard: [design.preprocessing=standardised, 'scorers=[bic]']}\n"
    )
    said = do("--config-dir", str(tmp_path / "conf"), "+experiment=mine", f"results_dir={tmp_path}", "stages=[run]")
    assert "9 trials × 4 scores" in said
    records = pq.read_table(tmp_path / "mine" / "records.parquet").to_pylist()
    assert [(row["arm"], row["scorer"]) for row in records if row["replicate"] == 0] == [
        *((arm, name) for arm in ("raw", "again") for name in ("aic", "bic", "mdl", "rnml")),
        ("standard", "bic"),
    ]
    raw, again = ([row for row in records if row["arm"] == arm] for arm in ("raw", "again"))
    assert [row | {"arm": None} for row in raw] == [row | {"arm": None} for row in again]


@pytest.mark.parametrize("experiment", ["shd_m10", "rank_m4"])
def test_one_trial_again(tmp_path: Path, experiment: str) -> None:
    where = ["replay.nn=4", "replay.n=50"] if experiment == "shd_m10" else ["replay.n=50"]
    said = do(f"+experiment={experiment}", "stages=[replay]", *where, "replay.replicate=7", f"results_dir={tmp_path}")
    assert "n = 50, replicate 7" in said
    drawn = list(tmp_path.rglob("replay_*_n50_r7.png"))
    assert len(drawn) == 1
    assert drawn[0].stat().st_size > 10_000


def test_no_such_trial(tmp_path: Path) -> None:
    said = do("+experiment=shd_m10", "stages=[replay]", "replay.nn=5", f"results_dir={tmp_path}", code=1)
    assert "The cells are m=10 nn=2 n=50" in said
    assert "no records at" in do("+experiment=shd_m10", "stages=[analyse]", f"results_dir={tmp_path}", code=1)
    (tmp_path / "shd_m10").mkdir()
    (tmp_path / "shd_m10" / "records.parquet").write_bytes(b"not Parquet at all")
    said = do("+experiment=shd_m10", "stages=[analyse]", f"results_dir={tmp_path}", code=1)
    assert "is not a Parquet file: run with stages=[run,analyse]" in said
    assert "Traceback" not in said
