"""What surrounds the text of a PDF: headers and footers, tables of contents and indexes."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from statistics import median

from rag.documents import navigation as nav
from rag.documents.contents import Beginnings
from rag.documents.converters.pdf_pages import Line

_NUMBER = re.compile(
    r"(?:^|(?<=page\s))[-–—|\s]*(\d{1,4})(?![\d.,])|(?<![\d.,])(\d{1,4})[-–—|\s]*$", re.IGNORECASE
)  # where the number of a page stands in a header
_LETTER = re.compile(r"[^\W\d_]{2}")
_PAGE_NUMBER = re.compile(
    r"[-–—|\s]*(?:page\s+)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of)\s*\d{1,4})?[-–—|\s]*", re.IGNORECASE
)
_TO_PAGE = re.compile(
    r"(?:(?<!\d)[,.]|(?<=,)\s|\s(?!\s*(?:19|20)\d\d\s*$))\s*(?:\d{1,4}(?:[,–-]\s*\d{1,4})*|[ivxlc]{1,6})\s*$"
)
_PAGE_ENDS = tuple("0123456789ivxlc")
_FIRST_PAGE = re.compile(r"(\d{1,4})(?:[,–-]\s*\d{1,4})*\s*$")
_BEHIND_COMMA = re.compile(r",\s*\d{1,4}\s*$")
_IN_ORDER = 0.65  # of the lines of a list of contents or an index that are in order
_MIN_TEXT_LINES = 4  # lines below a list of contents that are text
_GAP = 1.3  # line heights between a header and the text
_ROUNDS = 3  # lines of a header


def without_edges(pages: Sequence[list[Line]], omissions: Counter[str], size: int) -> list[list[Line]]:
    """The pages without the headers and footers; what repeats at an edge, a line at a time from the outside.

    `size` is the usual size of print.
    """
    result = [sorted(lines, key=attrgetter("y"), reverse=True) for lines in pages]
    texts = Counter(line.text.casefold() for lines in pages for line in lines)
    omitted_ids: list[set[int]] = [set() for _ in pages]
    for edge in (0, -1):
        for _ in range(_ROUNDS):
            items = [*_headers(result, edge, size, texts)]
            for number in items:
                omitted_ids[number].add(id(result[number].pop(edge)))
            omissions[nav.MARGIN] += len(items)
            if not items:
                break
    return [
        [line for line in lines if id(line) not in omitted] for lines, omitted in zip(pages, omitted_ids, strict=True)
    ]


def _headers(pages: Sequence[list[Line]], edge: int, size: int, texts: Counter[str]) -> Iterator[int]:
    """The numbers of the pages whose first (0) or last (-1) line is a header or footer."""
    edges = {number: lines[edge] for number, lines in enumerate(pages) if lines}
    repeats = Counter(line.text for line in edges.values())
    bare = Counter(_NUMBER.sub("", line.text) for line in edges.values())  # of slides, which text may fill to the edge
    offsets = {number: _offsets(line, number) for number, line in edges.items()}
    counts = Counter(offset for each in offsets.values() for offset in each)
    separate = {number: _apart(pages[number], edge) for number in edges}
    heights: Counter[int] = Counter()
    for number, line in edges.items():
        heights[line.y // 10] += separate[number]
    enough, often = 0.4 * len(edges), max(4, 0.1 * len(edges))
    for number, line in edges.items():
        position = line.y // 10
        is_small = line.size < 1.15 * size  # and no title
        is_edge = is_small and separate[number]
        is_same = is_small and _LETTER.search(line.text) is not None and bare[_NUMBER.sub("", line.text)] >= often
        is_numbered = (is_edge or is_same) and any(
            counts[offset] >= max(3, 0.1 * len(edges)) for offset in offsets[number]
        )
        fixed = (
            len(edges) > 4
            and heights[position] + heights[position - 1] + heights[position + 1] > enough
            and is_edge
            and texts[line.text.casefold()] > 1
        )
        number_alone = _PAGE_NUMBER.fullmatch(line.text) is not None and not _in_last_row(pages[number], edge)
        if number_alone or is_numbered or fixed or repeats[line.text] >= often:
            yield number


def _offsets(line: Line, number: int) -> list[int]:
    """What the numbers at the ends of a line are more than the number of its page: all headers have the same."""
    return [int(match[1] or match[2]) - number for match in _NUMBER.finditer(line.text)]


def _in_last_row(lines: list[Line], edge: int) -> bool:
    """Whether the line at an edge stands beside others, near the row above or below it: the last cell of a table."""
    line = lines[edge]
    inwards = lines[1:] if edge == 0 else lines[-2::-1]
    neighbours = next(
        (position for position, other in enumerate(inwards) if abs(other.y - line.y) > line.size / 2), len(inwards)
    )
    return 0 < neighbours < len(inwards) and abs(inwards[neighbours].y - line.y) <= _GAP * 1.2 * line.size


def _apart(lines: list[Line], edge: int) -> bool:
    """Whether a gap parts the line at an edge from the others, or the few lines there."""
    ys = [line.y for line in (lines if edge == 0 else lines[::-1])]
    gaps = [abs(first - second) for first, second in pairwise(ys)]
    usual = median([gap for gap in gaps if gap > 0.5 * lines[edge].size] or [0])
    return any(
        gap > max(_GAP * 1.2 * max(line.size, lines[edge].size), 1.2 * usual)
        for gap, line in zip(gaps[:_ROUNDS], lines[1:] if edge == 0 else lines[-2::-1], strict=False)
    )


def without_lists(pages: Sequence[list[Line]], omissions: Counter[str]) -> list[list[Line]]:
    """The lines of pages without those of a table of contents or an index."""
    texts = ((number, line.text) for number, lines in enumerate(pages) for line in lines)
    beginnings = Beginnings((number, text) for number, text in texts if not nav.is_contents_line(text))
    result: list[list[Line]] = []
    is_inside = False  # whether the page before has one, or its title at the end
    for number, lines in enumerate(pages):
        has_title = any(map(nav.names_contents, [line.text for line in lines]))
        result.append(_without_list(lines, number, beginnings, has_title=is_inside or has_title))
        omissions[nav.CONTENTS] += len(lines) - len(result[-1])
        is_inside = has_title or len(result[-1]) < len(lines)
    return result


def _without_list(lines: list[Line], number: int, beginnings: Beginnings, *, has_title: bool) -> list[Line]:
    """The lines of a page without those of a list: it has a title, or half of it names what stands on later pages.

    Prices and sizes may look the same, and may be in order.
    """

    def are_named(names: Sequence[str]) -> bool:
        return has_title or 2 * sum(beginnings.stand_below(name, number) for name in names) >= len(names)

    ends = [(line.text, end) for line in lines if (end := _page_at_end(line.text)) is not None]
    is_contents = len(lines) >= 8 and len(ends) > 0.6 * len(lines)
    if is_contents and has_title and 2 * sum(_leads_to(text, end) for text, end in ends) > len(ends):
        return _around(lines)  # the pages of an index are in no order
    leaders = [line.text for line in lines if nav.is_contents_line(line.text)]
    if leaders and not (nav.are_contents(leaders) and are_named([*map(nav.entry_of, leaders)])):
        return lines
    pages = [text for text, _ in ends]
    if len(leaders) > 0.2 * len(lines):
        return _around(lines)
    if is_contents and (_behind_commas(pages) or (_in_order(pages) and are_named([text[:end] for text, end in ends]))):
        return _around(lines)
    goes_on = has_title and not any(nav.names_contents(line.text) for line in lines)
    items = (
        next((position for position, line in enumerate(lines) if _page_at_end(line.text) is None), len(lines))
        if goes_on
        else 0
    )
    return [line for line in lines[items:] if not nav.is_contents_line(line.text)] if leaders or items else lines


def _around(lines: list[Line]) -> list[Line]:
    """What stands above the title of a list, such as an abstract, and several lines below it, without page numbers."""
    is_list = [position for position, line in enumerate(lines) if _page_at_end(line.text) is not None]
    title = next((position for position, line in enumerate(lines) if nav.names_contents(line.text)), 0)
    remaining_lines = lines[max(is_list, default=len(lines)) + 1 :]
    return [*lines[:title], *(remaining_lines if len(remaining_lines) >= _MIN_TEXT_LINES else [])]


def _page_at_end(text: str) -> int | None:
    """Where the number of a page begins that a line ends in."""
    last = text.rstrip(" ,")  # others may follow in the next line
    match = _TO_PAGE.search(last, max(0, len(last) - 24)) if last.endswith(_PAGE_ENDS) else None
    return match.start() if match else None


def _leads_to(text: str, end: int) -> bool:
    """Whether dots or a comma stand before the page that a line ends in, or other pages."""
    return text[:end].rstrip()[-1:] in (".", ",") or text[end:].lstrip()[:1] in (".", ",")


def _behind_commas(texts: Sequence[str]) -> bool:
    """Whether most lines end as those of an index do: `river, 12`."""
    return 2 * sum(map(bool, map(_BEHIND_COMMA.search, texts))) > len(texts)


def _in_order(texts: Sequence[str]) -> bool:
    """Whether the numbers at the ends of lines mostly rise, or the lines are in order."""
    pages = [int(match[1]) for text in texts if (match := _FIRST_PAGE.search(text)) is not None]
    names = [text.casefold() for text in texts]
    rising = sum(before <= after for before, after in pairwise(pages))
    in_order = sum(before <= after for before, after in pairwise(names))
    return max(rising, in_order) >= _IN_ORDER * (len(texts) - 1)
