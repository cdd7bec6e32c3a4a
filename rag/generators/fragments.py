"""Fragments: sentences of an answer that cannot be read on their own."""

from rag.generators.units import CODE, ITEM, ROW, units
from rag.types import Answer, CitedSentence

_ENDS = frozenset(".!?…)]\"'”’»;:")


def is_fragment(answer: Answer, sentence: CitedSentence) -> bool:
    """Whether a sentence is neither whole nor a list item, a table row, a definition or code.

    A sentence is whole if it begins with a capital, a digit or a sign and ends with punctuation; a colon at the end
    needs something that follows.
    """
    text = sentence.text.strip()
    last = sentence is answer.sentences[-1]
    if text.endswith(":"):
        return last
    kinds = _kinds(answer, sentence)
    if kinds & {ITEM, ROW, CODE}:
        return False
    if text[:1].islower() and ": " not in text[:60]:
        return True
    return text[-1:] not in _ENDS or len(text.split()) < 3


def _kinds(answer: Answer, sentence: CitedSentence) -> set[str]:
    texts = {hit.passage.id: hit.passage.text for hit in answer.hits}
    return {
        unit.kind
        for citation in sentence.citations
        if citation.start is not None and citation.end is not None
        for unit in units(texts[citation.passage])
        if unit.start < citation.end and citation.start < unit.end
    }
