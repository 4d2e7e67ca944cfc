"""A call in a process of its own, while this one goes on, or waits only so long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from benchmark.workers import FORKS, start_early


@contextmanager
def aside(function: Callable[..., Any], *arguments: Any) -> Iterator[Callable[[float | None], Any]]:
    """Call a function in another process, which ends with the `with` block at the latest.

    Parameters
    ----------
    function : callable
        What is called.
    *arguments
        What it is called with: little, for it is sent before the other process can work.

    Yields
    ------
    callable
        Given a number of seconds, or None, it waits for so long and returns what the function returned, or raises what
        that raised; TimeoutError if it takes longer, ChildProcessError if its process ended before.

    Examples
    --------
    >>> with aside(sum, [1, 2]) as result:
    ...     result(None)
    3
    """
    if FORKS:
        start_early()  # processes are forked from a server that has imported what computes
    context: Any = get_context("forkserver" if FORKS else "spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, function, arguments))
    process.start()
    there.close()

    def result(limit: float | None) -> Any:
        if not here.poll(limit):
            raise TimeoutError(f"it took longer than {limit:g} s")
        try:
            value, error = here.recv()
        except EOFError as ended:
            raise ChildProcessError(
                f"{getattr(function, '__name__', 'the call')} did not return: its process ended: the system was out of "
                "memory, or a crash in compiled code"
            ) from ended
        if error is not None:
            raise error
        return value

    try:
        yield result
    finally:
        process.kill()
        process.join()


def _answer(there: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        there.send((function(*arguments), None))
    except Exception as error:  # whatever it raises is for the one who asked
        there.send((None, error))
