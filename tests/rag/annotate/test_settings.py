"""The settings of a study."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rag.annotate.settings import Settings, read_settings, settings_of, write_settings
from rag.base.errors import UsageError, UserError


def test_settings_come_back_as_they_were_written(tmp_path: Path) -> None:
    settings = replace(
        Settings(), title='A "title"\n\\ é 東京', scheme="trec", annotators=7, gold_share=0.25, highlight=True
    )
    write_settings(tmp_path / "study.toml", settings)
    assert read_settings(tmp_path / "study.toml") == settings
    lines = (tmp_path / "study.toml").read_text("utf-8").splitlines()
    assert all(before.startswith("#") for before, line in pairwise(lines) if " = " in line[:25])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"annotators": 0}, "annotators should be from 1 to 99"),
        ({"annotators": True}, "annotators should be an integer"),
        ({"annotators": 3.0}, "annotators should be an integer"),
        ({"lease_minutes": float("nan")}, "lease_minutes should be from"),
        ({"gold_share": 0.6}, "gold_share should be from 0 to 0.5"),
        ({"gold_share": "much"}, "gold_share should be a number"),
        ({"reasons": "maybe"}, "reasons should be one of off, optional, required"),
        ({"highlight": 1}, "highlight should be true or false"),
        ({"scheme": "x"}, "no scheme called 'x'"),
        ({"title": "a\0"}, "title holds a NUL"),
        ({"database": "mysql://x"}, "database should be empty or a URL such as postgresql://"),
        ({"colour": "red"}, "unknown key 'colour'; there are: title"),
    ],
)
def test_settings_that_do_not_fit(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        settings_of(values)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["title = ", "title = 3", "\xff"])
def test_a_file_that_is_broken(tmp_path: Path, text: str) -> None:
    (tmp_path / "study.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=r"study\.toml: "):
        read_settings(tmp_path / "study.toml")
