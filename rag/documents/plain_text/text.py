"""Blocks from plain text: headings, lists, terms, tables and code, by the look of their lines.

A text is read paragraph by paragraph. What a paragraph is depends on its own lines, on the usual indent and width of
running text, and for headings without a mark on the paragraphs around it.
"""

import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, code, entry, heading, item, keep_bare_headings
from rag.documents.contents import Beginnings
from rag.documents.normalize import is_hyphenated, join_lines, squeeze, visible
from rag.documents.plain_text.code import is_code
from rag.documents.plain_text.lines import (
    ANSWER,
    BULLET,
    CLAUSE,
    GOES_ON,
    LABEL,
    QUESTION,
    RULE,
    are_lines,
    find_marked_lines,
    hangs,
    indent_of,
    wordy,
)
from rag.documents.plain_text.tables import have_dots, parse_drawn_table, price_list
from rag.documents.titles import is_generic

_MIME_HEADER = re.compile(r"\AContent-Type: text/[^\n]*\n(?:[A-Za-z][\w-]*: [^\n]*\n)*(?=\s*\n)")
_WIKI_HEADING = re.compile(r"(={2,6}) +([^\s=](?:.*[^\s=])?) +\1")
_HASH_HEADING = re.compile(r"(#{1,4}) +([^\W_].{0,98}?[^.,;:=])(?: +#+)?")
_NUMBER = re.compile(r"\s*(\d{1,2}(?:\.\d{1,2})*|[A-Z](?:\.\d{1,2})+)\.?\s+(?=[^\W\d_])")
_CHAPTER = re.compile(  # "Chapter 2. Rivers", "§ 3 Rent", "Article 3"
    r"\s*(?:(?i:chapter|appendix|part|book|volume|section|article|artikel|clause|annex|schedule|letter|act|scene) "
    r"(?:\d{1,3}|[IVXLC]{1,8}|[A-Z])|§ ?\d{1,4}[a-z]?)\b[.:]?\s*(?:[–—-]\s*)?(?=$|[A-ZÄÖÜ\d\"“])"
)
_VERSION = re.compile(  # "2.1.10", "v1.4 (2024-05-06)", "Version 2.0b1 - unreleased"
    r"(?:(?:version|release)\s{1,3}v?|v)?\d{1,4}(?:\.\d{1,8}){1,4}[\w.+-]{0,12}"
    r"(?:[ ,:(\[–—-]{1,5}(?:[\w ,./-]{0,24}\b(?:19|20)\d\d\b[\w ,./-]{0,12}|unreleased|in development)[)\]]?)?:?",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?:Janu|Febru|March|April|May|June|July|August|Septem|Octo|Novem|Decem)|.*\b(?:19|20)\d\d$")
_NAME = re.compile(r"\s*-|\w[_=]")  # of an option or a value
_OPTION = re.compile(r"\s*--?[^\W\d_]")
_GAP = re.compile(r"\s{2,}")
_SENTENCES = re.compile(r"[^\W\d_]{3}[.!?][\"'”’»)\]}]* +[\"'“‘«(\[{]*[^\W\d_a-z]")
_LINE_END_HYPHEN = re.compile(r"(?<![^\W\d_])([^\W\d_]{2,})[-\u2010]\n[ \t]*(?=([^\W\d_]{2,}))")
_ITALICS = re.compile(r"(?<![\w/.\\-])_(?![A-Z\d]{2,}_)(?=[^\W_]|[\"'“‘(])([^_\n]{0,200}[^\s_])_(?![\w/(])")
_DIGITS = re.compile(r"\d+")
_MAX_LEVEL = 7  # level of a heading below the last one with a mark
_MIN_ITALICS = 10  # of a text that sets words so: `_Opticks_`
_MIN_PAGES = 4  # of a text that has headers and footers
_MAX_TITLE_WORDS, _MAX_HEADING_WORDS, _MAX_TERM_WORDS, _MAX_QUESTION_WORDS = 5, 10, 8, 25
_MAX_ANSWER_LINES = 200  # between a question and the next one


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """Lines between empty ones; `level` is that of a heading that its marks or its neighbours tell, else 0."""

    lines: tuple[str, ...]
    level: int = 0

    @property
    def indent(self) -> int:
        return indent_of(self.lines[0])


