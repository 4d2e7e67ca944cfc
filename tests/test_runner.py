"""The runner and its store, in this process: the same rows whatever the route, and nothing computed twice."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hydra.utils import instantiate
from rich.console import Console

from benchmark import runner
from benchmark.design import Design, Search, Study
from benchmark.records import (
    COORDINATES,
    SCHEMA,
    VALUES,
    _sources,
    keep_other_results,
    pieces,
    score_key,
    table_of,
    values_of,
    write_records,
)
from benchmark.runner import Outcome, run
from benchmark.trial import Columns, run_batches, run_trials
from benchmark.workers import ClusterError, WorkerDiedError, Workers
from scorers import Block
from scorers.base import Array

SHD = Study(3, Design(m=(6,), nn=(2, 3), n=(30, 100), replicates=20), Search("dp"))
RANK = Study(3, Design(m=(4,), nn=(), n=(30,), replicates=20, dags="uniform"), Search("exhaustive"))
SERIAL = Workers("serial", 1)


class Awkward:
    """Raises, or returns NaN, in about one trial of eight."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(self, f: Block) -> Array:
        if int(abs(f.ln_variance.sum()) * 1e6) % 8 == 0:
            if self.how == "raise":
                raise RuntimeError("no luck today")
            return f.ln_tau * float("nan")
        return f.n / 2 * f.ln_tau + f.k


AIC, BIC, RNML = ({"_target_": f"scorers.{name}"} for name in ("AIC", "BIC", "RNML"))


def do(store: Path, configs: Mapping[str, Mapping[str, Any]], *studies: Study, workers: Workers = SERIAL) -> Outcome:
    scorers = {name: instantiate(config) for name, config in configs.items()}
    return run(list(studies), configs, scorers, store, workers, Console(file=io.StringIO()))


def rows_of(outcome: Outcome) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = outcome.table.to_pylist()
    return rows


def test_a_table_is_what_pyarrow_makes_of_the_same_rows(tmp_path: Path) -> None:
    """Its columns are laid out by hand: with gaps, in none, in all, and text that is not ASCII."""
    examples: dict[pa.DataType, list[Any]] = {
        pa.int64(): [None, -3, 1 << 62],
        pa.float64(): [0.1, None, -1e300],
        pa.string(): ["τ̂", None, ""],
    }
    order = (*COORDINATES, *VALUES)
    columns = {name: examples[SCHEMA.field(name).type] * 7 for name in order}
    columns["m"], columns["nn"] = [8] * 21, [None] * 21
    table = table_of(zip(*columns.values(), strict=True))
    expected = pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)
    assert table.equals(expected)
    table.validate(full=True)
    for name, each in (("ours", table), ("theirs", expected)):
        write_records(each, tmp_path / name)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def file_of(outcome: Outcome, folder: Path) -> bytes:
    write_records(outcome.table, folder / "records.parquet")
    return (folder / "records.parquet").read_bytes()


@pytest.mark.parametrize("workers", [Workers("loky", 1), Workers("loky", 2)], ids=str)
def test_the_same_bytes_whoever_computes(tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"bic": BIC, "rnml": RNML}
    one = file_of(do(tmp_path / "a", scores, SHD, RANK), tmp_path)
    monkeypatch.setattr(runner, "BATCH_SECONDS", 0.001)  # many batches, in any order
    two = file_of(do(tmp_path / "b", scores, SHD, RANK, workers=workers), tmp_path)
    assert one == two
    again = do(tmp_path / "b", scores, SHD, RANK, workers=workers)
    assert again.computed == 0
    assert file_of(again, tmp_path) == one


def test_a_trial_gives_the_same_whatever_its_batch() -> None:
    """Alone, or with others that have the same parent cap or another one."""
    scorers = {name: instantiate(config) for name, config in {"bic": BIC, "rnml": RNML}.items()}
    for study in (SHD, RANK):
        cell = study.design.cells()[0]
        together = run_trials(study, cell, range(20), scorers)
        for name in scorers:
            of_trial = {r: row for columns in together[name] for r, row in values_of(columns).items()}
            for r in range(20):
                (alone,) = run_trials(study, cell, [r], {name: scorers[name]})[name]
                assert values_of(alone) == {r: of_trial[r]}


def test_rows_are_tidy_and_in_the_order_of_the_design(tmp_path: Path) -> None:
    rows = rows_of(do(tmp_path, {"bic": BIC, "rnml": RNML}, SHD, RANK))
    assert len(rows) == (4 * 20 + 20) * 2
    assert [row["scorer"] for row in rows[:4]] == ["bic", "rnml", "bic", "rnml"]
    assert all(list(row) == SCHEMA.names for row in rows)
    for row in rows[: 4 * 20 * 2]:
        assert row["shd"] == row["missing"] + row["extra"] + row["reversed"]
        assert row["shd_best"] <= row["shd"] <= row["shd_worst"]
        assert row["score"] <= row["score_true"] + 1e-9
        assert row["edges"] - row["edges_true"] == row["extra"] - row["missing"]
    for row in rows[4 * 20 * 2 :]:
        assert 1 <= row["rank_best"] <= row["rank_mid"] <= row["rank_worst"] <= row["dags"] == 543
        assert row["nn"] is None


