"""Who computes: joblib's backends, chosen by `conf/parallel`, and what is done when a worker dies.

`loky` is this machine's cores, `dask` a cluster, `serial` this process. Workers only compute and send back what they
found; kernels in a worker use one thread, so that workers do not get in each other's way.

On Linux, loky's processes are forked from a server that has imported everything and loaded the kernels. It can be
started before anything else, and is then ready when the config has been read.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import forkserver
from typing import Any

FORKS = sys.platform == "linux"
# The libraries that read these would use all cores in each worker.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class WorkerDiedError(RuntimeError):
    """The process of a worker ended while it was at work."""


class ClusterError(RuntimeError):
    """The cluster cannot be reached any more, or not at all."""


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

        calls = (delayed(task)(*each) for each in arguments)
        finished = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")(calls)
        try:
            yield from finished
        except Exception as error:
            if type(error).__name__ in ("TerminatedWorkerError", "KilledWorker"):
                raise WorkerDiedError(
                    "the process that was at this trial ended: a crash in compiled code, an exit, or the system "
                    "was out of memory"
                ) from error
            if self.backend == "dask" and isinstance(error, (OSError, TimeoutError, RuntimeError)):
                raise ClusterError(f"The dask cluster is gone: {type(error).__name__}: {error}") from error
            raise

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Have joblib use these workers."""
        from joblib import parallel_config

        if self.backend == "dask":
            with _dask_client(self):
                yield
        elif self.backend == "serial":
            with parallel_config(backend="sequential"):
                yield
        else:
            if FORKS:
                from joblib.externals.loky.backend.context import set_start_method

                start_early()
                set_start_method("forkserver", force=True)
            with parallel_config(backend="loky", n_jobs=self.n_jobs, inner_max_num_threads=1):
                yield


def start_early() -> None:
    """Start the server that loky's processes are forked from, without waiting for it."""
    if FORKS:
        forkserver.set_forkserver_preload(["benchmark.warm"])
        before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))
        try:
            forkserver.ensure_running()
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


@contextmanager
def _dask_client(workers: Workers) -> Iterator[None]:
    if find_spec("distributed") is None:
        raise ClusterError("parallel=dask needs dask: pip install -c constraints.txt -e '.[cluster]'.")
    from dask.distributed import Client, LocalCluster
    from joblib import parallel_config

    if workers.address is None:
        count = None if workers.n_jobs == -1 else workers.n_jobs
        cluster: Any = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
    else:
        cluster = workers.address
    try:
        client = Client(cluster, timeout=10)
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"No dask scheduler answers at {workers.address}: {error}. Is it running?") from error
    try:
        with parallel_config(backend="dask", client=client):
            yield
    finally:
        client.close()
        if workers.address is None:
            cluster.close()
