"""What the tests of mishaps need: scores that misbehave, and runs in processes of their own, to be hit on the way."""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq

from scorers import Block
from scorers.base import Array

# Long, so that a failure is not a matter of how busy the machine is: nothing waits for it to pass.
LONG = 90.0


@dataclass(frozen=True)
class Awkward:
    """AIC, but for a few trials, in which it misbehaves; which ones depends only on their data."""

    how: str
    one_in: int = 200

    def __call__(self, f: Block) -> Array:
        if (np.floor(np.abs(f.ln_variance) * 1e6) % self.one_in == 0).any():
            if self.how == "raise":
                raise RuntimeError("no luck today")
            if self.how == "exit":
                os._exit(3)
            while self.how == "hang":
                time.sleep(0.01)
            if self.how == "hang in compiled code":
                all(itertools.repeat(True))
        return f.n / 2 * f.ln_tau + f.k


@dataclass(frozen=True)
class Slow:
    """AIC, slowly: there is time to do something to the run."""

    seconds: float = 0.05

    def __call__(self, f: Block) -> Array:
        time.sleep(self.seconds)
        return f.n / 2 * f.ln_tau + f.k


# 2 cells × 40 trials in batches of two or so, each of which takes a tenth of a second under Slow.
STUDY = ["+experiment=smoke", "design.m=6", "design.n=[40,80]", "design.replicates=40", "scorers=[bic]", "stages=[run]"]
SLOW = [*STUDY, "+scorers.slow._target_=tests.mishaps.Slow"]
AWKWARD = [*STUDY, "+scorers.awkward._target_=tests.mishaps.Awkward"]

SMALL_BATCHES = """
import sys
from benchmark import __main__, runner
runner.BATCH_SECONDS = 0.0005
{}
__main__.whole()
"""


def command(*overrides: str, first: str = "") -> list[str]:
    """The command line, with batches small enough that a mishap leaves some finished and some not."""
    return [sys.executable, "-c", SMALL_BATCHES.format(first), *overrides]


def do(*overrides: str, code: int = 0, first: str = "") -> str:
    arguments = command(*overrides, first=first)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def started(log: Path, arguments: list[str], **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the test, nor do its children; what it says goes to a file."""
    with log.open("wb") as out:
        process = subprocess.Popen(arguments, stdout=out, stderr=out, env=os.environ | environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
        process.wait()


def until(happened: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until something has happened, while a process is at work."""
    deadline = time.monotonic() + LONG
    while not happened():
        assert process is None or process.poll() is None, "the process has ended too early"
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(0.01)


def pieces(folder: Path) -> dict[Path, bytes]:
    """The finished pieces in a results folder."""
    return {file: file.read_bytes() for file in (folder / ".store").rglob("*.json")}


def trials_of(kept: dict[Path, bytes]) -> int:
    """How many (trial, score) pairs are in some pieces."""
    return sum(len(json.loads(content.partition(b"\n")[2])["replicate"]) for content in kept.values())


def records(folder: Path) -> bytes:
    return (folder / "smoke" / "records.parquet").read_bytes()


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "smoke" / "records.parquet").to_pylist()
    return rows


def loky_workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The workers of a run: children of the fork server, which is its child."""
    return [each for each in psutil.Process(process.pid).children(recursive=True) if each.ppid() != process.pid]
