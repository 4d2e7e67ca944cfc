"""Results are data: reading them runs no code, and names in them are neither paths nor markup."""

import ast
import json
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmark.records import Pieces
from benchmark.tables import write_table
from tests.mishaps import STUDY, do
from tests.test_analyse import tidy

ROOT = Path(__file__).parent.parent
# What would run code that is hidden in a file.
RUNNING = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "runpy",
    "yaml",
    "eval",
    "exec",
    "read_pickle",
}
HOSTILE = ["../../../evil", "<b>bold</b>", r"\input{x} 50% & a_b", "a|b\n\nc"]


class Payload:
    """Something that writes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, (f"open({str(self.mark)!r}, 'w').close()",)


@pytest.mark.parametrize("file", sorted(ROOT.glob("benchmark/*.py")), ids=lambda file: file.stem)
def test_nothing_is_used_that_would_run_what_it_reads(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            assert RUNNING.isdisjoint(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in RUNNING
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert called not in RUNNING
            assert not any(keyword.arg == "allow_pickle" for keyword in node.keywords)


def test_a_planted_piece_is_set_aside(tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    place = Pieces(tmp_path / "key")
    place.folder.mkdir()
    planted = {
        "a.json": pickle.dumps(Payload(mark)),
        "b.json": b"0" * 64 + b"\n" + pickle.dumps(Payload(mark), protocol=0),
        "c.json": b"0" * 64 + b"\n" + json.dumps({"replicate": [0], "shd": [0]}).encode(),
    }
    for name, content in planted.items():
        (place.folder / name).write_bytes(content)
    assert place.load() == {}
    assert {file.name for file in place.folder.iterdir()} == {f"{name[0]}.damaged.1" for name in planted}
    assert not mark.exists()
    pickle.loads(planted["a.json"])  # it would have been seen
    assert mark.exists()


def test_results_of_a_stranger(tmp_path: Path) -> None:
    """Their pickle is no table; their names are escaped; the scores that they name are not looked for."""
    quick = [*STUDY, "design.replicates=2", "scorers=[aic,bic,rnml,mdl]", "parallel=serial"]
    results = tmp_path / "a" / "b" / "results"
    do(*quick, f"results_dir={results}")
    file, manifest = results / "smoke" / "records.parquet", results / "smoke" / "manifest.json"
    changed = json.loads(manifest.read_text())
    changed["config"]["scorers"]["bic"]["_target_"] = "no.such.module"
    manifest.write_text(json.dumps(changed))
    records = pq.read_table(file)
    names = ["aic", *HOSTILE[:2], "rnml"]
    of = dict(zip(["aic", "bic", "mdl", "rnml"], names, strict=True))
    column = pa.array([of[name] for name in records["scorer"].to_pylist()])
    pq.write_table(records.set_column(records.schema.get_field_index("scorer"), "scorer", column), file)
    do(*quick, f"results_dir={results}", "stages=[analyse]")
    tables = {table.name.removesuffix(".csv") for table in (results / "smoke" / "tables").iterdir()}
    assert {"shd_..%2F..%2F..%2Fevil_minus_rnml", "shd_%3Cb%3Ebold%3C%2Fb%3E_minus_rnml"} <= tables
    written = [each for each in tmp_path.rglob("*") if each.is_file() and not each.is_relative_to(results)]
    assert written == []

    mark = tmp_path / "it ran"
    stolen = pickle.dumps(Payload(mark))
    file.write_bytes(stolen)
    do(*quick, f"results_dir={results}")
    assert (results / "smoke.1" / "records.parquet").read_bytes() == stolen
    assert not mark.exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_escaped(tmp_path: Path, name: str) -> None:
    frame = tidy({name: [1, 2]})[["scorer", "shd"]].set_index("scorer")
    write_table(frame.rename(columns={"shd": name}), tmp_path / "table")
    markdown, latex = ((tmp_path / f"table.{kind}").read_text() for kind in ("md", "tex"))
    assert len(markdown.splitlines()) == 4
    assert all(line.replace(r"\|", "").count("|") == 3 for line in markdown.splitlines())
    assert "<b>" not in markdown
    rows = latex.splitlines()
    assert len(rows) == 8
    assert all(re.sub(r"\\&", "", row).count("&") == 1 for row in (rows[2], rows[4], rows[5]))
    for command in (r"\input", "50%", "a_b"):
        assert command not in latex


@pytest.mark.parametrize("name", ["../../x", "..", ".store", "a/b", "/etc/x", ""])
def test_no_experiment_leaves_the_results_folder(tmp_path: Path, name: str) -> None:
    said = do(*STUDY, f"name={json.dumps(name)}", f"results_dir={tmp_path}", code=1)
    assert "plain name of a folder" in said
    assert list(tmp_path.iterdir()) == []


def test_no_experiment_is_looked_for_outside_the_configs(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("# @package _global_\nname: x\n")
    said = do("+experiment=../../x", f"results_dir={tmp_path / 'results'}", code=1)
    assert "experiments: " in said
    assert not (tmp_path / "results").exists()


def test_a_sweep_over_paths_stays_in_the_results_folder(tmp_path: Path) -> None:
    results = tmp_path / "a" / "results"
    values = "+scorers.mine._target_=scorers.BIC,tests.mishaps.Slow", "analysis.over=../../x"
    do("-m", *STUDY, "design.replicates=1", "parallel=serial", *values, f"results_dir={results}")
    folders = {file.parent for file in tmp_path.rglob("records.parquet")}
    assert len(folders) == 2
    assert {folder.parent for folder in folders} == {results}
