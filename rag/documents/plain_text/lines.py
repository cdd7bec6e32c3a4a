"""What lines of plain text are by their looks: items, sentences, parts of a paragraph or lines by themselves."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

BULLET = re.compile(r"(\s*)([-*+•o‣–▪◦●○■→➔►▶✓✔✗☐☑☒]|\(?\d{1,3}[.)]|\(?[a-z][.)])(\s+)(?=\S)")
RULE = re.compile(r"\s*([=\-~*^\"'`#+_.:<>])\1{2,}\s*$")
LABEL = re.compile(r"[\w-]+:\s|.*(?:://|@|\t| {3})")
GAP = re.compile(r"\S\s{3,}\S")
DOTS = re.compile(r"(?<=[^\s.:])[ \t]*(?:\. ?){4,}[ \t]*(?=[^\s.])")  # "Tea ........ 2.60"
WORD = re.compile(r"[(\"'“‘]?[^\W\d_]+(?:['’-][^\W\d_]+)*[.,;:)!?\"'”’]*$")
QUESTION = re.compile(r"\s*(?:Q|Question)(?: ?\d[\d.]*)?\s?[:.)]\s+(?=\S)")
ANSWER = re.compile(r"\s*(?:A|Answer)(?: ?\d[\d.]*)?\s?[:.)]\s+(?=\S)")
# "09:30 Welcome", "[12/03/2025, 18:02] Ann: Hello", "2025-03-12 It rained"
CLAUSE = re.compile(r"\s*((?:\d{1,2}\.)+)(\d{1,3})\.?\s+(?=[A-Z])")  # "2.1 The rent is ..."
_TIME = re.compile(
    r"\s*[\[(]?(?:\d{1,2}[:.]\d\d(?![\d.,]*\d)|\d{1,2}([./])\d{1,2}\1(?:\d{4}|\d\d)\b|\d{4}-\d\d-\d\d(?!\d))"
)
_BOX = re.compile(r"\s*(?:\[[ xX*✓<>]?\]|[☐☑☒✓✔✗])\s+(?=\S)")  # "[x] Tent"
_NAMED_VALUE = re.compile(r"\s*[A-Z\d][\w-]+(?: [\w./-]+){0,3}:\s+(?=\S)")  # "Room 1: free"
GOES_ON = re.compile(r"(?:,|\b(?:an?|and|are|as|at|by|for|from|in|is|of|on|or|that|the|to|with))$")
_NARROW, _TINY = 45, 30  # characters: text is rarely wrapped to lines shorter than the first, never than the second


def indent_of(line: str) -> int:
    """How many spaces a line begins with."""
    return len(line) - len(line.lstrip())


@lru_cache(maxsize=1000)  # of each line it is asked several times
def wordy(line: str) -> bool:
    """Whether a line is of a sentence."""
    parts = line.split()
    return len(parts) >= 5 and sum(map(bool, map(WORD.match, parts))) >= 0.7 * len(parts)


def hangs(lines: Sequence[str]) -> bool:
    """Whether all lines but the first are indented, as the text of a term is."""
    return len(lines) > 1 and all(indent_of(line) >= indent_of(lines[0]) + 2 for line in lines[1:])


def find_marked_lines(lines: Sequence[str]) -> list[int]:
    """The places of lines that begin with times, boxes to tick, numbers or labels: two or more of a kind, else none."""
    for mark in (_TIME, _BOX, CLAUSE):
        starts = [position for position, line in enumerate(lines) if mark.match(line)]
        if len(starts) > 1 and starts[0] <= 1:
            return starts
    min_indent = min(map(indent_of, lines), default=0)
    heads = [position for position, line in enumerate(lines) if indent_of(line) == min_indent]
    starts = [position for position in heads if _NAMED_VALUE.match(lines[position])]
    are_labels = len(starts) > 1 and starts[0] == 0 and 3 * len(starts) >= 2 * len(heads)
    return starts if are_labels and not any(map(BULLET.match, lines)) else []


def are_lines(lines: Sequence[str], width: int) -> bool:
    """Whether each line stands by itself: all are short, or there are four or more, and none goes on in the next."""
    indents = [*map(indent_of, lines)]
    if len(lines) < 2 or max(indents) - min(indents) > 1:
        return False
    if all(GAP.search(line.strip()) for line in lines) or are_narrow(lines):
        return True
    small = sum(line.lstrip()[0].islower() for line in lines[1:])
    if max(map(len, lines)) < 0.6 * width:
        return small <= 0.3 * (len(lines) - 1)
    if len(lines) < 4 or any(map(GOES_ON.search, lines[:-1])) or any(map(str.isupper, lines)):
        return False
    longest = max(map(len, lines))
    wrapped_count = sum(len(line) > 0.85 * longest for line in lines[:-1])
    begins = [line.lstrip(" *</[")[:1] for line in lines[1:]]
    return wrapped_count < 0.5 * len(lines) and all(sign.isupper() or sign.isdigit() for sign in begins)


def are_narrow(lines: Sequence[str]) -> bool:
    """Whether lines are too short to be wrapped, as the next word has room on each: `Espresso 2,20`, `Tea 4,10`."""
    longest = max(map(len, lines))
    if longest >= _NARROW or (all(map(str.isupper, lines)) and lines[-1][-1] in ".!"):
        return False
    if any(line[-1] in "-–—" or GOES_ON.search(line.lower()) for line in lines[:-1]):
        return False
    if any(len(line) + len(following.split()[0]) >= _NARROW for line, following in pairwise(lines)):
        return False
    begins = [line.lstrip() for line in lines[1:]]
    small = sum((line[0].islower() and not LABEL.match(line)) or line[0] in "-–—" for line in begins)
    is_sparse = len(lines) >= 4 and longest < _TINY and not any(map(wordy, lines))
    return is_sparse or small <= 0.3 * (len(lines) - 1)
