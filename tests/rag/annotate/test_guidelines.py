"""Guidelines: there for each scheme and kind of task, with the keys of the scheme, and harmless as HTML."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

pytest.importorskip("jinja2")

from rag.annotate.guidelines import guidelines, guidelines_html
from rag.annotate.schemes import KINDS, SCHEMES, Kind, Scheme
from rag.annotate.settings import Settings
from rag.annotate.study import Study
from rag.base.errors import StudyError

OF_CLAIMS = [scheme for scheme in SCHEMES.values() if scheme.units != ("passage",)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", OF_CLAIMS, ids=[scheme.name for scheme in OF_CLAIMS])
def test_each_scheme_and_kind_has_worked_examples(scheme: Scheme, kind: Kind) -> None:
    text = guidelines(scheme, [kind])
    assert text.startswith("# Guidelines\n")
    clear = any(question.name == "interpretable" for question in scheme.questions)
    assert ("Can you understand the" in text) == clear
    assert len(re.findall(r"^\| .* \|$", text, re.MULTILINE)) >= 6
    word = {"qa": "document", "summarization": "article", "table": "table"}[kind]
    assert f"Is it supported by the {word}?" in text
    assert "According to the" in text


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=list(SCHEMES))
def test_guidelines_name_the_keys_of_their_scheme(scheme: Scheme) -> None:
    own = guidelines(scheme, []).split("## ")[0]
    keys = {option.key for question in scheme.questions for option in question.options}
    assert set(re.findall("`(.)`", own)) == keys


@dataclass
class Folder:
    """What guidelines need of a study."""

    folder: Path
    settings: Settings
    scheme: Scheme = field(default_factory=lambda: SCHEMES["ais"])


def html(folder: Path, text: str | None) -> str:
    if text is not None:
        (folder / "ours.md").write_text(text, "utf-8")
    return guidelines_html(cast("Study", Folder(folder, Settings(guidelines="ours.md"))))


def test_html_in_guidelines_of_a_study_is_text(tmp_path: Path) -> None:
    found = html(
        tmp_path,
        "# Ours\n\n<script>alert(1)</script>\n\n[a](javascript:alert(1)) [b](https://example.org) "
        "![c](https://example.org/c.png) <img src=x onerror=alert(1)> \u202ex\n\n| a |\n|---|\n| b |\n",
    )
    assert "<h1>Ours</h1>" in found
    assert "<table>" in found
    assert "<script" not in found
    assert "<img" not in found
    assert 'href="javascript' not in found
    assert "\u202e" not in found


def test_missing_guidelines_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"ours\.md: the guidelines cannot be read"):
        html(tmp_path, None)
