"""Text with citation markers to clean sentences with source numbers, and back."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from autoais.base.markers.grammar import parse

_STOPS, _CLOSERS = ".!?…", "\"'”’)"


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """A clean sentence, the source numbers it cites (1-based), and its unresolved markers as (marker, reason)."""

    text: str
    cites: tuple[int, ...]
    unresolved: tuple[tuple[str, str], ...] = ()


def parse_sentence(output: str, n: int) -> MarkedSentence:
    """Parse one sentence (or group of sentences) with `n` sources."""
    parsed = parse(output, n)
    cites = dict.fromkeys(cite for sentence in parsed.sentences for cite in sentence.cites)
    return MarkedSentence(parsed.text, tuple(cites), tuple((bad.marker, bad.reason) for bad in parsed.unresolved))


def parse_sentences(output: str, n: int) -> list[MarkedSentence]:
    """Parse an answer with `n` sources into sentences."""
    parsed = parse(output, n)
    if not parsed.sentences:
        bad_only = tuple((marker.marker, marker.reason) for marker in parsed.unresolved)
        return [MarkedSentence("", (), bad_only)] if bad_only else []
    ends = [sentence.end for sentence in parsed.sentences]
    bad: dict[int, list[tuple[str, str]]] = {}
    for marker in parsed.unresolved:
        bad.setdefault(min(bisect_left(ends, marker.position or 0), len(ends) - 1), []).append(
            (marker.marker, marker.reason)
        )
    return [
        MarkedSentence(parsed.text[sentence.start : sentence.end], sentence.cites, tuple(bad.get(number, ())))
        for number, sentence in enumerate(parsed.sentences)
    ]


def render(text: str, numbers: Iterable[int]) -> str:
    """Return the sentence with markers before the final stop: `A is B [1][2].`"""
    markers = "".join(f"[{number}]" for number in numbers)
    core = text.rstrip(_CLOSERS)
    body = core.rstrip(_STOPS)
    body = body if body.strip() and len(body) < len(core) else text  # no stop: the marker goes to the very end
    return f"{body.rstrip()} {markers}{text[len(body) :]}" if markers else text
