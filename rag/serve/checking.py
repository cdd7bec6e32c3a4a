"""Checks of pasted texts, against pasted sources or an index."""

import re
from collections.abc import Callable, Sequence

from autoais.base.markers.grammar import parse
from autoais.base.types import Judge
from rag.answer.attribution.attributor import Attributor
from rag.answer.attribution.check import SentenceCheck, check_answer
from rag.base.errors import UsageError
from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question

_MAX_SOURCES = 100

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
