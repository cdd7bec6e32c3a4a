"""Quotations in answers against their sources: verbatim, from another source, stitched together, or misquoted."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, product
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.text.nearest import Change, SentenceWords, compare_words, find_nearest, format_changes
from autoais.base.text.quotations import MIN_WORDS, Quotation, find_quotations
from autoais.base.text.scripts import HAN
from autoais.base.types import Citation

MIN_SIMILARITY = 0.6
"""Of a quotation and the text that it misquotes, as `autoais.base.text.nearest` counts it; set by hand."""
_MIN_NAME_SIMILARITY = 0.8  # of a title, a term or an example: fewer shared words say that it is one of the writer's
_MIN_PART = 3  # words of each part of a quotation with an ellipsis that is stitched: two words stand anywhere
_MAX_PARTS = 4  # of a stitched quotation without an ellipsis
_MAX_OMISSION = 10  # words between two parts: fewer are an omission, which is a misquotation
MAX_QUOTATIONS = 200
"""Of an answer that are checked: each may be compared with every passage."""
_MAX_CUT = 1_000  # words of a quotation that is searched for parts: the time grows with their square
_MAX_STARTS = 50  # occurrences of a first part that are tried

_ELLIPSIS, _INITIAL, _EDITED = "\0", "\1", "\2"  # how the gaps of a quotation are written between its parts
_GAPS = {_ELLIPSIS: None, _INITIAL: 0, _EDITED: 8}  # the words that each may stand for
_GAP = re.compile(f"([{_ELLIPSIS}{_INITIAL}{_EDITED}])")
_OMISSION = re.compile(r"[\[(]\s*(?:…|\.(?:\s?\.){2,3})\s*[\])]|…|\.(?:\s?\.){2,}")
_CHANGED_CASE = re.compile(r"(?<!\w)\[(\w)\](?=\w)")  # "[T]he"
_BRACKETS = re.compile(r"(?<!\w)\w*\[(?!\d{1,3}\])[^\[\]\n]{1,60}\]\w*")  # "[the]", "walk[s]", "[sic]"
_JOINERS = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # characters without width, which copying keeps or loses
_TOKEN = re.compile(
    rf"\[\d{{1,3}}\]|[{HAN}]|(?:\[\w\](?=\w))?(?:(?![{HAN}])\w[\u0300-\u036f{_JOINERS}]*)+"
    r"|(?P<quote>[\"'`´“”„‟«»‘’‚‛‹›]+)|(?P<dash>[-‐‑‒–—―−]+)|[^\w\s]"
)
_LAYOUT = frozenset(f"*[]<>#|{_JOINERS}")  # emphasis, brackets and marks of blocks
_UNSEEN = re.compile(rf"[\[\]{_JOINERS}]")


class QuoteStatus(StrEnum):
    """What the sources say of a quotation; see `QuoteCheck`."""

    VERBATIM = "verbatim"
    MISATTRIBUTED = "misattributed"
    STITCHED = "stitched"
    MISQUOTED = "misquoted"


@dataclass(frozen=True, slots=True)
class QuoteCheck:
    """A quotation of an answer, without its marks, and where its words stand.

    `status`: `verbatim` (in a passage that its sentences cite), `misattributed` (only in passages that they do not
    cite), `stitched` (its parts stand in several passages, or apart in one without an ellipsis, or in another order),
    `misquoted` (in no passage). `spans` are (sentence from 0, start, end) for each sentence that it stands in.
    `sources` are the passages that have it, part by part, each with its span and text; for a misquotation the nearest
    text, or nothing if no passage has anything like it.
    """

    quote: str
    status: QuoteStatus
    spans: tuple[tuple[int, int, int], ...]
    sources: tuple[Citation, ...] = ()

    @property
    def sentence(self) -> int:
        """The sentence in which it begins, from 0."""
        return self.spans[0][0]

    @property
    def changes(self) -> list[tuple[Change, str]]:
        """From a misquotation to its nearest text: words that are the same, `removed` (its own) or `added` (missing).

        Empty for other quotations, and if nothing is near.
        """
        if self.status is not QuoteStatus.MISQUOTED or not self.sources:
            return []
        return compare_words(_trim(self.quote), self.sources[0].quote or "", _fold)

    @property
    def diff(self) -> str:
        """The `changes` as a text: `[-...-]` around what the source lacks, `{+...+}` around what it has instead."""
        return format_changes(self.changes)

    def record(self) -> dict[str, Any]:
        """Return JSON: quote, status, spans, sources (passage, start, end, quote) and diff."""
        sources = [
            {"passage": source.passage, "start": source.start, "end": source.end, "quote": source.quote}
            for source in self.sources
        ]
        spans = [list(span) for span in self.spans]
        return {
            "quote": self.quote,
            "status": self.status.value,
            "spans": spans,
            "sources": sources,
            "diff": self.diff,
        }


def check_quotes(answer: CitedAnswer) -> list[QuoteCheck]:
    """Compare the quotations of an answer with its passages; one check each, in order.

    White space, case, quotation marks inside, kinds of dashes, emphasis, and marks at both ends count for nothing. An
    ellipsis stands for any words between two parts in order in one passage, an editor's brackets ("[the]") for at most
    eight.

    Passed over is what is no quotation of a source: fewer than four words, titles, code, the words of the question, and
    terms, examples and sayings that no passage has or comes close to. So is a quotation that cannot be checked, as the
    text of a passage that it may be from is not known. Of more than 200 quotations the first 200 are checked.
    """
    positions, text = _locate(answer)
    quotations = find_quotations(text)[:MAX_QUOTATIONS]
    if not quotations:
        return []
    passages = {
        key: _Source(key, passage.text) if passage.text.strip() else _Source(key, _quotes(answer, key), has_text=False)
        for key, passage in answer.passages.items()
    }
    headings = [_Source("", text) for text in (answer.question, *(p.headings for p in answer.passages.values()))]
    checks = []
    for quotation in quotations:
        spans = tuple(
            (number, max(start, quotation.start) - start, min(end, quotation.end) - start)
            for number, (start, end) in enumerate(positions)
            if start < quotation.end and quotation.start < end
        )
        quote = text[quotation.start : quotation.end]
        parts = _split_parts(quote, has_editor=False)
        if not spans or any(_find_chain(parts, heading) for heading in headings):
            continue
        cites = dict.fromkeys(key for number, _, _ in spans for key in answer.sentences[number].cites)
        sources = _Sources(
            tuple(passages[key] for key in cites),
            tuple(source for key, source in passages.items() if key not in cites),
            is_complete=bool(passages) and all(passages[key].has_text for key in cites or passages),
        )
        if result := _find(quotation, quote, sources):
            checks.append(QuoteCheck(quote, result[0], spans, result[1]))
    return checks


def _quotes(answer: CitedAnswer, passage: str) -> str:
    """What is known of a passage without a text: the quotes of the citations."""
    citations = (citation for sentence in answer.sentences for citation in sentence.citations)
    return "\n".join(citation.quote for citation in citations if citation.passage == passage and citation.quote)


def _locate(answer: CitedAnswer) -> tuple[list[tuple[int, int]], str]:
    """The characters of each sentence, and the text that they are counted in: the answer with all marks, if it has all.

    Quotation marks may stand between two sentences.
    """
    text, positions, end = answer.plain, [], 0
    for sentence in answer.sentences:
        start = sentence.start
        if start is None or not text.startswith(sentence.text, start):
            start = text.find(sentence.text, end)
        if start < 0:
            text = " ".join(sentence.text for sentence in answer.sentences)
            starts = [0]
            for previous in answer.sentences:
                starts.append(starts[-1] + len(previous.text) + 1)
            pairs = zip(starts, answer.sentences, strict=False)
            return [(start, start + len(sentence.text)) for start, sentence in pairs], text
        end = start + len(sentence.text)
        positions.append((start, end))
    return positions, text


# --- texts as tokens --------------------------------------------------------------------------------------------


class _Source:
    """A passage as tokens: words without case, marks but those of quotation and layout, one kind of dash, no `[1]`."""

    def __init__(self, passage: str, text: str, *, has_text: bool = True) -> None:
        self.passage, self.text, self.has_text = passage, text, has_text

    @cached_property
    def tokens(self) -> list[tuple[str, int, int]]:
        """Each token with its characters in the text."""
        return list(_tokens(self.text))

    @cached_property
    def sentences(self) -> SentenceWords:
        """The text for `find_nearest`."""
        return SentenceWords(self.text)

    @cached_property
    def line(self) -> str:
        """The tokens with blanks around each, in which a run of whole tokens is a substring."""
        return f" {' '.join(token for token, _, _ in self.tokens)} "

    @cached_property
    def starts(self) -> list[int]:
        """The position in `line` of the blank before each token."""
        return list(accumulate((len(token) + 1 for token, _, _ in self.tokens[:-1]), initial=0))

    def index(self, position: int) -> int:
        """The number of the token after the blank at a position of `line`."""
        return bisect_left(self.starts, position)

    def count_words(self, first: int, last: int) -> int:
        """The number of words among tokens `first` to `last` (exclusive)."""
        return _count_words(token for token, _, _ in self.tokens[first:last])

    def citation(self, first: int, last: int) -> Citation:
        """The span of tokens `first` to `last` (exclusive); without offsets if the text of the passage is not known."""
        start, end = self.tokens[first][1], self.tokens[last - 1][2]
        quote = self.text[start:end]
        return Citation(self.passage, start, end, quote) if self.has_text else Citation(self.passage, quote=quote)


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in _LAYOUT or (token[0] == "[" and token[-1] == "]"):
            continue
        if match["quote"]:
            start, end = match.span()
            if not (text[max(0, start - 1) : start].isalnum() and text[end : end + 1].isalnum()):
                continue  # a quotation in the quotation, whose marks are changed or left out
            token = "'"
        elif match["dash"]:
            token = "-"
        else:
            token = unicodedata.normalize("NFKC", _UNSEEN.sub("", token)).casefold().replace(" ", "") or token
        yield token, match.start(), match.end()


def _fold(text: str) -> str:
    return " ".join(token for token, _, _ in _tokens(text))


def _trim(quote: str) -> str:
    """A quotation from its first to its last word."""
    match = re.search(r"\w.*\w", quote, re.DOTALL)
    return quote if match is None else match[0]


@dataclass(frozen=True, slots=True)
class _Part:
    """A run of tokens that stands in one piece; `max_gap` words may stand before it, None for any number."""

    tokens: tuple[str, ...]
    max_gap: int | None = 0

    @property
    def line(self) -> str:
        """The part as it stands in the `line` of a source."""
        return f" {' '.join(self.tokens)} "

    @property
    def words(self) -> int:
        """The number of words."""
        return _count_words(self.tokens)


def _count_words(tokens: Iterable[str]) -> int:
    return sum(token[0].isalnum() for token in tokens)


def _split_parts(quote: str, *, has_editor: bool) -> list[_Part]:
    """The parts of a quotation between its ellipses and, with `has_editor`, the words in brackets.

    Marks at the ends of a part are left out, and parts without words.
    """
    text = _OMISSION.sub(_ELLIPSIS, _GAP.sub(" ", quote))
    if has_editor:
        text = _BRACKETS.sub(_EDITED, _CHANGED_CASE.sub(rf"{_INITIAL}\1", text))
    parts: list[_Part] = []
    max_gap: int | None = 0
    for piece in _GAP.split(text):
        if piece in _GAPS:
            gap = _GAPS[piece]
            max_gap = None if gap is None or max_gap is None else max(gap, max_gap)
        elif tokens := _strip_marks([token for token, _, _ in _tokens(piece)]):
            parts.append(_Part(tokens, max_gap))
            max_gap = 0
    return parts


def _strip_marks(tokens: Sequence[str]) -> tuple[str, ...]:
    indices = [number for number, token in enumerate(tokens) if token[0].isalnum()]
    return tuple(tokens[indices[0] : indices[-1] + 1]) if indices else ()


def _find_part(part: _Part, source: _Source, position: int = 0) -> int:
    """The number of the token where a part first stands in a source, from a token on; -1 if it does not."""
    if position >= len(source.starts):
        return -1
    start = source.line.find(part.line, source.starts[position])
    return -1 if start < 0 else source.index(start)


def _find_chain(parts: Sequence[_Part], source: _Source) -> tuple[Citation, ...]:
    """The parts as they stand in order in one source; empty if they do not."""
    first = -1
    for _ in range(_MAX_STARTS):
        first = _find_part(parts[0], source, first + 1)
        if first < 0:
            break
        if spans := _follow(parts, source, first):
            return tuple(source.citation(*span) for span in spans)
    return ()


def _follow(parts: Sequence[_Part], source: _Source, first: int) -> list[tuple[int, int]]:
    """The tokens of each part, where the first begins at a token; empty if the others do not follow."""
    spans = [(first, first + len(parts[0].tokens))]
    for part in parts[1:]:
        last = spans[-1][1]
        first = _find_part(part, source, last)
        if first < 0 or (part.max_gap is not None and source.count_words(last, first) > part.max_gap):
            return []
        spans.append((first, first + len(part.tokens)))
    return spans


# --- checks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sources:
    """The passages of an answer with a text, those that a quotation's sentences cite first."""

    cited: tuple[_Source, ...]
    others: tuple[_Source, ...]
    is_complete: bool

    @property
    def all(self) -> tuple[_Source, ...]:
        return self.cited + self.others


