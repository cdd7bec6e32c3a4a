"""Excerpts of evidence for the embedded judge: the sentences that share most with the claim, and the shared words."""

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from autoais.base.text.memo import memoize
from autoais.base.text.words import STOP_WORDS, content_stems, idf, stem, word_spans
from autoais.base.types import Span

# Characters of evidence that fit the model beside a claim of usual length (about 4.3 characters per word piece).
BUDGET = 620
_MAX_SENTENCE = 400  # longer "sentences" (a table, a page without full stops) are cut
_SENTENCE_END = re.compile(r"""(?<=[.!?…。！？])["'”’)\]]*\s+(?=["'“‘(\[]?[^\Wa-z_])|\n+""")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Gen|Col|Lt|Sgt|Rev|No|vs|etc|cf|ca|c)\.$")


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a text as character offsets, stripped of white space; long sentences are cut.

    A plain rule (full stops before a capital, and line breaks), not `sentence_spans`: it runs over whole web pages for
    every pair, and a wrong split only changes which words are read together.
    """
    start = 0
    cuts = [*((m.start(), m.end()) for m in _SENTENCE_END.finditer(text)), (len(text), len(text))]
    for end, following in cuts:
        if following < len(text) and _ABBREVIATION.search(text[max(start, end - 8) : end]):
            continue
        yield from _cut_long_sentence(text, start, end)
        start = following


def _cut_long_sentence(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while end - start > _MAX_SENTENCE:
        cut = text.rfind(" ", start + _MAX_SENTENCE // 2, start + _MAX_SENTENCE)
        cut = cut if cut > start else start + _MAX_SENTENCE
        yield start, cut
        start = cut + 1 if text[cut : cut + 1] == " " else cut
    if start < end:
        yield start, end


@memoize
def _split_sentences(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(split_sentences(text))


@memoize
def _stems_of_pieces(text: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(content_stems(text[start:end])) for start, end in _split_sentences(text))


@memoize
def _stems(text: str) -> frozenset[str]:
    return frozenset(content_stems(text))


class EvidenceTexts:
    """Texts of evidence with their sentences and stems, computed once for all claims about them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._singles: dict[int, EvidenceTexts] = {}

    @cached_property
    def sentences(self) -> list[Span]:
        """The sentences, in order."""
        return [
            Span(number, start, end) for number, text in enumerate(self.texts) for start, end in _split_sentences(text)
        ]

    @cached_property
    def length(self) -> int:
        """The number of characters of all sentences, with one between each two."""
        return sum(sentence.end - sentence.start + 1 for sentence in self.sentences)

    @cached_property
    def sentence_stems(self) -> list[frozenset[str]]:
        """The stems of the content words of each sentence."""
        return [stems for text in self.texts for stems in _stems_of_pieces(text)]

    @cached_property
    def text_stems(self) -> list[frozenset[str]]:
        """The stems of the content words of each text."""
        return [_stems(text) for text in self.texts]

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the content words of all texts."""
        return frozenset().union(*self.text_stems)

    def single(self, number: int) -> "EvidenceTexts":
        """Return one of the texts by itself."""
        return self._singles.setdefault(number, EvidenceTexts([self.texts[number]]))


def excerpt(claim: str, evidence: Sequence[str] | EvidenceTexts, budget: int = BUDGET) -> tuple[Span, ...]:
    """Return the sentences that cover the claim's words best, then their neighbours, within `budget` characters.

    Greedy cover: each step adds the sentence with the most IDF weight of uncovered claim words, ties by position;
    then the sentences around the chosen ones. Evidence within the budget is kept whole.
    """
    evidence_texts = evidence if isinstance(evidence, EvidenceTexts) else EvidenceTexts(evidence)
    sentences, texts = evidence_texts.sentences, evidence_texts.texts
    if evidence_texts.length <= budget:
        return _merge_neighbours(sentences, texts)
    weights = {word: idf(word) for word in dict.fromkeys(content_stems(claim))}
    # Sentences that share the same words have the same gain: of each group only the first that fits is a candidate.
    kinds: dict[frozenset[str], deque[int]] = {}
    for i, stems in enumerate(evidence_texts.sentence_stems):
        shared_words = weights.keys() & stems
        if shared_words:
            kinds.setdefault(frozenset(shared_words), deque()).append(i)
    selection: list[int] = []
    missing = dict(weights)
    room = budget
    while missing or len(selection) < 3:
        gains = []
        for words, candidates in kinds.items():
            while candidates and sentences[candidates[0]].end - sentences[candidates[0]].start >= room:
                candidates.popleft()
            if candidates:
                gains.append((math.fsum(missing.get(w, 0.0) + 0.2 * weights[w] for w in words), -candidates[0], words))
        if not gains:
            break
        words = max(gains, key=lambda gain: gain[:2])[2]
        best = kinds[words].popleft()
        selection.append(best)
        room -= sentences[best].end - sentences[best].start + 1
        for word in words:
            missing.pop(word, None)
    for neighbour in _neighbours(selection, len(sentences)):
        size = sentences[neighbour].end - sentences[neighbour].start + 1
        if size <= room:
            selection.append(neighbour)
            room -= size
    return _merge_neighbours([sentences[i] for i in sorted(selection)], texts)


def _neighbours(selection: Sequence[int], total: int) -> Iterator[int]:
    previous = set(selection)
    neighbours = [i + step for step in (-1, 1) for i in selection]
    for i in [*neighbours, *range(min(total, 12))]:
        if 0 <= i < total and i not in previous:
            previous.add(i)
            yield i


def _merge_neighbours(sentences: Sequence[Span], evidence: Sequence[str]) -> tuple[Span, ...]:
    """Merge neighbouring sentences into one span."""
    spans: list[Span] = []
    for sentence in sentences:
        last = spans[-1] if spans else None
        if (
            last
            and last.evidence == sentence.evidence
            and not evidence[last.evidence][last.end : sentence.start].strip()
        ):
            spans[-1] = Span(last.evidence, last.start, sentence.end)
        else:
            spans.append(sentence)
    return tuple(spans)


def texts_of(spans: Iterable[Span], evidence: Sequence[str]) -> list[str]:
    """Return the text of each span."""
    return [evidence[span.evidence][span.start : span.end] for span in spans]


def text_of(spans: Iterable[Span], evidence: Sequence[str]) -> str:
    """Return the excerpt as one text; an ellipsis marks a gap, a line break the next evidence."""
    spans = list(spans)
    parts = texts_of(spans, evidence)
    if not parts:
        return ""
    gaps = ["\n" if a.evidence != b.evidence else " ... " for a, b in pairwise(spans)]
    return parts[0] + "".join(gap + part for gap, part in zip(gaps, parts[1:], strict=True))


def shorten(spans: Sequence[Span], evidence: Sequence[str], length: int) -> tuple[Span, ...]:
    """Return the spans of the first `length` characters of `text_of`."""
    prefix: list[Span] = []
    for span in spans:
        total = len(text_of([*prefix, span], evidence))
        size = span.end - span.start
        if length <= total - size:
            break
        prefix.append(Span(span.evidence, span.start, span.end - max(0, total - length)))
    return tuple(prefix)


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    return stem(word)


def find_words_outside(text: str, stems: frozenset[str]) -> list[tuple[int, int]]:
    """Return the character offsets of the content words whose stem is not among `stems`."""
    return [(s, e) for s, e, word in word_spans(text) if word not in STOP_WORDS and _stem(word) not in stems]


def find_words_in(text: str, stems: frozenset[str]) -> list[tuple[int, int]]:
    """Return the character offsets of the content words whose stem is among `stems`."""
    return [(s, e) for s, e, word in word_spans(text) if word not in STOP_WORDS and _stem(word) in stems]
