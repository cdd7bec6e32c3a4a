"""The citation grammar: from generated text with markers to clean text with cited sentences, and back.

`parse` works in steps: find the markers, resolve them, cut them out, split the clean text into sentences, and assign
each marker to a sentence. Every pattern reads each character a bounded number of times, so that the time is linear in
the length of any text.

Numbers are 1-based positions among the sources shown; only `render` renumbers.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, Literal, TypeVar, overload

from autoais.base.markers.code import Code, find_code
from autoais.base.markers.tokens import NAME, SUPERSCRIPTS, Marker, MarkerReader, plain
from autoais.base.text.sentences import sentence_spans
from autoais.base.types import Unresolved

C = TypeVar("C", int, str)
Kind = Literal["reference", "link", "locator", "list", "highlight"]

_STOPS = ".!?…。！？"
_CLOSERS = "\"'”’»)]*_~"
_PUNCTUATION = ".,;:!?)]}”’»…。，、；：！？"
_BLANKS = " \t\xa0\u2009\u202f"
_LINE_END = re.compile("\r\n?|[\u2028\u2029]")
_ROUNDS = 8
_DEBRIS = re.compile(rf"[()（）\[\]【】［］〔〕〖〗^#$\\\ue200-\ue206{SUPERSCRIPTS}]|</?sup>", re.IGNORECASE)
_OPEN, _SHUT = r"[\[【［〔〖]", r"[\]】］〕〗]"
_JOINERS = {"", ",", ";", "&", "and", ", and", "-", "–", "—", "−", "to", "、", "，"}
_RANGE_JOINERS = {"-", "–", "—", "−", "to"}
_WRAPS = [
    (re.compile(before, re.IGNORECASE), re.compile(after, re.IGNORECASE))
    for before, after in (
        (rf"[\[(] ?(?:see |{NAME}:? ?)?\Z", r" ?[\])]"),
        (r"<sup>\Z", r"</sup>"),
        (r"\*\*\Z", r"\*\*"),
        (r"(?<!\*)\*\Z", r"\*(?!\*)"),
    )
]
# Quotation marks, emphasis and HTML tags that end, or begin, beside a marker: "**A is B [1]**", "*[1] says*".
_CLOSING_SIGNS = re.compile(r"(?:[\"']|[*_~]{1,3}(?![*~]|\w)|</[a-zA-Z][a-zA-Z0-9]{0,9}>)")
_OPENING_SIGNS = re.compile(r"(?:[(\[{“«]|(?:^|[\s(\[{“«])[\"']?[*_~]{1,3}|<[a-zA-Z][a-zA-Z0-9]{0,5}>)\Z")
_BEFORE_REFERENCE = re.compile(r"\b(?:to|in|by|from|per|see|of|with|via|at|on|sources?)[ \t]*\Z", re.IGNORECASE)
_LIST_NAME = (
    r"(?:references?|sources?|bibliography|citations?|works (?=cited)|footnotes?|quellen(?:angaben|verzeichnis)?|"
    r"literaturverzeichnis|referenzen|einzelnachweise|références|bibliographie|referencias|fuentes|bibliografía|"
    r"referências|fontes|bibliografia|riferimenti|fonti|bronnen|источники|список литературы|参考文献|参考资料|来源|"
    r"出典)"
)
_HEADING_SIGNS = " \t#*_>："
_HEADING = re.compile(
    rf"(?:\d{{1,2}}[.)] )?(?:(?:all|cited|consulted|list of|my|the|used) )*{_LIST_NAME}"
    r"(?: (?:and|&) (?:links?|notes?|citations?|references?|sources?))?(?: ?(?:cited|consulted|list|used))*",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"[ \t]*(?:[-*•][ \t]+)?(?:\[[^\[\]\n]+\]|\d{1,3}[.)]|<?https?://)")
_DEFINITION = re.compile(
    r"[ \t]*\[(?:\^[^\[\]\n]+\]:|[^\[\]\n]+\]:[ \t]*<?(?:https?://|www\.)"
    r"|\d+\]:[ \t]*\S+(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$)",
    re.MULTILINE,
)
_NUMBERED_ENTRY = re.compile(r"[ \t]*(?:[-*•][ \t]+)?\[\^?(\d+)\](?=[ \t]+\S)")
_PLAIN_NUMBER = re.compile(r"[ \t]*(?:[-*•][ \t]+)?\d")
_BRACKETS = re.compile(r"\[([^\[\]\n]*)\]")
_DIGITS = re.compile(r"\d+")
_STOP_INSIDE = re.compile(r"[.!?…。！？](?:\s|\Z)")
_LONG_LINE = 60  # characters; such a line may go on in the next one
_LINE = re.compile(r"[^\n]+")
_VERB = re.compile(
    r"(?:(?:add|agree|argue|claim|confirm|contradict|describe|disagree|explain|find|give|list|mention|note|report|show|"
    r"state|suggest|say|write)(?:s|d|ed)?|said|wrote|gave|found|also|alone|and|are|can|cannot|could|did|do|does|had|has|"
    r"have|is|may|might|only|was|were|will|would)(?![\w-])"
)
_BLOCK = re.compile(r"[ \t]*(?:(?:[-*+•▪◦‣]|\d{1,3}[.)]|#{1,6}|>)[ \t]+)+")
# The splitter takes "B." for an initial, as in "George B. Shaw"; before "A study" or "C is" it ends a sentence.
_NO_INITIAL = re.compile(r"(?<=\w [A-Z]\.)[ \n](?=[A-Z] )")


@dataclass(frozen=True, slots=True)
class ParsedSentence(Generic[C]):
    """Characters `start:end` of a clean text and their citations, in order of mention, without duplicates.

    Flags: `inline-reference` (the marker was a word of the sentence, as in "According to [1]"), `quoted-marker` (a
    marker stays in the text because it is part of a quotation from a source).
    """

    start: int
    end: int
    cites: tuple[C, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Removal:
    """Text removed besides the numbers of a marker, or an ambiguous marker.

    Kinds: `reference` (a line of a reference list), `link` (a URL), `locator` (a page or line), `list` (two numbers
    that could be an interval, read as a list), `highlight` (a sign where the text that a mark of OpenAI's cites begins
    or ends).
    """

    kind: Kind
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Parsed(Generic[C]):
    """A clean text, its sentences in order, and the unresolved and removed parts of the markers.

    Between sentences there are no letters, and no digits except list numbers. `segments` are the sentences split at
    their markers, which are AttrScore's claims (Yue et al. 2023). `duplicates` counts repeated citations in a sentence.
    """

    text: str
    sentences: tuple[ParsedSentence[C], ...]
    segments: tuple[ParsedSentence[C], ...]
    unresolved: tuple[Unresolved, ...]
    removals: tuple[Removal, ...]
    duplicates: int


@overload
def parse(
    text: str,
    sources: int,
    *,
    accept_parens: bool = ...,
    strict_years: bool = ...,
    passages: Sequence[str] = ...,
) -> Parsed[int]: ...
@overload
def parse(
    text: str,
    sources: Sequence[str],
    *,
    accept_parens: bool = ...,
    strict_years: bool = ...,
    passages: Sequence[str] = ...,
) -> Parsed[str]: ...
def parse(
    text: str,
    sources: int | Sequence[str],
    *,
    accept_parens: bool = False,
    strict_years: bool = False,
    passages: Sequence[str] = (),
) -> Parsed[int] | Parsed[str]:
    """Parse the citations of a generated text; never raises.

    `sources` is the number of sources shown, numbered from 1, or their ids if these were shown instead of numbers.
    `accept_parens` also reads `(1)`. `strict_years` treats `[1998]` as out of range instead of as a year. `passages`
    are the texts of the sources: markers in a verbatim quotation from them stay in the text.
    """
    reader = MarkerReader(sources, accept_parens, strict_years, passages)
    marks: list[_Mark] = []
    text = _LINE_END.sub("\n", text).strip()
    for _ in range(_ROUNDS):  # removing a marker may join its surroundings to a new one
        cuts = _find_cuts(text, reader)
        if not cuts:
            break
        text, marks = _apply_cuts(text, cuts, marks)
    else:
        debris = [_Mark(0, match[0], reasons=["malformed"]) for match in _DEBRIS.finditer(text)]
        cuts = [_Cut(*match.span(), "", [mark]) for match, mark in zip(_DEBRIS.finditer(text), debris, strict=True)]
        text, marks = _apply_cuts(text, cuts, marks)
    for marker in reader.markers(text):
        if marker.keep:
            marks.append(_Mark(marker.start, marker.text, reasons=marker.reasons, is_quoted=marker.is_quoted))
    marks.sort(key=lambda mark: mark.position)
    if isinstance(sources, int):
        return _assemble(text, marks, range(1, sources + 1))
    return _assemble(text, marks, sources)


def render(text: str, statements: Iterable[ParsedSentence[C]], *, renumber: bool = False) -> str:
    """Return the text with `[1][2]` before each sentence's final stop; `renumber` numbers by first mention."""
    number: dict[C, int] = {}
    pieces, end = [], 0
    for statement in statements:
        sentence = text[statement.start : statement.end]
        body = sentence.rstrip(_STOPS)
        if not body or body[-1].isspace():
            body = sentence
        marker = "".join(
            f"[{number.setdefault(cite, len(number) + 1) if renumber else cite}]" for cite in statement.cites
        )
        pieces += [text[end : statement.start], body, f" {marker}" if marker else "", sentence[len(body) :]]
        end = statement.end
    return "".join(pieces) + text[end:]


