"""Encoding of claim-evidence pairs for the embedded judge: word pieces, each with a type that marks shared words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autoais.base.errors import UserError
from autoais.base.models.onnx import open_tokenizer
from autoais.base.text.excerpt import (
    BUDGET,
    EvidenceTexts,
    excerpt,
    find_words_in,
    find_words_outside,
    shorten,
    text_of,
)
from autoais.base.text.words import content_stems
from autoais.base.types import Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_UNREADABLE = re.compile(r"[\x00-\x08\ud800-\udfff]")
CLAIM, CLAIM_ONLY, EVIDENCE, EVIDENCE_SHARED = range(4)
TYPES = 4
MAX_LENGTH = 256  # word pieces of claim and evidence together
MAX_CLAIM = 128


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Word-piece ids and types, character offsets of the claim's pieces, and spans of the evidence that was read.

    Layout: [CLS] claim [SEP] [CLS] evidence [SEP]. Types: 0 claim, 1 content word of the claim that is missing from the
    whole evidence, 2 evidence, 3 content word of the evidence that occurs in the claim.
    """

    ids: list[int]
    types: list[int]
    claim_offsets: list[tuple[int, int]]
    spans: tuple[Span, ...]


class PairEncoder:
    """An encoder of pairs, used both for training and for judging."""

    def __init__(self, tokenizer: "Tokenizer", max_length: int = MAX_LENGTH, budget: int = BUDGET) -> None:
        self._tokenizer = tokenizer
        self._cls, self._sep = (self._special(mark) for mark in ("[CLS]", "[SEP]"))
        self.max_length = max_length
        self.budget = budget

    @classmethod
    def from_file(cls, path: Path, max_length: int = MAX_LENGTH, budget: int = BUDGET) -> "PairEncoder":
        """An encoder with the tokenizer of a `tokenizer.json`; raises `UserError` if it cannot be read."""
        return cls(open_tokenizer(path), max_length, budget)

    def _special(self, mark: str) -> int:
        number: int | None = self._tokenizer.token_to_id(mark)
        if number is None:
            raise UserError(f"the judge's tokenizer has no {mark}; it is not BERT's")
        return number

    def length(self, text: str) -> int:
        """The number of word pieces of a text."""
        return len(self._tokenizer.encode(readable(text), add_special_tokens=False).ids)

    def plain(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """Ids and types of two whole texts, without marks for shared words, for their similarity alone.

        Each side has at most `MAX_CLAIM` word pieces including [CLS] and [SEP].
        """
        sides = [self._tokenizer.encode(readable(text), add_special_tokens=False).ids for text in (first, second)]
        ids: list[int] = []
        types: list[int] = []
        for side, mark in zip(sides, (CLAIM, EVIDENCE), strict=True):
            ids += [self._cls, *side[: MAX_CLAIM - 2], self._sep]
            types += [mark] * (min(len(side), MAX_CLAIM - 2) + 2)
        return ids, types

    def encode(self, claim: str, evidence: Sequence[str] | EvidenceTexts) -> EncodedPair:
        """The encoded pair. A claim longer than `MAX_CLAIM` pieces is truncated, so callers split it first."""
        evidence_texts = evidence if isinstance(evidence, EvidenceTexts) else EvidenceTexts(evidence)
        spans = excerpt(claim, evidence_texts, self.budget)
        text = readable(text_of(spans, evidence_texts.texts))
        claim = readable(claim)
        claim_encoding = self._tokenizer.encode(claim, add_special_tokens=False)
        evidence_encoding = self._tokenizer.encode(text, add_special_tokens=False)
        claim_ids, claim_offsets = claim_encoding.ids[:MAX_CLAIM], claim_encoding.offsets[:MAX_CLAIM]
        room = self.max_length - 4 - len(claim_ids)
        stems = frozenset(content_stems(claim))
        claim_types = assign_types(claim_offsets, find_words_outside(claim, evidence_texts.stems), CLAIM, CLAIM_ONLY)
        right_offsets = evidence_encoding.offsets[:room]
        if len(evidence_encoding.ids) > room:  # scripts with many pieces per word
            spans = shorten(spans, evidence_texts.texts, right_offsets[-1][1] if right_offsets else 0)
        right_types = assign_types(right_offsets, find_words_in(text, stems), EVIDENCE, EVIDENCE_SHARED)
        return EncodedPair(
            [self._cls, *claim_ids, self._sep, self._cls, *evidence_encoding.ids[:room], self._sep],
            [CLAIM, *claim_types, CLAIM, EVIDENCE, *right_types, EVIDENCE],
            claim_offsets,
            spans,
        )


def readable(text: str) -> str:
    """The text with control characters and lone surrogates replaced by spaces; its length is unchanged."""
    return _UNREADABLE.sub(" ", text)


def assign_types(
    offsets: Sequence[tuple[int, int]], words: Sequence[tuple[int, int]], other_type: int, word_type: int
) -> list[int]:
    """Return a type per piece: `word_type` if it lies in one of the words, else `other_type`; both lists are sorted."""
    types = []
    index = 0
    for start, end in offsets:
        while index < len(words) and words[index][1] <= start:
            index += 1
        types.append(word_type if index < len(words) and words[index][0] < end else other_type)
    return types
