"""A real dask cluster on loopback, scheduler and workers in processes of their own, and what may happen to them."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.mishaps import (
    AWKWARD,
    LONG,
    SLOW,
    STUDY,
    command,
    do,
    pieces,
    records,
    rows_of,
    started,
    trials_of,
    until,
)

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")


@dataclass(frozen=True)
class Cluster:
    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    def keys(self, folder: Path) -> list[str]:
        return ["parallel=dask", f"parallel.address={self.address}", f"results_dir={folder}"]


@contextmanager
def cluster(folder: Path, workers: int = 2, nanny: str = "--no-nanny", blamed_at: int = 4) -> Iterator[Cluster]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    dask = [sys.executable, "-m", "dask"]
    of_worker = ["--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard", nanny, "--local-directory", str(folder)]
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            started(
                folder / "scheduler.log",
                [*dask, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
                DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=str(blamed_at - 1),
            )
        )
        logs = [folder / f"worker{i}.log" for i in range(workers)]
        processes = [stack.enter_context(started(log, [*dask, "worker", address, *of_worker])) for log in logs]
        for log, process in zip(logs, processes, strict=True):
            until(lambda: "Registered to" in log.read_text(), process)  # noqa: B023 (called at once)
        yield Cluster(address, scheduler, processes)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    do(*SLOW, "+scorers.slow.seconds=0", f"results_dir={folder}", "parallel=serial")
    return folder


def test_a_worker_is_killed(tmp_path: Path, undisturbed: Path) -> None:
    with cluster(tmp_path) as dask, started(tmp_path / "log", command(*SLOW, *dask.keys(tmp_path / "run"))) as process:
        until(lambda: len(pieces(tmp_path / "run")) > 3, process)
        dask.workers[0].kill()
        before = pieces(tmp_path / "run")
        assert process.wait() == 0
        assert dask.workers[1].poll() is None
    assert before.items() < pieces(tmp_path / "run").items()
    assert "80 trials × 2 scores, 80 computed now" in (tmp_path / "log").read_text()
    assert records(tmp_path / "run") == records(undisturbed)


def test_the_scheduler_is_killed(tmp_path: Path, undisturbed: Path) -> None:
    """The run ends and says so; what was finished is not computed again."""
    with cluster(tmp_path) as dask, started(tmp_path / "log", command(*SLOW, *dask.keys(tmp_path / "run"))) as process:
        until(lambda: len(pieces(tmp_path / "run")) > 3, process)
        dask.scheduler.kill()
        assert process.wait(timeout=LONG) == 1
        said = do(
            *SLOW, *dask.keys(tmp_path / "run"), first="from benchmark import cluster; cluster.ANSWER = 1", code=1
        )
    assert "No dask scheduler answers at tcp://127.0.0.1" in said
    assert "Traceback" not in said
    said = (tmp_path / "log").read_text()
    assert "The dask scheduler is gone" in said
    assert "the same command goes on when this is mended" in said
    assert "Traceback" not in said
    before = pieces(tmp_path / "run")
    assert len(before) > 3
    said = do(*SLOW, f"results_dir={tmp_path / 'run'}", "parallel.n_jobs=2")
    assert f"{80 - trials_of(before) // 2} computed now" in said
    assert before.items() < pieces(tmp_path / "run").items()
    assert records(tmp_path / "run") == records(undisturbed)


def test_a_cluster_without_workers(tmp_path: Path) -> None:
    impatient = "from benchmark import cluster; cluster.PATIENCE = 1"
    with cluster(tmp_path, workers=1) as dask:
        run = command(*SLOW, *dask.keys(tmp_path / "run"), first=impatient)
        with started(tmp_path / "log", run) as process:
            until(lambda: pieces(tmp_path / "run"), process)
            dask.workers[0].kill()
            assert process.wait(timeout=LONG) == 1
        assert "has had no worker for 1 s" in (tmp_path / "log").read_text()
        said = do(*STUDY, *dask.keys(tmp_path / "none"), first=impatient, code=1)
        assert "has had no worker for 1 s" in said


def test_a_score_that_the_cluster_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "only_here.py").write_text("class Mine:\n    def __call__(self, f):\n        return f.ln_tau + f.k\n")
    here = f"sys.path.insert(0, {str(tmp_path)!r})"
    with cluster(tmp_path) as dask:
        mine = "+scorers.mine._target_=only_here.Mine"
        said = do(*STUDY, mine, *dask.keys(tmp_path / "run"), first=here, code=1)
    assert "scheduler and workers need this package, the modules of all scores" in said
    assert "Traceback" not in said


def test_a_score_that_ends_its_process(tmp_path: Path) -> None:
    """The worker, of one at least, is started again by its nanny; the trial is a failure with its reason."""
    awkward = [*AWKWARD, "design.replicates=13", "design.n=80"]
    do(*awkward, "+scorers.awkward.how=raise", f"results_dir={tmp_path / 'raise'}", "parallel=serial", code=1)
    with cluster(tmp_path, workers=1, nanny="--nanny", blamed_at=1) as dask:
        do(*awkward, "+scorers.awkward.how=exit", *dask.keys(tmp_path / "exit"), code=1)
    pairs = list(zip(rows_of(tmp_path / "exit"), rows_of(tmp_path / "raise"), strict=True))
    failed = [row["error"] for row, expected in pairs if expected["error"] is not None]
    assert len(failed) == 1
    assert "the process that was at this trial ended" in failed[0]
    assert all(row == expected for row, expected in pairs if expected["error"] is None)


def test_a_cluster_of_its_own(tmp_path: Path, undisturbed: Path) -> None:
    """Without an address one is started, and closed at the end."""
    quick = ["+scorers.slow.seconds=0", "parallel=dask", "parallel.n_jobs=2"]
    with started(tmp_path / "log", command(*SLOW, *quick, f"results_dir={tmp_path}")) as process:
        until(lambda: pieces(tmp_path), process)
        children = psutil.Process(process.pid).children(recursive=True)
        assert process.wait() == 0, (tmp_path / "log").read_text()
        until(lambda: not any(child.is_running() for child in children))
    assert records(tmp_path) == records(undisturbed)
