"""The report: complete, self-contained, escaped, and legible in a browser at desktop and phone width."""

import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmark.__main__ import CONF
from benchmark.certificates import certificate
from benchmark.report import draw_figures, gaps, write_analysis
from scorers import BIC
from tests.synthetic import RANK_CELLS, SHD_CELLS, Cell, draw, manifest

SETTINGS = {"baseline": "rnml", "over": "mdl", "best_of": ["aic", "bic"], "reading": "cell"}
CLAIMS = CONF / "claims" / "paper.yaml"
FOUR = {"aic": 9.0, "bic": 8.0, "mdl": 7.5, "rnml": 7.0}
TWO: list[Cell] = [(6, 2, 50), (6, 2, 500)]
OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=10000"),
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def report(folder: Path, records: pd.DataFrame, made: dict[str, Any], certificates: Any = None) -> str:
    records.to_parquet(folder / "records.parquet")
    write_analysis(
        *(folder, records, made, SETTINGS, CLAIMS, certificates or {}),
        figures=lambda: draw_figures(folder, folder / "records.parquet", SETTINGS),
    )
    return (folder / "report.html").read_text()


def fail(records: pd.DataFrame, rows: "pd.Series[bool]", error: str) -> None:
    """Let some trials have failed."""
    for name in ("shd", "shd_best", "shd_worst", "missing", "extra", "reversed"):
        records[name] = records[name].mask(rows)
    records["error"] = records["error"].mask(rows, error)


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything in it: all cells of the paper, and a score that failed."""
    rng = np.random.default_rng(0)
    widths = {"aic": 0.5, "bic": 1.0, "mdl": 1.0}
    ranks = {name: 50 * value for name, value in FOUR.items()}
    records = pd.concat(
        [draw(SHD_CELLS, FOUR, 6, rng, widths=widths), draw(RANK_CELLS, ranks, 6, rng, rank=True, widths=widths)]
    )
    broken = (records["scorer"] == "aic") & (records["m"] == 15) & (records["replicate"] == 0)
    fail(records, broken, "ValueError: " + "a long word " * 20 + "and_one_without_any_place_to_break_" * 5)
    folder = tmp_path_factory.mktemp("paper")
    rows = {"holds": [True, False], "violation": [0.0, 3.25], "cases": [60, 60], "evidence": ["change", "missed"]}
    found = pd.DataFrame(rows, index=["score-equivalent", "consistent"])
    certificates = {"bic": found, "mdl": found, "rnml": "ValueError: it would not"}
    report(folder, records, manifest([*SHD_CELLS, *RANK_CELLS], list(FOUR), 6), certificates)
    return folder / "report.html"


class References(HTMLParser):
    """Everything that a page refers to, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for key, value in attrs:
            if key in ("src", "href", "srcset", "action", "data", "poster", "xlink:href"):
                self.found.append(value or "")
            elif key == "style":
                self.found += re.findall(r"url\(([^)]*)\)", value or "")


def test_the_page_loads_nothing_and_runs_nothing(paper: Path) -> None:
    text = paper.read_text()
    page = References()
    page.feed(text)
    assert sum(each.startswith("data:image/svg+xml;base64,") for each in page.found) == 6
    assert all(each.startswith(("data:image/svg+xml;base64,", "#")) for each in page.found)
    assert not {"script", "link", "iframe", "object", "embed"} & set(page.tags)
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    targets = {each[1:] for each in page.found if each.startswith("#")}
    assert all(f'id="{target}"' in text for target in targets)


def test_the_page_says_what_was_found(paper: Path) -> None:
    text = re.sub(r"\s+", " ", paper.read_text().replace("\u00a0", " "))
    for words in (
        "258 data sets in 43 cells, each given to 4 scores: aic, bic, mdl, rnml.",
        "Missing results: 9, of which 9 because a score failed.",
        "In the mean over 27 cells the SHD (random ties) is ",
        "The first two differ by 0.50 [",
        "which is settled at 95 %.",
        "At m = 4 and n = 5000 the rank of the truth (mid ties) is 350.00 for rnml",
        "Contradicted if measured − printed differs from zero.",
        "the paper&#39;s Figure 2",
        "no certificate: ValueError: it would not",
        "python -m benchmark +experiment=synthetic &#39;scorers=[bic,rnml]&#39;",
        "0.7333",
    ):
        assert words in text, words
    assert "nan" not in re.sub(r"data:image[^\"]*", "", text).lower().replace("dominant", "")
    files = {file.name for file in (paper.parent / "tables").iterdir()}
    assert {"claims.csv", "claims.md", "claims.tex", "claims.json", "table_1.csv", "mean_shd.md"} <= files
    ledger = {each["id"]: each for each in json.loads((paper.parent / "tables" / "claims.json").read_text())}
    found = ledger["shd-rnml-smallest"]["findings"]
    assert found["random"]["verdict"] == "reproduced"
    assert found["best"]["value"] == pytest.approx(7.5 - 1 - 7)


