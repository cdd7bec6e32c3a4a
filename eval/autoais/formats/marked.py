"""Conversion of text with citation markers into clean sentences with source numbers, and back."""

import re
from collections.abc import Iterable, Iterator, Mapping

from autoais.base.answers import CitedAnswer
from autoais.base.markers.sentences import render, sentence
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


def written(one: CitedSentence, numbers: Mapping[str, int], notes: Notes) -> str:
    """Return the sentence as the system wrote it, if its markers match `numbers`; else its text with markers added."""
    cites = tuple(numbers[cited] for cited in one.cites)
    if one.output is not None and sentence(one.output, len(numbers)).cites == cites:
        return one.output
    if _MARKER.search(one.text):
        notes[_OWN_MARKER] += 1
    return render(one.text, cites)


def written_answer(answer: CitedAnswer, notes: Notes) -> str:
    """Return the answer as the system wrote it, if its markers match its passages; else its sentences with markers."""
    numbers = {key: number for number, key in enumerate(answer.passages, 1)}
    cites = tuple(dict.fromkeys(numbers[cited] for one in answer.sentences for cited in one.cites))
    if answer.output is not None and sentence(answer.output, len(numbers)).cites == cites:
        return answer.output
    return " ".join(written(one, numbers, notes) for one in answer.sentences)
