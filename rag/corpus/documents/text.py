"""Blocks from plain text: paragraphs, lists, indented code, definitions and headings, by their lines."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag.corpus.documents import navigation as nav
from rag.corpus.documents.blocks import Block, Kind, code, entry, heading, item, row, squeezed, visible
from rag.corpus.documents.titles import is_generic

_BULLET = re.compile(r"(\s*)([-*+•o‣–▪◦●○■→➔►▶✓✔✗☐☑☒]|\(?\d{1,3}[.)]|\(?[a-z][.)])(\s+)(?=\S)")
_RULE = re.compile(r"\s*([=\-~*^\"'`#+_.:<>])\1{2,}\s*$")
_NUMBERED = re.compile(r"\s*(\d{1,2}(?:\.\d{1,2})*|[A-Z](?:\.\d{1,2})+)\.?\s+(?=[^\W\d_])")
_WIKI = re.compile(r"(={2,6}) +([^\s=](?:.*[^\s=])?) +\1")
_HASHES = re.compile(r"(#{1,4}) +([^\W_].{0,98}?[^.,;:=])(?: +#+)?")
_CHAPTER = re.compile(r"(?:chapter|appendix|part)\s([\dIVX]{1,5}|[A-Z])[.:]?\s+(?=[^\W\d_])", re.IGNORECASE)
_NAME = re.compile(r"\s*-|\w[_=]")  # of an option or a value
_BEFORE = re.compile(r"\s*(?:[-*+•‣–?o]\s+)?(?:\(?[\dA-Za-z]{1,3}[.)]\s*|\d{1,3}(?:\.\d{1,3})+\.?\s*|\d{1,3}\s+)*")
ASKED = re.compile(r"\s*(?:Q|Question)(?: ?\d[\d.]*)?\s?[:.)]\s+(?=\S)")
TOLD = re.compile(r"\s*(?:A|Answer)(?: ?\d[\d.]*)?\s?[:.)]\s+(?=\S)")
_CONTENTS = re.compile(r"\s*(?:table of )?contents\s*:?\s*", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_PAGES = 4  # of a text that has headers and footers, at least
_TITLE_WORDS = 5  # of a heading without a mark
_NUMBERED_WORDS = 25  # of a question or a heading such as 2.1
_DATE = re.compile(  # "6 October 2025" has no number of a heading
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)\b|.*\b(?:19|20)\d\d$"
)
_HEADLINE_WORDS = 10  # of the first line of a text
_LABEL = re.compile(r"[\w-]+:\s|.*(?:://|@|\t| {3})")
_ARTICLE = re.compile(r"(?:article|section|annex|schedule|artikel|clause)\s+[\dIVX]", re.IGNORECASE)
_PARAGRAPH = re.compile(  # "§ 3 Notice", "Article 3", "Article 3: Notice"
    r"\s*(?:§ ?\d{1,4}[a-z]?|(?i:article|artikel|clause|annex|schedule) (?:\d{1,3}|[IVX]{1,5}))\b\W*(?:$|(?=[A-ZÄÖÜ]))"
)
_STEP = re.compile(r"\s*([A-Z][\w-]*\s)(\d{1,3})[:.)]\s+(?=\S)")
_CLAUSE = re.compile(r"\s*((?:\d{1,2}\.)+)(\d{1,3})\.?\s+(?=[A-Z])")
_LABELLED = re.compile(r"\s*[A-Z\d][\w-]+(?: [\w./-]+){0,3}:\s+(?=\S)")
_STAMP = re.compile(  # "09:30 Welcome", "[12/03/2025, 18:02] Ann: Hello", "2025-03-12 It rained"
    r"\s*[\[(]?(?:\d{1,2}[:.]\d\d(?![\d.,]*\d)|\d{1,2}([./])\d{1,2}\1(?:\d{4}|\d\d)\b|\d{4}-\d\d-\d\d(?!\d))"
)
_BOX = re.compile(r"\s*(?:\[[ xX*✓<>]?\]|[☐☑☒✓✔✗])\s+(?=\S)")  # "[x] Tent"
_CAPITAL_LABEL = re.compile(r"\s*[A-Z]{2}[A-Z ]{1,22}:\s+(?=\S)")  # "ACTION: Ann prints it"
_MANUAL = frozenset(["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "USAGE", "SEE ALSO", "AUTHOR", "BUGS"])
_SHORT = 0.6  # of the usual width, up to which a line is short
_NARROW, _TINY = 45, 30  # characters: text is rarely wrapped to lines shorter than the first, never than the second
_WORD = re.compile(r"[(\"'“‘]?[^\W\d_]+(?:['’-][^\W\d_]+)*[.,;:)!?\"'”’]*$")
_COMMENT = re.compile(r"\s*(?:#|//|;|\*|--|%|\$|>>>|>|<|\|)")
_GOES_ON = re.compile(r"(?:,|\b(?:an?|and|are|as|at|by|for|from|in|is|of|on|or|that|the|to|with))$")
_SIGN = re.compile(r"[$=<>{}\[|\\]|(?<!\d)[\w.]*/\w|\w_\w|\w\.\w*[a-z]|(?:^|\s)--?\w|^\s*#|\w\(")  # of code
_ARGUMENTS = re.compile(r"[\w\s][(\[<]")
DOTS = re.compile(r"(?<=[^\s.:])[ \t]*(?:\. ?){4,}[ \t]*(?=[^\s.])")  # "Tea ........ 2.60"
_NAMES = re.compile(r"\s*[^\W\d_](?:[^\W\d_]|[ .()/%&'-])*")  # of columns
_ROWS, _PART = 10, 100  # of a long table, at least; words of its parts
_DOTTED = re.compile(r"(?:\. ?){4,}")
_GRID_RULE = re.compile(r"(?=.*[-=]{2})[-+|=: ]+")
_GAP = re.compile(r"\S\s{3,}\S")
_HYPHEN = re.compile(r"(?<=[^\W\d_])- (?=[^\W\d_])")
_PAGE_EDGE = re.compile(r"\s*(\S+\(\d\w*\))(?:\s.*)?\s\1\s*")
_SIGNATURE = re.compile(r"[{};]\s*$|^\s*(?:[$#>%]\s|>>>|\w+\(|[-\w./]+\s*=)")


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Lines between empty lines, and how far the first is indented.

    `term`: the first line is a term, the others are its text. `title`: the only line is a heading, by what stands
    around it, or as in a wiki, by so many equals signs at both ends (`signs`).
    """

    lines: tuple[str, ...]
    indent: int
    term: bool = False
    title: bool = False
    signs: int = 0

    @property
    def text(self) -> str:
        return unwrapped(self.lines)


