"""What a search needs: memory, and time, told before it starts."""

import psutil

# The table of all children is in memory up to this many nodes; above, that of LOW nodes is.
WHOLE, LOW = 23, 22
# Bytes for what does not grow with m.
REST = 1 << 28


def memory(m: int) -> tuple[int, int]:
    """Bytes that the search for the best of m nodes needs, and how many more it can use.

    A table of the log-determinants and one of the best scores of all sets of nodes, and the table of all children; for
    many nodes the best scores and their sinks, a chunk of the table, and what is listed.

    Examples
    --------
    >>> [round(sum(memory(m)) / 1e9, 1) for m in (20, 25, 28, 30)]
    [0.4, 0.0, 0.0, 0.0]
    """
    if m <= WHOLE:
        return (16 << m) + (8 * m << (m - 1)) + REST, 0
    return (9 << m) + (8 * LOW << (LOW - 1)) + (16 << LOW) + REST, 8 << m


def refuse_large(m: int) -> int:
    """Raise if the search needs more memory than is free; else the bytes that are free for lists."""
    if m > 60:
        raise MemoryError(f"The best network of m = {m} nodes is one of sets of 2^{m}: no memory holds them.")
    need, more = memory(m)
    free = psutil.virtual_memory().available
    if m >= 20 and need > free:
        raise MemoryError(
            f"The best network of m = {m} nodes needs {need / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are free. "
            "Search fewer nodes: each node less halves it."
        )
    return min(more, free - need)
