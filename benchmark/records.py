"""What each trial found, kept so that nothing finished is lost and nothing is computed twice.

Finished trials of one cell under one score are *pieces* in a store that all experiments share: small files under
`store/<key>/`, where the key is a hash of everything that determines the numbers (seed, cell, design, search, score,
its options, its source and that of what it imports, the source of the kernels, the versions of the numerical
libraries). A piece begins with the checksum of its key and the rest: a truncated or foreign file is recognised, set
aside, and its trials are computed again. Files are written under another name and then renamed.
`records.parquet` is made from the pieces, in the order of the design.
"""

import ast
import fcntl
import hashlib
import importlib
import json
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmark.design import Cell, Study
from benchmark.trial import Columns

SCHEMA = pa.schema(
    [
        ("arm", pa.string()),
        ("m", pa.int64()),
        ("nn", pa.int64()),
        ("n", pa.int64()),
        ("replicate", pa.int64()),
        ("scorer", pa.string()),
        ("edges_true", pa.int64()),
        ("edges", pa.int64()),
        ("max_parents", pa.int64()),
        ("shd", pa.int64()),
        ("shd_best", pa.int64()),
        ("shd_worst", pa.int64()),
        ("shd_forward", pa.int64()),
        ("shd_backward", pa.int64()),
        ("shd_cpdag", pa.int64()),
        ("missing", pa.int64()),
        ("extra", pa.int64()),
        ("reversed", pa.int64()),
        ("reversed_best", pa.int64()),
        ("reversed_worst", pa.int64()),
        ("reversed_forward", pa.int64()),
        ("reversed_backward", pa.int64()),
        ("score", pa.float64()),
        ("score_true", pa.float64()),
        ("rank_best", pa.int64()),
        ("rank_mid", pa.float64()),
        ("rank_worst", pa.int64()),
        ("dags", pa.int64()),
        ("varsortability", pa.float64()),
        ("r2_sortability", pa.float64()),
        ("error", pa.string()),
    ]
)

COORDINATES = ("arm", "m", "nn", "n", "replicate", "scorer")
# What a trial gives, beside its coordinates.
VALUES = tuple(name for name in SCHEMA.names if name not in COORDINATES)

Values = tuple[Any, ...]

# What the numbers of a trial depend on beside the score: a change in any of these makes new keys.
ENGINE = (
    *("scorers.base", "scorers.masks", "scorers.moments", "scorers.determinants", "scorers.families", "scorers.large"),
    *("scorers.network", "search.dags", "search.ties", "search.kernels", "search.large", "search.chunked", "search.dp"),
    *("search.exhaustive", "search.chunk_kernels", "search.tie_kernels", "search.workspace"),
    *("benchmark.design", "benchmark.streams", "benchmark.generate", "benchmark.metrics", "benchmark.sortability"),
    "benchmark.trial",
)
LIBRARIES = ("numpy", "scipy", "numba")


@dataclass(frozen=True)
class Pieces:
    """The finished trials of one cell under one score, and the folder that keeps them under their key."""

    folder: Path

    def load(self) -> dict[int, Values]:
        """What is there, by replicate. A file that is not whole, or not of this key, is set aside."""
        found: dict[int, Values] = {}
        for file in sorted(self.folder.glob("*.json")):
            checksum, _, body = file.read_text(encoding="utf-8", errors="replace").partition("\n")
            if self._checksum(body) == checksum:
                found |= values_of(json.loads(body))
            else:
                with suppress(FileNotFoundError):  # another run has done so
                    file.rename(_free_name(file.with_suffix(".damaged")))
        return found

    def save(self, columns: Columns) -> None:
        """Keep what finished trials gave, in one file."""
        body = json.dumps(columns)
        checksum = self._checksum(body)
        file = self.folder / f"{columns['replicate'][0]:06d}-{checksum[:8]}.json"
        write_whole(file, f"{checksum}\n{body}".encode(), sync=False)

    def _checksum(self, body: str) -> str:
        return hashlib.sha256(f"{self.folder.name}\n{body}".encode()).hexdigest()


def score_key(config: Mapping[str, Any]) -> str:
    """What stands for a score in the store: its config, and the source of all it is made of."""
    content = {"scorer": dict(config), "source": [_sources(target) for target in _targets(config)]}
    return _digest(content)