def split_title(text: str, blocks: Sequence[Block]) -> tuple[str, list[Block]]:
    """The title of a text ("" if it has none) and its blocks without it.

    That is a first heading above all others, or a first line that stands alone and is no sentence. Another heading
    without text stays as a line of text.
    """
    first = blocks[0] if blocks else None
    if first is None or len(blocks) == 1:
        return "", [*keep_bare_headings(blocks)]
    levels = [block.level for block in blocks if block.kind is Kind.HEADING]
    if first.kind is Kind.HEADING:
        following = blocks[1]
        tail = [block.text for block in blocks[1:] if block.level and not _CHAPTER.match(block.text)]
        is_above = following.kind is Kind.HEADING and following.level <= first.level
        is_above = is_above or (first.text.isupper() and not any(map(str.isupper, tail)))
        only = sum(level <= first.level for level in levels) == 1
        has_title = (is_above or only) and not (first.level > 1 and is_generic(first.text))
    else:
        has_title = levels.count(1) != 1 and first.kind is Kind.TEXT and _is_title_line(text, first.text)
    return (first.text, [*keep_bare_headings(blocks[1:])]) if has_title else ("", [*keep_bare_headings(blocks)])


def _is_title_line(text: str, first: str) -> bool:
    """Whether the first block is a line that stands alone and may be a title."""
    lines = text.lstrip().splitlines()
    line = lines[0].strip()
    return (
        squeeze(line) == first
        and len(lines) > 1
        and not lines[1].strip()
        and len(line) > 1
        and len(line.split()) <= _MAX_HEADING_WORDS
        and (line[0].isupper() or line[0].isdigit())
        and (line[-1].isalnum() or line[-1] in ')?”"')
        and not LABEL.match(line)
        and not _DATE.match(line)
        and sum(map(str.isalpha, line)) >= 0.5 * len(line)
    )


def text_blocks(text: str, omissions: Counter[str]) -> Iterator[Block]:
    """The blocks of a text; contents, headers and footers of pages, and a MIME header are counted in `omissions`."""
    text, headers = _MIME_HEADER.subn("", text)
    omissions[nav.BOILERPLATE] += headers
    text = _join_words(_without_margins(visible(text), omissions))
    has_italics = len(_ITALICS.findall(text)) >= _MIN_ITALICS
    paragraphs = _mark_versions(_mark_questions([*_drop_contents(_paragraphs(text), omissions)]))
    for block in _blocks(paragraphs):
        needs_cleaning = has_italics and block.kind is not Kind.CODE and "_" in block.text
        yield replace(block, text=_ITALICS.sub(r"\1", block.text)) if needs_cleaning else block


def _join_words(text: str) -> str:
    """The text with words that a line end parts joined, if they stand joined elsewhere in it more than hyphenated."""
    if _LINE_END_HYPHEN.search(text) is None:
        return text
    words = Counter(re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text.lower()))

    def join(parts: re.Match[str]) -> str:
        return parts[1] if is_hyphenated(parts[1], parts[2], words) is False else parts[0]

    return _LINE_END_HYPHEN.sub(join, text)


