"""Mishaps, each of which really happens here: nothing finished is lost, and no number changes."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from benchmark.records import Pieces
from tests.mishaps import (
    AWKWARD,
    LONG,
    SLOW,
    command,
    do,
    loky_workers,
    pieces,
    records,
    rows_of,
    started,
    trials_of,
    until,
)
from tests.soak import soak

STOPPED = "\nStopped. What was finished is kept: the same command goes on from here.\n"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a run to which nothing happened."""
    folder = tmp_path_factory.mktemp("undisturbed")
    do(*SLOW, "+scorers.slow.seconds=0", f"results_dir={folder}", "parallel=serial")
    return folder


def test_a_worker_is_killed(tmp_path: Path, undisturbed: Path) -> None:
    with started(tmp_path / "log", command(*SLOW, f"results_dir={tmp_path}", "parallel.n_jobs=2")) as process:
        for finished in (2, 10):  # twice
            until(lambda: len(pieces(tmp_path)) >= finished, process)  # noqa: B023 (called at once)
            loky_workers(process)[0].kill()
        before = pieces(tmp_path)
        assert process.wait() == 0
    assert len(before) < len(pieces(tmp_path))
    assert records(tmp_path) == records(undisturbed)


def test_random_kills(tmp_path: Path) -> None:
    """`python -m tests.soak`, shortened: what was finished is not computed again."""
    soak(tmp_path, 4, Random(1))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_leaves_no_process_behind(tmp_path: Path, how: signal.Signals) -> None:
    with started(tmp_path / "log", command(*SLOW, f"results_dir={tmp_path}")) as process:
        until(lambda: pieces(tmp_path), process)
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 3  # the server that forks, and two workers at least
        process.send_signal(how)
        process.wait()
        until(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
    assert not list(Path("/dev/shm").glob(f"joblib_memmapping_folder_{process.pid}_*"))
    said = (tmp_path / "log").read_text()
    assert said == ("" if how == signal.SIGKILL else STOPPED)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_stopped_analysis_leaves_no_process_behind(tmp_path: Path, undisturbed: Path, how: signal.Signals) -> None:
    shutil.copytree(undisturbed / "smoke", tmp_path / "smoke")
    analysis = command("+experiment=smoke", "stages=[analyse]", f"results_dir={tmp_path}")
    with started(tmp_path / "log", analysis) as process:
        until(lambda: loky_workers(process), process)  # the process that draws
        children = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, how)
        process.wait()
        until(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
    assert (tmp_path / "log").read_text() == ("" if how == signal.SIGKILL else STOPPED)
    assert not (tmp_path / "smoke" / "report.html").exists()


def test_the_process_that_draws_is_killed(tmp_path: Path, undisturbed: Path) -> None:
    shutil.copytree(undisturbed / "smoke", tmp_path / "smoke")
    analysis = command("+experiment=smoke", "stages=[analyse]", f"results_dir={tmp_path}")
    with started(tmp_path / "log", analysis) as process:
        until(lambda: loky_workers(process), process)
        loky_workers(process)[0].kill()
        assert process.wait() == 1
    assert (tmp_path / "log").read_text().startswith("draw_figures did not return: its process ended: the system was")
    do("+experiment=smoke", "stages=[analyse]", f"results_dir={tmp_path}")
    assert (tmp_path / "smoke" / "report.html").exists()


@pytest.fixture(scope="module")
def unlucky(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of a run in which a score raises an error in a few trials."""
    folder = tmp_path_factory.mktemp("unlucky")
    do(*AWKWARD, "+scorers.awkward.how=raise", f"results_dir={folder}", "parallel=serial", code=1)
    rows = rows_of(folder)
    assert 1 <= sum(row["error"] is not None for row in rows) <= 4
    return rows


@pytest.mark.parametrize(
    ("how", "limit", "reason"),
    [
        ("exit", "null", "WorkerDiedError: each time the process that was at this trial ended"),
        ("hang", "0.2", "TimeoutError: it took longer than parallel.time_limit, 0.2 s"),
        ("hang in compiled code", "0.2", "WorkerDiedError: .* or because compiled code took longer than parallel.time"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_score_that_ends_its_process_or_does_not_end(
    tmp_path: Path, unlucky: list[dict[str, Any]], how: str, limit: str, reason: str, workers: int
) -> None:
    """Its trials fail with the reason; its others, and the other score, are as if nothing had happened."""
    said = do(
        *AWKWARD,
        f"+scorers.awkward.how={how}",
        f"parallel.time_limit={limit}",
        f"parallel.n_jobs={workers}",
        f"results_dir={tmp_path}",
        code=1,
    )
    failed = [row for row in unlucky if row["error"] is not None]
    assert f"awkward failed in {len(failed)} of 80 trials" in said
    for row, expected in zip(rows_of(tmp_path), unlucky, strict=True):
        if expected["error"] is None:
            assert row == expected
        else:
            assert re.match(reason, row["error"])
            assert row | {"error": None} == expected | {"error": None}


def test_power_is_lost_between_write_and_rename(tmp_path: Path, undisturbed: Path) -> None:
    dies = """
from pathlib import Path
import itertools, os
moments = itertools.count()
rename = Path.replace
Path.replace = lambda *names: os.kill(os.getpid(), 9) if next(moments) == 5 else rename(*names)
"""
    quick = [*SLOW, "+scorers.slow.seconds=0", "parallel=serial", f"results_dir={tmp_path}"]
    do(*quick, first=dies, code=-signal.SIGKILL)
    before = pieces(tmp_path)
    assert len(before) == 5
    (half,) = (tmp_path / ".store").rglob("*.tmp")
    assert half.stat().st_size > 0
    said = do(*quick)
    assert 80 - trials_of(before) / 2 <= computed(said) < 80
    assert before.items() <= pieces(tmp_path).items()
    assert records(tmp_path) == records(undisturbed)


def test_no_part_of_a_file_is_taken_for_the_whole(tmp_path: Path) -> None:
    """A file system that renames before it writes leaves any of these when the power goes."""
    place = Pieces(tmp_path / "key")
    place.save({"replicate": [3, 4], "shd": [1, 2]})
    (file,) = place.folder.iterdir()
    whole = file.read_bytes()
    assert set(place.load()) == {3, 4}
    for kept in range(len(whole)):
        for rest in (b"", bytes(len(whole) - kept)):  # cut, or filled up with zeros
            file.write_bytes(whole[:kept] + rest)
            assert place.load() == {}
            next(place.folder.glob("*.damaged*")).unlink()


def test_the_disk_is_full(tmp_path: Path, undisturbed: Path) -> None:
    """A real one, of 64 kB; then it is made larger, and the same command goes on."""
    quick = command(*SLOW, "+scorers.slow.seconds=0", "parallel.n_jobs=2", f"results_dir={tmp_path / 'disk'}")
    said = on_a_disk(
        tmp_path / "disk",
        'mount -t tmpfs -o size=64k disk "$DISK"',
        '"$@" || echo "code $?"',
        'cp -r "$DISK" "$DISK.full"',
        'mount -o remount,size=16m "$DISK"',
        '"$@"',
        'cp -r "$DISK" "$DISK.larger"',
        command=quick,
    )
    message, _, after = said.partition("code 1\n")
    assert "No space left on device: '" in message
    assert "the same command goes on when this is mended" in message
    assert "Traceback" not in message
    before = pieces(tmp_path / "disk.full")
    assert before
    assert not list(tmp_path.rglob("*.tmp"))
    assert 80 - trials_of(before) <= computed(after) < 80
    kept, larger = (
        {file.name: content for file, content in pieces(tmp_path / name).items()}
        for name in ("disk.full", "disk.larger")
    )
    assert kept.items() <= larger.items()
    assert records(tmp_path / "disk.larger") == records(undisturbed)


def test_the_disk_is_read_only(tmp_path: Path, undisturbed: Path) -> None:
    """What is there is kept; nothing else can be done but say so."""
    quick = command(*SLOW, "+scorers.slow.seconds=0", "parallel.n_jobs=2", f"results_dir={tmp_path / 'disk'}")
    said = on_a_disk(
        tmp_path / "disk",
        'mount -t tmpfs -o ro disk "$DISK"',
        '"$@" || echo "code $?"',
        'mount -o remount,rw "$DISK"',
        '"$@"',
        'cp -r "$DISK" "$DISK.writable"',
        command=quick,
    )
    message, _, after = said.partition("code 1\n")
    assert "Read-only file system: '" in message
    assert "Traceback" not in message
    assert computed(after) == 80
    assert records(tmp_path / "disk.writable") == records(undisturbed)


def test_a_folder_with_a_difficult_name(tmp_path: Path, undisturbed: Path) -> None:
    folder = tmp_path / "für spätere Läufe, № 1 'quoted' 结果"
    do(*SLOW, "+scorers.slow.seconds=0", "parallel.n_jobs=2", f'results_dir="{folder}"')
    assert records(folder) == records(undisturbed)
    assert [file.name for file in tmp_path.iterdir()] == [folder.name]


def on_a_disk(folder: Path, *script: str, command: list[str]) -> str:
    """What a shell script says that mounts a disk of its own, which nobody else sees; $@ is the command."""
    folder.mkdir()
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "disk", folder], check=False).returncode:
        pytest.skip("no disk can be mounted here (unshare -rm mount)")
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-ec", "\n".join(script), "sh", *command],
        env=os.environ | {"DISK": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def computed(said: str) -> int:
    (number,) = re.findall(r"([\d,]+) computed now", said)
    return int(number.replace(",", ""))
