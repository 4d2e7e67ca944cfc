"""Certificates of the scores that an experiment used, measured once and kept beside the finished trials.

A certificate is kept as JSON under a hash of all that determines it: the score's config and source, the code that
measures, the versions of the numerical libraries. Reading one runs no code; one that cannot be read is measured again.
"""

import json
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmark.records import LIBRARIES, score_key, write_whole
from scorers import BIC, Families, Scorer, certify, score_table
from scorers.certify import ADVICE


def certificate(store: Path, config: Mapping[str, Any], scorer: Scorer) -> pd.DataFrame | str:
    """What `scorers.certify` says of a score, from the store or measured now; the reason in words if it fails.

    Parameters
    ----------
    store : Path
        The store of finished trials; certificates are in a folder of it.
    config : mapping
        The score's config, with its `_target_`.
    scorer : Scorer
        The score.
    """
    key = score_key(
        {"_target_": "scorers.certify", "scorer": dict(config)} | {name: version(name) for name in LIBRARIES}
    )
    file = store / "certificates" / f"{key}.json"
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["key"] == key:
            return pd.DataFrame(kept["properties"]).set_index("property")
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        pass  # not there yet, or damaged: it is measured, and written as a whole
    try:
        table = certify(scorer)
    except Exception as error:  # whatever a score raises: the report says so
        return f"{type(error).__name__}: {error}"
    properties = json.loads(table.reset_index().to_json(orient="records", double_precision=15))
    write_whole(file, json.dumps({"key": key, "properties": properties}, indent=1).encode())
    return pd.DataFrame(properties).set_index("property")


def seconds_over_bic(scorer: Scorer) -> float:
    """How long a score takes for all families of 14 nodes, in units of what BIC takes; families not included."""
    data = np.random.default_rng(0).normal(1, 1, (500, 14))
    families = Families.of(data)

    def seconds(score: Scorer) -> float:
        taken = []
        for _ in range(7):
            start = time.perf_counter()
            score_table(families, score)
            taken.append(time.perf_counter() - start)
        return float(np.median(taken))

    return seconds(scorer) / seconds(BIC())


def show_certificate(name: str, found: pd.DataFrame | str, scorer: Scorer, console: Console) -> bool:
    """Print a certificate with advice in words; whether there is one."""
    if isinstance(found, str):
        console.print(f"{name} has no certificate. {found}")
        return False
    table = Table("property", "", "seen", title=name, box=SIMPLE, title_justify="left")
    for key, row in found.iterrows():
        table.add_row(str(key), "yes" if row["holds"] else "no", f"{row['evidence']}: {row['violation']:.2g}")
    console.print(table)
    for key in found.index[~found["holds"].astype(bool)]:
        console.print(f"not {key}: {ADVICE[key]}.")
    console.print(f"It takes {seconds_over_bic(scorer):.1f} × the time of BIC.")
    return True
