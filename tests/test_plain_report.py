"""The plain page: complete, self-contained, escaped, and legible in a browser at desktop and phone width."""

import re
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from benchmark.figures import Drawn
from benchmark.plain_report import write_page
from benchmark.tables import NamedTable
from tests.synthetic import SHD_CELLS, manifest
from tests.test_report import CHROMIUM, References, look

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen broad columns, long sentences, a figure, and a script wherever text goes."""
    folder = tmp_path_factory.mktemp("plain")
    figure = Figure(figsize=(7.2, 3))
    figure.subplots().plot([1, 2], [3, 5])
    short = pd.DataFrame({f"column {i} {EVIL}": ["0.12 [−0.34, 5.67]", EVIL] for i in range(16)})
    tables = {"one": NamedTable("a table", short, short), "two": NamedTable("not shown", short)}
    paragraphs = ["What came out at m = 8. " * 30, EVIL]
    made = manifest(SHD_CELLS, ["bic", EVIL], 5)
    write_page(folder, made, f"Which reading? {EVIL}", paragraphs, {"picture": Drawn(figure, EVIL)}, tables)
    return folder / "report.html"


def test_the_page_has_everything_and_loads_nothing(page: Path) -> None:
    text = page.read_text()
    seen = References()
    seen.feed(text)
    assert len(seen.found) == 1
    assert seen.found[0].startswith("data:image/svg+xml;base64,")
    assert not {"script", "link", "iframe"} & set(seen.tags)
    for words in ("Which reading?", "A table", "0.12 [−0.34, 5.67]", "m\u00a0=\u00a08", "@media print"):
        assert words in text, words
    assert "not shown" not in text.lower()
    assert {file.name for file in (page.parent / "figures").iterdir()} == {"picture.png", "picture.svg"}


def test_settings_that_studies_share_are_said_once(page: Path) -> None:
    text = page.read_text()
    assert f'<th>kind</th><td colspan="{len(SHD_CELLS)}">dp</td></tr>' in text
    differing = re.search(r"<th>nn</th>(.*?)</tr>", text)
    assert differing
    assert re.findall(r"<td>(\d)</td>", differing[1]) == [str(nn) for _, nn, _ in SHD_CELLS]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page in: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_no_text_is_clipped(page: Path, tmp_path: Path, width: int) -> None:
    assert look(page, width, tmp_path) == {"window": width, "page": width, "wrong": []}
