"""What the templates show of an answer: its sentences, their citations and verdicts, and the passages."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.answer.export.sources import merged
from rag.answer.yes_no import asked_there
from rag.base.types import Answer, Citation, Passage
from rag.serve.checking import QUOTED, SentenceCheck, SentenceVerdict
from rag.serve.passages import Shown

_NEAREST = 3  # passages shown if there is no answer

SIGNS = {
    SentenceVerdict.SUPPORTED: ("✓", "supported"),
    SentenceVerdict.NOT_ENOUGH: ("○", "not enough"),
    SentenceVerdict.CONTRADICTED: ("✗", "contradicted"),
    SentenceVerdict.UNDECIDED: ("?", "undecided"),
    SentenceVerdict.NO_CLAIM: ("–", "no claim"),
}
"""The sign and the words of each verdict: nobody has to tell them by colour."""

Look = Callable[[str], Shown | None]
"""Looks up a passage by id, with its neighbours; None if it is not in an index."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text. `marked` has the numbers of the sentences that it supports, as text: "0 2"."""

    text: str
    marked: str = ""


@dataclass(frozen=True, slots=True)
class Cite:
    """A citation as a link: its number, where it leads, the id of the passage's panel, and what it is called."""

    number: int
    href: str
    panel: str
    title: str


@dataclass(frozen=True, slots=True)
class SentenceView:
    """A sentence, what stands between it and the one before, its citations, and its verdict once it is known."""

    number: int
    lead: str
    apart: bool
    pieces: tuple[Piece, ...]
    cites: tuple[Cite, ...]
    verdict: "VerdictView | None" = None


@dataclass(frozen=True, slots=True)
class VerdictView:
    """The verdict of a sentence in words; `nearest` is a passage that it does not cite."""

    name: str
    sign: str
    label: str
    note: str
    nearest: Cite | None = None
    nearest_supports: bool = False


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage with marks, and its neighbours in the document."""

    panel: str
    number: int
    passage: Passage
    pieces: tuple[Piece, ...]
    href: str
    source: str
    url: str
    cited: bool
    title: str
    before: str = ""
    after: str = ""

    @property
    def quote(self) -> str:
        """The first words that are marked."""
        return next((" ".join(piece.text.split())[:160] for piece in self.pieces if piece.marked), "")


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer as the page shows it. `place` begins the ids of its parts, as several may stand on one page.

    `about` is what a quoted "Yes" or "No" at its beginning answers.
    """

    place: str
    sentences: tuple[SentenceView, ...]
    tail: str
    passages: tuple[PassageView, ...]
    abstained: bool
    reason: str
    read: int
    tokens: tuple[int, int] | None
    unresolved: int
    about: str = ""

    @property
    def cited(self) -> list[PassageView]:
        """The passages that are cited."""
        return [one for one in self.passages if one.cited]

    @property
    def others(self) -> list[PassageView]:
        """The passages that were read and are not cited."""
        return [one for one in self.passages if not one.cited]

    @property
    def judged(self) -> bool:
        """Whether the verdicts are known."""
        return all(one.verdict is not None for one in self.sentences)

    @property
    def counts(self) -> list[tuple[str, str, str, int]]:
        """Name, sign, words and number of each verdict that occurs."""
        counted = Counter(one.verdict.name for one in self.sentences if one.verdict is not None)
        return [(kind.value, *SIGNS[kind], counted[kind.value]) for kind in SIGNS if counted[kind.value]]

    @property
    def underlined(self) -> bool:
        """Whether words without support are underlined."""
        return any(piece.marked for one in self.sentences for piece in one.pieces)

    @property
    def footnotes(self) -> str:
        """The answer as plain text with `[n]`, and below it what each number stands for."""
        body = "".join(
            f"{'' if n == 0 else (chr(10) * 2 if one.apart else chr(10) if one.lead else ' ')}{one.lead}"
            f"{''.join(piece.text for piece in one.pieces)}{''.join(f' [{cite.number}]' for cite in one.cites)}"
            for n, one in enumerate(self.sentences)
        )
        notes = []
        for one in self.cited:
            quotes = " … ".join(" ".join(piece.text.split()) for piece in one.pieces if piece.marked)
            where = ", ".join(filter(None, (one.passage.headings or one.passage.id, one.url or one.source)))
            page = "" if one.passage.page is None else f", page {one.passage.page}"
            notes.append(f"[{one.number}] {where}{page}: “{quotes}”")
        return "\n\n".join(filter(None, (body, "\n".join(notes))))


