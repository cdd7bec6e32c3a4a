"""Exact match and F1 as in SQuAD, and `has_answer` as in DPR."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from autoais.base.text.folding import combining_marks, normalize_answer


def exact_match(answer: str, references: Sequence[str]) -> float:
    """Return 1.0 if the normalised answer equals any normalised reference, else 0.0 (SQuAD's EM as a fraction)."""
    return float(any(normalize_answer(answer) == normalize_answer(reference) for reference in references))


def f1(answer: str, references: Sequence[str], *, empty: float = 1.0) -> float:
    """Return the best token F1 of the answer against any reference, 0 to 1 (SQuAD's F1 as a fraction); 0.0 without any.

    `empty` is the F1 of two texts that normalise to nothing: 1 in SQuAD 2.0's script, 0 in 1.1's and in t5's, which
    Attributed QA used. Exact match is 1 in all of them.
    """
    return max((_token_f1(answer, reference, empty) for reference in references), default=0.0)


def _token_f1(answer: str, reference: str, empty: float) -> float:
    answer_tokens, reference_tokens = normalize_answer(answer).split(), normalize_answer(reference).split()
    if not answer_tokens or not reference_tokens:
        return empty if answer_tokens == reference_tokens else 0.0
    common = sum((Counter(answer_tokens) & Counter(reference_tokens)).values())
    return 2 * common / (len(answer_tokens) + len(reference_tokens))


def has_answer(text: str, references: Iterable[str]) -> bool:
    """Return whether any reference occurs in the text as a sequence of whole tokens, case-folded.

    As in DPR's `has_answer`: NFD; a token is a run of letters, numbers and marks, or one other visible character.
    """
    haystack = _pad_words(text)
    return any(needle in haystack for needle in map(_pad_words, references) if needle.strip())


def answer_spans(text: str, references: Iterable[str]) -> list[tuple[int, int]]:
    """Return the character offsets of the references in the text, as `has_answer` finds them, in order, each once."""
    offsets = [(m.start(), m.end()) for m in _token().finditer(text) if _visible(m.group())]
    tokens = [_fold(text[start:end]) for start, end in offsets]
    spans = set()
    for needle in {tuple(map(_fold, filter(_visible, _token().findall(reference)))) for reference in references} - {()}:
        for index in range(len(tokens) - len(needle) + 1):
            if tuple(tokens[index : index + len(needle)]) == needle:
                spans.add((offsets[index][0], offsets[index + len(needle) - 1][1]))
    return sorted(spans)


def _fold(token: str) -> str:
    return unicodedata.normalize("NFD", token).casefold()


@cache
def _token() -> re.Pattern[str]:
    return re.compile(rf"(?:[^\W_]|[{re.escape(combining_marks())}])+|[^\w\s]|_")


def _visible(token: str) -> bool:
    """Whether a token is no character of control or format, which DPR skips."""
    return token[0].isprintable()


def _pad_words(text: str) -> str:
    folded_text = unicodedata.normalize("NFD", text).casefold()
    return f" {' '.join(filter(_visible, _token().findall(folded_text)))} "
