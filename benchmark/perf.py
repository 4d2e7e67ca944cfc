"""Speed of the kernels: `python -m benchmark.perf`.

Machines differ and are shared, so what counts are the ratios, each taken within one run: to `np.log` over an array
of the table's size, and of each m to the one before.
"""

import time
from collections.abc import Callable

import numpy as np

from scorers import BIC, RNML, Families, Scorer, score_table


def seconds(task: Callable[[], object], least: float = 0.3) -> float:
    """Median time of a task, warm: repeated for `least` seconds and five times at least."""
    task()
    times: list[float] = []
    while sum(times) < least or len(times) < 5:
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def families(m: int, scorer: Scorer) -> tuple[float, float]:
    """Seconds for the families of m nodes and the table of one score, and for `np.log` over such a table."""
    rng = np.random.default_rng(m)
    data = rng.normal(1, 1, (500, m)) @ rng.normal(size=(m, m))
    table = np.empty((m, 1 << (m - 1)))
    positive = rng.uniform(0.1, 1, table.shape)
    took = seconds(lambda: score_table(Families.of(data), scorer, out=table))
    return took, seconds(lambda: np.log(positive, out=table))


def print_families() -> None:
    """Families and one table against `np.log`, and how they grow with m."""
    print("families and the table of one score, n = 500, one thread; growth is the ratio to m − 1")
    for scorer in (BIC(), RNML()):
        before = float("nan")
        for m in range(15, 21):
            took, log = families(m, scorer)
            print(f"m = {m}  {scorer!r:7} {took * 1e3:7.2f} ms  {took / log:5.2f} × np.log  growth {took / before:.2f}")
            before = took


if __name__ == "__main__":
    print_families()
