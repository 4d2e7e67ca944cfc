"""The random numbers of a trial.

Every stream is keyed by content, that is by the root seed, the cell, the replicate and the purpose, and by nothing
else: all scores see the same data, and adding a cell, a score or replicates changes no number that was there before.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence

from benchmark.design import Cell, Study

# A new purpose goes to the end, or the numbers of all others change.
Purpose = Literal["dag", "labels", "parameters", "signs", "data", "ties", "baseline"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)

# So many trials are seeded together: making a `SeedSequence` for each would take longer than drawing its DAG.
TOGETHER = 128
# The constants of numpy.random.SeedSequence (O'Neill, "Developing a seed_seq alternative", 2015).
INIT_A, MULT_A, INIT_B, MULT_B = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
MIX_L, MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)


def streams(study: Study, cell: Cell, replicates: Iterable[int], purpose: Purpose) -> Iterator[np.random.Generator]:
    """The random numbers of some trials for one purpose."""
    n = None if study.design.share == "network" and purpose not in ("data", "ties") else cell.n
    number = PURPOSES.index(purpose)
    for replicate in replicates:
        words = _words_of_trials(study.seed, cell.m, cell.nn, n, replicate // TOGETHER)[replicate % TOGETHER, number]
        yield np.random.Generator(np.random.PCG64(_Seeds(words)))  # type: ignore[arg-type]  # as its docstring allows


class _Seeds(ISeedSequence):
    """The part of a trial's `SeedSequence` that seeds one generator."""

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        self.words = words

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> npt.NDArray[np.uint64]:
        """What a generator of the kind PCG64 asks for: four words of 64 bits."""
        assert (n_words, dtype) == (4, np.uint64)
        return self.words


@lru_cache(maxsize=64)
def _words_of_trials(seed: int, m: int, nn: int | None, n: int | None, block: int) -> npt.NDArray[np.uint64]:
    """The words that seed the generators of a block of trials: trials × purposes × 4."""
    replicates = np.arange(block * TOGETHER, (block + 1) * TOGETHER)
    return seed_words(seed, _words(m, nn, n), replicates, 4 * len(PURPOSES)).reshape(TOGETHER, -1, 4)


def seed_words(
    seed: int, key: tuple[int, ...], replicates: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.uint64]:
    """Row i: `SeedSequence(seed, spawn_key=(*key, replicates[i])).generate_state(count, np.uint64)`, all rows at once.

    The words of `key` and the replicates have 32 bits, and `count` is even.
    """
    assert ((replicates >= 0) & (replicates < 1 << 32)).all()
    pool = np.random.SeedSequence(seed, spawn_key=key).pool  # mixed with all words but the last
    # Each of the words, four at least for the seed, was hashed four times, and the first four mixed with each other.
    hashed = 4 * (max(4, -(-seed.bit_length() // 32)) + len(key))
    a = _powers(INIT_A, MULT_A, hashed + 5)[hashed:]
    pools = MIX_L * pool - MIX_R * _hash(replicates.astype(np.uint32)[:, None], a)
    pools ^= pools >> 16
    words = _hash(np.tile(pools, count // 2), _powers(INIT_B, MULT_B, 2 * count + 1)).astype(np.uint64)
    return words[:, ::2] | words[:, 1::2] << np.uint64(32)


def _hash(values: npt.NDArray[np.uint32], constants: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The values under a hash whose constant changes from column to column."""
    hashed = (values ^ constants[:-1]) * constants[1:]
    return np.asarray(hashed ^ hashed >> 16)


def _powers(first: int, factor: int, count: int) -> npt.NDArray[np.uint32]:
    """first · factor^i modulo 2^32, for i < count."""
    factors = np.full(count, factor, dtype=np.uint32)
    factors[0] = first
    return np.multiply.accumulate(factors, dtype=np.uint32)


@cache
def _words(*content: object) -> tuple[int, ...]:
    """Four words that stand for some content."""
    digest = hashlib.sha256(json.dumps(content).encode()).digest()
    return tuple(int(word) for word in np.frombuffer(digest, dtype="<u4")[:4])