def plain_blocks(text: str, dropped: Counter[str]) -> Iterator[Block]:
    """The blocks of a text; lines of contents and indexes are counted in `dropped`."""
    chunks = [chunk for chunk in _chunks(_without_margins(visible(text), dropped)) if not _is_page_edge(chunk, dropped)]
    chunks = _with_questions([*_without_contents(chunks, dropped)])
    base = _usual_indent(chunks)
    chunks = _with_titles(_with_capital_terms(_with_terms(chunks, base), base), base)
    width = _usual_width(chunks)
    rules: list[tuple[str, bool]] = []  # signs of underlined headings and whether they are above too, by level
    waiting: list[str] = []  # lines of code
    most = max((chunk.signs for chunk in chunks), default=0)
    above = 1  # level of the last heading with a mark
    for chunk in chunks:
        if rows := _grid(chunk.lines):
            if waiting and (block := code("\n".join(waiting))):
                yield block
            waiting = []
            yield from rows
            continue
        may_be_code = not (chunk.term or chunk.title)
        if may_be_code and (parts := _long_table(chunk.lines)):
            found = [code("\n".join(lines)) for lines in ([waiting] if waiting else []) + parts]
            yield from filter(None, found)
            waiting = []
            continue
        if (may_be_code and is_code(chunk.lines, base)) or _are_commands(chunk, width):
            waiting += ["", *chunk.lines]
            continue
        if waiting and (block := code("\n".join(waiting))):
            yield block
        waiting = []
        if chunk.signs:
            above = 7 - chunk.signs if most > 4 else chunk.signs  # DokuWiki has most signs at the top, MediaWiki fewest
        if chunk.title:
            yield heading(squeezed(chunk.lines[0]), above if chunk.signs else min(above + 1, 6))
            continue
        for block in _blocks(chunk, base, width, rules):
            above = block.level or above
            yield block
    if waiting and (block := code("\n".join(waiting))):
        yield block


def titled(text: str, blocks: Sequence[Block]) -> tuple[str, list[Block]]:
    """The title of a plain text ("" if it has none) and its blocks without it.

    That is the only heading of the top rank at the beginning, or a first line above all others: a heading that has no
    text of its own before the next of its rank, or a line that stands alone and is no sentence. Another heading without
    text stays as a line of text.
    """
    headings = [block for block in blocks if block.kind is Kind.HEADING]
    first = blocks[0] if blocks else None
    if first is None or (len(blocks) == 1 and first.kind is Kind.HEADING):
        return "", []
    title = ""
    if first.kind is Kind.HEADING:
        same = sum(block.level <= first.level for block in headings)
        following = blocks[1]
        over = following.kind is Kind.HEADING and following.level <= first.level
        others = headings[1:]
        if first.text.isupper() and all(not one.text.isupper() or _ARTICLE.match(one.text) for one in others):
            over = True  # capitals that stand above numbers
        if (same == 1 or over) and not (first.level > 1 and is_generic(first.text)):
            title = first.text
    elif _is_title_line(text, first) and sum(block.level == 1 for block in headings) != 1:
        title = first.text
    return title, [*with_bare_headings(blocks[1:] if title else blocks)]


def _is_title_line(text: str, first: Block) -> bool:
    """Whether the first block is a line that stands alone and may be a title."""
    start = text.lstrip().splitlines()
    line = start[0].strip()
    words = line.split()
    return (
        first.kind is Kind.TEXT
        and squeezed(line) == first.text
        and len(start) > 1
        and not start[1].strip()
        and len(line) > 1
        and len(words) <= _HEADLINE_WORDS
        and (line[0].isupper() or line[0].isdigit())
        and (line[-1].isalnum() or line[-1] in ')?”"')
        and not _LABEL.match(line)
        and not _DATE.search(line)
        and sum(map(str.isalpha, line)) >= 0.5 * len(line)
    )