def pieces(store: Path, study: Study, cell: Cell, score: str) -> Pieces:
    """Where the trials of a cell under a score, given by its key, are kept. No name is in the key."""
    content = {
        "seed": study.seed,
        "cell": asdict(cell),
        "design": study.design.settings(),
        "search": asdict(study.search),
        "score": score,
        "engine": _engine(),
    }
    return Pieces(store / _digest(content))


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def values_of(columns: Columns) -> dict[int, Values]:
    """The values of each trial, in the order of `VALUES`, by replicate."""
    nothing = [None] * len(columns["replicate"])
    rows = zip(*(columns.get(name, nothing) for name in VALUES), strict=True)
    return dict(zip(columns["replicate"], rows, strict=True))


def table_of(rows: Iterable[Values]) -> pa.Table:
    """Rows of coordinates and values, in the order of COORDINATES and VALUES, as a table."""
    columns = zip(*rows, strict=True)
    named = dict(zip((*COORDINATES, *VALUES), columns, strict=True))
    return pa.Table.from_arrays([_column(named[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values, of which some may be None, as a column: `pa.array` would import pandas, which takes longer."""
    valid = np.array([value is not None for value in values], dtype=bool)
    if kind == pa.string():
        texts = [value.encode() if value is not None else b"" for value in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        content = [pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    else:
        content = [
            pa.py_buffer(np.array([value if value is not None else 0 for value in values], kind.to_pandas_dtype()))
        ]
    missing = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [missing, *content])


def write_records(table: pa.Table, file: Path) -> None:
    """Write a table to a Parquet file; the same rows give the same bytes."""
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    write_whole(file, buffer.getvalue().to_pybytes())


def keep_other_results(folder: Path, table: pa.Table) -> Path | None:
    """Move a results folder aside if the new table would lose any of its rows; return where it went.

    A failed row may go when its trial has not failed now. A file that cannot be read is kept aside, too.
    """
    file = folder / "records.parquet"
    if not file.exists():
        return None
    try:
        old = pq.read_table(file)
    except pa.ArrowInvalid:
        old = None
    if old is not None and old.schema.equals(SCHEMA) and (old.equals(table) or _loses_nothing(old, table)):
        return None
    aside = _free_name(folder)
    folder.rename(aside)
    return aside


def _loses_nothing(old: pa.Table, new: pa.Table) -> bool:
    rows = new.to_pylist()
    kept = {tuple(row.values()) for row in rows}
    mended = {tuple(row[key] for key in COORDINATES) for row in rows if row["error"] is None}
    return all(
        tuple(row.values()) in kept or (row["error"] and tuple(row[key] for key in COORDINATES) in mended)
        for row in old.to_pylist()
    )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time: others that want the same folder wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_whole(file: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file so that it is there as a whole or not at all, with `sync` also if the power fails."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as handle:
            handle.write(content)
            if sync:
                handle.flush()
                os.fsync(handle.fileno())
        temporary.replace(file)
    except OSError as error:
        error.filename = error.filename or str(file)  # a disk that is full does not say so
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _free_name(path: Path) -> Path:
    """The first of path.1, path.2, … that is not taken."""
    return next(name for i in count(1) if not (name := path.with_name(f"{path.name}.{i}")).exists())


def _targets(config: Mapping[str, Any]) -> list[str]:
    """The config's target, and those of what it is made of."""
    inner = [target for value in config.values() if isinstance(value, Mapping) for target in _targets(value)]
    return [config["_target_"], *inner] if "_target_" in config else inner


def _sources(target: str) -> dict[str, str]:
    """The hashes of the file that defines a config's target and, in turn, of all it imports that is not installed."""
    module, _, name = target.rpartition(".")
    defined = getattr(importlib.import_module(module), name)
    hashes: dict[str, str] = {}
    waiting = [getattr(defined, "__module__", module)]  # not the package that only offers it
    while waiting:
        name = waiting.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in hashes or file is None or not file.endswith(".py") or _installed(file):
            continue
        source = Path(file).read_bytes()
        hashes[name] = hashlib.sha256(source).hexdigest()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return hashes


def _installed(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package, whose versions are in the key."""
    return any(Path(file).is_relative_to(path) for path in set(sysconfig.get_paths().values()))


@cache
def _engine() -> str:
    """The hash of all code, ours and others', that the numbers of a trial depend on."""
    parts = [Path(str(importlib.import_module(module).__file__)).read_bytes() for module in ENGINE]
    parts += [importlib.import_module(library).__version__.encode() for library in LIBRARIES]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
