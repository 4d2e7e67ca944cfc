"""Mishaps, each of which really happens here: nothing finished is lost, and no number changes."""

import signal
from pathlib import Path

import psutil
import pytest

from tests.mishaps import SLOW, command, do, loky_workers, pieces, records, started, until


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a run to which nothing happened."""
    folder = tmp_path_factory.mktemp("undisturbed")
    do(*SLOW, "+scorers.slow.seconds=0", f"results_dir={folder}", "parallel=serial")
    return folder


def test_a_worker_is_killed(tmp_path: Path, undisturbed: Path) -> None:
    with started(tmp_path / "log", command(*SLOW, f"results_dir={tmp_path}", "parallel.n_jobs=2")) as process:
        for finished in (2, 10):  # twice
            until(lambda finished=finished: len(pieces(tmp_path)) >= finished, process)
            loky_workers(process)[0].kill()
        before = pieces(tmp_path)
        assert process.wait() == 0
    assert len(before) < len(pieces(tmp_path))
    assert records(tmp_path) == records(undisturbed)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_leaves_no_process_behind(tmp_path: Path, how: signal.Signals) -> None:
    with started(tmp_path / "log", command(*SLOW, f"results_dir={tmp_path}")) as process:
        until(lambda: pieces(tmp_path), process)
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 3  # the server that forks, and two workers at least
        process.send_signal(how)
        process.wait()
        until(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
