"""HAGRID's rules (Kamalloo et al. 2023): every cited quote must support; sentence labels aggregate to answers."""

from collections.abc import Iterable

from autoais.metrics.claims import JudgedClaim, all_yes


def attributable(judged: JudgedClaim) -> bool | None:
    """Return whether every citation supports the sentence by itself; False if none is cited or one is unresolved."""
    if judged.claim.unresolved:
        return False
    return all_yes(judgement.verdict.ais for judgement in judged.alone)


def answer_attributable(labels: Iterable[bool | None]) -> bool | None:
    """Aggregate human labels of sentences: all must be attributable; None if a label is missing or there are none."""
    listed = list(labels)
    return None if not listed or None in listed else all(listed)


def answer_informative(labels: Iterable[bool | None]) -> bool | None:
    """Aggregate human labels of sentences: any informative one is enough; else None if one is missing or none given."""
    listed = list(labels)
    if any(listed):
        return True
    return None if not listed or None in listed else False
