"""The evaluator's sentence splitter is the system's too, so that both mean the same by a sentence."""

from functools import lru_cache

from autoais.text.sentences import sentence_spans
from autoais.text.words import content_stems, idf

__all__ = ["nearest_sentence", "sentence_spans"]


def nearest_sentence(text: str, claim: str) -> tuple[int, int] | None:
    """`(start, end)` of the sentence of a text that shares the most with a claim, the first of equals.

    Shared content words (stems) count by how rare they are (idf), each once; None where no sentence shares any.
    """
    said = {stem: idf(stem) for stem in content_stems(claim)}
    best, most = None, 0.0
    for start, end, stems in _stems(text):
        shared = sum(sorted(said[stem] for stem in stems & said.keys()))  # in one order, whatever the set's
        if shared > most:
            best, most = (start, end), shared
    return best


@lru_cache(256)
def _stems(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    return tuple((start, end, frozenset(content_stems(text[start:end]))) for start, end in sentence_spans(text))