def group(
    statements: Iterable[ParsedSentence[C]], *, trailing: Literal["own", "attach"] = "own"
) -> tuple[ParsedSentence[C], ...]:
    """Join uncited sentences to the next cited one, as HAGRID does (Kamalloo et al. 2023).

    Sentences after the last citation form an uncited group (`own`) or join the last group (`attach`); the paper leaves
    this open.
    """
    groups: list[ParsedSentence[C]] = []
    waiting: list[ParsedSentence[C]] = []
    for statement in statements:
        waiting.append(statement)
        if statement.cites:
            groups.append(_merge_statements(waiting))
            waiting = []
    if waiting and trailing == "attach" and groups:
        waiting.insert(0, groups.pop())
    if waiting:
        groups.append(_merge_statements(waiting))
    return tuple(groups)


def _merge_statements(statements: Sequence[ParsedSentence[C]]) -> ParsedSentence[C]:
    return ParsedSentence(
        statements[0].start,
        statements[-1].end,
        tuple(dict.fromkeys(cite for statement in statements for cite in statement.cites)),
        tuple(sorted({flag for statement in statements for flag in statement.flags})),
    )


@dataclass(slots=True)
class _Mark:
    """A marker that was cut out of the text or left in it, with its position in the current text."""

    position: int
    text: str = ""
    cites: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    removals: list[tuple[Kind, str]] = field(default_factory=list)
    inline: bool = False
    is_quoted: bool = False