def test_a_new_score_computes_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = do(tmp_path, {"bic": BIC, "aic": AIC}, SHD)
    asked: set[frozenset[str]] = set()

    def listen(batches: Sequence[tuple[Any, ...]]) -> list[tuple[int, dict[str, list[Columns]]]]:
        asked.update(frozenset(batch[4]) for batch in batches)
        return run_batches(batches)

    monkeypatch.setattr(runner, "run_batches", listen)
    after = do(tmp_path, {"bic": BIC, "rnml": RNML, "aic": AIC}, SHD)
    assert asked == {frozenset({"rnml"})}
    assert [row for row in rows_of(after) if row["scorer"] != "rnml"] == rows_of(before)


def test_more_replicates_and_cells_leave_the_first_as_they_were(tmp_path: Path) -> None:
    design = SHD.design
    few = do(tmp_path, {"bic": BIC}, SHD)
    more = Study(3, Design(m=(6,), nn=(2, 3, 4), n=(30, 100), replicates=40), Search("dp"))
    many = do(tmp_path, {"bic": BIC}, more)
    assert many.computed == 6 * 40 - 4 * 20
    kept = [row for row in rows_of(many) if row["nn"] in design.nn and row["replicate"] in range(20)]
    assert kept == rows_of(few)


@pytest.mark.parametrize(
    ("how", "reason"), [("raise", "RuntimeError: no luck today"), ("nan", "ValueError: The score")]
)
def test_a_score_that_fails_now_and_then(tmp_path: Path, how: str, reason: str) -> None:
    awkward = {"_target_": "tests.test_runner.Awkward", "how": how}
    outcome = do(tmp_path, {"bic": BIC, "awkward": awkward}, SHD)
    assert 0 < len(outcome.failures) < 80
    assert all(str(row["error"]).startswith(reason) and row["scorer"] == "awkward" for row in outcome.failures)
    assert all(row.get("shd") is None for row in outcome.failures)
    again = do(tmp_path, {"bic": BIC, "awkward": awkward}, SHD)
    assert again.computed == len(outcome.failures)  # tried again, and only those
    assert file_of(again, tmp_path) == file_of(outcome, tmp_path)


def test_workers_that_cannot_live_are_no_fault_of_the_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def dies(self: Workers, task: Any, arguments: Any) -> Iterator[Any]:
        asked.append(list(arguments))
        raise WorkerDiedError
        yield

    monkeypatch.setattr(Workers, "each", dies)
    with pytest.raises(ClusterError, match=r"end at once, with nothing to do.* parallel=serial"):
        do(tmp_path, {"bic": BIC}, SHD)
    assert len(asked) == 4


def test_anything_that_determines_the_numbers_changes_the_key(tmp_path: Path) -> None:
    cell = SHD.design.cells()[0]
    folders = {
        pieces(tmp_path, study, cell, score_key(scorer)).folder
        for study in (SHD, Study(4, SHD.design, SHD.search), Study(3, SHD.design, Search("dp", "none")))
        for scorer in (
            BIC,
            AIC,
            {"_target_": "scorers.RNMLPrintedC"},
            {"_target_": "scorers.RNMLPrintedC", "keep_k_squared": True},
        )
    }
    assert len(folders) == 12
    wider = Study(3, Design(m=(6, 8), nn=(2,), n=(30,), replicates=99), Search("dp"))
    assert pieces(tmp_path, wider, cell, score_key(BIC)) == pieces(tmp_path, SHD, cell, score_key(BIC))
    louder = Study(3, Design(m=(6,), nn=(2, 3), n=(30, 100), replicates=20, noise="unit"), Search("dp"))
    assert pieces(tmp_path, louder, cell, score_key(BIC)) != pieces(tmp_path, SHD, cell, score_key(BIC))


def test_the_source_of_a_score_is_part_of_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module, helper = tmp_path / "scores_of_mine.py", tmp_path / "help_of_mine.py"
    module.write_text("from help_of_mine import C\n\ndef mine(f):\n    return C * f.ln_tau\n")
    helper.write_text("C = 1\n")
    config = {"_target_": "scores_of_mine.mine"}
    first = pieces(tmp_path, SHD, SHD.design.cells()[0], score_key(config))
    helper.write_text("C = 2\n")
    second = pieces(tmp_path, SHD, SHD.design.cells()[0], score_key(config))
    module.write_text("from help_of_mine import C\n\ndef mine(f):\n    return -C * f.ln_tau\n")
    third = pieces(tmp_path, SHD, SHD.design.cells()[0], score_key(config))
    assert len({each.folder for each in (first, second, third)}) == 3


