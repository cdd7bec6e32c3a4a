"""Extractive fragments (Grusky et al. 2018): how much of a text is copied from its sources, and in what runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autoais.base.text.words import words

_SEPARATOR = "\0"  # separates sources, so that no fragment spans two


@dataclass(frozen=True, slots=True)
class Extractive:
    """The lengths of the fragments of a text, in words, and its number of words."""

    fragments: tuple[int, ...]
    words: int

    @property
    def coverage(self) -> float | None:
        """The share of the words that are in a fragment, 0 to 1; None without words."""
        return sum(self.fragments) / self.words if self.words else None

    @property
    def density(self) -> float | None:
        """The mean length of the fragment that a word is in: squared lengths over words; None without words."""
        return sum(length * length for length in self.fragments) / self.words if self.words else None


def extractive(text: str, sources: Iterable[str]) -> Extractive:
    """Return the fragments of a text without citation markers; words are lower case, without punctuation."""
    return fragments(words(text), [words(source) for source in sources])


def fragments(tokens: Sequence[str], sources: Iterable[Sequence[str]]) -> Extractive:
    """Return the fragments of a list of tokens, greedily from left to right (Grusky et al. 2018, Figure 3).

    At each token, the longest run from there that occurs in a source is a fragment.
    """
    codes: dict[str, str] = {}

    def encode(sequence: Sequence[str]) -> str:
        # One character a token, so that Python's search for strings finds runs of tokens. Code 0 separates sources.
        return "".join(codes.setdefault(token, chr(len(codes) + 1)) for token in sequence)

    haystack = _SEPARATOR.join(encode(source) for source in sources)
    lengths, position, text = [], 0, encode(tokens)
    while position < len(text):
        length, match_start = 0, 0
        while position + length < len(text):
            match_start = haystack.find(
                text[position : position + length + 1], match_start
            )  # a longer run cannot start before a shorter one
            if match_start < 0:
                break
            length += 1
        if length:
            lengths.append(length)
        position += max(length, 1)
    return Extractive(tuple(lengths), len(text))
