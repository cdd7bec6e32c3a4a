"""The Attributed-QA Wikipedia's `« Title » « Title, Section » text` and its two formatters (Bohnet et al. 2022)."""

import re
from typing import NamedTuple

_CONTENTS = re.compile(r"« ([^»]*) » « ([^»]*) » (.*)", re.DOTALL)
_CONTENTS_2023 = re.compile(r"« ([^»]*) » « ([^»]*) » (.*)")


class Contents(NamedTuple):
    """The three parts of a `contents` string: title, headings (most often "Title, Section, ..."), text."""

    title: str
    headings: str
    text: str

    @property
    def section(self) -> str:
        """The headings below the title; empty at the top. Headings that do not start with the title stay whole."""
        if self.headings == self.title:
            return ""
        return self.headings.removeprefix(f"{self.title}, ")


def parse(contents: str, *, compat: bool = False) -> Contents | None:
    """The parts, or None where the marks are missing; `compat` (google-2023) stops at the first newline."""
    match = (_CONTENTS_2023 if compat else _CONTENTS).match(contents)
    return Contents(*match.groups()) if match else None


def for_autoais(contents: str, *, compat: bool = False) -> str:
    """The passage as the AutoAIS premise has it: `{headings}. {text}`; unchanged where the marks are missing."""
    parts = parse(contents, compat=compat)
    return f"{parts.headings}. {parts.text}" if parts else contents


def for_ais(contents: str, *, compat: bool = False) -> str:
    """The passage as it is shown to people: title line, section line (if any), empty line, text.

    `compat` (google-2023) takes a bare prefix of the headings for the title, as the released script does.
    """
    parts = parse(contents, compat=compat)
    if parts is None:
        return contents
    title, headings, text = parts
    section = parts.section
    if compat and headings.startswith(title):
        section = headings[len(title) + 2 :] if len(headings) > len(title) else ""
    lines = [f"Title: {title}", *([f"Section: {section}"] if section else []), "", text]
    return "\n".join(lines)
