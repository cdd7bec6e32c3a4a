"""Checks of answers and pasted texts: the verdict of each sentence, and the words that lack support."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from autoais.base.markers.grammar import parse
from autoais.base.text.excerpt import find_words_outside
from autoais.base.text.quotes import is_quoted
from autoais.base.text.words import stem, words
from autoais.base.types import Judge, Judgement, Verdict
from autoais.judges.alignment import align, contradicts
from autoais.metrics.claims import judge_claims
from autoais.metrics.judged import claims_to_judge
from autoais.metrics.quotes import QuoteCheck, check_quotes
from rag.answer.attribution.attributor import Attributor
from rag.base.errors import UsageError
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

_MAX_SOURCES = 100

QUOTED_REASON = "quoted word for word"
"""The reason of a sentence that consists of whole sentences of a passage that it cites."""


class SentenceVerdict(StrEnum):
    """The verdict of a sentence as pages show it: do its citations support it?"""

    SUPPORTED = "supported"
    NOT_ENOUGH = "not_enough"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NO_CLAIM = "no_claim"


@dataclass(frozen=True, slots=True)
class SentenceCheck:
    """The check of one sentence against all that it cites (the rule of AutoAIS, Bohnet et al. 2022).

    `probability` is the judge's that the sentence is supported, or None. `unsupported` are the words, as character
    offsets in the sentence (end exclusive), that occur nowhere in the evidence or clash with it. `nearest` is the span
    that comes closest in the passages that the sentence does not cite, if it was asked for and the sentence is not
    supported; `nearest_supports` says whether the judge accepts it. `quotes` are the quotations that begin in it.
    """

    verdict: SentenceVerdict
    probability: float | None = None
    reason: str | None = None
    unsupported: tuple[tuple[int, int], ...] = ()
    nearest: Citation | None = None
    nearest_supports: bool = False
    quotes: tuple[QuoteCheck, ...] = ()


def check_answer(answer: Answer, judge: Judge, *, nearest: bool = False) -> list[SentenceCheck]:
    """Judge each sentence of an answer against the passages that it cites together; one check a sentence, in order.

    A sentence that cites nothing is not supported, and one that claims nothing (a question, an instruction) is not
    judged. Neither is one that consists of whole sentences or lines of a passage that it cites: it is supported, as
    nearly all such pairs are to people (`eval/results/minilm/rules.json`). `autoais score` asks the judge nevertheless.
    With `nearest`, the other passages of the answer are searched for what a sentence lacks. Quotations are compared
    with the passages whatever the verdict (`autoais.check_quotes`).
    """
    quotes = check_quotes(answer.to_cited())
    return [
        replace(check, quotes=tuple(quote for quote in quotes if quote.sentence == number))
        for number, check in enumerate(_judge_sentences(answer, judge, nearest=nearest))
    ]


def _judge_sentences(answer: Answer, judge: Judge, *, nearest: bool) -> list[SentenceCheck]:
    texts = {hit.passage.id: hit.passage.text for hit in answer.hits}
    copies = [any(is_quoted(sentence.text, texts[key]) for key in sentence.cites) for sentence in answer.sentences]
    claims = claims_to_judge(answer.to_cited())
    open_claims = [claim for claim, is_copy in zip(claims, copies, strict=True) if claim is not None and not is_copy]
    judgements = iter(judge_claims(judge, open_claims, per_citation=False))
    checks = []
    for sentence, claim, is_copy in zip(answer.sentences, claims, copies, strict=True):
        if claim is None:
            checks.append(SentenceCheck(SentenceVerdict.NO_CLAIM, None, "a question or an instruction"))
            continue
        if is_copy:
            checks.append(SentenceCheck(SentenceVerdict.SUPPORTED, None, QUOTED_REASON))
            continue
        check = _check_sentence(sentence.text, claim.evidence, next(judgements).union)
        if nearest and check.verdict is not SentenceVerdict.SUPPORTED:
            check = _with_nearest(check, sentence, answer, Attributor(judge))
        checks.append(check)
    return checks


def _check_sentence(sentence: str, evidence: Sequence[str], judgement: Judgement) -> SentenceCheck:
    alignment = align(sentence, evidence)
    verdict = {
        Verdict.ATTRIBUTABLE: SentenceVerdict.SUPPORTED,
        Verdict.CONTRADICTORY: SentenceVerdict.CONTRADICTED,
        Verdict.UNDECIDED: SentenceVerdict.UNDECIDED,
    }.get(judgement.verdict, SentenceVerdict.NOT_ENOUGH)
    # A judge that only says yes or no does not tell a contradiction from too little evidence.
    if judgement.verdict is Verdict.NOT_ATTRIBUTABLE and contradicts(sentence, alignment):
        verdict = SentenceVerdict.CONTRADICTED
    missing = _missing(sentence, evidence, alignment.clashes if verdict is SentenceVerdict.CONTRADICTED else ())
    if verdict is SentenceVerdict.SUPPORTED:  # words may be paraphrased, numbers may not
        missing = [span for span in missing if sentence[span[0]].isdigit()]
    return SentenceCheck(verdict, judgement.probability, judgement.reason, _join_spans(sentence, missing))


def _missing(sentence: str, evidence: Sequence[str], clashes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The words that occur nowhere in the evidence, and those that clash; none if there is no evidence at all."""
    if not any(text.strip() for text in evidence):
        return []
    stems = _stems(evidence)
    return sorted({*find_words_outside(sentence, stems), *clashes})