def _without_margins(text: str, omissions: Counter[str]) -> str:
    """The text without the first and last lines of its pages that most pages have, but for numbers."""
    pages = [page.splitlines() for page in text.split("\f")]
    if len(pages) < _MIN_PAGES:
        return text
    for edge in (0, -1):
        positions = [[position for position, line in enumerate(page) if line.strip()][edge:][:1] for page in pages]
        patterns = [
            [_DIGITS.sub("0", squeeze(page[index])) for index in ats]
            for page, ats in zip(pages, positions, strict=True)
        ]
        counts = Counter(pattern for match in patterns for pattern in match)
        for page, ats, result in zip(pages, positions, patterns, strict=True):
            if result and 2 * counts[result[0]] >= len(pages):
                page[ats[0]] = ""
                omissions[nav.MARGIN] += 1
    lines: list[str] = []
    for page in pages:
        page_lines = "\n".join(page).strip("\n").split("\n")
        if lines and not _goes_over(lines[-1], page_lines[0]):
            lines.append("")
        lines += page_lines
    return "\n".join(lines)


def _goes_over(line: str, following: str) -> bool:
    """Whether a paragraph goes on from the last line of a page to the first of the next."""
    begins = following.lstrip()
    return begins[:1].islower() and line[-1:] not in tuple(".!?:;") and abs(indent_of(line) - indent_of(following)) < 2


def _paragraphs(text: str) -> list[_Paragraph]:
    """The paragraphs of a text; headings as wikis and Markdown mark them have a level."""
    lines = [line.rstrip() for line in text.replace("\f", "\n\n").expandtabs(8).splitlines()]
    hashes = [position for position, line in enumerate(lines) if line.startswith("#")]
    has_hashes = (
        len(hashes) > 1
        and all(
            _HASH_HEADING.fullmatch(lines[position]) and not (position and lines[position - 1]) for position in hashes
        )
        and any(lines[position].startswith("##") for position in hashes)
    )  # comments stand below each other
    paragraphs: list[_Paragraph] = []
    waiting: list[str] = []
    signs = max((len(mark[1]) for line in lines if (mark := _WIKI_HEADING.fullmatch(line))), default=0)
    for line in [*lines, ""]:
        mark = _WIKI_HEADING.fullmatch(line)
        level = (7 - len(mark[1]) if signs > 4 else len(mark[1])) if mark else 0  # DokuWiki has most signs at the top
        if has_hashes and (mark := mark or _HASH_HEADING.fullmatch(line)):
            level = level or len(mark[1])
        if line and not level:
            waiting.append(line)
            continue
        if waiting:
            paragraphs.append(_Paragraph(tuple(waiting)))
            waiting = []
        if mark is not None and level:
            paragraphs.append(_Paragraph((mark[2],), level))
    return paragraphs


def _drop_contents(paragraphs: Sequence[_Paragraph], omissions: Counter[str]) -> Iterator[_Paragraph]:
    """The paragraphs without tables of contents, whose lines stand again below, each at the beginning of a paragraph.

    Nearly all do; most below the word `Contents`; half of lines with dots before a page number.
    """
    begins = [
        (position, " ".join([line for line in paragraph.lines[:3] if not RULE.fullmatch(line)][:count]))
        for position, paragraph in enumerate(paragraphs)
        for count in (1, 2)
    ]
    beginnings = Beginnings(begins)
    title: _Paragraph | None = None  # of contents, if they follow
    is_inside = False
    for position, paragraph in enumerate(paragraphs):
        first, *tail = paragraph.lines
        if nav.names_contents(first) and all(map(RULE.fullmatch, tail)):
            if title is not None:
                yield title
            title, is_inside = paragraph, False
            continue
        is_announced = title is not None or is_inside
        leaders = [line for line in paragraph.lines if nav.is_contents_line(line)]
        if leaders and nav.are_contents(leaders):
            is_announced = is_announced or any(map(nav.names_contents, paragraph.lines))
            count_below = sum(beginnings.stand_below(nav.entry_of(line), position) for line in leaders)
            if is_announced or 2 * count_below >= len(leaders):
                omissions[nav.CONTENTS] += len(leaders)
                title, is_inside = None, True
                if remainder := tuple(
                    item for item in paragraph.lines if item not in leaders and not nav.names_contents(item)
                ):
                    yield _Paragraph(remainder)
                continue
        count_below = sum(
            beginnings.stand_below(line, position, is_whole=bool(_GAP.search(line.strip()))) for line in paragraph.lines
        )
        count = len(paragraph.lines)
        is_inside = count_below >= max(1, 0.6 * count) if is_announced else count_below >= max(4, 0.9 * count)
        if is_inside:
            omissions[nav.CONTENTS] += count
        else:
            if title is not None:
                yield title
            yield paragraph
        title = None
    if title is not None:
        yield title


