"""From a system's answer to one of a collection: the format check, HAGRID's grouping, and what makes a duplicate."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from autoais.base.answers import CitedAnswer
from autoais.base.markers.grammar import ParsedSentence, group, parse
from autoais.base.markers.sentences import parse_sentence as parse_sentence
from autoais.base.text.words import words
from autoais.base.types import CitedSentence
from autoais.formats.base import Notes
from autoais.formats.marked import restore_sentence
from rag.answer.llms import printable_reply, without_thoughts
from rag.base.types import Answer, Passage

Trailing = Literal["own", "attach"]

REASONS = {
    "failed": "the model failed",
    "abstained": "the system does not answer",
    "unfinished": "the answer was cut at the token limit",
    "reference-list": 'the answer has a list of references, or "Reference:"',
    "number-out-of-range": "a number in brackets is not that of a quote",
    "malformed-citation": "a marker cannot be read",
    "other-citation-form": 'a citation that is not in brackets, such as "(1)", "Context 1" or a link',
    "no-citation": "nothing is cited",
    "marker-in-text": "quoted text looks like a citation",
    "duplicate": "another answer to the question has the same words and citations",
    "no-positive": "question without a relevant passage",
    "no-quote-text": "question whose relevant passages have no text",
    "not-searchable": "question that cannot be searched",
    "no-hit": "question without a hit",
}
"""Why an answer or a question is not in a collection, by the name in filtered.jsonl."""

_NOT_A_NUMBER = ("malformed", "reversed-range", "empty", "unknown-id", "no-statement", "code-like")
_REFERENCES = re.compile(
    r"(?P<before>\A\W*+|(?<=\w)\W++)"
    r"(?P<title>(?:references?|sources?|citations?|bibliography|works cited)(?: used)?)(?=\W{0,3}(?::|\n|$))",
    re.IGNORECASE,
)
_ENDS = re.compile(r"\n|[.!?\]]\s")
_OTHER = re.compile(
    r"\((?P<round>\d{1,3})(?:\s*[,;]\s*\d{1,3})*\)"
    r"|\b(?:contexts?|quotes?|passages?|sources?|documents?|references?) (?:no\. ?|number |#)?(?P<named>\d{1,3})\b"
    r"|\bet al\.,? \(?\d{4}|https?://\S",
    re.IGNORECASE,
)
_ITEM = re.compile(r"[-*+•]|\d{1,3}[.)]")


def to_collected(answer: Answer, quotes: Sequence[Passage], *, repaired: bool = False) -> CitedAnswer:
    """Return the answer with the quotes as its passages, in their order; `output` is what a language model wrote.

    `repaired` answers have no output: their citations are no longer those that the model wrote.
    """
    raw = answer.trace.get("raw")
    output = None if raw is None or repaired else printable_reply(without_thoughts(raw)).strip()
    told = {key: answer.trace[key] for key in ("tokens", "stopped", "cut", "shown") if key in answer.trace}
    if "shown" in told:
        told["shown"] = len(told["shown"])  # the first ones: others did not fit the model's context
    return CitedAnswer(
        id=answer.question.id,
        question=answer.question.text,
        sentences=answer.sentences,
        passages={quote.id: quote for quote in quotes},
        ranking=tuple(quote.id for quote in quotes),
        short_answer=answer.short_answer,
        abstained=answer.abstained,
        unresolved_markers=answer.unresolved,
        answers=answer.question.answers,
        gold=answer.question.gold,
        nuggets=answer.question.nuggets,
        text=answer.text,
        output=output,
        extra={"failed": answer.failed, "reason": answer.reason} | told,
    )


def fault_of(answer: CitedAnswer) -> tuple[str, str] | None:
    """Return why an answer breaks the format, as (a name of `REASONS`, details); None if it does not.

    HAGRID's expressions were not published (Kamalloo et al. 2023, Section 3.3). Ours: at least one citation, every
    bracketed number is that of a quote, no other form of citation, no list of references.
    """
    if answer.extra.get("failed"):
        return "failed", str(answer.extra.get("reason") or "")
    if answer.abstained or not answer.sentences:
        return "abstained", str(answer.extra.get("reason") or "")
    if answer.extra.get("stopped"):
        return "unfinished", answer.plain[-60:]
    if answer.output is not None:
        fault = _written_fault(answer, answer.output)
        if fault is not None:
            return fault
    if not any(sentence.citations for sentence in answer.sentences):
        return "no-citation", answer.plain[:60]
    return None


def _written_fault(answer: CitedAnswer, output: str) -> tuple[str, str] | None:
    shown = int(answer.extra.get("shown", len(answer.passages)))
    quotes = list(answer.passages.values())[:shown]
    parsed = parse(output, shown, passages=[quote.text for quote in quotes])
    references = [one.text for one in parsed.removals if one.kind == "reference"]
    if title := (references[0] if references else _reference_list(output)):
        return "reference-list", title[:60]
    for one in parsed.unresolved:
        reason = "malformed-citation" if one.reason in _NOT_A_NUMBER else "number-out-of-range"
        return reason, f"{one.marker[:40]} of {shown} quotes: {one.reason}"
    if links := [one.text for one in parsed.removals if one.kind == "link"]:
        return "other-citation-form", links[0][:60]
    for other in _OTHER.finditer(parsed.text):
        number = other["round"] or other["named"]
        if number is None or 1 <= int(number) <= shown:
            return "other-citation-form", other[0][:60]
    return None


def grouped(answer: CitedAnswer, trailing: Trailing = "own") -> CitedAnswer:
    """Return the answer with each uncited sentence joined to the next cited one (Kamalloo et al. 2023, Section 3.4).

    `trailing` says what becomes of uncited sentences at the end: a group of their `own`, or `attach` them to the last
    one; the paper leaves it open. The groups of a language model's answer keep the markers as written, where the
    boundaries are clear.
    """
    sentences = answer.sentences
    spans = group((ParsedSentence(one.start or 0, one.end or 0, one.cites) for one in sentences), trailing=trailing)
    text = answer.plain
    outputs = _outputs(answer, [span.start for span in spans])
    groups = []
    for span, output in zip(spans, outputs, strict=True):
        inside = [one for one in sentences if span.start <= (one.start or 0) and (one.end or 0) <= span.end]
        citations = tuple(dict.fromkeys(citation for one in inside for citation in one.citations))
        made = CitedSentence(text[span.start : span.end], citations, span.start, span.end, output)
        if output is not None and not _same(made, output, answer):
            made = replace(made, output=None)
        groups.append(made)
    return replace(answer, sentences=tuple(groups))


def _same(sentence: CitedSentence, output: str, answer: CitedAnswer) -> bool:
    """Whether a piece of the output reads as the sentence with its citations."""
    order = list(answer.passages)
    read = parse_sentence(output, len(order))
    # Cutting a marker tidies the white space around it, so that only the words can be compared.
    return words(read.text) == words(sentence.text) and tuple(order[n - 1] for n in read.cites) == sentence.cites


def _outputs(answer: CitedAnswer, starts: Sequence[int]) -> list[str | None]:
    """Cut the output at the places where the groups start in the text, which is the output without markers."""
    output, text = answer.output, answer.plain
    if output is None or not starts:
        return [None] * len(starts)
    places, at = [], 0
    wanted = set(starts)
    for position, character in enumerate(text):
        if character.isspace():
            continue
        at = output.find(character, at)
        if at < 0:
            return [None] * len(starts)
        if position in wanted:
            places.append(at)
        at += 1
    places[:1] = [0]
    pieces = [output[start:end].strip() for start, end in zip(places, [*places[1:], len(output)], strict=True)]
    return [*map(_without_next_mark, pieces)]


def _without_next_mark(piece: str) -> str:
    """A piece of the output without the mark of the next item of a list, which stands on a line of its own."""
    above, _, last = piece.rpartition("\n")
    return above.rstrip() if above and _ITEM.fullmatch(last.strip()) else piece


def _reference_list(output: str) -> str | None:
    """The title of a list of references, at the beginning of the output, of a line or of a sentence."""
    for found in _REFERENCES.finditer(output):
        if not found.start() or _ENDS.search(found["before"]):
            return found["title"]
    return None


def marker_in_text(answer: CitedAnswer) -> str | None:
    """Return a sentence that HAGRID's file could not hold: its own text has what reads as a marker."""
    numbers = {key: number for number, key in enumerate(answer.passages, 1)}
    for one in answer.sentences:
        if not _same(one, restore_sentence(one, numbers, Notes()), answer):
            return one.text
    return None


def identity(answer: CitedAnswer) -> tuple[object, ...]:
    """Return what two answers share if one is a duplicate: the words of each sentence and the quotes it cites."""
    return tuple((tuple(words(one.text)), frozenset(one.cites)) for one in answer.sentences)
