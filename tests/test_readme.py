"""The sessions in the README, run as they are written."""

import doctest
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_sessions() -> None:
    """All sessions in turn, in one namespace: a reader pastes them one after the other."""
    session = "\n".join(blocks("pycon"))
    examples = doctest.DocTestParser().get_doctest(session, {}, "README.md", "README.md", 0)
    assert len(examples.examples) > 10
    report: list[str] = []
    doctest.DocTestRunner().run(examples, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("code", blocks("python"))
def test_fragments_are_python(code: str) -> None:
    compile(code, "README.md", "exec")
