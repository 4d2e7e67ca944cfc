"""Memory that one search leaves to the next.

The first touch of fresh memory costs more than what a search does in it: 0.2 to 3 s/GiB on a virtual machine. So the
arrays of a search are cut from one piece, which is kept for the next search unless it is large.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from threading import Lock

import numpy as np

from scorers.base import Array

# A larger piece than this is given back, in bytes: that of 25 nodes is kept.
MOST = 1 << 30
# Numbers to a page of memory, with which each array begins.
PAGE = 512

_lock = Lock()
_kept = np.empty(0)


@contextmanager
def arrays(*shapes: tuple[int, ...]) -> Iterator[list[Array]]:
    """Arrays of these shapes, with anything in them. Whoever uses them after the `with` block shares them.

    Examples
    --------
    >>> with arrays((2, 3), (4,)) as (a, b):
    ...     a.shape, b.shape
    ((2, 3), (4,))
    """
    pages = [-(-prod(shape) // PAGE) for shape in shapes]
    piece = _take()
    if len(piece) < PAGE * sum(pages):
        del piece  # before there is another
        piece = np.empty(PAGE * sum(pages))
    firsts = PAGE * (np.cumsum(pages) - pages)
    try:
        yield [piece[first : first + prod(shape)].reshape(shape) for first, shape in zip(firsts, shapes, strict=True)]
    finally:
        _leave(piece)


def kept() -> int:
    """Bytes that are kept at the moment, for the next search to use."""
    return _kept.nbytes


def _take() -> Array:
    """The piece that is kept, if nobody else has it."""
    global _kept
    with _lock:
        piece, _kept = _kept, np.empty(0)
    return piece


def _leave(piece: Array) -> None:
    """Keep a piece, unless it is large or another one is larger."""
    global _kept
    with _lock:
        if _kept.nbytes < piece.nbytes <= MOST:
            _kept = piece
