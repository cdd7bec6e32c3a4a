"""Checks answers and pasted texts for people: the verdict of each sentence, and the words that lack support."""

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
from rag.answer.attribution.attributor import Attributor
from rag.base.errors import UsageError
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

_MOST_SOURCES = 100

QUOTED = "quoted word for word"
"""The reason of a sentence that consists of whole sentences of a passage that it cites."""


class SentenceVerdict(StrEnum):
    """What a person reads of a sentence: is it supported by what it cites?"""

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
    that comes closest among the passages shown that the sentence does not cite, if it was asked for and the sentence is
    not supported; `nearest_supports` says whether the judge accepts it.
    """

    verdict: SentenceVerdict
    probability: float | None = None
    reason: str | None = None
    unsupported: tuple[tuple[int, int], ...] = ()
    nearest: Citation | None = None
    nearest_supports: bool = False


def check_answer(answer: Answer, judge: Judge, *, nearest: bool = False) -> list[SentenceCheck]:
    """Judge each sentence of an answer against the passages that it cites together; one check a sentence, in order.

    A sentence that cites nothing is not supported, and one that claims nothing (a question, an instruction) is not
    judged. Neither is one that consists of whole sentences or lines of a passage that it cites: it is supported, as
    nearly all such pairs are to people (`eval/results/minilm/rules.json`). `autoais score` asks the judge nevertheless.
    With `nearest`, the other passages of the answer are searched for what a sentence lacks.
    """
    texts = {hit.passage.id: hit.passage.text for hit in answer.hits}
    quoted = [any(is_quoted(one.text, texts[key]) for key in one.cites) for one in answer.sentences]
    claims = claims_to_judge(answer.to_cited())
    asked = [claim for claim, copied in zip(claims, quoted, strict=True) if claim is not None and not copied]
    judged = iter(judge_claims(judge, asked, per_citation=False))
    checks = []
    for sentence, claim, copied in zip(answer.sentences, claims, quoted, strict=True):
        if claim is None:
            checks.append(SentenceCheck(SentenceVerdict.NO_CLAIM, None, "a question or an instruction"))
            continue
        if copied:
            checks.append(SentenceCheck(SentenceVerdict.SUPPORTED, None, QUOTED))
            continue
        check = _checked(sentence.text, claim.evidence, next(judged).union)
        if nearest and check.verdict is not SentenceVerdict.SUPPORTED:
            check = _with_nearest(check, sentence, answer, Attributor(judge))
        checks.append(check)
    return checks


def _checked(sentence: str, evidence: Sequence[str], judgement: Judgement) -> SentenceCheck:
    aligned = align(sentence, evidence)
    verdict = {
        Verdict.ATTRIBUTABLE: SentenceVerdict.SUPPORTED,
        Verdict.CONTRADICTORY: SentenceVerdict.CONTRADICTED,
        Verdict.UNDECIDED: SentenceVerdict.UNDECIDED,
    }.get(judgement.verdict, SentenceVerdict.NOT_ENOUGH)
    # A judge that only says yes or no does not tell a contradiction from too little evidence.
    if judgement.verdict is Verdict.NOT_ATTRIBUTABLE and contradicts(sentence, aligned):
        verdict = SentenceVerdict.CONTRADICTED
    missing = _missing(sentence, evidence, aligned.clashes if verdict is SentenceVerdict.CONTRADICTED else ())
    if verdict is SentenceVerdict.SUPPORTED:  # other words may be said differently, a number may not
        missing = [span for span in missing if sentence[span[0]].isdigit()]
    return SentenceCheck(verdict, judgement.probability, judgement.reason, _joined(sentence, missing))


def _missing(sentence: str, evidence: Sequence[str], clashes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The words that occur nowhere in the evidence, and those that clash; none if there is no evidence at all."""
    if not any(text.strip() for text in evidence):
        return []
    known = _stems(evidence)
    return sorted({*find_words_outside(sentence, known), *clashes})


def _stems(evidence: Sequence[str]) -> frozenset[str]:
    found = {word for text in evidence for word in words(text)}
    return frozenset(stem(word) for word in found) | {word.replace(",", "") for word in found if word[0].isdigit()}


