"""A real dask cluster on loopback, a scheduler and two workers in processes of their own, through all that may happen."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.mishaps import SLOW, STUDY, command, do, pieces, records, started, trials_of, until

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")


@dataclass(frozen=True)
class Cluster:
    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    @property
    def dask(self) -> list[str]:
        return ["parallel=dask", f"parallel.address={self.address}"]


@contextmanager
def cluster(folder: Path, workers: int = 2, nanny: str = "--no-nanny") -> Iterator[Cluster]:
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
                DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0",  # a task is blamed for the first death
            )
        )
        logs = [folder / f"worker{i}.log" for i in range(workers)]
        processes = [stack.enter_context(started(log, [*dask, "worker", address, *of_worker])) for log in logs]
        for log, process in zip(logs, processes, strict=True):
            until(lambda log=log: "Registered to" in log.read_text(), process)
        yield Cluster(address, scheduler, processes)