def _mark_questions(paragraphs: Sequence[_Paragraph]) -> list[_Paragraph]:
    """The paragraphs, with each question of `Q: ... A: ...` as a heading, if two or more have answers."""
    lines = [line for paragraph in paragraphs for line in paragraph.lines]
    pairs = min(sum(map(bool, map(mark.match, lines))) for mark in (QUESTION, ANSWER))
    if pairs < max(2, len(lines) / _MAX_ANSWER_LINES):
        return [*paragraphs]
    result: list[_Paragraph] = []
    for paragraph in paragraphs:
        starts = {
            position for position, line in enumerate(paragraph.lines) if QUESTION.match(line) or ANSWER.match(line)
        }
        for start, end in pairwise(sorted({0, *starts, len(paragraph.lines)})):
            part = replace(paragraph, lines=paragraph.lines[start:end])
            first, *tail = part.lines
            if mark := QUESTION.match(first):
                text = join_lines([first[mark.end() :], *tail])
                if len(text.split()) <= _MAX_QUESTION_WORDS:
                    part = _Paragraph((text,), _MAX_LEVEL)
            elif mark := ANSWER.match(first):
                shift = max(min(map(indent_of, tail), default=0) - part.indent, 0)  # of lines below the text
                part = _Paragraph((" " * part.indent + first[mark.end() :], *(line[shift:] for line in tail)))
            result.append(part)
    return result


def _mark_versions(paragraphs: Sequence[_Paragraph]) -> list[_Paragraph]:
    """The paragraphs, with versions above lists as headings, if there are two or more."""
    versions = set[int]()
    for position, (paragraph, following) in enumerate(pairwise(paragraphs)):
        if paragraph.level:
            continue
        first, *tail = paragraph.lines
        line_after = tail[0] if tail else following.lines[0]
        if _VERSION.fullmatch(first.strip()) and (BULLET.match(line_after) or indent_of(line_after) > paragraph.indent):
            versions.add(position)
    result: list[_Paragraph] = []
    for position, paragraph in enumerate(paragraphs):
        if position in versions and len(versions) > 1:
            result.append(_Paragraph(paragraph.lines[:1], 2))
            result += [_Paragraph(paragraph.lines[1:])] if paragraph.lines[1:] else []
        else:
            result.append(paragraph)
    return result


def _usual_indent(paragraphs: Sequence[_Paragraph]) -> int:
    """The indent of most lines of running text."""
    counts = Counter(indent_of(line) for paragraph in paragraphs for line in paragraph.lines if wordy(line))
    counts = counts or Counter(paragraph.indent for paragraph in paragraphs)
    return counts.most_common(1)[0][0] if counts else 0


