"""Text with citation markers into clean sentences with numbers, and back."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autoais.answers import CitedAnswer, SentenceCited
from autoais.formats.base import Notes
from autoais.markers.grammar import parse

_MARKER = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)*)\]")
_STOPS = ".!?…\"'”’)"
_OWN_MARKER = "sentences with words that look like markers and will be read as such"


@dataclass(frozen=True, slots=True)
class Marked:
    """A clean sentence, the source numbers (1-based) it cites, and (marker, reason) of what points to none."""

    text: str
    cites: tuple[int, ...]
    unresolved: tuple[tuple[str, str], ...] = ()


def sentence(output: str, n: int) -> Marked:
    """One sentence (or group of sentences) with `n` sources, its markers taken out."""
    parsed = parse(output, n)
    cites = dict.fromkeys(cite for one in parsed.sentences for cite in one.cites)
    return Marked(parsed.text, tuple(cites), tuple((bad.marker, bad.reason) for bad in parsed.unresolved))


def sentences(output: str, n: int) -> list[Marked]:
    """The sentences of an answer."""
    parsed = parse(output, n)
    if not parsed.sentences:
        bad_only = tuple((one.marker, one.reason) for one in parsed.unresolved)
        return [Marked("", (), bad_only)] if bad_only else []
    ends = [one.end for one in parsed.sentences]
    bad: dict[int, list[tuple[str, str]]] = {}
    for one in parsed.unresolved:
        bad.setdefault(min(bisect_left(ends, one.position), len(ends) - 1), []).append((one.marker, one.reason))
    return [
        Marked(parsed.text[one.start : one.end], one.cites, tuple(bad.get(number, ())))
        for number, one in enumerate(parsed.sentences)
    ]


def render(text: str, numbers: Iterable[int]) -> str:
    """The sentence with its markers before the final stop: `A is B [1][2].`"""
    markers = "".join(f"[{number}]" for number in numbers)
    body = text.rstrip(_STOPS)
    body = body if body.strip() else text
    return f"{body.rstrip()} {markers}{text[len(body) :]}" if markers else text


def written(one: SentenceCited, numbers: Mapping[str, int], notes: Notes) -> str:
    """The sentence as the system wrote it, if its markers are those numbers, else with markers put in."""
    cites = tuple(numbers[cited] for cited in one.cites)
    if one.output is not None and sentence(one.output, len(numbers)).cites == cites:
        return one.output
    if _MARKER.search(one.text):
        notes[_OWN_MARKER] += 1
    return render(one.text, cites)


def written_answer(answer: CitedAnswer, notes: Notes) -> str:
    """The answer as the system wrote it, if its markers number its passages, else its sentences with markers."""
    numbers = {key: number for number, key in enumerate(answer.passages, 1)}
    cites = tuple(dict.fromkeys(numbers[cited] for one in answer.sentences for cited in one.cites))
    if answer.output is not None and sentence(answer.output, len(numbers)).cites == cites:
        return answer.output
    return " ".join(written(one, numbers, notes) for one in answer.sentences)
