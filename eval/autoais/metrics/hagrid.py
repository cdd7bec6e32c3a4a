"""HAGRID's rules (Kamalloo et al. 2023; spec B3): every cited quote must support, and labels rolled up to answers."""

from collections.abc import Iterable

from autoais.metrics.claims import JudgedClaim, all_yes


def attributable(judged: JudgedClaim) -> bool | None:
    """Whether every citation supports the sentence by itself; no citation, or one that points nowhere, is a no."""
    if judged.claim.unresolved:
        return False
    return all_yes(judgement.verdict.ais for judgement in judged.alone)


def answer_attributable(labels: Iterable[bool | None]) -> bool | None:
    """People's labels of the sentences rolled up: all are; None where any is missing, or there are none."""
    listed = list(labels)
    return None if not listed or None in listed else all(listed)


def answer_informative(labels: Iterable[bool | None]) -> bool | None:
    """People's labels of the sentences rolled up: any is; else None where any is missing, or there are none."""
    listed = list(labels)
    if any(listed):
        return True
    return None if not listed or None in listed else False
