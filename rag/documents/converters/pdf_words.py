"""The words of a PDF: parted at line ends, with ligatures and with accents beside their letters."""

import re
from collections.abc import Sequence

from rag.documents.converters.pdf_pages import Line
from rag.documents.normalize import compose_letters, is_hyphenated

HYPHEN = "\ufffe"  # what the library writes where a word goes on in the next line
_SPLIT = re.compile(f"(?<!\\w)(\\w*[^\\W\\d_]){HYPHEN}\\s*([^\\W\\d_]\\w*)")
_DOUBLED, _PAIR = re.compile(r"(?:(\S)\1|\s)+"), re.compile(r"(\S)\1")
_MIN_DOUBLED = 4  # letters
_TENS = frozenset(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"))
_OPTION = re.compile(f"(?<![\\w-])(-*){HYPHEN}\\s+(?=\\w)")  # `--track`, with the dashes at the end of a line


def once(text: str) -> str:
    """A text whose letters are all there twice, as those of a heading that is printed twice to look bold, with one."""
    if text[:1] != text[1:2] or not _DOUBLED.fullmatch(text) or len({*filter(str.isalpha, text)}) < _MIN_DOUBLED:
        return text
    return _PAIR.sub(r"\1", text)


class Words:
    """Decides whether a hyphen at the end of a line belongs to the word, by the other words of the file."""

    def __init__(self, pages: Sequence[list[Line]]) -> None:
        self._pages = pages
        self._seen: dict[str, int] | None = None

    def join(self, text: str) -> str:
        """Running text without the marks of words that went on in the next line."""
        if text.isascii():
            return once(text)
        if HYPHEN in text:
            text = _SPLIT.sub(self._join, _OPTION.sub(r"\1-", text)).replace(f"{HYPHEN} ", "-")
        return self.letters(text)

    def letters(self, text: str) -> str:
        """Text with letters for ligatures and for accents that stand before their letters."""
        return once(compose_letters(text).replace(HYPHEN, "-"))

    def _join(self, match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        # No word is parted after one letter, nor a number after its tens; `state-of-the-` goes on with its hyphen.
        goes_on = match.string[: match.start()].endswith("-") and first.lower() in self._words()
        if len(first) == 1 or first.lower() in _TENS or goes_on:
            return f"{first}-{second}"
        with_hyphen = is_hyphenated(first, second, self._words())
        if with_hyphen is None:
            with_hyphen = second[0].isupper()
        return f"{first}-{second}" if with_hyphen else first + second

    def _words(self) -> dict[str, int]:
        if self._seen is None:
            self._seen = {}
            for lines in self._pages:
                self._seen.update(dict.fromkeys(" ".join([line.text for line in lines]).lower().split(), 1))
        return self._seen