def view_answer(
    answer: Answer,
    *,
    place: str,
    urls: Mapping[str, str],
    look: Look,
    checks: Sequence[SentenceCheck] | None = None,
    numbers: Mapping[str, int] | None = None,
    untitled: str = "",
) -> AnswerView:
    """Return what the page shows of an answer.

    `urls` has the link of each passage, `look` finds its neighbours. `numbers` are those of the passages, by default
    in the order of first citation. A passage without headings is called by its id, after `untitled`.
    """
    listed = [(n, hit.passage) for n, _, hit in answer.numbered()]
    if numbers is not None:
        listed = sorted(((numbers[passage.id], passage) for _, passage in listed), key=lambda one: one[0])
    number = {passage.id: n for n, passage in listed}
    spans = _spans(answer, checks or ())
    cited = {citation.passage for sentence in answer.sentences for citation in sentence.citations}
    passages = []
    for n, passage in listed:
        found = look(passage.id) if passage.id in spans or (answer.abstained and n <= _NEAREST) else None
        passages.append(
            PassageView(
                panel=f"{place}-p{n}",
                number=n,
                passage=passage,
                pieces=marked(passage.text, spans.get(passage.id, ())),
                href=urls[passage.id],
                source="" if found is None else found.source,
                url="" if found is None else found.url,
                cited=passage.id in cited,
                title=passage.title or passage.section or f"{untitled}{passage.id}",
                before="" if found is None or found.before is None else found.before.text,
                after="" if found is None or found.after is None else found.after.text,
            )
        )
    panels = {one.passage.id: one for one in passages}

    def cite(citation: Citation) -> Cite:
        one = panels[citation.passage]
        return Cite(number[citation.passage], one.href, one.panel, one.title)

    end = next((sentence.end for sentence in reversed(answer.sentences) if sentence.end), 0)
    tokens = answer.trace.get("tokens")
    return AnswerView(
        place=place,
        sentences=tuple(_sentences(answer, checks, cite)),
        tail=answer.text[end:].strip(),
        passages=tuple(passages),
        abstained=answer.abstained or not answer.sentences,
        reason=answer.reason or "",
        read=len(answer.hits),
        tokens=(tokens["read"], tokens["written"]) if tokens else None,
        unresolved=sum(one.is_citation for one in answer.unresolved),
        about=asked_there(answer),
    )


def _spans(answer: Answer, checks: Sequence[SentenceCheck]) -> dict[str, list[tuple[int, int, int]]]:
    """What each passage has for which sentence: the cited spans, and those that a check found nearest."""
    spans: dict[str, list[tuple[int, int, int]]] = {}
    for n, sentence in enumerate(answer.sentences):
        for citation in sentence.citations:
            spans.setdefault(citation.passage, []).append((*citation.span, n))
    for n, one in enumerate(checks):
        if one.nearest is not None:
            spans.setdefault(one.nearest.passage, []).append((*one.nearest.span, n))
    return spans


def _sentences(
    answer: Answer, checks: Sequence[SentenceCheck] | None, cite: Callable[[Citation], Cite]
) -> Iterator[SentenceView]:
    end = 0
    for n, sentence in enumerate(answer.sentences):
        check = checks[n] if checks is not None else None
        unsupported = () if check is None else tuple((start, stop, n) for start, stop in check.unsupported)
        gap = answer.text[end : sentence.start]
        end = sentence.end or end
        yield SentenceView(
            number=n,
            lead=gap.strip() + " " if gap.strip() else "",
            apart=n > 0 and gap.count("\n") > 1,
            pieces=marked(sentence.text, unsupported),
            cites=tuple({one.passage: cite(one) for one in sentence.citations}.values()),
            verdict=None if check is None else _verdict(check, cite, bool(sentence.citations)),
        )


def _verdict(check: SentenceCheck, cite: Callable[[Citation], Cite], cites: bool) -> VerdictView:
    sign, label = SIGNS[check.verdict]
    note = {
        SentenceVerdict.SUPPORTED: (
            "Quoted word for word" if check.reason == QUOTED else "The judge finds it in what is cited"
        ),
        SentenceVerdict.NOT_ENOUGH: "What is cited does not say all of it" if cites else "Nothing is cited",
        SentenceVerdict.CONTRADICTED: "What is cited says something else",
        SentenceVerdict.UNDECIDED: f"The judge cannot tell: {check.reason or 'no reason given'}",
        SentenceVerdict.NO_CLAIM: "A question or an instruction, which needs no source",
    }[check.verdict]
    if check.probability is not None and check.verdict is not SentenceVerdict.UNDECIDED:
        note += f" (probability of support {check.probability:.2f})"
    nearest = None if check.nearest is None else cite(check.nearest)
    return VerdictView(check.verdict.value, sign, label, note, nearest, check.nearest_supports)


def marked(text: str, spans: Iterable[tuple[int, int, int]]) -> tuple[Piece, ...]:
    """Split a text where spans `(start, end, sentence)` begin and end; spans beyond the text are cut."""
    inside = [(max(0, start), min(end, len(text)), n) for start, end, n in spans]
    inside = [one for one in inside if one[0] < one[1]]
    cuts = sorted({0, len(text), *(at for start, end, _ in inside for at in (start, end))})
    pieces = []
    for start, end in pairwise(cuts):
        numbers = sorted({n for first, last, n in inside if first <= start and end <= last})
        pieces.append(Piece(text[start:end], " ".join(map(str, numbers))))
    return tuple(pieces)


def marks_of(text: str, spans: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """Split a text at the spans of a link; there is no sentence to name."""
    return marked(text, [(start, end, 0) for start, end in merged(spans)])
