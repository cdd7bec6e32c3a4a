"""The text of a passage that is most like a quote, and the words in which they differ."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, islice
from typing import Literal

from autoais.base.text.scripts import HAN
from autoais.base.text.sentences import sentence_spans

Change = Literal["same", "removed", "added"]

_MAX_WORDS = 300  # of a quote that is compared: the time grows with their square
_MAX_SENTENCE = 4 * _MAX_WORDS
_MAX_RUNS = 3  # of sentences that are compared word for word
_WORD = re.compile(rf"[{HAN}]|(?:(?![{HAN}])\w)+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Nearest:
    """Characters `start` to `end` of a text, and their similarity with a quote: the share of words in common, 0 to 1.

    The share is of the words of both, in order (`difflib.SequenceMatcher.ratio`).
    """

    similarity: float
    start: int
    end: int


class SentenceWords:
    """The sentences of a text with their words, for many quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def sentences(self) -> list[list[tuple[str, int, int]]]:
        """The words of each sentence with their characters; the first 1,200 of a longer one."""
        spans = sentence_spans(self.text)
        return [list(islice(_words(self.text, start, end), _MAX_SENTENCE)) for start, end in spans]

    @cached_property
    def counts(self) -> list[Counter[str]]:
        """The number of times that each word occurs in each sentence."""
        return [Counter(word for word, _, _ in sentence) for sentence in self.sentences]


def find_nearest(quote: str, text: str | SentenceWords) -> Nearest | None:
    """Return the part of a text that is most like a quote: words of a run of as many sentences as the quote has.

    None if they share no word. Only the first 300 words of the quote are compared.
    """
    source = SentenceWords(text) if isinstance(text, str) else text
    tokens = [word for word, _, _ in islice(_words(quote, 0, len(quote)), _MAX_WORDS)]
    counts, n_sentences = Counter(tokens), max(1, len(sentence_spans(quote)))
    runs = []
    for first in range(len(source.sentences)):
        run = source.counts[first : first + n_sentences]
        shared = sum(min(number, sum(words[word] for words in run)) for word, number in counts.items())
        if shared:
            runs.append((-shared, first))
    candidates = [
        _trim(tokens, list(chain.from_iterable(source.sentences[first : first + n_sentences])))
        for _, first in sorted(runs)[:_MAX_RUNS]
    ]
    return max(candidates, default=None, key=lambda nearest: nearest.similarity)


def _words(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    return ((match[0].lower(), *match.span()) for match in _WORD.finditer(text, start, end))


def _trim(tokens: list[str], run: list[tuple[str, int, int]]) -> Nearest:
    """The words of a run of sentences, which shares some, that stand opposite the quote's first to last."""
    words = [word for word, _, _ in run]
    matcher = SequenceMatcher(None, words, tokens, autojunk=False)  # faster with the longer list first
    blocks = matcher.get_matching_blocks()[:-1]
    # Words that match far from the longest run of equal words are others: "the", "of".
    middle = max(blocks, key=lambda block: block.size)
    reach = max(5, len(tokens) // 2)
    blocks = [block for block in blocks if abs((block.a - block.b) - (middle.a - middle.b)) <= reach]
    head, tail = blocks[0], blocks[-1]
    first = max(0, head.a - head.b)
    last = min(len(run), tail.a + len(tokens) - tail.b)
    matcher.set_seq1(words[first:last])
    return Nearest(matcher.ratio(), run[first][1], run[last - 1][2])


def compare_words(before: str, after: str, key: Callable[[str], str] = str) -> list[tuple[Change, str]]:
    """Return the words of both texts in order, in groups: the same, `removed` from `before`, or `added` by `after`.

    Words with the same key are the same; those of `before` are returned.
    """
    old, new = before.split(), after.split()
    matcher = SequenceMatcher(None, list(map(key, old)), list(map(key, new)), autojunk=False)
    pieces: list[tuple[Change, str]] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            pieces.append(("same", " ".join(old[a:b])))
            continue
        if a < b:
            pieces.append(("removed", " ".join(old[a:b])))
        if c < d:
            pieces.append(("added", " ".join(new[c:d])))
    return pieces


def format_changes(changes: Iterable[tuple[Change, str]]) -> str:
    """Return `compare_words` as a text: words that went in `[-...-]`, words that came in `{+...+}`."""
    forms = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    return " ".join(forms[kind].format(words) for kind, words in changes)
