"""Text with citation markers into clean sentences with numbers, and back."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autoais.answers import CitedAnswer, SentenceCited
from autoais.formats.base import Notes

_MARKER = re.compile(r"\[(\d+(?:\s*[,;]\s*\d+)*)\]")
_RUN = re.compile(rf"\s*(?:{_MARKER.pattern}\s*)+")
_LEADING = re.compile(rf"(?:{_MARKER.pattern}\s*)+")
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
    numbers = [int(one[:9]) for marker in _MARKER.finditer(output) for one in re.findall(r"[0-9]+", marker[1])]
    wrong = [(f"[{one}]", "zero" if one == 0 else "out-of-range") for one in dict.fromkeys(numbers) if not 0 < one <= n]
    clean = re.sub(r"\s+([.!?,;:])", r"\1", _RUN.sub(" ", output)).strip()
    return Marked(clean, tuple(dict.fromkeys(one for one in numbers if 0 < one <= n)), tuple(wrong))


def sentences(output: str, n: int) -> list[Marked]:
    """The sentences of an answer; a citation after the full stop belongs to the sentence before it."""
    import sentencex

    pieces: list[str] = []
    for boundary in sentencex.get_sentence_boundaries("en", output.encode("utf-8", "replace").decode("utf-8")):
        piece = output[boundary["start_index"] : boundary["end_index"]].strip()
        if pieces and (leading := _LEADING.match(piece)):
            pieces[-1] += " " + leading[0].strip()
            piece = piece[leading.end() :]
        if piece:
            pieces.append(piece)
    found = [sentence(piece, n) for piece in pieces]
    return [one for one in found if one.text or one.cites or one.unresolved]


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