def test_the_source_of_what_a_score_is_made_of_is_part_of_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    config = {"_target_": "scorers.WithoutIntercept", "scorer": {"_target_": "inner_of_mine.Inner"}}
    folders = set()
    for c in "12":
        (tmp_path / "inner_of_mine.py").write_text(
            f"class Inner:\n    def __call__(self, f):\n        return {c} * f.k\n"
        )
        folders.add(pieces(tmp_path, SHD, SHD.design.cells()[0], score_key(config)).folder)
    assert len(folders) == 2


def test_the_source_of_one_score_is_not_that_of_another() -> None:
    assert set(_sources("scorers.BIC")) == {"scorers.bic", "scorers.base"}


def test_one_score_under_two_names(tmp_path: Path) -> None:
    twice = {"one": BIC, "two": BIC}
    first, second = do(tmp_path, twice, SHD), do(tmp_path, twice, SHD)
    assert second.computed == 0
    assert first.table.equals(second.table)
    assert [row["scorer"] for row in rows_of(second)[:2]] == ["one", "two"]


def test_a_piece_of_another_key_is_not_taken(tmp_path: Path) -> None:
    whole = do(tmp_path, {"aic": AIC, "bic": BIC}, SHD)
    aic, bic = (pieces(tmp_path, SHD, SHD.design.cells()[0], score_key(each)).folder for each in (AIC, BIC))
    for file in aic.glob("*.json"):
        file.unlink()
    for file in bic.glob("*.json"):
        (aic / file.name).write_bytes(file.read_bytes())
    again = do(tmp_path, {"aic": AIC, "bic": BIC}, SHD)
    assert again.computed == 20
    assert again.table.equals(whole.table)


def test_data_that_cannot_be_fitted_are_rows_with_a_reason(tmp_path: Path) -> None:
    """n = 5 samples, and sometimes four parents."""
    outcome = do(tmp_path, {"bic": BIC}, Study(3, Design(m=(8,), nn=(5,), n=(5,), replicates=20), Search("dp")))
    assert len(outcome.table) == 20
    assert any("n > k is needed" in str(row["error"]) for row in outcome.failures)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "changed", "empty"])
def test_a_damaged_piece_is_set_aside_and_computed_again(tmp_path: Path, damage: str) -> None:
    whole = do(tmp_path, {"bic": BIC}, SHD)
    file = next(tmp_path.rglob("*.json"))
    content = file.read_bytes()
    lost = len(json.loads(content.partition(b"\n")[2])["replicate"])
    file.write_bytes(
        {
            "truncated": content[:-20],
            "foreign": b"\x00\xff not ours",
            "changed": content.replace(b'"shd": [', b'"shd": [1', 1),
            "empty": b"",
        }[damage]
    )
    again = do(tmp_path, {"bic": BIC}, SHD)
    assert again.computed == lost
    assert again.table.equals(whole.table)
    assert len(list(tmp_path.rglob("*.damaged.1"))) == 1


def test_results_of_other_settings_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    first = do(tmp_path / "store", {"bic": BIC, "aic": AIC}, SHD)
    write_records(first.table, folder / "records.parquet")
    more = do(tmp_path / "store", {"bic": BIC, "aic": AIC, "rnml": RNML}, SHD)
    assert keep_other_results(folder, more.table) is None  # nothing would be lost
    fewer = do(tmp_path / "store", {"bic": BIC}, SHD)
    before = (folder / "records.parquet").read_bytes()
    aside = keep_other_results(folder, fewer.table)
    assert aside == tmp_path / "study.1"
    assert (aside / "records.parquet").read_bytes() == before
    assert not folder.exists()
    folder.mkdir()
    (folder / "records.parquet").write_bytes(b"not Parquet at all")
    assert keep_other_results(folder, fewer.table) == tmp_path / "study.2"


def test_failed_rows_may_go_when_their_trials_succeed(tmp_path: Path) -> None:
    table = do(tmp_path / "store", {"bic": BIC}, SHD).table
    first = {key: value if key in COORDINATES else None for key, value in table.to_pylist()[0].items()}
    failed = pa.Table.from_pylist([first | {"error": "bad luck"}, *table.to_pylist()[1:]], schema=SCHEMA)
    write_records(failed, tmp_path / "study" / "records.parquet")
    assert keep_other_results(tmp_path / "study", table) is None
    assert keep_other_results(tmp_path / "study", table.slice(1)) == tmp_path / "study.1"
