"""One exact search under Gaussian BIC, timed, by this project and by other programs: each in a process of its own.

The others are causal-learn (its dynamic programme) and pcalg's simy, where they are installed. causal-learn fits
without an intercept, so both are given centred data, which changes neither score nor optimum. A search that takes too
long is stopped. All run with BLAS on one thread, and what has to be imported or loaded is so before the clock starts.
"""

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmark.aside import aside
from scorers import BIC
from scorers.base import Array, IntArray
from search import learn

# A search of ours that takes less than LONG seconds is repeated in memory that was used before: three times at least,
# and until that took SHORT seconds.
SHORT, LONG = 1.0, 10.0

SIMY = """
data <- as.matrix(read.csv(commandArgs(trailingOnly = TRUE)[1], header = FALSE))
suppressMessages(library(pcalg))
start <- proc.time()[["elapsed"]]
score <- new("GaussL0penObsScore", data, lambda = 0.5 * log(nrow(data)), intercept = TRUE)
network <- simy(score)
seconds <- proc.time()[["elapsed"]] - start
status <- if (file.exists("/proc/self/status")) readLines("/proc/self/status") else character(0)
peak <- sub("[^0-9]*([0-9]+) kB", "\\\\1", grep("^VmHWM:", status, value = TRUE))
adjacency <- as(network$repr, "matrix")  # [i, j] is TRUE for i -> j
cat("\\n", seconds, if (length(peak)) peak else 0, as.integer(t(adjacency)), "\\n")
"""


@dataclass(frozen=True)
class Searched:
    """What a search took and found.

    Attributes
    ----------
    seconds : float, optional
        The median of some runs; None if the search did not end, and `note` says why.
    first : float, optional
        What the first run took, which has to touch fresh memory.
    stopped : float, optional
        The seconds after which it was stopped.
    runs : int
        How many runs were timed.
    peak_gb : float, optional
        The most memory that its process had, all of it; None where the system does not say.
    adjacency : IntArray, optional
        Entry [i, j] = 1 means i → j.
    note : str
        Why there is no network.
    """

    seconds: float | None = None
    first: float | None = None
    stopped: float | None = None
    runs: int = 0
    peak_gb: float | None = None
    adjacency: IntArray | None = None
    note: str = ""


Search = Callable[[Array, float], Searched]


def searches() -> dict[str, Search]:
    """The searches of this project, with one thread and with all: functions of the data and a limit in seconds."""
    counts = dict.fromkeys((1, cpu_count() or 1))
    return {
        f"gaussbench, {count} thread{'s' * (count > 1)}": partial(alone, partial(_learn, threads=count))
        for count in counts
    }


def peers() -> tuple[dict[str, Search], list[str]]:
    """The other programs that are installed, and a line for each that is not."""
    found: dict[str, Search] = {}
    missing = []
    if find_spec("causallearn"):
        found["causal-learn"] = partial(alone, _causal_learn)
    else:
        missing.append("causal-learn is not installed (extra `peers`): left out.")
    if has_simy():
        found["pcalg::simy"] = _simy
    else:
        missing.append("pcalg::simy needs Rscript and the R package pcalg, which are not here: left out.")
    return found, missing


@cache
def has_simy() -> bool:
    """Whether there is an R with pcalg."""
    if not (rscript := shutil.which("Rscript")):
        return False
    asked = [rscript, "-e", 'cat(requireNamespace("pcalg", quietly = TRUE))']
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == "TRUE"


def alone(task: Callable[[Array], Searched], data: Array, limit: float) -> Searched:
    """Do a search in a process of its own, which is ended after `limit` seconds."""
    with aside(task, data) as result:
        try:
            found: Searched = result(limit)
        except TimeoutError:
            return _stopped(limit)
        except ChildProcessError as error:
            return Searched(note=str(error))
        except Exception as error:  # whatever a program raises is what it has to say
            return Searched(note=f"{type(error).__name__}: {error}")
        return found


def _stopped(limit: float) -> Searched:
    return Searched(stopped=limit, note=f"stopped at the time limit, {limit:.3g} s")


def _learn(data: Array, threads: int) -> Searched:
    learn(np.random.default_rng(0).normal(size=(50, 16)), BIC(), threads=threads)  # loads the kernels
    took: list[float] = []
    while not took or (took[0] < LONG and (len(took) < 4 or sum(took) < SHORT)):
        start = time.perf_counter()
        network = learn(data, BIC(), rng=0, threads=threads)
        took.append(time.perf_counter() - start)
    warm = took[1:] or took
    return Searched(float(np.median(warm)), took[0], runs=len(warm), peak_gb=_peak_gb(), adjacency=network.adjacency)


def _causal_learn(data: Array) -> Searched:
    from causallearn.search.ScoreBased.ExactSearch import bic_exact_search

    start = time.perf_counter()
    adjacency, _ = bic_exact_search(data - data.mean(axis=0), search_method="dp")
    took = time.perf_counter() - start
    return Searched(took, took, runs=1, peak_gb=_peak_gb(), adjacency=adjacency.astype(np.int64))


def _simy(data: Array, limit: float) -> Searched:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "data.csv"
        np.savetxt(file, data - data.mean(axis=0), delimiter=",", fmt="%.17g")
        command = ["Rscript", "-e", SIMY, str(file)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return _stopped(limit)
    if done.returncode:
        return Searched(note=f"R: {' '.join(done.stderr.split())}")
    seconds, peak, *entries = done.stdout.strip().splitlines()[-1].split()
    adjacency = np.array(entries, dtype=np.int64).reshape(data.shape[1], -1)
    return Searched(float(seconds), float(seconds), runs=1, peak_gb=float(peak) / 1e6 or None, adjacency=adjacency)


def _peak_gb() -> float | None:
    """The most memory that this process has had: of its own, while ru_maxrss counts the parent's."""
    status = Path("/proc/self/status")
    return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1e6 if status.exists() else None