def _stems(evidence: Sequence[str]) -> frozenset[str]:
    evidence_words = {word for text in evidence for word in words(text)}
    return frozenset(stem(word) for word in evidence_words) | {
        word.replace(",", "") for word in evidence_words if word[0].isdigit()
    }


def _join_spans(text: str, spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The spans in order; those that overlap, or have only blanks and commas between them, are one."""
    merged_spans: list[tuple[int, int]] = []
    for start, end in spans:
        if merged_spans and not text[merged_spans[-1][1] : start].strip(" ,-–'’\""):
            merged_spans[-1] = (merged_spans[-1][0], max(merged_spans[-1][1], end))
        else:
            merged_spans.append((start, end))
    return tuple(merged_spans)


def _with_nearest(
    check: SentenceCheck, sentence: CitedSentence, answer: Answer, attributor: Attributor
) -> SentenceCheck:
    """The check with the uncited passage that supports the sentence, or else the one that comes closest."""
    other_passages = [
        hit.passage for hit in answer.hits if hit.passage.id not in sentence.cites and hit.passage.text.strip()
    ]
    nearest_passages = attributor.nearest(sentence.text, other_passages)
    if not nearest_passages or check.verdict is SentenceVerdict.NO_CLAIM:
        return check
    judgements = attributor.verdicts(sentence.text, nearest_passages, answer.question.text)
    order = sorted(
        range(len(nearest_passages)),
        key=lambda n: (judgements[n].verdict.ais is not True, -(judgements[n].probability or 0.0)),
    )
    passage, judgement = nearest_passages[order[0]], judgements[order[0]]
    supports = judgement.verdict.ais is True
    if sentence.citations and not supports:  # what it cites is shown already
        return check
    citation = attributor.find_span(sentence.text, passage, judgement, answer.question.text).citation("nearest")
    if sentence.citations:
        return replace(check, nearest=citation, nearest_supports=supports)
    closest = _check_sentence(sentence.text, (passage.evidence,), judgement)
    return replace(check, unsupported=closest.unsupported, nearest=citation, nearest_supports=supports)


# --- pasted texts -------------------------------------------------------------------------------------

_SOURCE_NUMBER = re.compile(r"^[ \t]*(?:\[(\d{1,3})\]|(\d{1,3})[.)])(?:[:.]?[ \t]+|[ \t]*$)", re.MULTILINE)


def read_sources(text: str) -> list[Passage]:
    """Read pasted sources: `[1]`, `1.` or `1)` at the start of a line begins a source; without any, all is source 1.

    The id of each passage is its number. Raises `UsageError` for a number that occurs twice, and for too many sources.
    """
    text = text.replace("\r\n", "\n").strip()
    marks = list(_SOURCE_NUMBER.finditer(text))
    if marks and marks[0][1]:  # `1.` may be a list inside a source
        marks = [mark for mark in marks if mark[1]]
    if not marks or marks[0].start() > 0:  # numbers further down are a list inside the source
        return [Passage("1", "", text)] if text else []
    sources: dict[str, Passage] = {}
    for mark, end in zip(marks, [*(next_mark.start() for next_mark in marks[1:]), len(text)], strict=True):
        number = str(int(mark[1] or mark[2]))
        if number in sources:
            raise UsageError(f"the sources have number {number} twice; give every source a number of its own")
        if body := text[mark.end() : end].strip():
            sources[number] = Passage(number, "", body)
    if len(sources) > _MAX_SOURCES:
        raise UsageError(f"that is {len(sources)} sources; at most {_MAX_SOURCES} can be checked at once")
    return list(sources.values())


def cite_sources(text: str, sources: Sequence[Passage], judge: Judge, question: str = "") -> Answer:
    """Return a pasted text as an answer that cites numbered sources (`read_sources`) where its markers do.

    Each citation has the span of its source that comes closest to the sentence. A text without any marker that
    resolves gets citations from the judge: the source that supports each sentence, or none.
    """
    attributor, sources_by_number = Attributor(judge), {int(source.id): source for source in sources}
    parsed = parse(text, max(sources_by_number, default=0), passages=[source.text for source in sources])
    has_markers = any(number in sources_by_number for sentence in parsed.sentences for number in sentence.cites)

    def cite_support(claim: str) -> list[Citation]:
        support = attributor.support(claim, sources, question)
        return [support.citation("attached")] if support else []

    def cite_numbers(claim: str, numbers: Sequence[int]) -> list[Citation]:
        passages = [sources_by_number[number] for number in numbers if number in sources_by_number]
        verdicts = attributor.verdicts(claim, passages, question)
        spans = [attributor.find_span(claim, *pair, question) for pair in zip(passages, verdicts, strict=True)]
        return [span.citation("cited") for span in spans]

    sentences = []
    for parsed_sentence in parsed.sentences:
        claim = parsed.text[parsed_sentence.start : parsed_sentence.end]
        citations = cite_numbers(claim, parsed_sentence.cites) if has_markers else cite_support(claim)
        sentences.append(CitedSentence(claim, tuple(citations), parsed_sentence.start, parsed_sentence.end))
    return Answer(
        Question("pasted", question),
        parsed.text,
        tuple(sentences),
        tuple(Hit(source, 0.0) for source in sources),
        "pasted",
        unresolved=parsed.unresolved,
        abstained=not sentences,
        reason=None if sentences else "the text says nothing",
    )


Attribute = Callable[[str, str], Answer]
"""Searches an index for sources of the answer to a question: (question, answer) -> an answer with citations."""


def check_text(
    text: str,
    judge: Judge,
    *,
    sources: Sequence[Passage] = (),
    attribute: Attribute | None = None,
    question: str = "",
    max_sentences: int = 100,
) -> tuple[Answer, list[SentenceCheck]]:
    """Check a text sentence by sentence, against pasted sources or with `attribute` against an index.

    Raises `UsageError` if the text or the sources are missing, or if the text has more than `max_sentences` sentences.
    """
    if not text.strip():
        raise UsageError("there is no text to check; paste one")
    number = len(parse(text, 0).sentences)
    if number > max_sentences:
        raise UsageError(f"the text has {number} sentences; at most {max_sentences} can be checked at once")
    if attribute is not None:
        answer = attribute(question, text)
    elif sources:
        answer = cite_sources(text, sources, judge, question)
    else:
        raise UsageError("there are no sources to check the text against; paste them, or choose an index")
    return answer, check_answer(answer, judge, nearest=True)
