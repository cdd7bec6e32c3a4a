"""Lists in plain text: items, options, steps, clauses, outlines, and lines that begin with a time, box or label."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rag.documents.blocks import Block, code, entry, heading, item, squeezed
from rag.documents.converters.text_code import is_code
from rag.documents.converters.text_lines import BULLET, GOES_ON, NARROW, NUMBERED, SHORT, indent_of, unwrapped

_STEP = re.compile(r"\s*([A-Z][\w-]*\s)(\d{1,3})[:.)]\s+(?=\S)")
_CLAUSE = re.compile(r"\s*((?:\d{1,2}\.)+)(\d{1,3})\.?\s+(?=[A-Z])")
_LABELLED = re.compile(r"\s*[A-Z\d][\w-]+(?: [\w./-]+){0,3}:\s+(?=\S)")
_STAMP = re.compile(  # "09:30 Welcome", "[12/03/2025, 18:02] Ann: Hello", "2025-03-12 It rained"
    r"\s*[\[(]?(?:\d{1,2}[:.]\d\d(?![\d.,]*\d)|\d{1,2}([./])\d{1,2}\1(?:\d{4}|\d\d)\b|\d{4}-\d\d-\d\d(?!\d))"
)
_BOX = re.compile(r"\s*(?:\[[ xX*✓<>]?\]|[☐☑☒✓✔✗])\s+(?=\S)")  # "[x] Tent"
_OPTION = re.compile(r"\s*--?[^\W\d_]")
_COLUMN = re.compile(r"\s{2,}")
_CAPITAL_LABEL = re.compile(r"\s*[A-Z]{2}[A-Z ]{1,22}:\s+(?=\S)")  # "ACTION: Ann prints it"
_HEAD_WORDS = 5  # of the name of a list


def first_item(lines: Sequence[str]) -> int:
    """The place of the first item of a list, or the number of lines; prose may have a line that begins with a dash."""
    marks = [(place, mark) for place, line in enumerate(lines) if (mark := BULLET.match(line))]
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
    return len(text.split()) <= _HEAD_WORDS and text[0].isupper() and (text[-1].isalnum() or text[-1] == ")")


def after_list(lines: Sequence[str], first: int, width: int) -> int:
    """The place after a list: its last item is short, and the line after it begins a sentence and has no indent."""
    marks = [place for place in range(first, len(lines)) if BULLET.match(lines[place])]
    if not marks or marks[-1] + 1 >= len(lines):
        return len(lines)
    last, after = lines[marks[-1]], lines[marks[-1] + 1]
    apart = len(last) < SHORT * width and after.lstrip()[0].isupper() and indent_of(after) <= indent_of(last)
    return marks[-1] + 1 if apart else len(lines)


def items(lines: Sequence[str]) -> Iterator[Block]:
    """Items of a list; a line that begins with no mark continues the item before it."""
    parts: list[tuple[int, str, list[str]]] = []
    for line in lines:
        if mark := BULLET.match(line):
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


def options(lines: Sequence[str]) -> list[Block]:
    """The entries of a list of options as `--help` prints it, with the line above them; else none."""
    starts = [place for place, line in enumerate(lines) if _OPTION.match(line)]
    if len(starts) < 2 or starts[0] > 1 or (starts[0] == 1 and not lines[0].endswith(":")):
        return []
    indent = indent_of(lines[starts[0]])
    blocks = [Block(squeezed(lines[0]))] * starts[0]
    for start, end in pairwise([*starts, len(lines)]):
        term, *text = _COLUMN.split(lines[start].strip(), maxsplit=1)
        text += lines[start + 1 : end]
        if not text or any(indent_of(line) < indent + 2 for line in lines[start + 1 : end]):
            return []
        blocks.append(entry(term, unwrapped(text)))
    return blocks


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


def labelled(lines: Sequence[str]) -> list[int]:
    """The places of lines that begin with numbers in order: `Step 1: ...`, `Step 2: ...`, or `1.1 ...`, `1.2 ...`.

    Those of a chunk of which each line begins with a label, `Room 1: ...`, but for lines with more indent, or a few
    that go on from a long one, as in a dialogue; else none.
    """
    least = min(map(indent_of, lines), default=0)
    heads = [place for place, line in enumerate(lines) if indent_of(line) == least]
    starts = [place for place in heads if _LABELLED.match(lines[place])]
    long = max(NARROW, *(int(0.8 * len(line)) for line in lines)) if lines else 0
    ends = [lines[place - 1] for place in set(heads) - {*starts}]
    wrapped = all(len(line) >= long and line[-1] not in ".!?:" for line in ends)
    have_labels = len(starts) > 1 and heads[0] == starts[0] == 0 and 3 * len(starts) >= 2 * len(heads) and wrapped
    if have_labels and not (len(starts) < len(lines) and any(map(BULLET.match, lines))):
        return starts
    marks = [(place, mark) for place, line in enumerate(lines) if (mark := _STEP.match(line) or _CLAUSE.match(line))]
    if len(marks) < 2 or marks[0][0]:
        return []
    names = {mark[1] for _, mark in marks}
    numbers = [int(mark[2]) for _, mark in marks]
    in_order = all(after == before + 1 for before, after in pairwise(numbers))
    return [place for place, _ in marks] if len(names) == 1 and in_order else []


def step(lines: Sequence[str]) -> Iterator[Block]:
    """A line with a label; what is indented after its colon is code."""
    if len(lines) > 1 and lines[0].endswith(":") and is_code(lines[1:], indent_of(lines[0])):
        yield Block(squeezed(lines[0]))
        if (block := code("\n".join(lines[1:]))) is not None:
            yield block
    else:
        yield Block(unwrapped(lines))


def clauses(lines: Sequence[str]) -> list[int]:
    """The places of `1.1 ...` and the like below `1. Rent`, or between items such as `(a) ...`; else none."""
    starts = [place for place, line in enumerate(lines) if _CLAUSE.match(line)]
    number = NUMBERED.match(lines[0]) if lines else None
    if not starts or number is None:
        return []
    headed = starts[0] == 1 and (below := _CLAUSE.match(lines[1])) is not None and below[1] == f"{number[1]}."
    have_items = any(BULLET.match(line) for line in lines[starts[0] :])
    return starts if headed or (starts[0] == 0 and len(starts) > 1 and have_items) else []


def contract(lines: Sequence[str], starts: Sequence[int], level: int) -> Iterator[Block]:
    """Clauses, below their heading if the first does not begin at once; each may have items."""
    if starts[0]:
        number = NUMBERED.match(lines[0])
        yield heading(squeezed(lines[0][number.end() if number else 0 :]), level)
    for start, end in pairwise([*starts, len(lines)]):
        first = next((place for place in range(start + 1, end) if BULLET.match(lines[place])), end)
        yield Block(unwrapped(lines[start:first]))
        yield from items(lines[first:end])


def outline(lines: Sequence[str]) -> list[int]:
    """How deep each line is in an outline by indents alone, three deep or more, such as a family tree; else none."""
    indents = sorted(set(map(indent_of, lines)))
    if len(indents) < 3 or indent_of(lines[0]) != indents[0] or any(map(BULLET.match, lines)):
        return []
    begins = all(line.lstrip()[0].isupper() or line.lstrip()[0].isdigit() for line in lines)
    if not begins or any(GOES_ON.search(line) or line[-1] in ".;:-" or len(line.split()) > 12 for line in lines):
        return []
    steps = all(indent_of(after) <= indent_of(line) or _next(indents, line, after) for line, after in pairwise(lines))
    return [indents.index(indent_of(line)) for line in lines] if steps else []


def _next(indents: Sequence[int], line: str, after: str) -> bool:
    return indents.index(indent_of(after)) == indents.index(indent_of(line)) + 1
