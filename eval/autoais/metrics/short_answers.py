"""Exact match and F1 as SQuAD defines them, and whether a text holds an answer as DPR defines it."""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """SQuAD's normalisation: lower case, drop ASCII punctuation, drop a/an/the, squeeze white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, references: Sequence[str]) -> float:
    """1.0 if the normalised answer equals any normalised reference, else 0.0 (SQuAD EM as a fraction)."""
    return float(any(normalize_answer(answer) == normalize_answer(reference) for reference in references))


def f1(answer: str, references: Sequence[str], *, nothing: float = 1.0) -> float:
    """Largest token F1 of the answer against a reference, 0 to 1 (SQuAD F1 as a fraction); 0.0 without any.

    `nothing` is the F1 of two texts of which the normalisation leaves nothing: 1 in SQuAD 2.0's script, 0 in 1.1's
    and in t5's, which Attributed QA was scored with. Exact match is 1 in all of them.
    """
    return max((_token_f1(answer, reference, nothing) for reference in references), default=0.0)


def _token_f1(answer: str, reference: str, nothing: float) -> float:
    ours, theirs = normalize_answer(answer).split(), normalize_answer(reference).split()
    if not ours or not theirs:
        return nothing if ours == theirs else 0.0
    common = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * common / (len(ours) + len(theirs))


def has_answer(text: str, references: Iterable[str]) -> bool:
    """Whether any reference stands in the text as a run of whole tokens, case-folded.

    As DPR's has_answer: NFD, a token is a run of letters, numbers and marks, or one other visible character.
    """
    haystack = _padded(text)
    return any(needle in haystack for needle in map(_padded, references) if needle.strip())


def answer_spans(text: str, references: Iterable[str]) -> list[tuple[int, int]]:
    """Where the references stand in the text, as `has_answer` finds them: character offsets, in order, each once."""
    places = [(m.start(), m.end()) for m in _token().finditer(text)]
    folded = [_folded(text[start:end]) for start, end in places]
    found = set()
    for needle in {tuple(map(_folded, _token().findall(reference))) for reference in references} - {()}:
        for at in range(len(folded) - len(needle) + 1):
            if tuple(folded[at : at + len(needle)]) == needle:
                found.add((places[at][0], places[at + len(needle) - 1][1]))
    return sorted(found)


def _folded(token: str) -> str:
    return unicodedata.normalize("NFD", token).casefold()


@cache
def _token() -> re.Pattern[str]:
    # Python's \w has no combining marks; without them an accent would end a word.
    marks = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c).startswith("M"))
    return re.compile(rf"(?:[^\W_]|[{re.escape(marks)}])+|[^\w\s]|_")


def _padded(text: str) -> str:
    return f" {' '.join(_token().findall(unicodedata.normalize('NFD', text).casefold()))} "
