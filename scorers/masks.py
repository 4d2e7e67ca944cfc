"""Sets of nodes as bit masks, and the *compressed* masks that number the parent sets of a child j: without bit j."""

from functools import lru_cache
from typing import Any

import numpy as np

from scorers.base import IntArray


def expand(c: Any, j: int) -> Any:
    """The mask whose compressed form, without bit j, is c; or an array of them.

    Examples
    --------
    >>> bin(expand(0b101, 1))
    '0b1001'
    """
    low = (1 << j) - 1
    return (c & low) | (c & ~low) << 1


def compressed(mask: Any, j: Any) -> Any:
    """The mask, in which bit j is zero, without bit j: the inverse of `expand`."""
    low = (1 << j) - 1
    return mask & low | mask >> 1 & ~low


def members(mask: int) -> tuple[int, ...]:
    """The nodes of a mask, in order."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


@lru_cache(maxsize=100)
def masks_up_to(most: int, start: int, bits: int) -> IntArray:
    """Those of the 2^bits masks from `start` on that have at most so many members, in order, read-only.

    Examples
    --------
    >>> masks_up_to(1, 0, 3)
    array([0, 1, 2, 4])
    """
    masks = np.arange(start, start + (1 << bits))
    if start.bit_count() + bits > most:
        masks = masks[np.bitwise_count(masks) <= most]
    masks.flags.writeable = False
    return masks
