"""The passage format of Attributed QA's Wikipedia, `« Title » « Title, Section » text`, and its display form.

Both formatters follow the released script (Bohnet et al. 2022): `Passage.evidence` is the AutoAIS premise,
`format_display` the text for annotators and readers.
"""

import re

from autoais.base.types import Passage

_CONTENTS = re.compile(r"« ([^»]*) » « ([^»]*) » (.*)", re.DOTALL)
_DISPLAY = re.compile(r"Title: ([^\n]*)\n(?:Section: ([^\n]*)\n)?\n(.*)", re.DOTALL)


def parse(contents: str, id: str = "") -> Passage | None:  # noqa: A002  (named as the field)
    """Return the passage of a `contents` string, or None if the « » marks are missing.

    The section is the headings below the title; headings that do not start with the title stay whole.
    """
    match = _CONTENTS.match(contents)
    if match is None:
        return None
    title, headings, text = match.groups()
    if headings == title:
        return Passage(id, title, text)
    section = headings.removeprefix(f"{title}, ") if title else headings
    return Passage(id, title, text, section, headings)


def format_display(passage: Passage, *, compat: bool = False) -> str:
    """Return the passage for display: title line, section line (if any), empty line, text.

    A passage without headings is its text. As the released script does, `compat` (google-2023) stops at the text's
    first newline and takes a bare prefix of the headings for the title.
    """
    if not passage.headings and not passage.title:
        return passage.text
    title = passage.title or passage.headings
    text = passage.text.partition("\n")[0] if compat else passage.text
    section = _section_2023(title, passage.headings) if compat else _section(title, passage)
    return "\n".join([f"Title: {title}", *([] if section is None else [f"Section: {section}"]), "", text])


def _section(title: str, passage: Passage) -> str | None:
    if passage.headings == title:
        return None
    return passage.headings.removeprefix(f"{title}, ") or None


def _section_2023(title: str, headings: str) -> str | None:
    if not headings.startswith(title):
        return headings
    return headings[len(title) + 2 :] if len(headings) > len(title) else None


def parse_display(text: str) -> Passage | None:
    """Return the passage of a text in the form of `format_display`, or None if it has another form."""
    match = _DISPLAY.match(text)
    if match is None:
        return None
    title, section, body = match.groups()
    return Passage("", title, body, section or "")
