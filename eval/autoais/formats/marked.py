"""Conversion of text with citation markers into clean sentences with source numbers, and back."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from autoais.base.answers import CitedAnswer
from autoais.base.markers.grammar import parse
from autoais.base.types import CitedSentence
from autoais.formats.base import Notes

_MARKER = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)*)\]")
_STOPS, _CLOSERS = ".!?…", "\"'”’)"
_OWN_MARKER = "sentences with text that looks like a marker and will be read as one"


@dataclass(frozen=True, slots=True)
class Marked:
    """A clean sentence, the source numbers it cites (1-based), and its unresolved markers as (marker, reason)."""

    text: str
    cites: tuple[int, ...]
    unresolved: tuple[tuple[str, str], ...] = ()


def sentence(output: str, n: int) -> Marked:
    """Parse one sentence (or group of sentences) with `n` sources."""
    parsed = parse(output, n)
    cites = dict.fromkeys(cite for one in parsed.sentences for cite in one.cites)
    return Marked(parsed.text, tuple(cites), tuple((bad.marker, bad.reason) for bad in parsed.unresolved))


def sentences(output: str, n: int) -> list[Marked]:
    """Parse an answer with `n` sources into sentences."""
    parsed = parse(output, n)
    if not parsed.sentences:
        bad_only = tuple((one.marker, one.reason) for one in parsed.unresolved)
        return [Marked("", (), bad_only)] if bad_only else []
    ends = [one.end for one in parsed.sentences]
    bad: dict[int, list[tuple[str, str]]] = {}
    for one in parsed.unresolved:
        bad.setdefault(min(bisect_left(ends, one.position or 0), len(ends) - 1), []).append((one.marker, one.reason))
    return [
        Marked(parsed.text[one.start : one.end], one.cites, tuple(bad.get(number, ())))
        for number, one in enumerate(parsed.sentences)
    ]


def render(text: str, numbers: Iterable[int]) -> str:
    """Return the sentence with markers before the final stop: `A is B [1][2].`"""
    markers = "".join(f"[{number}]" for number in numbers)
    whole = text.rstrip(_CLOSERS)
    body = whole.rstrip(_STOPS)
    body = body if body.strip() and len(body) < len(whole) else text  # no stop: the marker goes to the very end
    return f"{body.rstrip()} {markers}{text[len(body) :]}" if markers else text


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
