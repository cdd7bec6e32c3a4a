"""The words of a PDF: parted at line ends, with ligatures and with accents beside their letters."""

import re
import unicodedata
from collections.abc import Sequence

from rag.documents.converters.pdf_pages import Line

HYPHEN = "\ufffe"  # what the library writes where a word goes on in the next line
_SPLIT = re.compile(f"(?<!\\w)(\\w*[^\\W\\d_]){HYPHEN}\\s*([^\\W\\d_]\\w*)")
_OPTION = re.compile(f"(?<![\\w-])(-*){HYPHEN}\\s+(?=\\w)")  # `--track`, with the dashes at the end of a line
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
_ACCENTS = {"´": "\u0301", "¨": "\u0308", "ˆ": "\u0302", "˜": "\u0303", "ˇ": "\u030c", "˚": "\u030a"}
_ACCENTED = re.compile(r"([´¨ˆ˜ˇ˚]) ?([a-zA-Zı])")


class Words:
    """Decides whether a hyphen at the end of a line belongs to the word, by the other words of the file."""

    def __init__(self, pages: Sequence[list[Line]]) -> None:
        self._pages = pages
        self._seen: set[str] | None = None

    def join(self, text: str) -> str:
        """Running text without the marks of words that went on in the next line."""
        if text.isascii():
            return text
        if HYPHEN in text:
            text = _SPLIT.sub(self._join, _OPTION.sub(r"\1-", text)).replace(f"{HYPHEN} ", "-")
        return self.letters(text)

    def letters(self, text: str) -> str:
        """Text with letters for ligatures and for accents that stand before their letters."""
        if text.isascii():
            return text
        for sign, letters in _LIGATURES.items():  # `translate` looks at each character, which takes ten times as long
            text = text.replace(sign, letters)
        return _ACCENTED.sub(_compose, text).replace(HYPHEN, "-")

    def _join(self, match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        word, parts = first + second, f"{first}-{second}"
        visited = self._words()
        if (word.lower() in visited) != (parts.lower() in visited):
            return word if word.lower() in visited else parts
        return parts if second[0].isupper() else word

    def _words(self) -> set[str]:
        if self._seen is None:
            self._seen = set()
            for lines in self._pages:
                self._seen.update(" ".join([line.text for line in lines]).lower().split())
        return self._seen


def _compose(match: re.Match[str]) -> str:
    letter = "i" if match[2] == "ı" else match[2]
    word = unicodedata.normalize("NFC", letter + _ACCENTS[match[1]])
    return word if len(word) == 1 else match[0]
