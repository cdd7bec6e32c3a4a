"""From a system's answer to one of a collection: the format check, HAGRID's grouping, and what makes a duplicate."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from autoais.base.answers import CitedAnswer
from autoais.base.markers.grammar import ParsedSentence, group, parse
from autoais.base.markers.sentences import parse_sentence as parse_sentence
from autoais.base.models.thoughts import without_thoughts
from autoais.base.text.words import words
from autoais.base.types import CitedSentence
from autoais.formats.base import Notes
from autoais.formats.markers import restore_sentence
from rag.answer.llms import printable_reply
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


def with_quotes(answer: Answer, quotes: Sequence[Passage], *, is_repaired: bool = False) -> CitedAnswer:
    """Return the answer with the quotes as its passages, in their order; `output` is what a language model wrote.

    `is_repaired` answers have no output: their citations are no longer those that the model wrote.
    """
    raw = answer.trace.get("raw")
    output = None if raw is None or is_repaired else printable_reply(without_thoughts(raw)).strip()
    trace = {key: answer.trace[key] for key in ("tokens", "stopped", "cut", "shown") if key in answer.trace}
    if "shown" in trace:
        trace["shown"] = len(trace["shown"])  # the first ones: others did not fit the model's context
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
        extra={"failed": answer.failed, "reason": answer.reason} | trace,
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
        fault = _find_fault(answer, answer.output)
        if fault is not None:
            return fault
    if not any(sentence.citations for sentence in answer.sentences):
        return "no-citation", answer.plain[:60]
    return None


def _find_fault(answer: CitedAnswer, output: str) -> tuple[str, str] | None:
    shown_count = int(answer.extra.get("shown", len(answer.passages)))
    quotes = list(answer.passages.values())[:shown_count]
    parsed = parse(output, shown_count, passages=[quote.text for quote in quotes])
    references = [removal.text for removal in parsed.removals if removal.kind == "reference"]
    if title := (references[0] if references else _reference_list(output)):
        return "reference-list", title[:60]
    for marker in parsed.unresolved:
        reason = "malformed-citation" if marker.reason in _NOT_A_NUMBER else "number-out-of-range"
        return reason, f"{marker.marker[:40]} of {shown_count} quotes: {marker.reason}"
    if links := [removal.text for removal in parsed.removals if removal.kind == "link"]:
        return "other-citation-form", links[0][:60]
    for other in _OTHER.finditer(parsed.text):
        number = other["round"] or other["named"]
        if number is None or 1 <= int(number) <= shown_count:
            return "other-citation-form", other[0][:60]
    return None


def group_sentences(answer: CitedAnswer, trailing: Trailing = "own") -> CitedAnswer:
    """Return the answer with each uncited sentence joined to the next cited one (Kamalloo et al. 2023, Section 3.4).

    `trailing` says what becomes of uncited sentences at the end: a group of their `own`, or `attach` them to the last
    one; the paper leaves it open. The groups of a language model's answer keep the markers as written, where the
    boundaries are clear.
    """
    sentences = answer.sentences
    spans = group(
        (ParsedSentence(sentence.start or 0, sentence.end or 0, sentence.cites) for sentence in sentences),
        trailing=trailing,
    )
    text = answer.plain
    outputs = _outputs(answer, [span.start for span in spans])
    groups = []
    for span, output in zip(spans, outputs, strict=True):
        members = [
            sentence
            for sentence in sentences
            if span.start <= (sentence.start or 0) and (sentence.end or 0) <= span.end
        ]
        citations = tuple(dict.fromkeys(citation for sentence in members for citation in sentence.citations))
        merged_sentence = CitedSentence(text[span.start : span.end], citations, span.start, span.end, output)
        if output is not None and not _same(merged_sentence, output, answer):
            merged_sentence = replace(merged_sentence, output=None)
        groups.append(merged_sentence)
    return replace(answer, sentences=tuple(groups))


def _same(sentence: CitedSentence, output: str, answer: CitedAnswer) -> bool:
    """Whether a piece of the output reads as the sentence with its citations."""
    order = list(answer.passages)
    parsed = parse_sentence(output, len(order))
    # Cutting a marker tidies the white space around it, so that only the words can be compared.
    return words(parsed.text) == words(sentence.text) and tuple(order[n - 1] for n in parsed.cites) == sentence.cites


def _outputs(answer: CitedAnswer, starts: Sequence[int]) -> list[str | None]:
    """Cut the output at the places where the groups start in the text, which is the output without markers."""
    output, text = answer.output, answer.plain
    if output is None or not starts:
        return [None] * len(starts)
    cuts, output_position = [], 0
    start_set = set(starts)
    for position, character in enumerate(text):
        if character.isspace():
            continue
        output_position = output.find(character, output_position)
        if output_position < 0:
            return [None] * len(starts)
        if position in start_set:
            cuts.append(output_position)
        output_position += 1
    cuts[:1] = [0]
    pieces = [output[start:end].strip() for start, end in zip(cuts, [*cuts[1:], len(output)], strict=True)]
    return [*map(_without_next_mark, pieces)]


def _without_next_mark(piece: str) -> str:
    """A piece of the output without the mark of the next item of a list, which stands on a line of its own."""
    head, _, last = piece.rpartition("\n")
    return head.rstrip() if head and _ITEM.fullmatch(last.strip()) else piece


def _reference_list(output: str) -> str | None:
    """The title of a list of references, at the beginning of the output, of a line or of a sentence."""
    for match in _REFERENCES.finditer(output):
        if not match.start() or _ENDS.search(match["before"]):
            return match["title"]
    return None


def marker_in_text(answer: CitedAnswer) -> str | None:
    """Return a sentence that HAGRID's file could not hold: its own text has what reads as a marker."""
    numbers = {key: number for number, key in enumerate(answer.passages, 1)}
    for sentence in answer.sentences:
        if not _same(sentence, restore_sentence(sentence, numbers, Notes()), answer):
            return sentence.text
    return None


def identity(answer: CitedAnswer) -> tuple[object, ...]:
    """Return what two answers share if one is a duplicate: the words of each sentence and the quotes it cites."""
    return tuple((tuple(words(sentence.text)), frozenset(sentence.cites)) for sentence in answer.sentences)