@dataclass(slots=True)
class _Cut:
    """Characters `start:end` to replace with `put`, and the marks to set there."""

    start: int
    end: int
    put: str
    marks: list[_Mark]


def _apply_cuts(text: str, cuts: Sequence[_Cut], marks: list[_Mark]) -> tuple[str, list[_Mark]]:
    """Apply the cuts and strip the text; return it with all marks at their new positions."""
    pieces, positions, end, length = [], [], 0, 0
    for cut in cuts:
        start = max(cut.start, end)
        pieces += [text[end:start], cut.put]
        length += start - end
        positions.append(length)
        length += len(cut.put)
        end = max(cut.end, end)
    new_text = "".join([*pieces, text[end:]])
    starts = [cut.start for cut in cuts]
    for mark in marks:
        index = bisect_right(starts, mark.position) - 1
        if index >= 0:
            offset = mark.position - cuts[index].end
            mark.position = positions[index] + (len(cuts[index].put) + offset if offset >= 0 else 0)
    for cut, position in zip(cuts, positions, strict=True):
        for mark in cut.marks:
            mark.position = position
    result = new_text.strip()
    shift = new_text.index(result[0]) if result else 0
    marks = marks + [mark for cut in cuts for mark in cut.marks]
    for mark in marks:
        mark.position = min(max(mark.position - shift, 0), len(result))
    return result, marks


