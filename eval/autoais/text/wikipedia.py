"""The Attributed-QA Wikipedia's `« Title » « Title, Section » text` and its two formatters (Bohnet et al. 2022)."""

import re
from typing import NamedTuple

_CONTENTS = re.compile(r"« ([^»]*) » « ([^»]*) » (.*)", re.DOTALL)
_SHOWN = re.compile(r"Title: ([^\n]*)\n(?:Section: ([^\n]*)\n)?\n(.*)", re.DOTALL)


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
        return self.headings.removeprefix(f"{self.title}, ") if self.title else self.headings

    def for_ais(self, *, compat: bool = False) -> str:
        """As it is shown to people: title line, section line (if any), empty line, text.

        `compat` (google-2023) stops at the text's first newline and takes a bare prefix of the headings for the
        title, as the released script does.
        """
        text = self.text.partition("\n")[0] if compat else self.text
        section = self._section_2023 if compat else self.section or None
        return "\n".join([f"Title: {self.title}", *([] if section is None else [f"Section: {section}"]), "", text])

    @property
    def _section_2023(self) -> str | None:
        if not self.headings.startswith(self.title):
            return self.headings
        return self.headings[len(self.title) + 2 :] if len(self.headings) > len(self.title) else None


def parse(contents: str, *, compat: bool = False) -> Contents | None:
    """The parts, or None where the marks are missing; `compat` (google-2023) stops at the first newline."""
    match = _CONTENTS.match(contents)
    if match is None:
        return None
    title, headings, text = match.groups()
    return Contents(title, headings, text.partition("\n")[0] if compat else text)


def parse_shown(passage: str) -> Contents | None:
    """The parts of a passage in the form of `for_ais`, or None where it is not in that form."""
    match = _SHOWN.match(passage)
    if match is None:
        return None
    title, section, text = match.groups()
    return Contents(title, f"{title}, {section}" if section else title, text)


def for_autoais(contents: str, *, compat: bool = False) -> str:
    """The passage as the AutoAIS premise has it: `{headings}. {text}`; unchanged where the marks are missing."""
    parts = parse(contents, compat=compat)
    return f"{parts.headings}. {parts.text}" if parts else contents


def for_ais(contents: str, *, compat: bool = False) -> str:
    """The passage as it is shown to people (`Contents.for_ais`); unchanged where the marks are missing."""
    parts = parse(contents, compat=compat)
    return parts.for_ais(compat=compat) if parts else contents