def with_bare_headings(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks, with a heading that nothing stands under as a line of text."""
    for place, block in enumerate(blocks):
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        if block.kind is Kind.HEADING and (
            following is None or (following.kind is Kind.HEADING and following.level <= block.level)
        ):
            yield Block(block.text)
        else:
            yield block


def is_prose(text: str) -> bool:
    """Whether preformatted text holds sentences, as a manual page set in `<pre>` does, rather than code."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 6 or sum(bool(_COMMENT.match(line)) for line in lines) > 0.2 * len(lines):
        return False
    return sum(map(wordy, lines)) >= 0.5 * len(lines)


def wordy(line: str) -> bool:
    """Whether a line is of a sentence."""
    parts = line.split()
    return len(parts) >= 5 and sum(bool(_WORD.match(part)) for part in parts) >= 0.7 * len(parts)


def _chunks(text: str) -> Iterator[_Chunk]:
    lines: list[str] = []
    said = [*text.replace("\f", "\n\n").expandtabs(8).splitlines(), ""]
    hashed = _has_hashes(said)
    for line in said:
        wiki = _WIKI.fullmatch(line.rstrip()) if line.startswith("==") else None
        if hashed and line.startswith("#"):
            wiki = _HASHES.fullmatch(line.rstrip())
        if line.strip() and not wiki:
            lines.append(line.rstrip())
        elif lines:
            yield _Chunk(tuple(lines), indent_of(lines[0]))
            lines = []
        if wiki:
            yield _Chunk((wiki[2],), 0, title=True, signs=len(wiki[1]))


def _has_hashes(lines: Sequence[str]) -> bool:
    """Whether a text has headings as Markdown has (`# Rules`, `## Dogs`): two or more, each after an empty line.

    Comments stand below each other or above a setting, or have no space after the sign.
    """
    marks = [place for place, line in enumerate(lines) if line.startswith("#")]
    found = [mark for place in marks if (mark := _HASHES.fullmatch(lines[place].rstrip()))]
    apart = all(not place or not lines[place - 1].strip() for place in marks)
    return len(marks) > 1 and len(found) == len(marks) and apart and any(len(mark[1]) > 1 for mark in found)


def _without_margins(text: str, dropped: Counter[str]) -> str:
    """A text without headers and footers: first and last lines of pages that most pages have, but for numbers."""
    pages = [page.splitlines() for page in text.split("\f")]
    if len(pages) < _PAGES:
        return text
    for edge in (0, -1):
        found = [
            (lines, places[edge]) for lines in pages if (places := [n for n, line in enumerate(lines) if line.strip()])
        ]
        patterns = Counter(_DIGITS.sub("0", squeezed(lines[place])) for lines, place in found)
        for lines, place in found:
            if patterns[_DIGITS.sub("0", squeezed(lines[place]))] >= 0.5 * len(pages):
                lines[place] = ""
                dropped[nav.MARGIN] += 1
    return "\f".join("\n".join(lines) for lines in pages)


def _with_questions(chunks: Sequence[_Chunk]) -> list[_Chunk]:
    """The chunks, with each question of "Q: ... A: ..." as a heading, if there are two or more with their answers."""
    lines = [line for chunk in chunks for line in chunk.lines]
    if min(sum(map(bool, map(mark.match, lines))) for mark in (ASKED, TOLD)) < 2:
        return [*chunks]
    found = []
    for chunk in chunks:
        begins = [place for place, line in enumerate(chunk.lines) if ASKED.match(line) or TOLD.match(line)]
        for start, end in pairwise(sorted({0, *begins, len(chunk.lines)})):
            part = replace(chunk, lines=chunk.lines[start:end], indent=indent_of(chunk.lines[start]))
            first, *rest = part.lines
            if mark := ASKED.match(first):
                text = unwrapped([first[mark.end() :], *rest])
                title = len(text.split()) <= _NUMBERED_WORDS
                part = replace(part, lines=(text,) if title else part.lines, title=title)
            elif mark := TOLD.match(first):
                shift = max(min(map(indent_of, rest), default=0) - part.indent, 0)  # of lines below the text
                part = replace(part, lines=(" " * part.indent + first[mark.end() :], *(line[shift:] for line in rest)))
            found.append(part)
    return found


def _with_terms(chunks: Sequence[_Chunk], base: int) -> list[_Chunk]:
    """The chunks; a term is joined with the indented paragraph below it, if it is a name or one of several."""
    after: dict[int, int] = {}  # the place of a possible term, and of the chunk after its text
    for place, (chunk, text) in enumerate(pairwise(chunks)):
        may_be = not chunk.title and chunk.indent >= base and _is_term(chunk)
        if may_be and text.indent >= chunk.indent + 2 and not is_code(text.lines, base):
            ends = range(place + 1, len(chunks))
            after[place] = next((end for end in ends if chunks[end].indent <= chunk.indent), len(chunks))
    terms: set[int] = set()
    for place, end in after.items():
        if _NAME.search(chunks[place].lines[0]):
            terms.add(place)
        if end in after and chunks[end].indent == chunks[place].indent:
            terms |= {place, end}
    return [
        _Chunk((*chunk.lines, *chunks[place + 1].lines), chunk.indent, term=True) if place in terms else chunk
        for place, chunk in enumerate(chunks)
        if place - 1 not in terms
    ]


def _with_capital_terms(chunks: Sequence[_Chunk], base: int) -> list[_Chunk]:
    """The chunks; a line of capitals above indented lines is a term where other terms of that form are not in capitals.

    Manual pages, which have headings of that form, have none.
    """
    hanging = {
        place
        for place, chunk in enumerate(chunks)
        if not (chunk.term or chunk.title)
        and chunk.indent == base
        and _hangs(chunk.lines)
        and _is_term(replace(chunk, lines=chunk.lines[:1]))
        and any(map(wordy, chunk.lines[1:]))
    }
    capital = {place for place in hanging if chunks[place].lines[0].isupper()}
    of_manual = any(chunk.lines[0].strip() in _MANUAL for chunk in chunks)
    if of_manual or not any(chunks[place].lines[0].strip()[0].isupper() for place in hanging - capital):
        return [*chunks]
    return [replace(chunk, term=True) if place in capital else chunk for place, chunk in enumerate(chunks)]


def _with_titles(chunks: Sequence[_Chunk], base: int) -> list[_Chunk]:
    """The chunks, with short lines as headings that stand between paragraphs, or lists, if there are two or more."""
    said = [_is_paragraph(chunk, base) for chunk in chunks]
    listed = [_is_listed(chunk) for chunk in chunks]
    above = {  # a list, such as `Drinks` above its prices
        place
        for place in range(len(chunks) - 1)
        if _may_be_title(chunks[place], base) and listed[place + 1] and (place < 2 or listed[place - 1])
    }
    titles = {
        place
        for place in range(len(chunks) - 1)
        if _may_be_title(chunks[place], base) and said[place + 1] and (not place or said[place - 1])
    }
    titles = (titles if len(titles) > 1 else set()) | (above if len(above) > 1 else set())
    return [replace(chunk, title=True) if place in titles else chunk for place, chunk in enumerate(chunks)]


def _is_listed(chunk: _Chunk) -> bool:
    """Whether lines are the items of a list, or stand by themselves."""
    lines = [line.strip() for line in chunk.lines]
    if chunk.term or chunk.title or len(lines) < 2 or lines[0].isupper():
        return False
    return all(map(_BULLET.match, lines)) or all(map(_GAP.search, lines)) or are_narrow(lines)


def _may_be_title(chunk: _Chunk, base: int) -> bool:
    line = chunk.lines[0].strip()
    words = line.split()
    return (
        len(chunk.lines) == 1
        and not chunk.signs
        and chunk.indent == base
        and len(words) <= _TITLE_WORDS
        and line[0].isupper()
        and all(word[0].isalpha() for word in words)
        and line[-1].isalpha()
    )


def _is_paragraph(chunk: _Chunk, base: int) -> bool:
    return (
        not (chunk.term or chunk.title)
        and chunk.indent == base
        and chunk.lines[-1][-1] in ".!?"
        and not _BULLET.match(chunk.lines[0])
        and any(map(wordy, chunk.lines))
    )


def _is_term(chunk: _Chunk) -> bool:
    line = chunk.lines[0].strip()
    return (
        len(chunk.lines) == 1
        and len(line.split()) <= 8
        and line[-1] not in ".,;"
        and not (_BULLET.match(line) or _RULE.fullmatch(line) or _NUMBERED.match(line) or _CHAPTER.match(line))
    )


def _is_page_edge(chunk: _Chunk, dropped: Counter[str]) -> bool:
    """Whether a line is the head of a manual page: `LS(1)   User commands   LS(1)`."""
    found = len(chunk.lines) == 1 and _PAGE_EDGE.fullmatch(chunk.lines[0]) is not None
    dropped[nav.NAVIGATION] += found
    return found


def _without_contents(chunks: Sequence[_Chunk], dropped: Counter[str]) -> Iterator[_Chunk]:
    """The chunks without tables of contents: lines that stand again below, each at the beginning of a chunk.

    Nearly all do, or most below the word `Contents`, as some go on from the line before. Of lines with dots before a
    page number half are enough, and none below that word; `Up to 1 hour ..... 2` is a price.
    """
    places: dict[str, int] = {}  # the last chunk that begins with these words
    for place, chunk in enumerate(chunks):
        said = [line for line in chunk.lines[:3] if not _RULE.fullmatch(line)]
        for count in (1, 2):
            if words := _bare(" ".join(said[:count])):
                places[words] = place
    known = sorted(places)
    title: _Chunk | None = None  # of contents, if they follow
    inside = False
    for place, chunk in enumerate(chunks):
        if _CONTENTS.fullmatch(chunk.lines[0]) and all(map(_RULE.fullmatch, chunk.lines[1:])):
            if title is not None:
                yield title
            title, inside = chunk, False
            continue
        announced = title is not None or inside
        dotted = [line for line in chunk.lines if nav.is_contents_line(line)]
        if dotted and nav.are_contents(dotted):
            announced = announced or any(map(_CONTENTS.fullmatch, chunk.lines))
            names = [_bare(_DOTTED.split(line, maxsplit=1)[0]) for line in dotted]
            if announced or 2 * sum(_stands_below(name, place, known, places) for name in names) >= len(names):
                dropped[nav.CONTENTS] += len(dotted)
                title, inside = None, True
                if rest := tuple(line for line in chunk.lines if not (line in dotted or _CONTENTS.fullmatch(line))):
                    yield replace(chunk, lines=rest, indent=indent_of(rest[0]))
                continue
        lines = [(_bare(line), _GAP.search(line.strip()) is None) for line in chunk.lines]
        again = sum(
            (running or words in places) and _stands_below(words, place, known, places) for words, running in lines
        )
        inside = again >= max(1, 0.6 * len(lines)) if announced else again >= max(4, 0.9 * len(lines))
        if inside:
            dropped[nav.CONTENTS] += len(chunk.lines)
        elif title is not None:
            yield title
        title = None
        if not inside:
            yield chunk
    if title is not None:
        yield title


def _bare(line: str) -> str:
    """The words of a line without marks and numbers before them."""
    return squeezed(_BEFORE.sub("", line, count=1)).casefold()


def _stands_below(words: str, place: int, known: Sequence[str], places: Mapping[str, int]) -> bool:
    """Whether a chunk after this place begins with these words, all of its line or, for a longer one, a part."""
    at = bisect_left(known, words)
    if (
        not words
        or at == len(known)
        or (known[at] != words and (len(words.split()) < 3 or not known[at].startswith(words)))
    ):
        return False
    return places[known[at]] > place


def indent_of(line: str) -> int:
    """How many spaces a line begins with."""
    return len(line) - len(line.lstrip())


def _usual_indent(chunks: Sequence[_Chunk]) -> int:
    """The indent of most lines of running text."""
    counts = Counter(indent_of(line) for chunk in chunks for line in chunk.lines if wordy(line))
    counts = counts or Counter(chunk.indent for chunk in chunks)
    return counts.most_common(1)[0][0] if counts else 0


def _usual_width(chunks: Sequence[_Chunk]) -> int:
    """How wide most lines of running text may get."""
    widths = sorted(len(line) for chunk in chunks for line in chunk.lines if wordy(line))
    return widths[int(0.9 * len(widths))] if widths else 0


def _are_lines(lines: Sequence[str], width: int) -> bool:
    """Whether each line stands by itself: all are short, or there are four or more, and none goes on in the next."""
    indents = [*map(indent_of, lines)]
    if len(lines) < 2 or max(indents) - min(indents) > 1:
        return False
    if all(_GAP.search(line.strip()) for line in lines) or are_narrow(lines):
        return True
    small = sum(line.lstrip()[0].islower() for line in lines[1:])
    if max(map(len, lines)) < _SHORT * width:
        return small <= 0.3 * (len(lines) - 1)
    if len(lines) < 4 or any(map(_GOES_ON.search, lines[:-1])) or any(map(str.isupper, lines)):
        return False
    longest = max(map(len, lines))
    wrapped = sum(len(line) > 0.85 * longest for line in lines[:-1])
    begins = [line.lstrip(" *</[")[:1] for line in lines[1:]]
    return wrapped < 0.5 * len(lines) and all(sign.isupper() or sign.isdigit() for sign in begins)


def are_narrow(lines: Sequence[str]) -> bool:
    """Whether lines are too short to be wrapped, as the next word has room on each: `Espresso 2,20`, `Tea 4,10`."""
    longest = max(map(len, lines))
    if longest >= _NARROW or (all(map(str.isupper, lines)) and lines[-1][-1] in ".!"):
        return False
    if any(line[-1] in "-–—" or _GOES_ON.search(line.lower()) for line in lines[:-1]):
        return False
    if any(len(line) + len(after.split()[0]) >= _NARROW for line, after in pairwise(lines)):
        return False
    begins = [line.lstrip() for line in lines[1:]]
    small = sum((line[0].islower() and not _LABEL.match(line)) or line[0] in "-–—" for line in begins)
    few = len(lines) >= 4 and longest < _TINY and not any(map(wordy, lines))
    return few or small <= 0.3 * (len(lines) - 1)


def _are_commands(chunk: _Chunk, width: int) -> bool:
    """Whether lines are code although they are not indented: none is a sentence or has a capital, some have signs."""
    lines = chunk.lines
    if chunk.term or len(lines) < 2 or max(map(len, lines)) >= width or any(map(_RULE.fullmatch, lines)):
        return False
    if _hangs(lines) and not _ARGUMENTS.search(lines[0]):
        return False
    if any(wordy(line) or _BULLET.match(line) or line[-1] in ".!?,;:" for line in lines):
        return False
    if not all(line.isascii() and not line.lstrip()[0].isupper() for line in lines):
        return False
    return sum(map(bool, map(_SIGN.search, lines))) >= 0.3 * len(lines)


def is_code(lines: Sequence[str], base: int) -> bool:
    """Whether lines between empty ones are code or columns, in a text that is indented by `base`."""
    if all(map(DOTS.search, lines)) or _BULLET.match(lines[0]):
        return False
    if any(map(_RULE.fullmatch, lines)) and len(lines) <= 3:
        return False
    sentences = sum(map(wordy, lines))
    gaps = sum(bool(_GAP.search(line.strip())) for line in lines)
    if len(lines) >= 3 and gaps >= 0.6 * len(lines) and not any(map(DOTS.search, lines)):
        return True  # columns: their lines are kept
    if lines[0].lstrip()[0].isupper() and len(lines[0].split()) >= 2 and lines[-1].endswith("."):
        return False  # a short sentence
    if min(map(indent_of, lines)) >= base + 2 and sentences < 0.5 * len(lines):
        return len(lines) > 1 or any(map(_SIGNATURE.search, lines)) or indent_of(lines[0]) >= base + 4
    return sentences == 0 and sum(bool(_SIGNATURE.search(line)) for line in lines) >= 0.6 * len(lines)


def _blocks(chunk: _Chunk, base: int, width: int, rules: list[tuple[str, bool]]) -> Iterator[Block]:
    lines = [*chunk.lines]
    if chunk.term:
        yield entry(squeezed(lines[0]), unwrapped(lines[1:]))
        return
    lines = yield from _underlined(lines, rules)
    if not lines:
        return
    if have_dots(lines):
        yield from _dotted(lines)
        return
    if count := _heading_lines(lines, base):
        text = " ".join(lines[:count])
        number = _CHAPTER.match(text) or _NUMBERED.match(text)
        level = 2 + bool(rules)
        if number:  # "A.1" stands where "1" does: "A." is no heading
            level = 2 + number[1].count(".") - ("." in number[1] and number[1][0].isalpha())
        yield heading(squeezed(text[number.end() :] if number else text), min(level, 6))
        del lines[:count]
    if depths := _outline(lines):
        yield from (item(squeezed(line), depth, "-") for line, depth in zip(lines, depths, strict=True))
        return
    if starts := _clauses(lines):
        yield from _contract(lines, starts, min(2 + bool(rules), 6))
        return
    if starts := _labelled(lines):
        for start, end in pairwise([*starts, len(lines)]):
            yield from _step(lines[start:end])
        return
    first = _first_item(lines)
    last = _after_list(lines, first, width)
    if first:
        yield from _entry_or_text(lines[:first], width)
    if lines[first:last]:
        yield from _items(lines[first:last])
    if lines[last:]:
        yield from _entry_or_text(lines[last:], width)


def have_dots(lines: Sequence[str]) -> bool:
    """Whether lines are rows such as `Tea ...... 2.60`; one line alone needs a number, as prose has such dots too."""
    count = sum(map(bool, map(DOTS.search, lines)))
    numbers = any(sign.isdigit() for line in lines if (dots := DOTS.search(line)) for sign in line[dots.end() :])
    return 2 * count >= len(lines) and (count > 1 or numbers)


def _dotted(lines: Sequence[str]) -> Iterator[Block]:
    """Rows such as `Tea ....... 2.60`; a line without dots belongs to the row above it."""
    starts = [place for place, line in enumerate(lines) if DOTS.search(line)]
    if starts[0]:
        yield Block(unwrapped(lines[: starts[0]]))
    for start, end in pairwise([*starts, len(lines)]):
        name, value = DOTS.split(unwrapped(lines[start:end]), maxsplit=1)
        yield entry(name, value.lstrip(" :"))


def _grid(lines: Sequence[str]) -> list[Block]:
    """The rows of a table that is drawn with `|` between its cells, which some stand between lines; else none."""
    said = [line.strip() for line in lines]
    if len(said) < 3 or not all(line[0] in "|+" and line[-1] in "|+" for line in said):
        return []
    table: list[list[list[str]]] = [[]]  # the lines between rules, in cells
    for line in said:
        if _GRID_RULE.fullmatch(line):
            table.append([])
        else:
            table[-1].append([squeezed(cell) for cell in line[1:-1].split("|")])
    parts = [part for part in table if part]
    widths = {len(cells) for part in parts for cells in part}
    ruled = [line for line in said if _GRID_RULE.fullmatch(line)]
    if len(parts) < 2 or len(widths) != 1 or widths == {1} or any("  " in line for line in ruled):
        return []  # the last: a cell spans rows
    if len(parts) > 2:  # a rule below each row: its other lines, which lack cells, go on
        parts = [
            [[squeezed(" ".join(column)) for column in zip(*part, strict=True)]]
            if any("" in cells for cells in part[1:])
            else part
            for part in parts
        ]
    if len(parts) > 3 and not any("=" in line for line in ruled):
        return [block for part in parts for cells in part if (block := row(cells))]
    names = parts[0][-1]
    return [block for part in parts[1:] for cells in part if (block := row(cells, names))]


def _outline(lines: Sequence[str]) -> list[int]:
    """How deep each line is in an outline by indents alone, three deep or more, such as a family tree; else none."""
    indents = sorted(set(map(indent_of, lines)))
    if len(indents) < 3 or indent_of(lines[0]) != indents[0] or any(map(_BULLET.match, lines)):
        return []
    begins = all(line.lstrip()[0].isupper() or line.lstrip()[0].isdigit() for line in lines)
    if not begins or any(_GOES_ON.search(line) or line[-1] in ".;:-" or len(line.split()) > 12 for line in lines):
        return []
    steps = all(indent_of(after) <= indent_of(line) or _next(indents, line, after) for line, after in pairwise(lines))
    return [indents.index(indent_of(line)) for line in lines] if steps else []


def _next(indents: Sequence[int], line: str, after: str) -> bool:
    return indents.index(indent_of(after)) == indents.index(indent_of(line)) + 1


def _long_table(lines: Sequence[str]) -> list[list[str]]:
    """The lines of a long table in columns, in parts that each begin with the names of the columns; else none."""
    names, rows = lines[0], lines[1:]
    if len(rows) < _ROWS or not _NAMES.fullmatch(names) or not _GAP.search(names.strip()):
        return []
    if sum(bool(_GAP.search(line.strip()) and _DIGITS.search(line)) for line in rows) < 0.9 * len(rows):
        return []
    parts: list[list[str]] = []
    words = _PART
    for line in rows:
        if words >= _PART:
            parts.append([names])
            words = 0
        parts[-1].append(line)
        words += len(line.split())
    return parts if len(parts) > 1 else []


def _clauses(lines: Sequence[str]) -> list[int]:
    """The places of `1.1 ...` and the like below `1. Rent`, or between items such as `(a) ...`; else none."""
    starts = [place for place, line in enumerate(lines) if _CLAUSE.match(line)]
    number = _NUMBERED.match(lines[0]) if lines else None
    if not starts or number is None:
        return []
    headed = starts[0] == 1 and (below := _CLAUSE.match(lines[1])) is not None and below[1] == f"{number[1]}."
    items = any(_BULLET.match(line) for line in lines[starts[0] :])
    return starts if headed or (starts[0] == 0 and len(starts) > 1 and items) else []


def _contract(lines: Sequence[str], starts: Sequence[int], level: int) -> Iterator[Block]:
    """Clauses, below their heading if the first does not begin at once; each may have items."""
    if starts[0]:
        number = _NUMBERED.match(lines[0])
        yield heading(squeezed(lines[0][number.end() if number else 0 :]), level)
    for start, end in pairwise([*starts, len(lines)]):
        first = next((place for place in range(start + 1, end) if _BULLET.match(lines[place])), end)
        yield Block(unwrapped(lines[start:first]))
        yield from _items(lines[first:end])


def _labelled(lines: Sequence[str]) -> list[int]:
    """The places of lines that begin with numbers in order: `Step 1: ...`, `Step 2: ...`, or `1.1 ...`, `1.2 ...`.

    Those of a chunk of which each line begins with a label, `Room 1: ...`, but for lines with more indent; else none.
    """
    least = min(map(indent_of, lines), default=0)
    heads = [place for place, line in enumerate(lines) if indent_of(line) == least]
    labelled = len(heads) > 1 and heads[0] == 0 and all(_LABELLED.match(lines[place]) for place in heads)
    if labelled and not (len(heads) < len(lines) and any(map(_BULLET.match, lines))):
        return heads
    marks = [(place, mark) for place, line in enumerate(lines) if (mark := _STEP.match(line) or _CLAUSE.match(line))]
    if len(marks) < 2 or marks[0][0]:
        return []
    names = {mark[1] for _, mark in marks}
    numbers = [int(mark[2]) for _, mark in marks]
    in_order = all(after == before + 1 for before, after in pairwise(numbers))
    return [place for place, _ in marks] if len(names) == 1 and in_order else []


def _step(lines: Sequence[str]) -> Iterator[Block]:
    """A line with a label; what is indented after its colon is code."""
    if len(lines) > 1 and lines[0].endswith(":") and is_code(lines[1:], indent_of(lines[0])):
        yield Block(squeezed(lines[0]))
        if (block := code("\n".join(lines[1:]))) is not None:
            yield block
    else:
        yield Block(unwrapped(lines))


def _underlined(lines: list[str], rules: list[tuple[str, bool]]) -> Generator[Block, None, list[str]]:
    """Yield the headings that have a line of signs below (and above) them; return the other lines."""
    above = len(lines) >= 3 and _RULE.fullmatch(lines[0]) is not None and lines[0].strip() == lines[2].strip()
    if above:
        del lines[0]
    rule = _RULE.fullmatch(lines[1]) if len(lines) >= 2 and not _RULE.fullmatch(lines[0]) else None
    if rule is not None and len(lines[1].strip()) >= 0.5 * len(lines[0].strip()):
        rank = rule[1], above
        if rank not in rules:
            rules.append(rank)
        yield heading(squeezed(lines[0]), min(rules.index(rank) + 1, 6))
        del lines[:2]
    return [line for line in lines if not _RULE.fullmatch(line)]


def _heading_lines(lines: Sequence[str], base: int) -> int:
    """How many of the first lines are a heading: one, or two of a numbered one that goes on."""
    if len(lines) == 1 and _CHAPTER.match(lines[0]) and len(lines[0].split()) <= _NUMBERED_WORDS:
        return int(lines[0].strip()[-1] not in ".,;:!")
    number = _NUMBERED.match(lines[0])
    if number is not None and ("." in number[1] or lines[-1].endswith("?")):
        more = lines[1:]
        alone = len(more) <= 1 and not any(_BULLET.match(line) or _NUMBERED.match(line) for line in more)
        return len(lines) if alone and _is_heading(" ".join(lines), base, _NUMBERED_WORDS, ".,;:!") else 0
    if _PARAGRAPH.match(lines[0]) and len(lines[0].split()) <= _HEADLINE_WORDS and lines[0][-1] not in ".,;!":
        return int(not any(map(_PARAGRAPH.match, lines[1:])))
    sentence = lines[-1][-1] in ".!" or _GOES_ON.search(lines[0].lower()) or any(map(str.isdigit, lines[0]))
    if len(lines) > 1 and all(map(str.isupper, lines)) and sentence:
        return 0  # or entries, "POLICE 110"
    return int((len(lines) == 1 or lines[0].isupper()) and _is_heading(lines[0], base))


def _is_heading(line: str, base: int, longest: int = 10, ends: str = ".,;:!?") -> bool:
    text = line.strip()
    if len(text.split()) > longest or text[-1] in ends or indent_of(line) > base or not text[0].isalnum():
        return False
    number = _NUMBERED.match(line)
    said = text if number is None else line[number.end() :]
    letters = [c for c in said if c.isalpha()]
    if len(letters) < 0.6 * len(said.replace(" ", "")):
        return False
    if number is not None and number.group().strip().isdigit() and (not said[0].isupper() or _DATE.match(said)):
        return False  # "24 hours", "6 October 2025"
    return len(letters) >= 3 and (number is not None or (text.isupper() and "_" not in text))


def _first_item(lines: Sequence[str]) -> int:
    """The place of the first item of a list, or the number of lines; prose may have a line that begins with a dash."""
    marks = [(place, mark) for place, line in enumerate(lines) if (mark := _BULLET.match(line))]
    if not marks or not marks[0][0]:
        return 0 if marks else len(lines)
    place, mark = marks[0]
    if place == 1 and mark[2] in "-*•" and _is_head(lines[0]) and not lines[1][mark.end()].islower():
        return place
    sign = mark[2].strip("().")
    signs = [other[2].strip("().") for _, other in marks]
    if sign in ("1", "a"):
        several = {"1": "2", "a": "b"}[sign] in signs
    else:
        several = not sign.isalnum() and sum(other[1] == mark[1] and other[2] == mark[2] for _, other in marks) > 1
    return place if several or (sign in ("1", "-", "*", "•") and lines[place - 1].endswith(":")) else len(lines)


def _is_head(line: str) -> bool:
    """Whether a line may be the name of the list below it, such as a version and its date."""
    text = line.strip()
    return len(text.split()) <= _TITLE_WORDS and text[0].isupper() and (text[-1].isalnum() or text[-1] == ")")


def _after_list(lines: Sequence[str], first: int, width: int) -> int:
    """The place after a list: its last item is short, and the line after it begins a sentence and has no indent."""
    marks = [place for place in range(first, len(lines)) if _BULLET.match(lines[place])]
    if not marks or marks[-1] + 1 >= len(lines):
        return len(lines)
    item, after = lines[marks[-1]], lines[marks[-1] + 1]
    apart = len(item) < _SHORT * width and after.lstrip()[0].isupper() and indent_of(after) <= indent_of(item)
    return marks[-1] + 1 if apart else len(lines)


def _items(lines: Sequence[str]) -> Iterator[Block]:
    """Items of a list; a line that begins with no mark continues the item before it."""
    parts: list[tuple[int, str, list[str]]] = []
    for line in lines:
        if mark := _BULLET.match(line):
            parts.append((len(mark[1]), mark[2], [line[mark.end() :]]))
        else:
            parts[-1][2].append(line)
    indents: list[int] = []
    for indent, sign, texts in parts:
        while indents and indents[-1] > indent:
            indents.pop()
        if not indents or indents[-1] < indent:
            indents.append(indent)
        number = sign.strip("().")
        text = unwrapped(texts)
        if (number.isalpha() and sign != "o") or _BOX.match(f"{sign} x"):
            text = f"{sign} {text}"  # "(b)" is referred to, and a box tells what is done
        yield item(text, len(indents) - 1, f"{number}." if number.isdigit() else "-")


def marked(lines: Sequence[str], width: int = 0) -> list[int]:
    """The places of lines that begin with a time or date, a box to tick, or a label in capitals.

    Two or more, as a line of a paragraph may begin with one; one label will do if it had room on the line before it.
    """
    for mark in (_STAMP, _BOX):
        starts = [place for place, line in enumerate(lines) if mark.match(line)]
        if len(starts) > 1 and (starts[0] == 0 or (starts[0] == 1 and _is_head(lines[0]))):
            return starts
    labels = {place: found.end() for place, line in enumerate(lines) if (found := _CAPITAL_LABEL.match(line))}
    if len(set(map(indent_of, lines))) > 1:
        return []
    widest = max(width, *map(len, lines))
    several = len({lines[place][:end] for place, end in labels.items()}) < len(labels)
    return [place for place, end in labels.items() if place and (several or len(lines[place - 1]) + end <= widest)]


def _entry_or_text(lines: Sequence[str], width: int) -> Iterator[Block]:
    if starts := marked(lines, width):
        for start, end in pairwise(sorted({0, *starts, len(lines)})):
            yield Block(unwrapped(lines[start:end]))
        return
    if _are_lines(lines, width):
        starts = [place for place, line in enumerate(lines) if not place or not _goes_on(lines[place - 1], line)]
        yield from (Block(unwrapped(lines[start:end])) for start, end in pairwise([*starts, len(lines)]))
        return
    first, rest = lines[0], lines[1:]
    is_term = len(first.split()) <= 8 and first.rstrip()[-1] not in ".,;"
    if is_term and _hangs(lines) and not _is_paragraph_start(first, rest):
        yield entry(squeezed(first), unwrapped(rest))
        return
    start = 0
    widest = max(map(len, lines))
    for number, (line, following) in enumerate(pairwise(lines), 1):
        stripped = line.strip()
        if len(line) < 0.6 * widest and stripped[-1].isalnum() and not following.lstrip()[:1].islower():
            yield Block(unwrapped(lines[start:number]))
            start = number
    yield Block(unwrapped(lines[start:]))


def _goes_on(line: str, after: str) -> bool:
    """Whether a line that is not very short goes on in the next one."""
    begins = after.lstrip()
    return len(line) >= _TINY and line[-1].isalpha() and begins[0].islower() and not _LABEL.match(begins)


def _hangs(lines: Sequence[str]) -> bool:
    """Whether all lines but the first are indented, as the text of a term is."""
    return len(lines) > 1 and all(indent_of(line) >= indent_of(lines[0]) + 2 for line in lines[1:])


def _is_paragraph_start(first: str, rest: Sequence[str]) -> bool:
    """Whether a line as long as those after it only begins a paragraph with a hanging indent."""
    return len(first) > 0.8 * max(map(len, rest)) and len(first.split()) > 5


def unwrapped(lines: Sequence[str]) -> str:
    """Lines as running text; a word that goes on after a hyphen is one."""
    return (
        _HYPHEN.sub("-", squeezed("\n".join(lines)))
        if any(line.endswith("-") for line in lines)
        else squeezed("\n".join(lines))
    )
