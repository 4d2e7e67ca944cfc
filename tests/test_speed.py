"""What `benchmark.speed` counts as compiled: it is found, counted once, changes no number, and is put back."""

import time

from benchmark import generate, speed, trial
from benchmark.design import Cell
from benchmark.streams import streams
from search import tie_kernels


def test_compiled_code_is_timed_and_put_back() -> None:
    cell = Cell(8, 2, 50)
    before = trial.run_trials(speed.study(8, 3), cell, range(3), speed.SCORERS)
    solve = tie_kernels.solve
    with speed.compiled_timed() as (clock, timed):
        assert tie_kernels.solve is not solve
        scorers = {name: timed(scorer) for name, scorer in speed.SCORERS.items()}
        start = time.perf_counter()
        assert trial.run_trials(speed.study(8, 3), cell, range(3), scorers) == before
        assert 0 < clock[0] < time.perf_counter() - start

        drawn = clock[0]
        next(vars(generate)["streams"](speed.study(8, 3), cell, [0], "data")).standard_normal(100_000)
        assert clock[0] > drawn

        clock[0], start = 0.0, time.perf_counter()
        timed(lambda: timed(time.sleep)(0.1))()
        assert 0.1 <= clock[0] <= time.perf_counter() - start  # not twice
    assert tie_kernels.solve is solve
    assert vars(generate)["streams"] is vars(trial)["streams"] is streams
