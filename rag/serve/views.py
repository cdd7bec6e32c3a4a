"""What the templates show of an answer: its sentences, their citations and verdicts, and the passages."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from autoais.metrics.quotes import QuoteCheck, QuoteStatus
from rag.answer.attribution.check import LABELS, QUOTED_REASON, SentenceCheck, SentenceVerdict, describe_rejection
from rag.answer.export.rendering import short_answer_line
from rag.answer.export.sources import Link, merge_spans, plain_reason, spans_of
from rag.answer.instructions import find_instructions
from rag.answer.yes_no import find_quoted_question
from rag.base.types import Answer, CitedSentence, Passage
from rag.serve.links import view_url
from rag.serve.passages import PassageContext

_MAX_EXCERPT_LENGTH = 160  # characters of a passage that are quoted in a line
_MAX_SENTENCE_LENGTH = 400  # characters of a sentence that contradicts
_NEAREST = 3  # passages shown if there is no answer
_ITEM = re.compile(r"[-*] +")  # the mark of an item of a list, which is shown as a bullet

SIGNS = {
    SentenceVerdict.SUPPORTED: "✓",
    SentenceVerdict.NOT_ENOUGH: "○",
    SentenceVerdict.CONTRADICTED: "✗",
    SentenceVerdict.UNDECIDED: "?",
    SentenceVerdict.NO_CLAIM: "–",
}
"""The sign of each verdict, which stands before its words (`LABELS`), so that nobody needs to see colours."""

Look = Callable[[str], PassageContext | None]
"""Looks up a passage by id, with its neighbours; None if it is not in an index."""

_MakeCite = Callable[[str, Sequence[tuple[int, int]]], "Cite"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text. `marks` has the numbers of the sentences that it supports, as text: "0 2".

    `differences` are words that clash with one of them, as characters of the part.
    """

    text: str
    marks: str = ""
    differences: tuple[tuple[int, int], ...] = ()

    @property
    def parts(self) -> list[tuple[str, bool]]:
        """The text in parts, each with whether it clashes."""
        pieces = split_at_spans(self.text, [(start, end, 0) for start, end in self.differences])
        return [(piece.text, bool(piece.marks)) for piece in pieces]


@dataclass(frozen=True, slots=True)
class Cite:
    """A citation as a link: its number, its address, the id of the passage's panel, and the title of the passage."""

    number: int
    href: str
    panel: str
    title: str


@dataclass(frozen=True, slots=True)
class SentenceView:
    """A sentence with its citations, the text before it (`lead`), and its verdict once it is known.

    `is_copy` is whether a system quoted it, `is_aside` whether it is a quotation beside the one that has the short
    answer.
    """

    number: int
    lead: str
    starts_paragraph: bool
    is_copy: bool
    is_aside: bool
    pieces: tuple[Piece, ...]
    cites: tuple[Cite, ...]
    verdict: "VerdictView | None" = None


