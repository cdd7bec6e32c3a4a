"""Answers from text with `[n]` markers, as language models and other programs write it."""

from collections.abc import Sequence

from autoais.base.markers.grammar import parse
from rag.answer.word_overlap import nearest_sentence
from rag.base.errors import check_list, check_type
from rag.base.types import Answer, Citation, CitedSentence, Hit, Question, Unresolved


def parse_answer(question: str | Question, text: str, hits: Sequence[Hit], system: str) -> Answer:
    """Return the answer that a text with markers is: `[1]` cites the first hit, in the sentence where it stands.

    Markers are read in the forms that models write, such as `[1, 3]`. Each citation quotes the sentence of its passage
    that is nearest to the claim, or the whole passage if they share no word. A marker of no hit, or of a hit without a
    text, is `unresolved`. A text without words is an abstention. `system` is the name of the system that wrote it.
    """
    check_type("question", question, "a string or a Question", str, Question)
    check_type("text", text, "a string with markers such as [1]", str)
    check_list("hits", hits, "a list of Hits")
    question_object = question if isinstance(question, Question) else Question("q1", question)
    parsed = parse(text, len(hits), passages=[hit.passage.text for hit in hits])
    unresolved_markers = list(parsed.unresolved)
    sentences = []
    for number, sentence in enumerate(parsed.sentences):
        claim = parsed.text[sentence.start : sentence.end]
        passages = [hits[n - 1].passage for n in sentence.cites]
        citations = tuple(_citation(claim, passage.id, passage.text) for passage in passages if passage.text.strip())
        unresolved_markers += [
            Unresolved(f"[{n}]", "empty", number) for n in sentence.cites if not hits[n - 1].passage.text.strip()
        ]
        sentences.append(CitedSentence(claim, citations, sentence.start, sentence.end))
    if not sentences:
        return Answer(question_object, "", (), tuple(hits), system, abstained=True, reason="the text has no sentence")
    unresolved = tuple(Unresolved(marker.marker, marker.reason) for marker in unresolved_markers)
    return Answer(question_object, parsed.text, tuple(sentences), tuple(hits), system, unresolved=unresolved)


def _citation(claim: str, identifier: str, text: str) -> Citation:
    start, end = nearest_sentence(text, claim) or (len(text) - len(text.lstrip()), len(text.rstrip()))
    return Citation(identifier, start, end, text[start:end], "cited")
