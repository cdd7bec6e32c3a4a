"""Finds the words of a passage on the pages of its PDF, and the boxes around them.

The passage and the page are compared word by word, as letters and digits alone: hyphens, ligatures and accents, which
the reader changes, make no difference. The words of the page may stand apart, as in a table whose column names the
passage repeats, or around a note that the reader has moved.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from rag.documents.blocks import BLOCK_SEPARATOR, CELL_SEPARATOR
from rag.documents.converters.pdf_view import PARTS, Box, PageView

Span = tuple[int, int]
MIN_SHARE = 0.5
"""The least share of the letters of a text that has to be on the page; with less, it counts as not there."""
_WHOLE = 0.95  # share of the letters from where on a text is there as a whole

_INSIDE = frozenset("-‐‑\ufffe\u00ad\u200b\u2060\ufeff'’´¨ˆ˜ˇ˚`^~")
_ACCENT = re.compile("([´¨ˆ˜ˇ˚]) (?=[^\\W\\d_])")  # TeX's, with the space that the library finds between
_ALONE = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff]")
_NAME = re.compile(rf"(?:^|{re.escape(CELL_SEPARATOR)})([^|:]{{1,80}}): ", re.MULTILINE)  # of a column, in a row
_LINE = re.compile(r"[^\n]+")
_HYPHEN = "\ufffe"  # at the end of a line whose last word goes on in the next line

_MAX_WORDS = 3_000  # of a passage
_MAX_PAGE_WORDS = 60_000
_MAX_REPEATS = 300  # of a word on the pages, above which it only counts beside other words
_GAP, _STEP = 0.9, 0.004  # what a gap between two words costs, and each word in it
_MAX_PARTS = 12  # words of a page that are one in the passage, or the other way round
_WIDE, _PAD = 5.0, 0.15  # letters: a gap that parts a box in two, and the room around the letters in it
_LIGHT = 0.05  # weight of a word that repeats the name of a column


class Word(NamedTuple):
    """The letters and digits of a word in lower case, and where it stands in its text."""

    letters: str
    start: int
    end: int


class _Place(NamedTuple):
    page: int  # from 0
    line: int
    start: int
    end: int


@dataclass(slots=True)
class _PageWord:
    letters: str
    places: list[_Place]  # two if it goes on in the next line


@dataclass(frozen=True, slots=True)
class Location:
    """The boxes of a text, by the position of the page in the list that was searched.

    `share` is the share of its letters that are there; below `MIN_SHARE` there are no boxes.
    """

    boxes: dict[int, list[Box]]
    share: float

    @property
    def is_whole(self) -> bool:
        """Whether all of the text is there."""
        return self.share >= _WHOLE


def locate(text: str, spans: Sequence[Span], pages: Sequence[PageView]) -> Location:
    """Find spans of a passage's text (characters, end exclusive) on the pages where the passage may stand.

    The whole passage is looked for, so that of two equal sentences the right one is found.
    """
    words = words_of(text)[:_MAX_WORDS]
    page_words = list(_page_words(pages))[:_MAX_PAGE_WORDS]
    weights = _weights(text, words)
    matches = _match(text, words, weights, page_words)
    targets = [n for n, word in enumerate(words) if any(word.start < end and start < word.end for start, end in spans)]
    total = sum(len(words[n].letters) for n in targets if weights[n] > _LIGHT)
    share = sum(len(words[n].letters) for n in targets if weights[n] > _LIGHT and n in matches) / (total or 1)
    if share < MIN_SHARE:
        return Location({}, share)
    # The name of a column only where the cell stands beside it, as in a form.
    visible = [n for n in targets if n in matches and (weights[n] > _LIGHT or _goes_on(matches, n))]
    numbers = {number for n in visible for number in matches[n]}
    boxes: dict[int, list[Box]] = {}
    for page, box in _boxes(sorted(numbers), page_words, pages):
        boxes.setdefault(page, []).append(box)
    return Location(boxes, share)


def _goes_on(matches: Mapping[int, Sequence[int]], n: int) -> bool:
    """Whether the word after a word stands right after it on the page."""
    return n + 1 in matches and matches[n + 1][0] == matches[n][-1] + 1


def words_of(text: str) -> list[Word]:
    """The words of a text. Scripts without spaces have a word for each character."""
    words: list[Word] = []
    letters, start, end = "", 0, 0
    skip = {match.end(1) for match in _ACCENT.finditer(text)}
    for position, character in enumerate(text):
        plain = _plain(character)
        if letters and (_ALONE.match(character) or not (plain or _is_inside(character) or position in skip)):
            words.append(Word(letters, start, end))
            letters = ""
        if plain:
            start, end = (start if letters else position), position + 1
            letters += plain
            if _ALONE.match(character):
                words.append(Word(letters, start, end))
                letters = ""
    if letters:
        words.append(Word(letters, start, end))
    return words


def _is_inside(character: str) -> bool:
    """Whether a sign stands within words and does not count, as hyphens and accents."""
    return character in _INSIDE or (not character.isascii() and unicodedata.category(character).startswith("M"))


def _plain(character: str) -> str:
    """The letters and digits that a character stands for, in lower case and without accents."""
    if character.isascii():
        return character.lower() if character.isalnum() else ""
    parts = unicodedata.normalize("NFKD", character).casefold().replace("ı", "i")
    return "".join(part for part in parts if part.isalnum())


def _page_words(pages: Sequence[PageView]) -> Iterator[_PageWord]:
    """The words of pages in the order of reading."""
    head: _PageWord | None = None
    for page, view in enumerate(pages):
        for number, line in enumerate(view.lines):
            words = [
                _PageWord(word.letters, [_Place(page, number, word.start, word.end)]) for word in words_of(line.text)
            ]
            if head is not None and words:
                words[0] = _PageWord(head.letters + words[0].letters, [*head.places, *words[0].places])
            head = words.pop() if words and line.text.endswith(_HYPHEN) else None
            yield from words
    if head is not None:
        yield head


def _weights(text: str, words: Sequence[Word]) -> list[float]:
    """How much it counts that a word is there: longer ones more, those of a column's name in a row nearly nothing."""
    rows = [line.span() for line in _LINE.finditer(text) if CELL_SEPARATOR in line[0]]
    names = [match.span(1) for start, end in rows for match in _NAME.finditer(text, start, end)]
    return [
        _LIGHT
        if any(start <= word.start and word.end <= end for start, end in names)
        else 0.2 + 0.8 * min(len(word.letters), 6) / 6
        for word in words
    ]


