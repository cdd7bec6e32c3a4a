"""Whatever a file holds, it is read or named, and the text of its passages looks as agreed."""

import re
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.base.errors import FormatError
from rag.base.types import Passage
from rag.documents import read_document
from rag.documents.blocks import Block, code, entry, heading, item, row
from rag.documents.main_content import html_blocks
from rag.documents.split import passages

SUFFIXES = [
    "html",
    "md",
    "txt",
    "rst",
    "1",
    "docbook",
    "xml",
    "ipynb",
    "epub",
    "docx",
    "odt",
    "ics",
    "html.gz",
    "adoc",
    "org",
    "rtf",
    "mbox",
    "mhtml",
    "tex",
]
STARTS = {
    "tex": "\\documentclass{a}\n",
    "rtf": "{\\rtf1 ",
    "1": ".TH A 1\n",
}
TAGS = "p div ul ol li dl dt dd table tr td th pre h1 h2 h3 span a br b blockquote details summary caption".split()
WORDS = [
    "river",
    "Lake",
    "a:",
    "b.",
    "|",
    "-",
    "1.",
    "\n",
    "  ",
    "é",
    "\u200b",
    "Note",
    "..... 12",
    "&lt;",
    "Copyright 2020",
]


def check(found: list[Passage]) -> None:
    """The conventions of `rag.documents.blocks`."""
    for number, passage in enumerate(found, 1):
        assert passage.id.endswith(f"#{number}")
        assert passage.text.strip()
        assert "\n" not in passage.title + passage.section
        passage.text.encode()
        for block in passage.text.split("\n\n"):
            lines = block.split("\n")
            is_code = all(line.startswith("    ") for line in lines)
            assert is_code or (len(lines) == 1 and not re.search(r"\s$|\t", block)), block
            assert len(block.split()) <= 200
        assert len(passage.text.split()) <= 200


@settings(max_examples=60)
@given(st.sampled_from(SUFFIXES), st.binary(max_size=300))
def test_any_bytes_are_read_or_named(suffix: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file.{suffix}"
        path.write_bytes(data)
        try:
            check(read_document(path, path.name))
        except FormatError as error:
            assert str(error).startswith(str(path))  # noqa: PT017  (either is right)


@settings(max_examples=60)
@given(st.sampled_from(["md", "txt", "rst"]), st.text(max_size=400))
def test_any_text_is_read(suffix: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file.{suffix}"
        path.write_text(STARTS.get(suffix, "") + text, "utf-8", "replace")
        try:
            check(read_document(path, path.name))
        except FormatError as error:
            assert "not a text" in str(error)  # noqa: PT017


@st.composite
def pages(draw: st.DrawFn) -> str:
    parts = st.one_of(
        st.sampled_from(TAGS).map(lambda tag: f"<{tag}>"),
        st.sampled_from(TAGS).map(lambda tag: f"</{tag}>"),
        st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join),
    )
    return "".join(draw(st.lists(parts, max_size=40)))


@given(pages())
def test_any_page_gives_passages_as_agreed(page: str) -> None:
    title, blocks = html_blocks(page, Counter(), "p.html")
    check(list(passages(blocks, "p.html", title or "p")))


@st.composite
def documents(draw: st.DrawFn) -> list[Block]:
    text = st.lists(st.sampled_from(["river", "flows.", "Then:", "So it"]), min_size=1, max_size=400).map(" ".join)
    names = st.sampled_from(["Rivers", "Lakes", "Seas"])
    block = st.one_of(
        text.map(Block),
        text.map(lambda words: item(words, 1, "-")),
        text.map(lambda words: entry("term", words)),
        text.map(lambda words: code(words.replace("flows.", "\n\n"))),
        text.map(lambda words: row([words, words], ["A", "B"])),
        st.tuples(names, st.integers(1, 6)).map(lambda pair: heading(*pair)),
    )
    return [one for one in draw(st.lists(block, max_size=12)) if one is not None]


@given(documents())
def test_no_word_is_lost_or_parted_from_what_announces_it(blocks: list[Block]) -> None:
    found = list(passages(blocks, "d", "Title"))
    check(found)
    said = {word for block in blocks if not block.level for word in block.text.split()}
    assert said <= {word for passage in found for word in passage.text.split()} | {"-"}
    if any(block.level for block in blocks):  # a heading can part them
        return
    for passage, following in pairwise(found):
        last = passage.text.splitlines()[-1]
        if last.endswith(":") and not last.startswith("    "):  # a line of code that ends so announces nothing
            assert len((passage.text.split("\n\n")[-1] + following.text.split("\n\n")[0]).split()) > 150


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_reading_twice_gives_the_same(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"file.{suffix}"
    path.write_bytes(b".TH A 1\n# Title\n\nSome text: with words.\n\n    code\n\n- one\n- two\n")
    try:
        first = read_document(path, path.name)
    except FormatError:
        return
    assert first == read_document(path, path.name)