def _find(quotation: Quotation, quote: str, sources: _Sources) -> tuple[QuoteStatus, tuple[Citation, ...]] | None:
    """The status of a quotation and the spans of its sources; None if it is not to be checked."""
    readings = [_split_parts(quote, has_editor=False), _split_parts(quote, has_editor=True)]
    readings = [parts for number, parts in enumerate(readings) if parts and parts not in readings[:number]]
    for status, group in ((QuoteStatus.VERBATIM, sources.cited), (QuoteStatus.MISATTRIBUTED, sources.others)):
        for parts, source in product(readings, group):
            if spans := _find_chain(parts, source):
                return None if quotation.names and status is QuoteStatus.MISATTRIBUTED else (status, spans)
    if not sources.is_complete:
        return None
    for parts in readings:
        if spans := _find_apart(parts, sources.all):
            return QuoteStatus.STITCHED, spans
    nearest = _find_nearest(_trim(quote), sources, _MIN_NAME_SIMILARITY if quotation.names else MIN_SIMILARITY)
    is_quotation = quotation.has_speaker and not quotation.names
    return (QuoteStatus.MISQUOTED, nearest) if nearest or is_quotation else None


def _find_apart(parts: Sequence[_Part], sources: Sequence[_Source]) -> tuple[Citation, ...]:
    """The spans of parts that stand somewhere each, but not in order in one source; empty if they do not.

    Without an ellipsis, the parts are the longest runs of tokens that stand somewhere.
    """
    if len(parts) == 1:
        parts = _cut_runs(parts[0].tokens, sources)
        close_parts = [replace(part, max_gap=_MAX_OMISSION) for part in parts]
        if len(parts) < 2 or any(_find_chain(close_parts, source) for source in sources):
            return ()
    elif any(part.words < _MIN_PART for part in parts):
        return ()
    spans = [next((span for source in sources for span in _find_chain([part], source)), None) for part in parts]
    return tuple(span for span in spans if span is not None) if None not in spans else ()