@dataclass(frozen=True, slots=True)
class QuoteView:
    """A quotation that is not verbatim: its status, the passages that have it or come near, and its corrections.

    A correction is (`same`, `removed` or `added`, words): from what the sentence quotes to what the source says.
    """

    status: str
    text: str
    sources: tuple[Cite, ...]
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class VerdictView:
    """The verdict of a sentence in words.

    `is_quoted` is whether a system that quotes took it from what it cites, word for word. `nearest` is a passage that
    it does not cite, with what that says of it. `contradiction` is what `source` says instead; marked are the words
    that differ.
    """

    name: str
    sign: str
    label: str
    note: str
    is_quoted: bool = False
    nearest: Cite | None = None
    nearest_quote: str = ""
    nearest_supports: bool = False
    contradiction: Piece | None = None
    source: Cite | None = None
    quotes: tuple[QuoteView, ...] = ()


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage with marks, and its neighbours in the document.

    `original` is the address on the web, or of the file on this server, at the first words that are cited; empty
    without one. `instruction` is the first place of a cited passage that reads like an instruction to a machine.
    """

    panel: str
    number: int
    passage: Passage
    pieces: tuple[Piece, ...]
    href: str
    source: str
    url: str
    original: str
    is_cited: bool
    title: str
    before: str = ""
    after: str = ""
    instruction: str = ""

    @property
    def is_marked(self) -> bool:
        """Whether any of its text is marked."""
        return any(piece.marks for piece in self.pieces)

    @property
    def has_pages(self) -> bool:
        """Whether the passage is of a PDF, whose pages can be shown."""
        name = self.passage.id.rpartition("#")[0].lower().removesuffix(".gz")
        return name.endswith(".pdf") and self.passage.page is not None and self.href.startswith("/p/")

    @property
    def quote(self) -> str:
        """The first words that are marked."""
        return next((" ".join(piece.text.split())[:_MAX_EXCERPT_LENGTH] for piece in self.pieces if piece.marks), "")


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer as the page shows it. `id_prefix` begins the HTML ids of its parts: a page may have several answers.

    `short_answer` stands before the sentences; empty without one. `passage_count` counts the passages that were read.
    `yes_no_question` is what a quoted "Yes" or "No" answers.
    """

    id_prefix: str
    sentences: tuple[SentenceView, ...]
    tail: str
    passages: tuple[PassageView, ...]
    abstained: bool
    reason: str
    passage_count: int
    tokens: tuple[int, int] | None
    unresolved: int
    yes_no_question: str = ""
    short_answer: str = ""

    @property
    def sources(self) -> list[PassageView]:
        """The passages that are cited."""
        return [passage for passage in self.passages if passage.is_cited]

    @property
    def other_passages(self) -> list[PassageView]:
        """The passages that were read and are not cited."""
        return [passage for passage in self.passages if not passage.is_cited]

    @property
    def warned_sources(self) -> list[PassageView]:
        """The cited passages that read like an instruction to a machine."""
        return [passage for passage in self.passages if passage.instruction]

    @property
    def is_judged(self) -> bool:
        """Whether the verdicts are known."""
        return all(sentence.verdict is not None for sentence in self.sentences)

    @property
    def counts(self) -> list[tuple[str, str, str, int]]:
        """Name, sign, words and number of each verdict that occurs, without those of quoted sentences."""
        verdicts = [sentence.verdict for sentence in self.sentences if sentence.verdict is not None]
        number_by_name = Counter(verdict.name for verdict in verdicts if not verdict.is_quoted)
        return [
            (kind.value, sign, LABELS[kind], number_by_name[kind.value])
            for kind, sign in SIGNS.items()
            if number_by_name[kind.value]
        ]

    @property
    def quoted_count(self) -> int:
        """The number of sentences that were taken from what they cite, word for word."""
        return sum(sentence.verdict is not None and sentence.verdict.is_quoted for sentence in self.sentences)

    @property
    def has_underlines(self) -> bool:
        """Whether words without support are underlined."""
        return any(piece.marks for sentence in self.sentences for piece in sentence.pieces)

    @property
    def footnotes(self) -> str:
        """The short answer, the answer as plain text with `[n]`, and below it the passage of each number."""
        body = "".join(
            f"{_gap(sentence) if sentence.number else ''}{sentence.lead}"
            f"{''.join(piece.text for piece in sentence.pieces)}"
            f"{''.join(f' [{cite.number}]' for cite in sentence.cites)}"
            for sentence in self.sentences
        )
        notes = []
        for view in self.sources:
            quotes = " … ".join(" ".join(piece.text.split()) for piece in view.pieces if piece.marks)
            source = ", ".join(filter(None, (view.passage.headings or view.passage.id, view.url or view.source)))
            page = "" if view.passage.page is None else f", page {view.passage.page}"
            notes.append(f"[{view.number}] {source}{page}: “{quotes}”")
        return "\n\n".join(filter(None, (self.short_answer, body, "\n".join(notes))))


def _gap(sentence: SentenceView) -> str:
    """The blanks before a sentence in plain text."""
    if sentence.starts_paragraph:
        return "\n\n"
    return "\n" if sentence.lead else " "


