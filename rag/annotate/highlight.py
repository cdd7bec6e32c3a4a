"""The texts of an item as a page shows them: sentences that can be chosen, and words that the answer shares."""

from collections.abc import Iterator
from dataclasses import dataclass

from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import STOP_WORDS, stem, word_spans


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text. `is_shared` marks a content word that the judged text has too."""

    text: str
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters `start` to `end` (exclusive) of a source: a sentence, or the text between two."""

    start: int
    end: int
    is_sentence: bool
    pieces: tuple[Piece, ...]


def segments(text: str, words: frozenset[str] = frozenset()) -> tuple[Segment, ...]:
    """Cut a source into sentences and the text between them. Joined, the segments are the whole text.

    `words` are the stems to mark (`content_words`).
    """
    parts: list[Segment] = []
    position = 0
    for start, end in (*sentence_spans(text), (len(text), len(text))):
        for first, last, sentence in ((position, start, False), (start, end, True)):
            if first < last:
                parts.append(Segment(first, last, sentence, tuple(pieces(text[first:last], words))))
        position = max(position, end)
    return tuple(parts)


def pieces(text: str, words: frozenset[str]) -> Iterator[Piece]:
    """Cut a text into words to mark and the rest."""
    position = 0
    for start, end, word in word_spans(text) if words else ():
        if stem(word) in words:
            if position < start:
                yield Piece(text[position:start])
            yield Piece(text[start:end], True)
            position = end
    if position < len(text):
        yield Piece(text[position:])


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the content words of the judged text."""
    return frozenset(stem(word) for _, _, word in word_spans(text) if word not in STOP_WORDS)