def _find_cuts(text: str, reader: MarkerReader) -> list[_Cut]:
    """Return the cuts of this round, in order: reference lists and markers."""
    flat = plain(text)
    lists = _reference_lines(flat)
    cuts = [_Cut(start, end, "", [_Mark(0, removals=[("reference", text[start:end].strip())])]) for start, end in lists]
    starts = [start for start, _ in lists]
    markers = []
    for marker in reader.markers(text):
        index = bisect_right(starts, marker.start) - 1
        if not marker.keep and (index < 0 or marker.start >= lists[index][1]):
            markers.append(marker)
    for cluster in _clusters(markers, flat):
        start, end = _widen(flat, cluster[0].start, cluster[-1].end)
        marks = _make_marks(cluster, text, reader)
        inline = bool(_BEFORE_REFERENCE.search(flat[max(0, start - 24) : start]))
        for mark in marks:
            mark.inline = inline
        cuts.append(_Cut(*_widen_to_blanks(flat, start, end), marks))
    return sorted(cuts, key=lambda cut: cut.start)


def _reference_lines(text: str) -> list[tuple[int, int]]:
    """Return the spans of reference lists with their headings, and of definitions (`[1]: https://…`), in order."""
    lines = [(match.start(), match.end()) for match in _LINE.finditer(text)]
    blocks: list[tuple[int, int]] = []  # of lines: the first, and the one behind the last
    number = 0
    while number < len(lines):
        if not (end := _list_end(text, lines, number)):
            end = _definition_end(text, lines, number)
        if end:
            blocks.append((number, end))
        number = end or number + 1
    first = blocks[-1][1] if blocks else 0
    if (start := _final_list(text, lines, first)) is not None:
        blocks.append((start, len(lines)))
    spans = []
    for begin, stop in blocks:
        start, end = lines[begin][0], lines[stop][0] if stop < len(lines) else len(text)
        # Between paragraphs, only one of the gaps goes.
        spans.append((start, end if text[max(0, start - 2) : start] == "\n\n" else min(lines[stop - 1][1] + 1, end)))
    return spans


def _list_end(text: str, lines: Sequence[tuple[int, int]], number: int) -> int | None:
    """Return the line behind the reference list whose heading is this line; None if it is none.

    A list that is followed by other text may be a part of the answer, unless its numbers have brackets or it has URLs.
    """
    if not _is_heading(text[slice(*lines[number])]):
        return None

    def line_gap(line: int) -> int:
        return lines[line][0] - lines[line - 1][1]

    end = number + 1
    while end < len(lines):
        line = text[slice(*lines[end])]
        if _is_heading(line):
            break
        if not _ENTRY.match(line) and not line.isspace() and not line.startswith(("  ", "\t")):
            is_wrapped = end > number + 1 and line_gap(end) == 1
            before = text[slice(*lines[end - 1])]
            has_entry_below = end + 1 < len(lines) and _ENTRY.match(text, lines[end + 1][0]) and line_gap(end + 1) == 1
            if not is_wrapped or not (line[0].islower() or len(before) >= _LONG_LINE or has_entry_below):
                break
        end += 1
    entries = [text[slice(*line)] for line in lines[number + 1 : end] if _ENTRY.match(text, line[0])]
    if not entries:
        return None
    has_claims = end < len(lines) and any(_PLAIN_NUMBER.match(entry) and "://" not in entry for entry in entries)
    return None if has_claims else end


def _is_heading(line: str) -> bool:
    head, _, remainder = line.partition(":")
    return not remainder.strip(" \t*_") and bool(_HEADING.fullmatch(head.strip(_HEADING_SIGNS)))


def _definition_end(text: str, lines: Sequence[tuple[int, int]], number: int) -> int | None:
    """Return the line behind the definition that begins in this line, with its indented lines; None if it is none."""
    if not _DEFINITION.match(text, lines[number][0]):
        return None
    end = number + 1
    while end < len(lines) and text.startswith(("  ", "\t"), lines[end][0]) and lines[end][0] == lines[end - 1][1] + 1:
        end += 1
    return end