def _joined(text: str, spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The spans in order; those that overlap, or have only blanks and commas between them, are one."""
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and not text[found[-1][1] : start].strip(" ,-–'’\""):
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def _with_nearest(
    check: SentenceCheck, sentence: CitedSentence, answer: Answer, attributor: Attributor
) -> SentenceCheck:
    """The check with the passage that supports the sentence though it is not cited, or else the one that is closest."""
    others = [hit.passage for hit in answer.hits if hit.passage.id not in sentence.cites and hit.passage.text.strip()]
    near = attributor.nearest(sentence.text, others)
    if not near or check.verdict is SentenceVerdict.NO_CLAIM:
        return check
    judged = attributor.verdicts(sentence.text, near, answer.question.text)
    order = sorted(range(len(near)), key=lambda n: (judged[n].verdict.ais is not True, -(judged[n].probability or 0.0)))
    passage, judgement = near[order[0]], judged[order[0]]
    supports = judgement.verdict.ais is True
    if sentence.citations and not supports:  # what it cites is shown already
        return check
    found = attributor.located(sentence.text, passage, judgement, answer.question.text).citation("nearest")
    if sentence.citations:
        return replace(check, nearest=found, nearest_supports=supports)
    closest = _checked(sentence.text, (passage.evidence,), judgement)
    return replace(check, unsupported=closest.unsupported, nearest=found, nearest_supports=supports)


# --- texts that somebody pasted -------------------------------------------------------------------------------------

_NUMBERED = re.compile(r"^[ \t]*(?:\[(\d{1,3})\]|(\d{1,3})[.)])(?:[:.]?[ \t]+|[ \t]*$)", re.MULTILINE)


def read_sources(text: str) -> list[Passage]:
    """Read pasted sources: `[1]`, `1.` or `1)` at the start of a line begins a source; without any, all is source 1.

    The id of each passage is its number. Raises `UsageError` for a number that occurs twice, and for too many sources.
    """
    text = text.replace("\r\n", "\n").strip()
    marks = list(_NUMBERED.finditer(text))
    if marks and marks[0][1]:  # `1.` may be a list inside a source
        marks = [mark for mark in marks if mark[1]]
    if not marks or marks[0].start() > 0:  # numbers further down are a list inside the source
        return [Passage("1", "", text)] if text else []
    found: dict[str, Passage] = {}
    for mark, end in zip(marks, [*(one.start() for one in marks[1:]), len(text)], strict=True):
        number = str(int(mark[1] or mark[2]))
        if number in found:
            raise UsageError(f"the sources have number {number} twice; give every source a number of its own")
        if body := text[mark.end() : end].strip():
            found[number] = Passage(number, "", body)
    if len(found) > _MOST_SOURCES:
        raise UsageError(f"that is {len(found)} sources; at most {_MOST_SOURCES} can be checked at once")
    return list(found.values())


def cited_in(text: str, sources: Sequence[Passage], judge: Judge, question: str = "") -> Answer:
    """Return a pasted text as an answer that cites numbered sources (`read_sources`) where its markers do.

    Each citation has the span of its source that comes closest to the sentence. A text without any marker that
    resolves gets citations from the judge: the source that supports each sentence, or none.
    """
    attributor, known = Attributor(judge), {int(source.id): source for source in sources}
    parsed = parse(text, max(known, default=0), passages=[source.text for source in sources])
    marked = any(number in known for sentence in parsed.sentences for number in sentence.cites)

    def supporting(claim: str) -> list[Citation]:
        found = attributor.support(claim, sources, question)
        return [found.citation("attached")] if found else []

    def named(claim: str, numbers: Sequence[int]) -> list[Citation]:
        passages = [known[number] for number in numbers if number in known]
        verdicts = attributor.verdicts(claim, passages, question)
        located = [attributor.located(claim, *pair, question) for pair in zip(passages, verdicts, strict=True)]
        return [one.citation("cited") for one in located]

    sentences = []
    for one in parsed.sentences:
        claim = parsed.text[one.start : one.end]
        citations = named(claim, one.cites) if marked else supporting(claim)
        sentences.append(CitedSentence(claim, tuple(citations), one.start, one.end))
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
    most: int = 100,
) -> tuple[Answer, list[SentenceCheck]]:
    """Check a text sentence by sentence, against pasted sources or with `attribute` against an index.

    Raises `UsageError` if there is nothing to check, nothing to check it against, or it has more than `most` sentences.
    """
    if not text.strip():
        raise UsageError("there is no text to check; paste one")
    number = len(parse(text, 0).sentences)
    if number > most:
        raise UsageError(f"the text has {number} sentences; at most {most} can be checked at once")
    if attribute is not None:
        answer = attribute(question, text)
    elif sources:
        answer = cited_in(text, sources, judge, question)
    else:
        raise UsageError("there are no sources to check the text against; paste them, or choose an index")
    return answer, check_answer(answer, judge, nearest=True)