def _blocks(paragraphs: Sequence[_Paragraph]) -> Iterator[Block]:
    base = _usual_indent(paragraphs)
    if paragraphs and paragraphs[0].indent > base and paragraphs[0].lines[0].strip()[0].isupper():  # a centred title
        paragraphs = [replace(paragraphs[0], lines=tuple(map(str.strip, paragraphs[0].lines))), *paragraphs[1:]]
    widths = sorted(len(line) for paragraph in paragraphs for line in paragraph.lines if wordy(line))
    width = widths[int(0.9 * len(widths))] if widths else 0
    rules: list[tuple[str, bool]] = []  # signs that underline headings, and whether they stand above too, by level
    code_lines: list[str] = []
    terms = _terms(paragraphs, base)
    last_level = 1  # level of the last heading
    for position, paragraph in enumerate(paragraphs):
        lines = [*paragraph.lines]
        rows = [] if paragraph.level else parse_drawn_table(lines) or _options(lines)
        is_listing = not paragraph.level and position not in terms and not rows and is_code(lines, base)
        if is_listing and position - 1 not in terms:
            code_lines += ["", *lines]
            continue
        if (block := code("\n".join(code_lines))) is not None:
            yield block
        code_lines = []
        if position in terms:
            continue  # it stands before its text
        if paragraph.level:
            level = last_level + 1 if paragraph.level == _MAX_LEVEL else paragraph.level
            last_level = last_level if paragraph.level == _MAX_LEVEL else level
            yield heading(squeeze(lines[0]), min(level, 6))
            continue
        if position - 1 in terms and not rows:
            yield entry(squeeze(paragraphs[position - 1].lines[0]), join_lines(lines))
            continue
        is_step = _is_step(paragraphs, position)
        for block in rows or _paragraph_blocks(lines, base, width, rules, is_step=is_step):
            last_level = block.level or last_level
            yield block
    if (block := code("\n".join(code_lines))) is not None:
        yield block


def _terms(paragraphs: Sequence[_Paragraph], base: int) -> set[int]:
    """The places of short lines that the indented paragraph below explains: names, or several in one text."""
    positions = [
        position
        for position, (paragraph, text) in enumerate(pairwise(paragraphs))
        if len(paragraph.lines) == 1
        and not (paragraph.level or text.level)
        and text.indent >= paragraph.indent + 2
        and paragraph.indent >= base
        and len(paragraph.lines[0].split()) <= _MAX_TERM_WORDS
        and paragraph.lines[0][-1] not in ".,;:"
        and not any(mark.match(paragraph.lines[0]) for mark in (BULLET, RULE, _NUMBER, _CHAPTER))
        and not is_code(text.lines, base)
    ]
    return {position for position in positions if len(positions) > 1 or _NAME.search(paragraphs[position].lines[0])}


def _is_step(paragraphs: Sequence[_Paragraph], position: int) -> bool:
    """Whether a paragraph is one of counted ones that are sentences, and so has no heading."""

    def number(index: int) -> int:
        mark = BULLET.match(paragraphs[index].lines[0]) if 0 <= index < len(paragraphs) else None
        return int(mark[2].strip("().")) if mark is not None and mark[2].strip("().").isdigit() else -9

    neighbours = [
        index
        for index in (position - 1, position + 1)
        if number(position) > 0 and number(index) == number(position) + index - position
    ]
    return any(
        paragraphs[index].lines[-1][-1] in ".!?" and any(map(wordy, paragraphs[index].lines)) for index in neighbours
    )


def _options(lines: Sequence[str]) -> list[Block]:
    """The entries of a list of options as `--help` prints it, with the line above them; else none."""
    starts = [position for position, line in enumerate(lines) if _OPTION.match(line)]
    if len(starts) < 2 or starts[0] > 1 or (starts[0] == 1 and not lines[0].endswith(":")):
        return []
    indent = indent_of(lines[starts[0]])
    blocks = [Block(squeeze(lines[0]))] * starts[0]
    for start, end in pairwise([*starts, len(lines)]):
        term, *text = _GAP.split(lines[start].strip(), maxsplit=1)
        text += lines[start + 1 : end]
        if not text or any(indent_of(line) < indent + 2 for line in lines[start + 1 : end]):
            return []
        blocks.append(entry(term, join_lines(text)))
    return blocks