def _final_list(text: str, lines: Sequence[tuple[int, int]], first: int) -> int | None:
    """Return the first line of a list of references at the end that has no heading line, from line `first` on.

    It is `Sources: [1], [2]`, or lines like `[1] Title`, without a sentence, if one of them is cited before.
    """
    start = len(lines)
    while start > first and _ENTRY.match(text, lines[start - 1][0]):
        start -= 1
    if start > first:
        head, _, remainder = text[slice(*lines[start - 1])].partition(":")
        if remainder.strip(" *_").startswith("[") and _HEADING.fullmatch(head.strip(_HEADING_SIGNS)):
            return start - 1
    entries = [_NUMBERED_ENTRY.match(text, begin) for begin, _ in lines[start:]]
    if not entries or (start and text.count("\n", lines[start - 1][1], lines[start][0]) < 2):
        return None
    numbers = [int(entry[1][:9]) if entry else 0 for entry in entries]
    cited_numbers = {
        int(digits[:9])
        for match in _BRACKETS.finditer(text, 0, lines[start][0])
        for digits in _DIGITS.findall(match[1])
    }
    are_titles = all(
        entry and "[" not in (title := text[entry.end() : end]) and not _STOP_INSIDE.search(title)
        for entry, (_, end) in zip(entries, lines[start:], strict=True)
    )
    return start if are_titles and numbers == sorted(set(numbers)) and not cited_numbers.isdisjoint(numbers) else None


def _clusters(markers: Sequence[Marker], text: str) -> list[list[Marker]]:
    """Group markers with nothing between them but blanks and a word or sign that joins citations."""
    clusters: list[list[Marker]] = []
    for marker in markers:
        if clusters and text[clusters[-1][-1].end : marker.start].strip(_BLANKS).casefold() in _JOINERS:
            clusters[-1].append(marker)
        else:
            clusters.append([marker])
    return clusters


def _make_marks(cluster: Sequence[Marker], text: str, reader: MarkerReader) -> list[_Mark]:
    """Return one mark per marker; two single numbers with a dash between them are one range."""
    markers: list[Marker] = []
    for marker in cluster:
        last = markers[-1] if markers else None
        if last and last.number and marker.number and text[last.end : marker.start].strip(_BLANKS) in _RANGE_JOINERS:
            markers[-1] = reader.merge(last, marker, text)
        else:
            markers.append(marker)
    marks = []
    for marker in markers:
        mark = _Mark(0, marker.text, marker.cites, marker.reasons)
        mark.removals += [("locator", locator) for locator in marker.locators]
        mark.removals += [("link", marker.link)] if marker.link else []
        mark.removals += [("list", marker.text)] if marker.is_list else []
        mark.removals += [("highlight", marker.text)] if marker.is_highlight else []
        marks.append(mark)
    return marks


