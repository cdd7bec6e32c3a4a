"""What lines of plain text are by their looks: items, sentences, parts of a paragraph or lines by themselves."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from rag.documents.blocks import squeezed

BULLET = re.compile(r"(\s*)([-*+•o‣–▪◦●○■→➔►▶✓✔✗☐☑☒]|\(?\d{1,3}[.)]|\(?[a-z][.)])(\s+)(?=\S)")
RULE = re.compile(r"\s*([=\-~*^\"'`#+_.:<>])\1{2,}\s*$")
NUMBERED = re.compile(r"\s*(\d{1,2}(?:\.\d{1,2})*|[A-Z](?:\.\d{1,2})+)\.?\s+(?=[^\W\d_])")
CHAPTER = re.compile(r"(?:chapter|appendix|part)\s([\dIVX]{1,5}|[A-Z])[.:]?\s+(?=[^\W\d_])", re.IGNORECASE)
LABEL = re.compile(r"[\w-]+:\s|.*(?:://|@|\t| {3})")
GOES_ON = re.compile(r"(?:,|\b(?:an?|and|are|as|at|by|for|from|in|is|of|on|or|that|the|to|with))$")
GAP = re.compile(r"\S\s{3,}\S")
DOTS = re.compile(r"(?<=[^\s.:])[ \t]*(?:\. ?){4,}[ \t]*(?=[^\s.])")  # "Tea ........ 2.60"
SHORT = 0.6  # of the usual width, up to which a line is short
NARROW, _TINY = 45, 30  # characters: text is rarely wrapped to lines shorter than the first, never than the second
WORD = re.compile(r"[(\"'“‘]?[^\W\d_]+(?:['’-][^\W\d_]+)*[.,;:)!?\"'”’]*$")
_JOINED = "\u2011"  # for a hyphen that is none of the word; else it never ends a line, as it forbids to break there
_PARTED = re.compile(r"(?<![^\W\d_])([^\W\d_]{2,})[-\u2010](\n[ \t]*)(?=([^\W\d_]{2,}))")
_REJOINED = re.compile(rf"(?<=[^\W\d_]){_JOINED}\n\s*(?=[^\W\d_])")
_WRAPPED = 5  # words that were surely parted, in a text that parts words
_WORDS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_HYPHEN = re.compile(r"(?<=[^\W\d_])- (?=[^\W\d_])")


def indent_of(line: str) -> int:
    """How many spaces a line begins with."""
    return len(line) - len(line.lstrip())


def unwrapped(lines: Sequence[str]) -> str:
    """Lines as running text; a word that goes on after a hyphen is one."""
    text = squeezed(_REJOINED.sub("", "\n".join(lines)))
    return _HYPHEN.sub("-", text) if any(line.endswith("-") for line in lines) else text


def with_parted_words(text: str) -> str:
    """The text, with a sign for each hyphen at a line's end that `unwrapped` leaves out.

    The word without it stands elsewhere in the text, and more often than with it. Where that was so of many words, it
    is so too of others whose parts are no words.
    """
    ends = [(found[1].lower(), found[3].lower()) for found in _PARTED.finditer(text)]
    if not ends:
        return text
    words = Counter(map(str.lower, _WORDS.findall(text)))
    words.subtract(part for parts in ends for part in parts)
    told = [words[first + second] - words[f"{first}-{second}"] for first, second in ends]
    joins = sum(more > 0 for more in told)
    wrapped = joins >= _WRAPPED and joins >= 3 * sum(more < 0 for more in told)

    def decided(found: re.Match[str]) -> str:
        first, gap, second = found.groups()
        low = first.lower(), second.lower()
        more = words["".join(low)] - words["-".join(low)]
        is_one = more > 0 or (more == 0 and wrapped and not all(words[part] > 0 for part in low))
        return f"{first}{_JOINED if second.islower() and is_one else '-'}{gap}"

    return _PARTED.sub(decided, text)


@lru_cache(maxsize=1000)  # of each line it is asked several times
def wordy(line: str) -> bool:
    """Whether a line is of a sentence."""
    parts = line.split()
    return len(parts) >= 5 and sum(map(bool, map(WORD.match, parts))) >= 0.7 * len(parts)


def hangs(lines: Sequence[str]) -> bool:
    """Whether all lines but the first are indented, as the text of a term is."""
    return len(lines) > 1 and all(indent_of(line) >= indent_of(lines[0]) + 2 for line in lines[1:])


def are_lines(lines: Sequence[str], width: int) -> bool:
    """Whether each line stands by itself: all are short, or there are four or more, and none goes on in the next."""
    indents = [*map(indent_of, lines)]
    if len(lines) < 2 or max(indents) - min(indents) > 1:
        return False
    if all(GAP.search(line.strip()) for line in lines) or are_narrow(lines):
        return True
    small = sum(line.lstrip()[0].islower() for line in lines[1:])
    if max(map(len, lines)) < SHORT * width:
        return small <= 0.3 * (len(lines) - 1)
    if len(lines) < 4 or any(map(GOES_ON.search, lines[:-1])) or any(map(str.isupper, lines)):
        return False
    longest = max(map(len, lines))
    wrapped = sum(len(line) > 0.85 * longest for line in lines[:-1])
    begins = [line.lstrip(" *</[")[:1] for line in lines[1:]]
    return wrapped < 0.5 * len(lines) and all(sign.isupper() or sign.isdigit() for sign in begins)


def are_narrow(lines: Sequence[str]) -> bool:
    """Whether lines are too short to be wrapped, as the next word has room on each: `Espresso 2,20`, `Tea 4,10`."""
    longest = max(map(len, lines))
    if longest >= NARROW or (all(map(str.isupper, lines)) and lines[-1][-1] in ".!"):
        return False
    if any(line[-1] in f"-{_JOINED}–—" or GOES_ON.search(line.lower()) for line in lines[:-1]):
        return False
    if any(len(line) + len(after.split()[0]) >= NARROW for line, after in pairwise(lines)):
        return False
    begins = [line.lstrip() for line in lines[1:]]
    small = sum((line[0].islower() and not LABEL.match(line)) or line[0] in "-–—" for line in begins)
    few = len(lines) >= 4 and longest < _TINY and not any(map(wordy, lines))
    return few or small <= 0.3 * (len(lines) - 1)


def goes_on(line: str, after: str) -> bool:
    """Whether a line that is not very short goes on in the next one."""
    begins = after.lstrip()
    return len(line) >= _TINY and line[-1].isalpha() and begins[0].islower() and not LABEL.match(begins)