def _paragraph_blocks(
    lines: list[str], base: int, width: int, rules: list[tuple[str, bool]], *, is_step: bool
) -> Iterator[Block]:
    """The blocks of a paragraph that is no code and no table."""
    lines = yield from _read_underline(lines, rules)
    if not lines:
        return
    if have_dots(lines):
        yield from price_list(lines)
        return
    if not is_step and (count := _heading_lines(lines, base)):
        text = squeeze(" ".join(lines[:count]))
        number = _NUMBER.match(text)
        level = 2 + number[1].count(".") - ("." in number[1] and number[1][0].isalpha()) if number else 2 + bool(rules)
        name = text[number.end() :] if number else text
        yield heading(name or text, min(level, 6))
        lines = lines[count:]
        if not lines:
            return
    starts = [position for position, line in enumerate(lines) if CLAUSE.match(line)]
    parts = [lines]
    if starts[:1] == [0] and any(map(BULLET.match, lines)):  # clauses of a contract, with items
        parts = [lines[start:end] for start, end in pairwise([*starts, len(lines)])]
    for part in parts:
        first = _first_item(part)
        last = _after_list(part, first, width)
        if part[:first]:
            yield from _running_text(part[:first], width)
        if part[first:last]:
            yield from _items(part[first:last])
        if part[last:]:
            yield from _running_text(part[last:], width)


def _read_underline(lines: list[str], rules: list[tuple[str, bool]]) -> Generator[Block, None, list[str]]:
    """Yield the heading that has a line of signs below (and above) it; return the other lines."""
    has_rule_above = len(lines) >= 3 and RULE.fullmatch(lines[0]) is not None and lines[0].strip() == lines[2].strip()
    lines = lines[has_rule_above:]
    rule = RULE.fullmatch(lines[1]) if len(lines) >= 2 and not RULE.fullmatch(lines[0]) else None
    if rule is not None and len(lines[1].strip()) >= 0.5 * len(lines[0].strip()):
        rank = rule[1], has_rule_above
        if rank not in rules:
            rules.append(rank)
        yield heading(squeeze(lines[0]), min(rules.index(rank) + 1, 6))
        lines = lines[2:]
    return [line for line in lines if not RULE.fullmatch(line)]


def _heading_lines(lines: Sequence[str], base: int) -> int:
    """How many lines at the beginning of a paragraph are its heading: numbered, of a chapter, or in capitals."""
    first = lines[0]
    if _CHAPTER.match(first) and len(first.split()) <= _MAX_HEADING_WORDS and first.rstrip()[-1] not in ",;:!?":
        return 1
    number = _NUMBER.match(first)
    clause = CLAUSE.match(lines[1]) if len(lines) > 1 else None
    if number is not None and clause is not None and clause[1] == f"{number[1]}.":  # "1. Rent" above "1.1 It is"
        return 1
    if number is not None and "." in number[1]:  # it may be wrapped
        text = " ".join(lines)
        return len(lines) if len(lines) < 3 and _is_heading(text, base, _MAX_QUESTION_WORDS, ".,;:!") else 0
    if len(lines) > 1 and all(map(str.isupper, lines)):
        # A sentence, or entries such as "POLICE 110", unless the first line is a word above times or prices.
        digits = [any(map(str.isdigit, line)) for line in lines]
        if digits[0] or GOES_ON.search(first.lower()) or not all(digits[1:]) or lines[-1][-1] in ".!":
            return 0
    if len(lines) > 1 and not first.isupper():
        return 0
    return int(_is_heading(first, base, _MAX_HEADING_WORDS, ".,;:!" if number is not None else ".,;:!?"))


def _is_heading(line: str, base: int, max_words: int, ends: str) -> bool:
    text = line.strip()
    if len(text.split()) > max_words or text.rstrip("\"'”’»)]}")[-1:] in ends or indent_of(line) > base:
        return False
    number = _NUMBER.match(line)
    name = text if number is None else line[number.end() :].strip()
    is_plain = number is not None and "." not in number[1]
    if is_plain and (not name[0].isupper() or _DATE.match(name) or _SENTENCES.search(name)):
        return False  # "24 hours", "6 October 2025"
    letters = [letter for letter in name if letter.isalpha()]
    if len(letters) < max(3, 0.6 * len(name.replace(" ", ""))) or not text[0].isalnum():
        return False
    return number is not None or (text.isupper() and "_" not in text)