def _widen(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a cluster to the signs that enclose only it: `([1])`, `**[1]**`, `(source: [1])`, `[[1], [2]]`."""
    while True:
        for before, after in _WRAPS:
            opening = before.search(text[max(0, start - 20) : start])
            closing = after.match(text, end)
            if opening and closing:
                start, end = start - len(opening[0]), closing.end()
                break
        else:
            return start, end


def _widen_to_blanks(text: str, start: int, end: int) -> tuple[int, int, str]:
    """Return the span to cut for a cluster at `start:end`, and the text to put there to join the words around it."""
    outer_start, outer_end = start, end
    while outer_start and text[outer_start - 1] in _BLANKS:
        outer_start -= 1
    while outer_end < len(text) and text[outer_end] in _BLANKS:
        outer_end += 1
    following = text[outer_end : outer_end + 1]
    if outer_start == 0 or text[outer_start - 1] == "\n":
        if following not in ("", "\n"):
            return start, outer_end, ""
        # The marker stands alone on its line.
        return (outer_start - 1, outer_end, "") if outer_start else (outer_start, outer_end + 1, "")
    if following == "." and text[outer_start - 1] in ".!?":
        return outer_start, outer_end + 1, ""  # A is B. [1].
    is_closed = outer_end == end and outer_start < start and _CLOSING_SIGNS.match(text, end)
    if is_closed or following in _PUNCTUATION:
        return outer_start, outer_end, ""
    if outer_start == start and _OPENING_SIGNS.search(text[max(0, start - 8) : start]):
        return start, outer_end, ""
    if outer_end > end or following in ("", "\n"):
        return outer_start, end, ""
    return outer_start, end, " " if outer_start < start or following.isalnum() else ""


# ---- sentences -----------------------------------------------------------------------------------------------------


def _assemble(text: str, marks: Sequence[_Mark], names: Sequence[C]) -> Parsed[C]:
    """Assign each mark to its sentence; marks are sorted by position."""
    spans = _statement_spans(text, [mark.position for mark in marks if mark.cites])
    marks_by_sentence, orphans = _assign_marks(text, marks, spans)
    sentences: list[ParsedSentence[C]] = []
    segments: list[ParsedSentence[C]] = []
    for (start, end), sentence_marks in zip(spans, marks_by_sentence, strict=True):
        flags = _flags(text[start:end], start, sentence_marks)
        sentences.append(ParsedSentence(start, end, _collect_cites(sentence_marks, names), flags))
        pieces = (
            [(start, end, sentence_marks)]
            if "inline-reference" in flags
            else _split_at_marks(text, start, end, sentence_marks)
        )
        segments += [ParsedSentence(begin, stop, _collect_cites(subset, names)) for begin, stop, subset in pieces]
    reasons = [(mark, reason) for mark in marks for reason in mark.reasons]
    reasons += [(mark, "no-statement") for mark in orphans]
    reasons.sort(key=lambda pair: pair[0].position)
    return Parsed(
        text,
        tuple(sentences),
        tuple(segments),
        tuple(Unresolved(mark.text, reason, position=mark.position) for mark, reason in reasons),
        tuple(Removal(kind, content, mark.position) for mark in marks for kind, content in mark.removals),
        sum(len(mark.cites) for sentence_marks in marks_by_sentence for mark in sentence_marks)
        - sum(len(sentence.cites) for sentence in sentences),
    )


def _assign_marks(
    text: str, marks: Sequence[_Mark], spans: Sequence[tuple[int, int]]
) -> tuple[list[list[_Mark]], list[_Mark]]:
    """Return the marks of each sentence, and the citations without a sentence."""
    marks_by_sentence: list[list[_Mark]] = [[] for _ in spans]
    orphans = []
    for mark, owner in zip(marks, _find_owners(text, [mark.position for mark in marks], spans), strict=True):
        if owner is not None:
            marks_by_sentence[owner].append(mark)
        elif mark.cites:
            orphans.append(mark)
    return marks_by_sentence, orphans


def _collect_cites(marks: Iterable[_Mark], names: Sequence[C]) -> tuple[C, ...]:
    return tuple(dict.fromkeys(names[cite - 1] for mark in marks for cite in mark.cites))


def _flags(sentence: str, start: int, marks: Sequence[_Mark]) -> tuple[str, ...]:
    flags = set()
    for mark in marks:
        if mark.is_quoted:
            flags.add("quoted-marker")
        elif mark.cites and (mark.inline or (mark.position <= start and sentence[0].islower())):
            flags.add("inline-reference")
    return tuple(sorted(flags))


def _split_at_marks(text: str, start: int, end: int, marks: Iterable[_Mark]) -> list[tuple[int, int, list[_Mark]]]:
    """Split a sentence at its markers: each piece has the citations after it, the first also those before it."""
    pieces: list[tuple[int, int, list[_Mark]]] = []
    leading: list[_Mark] = []
    begin = start
    for mark in (mark for mark in marks if mark.cites):
        stop = min(max(mark.position, start), end)
        if span := _trim(text, begin, stop):
            pieces.append((*span, []))
            begin = stop
        (pieces[-1][2] if pieces else leading).append(mark)
    if span := _trim(text, begin, end):
        pieces.append((*span, []))
    pieces[0][2][:0] = leading
    return pieces


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Strip separators and blanks before a span and blanks after it; None if it has no letters or digits."""
    piece = text[start:end]
    if not any(map(str.isalnum, piece)):
        return None
    return start + len(piece) - len(piece.lstrip(_BLANKS + "\n,;:.!?")), start + len(piece.rstrip())


def _find_owners(text: str, positions: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[int | None]:
    """Return the sentence of each position: the one around or before it, or after it at the start of a line."""
    starts = [start for start, _ in spans]
    lines = [match.start() for match in re.finditer("\n", text)]
    owners: list[int | None] = []
    previous = current = -1  # different positions
    for position in positions:
        if position != current:
            previous, current = current, position
        after = bisect_left(starts, position)
        before = after - 1
        if before >= 0 and position <= spans[before][1]:
            following = spans[after] if after < len(spans) else None
            owners.append(
                after if following and _is_subject(text, position, spans[before], following, previous) else before
            )
            continue
        line = bisect_left(lines, position)
        leads = after < len(spans) and bisect_left(lines, starts[after]) == line
        follows = before >= 0 and bisect_left(lines, spans[before][1]) == line
        if leads and not follows:
            owners.append(after)
        else:
            owners.append(before if before >= 0 else after if after < len(spans) else None)
    return owners


def _is_subject(text: str, position: int, before: tuple[int, int], after: tuple[int, int], previous: int) -> bool:
    """Return whether a marker between two sentences is a word of the second: "A is B [1]. [2] says that C is D."

    The second begins with a small letter, and the first has a marker before its stop (at `previous`), or the second
    begins with a verb.
    """
    if position != before[1] or text[position - 1] not in _STOPS + _CLOSERS or not text[after[0]].islower():
        return False
    if text[position : after[0]].strip(_BLANKS):
        return False
    return before[0] <= previous < position or bool(_VERB.match(text, after[0]))


def _statement_spans(text: str, citation_positions: Iterable[int]) -> list[tuple[int, int]]:
    """Return the spans of sentences, list items, headings and table cells, without bullets, pipes and white space.

    `citation_positions` holds the positions of the citations: one beside a full stop ends a sentence where the splitter
    alone cannot tell ("in the U.S. [1] He left").
    """
    code = find_code(text)
    starts = [span.start for span in code]

    def is_outside_code(gap: tuple[int, int]) -> bool:
        index = bisect_left(starts, gap[0]) - 1
        return index < 0 or gap[0] >= code[index].end

    gaps = [gap for gap in _structure(text, code) if is_outside_code(gap)]
    edges = [(0, 0), *gaps, (len(text), len(text))]
    for (_, start), (end, _) in pairwise(edges):
        gaps += [(start + offset, start + offset) for offset, _ in sentence_spans(text[start:end])]
    gaps += [(match.start(), match.start()) for match in _NO_INITIAL.finditer(text)]
    gaps += [
        (end, end) for end in (_sentence_end(text, position) for position in citation_positions) if end is not None
    ]
    edges = [(0, 0), *sorted(filter(is_outside_code, gaps)), (len(text), len(text))]
    spans = []
    for (_, start), (end, _) in pairwise(edges):
        piece = text[start:end]
        if any(map(str.isalnum, piece)):
            spans.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))
        elif spans and spans[-1][1] == start:  # "**A is B.**": closing signs belong to the sentence
            spans[-1] = spans[-1][0], end - len(piece.lstrip(_CLOSERS))
    return spans


