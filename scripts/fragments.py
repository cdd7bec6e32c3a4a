"""Fragments: sentences of an answer that cannot be read on their own."""

from rag.answer.generators.units import CODE, ENTRY, ITEM, ROW, split_units
from rag.base.types import Answer, CitedSentence

_ENDS = frozenset(".!?…)]\"'”’»;:")


def is_fragment(answer: Answer, sentence: CitedSentence) -> bool:
    """Whether a sentence is neither whole nor a list item, a table row, a definition or code.

    A sentence is whole if it has three words, begins with a capital, a digit or a sign, or a block of its passage, and
    ends with punctuation; a colon at the end needs something that follows. It may also continue the sentence before
    it, if both stand together in the passage.
    """
    text = sentence.text.strip()
    index = next(number for number, item in enumerate(answer.sentences) if item is sentence)
    before = answer.sentences[index - 1] if index else None
    after = answer.sentences[index + 1] if index + 1 < len(answer.sentences) else None
    if text.endswith(":"):
        return after is None
    kinds, opens = _unit_kinds(answer, sentence)
    if kinds & {ITEM, ROW, CODE} or ENTRY.match(text):
        return False
    if before is not None and _are_adjacent(answer, before, sentence):
        return False
    if after is not None and _are_adjacent(answer, sentence, after) and (opens or not text[:1].islower()):
        return False
    begins = opens or not text[:1].islower()
    return not (begins and text[-1:] in _ENDS and len(text.split()) > 2)


def _unit_kinds(answer: Answer, sentence: CitedSentence) -> tuple[set[str], bool]:
    """The kinds of the units that a sentence quotes, and whether it begins a block."""
    texts = {hit.passage.id: hit.passage.text for hit in answer.hits}
    kinds: set[str] = set()
    opens = False
    for citation in sentence.citations:
        if citation.start is None or citation.end is None:
            continue
        text = texts[citation.passage]
        kinds |= {u.kind for u in split_units(text) if u.start < citation.end and citation.start < u.end}
        opens |= not text[: citation.start].strip() or text[: citation.start].endswith("\n")
    return kinds, opens


def _are_adjacent(answer: Answer, sentence: CitedSentence, following: CitedSentence) -> bool:
    """Whether two sentences are quoted from one place, with nothing but white space between."""
    if len(sentence.citations) != 1 or len(following.citations) != 1:
        return False
    (first,), (second,) = sentence.citations, following.citations
    if first.passage != second.passage or first.end is None or second.start is None:
        return False
    text = next(hit.passage.text for hit in answer.hits if hit.passage.id == first.passage)
    return first.end <= second.start and not text[first.end : second.start].strip()