def _blocks(text: str) -> Iterator[Span]:
    start = 0
    for block in text.split(BLOCK_SEPARATOR):
        yield start, start + len(block)
        start += len(block) + len(BLOCK_SEPARATOR)


def _match(
    text: str, words: Sequence[Word], weights: Sequence[float], page_words: Sequence[_PageWord]
) -> dict[int, list[int]]:
    """The numbers of the page's words for each word that is there.

    All words are looked for in their order; blocks that are not there in that order, each for itself.
    """
    search = _Search(page_words)
    matches = search.chain(words, weights, range(len(words)))
    for start, end in _blocks(text):
        numbers = [n for n, word in enumerate(words) if start <= word.start < end]
        total = sum(weights[n] for n in numbers)
        if sum(weights[n] for n in numbers if n in matches) < 0.5 * total:
            other = search.chain(words, weights, numbers)
            if sum(weights[n] for n in other) > max(1.0, 0.5 * total):
                matches = {n: place for n, place in matches.items() if n not in numbers} | other
    return matches


class _Search:
    """Looks for words on the pages."""

    def __init__(self, page_words: Sequence[_PageWord]) -> None:
        self._letters = [word.letters for word in page_words]
        positions: dict[str, list[int]] = {}
        for position, letters in enumerate(self._letters):
            positions.setdefault(letters, []).append(position)
        self._positions = {
            letters: np.array(places) for letters, places in positions.items() if len(places) <= _MAX_REPEATS
        }

    def chain(self, words: Sequence[Word], weights: Sequence[float], numbers: Sequence[int]) -> dict[int, list[int]]:
        """The best chain of words that stand on the pages in the same order, with few gaps."""
        count = len(self._letters)
        steps = _STEP * np.arange(count + 1)
        score = np.full(count + 1, -np.inf)  # of the best chain that ends before this position; the last word is there
        score[0] = 0.0
        last = np.full(count + 1, -1)  # the link that ends there
        links: list[tuple[int, int, int]] = []  # the word, its position, and the link before
        for n in numbers:
            places = self._positions.get(words[n].letters)
            if places is None:
                continue
            far = np.maximum.accumulate(score + steps)
            far_from = np.maximum.accumulate(np.where(score + steps >= far, np.arange(count + 1), 0))
            after_gap = far[places] - steps[places] - _GAP
            is_next = score[places] >= after_gap
            best = np.where(is_next, score[places], after_gap)
            begins = best <= 0  # a chain may begin anywhere
            best = np.where(begins, 0.0, best) + weights[n]
            before = np.where(begins, -1, last[np.where(is_next, places, far_from[places])])
            better = best > score[places + 1]
            for place, link in zip(places[better].tolist(), before[better].tolist(), strict=True):
                last[place + 1] = len(links)
                links.append((n, place, link))
            score[places[better] + 1] = best[better]
        result: dict[int, int] = {}
        link = int(last[int(np.argmax(score))]) if links else -1
        while link >= 0:
            n, place, link = links[link]
            result[n] = place
        return self._fill(words, numbers, result)

    def _fill(self, words: Sequence[Word], numbers: Sequence[int], chain: Mapping[int, int]) -> dict[int, list[int]]:
        """Add words beside those that are there, and words whose letters the page parts in another way."""
        result = {n: [place] for n, place in chain.items()}
        order = {n: position for position, n in enumerate(numbers)}
        for step in (1, -1):
            for n, place in sorted(chain.items(), reverse=step < 0):
                position, next_place = order[n] + step, place + step
                while (
                    0 <= position < len(numbers)
                    and 0 <= next_place < len(self._letters)
                    and numbers[position] not in result
                    and words[numbers[position]].letters == self._letters[next_place]
                ):
                    result[numbers[position]] = [next_place]
                    position, next_place = position + step, next_place + step
        for n, following in pairwise(sorted(result)):
            between = numbers[order[n] + 1 : order[following]]
            places = range(result[n][-1] + 1, result[following][0])
            letters = "".join(words[number].letters for number in between)
            if between and 0 < len(places) <= _MAX_PARTS and letters == "".join(self._letters[at] for at in places):
                result |= {number: [*places] for number in between}
        return result