def _first_item(lines: Sequence[str]) -> int:
    """The place of the first item of a list, or the number of lines; prose may have a line that begins with a dash."""
    marks = [(position, mark) for position, line in enumerate(lines) if (mark := BULLET.match(line))]
    if not marks or not marks[0][0]:
        return 0 if marks else len(lines)
    position, mark = marks[0]
    words = lines[0].split()
    if (
        position == 1
        and mark[2] in "-*•"
        and len(words) <= _MAX_TITLE_WORDS
        and not words[0][0].islower()
        and words[-1][-1].isalnum()
    ):
        return position  # the name of the list
    sign = mark[2].strip("().")
    signs = [other[2].strip("().") for _, other in marks]
    has_next = {"1": "2", "a": "b"}.get(sign) in signs
    is_several = has_next or (not sign.isalnum() and sum(other[2] == mark[2] for _, other in marks) > 1)
    return (
        position if is_several or (sign in ("1", "-", "*", "•") and lines[position - 1].endswith(":")) else len(lines)
    )


def _after_list(lines: Sequence[str], first: int, width: int) -> int:
    """The place after a list: its last item is short, and the line after it begins a sentence and has no indent."""
    positions = [position for position in range(first, len(lines)) if BULLET.match(lines[position])]
    if not positions or positions[-1] + 1 >= len(lines):
        return len(lines)
    last, following = lines[positions[-1]], lines[positions[-1] + 1]
    begins = following.lstrip()[0].isupper() and indent_of(following) <= indent_of(last)
    return positions[-1] + 1 if begins and len(last) < 0.6 * width else len(lines)


def _items(lines: Sequence[str]) -> Iterator[Block]:
    """Items of a list; a line that begins with no mark continues the item before it."""
    starts = [position for position, line in enumerate(lines) if BULLET.match(line)]
    indents: list[int] = []
    for start, end in pairwise([*starts, len(lines)]):
        mark = BULLET.match(lines[start])
        assert mark is not None
        indent, sign = len(mark[1]), mark[2]
        while indents and indents[-1] > indent:
            indents.pop()
        if not indents or indents[-1] < indent:
            indents.append(indent)
        number = sign.strip("().")
        text = join_lines([lines[start][mark.end() :], *lines[start + 1 : end]])
        if (number.isalpha() and sign != "o") or sign in "☐☑☒✓✔✗":
            text = f"{sign} {text}"  # "(b)" is referred to, and a box tells what is done
        yield item(text, len(indents) - 1, f"{number}." if number.isdigit() else "-")


def _running_text(lines: Sequence[str], width: int) -> Iterator[Block]:
    """A term with its text, lines that stand by themselves, or a paragraph."""
    if starts := find_marked_lines(lines):
        for start, end in pairwise(sorted({0, *starts, len(lines)})):
            yield Block(join_lines(lines[start:end]))
    elif are_lines(lines, width):
        yield from (Block(squeeze(line)) for line in lines)
    elif _is_term(lines[0]) and hangs(lines) and not len(lines[0]) > 0.8 * max(map(len, lines[1:])):
        yield entry(squeeze(lines[0]), join_lines(lines[1:]))
    else:
        start, widest = 0, max(map(len, lines))
        for end, (line, following) in enumerate(pairwise(lines), 1):
            ends = line.rstrip()[-1].isalnum() and not following.lstrip()[:1].islower()
            if len(line) < 0.6 * widest and ends:  # the next word has room on it
                yield Block(join_lines(lines[start:end]))
                start = end
        yield Block(join_lines(lines[start:]))


def _is_term(line: str) -> bool:
    return len(line.split()) <= _MAX_TERM_WORDS and line.rstrip()[-1] not in ".,;"
