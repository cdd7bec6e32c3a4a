"""Which lines of plain text are code, and which preformatted ones are prose."""

import re
from collections.abc import Sequence

from rag.base.errors import FormatError
from rag.documents.encodings import decode_text
from rag.documents.plain_text.lines import BULLET, DOTS, GAP, RULE, WORD, indent_of, wordy

_COMMENT = re.compile(r"\s*(?:#|//|;|\*|--|%|\$|>>>|>|<|\|)")
_SIGNATURE = re.compile(r"[{};]\s*$|^\s*(?:[$#>%]\s|>>>|\w+\(|[-\w./]+\s*=)")
# A line of a script, of settings, of data or with marks of roff.
_NO_TEXT = re.compile(r"\s*(?:#|[.'][A-Za-z\\]|//|;|/\*|\*/|[<{}|@%$]|\w+\s*[:+?]?=)|.*(?:[{};\\]|\*/)\s*$")
# A line of a program: an import, a decorator, a variable, the head of a block, a comment at its end, or open brackets.
_PROGRAM = re.compile(
    r"""\s*(?:from\ [\w.]+\ import\ |import\ [\w.]+(?:\ as\ \w+)?$|@\w|(?:const|let|var|local)\ \w|[\w.]+\ =\ )
    |\s*(?:def|class|if|for|while|with|try|else)\b.*:$
    |.*\S\s+(?://|\#)\s
    |.*(?:[{\[]|[)}\]"'];|\}[)\]]*,?|\][)\],]+)$""",
    re.VERBOSE,
)


def is_prose(text: str) -> bool:
    """Whether preformatted text holds sentences, as a manual page set in `<pre>` does, rather than code."""
    lines = [line for line in text.splitlines() if line.strip()]
    code_lines = sum(bool(_COMMENT.match(line) or _PROGRAM.match(line.rstrip())) for line in lines)
    if len(lines) < 6 or code_lines > 0.2 * len(lines):
        return False
    return sum(map(wordy, lines)) >= 0.5 * len(lines)


def is_text_file(head: bytes) -> bool:
    """Whether a file whose name says nothing holds sentences, by its beginning, rather than code, settings or data."""
    if head.startswith(b"#!") or b"\0" in head:
        return False
    try:
        text = decode_text(head, "")
    except FormatError:
        return False
    words = text.split()
    lines = [(wordy(line), _NO_TEXT.match(line) is not None) for line in text.splitlines() if line.strip()]
    content = sum(of_sentence and not other for of_sentence, other in lines)
    return (
        content > 0
        and content >= 0.3 * len(lines)
        and 2 * sum(other for _, other in lines) <= content
        and sum(map(bool, map(WORD.match, words))) >= 0.75 * len(words)
    )


def is_code(lines: Sequence[str], base: int) -> bool:
    """Whether lines between empty ones are code or columns, in a text that is indented by `base`."""
    if all(map(DOTS.search, lines)) or BULLET.match(lines[0]):
        return False
    if any(map(RULE.fullmatch, lines)) and len(lines) <= 3:
        return False
    sentences = sum(map(wordy, lines))
    gaps = sum(bool(GAP.search(line.strip())) for line in lines)
    if len(lines) >= 3 and gaps >= 0.6 * len(lines) and not any(map(DOTS.search, lines)):
        return True  # columns: their lines are kept
    if lines[0].lstrip()[0].isupper() and len(lines[0].split()) >= 2 and lines[-1].endswith("."):
        return False  # a short sentence
    if min(map(indent_of, lines)) >= base + 2 and sentences < 0.5 * len(lines):
        return len(lines) > 1 or any(map(_SIGNATURE.search, lines)) or indent_of(lines[0]) >= base + 4
    return sentences == 0 and sum(bool(_SIGNATURE.search(line)) for line in lines) >= 0.6 * len(lines)