def view_answer(
    answer: Answer,
    *,
    id_prefix: str,
    link: Link,
    look: Look,
    checks: Sequence[SentenceCheck] | None = None,
    numbers: Mapping[str, int] | None = None,
    untitled_prefix: str = "",
    uncited_note: str = "",
) -> AnswerView:
    """Return what the page shows of an answer.

    `link` returns the address of a passage; that of a citation marks what its sentence cites, that of a passage all
    that the answer cites. `look` finds the neighbours of a passage. `numbers` are those of the passages, by default
    in the order of first citation. A passage without headings is called by its id, after `untitled_prefix`.
    `uncited_note` says why a sentence cites nothing, if it could not be its writer's choice.
    """
    passages_by_number = [(n, hit.passage) for n, _, hit in answer.number_hits()]
    if numbers is not None:
        passages_by_number = sorted(
            ((numbers[passage.id], passage) for _, passage in passages_by_number), key=lambda pair: pair[0]
        )
    spans, differences = _spans(answer, checks or ()), _differences(checks or ())
    cited_spans: dict[str, list[tuple[int, int]]] = {}
    for citation in answer.citations:
        cited_spans.setdefault(citation.passage, []).append(citation.span)
    instructions: dict[str, str] = {}
    for place in find_instructions(answer):
        instructions.setdefault(place.passage, _shorten(place.quote or ""))
    passages = []
    for n, passage in passages_by_number:
        context = look(passage.id) if passage.id in spans or (answer.abstained and n <= _NEAREST) else None
        passages.append(
            PassageView(
                panel=f"{id_prefix}-p{n}",
                number=n,
                passage=passage,
                pieces=split_at_spans(passage.text, spans.get(passage.id, ()), differences.get(passage.id, ())),
                href=link(passage, cited_spans.get(passage.id, ())) or "",
                source="" if context is None else context.source,
                url="" if context is None else context.url,
                original="" if context is None else _original(context, cited_spans.get(passage.id, ()), link),
                is_cited=passage.id in cited_spans,
                title=passage.title or passage.section or f"{untitled_prefix}{passage.id}",
                before="" if context is None or context.before is None else context.before.text,
                after="" if context is None or context.after is None else context.after.text,
                instruction=instructions.get(passage.id, ""),
            )
        )
    panels = {view.passage.id: view for view in passages}

    def cite(identifier: str, marks: Sequence[tuple[int, int]]) -> Cite:
        view = panels[identifier]
        return Cite(view.number, link(view.passage, marks) or "", view.panel, view.title)

    end = next((sentence.end for sentence in reversed(answer.sentences) if sentence.end), 0)
    tokens = answer.trace.get("tokens")
    return AnswerView(
        id_prefix=id_prefix,
        sentences=tuple(_sentences(answer, checks, cite, uncited_note)),
        tail=answer.text[end:].strip(),
        passages=tuple(passages),
        abstained=answer.abstained or not answer.sentences,
        reason=plain_reason(answer),
        passage_count=len(answer.hits),
        tokens=(tokens["read"], tokens["written"]) if tokens else None,
        unresolved=sum(marker.is_citation for marker in answer.unresolved),
        yes_no_question=find_quoted_question(answer),
        short_answer=short_answer_line(answer) or "",
    )


def _original(context: PassageContext, spans: Sequence[tuple[int, int]], link: Link) -> str:
    passage = context.passage
    spans = spans or [(0, len(passage.text))]
    address = link(passage, ()) or ""
    return context.url_at(spans) or (
        view_url(address, context.source, passage.text, spans) if context.has_files else ""
    )


def _spans(answer: Answer, checks: Sequence[SentenceCheck]) -> dict[str, list[tuple[int, int, int]]]:
    """The spans of each passage with the number of their sentence: cited ones, and those that a check found.

    Of quotations only those that are not verbatim: others stand in what is cited.
    """
    spans: dict[str, list[tuple[int, int, int]]] = {}
    for n, sentence in enumerate(answer.sentences):
        for citation in sentence.citations:
            spans.setdefault(citation.passage, []).append((*citation.span, n))
    for n, check in enumerate(checks):
        for citation in filter(None, (check.nearest, check.contradiction)):
            spans.setdefault(citation.passage, []).append((*citation.span, n))
        for source in (source for quote in _faulty_quotes(check) for source in quote.sources):
            spans.setdefault(source.passage, []).append((*source.span, n))
    return spans


