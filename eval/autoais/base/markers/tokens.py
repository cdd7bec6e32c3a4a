"""Citation markers as models write them: their positions in a text, and the sources they cite.

Every pattern reads each character a bounded number of times, so that the time is linear in the length of any text.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from autoais.base.markers.code import find_code, mask

# One character each, so that offsets do not change.
_PLAIN = str.maketrans("【［〔〖】］〕〗（）\r\u2028\u2029", "[[[[]]]]()\n\n\n")
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_TO_DIGITS = str.maketrans(SUPERSCRIPTS + "⁻", "0123456789-")

_LINK = r"(?P<link>\((?=[^()\s]*[.:/#])(?:[^()\s]|\([^()\s]*\))*(?: \"[^\"\n]*\")?\))?"
_SQUARE = rf"\^?(?P<outer>\[)?\\?\[(?P<square>[^\[\]\n]*)\](?(outer)\]){_LINK}"
_ROUND = r"\((?P<round>[^()\[\]\n]*)\)"
_SUPERSCRIPT = (
    rf"(?P<raised>[{SUPERSCRIPTS}]+(?:[,⁻][{SUPERSCRIPTS}]+)*)|\^(?P<caret>\d+(?:,\d+)*)|<sup>(?P<html>[^<>\n]*)</sup>"
)
# The marks of OpenAI's web search, in characters for private use, or as escapes of these, which some programs show: a
# group "\ue200cite\ue202turn0search1\ue201", a pointer "\ue202turn0search1", and signs around the text that is cited.
_GROUP_END = r"(?:\ue201|\\ue201|\Z)"
_OPENAI = (
    rf"(?P<private>(?:\ue200|\\ue200)[a-z_]*(?:(?:\ue202|\\ue202)(?:(?!\\ue20[01])[^\ue200\ue201\n])*)?{_GROUP_END}"
    r"|(?:\ue202|\\ue202)turn\d+[a-z]+\d+)|(?P<highlight>[\ue203\ue204\ue206]|\\ue20[346])"
)
_PRIVATE_SIGN = re.compile(r"[\ue200-\ue202]|\\ue20[0-2]")
_LINE_NUMBERS = re.compile(r"L\d+(?:-L?\d+)?")
_RAGFLOW = r"##(?P<index>\d+)\$\$"
_KEY = re.compile(r"([a-z][a-z0-9]*)-[0-9a-f]{6,}")
_ODD = re.compile(r"[\[\]【】［］〔〕〖〗\n]")
_QUOTATION = re.compile(r"\"[^\"\n]*\"|“[^“”\n]*”|«[^«»\n]*»")

NAME = r"(?:ids?|sources?|docs?|documents?|refs?|references?|passages?|citations?|cites?|contexts?|quotes?|snippets?)"
_LOCATOR_PATTERN = (
    r"(?:pp?|pages?|ch|chap|chapters?|secs?|sections?|lines?|vols?|figs?|figures?|tables?|paras?|§+|¶+)\.? ?[\w–-]+"
)
_DASH = "[-‐‑–—−]"
_ITEM = re.compile(
    rf"(?P<name>{NAME} ?[:.：]? ?)?[\^#№]?(?P<low>\d+)(?: ?(?:{_DASH}|to) ?(?:{NAME} )?(?P<high>\d+))?"
    rf"(?P<place>(?:: ?\d[\d–-]*)?(?:†.*)?(?: {_LOCATOR_PATTERN})?)",
    re.IGNORECASE,
)
_SOURCE_NAME = re.compile(rf"{NAME} ?[:.：]? ?", re.IGNORECASE)
_LOCATOR = re.compile(_LOCATOR_PATTERN, re.IGNORECASE)
_SEPARATOR = re.compile(r"[,;&、，；]|\band\b", re.IGNORECASE)
_NUMERIC = re.compile(r"[\d\s,;:&.+/‐‑–—−-]+")
_DECIMAL = re.compile(r"\d\.\d")
_PAIR = re.compile(r"(\d{1,18}) ?, ?(\d{1,18})")
_BEFORE_INTERVAL = re.compile(r"(?:∈|\b(?:in|interval|range)(?: of| is)?:?)\s*\Z", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"(?:\[[^\[\]\n]*\])*[ \t]*[-+*/]?=")  # the rest of arr[2][3] = 4
_LAST_WORD = re.compile(r"[^\W\d_]+\Z")
_UNITS = {"cm", "dm", "ft", "in", "kg", "km", "mc", "mi", "mm", "mol", "nm", "px", "R", "sec", "yd", "µm", "μm"}


def plain(text: str) -> str:
    """Return the text with ASCII brackets and line ends, and backticks for code, at the same offsets."""
    text = text.translate(_PLAIN)
    return mask(text, find_code(text))


def squeeze(text: str) -> str:
    """Return the text with each run of white space as one space."""
    return " ".join(text.split())


@dataclass(slots=True)
class Marker:
    """A marker at `start:end`, the sources it cites (1-based), and the reasons if parts of it are unresolved.

    `keep` means that it stays in the text, because it is more likely text than a citation. `number` is its content if
    that is a single number. `is_list` means that its two numbers could also be an interval.
    """

    start: int
    end: int
    text: str
    cites: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    locators: list[str] = field(default_factory=list)
    link: str = ""
    number: str = ""
    is_list: bool = False
    is_highlight: bool = False
    keep: bool = False
    is_quoted: bool = False


@dataclass(slots=True)
class _Reading:
    cites: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    locators: list[str] = field(default_factory=list)
    keep: bool = False


class MarkerReader:
    """Finds the markers of a text and resolves them to the sources shown; the options are those of `grammar.parse`."""

    def __init__(
        self,
        sources: int | Sequence[str],
        accept_parens: bool = False,
        strict_years: bool = False,
        passages: Sequence[str] = (),
    ) -> None:
        self._strict_years = strict_years
        self._passages = [squeeze(passage) for passage in passages]
        self._ids: dict[str, int] | None = None
        families = [_OPENAI, _RAGFLOW]
        if isinstance(sources, int):
            self._n = sources
            families += [_SQUARE, _SUPERSCRIPT]
        else:
            self._n = len(sources)
            self._ids = {squeeze(name): self._n - i for i, name in enumerate(reversed(sources))}
            self._shapes = {_shape(name) for name in self._ids}
            self._signs = {sign for name in self._ids for sign in name if sign in "#:/"}
            # The general patterns miss ids that contain brackets, and opaque keys written without brackets.
            if odd := [re.escape(plain(name)) for name in sources if _ODD.search(name)]:
                families.append(rf"\[(?P<odd>{'|'.join(sorted(odd, key=len, reverse=True))})\]")
            families.append(_SQUARE)
            if keys := sorted({match[1] for name in sources if (match := _KEY.fullmatch(name))}):
                families.append(rf"(?<![\w-])(?P<key>(?:{'|'.join(keys)})-[0-9a-f]{{6,}})(?![\w-])")
        if accept_parens:
            families.append(_ROUND)
        self._pattern = re.compile("|".join(families), re.IGNORECASE)

    def markers(self, text: str) -> Iterator[Marker]:
        """Yield the markers of a text in order, including those that stay in it; code has none."""
        flat = plain(text)
        quotations = self._quotations(text)
        starts = [start for start, _ in quotations]
        position = last = code_end = 0
        while match := self._pattern.search(flat, position):
            groups = match.groupdict()
            start, position = match.span()
            reading = self._read(groups, flat[max(last, start - 24) : start])
            if reading is None:
                if not (groups.get("raised") or groups.get("caret")):
                    position = start + 1  # not a marker, but one may begin inside it
                continue
            marker = Marker(start, position, text[start:position], reading.cites, reading.reasons, reading.locators)
            marker.keep = reading.keep
            marker.link = (groups.get("link") or "")[1:-1]
            content = (groups.get("square") or "").strip(" \\")
            marker.number = content if content.isdecimal() else ""
            marker.is_list = _is_pair(content)
            marker.is_highlight = groups["highlight"] is not None
            if start and (start == code_end or (_is_word(flat[start - 1]) and _ASSIGNMENT.match(flat, position))):
                marker.keep, marker.cites, marker.reasons = True, [], ["code-like"]
                code_end = position
            index = bisect_right(starts, start) - 1
            if index >= 0 and position <= quotations[index][1]:
                marker.keep, marker.is_quoted, marker.cites, marker.reasons = True, True, [], []
            if not marker.keep:
                last = position
            yield marker

    def merge(self, first: Marker, last: Marker, text: str) -> Marker:
        """Merge two markers of one number each with a dash between them, `[1]–[3]`, into one range."""
        reading = self._read_content(f"{first.number}-{last.number}") or _Reading(reasons=["malformed"])
        link = last.link or first.link
        range_text = text[first.start : last.end]
        return Marker(first.start, last.end, range_text, reading.cites, reading.reasons, reading.locators, link)

    def _quotations(self, text: str) -> list[tuple[int, int]]:
        """Return the spans where the text quotes a passage verbatim, markers included."""
        spans: list[tuple[int, int]] = []
        if self._passages:
            for match in _QUOTATION.finditer(text):
                words = squeeze(match[0][1:-1]).strip(" .,;:")
                if words and any(words in passage for passage in self._passages):
                    spans.append(match.span())
        return spans

    def _read(self, groups: Mapping[str, str | None], before: str) -> _Reading | None:
        """Resolve a match, given the characters before it; None if it is not a marker."""
        if groups["highlight"] is not None:
            return _Reading()
        if (private := groups["private"]) is not None:
            return self._read_private(private)
        if (index := groups["index"]) is not None:
            return self._read_range(index, index, is_zero_based=True)
        if (name := groups.get("odd") or groups.get("key")) is not None:
            number = (self._ids or {}).get(squeeze(name))
            return _Reading([number]) if number else _Reading(reasons=["unknown-id"])
        if (square := groups.get("square")) is not None:
            return self._read_square(square.strip("\\"), before)
        if (content := groups.get("round")) is None:
            if _is_exponent(before):
                return None
            superscript = groups.get("raised")
            content = self._digits(superscript) if superscript else groups.get("caret") or groups.get("html") or ""
        reading = self._read_content(content)
        if reading is not None and not reading.cites:
            reading.keep = True
        return reading

    def _read_square(self, content: str, before: str) -> _Reading | None:
        if not content:
            return _Reading(reasons=["empty"])
        if _is_pair(content) and _BEFORE_INTERVAL.search(before):
            return _Reading(reasons=["interval"], keep=True)
        reading = self._read_content(content)
        if reading is None and _NUMERIC.fullmatch(content) and any(map(str.isdecimal, content)):
            return None if _DECIMAL.search(content) else _Reading(reasons=["malformed"])
        return reading

    def _read_private(self, mark: str) -> _Reading:
        """Resolve a mark of OpenAI's, which names results of a search; none unless these are the ids shown."""
        reading = _Reading()
        for name in _PRIVATE_SIGN.split(mark)[1:]:
            if number := (self._ids or {}).get(name):
                reading.cites.append(number)
            elif _LINE_NUMBERS.fullmatch(name):
                reading.locators.append(name)
            elif any(map(str.isdecimal, name)):
                reading.reasons.append("unknown-id")
        return reading if reading.cites or reading.reasons else _Reading(reasons=["malformed"])

    def _read_content(self, content: str) -> _Reading | None:
        content = squeeze(content)
        return self._read_numbers(content) if self._ids is None else self._read_ids(content)

    def _read_numbers(self, content: str) -> _Reading | None:
        """Resolve `1, 3-5`, `Source 1`, `1, p. 12`; None if any part is something else."""
        reading = _Reading()
        years = []
        is_zero_based = False
        for item in filter(None, map(str.strip, _SEPARATOR.split(content))):
            if match := _ITEM.fullmatch(item):
                low, high = match["low"], match["high"] or match["low"]
                years.append(self._is_year(low) and self._is_year(high))
                # Only RAGFlow writes `[ID:0]`.
                is_zero_based |= (match["name"] or "").casefold().startswith("id")
                part = self._read_range(low, high, is_zero_based=is_zero_based)
                reading.cites += part.cites
                reading.reasons += part.reasons
                if match["place"]:
                    reading.locators.append(match["place"].strip(" :†"))
            elif years and _LOCATOR.match(item):
                reading.locators.append(item)
            else:
                return None
        if not years:
            return None
        return _Reading(reasons=["year-like"], keep=True) if all(years) else reading

    def _read_range(self, low_digits: str, high_digits: str, *, is_zero_based: bool) -> _Reading:
        low, high = (_number(digits) + is_zero_based for digits in (low_digits, high_digits))
        if low > high:
            return _Reading(reasons=["reversed-range"])
        reading = _Reading(list(range(max(low, 1), min(high, self._n) + 1)))
        if low == 0:
            reading.reasons.append("zero")
        if high > self._n:
            reading.reasons.append("out-of-range")
        return reading

    def _read_ids(self, content: str) -> _Reading | None:
        """Resolve an id or a list of ids; None if any part is unknown and does not look like an id."""
        ids = self._ids or {}
        if content in ids:
            return _Reading([ids[content]])
        reading = _Reading()
        name = _SOURCE_NAME.match(content)
        start = name.end() if name and re.split("[,;]", content)[0].strip() not in ids else 0
        items = list(filter(None, map(str.strip, re.split("[,;]", content[start:]))))
        for item in items:
            if item in ids:
                reading.cites.append(ids[item])
            elif self._looks_like_an_id(item):
                reading.reasons.append("unknown-id")
            else:
                return None
        if items and all(map(self._is_year, items)) and not reading.cites:
            return _Reading(reasons=["year-like"], keep=True)
        return reading if items else None

    def _looks_like_an_id(self, item: str) -> bool:
        if item.isdecimal() or _shape(item) in self._shapes:
            return True
        return " " not in item and any(map(str.isdecimal, item)) and any(sign in self._signs for sign in item)

    def _is_year(self, digits: str) -> bool:
        return (
            not self._strict_years
            and digits.isdecimal()
            and len(digits) == 4
            and max(self._n, 999) < int(digits) < 3000
        )

    def _digits(self, superscript: str) -> str:
        """Return superscripts as digits; a run above n whose digits are all source numbers is one source per digit."""
        parts: list[str] = []
        for part in superscript.translate(_TO_DIGITS).split(","):
            is_digit_list = (
                part.isdecimal() and _number(part) > self._n and all(1 <= int(digit) <= self._n for digit in part)
            )
            parts += part if is_digit_list else [part]
        return ",".join(parts)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 19 else sys.maxsize


def _shape(name: str) -> str:
    """Return an id with its words and numbers masked: `12#4` and `7#11` have the same shape."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", name))


def _is_pair(content: str) -> bool:
    pair = _PAIR.fullmatch(content.strip())
    return pair is not None and int(pair[1]) < int(pair[2])


def _is_exponent(before: str) -> bool:
    """Return whether a raised number after this text is an exponent: after a digit, variable or unit (`10³`, `km²`)."""
    word = _LAST_WORD.search(before)
    if word is None:
        return before[-1:].isdecimal() or before[-1:] in tuple("⁻⁺")
    return word[0] in _UNITS or (len(word[0]) == 1 and word[0].islower())
