"""The texts of an item as a page shows them: sentences that can be chosen, and words that the answer shares."""

from collections.abc import Iterator
from dataclasses import dataclass

from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import STOP_WORDS, stem, word_spans


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; `shared` if it is a content word of what is judged."""

    text: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters `start` to `end` (exclusive) of a source: a sentence, or what lies between two."""

    start: int
    end: int
    sentence: bool
    pieces: tuple[Piece, ...]


def segments(text: str, words: frozenset[str] = frozenset()) -> tuple[Segment, ...]:
    """Cut a source into sentences and what lies between them; together they are the text, character by character.

    `words` are the stems to mark (`content_words`).
    """
    found: list[Segment] = []
    at = 0
    for start, end in (*sentence_spans(text), (len(text), len(text))):
        for one, other, sentence in ((at, start, False), (start, end, True)):
            if one < other:
                found.append(Segment(one, other, sentence, tuple(pieces(text[one:other], words))))
        at = max(at, end)
    return tuple(found)


def pieces(text: str, words: frozenset[str]) -> Iterator[Piece]:
    """Cut a text into words to mark and the rest."""
    at = 0
    for start, end, word in word_spans(text) if words else ():
        if stem(word) in words:
            if at < start:
                yield Piece(text[at:start])
            yield Piece(text[start:end], True)
            at = end
    if at < len(text):
        yield Piece(text[at:])


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the content words of what is judged."""
    return frozenset(stem(word) for _, _, word in word_spans(text) if word not in STOP_WORDS)
