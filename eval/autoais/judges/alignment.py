"""Word alignment of a claim with the evidence: shared word order, and differing numbers, names and negations."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import zip_longest

from autoais.base.text.excerpt import split_sentences
from autoais.base.text.words import STOP_WORDS, content_stems, idf, stem, word_spans
from autoais.judges.numbers import TENS, UNDER_TWENTY, Numbers, is_unit

_NUMBERS = {word: number for number, word in enumerate(UNDER_TWENTY)} | {
    word: 10 * tens for tens, word in enumerate(TENS, 2)
}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_MONTHS = "january february march april may june july august september october november december".split()
_NEGATIONS = frozenset(
    """
    not never no neither nor none cannot don't didn't isn't wasn't aren't weren't doesn't hasn't haven't hadn't can't
    couldn't won't wouldn't
    """.split()
)  # fmt: skip
_SUFFIX = re.compile(r"\S*(?:\s(?:%|[ap]\.?m\b))?")  # of a quantity whose first characters are a word: 8:30 pm
_YEARS = range(1000, 2101)
_CLOSEST = 3  # sentences to align: those that share most words with the claim
# Words of the claim and of the evidence. A longer stretch without a common word is different content, not a clash.
_MAX_CLAIM_GAP, _MAX_EVIDENCE_GAP = 4, 6
# Less than half may be two sentences about different things.
_CLASHES, _SAME_WORDS = 0.5, 0.5


@dataclass(frozen=True, slots=True)
class Alignment:
    """How far the closest sentence of the evidence has the claim's words in the claim's order.

    `share`: IDF-weighted share of the claim's words found there in the same order, 0 to 1.
    `clash`: confidence that the two contradict each other, 0 to 1.
    `clashes`: (start, end) characters of the claim that contradict the evidence.
    `evidence_clashes`: those that stand in their place, in the text of the evidence that has the closest sentence.
    """

    share: float = 0.0
    clash: float = 0.0
    clashes: tuple[tuple[int, int], ...] = ()
    evidence_clashes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    key: str
    kind: str
    weight: float
    value: float | None = None  # of a number, including its scale

    @property
    def is_year(self) -> bool:
        """Whether it is a number that looks like a year."""
        return self.value is not None and self.value in _YEARS


@dataclass(frozen=True)
class _Part:
    """Words of a claim, and those that the closest sentence has in their place."""

    words: Sequence[_Word]
    other_words: Sequence[_Word]
    claim: str
    sentence: str

    @cached_property
    def _missing_numbers(self) -> list[tuple[int, int]]:
        if not self.other_words:
            return [(0, len(self.claim))]
        start = self.sentence.rfind(" ", 0, self.other_words[0].start) + 1  # with "$"
        suffix = _SUFFIX.match(self.sentence, self.other_words[-1].end)
        text = self.sentence[start : suffix.end() if suffix else None]
        return Numbers([text]).find_missing(self.claim, exact=True)

    def lacks(self, word: _Word) -> bool:
        """Whether a number of the claim is another one there."""
        return any(word.start < end and start < word.end for start, end in self._missing_numbers)

    def weigh_equal_numbers(self) -> float:
        """The weight of numbers, with their units, that stand there in other words: "60 seconds" for "a minute"."""
        weight = 0.0
        for word, following in zip_longest(self.words, self.words[1:]):
            if word.kind == "number" and not self.lacks(word):
                is_measured = following is not None and is_unit(self.claim[following.start : following.end])
                weight += word.weight + (following.weight if is_measured else 0.0)
        return weight


def align(claim: str, evidence: Iterable[str]) -> Alignment:
    """The best word alignment of the claim with one sentence of the evidence.

    Between the words that both share, differing numbers, dates or names clash, and so does a negation on only one
    side. A differing number has confidence 1; a name or negation has the cube of `share`, since people and places have
    several names.
    """
    claim_words = _words(claim)
    keys = [word.key for word in claim_words]
    total = sum(word.weight for word in claim_words)
    if not total:
        return Alignment()
    key_set = set(keys)
    positions = [(text, start, end) for text in evidence for start, end in split_sentences(text)]
    texts = [text[start:end] for text, start, end in positions]
    sentences = [_words(text) for text in texts]
    overlaps = [sum({w.key: w.weight for w in sentence if w.key in key_set}.values()) for sentence in sentences]
    best = Alignment()
    for index in sorted(range(len(sentences)), key=lambda i: (-overlaps[i], i))[:_CLOSEST]:
        changes = SequenceMatcher(None, keys, [w.key for w in sentences[index]], autojunk=False).get_opcodes()
        same_weight = sum(word.weight for kind, i, j, _, _ in changes if kind == "equal" for word in claim_words[i:j])
        parts = [
            _Part(claim_words[i:j], sentences[index][m:n], claim, texts[index])
            for kind, i, j, m, n in changes
            if kind != "equal"
        ]
        alignment = _clashing(same_weight / total, parts, positions[index][1])
        equal_weight = sum(part.weigh_equal_numbers() for part in parts)
        alignment = replace(alignment, share=alignment.share + equal_weight / total)
        if (alignment.share, -alignment.clash) > (best.share, -best.clash):
            best = alignment
    return best


def contradicts(claim: str, alignment: Alignment) -> bool:
    """Return whether the closest sentence of the evidence contradicts a claim that it does not support.

    A number, name or negation clashes with it with a confidence of at least a half, and it has at least half of the
    claim's other words, weighted by IDF, in the same order.
    """
    total = _weight(claim)
    other_weight = total - sum(_weight(claim[start:end]) for start, end in alignment.clashes)
    return alignment.clash >= _CLASHES and alignment.share * total >= _SAME_WORDS * other_weight > 0


def _weight(text: str) -> float:
    return sum(idf(key) for key in content_stems(text))


def _clashing(share: float, parts: Iterable[_Part], offset: int) -> Alignment:
    clash, clashes, evidence_clashes = 0.0, [], []
    for part in parts:
        if len(part.words) > _MAX_CLAIM_GAP or len(part.other_words) > _MAX_EVIDENCE_GAP:
            continue
        for kind, confidence in (("number", 1.0), ("name", share**3), ("negation", share**3)):
            own_words, other = ([w for w in side if w.kind == kind] for side in (part.words, part.other_words))
            if kind == "number":
                own_words = [word for word in own_words if part.lacks(word)]
            differ = (
                bool(own_words) != bool(other)
                if kind == "negation"
                else own_words and other and not (kind == "name" and _same_names(own_words, other))
            )
            if differ:
                clash = max(clash, confidence)
                clashes += [(word.start, word.end) for word in own_words]
                same_years = [word for word in other if word.is_year in {word.is_year for word in own_words}]
                evidence_clashes += [(offset + word.start, offset + word.end) for word in same_years or other]
    return Alignment(share, clash, tuple(sorted(clashes)), tuple(sorted(evidence_clashes)))


def _same_names(own_words: Sequence[_Word], other: Sequence[_Word]) -> bool:
    """Whether one side is the initials of the other, or two words share a prefix (Germany, German)."""
    for short, long in ((own_words, other), (other, own_words)):
        if "".join(word.key[0] for word in long).startswith("".join(word.key for word in short)):
            return True
    return any(a.key[:4] == b.key[:4] for a in own_words for b in other)


def _words(text: str) -> list[_Word]:
    """The words of a text; a number and its scale ("2 million", "twenty-one") count as one word."""
    words: list[_Word] = []
    before = ""
    spans = word_spans(text)
    sentences = [start for start, _ in split_sentences(text)][::-1]
    for index, (start, end, word) in enumerate(spans):
        opens = bool(sentences) and sentences[-1] <= start
        while sentences and sentences[-1] <= start:
            sentences.pop()
        following = spans[index + 1] if index + 1 < len(spans) else None
        value = _value(word)
        last = words[-1] if words else None
        if (
            last is not None
            and last.value is not None
            and (extension := _extend_number(last.value, before, word)) is not None
        ):
            words[-1] = _Word(last.start, end, _key(extension), "number", last.weight, extension)
        elif value is not None:
            words.append(_Word(start, end, _key(value), "number", idf(stem(word)), value))
        else:
            kind = ""
            if word in _MONTHS and text[start].isupper():
                kind = "number"
            elif word in _NEGATIONS and not _no_negation(word, following):
                kind = "negation"
            elif text[start].isupper() and word not in STOP_WORDS:
                # A capital at the start of a sentence marks a name only if the next word has one too.
                kind = "name" if not opens or (following and text[following[0]].isupper()) else ""
            words.append(_Word(start, end, stem(word), kind, 0.0 if word in STOP_WORDS else idf(stem(word))))
        before = word
    return words


def _value(word: str) -> float | None:
    if word in _NUMBERS:
        return float(_NUMBERS[word])
    if not word[0].isdigit():
        return None
    try:
        return float(word.replace(",", ""))
    except ValueError:  # 1.2.3
        return None


def _extend_number(value: float, before: str, word: str) -> float | None:
    """The number extended by this word ("two" and "million"), or None if the word does not extend it."""
    if word in _SCALES:
        return value * _SCALES[word]
    if _NUMBERS.get(before, 0) >= 20 and 0 < _NUMBERS.get(word, 0) < 10:
        return value + _NUMBERS[word]
    return None


def _key(value: float) -> str:
    return f"{value:.10g}"


def _no_negation(word: str, following: tuple[int, int, str] | None) -> bool:
    """Whether the word negates nothing, as in "No. 5" and "not only"."""
    return following is not None and (
        (word == "no" and following[2][0].isdigit()) or (word == "not" and following[2] == "only")
    )
