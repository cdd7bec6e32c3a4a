"""The two passage formatters against the golden table of Attributed QA (spec A3)."""

import pytest

from autoais.text.wikipedia import for_ais, for_autoais

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


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize(("contents", "premise", "shown"), GOLDEN)
def test_golden_rows(contents: str, premise: str, shown: str, compat: bool) -> None:
    assert for_autoais(contents, compat=compat) == premise
    assert for_ais(contents, compat=compat) == shown


def test_defects_only_under_compat() -> None:
    two_lines, prefix = "« A » « A » one\ntwo", "« Cat » « Cats, X » body"
    assert for_autoais(two_lines, compat=True) == "A. one"
    assert for_ais(two_lines, compat=True) == "Title: A\n\none"
    assert for_autoais(prefix, compat=True) == "Cats, X. body"
    assert for_ais(prefix, compat=True) == "Title: Cat\nSection:  X\n\nbody"
    assert for_autoais(two_lines) == "A. one\ntwo"
    assert for_ais(prefix) == "Title: Cat\nSection: Cats, X\n\nbody"
