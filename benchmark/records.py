"""What each trial found, kept so that nothing finished is lost and nothing is computed twice.

Finished trials of one cell under one score are *pieces* in a store that all experiments share: small files under
`store/<key>/`, where the key is a hash of everything that determines the numbers (seed, cell, design, search, score,
its options and source, the source of the kernels, the versions of the numerical libraries). A piece begins with the
checksum of the rest: a truncated or foreign file is recognised, set aside, and its trials are computed again. Files
are written under another name and then renamed. `records.parquet` is made from the pieces, in the order of the design.
"""

import hashlib
import importlib
import inspect
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmark.design import Cell, Study
from benchmark.trial import Row

SCHEMA = pa.schema(
    [
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
        ("shd_cpdag", pa.int64()),
        ("missing", pa.int64()),
        ("extra", pa.int64()),
        ("reversed", pa.int64()),
        ("score", pa.float64()),
        ("score_true", pa.float64()),
        ("rank_best", pa.int64()),
        ("rank_mid", pa.float64()),
        ("rank_worst", pa.int64()),
        ("dags", pa.int64()),
        ("error", pa.string()),
    ]
)

# What the numbers of a trial depend on beside the score: a change in any of these makes new keys.
ENGINE = (
    *("scorers.base", "scorers.moments", "scorers.families", "scorers.network"),
    *("search.dags", "search.ties", "search.kernels", "search.dp", "search.exhaustive"),
    *("benchmark.design", "benchmark.generate", "benchmark.metrics", "benchmark.trial"),
)
LIBRARIES = ("numpy", "scipy", "numba")


@dataclass(frozen=True)
class Pieces:
    """The finished trials of one cell under one score."""

    folder: Path

    def load(self) -> dict[int, Row]:
        """The rows that are there, by replicate. A file that is not whole is set aside."""
        rows: dict[int, Row] = {}
        for file in sorted(self.folder.glob("*.json")):
            checksum, _, body = file.read_text(encoding="utf-8", errors="replace").partition("\n")
            if hashlib.sha256(body.encode()).hexdigest() != checksum:
                file.rename(_free_name(file.with_suffix(".damaged")))
                continue
            rows |= {row["replicate"]: row for row in json.loads(body)}
        return rows

    def save(self, rows: Sequence[Row]) -> None:
        """Keep the rows of finished trials. Failed ones are not kept: the next run tries them again."""
        rows = [row for row in rows if row.get("error") is None]
        if rows:
            self.folder.mkdir(parents=True, exist_ok=True)
            body = json.dumps(rows)
            checksum = hashlib.sha256(body.encode()).hexdigest()
            write_whole(
                self.folder / f"{rows[0]['replicate']:06d}-{checksum[:8]}.json",
                f"{checksum}\n{body}".encode(),
                sync=False,
            )


def pieces(store: Path, study: Study, cell: Cell, scorer: Mapping[str, Any]) -> Pieces:
    """Where the trials of a cell under a score, given by its config, are kept."""
    content = {
        "seed": study.seed,
        "cell": asdict(cell),
        "design": study.design.settings(),
        "search": asdict(study.search),
        "scorer": dict(scorer),
        "source": _source_of_target(scorer["_target_"]),
        "engine": _engine(),
    }
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]
    return Pieces(store / key)


def write_records(rows: Iterable[Row], file: Path) -> None:
    """Write rows to a Parquet file; the same rows give the same bytes."""
    rows = list(rows)
    columns = {name: [row.get(name) for row in rows] for name in SCHEMA.names}
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=SCHEMA), buffer, compression="zstd")
    write_whole(file, buffer.getvalue().to_pybytes())


def keep_other_results(folder: Path, rows: Sequence[Row]) -> Path | None:
    """Move a results folder aside if its records are not among the new rows; return where it went."""
    file = folder / "records.parquet"
    if not file.exists():
        return None
    new = {tuple(row.get(name) for name in SCHEMA.names) for row in rows}
    old = pq.read_table(file)
    if old.schema.equals(SCHEMA) and all(tuple(row.values()) in new for row in old.to_pylist() if row["error"] is None):
        return None
    aside = _free_name(folder)
    folder.rename(aside)
    return aside


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
    finally:
        temporary.unlink(missing_ok=True)


def _free_name(path: Path) -> Path:
    """The first of path.1, path.2, … that is not taken."""
    return next(name for i in count(1) if not (name := path.with_name(f"{path.name}.{i}")).exists())


def _source_of_target(target: str) -> str:
    """The hash of the source file of what a config's `_target_` names."""
    module, _, name = target.rpartition(".")
    file = inspect.getsourcefile(getattr(importlib.import_module(module), name))
    assert file is not None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


@cache
def _engine() -> str:
    """The hash of all code, ours and others', that the numbers of a trial depend on."""
    parts = [Path(str(importlib.import_module(module).__file__)).read_bytes() for module in ENGINE]
    parts += [importlib.import_module(library).__version__.encode() for library in LIBRARIES]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