def _cut_runs(tokens: Sequence[str], sources: Sequence[_Source]) -> list[_Part]:
    """The tokens cut into the longest runs that stand in a source, from left to right; empty if a run is too short."""
    if len(tokens) > _MAX_CUT:
        return []
    text = "\0".join(source.line for source in sources)
    parts: list[_Part] = []
    while tokens and len(parts) < _MAX_PARTS:
        length, position = 0, 0
        while length < len(tokens):
            start = text.find(_Part(tuple(tokens[: length + 1])).line, position)
            if start < 0:
                break
            length, position = length + 1, start  # a longer run does not start before a shorter one
        run = _strip_marks(tokens[:length])
        if _count_words(run) < MIN_WORDS:
            return []
        parts.append(_Part(run))
        tokens = tokens[length:]
    return [] if tokens else parts


def _find_nearest(quote: str, sources: _Sources, min_similarity: float) -> tuple[Citation, ...]:
    """The text that is most like a quotation, in the cited passages if one of them has it; empty below a similarity."""
    for group in (sources.cited, sources.others):
        pairs = [(source, find_nearest(quote, source.sentences)) for source in group]
        nearest = [(match.similarity, source, match) for source, match in pairs if match is not None]
        similarity, source, match = max(nearest, key=lambda item: item[0], default=(0.0, None, None))
        if source is not None and match is not None and similarity >= min_similarity:
            return (Citation(source.passage, match.start, match.end, source.text[match.start : match.end]),)
    return ()
