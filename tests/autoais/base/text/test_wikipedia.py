"""The two passage formatters against the golden table of Attributed QA (spec A3)."""

import pytest

from autoais.base.answers import CitedAnswer
from autoais.base.text.wikipedia import format_display, parse, parse_display
from autoais.base.types import Passage
from autoais.formats.attributed_qa import as_read_in_2023

GOLDEN = [
    (
        "« Luke Cage (season 2) » « Luke Cage (season 2), Release » The second season.",
        "Luke Cage (season 2), Release. The second season.",
        "Title: Luke Cage (season 2)\nSection: Release\n\nThe second season.",
    ),
    (
        "« Chrysler 300 letter series » « First Generation, 1955 C-300 » Body text.",
        "First Generation, 1955 C-300. Body text.",
        "Title: Chrysler 300 letter series\nSection: First Generation, 1955 C-300\n\nBody text.",
    ),
    ("« A » « A » Body.", "A. Body.", "Title: A\n\nBody."),
    (
        '« St. Elsewhere » « St. Elsewhere, Episodes, "Their Town" » In a',
        'St. Elsewhere, Episodes, "Their Town". In a',
        'Title: St. Elsewhere\nSection: Episodes, "Their Town"\n\nIn a',
    ),
    ("no marks", "no marks", "no marks"),
]


def read(contents: str, *, compat: bool = False) -> Passage:
    """The passage of a line of the corpus, with `compat` as google-2023 gives it to its model."""
    passage = parse(contents, "x") or Passage("x", text=contents)
    if not compat:
        return passage
    (answer,) = as_read_in_2023([CitedAnswer("1", "?", passages={"x": passage})])
    return answer.passages["x"]


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize(("contents", "premise", "as_shown"), GOLDEN)
def test_golden_rows(contents: str, premise: str, as_shown: str, compat: bool) -> None:
    passage = read(contents, compat=compat)
    assert passage.evidence == premise
    assert format_display(passage, compat=compat) == as_shown


def test_defects_only_under_compat() -> None:
    two_lines, prefix = "« A » « A » one\ntwo", "« Cat » « Cats, X » body"
    assert read(two_lines, compat=True).evidence == "A. one"
    assert format_display(read(two_lines), compat=True) == "Title: A\n\none"
    assert read(prefix, compat=True).evidence == "Cats, X. body"
    assert format_display(read(prefix), compat=True) == "Title: Cat\nSection:  X\n\nbody"
    assert read(two_lines).evidence == "A. one\ntwo"
    assert format_display(read(two_lines)) == "Title: A\n\none\ntwo"
    assert format_display(read(prefix)) == "Title: Cat\nSection: Cats, X\n\nbody"


def test_what_has_no_marks_stays_whole_under_compat() -> None:
    passage = read("one\ntwo", compat=True)
    assert passage.evidence == format_display(passage, compat=True) == "one\ntwo"


@pytest.mark.parametrize("contents", [contents for contents, *_ in GOLDEN if contents != "no marks"])
def test_what_people_see_can_be_read_back(contents: str) -> None:
    passage = read(contents)
    again = parse_display(format_display(passage))
    assert again is not None
    assert (again.title, again.section, again.text) == (passage.title, passage.section, passage.text)
    assert parse_display("no marks") is None
