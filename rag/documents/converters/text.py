"""Blocks from plain text: paragraphs, lists, indented code, definitions and headings, by their lines."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from rag.documents import navigation as nav
from rag.documents.blocks import Block, Kind, code, entry, heading, item, squeezed
from rag.documents.converters.text_chunks import (
    Chunk,
    chunks_of,
    usual_indent,
    usual_width,
    with_capital_terms,
    with_questions,
    with_terms,
)
from rag.documents.converters.text_code import are_commands, is_code
from rag.documents.converters.text_contents import without_contents
from rag.documents.converters.text_headings import (
    below_numbers,
    first_heading,
    is_step,
    titled,
    underlined,
    with_centred,
    with_series,
    with_titles,
    with_versions,
)
from rag.documents.converters.text_lines import are_lines, goes_on, hangs, unwrapped
from rag.documents.converters.text_lists import (
    after_list,
    clauses,
    contract,
    first_item,
    items,
    labelled,
    marked,
    options,
    outline,
    step,
)
from rag.documents.converters.text_tables import dotted, drawn_table, have_dots, long_table
from rag.documents.encodings import decoded
from rag.documents.formats import HEAD, RawFile

# Words in italics, as in `_Opticks_` or `"_the Stars_,"`; `_DATE_` is a variable.
_ITALICS = re.compile(r"(?<![\w/.\\-])_(?![A-Z\d]{2,}_)(?=[^\W_]|[\"'“‘(])([^_\n]{0,200}[^\s_])_(?![\w/(])")
_MANY = 10  # of a text that sets words so
_HEADER = re.compile(r"\AContent-Type: text/[^\n]*\n(?:[A-Za-z][\w-]*: [^\n]*\n)*(?=\s*\n)")  # of MIME


def read_text(file: RawFile) -> tuple[str, list[Block]]:
    """The title ("" if it has none) and the blocks of a text; a mailbox and reStructuredText are read as such."""
    from rag.documents.converters.delimited import colon_blocks
    from rag.documents.converters.mail import is_mailbox, read_mailbox
    from rag.documents.converters.rst import is_rst, rst_blocks

    if file.data.startswith(b"From ") and is_mailbox(file.data[:HEAD]):  # the archive of a mailing list
        return read_mailbox(file)
    text = decoded(file.data, file.where)
    if is_rst(text):
        return rst_blocks(text, file.dropped, file.name)
    if (rows := colon_blocks(text, file.where)) is not None:
        return "", rows
    return titled(text, [*plain_blocks(text, file.dropped)])


def plain_blocks(text: str, dropped: Counter[str]) -> Iterator[Block]:
    """The blocks of a text; lines of contents and indexes, and a header of MIME, are counted in `dropped`.

    Underscores around words go where a text has many, but for code.
    """
    text, headers = _HEADER.subn("", text)
    dropped[nav.BOILERPLATE] += headers
    italic = len(_ITALICS.findall(text)) >= _MANY
    for block in _plain(text, dropped):
        cleaned = italic and block.kind is not Kind.CODE and "_" in block.text
        yield replace(block, text=_ITALICS.sub(r"\1", block.text)) if cleaned else block


def _plain(text: str, dropped: Counter[str]) -> Iterator[Block]:
    chunks = with_versions(with_questions([*without_contents(chunks_of(text, dropped), dropped)]))
    base = usual_indent(chunks)
    width = usual_width(chunks)
    chunks = with_centred(with_series(chunks, base), base, width)
    chunks = with_titles(with_capital_terms(with_terms(chunks, base), base), base)
    nested = below_numbers(chunks, base)
    rules: list[tuple[str, bool]] = []  # signs of underlined headings and whether they are above too, by level
    waiting: list[str] = []  # lines of code
    most = max((chunk.signs for chunk in chunks), default=0)
    above = 1  # level of the last heading with a mark
    for place, chunk in enumerate(chunks):
        lines = chunk.lines
        may_be_code = not (chunk.term or chunk.title)
        rows = drawn_table(lines) or (options(lines) or long_table(lines) if may_be_code else [])
        if may_be_code and not rows and (is_code(lines, base) or are_commands(lines, width)):
            waiting += ["", *lines]
            continue
        yield from _taken(waiting)
        if chunk.signs:
            above = 7 - chunk.signs if most > 4 else chunk.signs  # DokuWiki has most signs at the top, MediaWiki fewest
        if chunk.title:
            above = chunk.level or above
            yield heading(squeezed(lines[0]), above if chunk.signs or chunk.level else min(above + 1, 6))
            continue
        if place in nested:
            yield heading(squeezed(lines[0]), min(nested[place], 6))
            chunk = replace(chunk, lines=lines[1:])
        for block in rows or _blocks(chunk, base, width, rules, is_step(chunks, place)):
            above = block.level or above
            yield block
    yield from _taken(waiting)


def _taken(waiting: list[str]) -> list[Block]:
    """The lines of code that wait, as a block; then none wait."""
    block = code("\n".join(waiting))
    waiting.clear()
    return [block] if block else []


def _blocks(chunk: Chunk, base: int, width: int, rules: list[tuple[str, bool]], is_step: bool) -> Iterator[Block]:
    """The blocks of a chunk that is no code; a step of counted ones has no heading."""
    lines = [*chunk.lines]
    if not lines:
        return
    if chunk.term:
        yield entry(squeezed(lines[0]), unwrapped(lines[1:]))
        return
    lines = yield from underlined(lines, rules)
    if not lines:
        return
    if have_dots(lines):
        yield from dotted(lines)
        return
    level = 2 + bool(rules)
    if not is_step:
        yield from first_heading(lines, base, level)
    if depths := outline(lines):
        yield from (item(squeezed(line), depth, "-") for line, depth in zip(lines, depths, strict=True))
        return
    if starts := clauses(lines):
        yield from contract(lines, starts, level)
        return
    if starts := labelled(lines):
        for start, end in pairwise([*starts, len(lines)]):
            yield from step(lines[start:end])
        return
    first = first_item(lines)
    last = after_list(lines, first, width)
    if first:
        yield from _entry_or_text(lines[:first], width)
    if lines[first:last]:
        yield from items(lines[first:last])
    if lines[last:]:
        yield from _entry_or_text(lines[last:], width)


def _entry_or_text(lines: Sequence[str], width: int) -> Iterator[Block]:
    if starts := marked(lines, width):
        for start, end in pairwise(sorted({0, *starts, len(lines)})):
            yield Block(unwrapped(lines[start:end]))
        return
    if are_lines(lines, width):
        starts = [place for place, line in enumerate(lines) if not place or not goes_on(lines[place - 1], line)]
        yield from (Block(unwrapped(lines[start:end])) for start, end in pairwise([*starts, len(lines)]))
        return
    first, rest = lines[0], lines[1:]
    is_term = len(first.split()) <= 8 and first.rstrip()[-1] not in ".,;"
    if is_term and hangs(lines) and not _is_paragraph_start(first, rest):
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
