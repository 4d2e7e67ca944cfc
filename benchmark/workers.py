"""Who computes: joblib's backends, chosen by `conf/parallel`, and what is done when a worker dies.

`loky` is this machine's cores, `dask` a cluster, `serial` this process. Workers only compute and send back what they
found; kernels in a worker use one thread, so that workers do not get in each other's way.

On Linux, loky's processes are forked from a server that has imported everything and loaded the kernels. It can be
started before anything else, and is then ready when the config has been read.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing import forkserver
from typing import Any

FORKS = sys.platform == "linux"
# The libraries that read these would use all cores in each worker.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
QUIET = "ignore:resource_tracker"


class WorkerDiedError(RuntimeError):
    """The process of a worker ended while it was at work."""

    def __init__(self) -> None:
        super().__init__(
            "each time the process that was at this trial ended: by a crash in compiled code, an exit, for want of "
            "memory, or because compiled code took longer than parallel.time_limit"
        )


class ClusterError(RuntimeError):
    """The cluster cannot be reached, or cannot do what it is asked to."""


@dataclass(frozen=True)
class _Sealed:
    """A call, and in turn what it returned, as one thing: dask would go through both, number by number."""

    content: Any

    def __call__(self) -> "_Sealed":
        return _Sealed(self.content())


@dataclass(frozen=True)
class Workers:
    """Who computes.

    Attributes
    ----------
    backend : {"loky", "dask", "serial"}
        joblib's backend; "serial" is this process.
    n_jobs : int
        The number of workers, −1 for one on each core; a running cluster has its own.
    address : str, optional
        The address of a running dask scheduler; without it a local cluster is started, and closed at the end.
    time_limit : float, optional
        Seconds that one trial under one score may take; without it, any number.
    """

    backend: str
    n_jobs: int = 1
    address: str | None = None
    time_limit: float | None = None

    def each(self, task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """What a task returns for each tuple of arguments, as it is finished.

        Raises `WorkerDiedError` if the process of a worker ended: what was not returned has to be asked for again.
        """
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        calls = (delayed(_Sealed(partial(task, *each)))() for each in arguments)
        ahead = 1 if self._one_process else "2*n_jobs"
        finished = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=ahead)(calls)
        try:
            for sealed in finished:
                yield sealed.content
        except TerminatedWorkerError as error:
            raise WorkerDiedError from error

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Have joblib use these workers."""
        from joblib import parallel_config

        if self.backend == "dask":
            if find_spec("distributed") is None:
                raise ClusterError("parallel=dask needs dask: pip install -c constraints.txt -e '.[cluster]'")
            from benchmark.cluster import ready

            with ready(self.address, self.n_jobs):
                yield
        elif self.backend == "serial":
            with parallel_config(backend="sequential"):
                yield
        else:
            if FORKS:
                from joblib.externals.loky.backend.context import set_start_method

                start_early()
                set_start_method("forkserver", force=True)
            n_jobs = 2 if self._one_process else self.n_jobs
            with parallel_config(backend="loky", n_jobs=n_jobs, inner_max_num_threads=1):
                yield

    @property
    def _one_process(self) -> bool:
        """Whether one process does all: joblib would do it in this one, which a score must not be able to end.

        So there are two, of which one has nothing to do.
        """
        from joblib import cpu_count

        return self.backend == "loky" and (self.n_jobs == 1 or (self.n_jobs < 0 and cpu_count() + 1 + self.n_jobs <= 1))


def start_early() -> None:
    """Start the server that loky's processes are forked from, and the process that tidies up, without waiting."""
    if FORKS:
        forkserver.set_forkserver_preload(["benchmark.warm"])
        # processes that tidy up after a run that was killed are started with these options, and would complain
        if QUIET not in sys.warnoptions:
            sys.warnoptions.append(QUIET)
        before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))
        # what is started ignores Ctrl-C, too: that is for this process, which ends it
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            forkserver.ensure_running()
        finally:
            signal.signal(signal.SIGINT, interrupt)
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
        from joblib.externals.loky.backend import resource_tracker

        resource_tracker.ensure_running()  # else it is started together with the workers, and in their way
