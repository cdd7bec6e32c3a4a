"""The numbers that Word shows before paragraphs: `3.`, `(a)`, `1.2`."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rag.documents.list_marks import write_number
from rag.documents.normalize import squeeze

_PLACE = re.compile(r"%([1-9])")  # in the text of a level: where the number of a level stands
_MAX_LETTERS = 26 * 5  # numbers that are written with letters: z, then aa
_MAX_LENGTH = 40  # characters of the text of a level
_MAX_STYLES = 20  # that build on one another


@dataclass(frozen=True, slots=True)
class _Level:
    start: int
    format: str
    text: str
    restart: int  # the level (from 1) after which its numbers begin anew
    is_legal: bool  # digits for all levels
    style: str  # of paragraphs that are of this level


@dataclass(frozen=True, slots=True)
class _List:
    counter: str  # lists with the same one count on
    levels: Mapping[int, _Level]
    starts: Mapping[int, int]  # of levels that begin anew with the list


@dataclass(slots=True)
class Numbering:
    """The lists of a document, and how far they have counted."""

    lists: Mapping[str, _List]
    styles: Mapping[str, ET.Element]  # of paragraphs
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    begun: set[tuple[str, int]] = field(default_factory=set)

    def next_label(self, paragraph: ET.Element) -> str:
        """The number of the next paragraph of the document; "" if it has none or a bullet."""
        if paragraph.find("{*}pPr/{*}rPr/{*}del") is not None:  # a change that is tracked: a part of the next one
            return ""
        number, depth = self._place(paragraph)
        listing = self.lists.get(number)
        if listing is None or (level := listing.levels.get(depth)) is None:
            return ""
        counts = self.counts.setdefault(listing.counter, {})
        is_new = depth not in counts or (depth in listing.starts and (number, depth) not in self.begun)
        counts[depth] = level.start if is_new else counts[depth] + 1
        self.begun.add((number, depth))
        for deeper in [n for n in counts if n > depth and n in listing.levels and depth < listing.levels[n].restart]:
            del counts[deeper]
        return "" if level.format == "bullet" else _label(level, listing.levels, counts)

    def _place(self, paragraph: ET.Element) -> tuple[str, int]:
        """The list of a paragraph, by itself or by its style, and the level (from 0)."""
        own_style = name = _value(paragraph, "pPr/pStyle")
        number, depth = _value(paragraph, "pPr/numPr/numId"), _value(paragraph, "pPr/numPr/ilvl")
        for _ in range(_MAX_STYLES):
            if number or (style := self.styles.get(name)) is None:
                break
            number = _value(style, "pPr/numPr/numId")
            depth = depth or _value(style, "pPr/numPr/ilvl")
            name = _value(style, "basedOn")
        levels = self.lists[number].levels if number in self.lists and not depth else {}
        by_style = (place for place, level in levels.items() if level.style == own_style != "")
        return number, next(by_style, _integer(depth, 0))


def read_numbering(numbering: ET.Element, styles: ET.Element) -> Numbering:
    """The lists of a Word file by its parts `numbering` and `styles`."""
    by_style = {attribute(style, "styleId"): style for style in styles.iterfind("{*}style")}
    patterns = {attribute(pattern, "abstractNumId"): pattern for pattern in numbering.iterfind("{*}abstractNum")}
    lists = {attribute(item, "numId"): item for item in numbering.iterfind("{*}num")}
    result = {}
    for number, item in lists.items():
        counter = _value(item, "abstractNumId")
        pattern = patterns.get(counter)
        if pattern is not None and (link := by_style.get(_value(pattern, "numStyleLink"))) is not None:
            linked_list = lists.get(_value(link, "pPr/numPr/numId"))
            counter = _value(linked_list, "abstractNumId") if linked_list is not None else ""
            pattern = patterns.get(counter)
        if pattern is not None:
            result[number] = _read_list(counter, pattern, item)
    return Numbering(result, by_style)


def _read_list(counter: str, pattern: ET.Element, item: ET.Element) -> _List:
    levels, starts = {}, {}
    changes = [*item.iterfind("{*}lvlOverride")]
    for element in [*pattern.iterfind("{*}lvl"), *(level for change in changes for level in change.iterfind("{*}lvl"))]:
        depth = _integer(attribute(element, "ilvl"), 0)
        is_legal = element.find("{*}isLgl") is not None
        levels[depth] = _Level(
            _integer(_value(element, "start"), 0),
            _value(element, "numFmt") or "decimal",
            _value(element, "lvlText")[:_MAX_LENGTH],
            _integer(_value(element, "lvlRestart"), depth),
            is_legal,
            _value(element, "pStyle"),
        )
    for change in changes:
        depth, start = _integer(attribute(change, "ilvl"), 0), _value(change, "startOverride")
        if start and depth in levels:
            starts[depth] = _integer(start, 1)
            levels[depth] = replace(levels[depth], start=starts[depth])
    return _List(counter, levels, starts)


def _label(level: _Level, levels: Mapping[int, _Level], counts: Mapping[int, int]) -> str:
    def number(place: re.Match[str]) -> str:
        depth = int(place[1]) - 1
        above = levels.get(depth, level)
        return _write(counts.get(depth, above.start), "decimal" if level.is_legal else above.format)

    return squeeze(_PLACE.sub(number, level.text))


def _write(number: int, style: str) -> str:
    """A number in one of Word's formats; those of other languages are digits."""
    if style == "none":
        return ""
    if style == "decimalZero":
        return f"{number:02}"
    text = str(number)
    if style.endswith("Roman"):
        text = write_number(number, "i")
    elif style.endswith("Letter") and 0 < number <= _MAX_LETTERS:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    return text.upper() if style.startswith("upper") else text


def _integer(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def _value(element: ET.Element, path: str) -> str:
    """The value of the element at a path below another one; "" if there is none."""
    target = element.find("/".join(f"{{*}}{name}" for name in path.split("/")))
    return "" if target is None else attribute(target, "val")


def attribute(element: ET.Element, name: str) -> str:
    """The value of an attribute in any namespace, or in none; "" if there is none."""
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), "")
