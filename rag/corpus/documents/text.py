"""Blocks from plain text: paragraphs, lists, indented code, definitions and headings, by their lines."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.corpus.documents import navigation as nav
from rag.corpus.documents.blocks import Block, code, entry, heading, item, squeezed

_BULLET = re.compile(r"(\s*)([-*+•o‣–]|\(?\d{1,3}[.)]|\(?[a-z][.)])(\s+)(?=\S)")
_RULE = re.compile(r"\s*([=\-~*^\"'`#+_.:<>])\1{2,}\s*$")
_NUMBERED = re.compile(r"\s*(\d{1,2}(?:\.\d{1,2})*)\.?\s+(?=[^\W\d_])")
_CHAPTER = re.compile(r"(?:chapter|appendix|part)\s([\dIVX]{1,5}|[A-Z])[.:]?\s+(?=[^\W\d_])", re.IGNORECASE)
_NAME = re.compile(r"\s*-|\w[_=]")  # of an option or a value
_BEFORE = re.compile(r"\s*(?:[-*+•‣–?o]\s+)?(?:\(?[\dA-Za-z]{1,3}[.)]\s*|\d{1,3}(?:\.\d{1,3})+\.?\s*|\d{1,3}\s+)*")
_CONTENTS = re.compile(r"\s*(?:table of )?contents\s*:?\s*", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_PAGES = 4  # of a text that has headers and footers, at least
_NUMBERED_WORDS = 25  # of a question or a heading such as 2.1
_WORD = re.compile(r"[(\"'“‘]?[^\W\d_]+(?:['’-][^\W\d_]+)*[.,;:)!?\"'”’]*$")
_COMMENT = re.compile(r"\s*(?:#|//|;|\*|--|%|\$|>>>|>|<|\|)")
_GAP = re.compile(r"\S\s{3,}\S")
_HYPHEN = re.compile(r"(?<=[^\W\d_])- (?=[^\W\d_])")
_PAGE_EDGE = re.compile(r"\s*(\S+\(\d\w*\))(?:\s.*)?\s\1\s*")
_SIGNATURE = re.compile(r"[{};]\s*$|^\s*(?:[$#>%]\s|>>>|\w+\(|[-\w./]+\s*=)")


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Lines between empty lines, and how far the first is indented; `term` if that is a term, the others its text."""

    lines: tuple[str, ...]
    indent: int
    term: bool = False

    @property
    def text(self) -> str:
        return unwrapped(self.lines)


def plain_blocks(text: str, dropped: Counter[str]) -> Iterator[Block]:
    """The blocks of a text; lines of contents and indexes are counted in `dropped`."""
    chunks = [chunk for chunk in _chunks(_without_margins(text, dropped)) if not _is_page_edge(chunk, dropped)]
    chunks = [*_without_contents(chunks, dropped)]
    base = _usual_indent(chunks)
    chunks = _with_terms(chunks, base)
    rules: list[tuple[str, bool]] = []  # signs of underlined headings and whether they are above too, by level
    waiting: list[str] = []  # lines of code
    for chunk in chunks:
        if not chunk.term and is_code(chunk.lines, base):
            waiting += ["", *chunk.lines]
            continue
        if waiting and (block := code("\n".join(waiting))):
            yield block
        waiting = []
        yield from _blocks(chunk, base, rules, dropped)
    if waiting and (block := code("\n".join(waiting))):
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
    for line in [*text.replace("\f", "\n\n").expandtabs(8).splitlines(), ""]:
        if line.strip():
            lines.append(line.rstrip())
        elif lines:
            yield _Chunk(tuple(lines), indent_of(lines[0]))
            lines = []


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


def _with_terms(chunks: Sequence[_Chunk], base: int) -> list[_Chunk]:
    """The chunks; a term is joined with the indented paragraph below it, if it is a name or one of several."""
    after: dict[int, int] = {}  # the place of a possible term, and of the chunk after its text
    for place, (chunk, text) in enumerate(pairwise(chunks)):
        if (
            chunk.indent >= base
            and _is_term(chunk)
            and text.indent >= chunk.indent + 2
            and not is_code(text.lines, base)
        ):
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

    Nearly all do, or most below the word `Contents`, as some go on from the line before.
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
        lines = ["" if _GAP.search(line.strip()) else _bare(line) for line in chunk.lines]
        again = sum(_stands_below(words, place, known, places) for words in lines)
        announced = title is not None or inside
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


def is_code(lines: Sequence[str], base: int) -> bool:
    """Whether lines between empty ones are code or columns, in a text that is indented by `base`."""
    if all(map(nav.is_contents_line, lines)) or _BULLET.match(lines[0]):
        return False
    if any(map(_RULE.fullmatch, lines)) and len(lines) <= 3:
        return False
    sentences = sum(map(wordy, lines))
    gaps = sum(bool(_GAP.search(line.strip())) for line in lines)
    if len(lines) >= 3 and gaps >= 0.6 * len(lines) and not sum(map(nav.is_contents_line, lines)):
        return True  # columns: their lines are kept
    if lines[0].lstrip()[0].isupper() and len(lines[0].split()) >= 2 and lines[-1].endswith("."):
        return False  # a short sentence
    if min(map(indent_of, lines)) >= base + 2 and sentences < 0.5 * len(lines):
        return len(lines) > 1 or any(map(_SIGNATURE.search, lines)) or indent_of(lines[0]) >= base + 4
    return sentences == 0 and sum(bool(_SIGNATURE.search(line)) for line in lines) >= 0.6 * len(lines)


def _blocks(chunk: _Chunk, base: int, rules: list[tuple[str, bool]], dropped: Counter[str]) -> Iterator[Block]:
    lines = [*chunk.lines]
    if chunk.term:
        yield entry(squeezed(lines[0]), unwrapped(lines[1:]))
        return
    leaders = [line for line in lines if nav.is_contents_line(line)]
    if leaders:
        dropped[nav.CONTENTS] += len(leaders)
        lines = [line for line in lines if not nav.is_contents_line(line)]
    lines = yield from _underlined(lines, rules)
    if not lines:
        return
    if count := _heading_lines(lines, base):
        text = " ".join(lines[:count])
        number = _CHAPTER.match(text) or _NUMBERED.match(text)
        level = 2 + number[1].count(".") if number else 2 + bool(rules)
        yield heading(squeezed(text[number.end() :] if number else text), min(level, 6))
        del lines[:count]
    if lines and _BULLET.match(lines[0]):
        yield from _items(lines)
    elif lines:
        yield from _entry_or_text(lines)


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
    return len(letters) >= 3 and (number is not None or (text.isupper() and "_" not in text))


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
        yield item(text, len(indents) - 1, f"{number}." if number.isdigit() else "-")


def _entry_or_text(lines: Sequence[str]) -> Iterator[Block]:
    first, rest = lines[0], lines[1:]
    hanging = bool(rest) and all(indent_of(line) >= indent_of(first) + 2 for line in rest)
    if hanging and len(first.split()) <= 8 and first.rstrip()[-1] not in ".,;" and not _is_paragraph_start(first, rest):
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
