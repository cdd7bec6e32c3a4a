"""Conversion of text with citation markers into clean sentences with source numbers, and back."""

import re
from collections.abc import Iterable, Iterator, Mapping

from autoais.base.answers import CitedAnswer
from autoais.base.markers.sentences import parse_sentence, render
from autoais.base.types import CitedSentence
from autoais.formats.base import Notes

_MARKER = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)*)\]")
_OWN_MARKER = "sentences with text that looks like a marker and will be read as one"


def in_document(head: str, rows: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a JSON object whose last field is a list, one record per line, so that it can be streamed."""
    yield head
    before = None
    for row in rows:
        if before is not None:
            yield before + ","
        before = row
    yield from [] if before is None else [before]
    yield "]}"


def restore_sentence(cited_sentence: CitedSentence, numbers: Mapping[str, int], notes: Notes) -> str:
    """Return the sentence as the system wrote it, if its markers match `numbers`; else its text with markers added."""
    cites = tuple(numbers[key] for key in cited_sentence.cites)
    if cited_sentence.output is not None and parse_sentence(cited_sentence.output, len(numbers)).cites == cites:
        return cited_sentence.output
    if _MARKER.search(cited_sentence.text):
        notes[_OWN_MARKER] += 1
    return render(cited_sentence.text, cites)


def restore_answer(answer: CitedAnswer, notes: Notes) -> str:
    """Return the answer as the system wrote it, if its markers match its passages; else its sentences with markers."""
    numbers = {key: number for number, key in enumerate(answer.passages, 1)}
    cites = tuple(dict.fromkeys(numbers[key] for cited_sentence in answer.sentences for key in cited_sentence.cites))
    if answer.output is not None and parse_sentence(answer.output, len(numbers)).cites == cites:
        return answer.output
    return " ".join(restore_sentence(cited_sentence, numbers, notes) for cited_sentence in answer.sentences)