def test_what_configs_and_data_say_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>|&_%"
    records = draw(TWO, {"rnml": 5.0, evil: 6.0}, 3, np.random.default_rng(1))
    fail(records, pd.Series(records.index == 0), "</td><img src=x onerror=alert(1)>")
    made = manifest(TWO, ["rnml", evil], 3)
    made["command"] = ["python", "<b>"]
    text = report(tmp_path, records, made)
    page = References()
    page.feed(text)
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert all(each.startswith(("data:", "#")) for each in page.found)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;|&amp;_%" in text
    assert all(file.parent == tmp_path / "tables" for file in (tmp_path / "tables").rglob("*.csv"))
    latex = (tmp_path / "tables" / "mean_shd.tex").read_text()
    assert r"|\&\_\%" in latex
    lines = (tmp_path / "tables" / "mean_shd.md").read_text().splitlines()
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_gaps_by_hand() -> None:
    records = draw(TWO, {"bic": 3.0, "rnml": 2.0}, 4, np.random.default_rng(2))
    made = manifest(TWO, ["bic", "rnml", "mdl"], 4)
    records = records.query("not (n == 50 and scorer == 'bic' and replicate > 1)").copy()
    fail(records, (records["n"] == 500) & (records["replicate"] == 3), "no luck")
    found = gaps(records, made).set_index(["cell", "scorer"])[["expected", "finished", "failed"]]
    assert found.to_dict("index") == {
        ("m = 6, nn = 2, n = 50", "bic"): {"expected": 4, "finished": 2, "failed": 0},
        ("m = 6, nn = 2, n = 50", "mdl"): {"expected": 4, "finished": 0, "failed": 0},
        ("m = 6, nn = 2, n = 500", "bic"): {"expected": 4, "finished": 3, "failed": 1},
        ("m = 6, nn = 2, n = 500", "rnml"): {"expected": 4, "finished": 3, "failed": 1},
        ("m = 6, nn = 2, n = 500", "mdl"): {"expected": 4, "finished": 0, "failed": 0},
    }
    assert gaps(draw(TWO, {"bic": 3.0}, 4, np.random.default_rng(2)), manifest(TWO, ["bic"], 4)).empty


@pytest.mark.parametrize("left", ["scorer == 'bic'", "n == 50", "replicate == 0", "replicate < 0"])
def test_partial_records_give_a_report(tmp_path: Path, left: str) -> None:
    """A score, a cell, one trial, or nothing at all."""
    records = draw(TWO, FOUR, 3, np.random.default_rng(3)).query(left)
    text = report(tmp_path, records, manifest(TWO, list(FOUR), 3))
    assert "What is missing" in text
    assert "None of the paper&#39;s claims can be tested" in text


def test_records_in_which_everything_failed(tmp_path: Path) -> None:
    records = draw(TWO, FOUR, 2, np.random.default_rng(4))
    fail(records, records["replicate"] >= 0, "ValueError: no")
    text = report(tmp_path, records, manifest(TWO, list(FOUR), 2))
    assert "There is nothing to draw" in text
    assert "Missing results: 16, of which 16 because a score failed." in text


def test_certificates_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"_target_": "scorers.BIC"}
    first = certificate(tmp_path, config, BIC())
    assert isinstance(first, pd.DataFrame)
    assert first.loc["score-equivalent", "holds"]
    monkeypatch.setattr("benchmark.certificates.certify", lambda scorer: 1 / 0)
    again = certificate(tmp_path, config, BIC())
    assert isinstance(again, pd.DataFrame)
    pd.testing.assert_frame_equal(first, again)
    (file,) = (tmp_path / "certificates").glob("*.json")
    file.write_text(file.read_text()[:100])  # a damaged one is measured again, which fails here
    assert certificate(tmp_path, config, BIC()) == "ZeroDivisionError: division by zero"


# Runs in the page: what is broader than its box, outside the boxes that scroll by design, or beyond the window.
CHECK = """<script>
const outside = [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && !e.closest('pre'));
const cut = outside.filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0
  && getComputedStyle(e).display !== 'inline');
const beyond = outside.filter(e => e.getBoundingClientRect().right > innerWidth + 1);
const boxes = [...document.querySelectorAll('.scroll')].filter(e => getComputedStyle(e).overflowX !== 'auto');
const inside = [...document.querySelectorAll('.scroll td, .scroll th')].filter(e => e.scrollWidth > e.clientWidth + 1);
addEventListener('load', () => parent.postMessage(JSON.stringify({
  window: innerWidth, page: document.documentElement.scrollWidth,
  wrong: [...cut, ...beyond, ...boxes, ...inside, ...[...document.images].filter(e => e.naturalWidth === 0)]
    .map(e => e.tagName + ' ' + e.textContent.slice(0, 60)),
}), '*'));
</script>"""
# The page in a frame, because a browser's own window cannot be as narrow as a phone.
FRAME = """<script>
addEventListener('message', e => { document.getElementById('found').textContent = e.data; });
</script>
<pre id="found"></pre><iframe src="checked.html" style="width: {width}px; height: 1000px; border: 0"></iframe>"""


def look(page: Path, width: int, folder: Path) -> dict[str, Any]:
    """Open a page at some width in a browser and return what the check found."""
    assert CHROMIUM is not None
    (folder / "checked.html").write_text(page.read_text().replace("</body>", CHECK + "</body>"))
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("{width}", str(width)))
    command = [CHROMIUM, *OPTIONS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    match = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert match, done.stdout[-500:]
    found: dict[str, Any] = json.loads(unescape(match[1]))
    return found


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the report in: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_no_text_is_clipped(paper: Path, tmp_path: Path, width: int) -> None:
    assert look(paper, width, tmp_path) == {"window": width, "page": width, "wrong": []}


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the report in: apt-get install chromium")
def test_clipped_text_would_be_seen(paper: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    wide = '<p id="wide" style="white-space: nowrap">' + "much too long " * 30 + "</p>"
    broken.write_text(paper.read_text().replace("<header>", "<header>" + wide))
    found = look(broken, 390, tmp_path)
    assert found["page"] > 390
    assert any(each.startswith("P much too long") for each in found["wrong"])
