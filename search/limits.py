"""What a search needs, told before it starts: memory, and time from a search of a few of its nodes."""

from dataclasses import dataclass

import psutil

from search import workspace

# The table of all children is in memory up to this many nodes. For 23 it is a fifth faster than chunks in memory that
# was used before, and takes two to three times as long in fresh memory; for 24 it is faster in neither. Above, chunks
# have LOW low nodes at most. With 22, 28 nodes take a tenth less time, and two GB less; but data whose lists find no
# room take half as much again.
WHOLE, LOW = 22, 24
# Chunks whose log-determinants are kept: a high child needs those of its chunk and of the one without it, which is
# often one of the four before.
CHUNKS = 5
# Bytes for what does not grow with m.
REST = 1 << 28


@dataclass(frozen=True)
class Estimate:
    """What the search for the best of m nodes will take.

    Attributes
    ----------
    m : int
        Nodes.
    seconds : float
        Time, as a search of fewer of the nodes suggests.
    memory : int
        Bytes that it needs.
    lists : int
        Bytes more that it uses if the data ask for them and the memory has them: see `search.chunked`.
    """

    m: int
    seconds: float
    memory: int
    lists: int

    def __str__(self) -> str:
        """One line for people."""
        time = f"{self.seconds:.1f} s" if self.seconds < 100 else f"{self.seconds / 60:.0f} min"
        more = f" to {(self.memory + self.lists) / 1e9:.1f}" if self.lists else ""
        return f"The best of m = {self.m} nodes will take about {time} and {self.memory / 1e9:.1f}{more} GB."


def low_nodes(m: int) -> int | None:
    """How many of m nodes are low, if there are so many that the table is made in chunks: eight chunks at least."""
    return None if m <= WHOLE else min(LOW, m - 3)


def memory(m: int) -> tuple[int, int]:
    """Bytes that the search for the best of m nodes needs, and how many more it can use.

    For few nodes: the log-determinants and best scores of all sets, and the table of all children. For many: the best
    scores of all sets, tables of the low and the high children of one chunk, and log-determinants of some; more is
    used for lists.

    Examples
    --------
    >>> [round(sum(memory(m)) / 1e9, 1) for m in (22, 25, 28, 30)]
    [0.7, 1.4, 7.4, 20.5]
    """
    low = low_nodes(m)
    if low is None:
        return (16 << m) + (8 * m << (m - 1)) + REST, 0
    return (8 << m) + (8 * low << (low - 1)) + (8 * (m - low + CHUNKS) << low) + REST, 8 << m


def refuse_large(m: int) -> int:
    """Raise if the search needs more memory than is free; else the bytes it may use for lists, half of the rest."""
    if m > 60:
        raise MemoryError(f"The best network of m = {m} nodes is one of sets of 2^{m}: no memory holds them.")
    need, more = memory(m)
    free = psutil.virtual_memory().available + workspace.kept()
    if m >= 20 and need > free:
        raise MemoryError(
            f"The best network of m = {m} nodes needs {need / 2**30:,.1f} GiB, and {free / 2**30:,.1f} GiB are free. "
            "Search fewer nodes: each node less halves it."
        )
    return min(more, (free - need) // 2)
