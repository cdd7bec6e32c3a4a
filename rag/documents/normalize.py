"""How the text of all formats is normalised: white space, invisible characters, letters, and words parted by line ends.

What goes wrong with the characters of several formats at once is mended here.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence

_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff\x00-\x08\x0e-\x1b\x7f]")  # not \x0b and others, which are spaces
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
_ACCENTS = {"´": "\u0301", "¨": "\u0308", "ˆ": "\u0302", "˜": "\u0303", "ˇ": "\u030c", "˚": "\u030a"}
_ACCENTED = re.compile(r"([´¨ˆ˜ˇ˚]) ?([a-zA-Zı])")
_HYPHEN = re.compile(r"(?<=[^\W\d_])- (?=[^\W\d_])")


def squeeze(text: str) -> str:
    """Running text: one space for all white space, without invisible characters."""
    content = " ".join(text.split())
    return content if content.isprintable() else " ".join(visible(content).split())


def visible(text: str) -> str:
    """The text without characters that take no room, apart from joiners, which some scripts need."""
    return text if text.isprintable() else _INVISIBLE.sub("", text)


def compose_letters(text: str) -> str:
    """Text with letters for ligatures and for accents that stand before their letters, as PDFs have them."""
    if text.isascii():
        return text
    for sign, letters in _LIGATURES.items():  # `translate` looks at each character, which takes ten times as long
        text = text.replace(sign, letters)
    return _ACCENTED.sub(_compose, text)


def _compose(match: re.Match[str]) -> str:
    letter = "i" if match[2] == "ı" else match[2]
    word = unicodedata.normalize("NFC", letter + _ACCENTS[match[1]])
    return word if len(word) == 1 else match[0]


def join_lines(lines: Sequence[str]) -> str:
    """Lines as running text; a hyphen at the end of a line stays."""
    text = squeeze("\n".join(lines))
    return _HYPHEN.sub("-", text) if any(line.endswith("-") for line in lines) else text


def is_hyphenated(first: str, second: str, counts: Mapping[str, int]) -> bool | None:
    """Whether the parts of a word before and after a line end have a hyphen between them within lines.

    `counts` says how often the document has a word, in lower case, within a line. None if it has both equally often.
    """
    first, second = first.lower(), second.lower()
    count, hyphenated_count = counts.get(first + second, 0), counts.get(f"{first}-{second}", 0)
    return None if count == hyphenated_count else hyphenated_count > count