def _boxes(
    numbers: Sequence[int], page_words: Sequence[_PageWord], pages: Sequence[PageView]
) -> Iterator[tuple[int, Box]]:
    """The boxes of words of the pages, one for words that stand beside each other in a line."""
    runs: list[_Place] = []
    before = None
    for number in numbers:
        for place in page_words[number].places:
            last = runs[-1] if runs else None
            if last is not None and before in (number - 1, number) and last[:2] == place[:2]:
                runs[-1] = last._replace(end=place.end)
            else:
                runs.append(place)
            before = number
    for run in runs:
        line = pages[run.page].lines[run.line]
        start, end = run.start, run.end
        while end < len(line.text) and not (line.text[end].isspace() or line.text[end].isalnum()):
            end += 1  # the signs after the words
        while start > 0 and not (line.text[start - 1].isspace() or line.text[start - 1].isalnum()):
            start -= 1
        for box in _join(line.boxes[start:end], pages[run.page]):
            yield run.page, box


def _join(boxes: Sequence[Box], view: PageView) -> Iterator[Box]:
    """One box around those of the characters of a line, or several where wide gaps part them."""
    letters = [box for box in boxes if box[0] < box[2] or box[1] < box[3]]  # not the spaces
    if not letters:
        return
    x_points, y_points = view.width / PARTS, view.height / PARTS
    size = median(max((right - left) * x_points, (bottom - top) * y_points) for left, top, right, bottom in letters)
    hull = letters[0]
    for box in letters[1:]:
        x_gap = max(box[0] - hull[2], hull[0] - box[2]) * x_points
        y_gap = max(box[1] - hull[3], hull[1] - box[3]) * y_points
        if max(x_gap, y_gap) > _WIDE * size:
            yield _padded(hull, size / x_points, size / y_points)
            hull = box
        else:
            hull = (min(hull[0], box[0]), min(hull[1], box[1]), max(hull[2], box[2]), max(hull[3], box[3]))
    yield _padded(hull, size / x_points, size / y_points)


def _padded(box: Box, width: float, height: float) -> Box:
    """A box with some room around it; `width` and `height` are those of a letter."""
    x, y = round(_PAD * width), round(_PAD * height)
    left, top, right, bottom = box
    return max(0, left - x), max(0, top - y), min(PARTS, right + x), min(PARTS, bottom + y)