def _structure(text: str, code: Sequence[Code]) -> list[tuple[int, int]]:
    """Return the spans that separate sentences: bullets, list numbers, heading and quotation signs, table pipes."""
    gaps = [(position, position) for span in code if span.is_block for position in (span.start, span.end)]
    end = 0
    for match in _LINE.finditer(text):
        line = match[0].strip()
        if not line:
            continue
        start = match.start()
        if text.count("\n", end, start) > 1:
            gaps.append((end, start))
        end = match.end()
        if line.startswith("|") and line.count("|") > 1:
            gaps += [(start + sign.start(), start + sign.end()) for sign in re.finditer(r"^|\||$", match[0])]
        elif mark := _BLOCK.match(text, start, end):
            gaps.append(mark.span())
            if "#" in mark[0]:
                gaps.append((end, end))
    return gaps


def _sentence_end(text: str, position: int) -> int | None:
    """Return the end of the sentence whose full stop or line end is at this position; None if it continues."""
    end = position
    while end < len(text) and text[end] in _STOPS + _CLOSERS:
        end += 1
    if text[end : end + 1] != "\n" and not any(stop in text[position:end] for stop in _STOPS):
        before = text[max(0, position - 8) : position].rstrip(_CLOSERS)
        if not before or before[-1] not in _STOPS:
            return None
    following = text[end : end + 8]
    word = following.lstrip()
    return end if word != following and word and not word[0].islower() else None