def _differences(checks: Sequence[SentenceCheck]) -> dict[str, list[tuple[int, int]]]:
    """The words of each passage that clash with a sentence."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for check in checks:
        if check.contradiction is not None:
            offset, _ = check.contradiction.span
            moved = [(offset + start, offset + end) for start, end in check.differences]
            spans.setdefault(check.contradiction.passage, []).extend(moved)
    return spans


def _faulty_quotes(check: SentenceCheck) -> list[QuoteCheck]:
    return [quote for quote in check.quotes if quote.status is not QuoteStatus.VERBATIM]


def _sentences(
    answer: Answer, checks: Sequence[SentenceCheck] | None, cite: _MakeCite, uncited_note: str
) -> Iterator[SentenceView]:
    misquotes = [
        span
        for check in checks or ()
        for quote in check.quotes
        if quote.status is QuoteStatus.MISQUOTED
        for span in quote.spans
    ]
    end, main = 0, _find_main(answer)
    for n, sentence in enumerate(answer.sentences):
        check = checks[n] if checks is not None else None
        unsupported = [] if check is None else [(start, stop, n) for start, stop in check.unsupported]
        unsupported += [(start, stop, n) for number, start, stop in misquotes if number == n]
        gap = answer.text[end : sentence.start]
        lead = gap.strip()
        end = sentence.end or end
        pieces = split_at_spans(sentence.text, unsupported)
        if lead in ("-", "*"):
            lead = "•"
        elif mark := _ITEM.match(sentence.text):
            lead = f"{lead} •".strip()
            pieces = (replace(pieces[0], text=pieces[0].text[mark.end() :]), *pieces[1:])
        yield SentenceView(
            number=n,
            lead=f"{lead} " if lead else "",
            starts_paragraph=n > 0 and gap.count("\n") > 1,
            is_copy=_is_copy(sentence),
            is_aside=main not in (None, n) and _is_copy(sentence),
            pieces=pieces,
            cites=tuple(cite(passage, spans_of(sentence, passage)) for passage in sentence.cites),
            verdict=None if check is None else _verdict(check, cite, sentence, uncited_note),
        )


def _find_main(answer: Answer) -> int | None:
    """The number of the first sentence that has the short answer; None if no short answer is shown, or none has it."""
    line = (short_answer_line(answer) or "").rstrip(" .!?").casefold()
    texts = (" ".join(sentence.text.split()).casefold() for sentence in answer.sentences)
    return next((n for n, text in enumerate(texts) if line and line in text), None)


def _is_copy(sentence: CitedSentence) -> bool:
    return bool(sentence.citations) and all(citation.origin == "copied" for citation in sentence.citations)


def _verdict(check: SentenceCheck, cite: _MakeCite, sentence: CitedSentence, uncited_note: str) -> VerdictView:
    cites = bool(sentence.citations)
    notes = {
        SentenceVerdict.SUPPORTED: (
            "Quoted word for word" if check.reason == QUOTED_REASON else "The judge finds it in what is cited"
        ),
        SentenceVerdict.UNDECIDED: "The judge cannot tell whether what is cited says it",
        SentenceVerdict.NO_CLAIM: "A question or an instruction, which needs no source",
    }
    note = notes.get(check.verdict) or describe_rejection(check.verdict, cites=cites, numbers=check.numbers)
    if uncited_note and not cites and check.verdict is SentenceVerdict.NOT_ENOUGH:
        note = uncited_note
    nearest, contradiction = check.nearest, check.contradiction
    quotes = tuple(
        QuoteView(
            quote.status.value,
            quote.quote,
            tuple({source.passage: cite(source.passage, [source.span]) for source in quote.sources}.values()),
            tuple(quote.changes),
        )
        for quote in _faulty_quotes(check)
    )
    return VerdictView(
        name=check.verdict.value,
        sign=SIGNS[check.verdict],
        label=LABELS[check.verdict],
        note=note[:1].upper() + note[1:],
        is_quoted=check.reason == QUOTED_REASON and _is_copy(sentence),
        nearest=None if nearest is None else cite(nearest.passage, [nearest.span]),
        nearest_quote="" if nearest is None else _shorten(nearest.quote or ""),
        nearest_supports=check.nearest_supports,
        contradiction=None if contradiction is None else _excerpt(contradiction.quote or "", check.differences),
        source=None if contradiction is None else cite(contradiction.passage, [contradiction.span]),
        quotes=quotes,
    )


def _excerpt(text: str, differences: Sequence[tuple[int, int]]) -> Piece:
    """A text of at most 400 characters, around the first of the words that differ."""
    first = max(0, min((start for start, _ in differences), default=0) - _MAX_SENTENCE_LENGTH // 2)
    if len(text) <= _MAX_SENTENCE_LENGTH:
        return Piece(text, "", tuple(differences))
    part = f"{'…' * (first > 0)}{text[first : first + _MAX_SENTENCE_LENGTH]}…"
    shift = first - (first > 0)
    return Piece(part, "", tuple((start - shift, end - shift) for start, end in differences))


def _shorten(text: str) -> str:
    """A text in one line of at most 160 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_EXCERPT_LENGTH else f"{line[: _MAX_EXCERPT_LENGTH - 1]}…"


def split_at_spans(
    text: str, spans: Iterable[tuple[int, int, int]], differences: Sequence[tuple[int, int]] = ()
) -> tuple[Piece, ...]:
    """Split a text where spans `(start, end, sentence)` begin and end; spans beyond the text are cut.

    `differences` are words that clash, which do not split it.
    """
    inner_spans = [(max(0, start), min(end, len(text)), n) for start, end, n in spans]
    inner_spans = [span for span in inner_spans if span[0] < span[1]]
    cuts = sorted({0, len(text), *(position for start, end, _ in inner_spans for position in (start, end))})
    pieces = []
    for start, end in pairwise(cuts):
        numbers = sorted({n for first, last, n in inner_spans if first <= start and end <= last})
        inner_differences = [(max(first, start) - start, min(last, end) - start) for first, last in differences]
        words = tuple(span for span in inner_differences if span[0] < span[1])
        pieces.append(Piece(text[start:end], " ".join(map(str, numbers)), words))
    return tuple(pieces)


def split_at_marks(text: str, spans: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """Split a text at the spans of a link; there is no sentence to name."""
    return split_at_spans(text, [(start, end, 0) for start, end in merge_spans(spans)])
