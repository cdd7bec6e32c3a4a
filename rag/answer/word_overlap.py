"""Words that two texts share, weighted by how rare they are (idf)."""

from functools import lru_cache

from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import content_stems, idf


def word_weights(text: str) -> dict[str, float]:
    """Return the idf of each content stem of a text."""
    return {stem: idf(stem) for stem in content_stems(text)}


def overlap(weights: dict[str, float], text: str) -> float:
    """The share of the weighted words that occur in the text, 0 to 1."""
    total = sum(weights.values())
    stems = set(content_stems(text)) if total else set()
    return sum(weight for stem, weight in weights.items() if stem in stems) / total if total else 0.0


def nearest_sentence(text: str, claim: str) -> tuple[int, int] | None:
    """The span of the sentence that shares most with a claim, or None if no sentence shares a content word.

    Each shared stem counts once with its idf; ties go to the first sentence.
    """
    weights = word_weights(claim)
    best, best_weight = None, 0.0
    for start, end, stems in _sentence_stems(text):
        weight = sum(sorted(weights[stem] for stem in stems & weights.keys()))  # sorted: float sums depend on order
        if weight > best_weight:
            best, best_weight = (start, end), weight
    return best


@lru_cache(256)
def _sentence_stems(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    return tuple((start, end, frozenset(content_stems(text[start:end]))) for start, end in sentence_spans(text))
