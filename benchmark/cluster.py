"""A dask cluster as joblib's workers, and what is done when it goes away.

dask gives the work of a worker that died to another one, and after some deaths blames the task. joblib's own backend
does the rest, but for one thing: where a task has no result, because it was blamed, could not be read by a worker, or
the scheduler is gone, it waits for that result for ever. Here all of these are errors, and the scheduler is asked
every second whether it is there and has workers.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any

from dask.distributed import Client, LocalCluster
from distributed.scheduler import KilledWorker
from joblib import parallel_config
from joblib._dask import DaskDistributedBackend

from benchmark.workers import ClusterError, WorkerDiedError

# Seconds that a scheduler may take to answer at first, and be without workers: a queue may have to give it new ones.
ANSWER = 10.0
PATIENCE = 60.0
NO_WORKER = "The dask scheduler has had no worker for {:g} s"


class Backend(DaskDistributedBackend):  # type: ignore[misc]  # joblib has no types
    """joblib's backend, in which every task ends: with a result or with an error."""

    def __init__(self, client: Any) -> None:
        super().__init__(client=client, wait_for_workers_timeout=PATIENCE)
        self.waiting: set[Future[Any]] = set()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """The threads of all workers; two at least, because joblib does the work of one in this process."""
        try:
            return max(2, int(super().effective_n_jobs(n_jobs)))
        except TimeoutError as error:
            raise ClusterError(NO_WORKER.format(PATIENCE)) from error

    def start_call(self) -> None:
        """Watch the scheduler from now on."""
        super().start_call()
        self.watched = True
        self.client.loop.add_callback(self._watch)

    def stop_call(self) -> None:
        """End the watch."""
        self.watched = False
        super().stop_call()

    def submit(self, func: Any, callback: Callable[[Any], None]) -> "Future[Any]":
        """Send a task; joblib's callback is called also if it has no result."""
        future: Future[Any] = super().submit(func, callback)

        def done(future: "Future[Any]") -> None:
            self.waiting.discard(future)
            if error := future.exception():
                callback(error)

        self.waiting.add(future)
        future.add_done_callback(done)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """What a task returned. What it raised is in there, too: any other error is the cluster's."""
        if isinstance(out, KilledWorker):
            raise WorkerDiedError from out
        if isinstance(out, (ClusterError, CancelledError)):
            raise out if isinstance(out, ClusterError) else ClusterError("The dask scheduler is gone") from out
        if isinstance(out, Exception):
            raise ClusterError(
                f"The dask cluster failed: {type(out).__name__}: {str(out).strip()}\nIts scheduler and workers need "
                "this package, the modules of all scores, and the same versions as here"
            ) from out
        return super().retrieve_result_callback(out)

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Take back all that was sent."""
        sent = list(self.waiting_futures.futures)
        super().abort_everything(ensure_ready)
        self.waiting.clear()
        if self.client.status == "running":
            self.client.cancel(sent)

    async def _watch(self) -> None:
        """Let all tasks fail if the scheduler does not answer, or has had no workers for some time."""
        last = time.monotonic()
        while self.watched:
            try:
                threads = (await self.client.scheduler.identity(n_workers=0))["total_threads"]
            except OSError as error:
                self._fail(f"The dask scheduler is gone: {error}")
                return
            if threads:
                last = time.monotonic()
            elif time.monotonic() - last > PATIENCE:
                self._fail(NO_WORKER.format(PATIENCE))
                return
            await asyncio.sleep(1)

    def _fail(self, reason: str) -> None:
        for future in list(self.waiting):
            if not future.done():
                future.set_exception(ClusterError(reason))


@contextmanager
def ready(address: str | None, n_jobs: int) -> Iterator[None]:
    """Have joblib use the cluster of a scheduler or, without an address, one on this machine, closed at the end."""
    count = None if n_jobs == -1 else n_jobs
    own = None if address else LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    try:
        client = Client(own or address, timeout=ANSWER)
    except (OSError, ValueError) as error:
        raise ClusterError(f"No dask scheduler answers at {address}: {error}. Is it running?") from error
    logging.disable(logging.ERROR)  # what goes wrong is said once, by the error that is raised
    try:
        with parallel_config(backend=Backend(client)):
            yield
    finally:
        client.close()
        if own:
            own.close()
        logging.disable(logging.NOTSET)
