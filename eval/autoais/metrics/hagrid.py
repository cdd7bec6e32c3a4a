"""HAGRID's rules (Kamalloo et al. 2023): every cited quote must support; sentence labels aggregate to answers."""

from autoais.metrics.claims import JudgedClaim, all_yes


def attributable(judged: JudgedClaim) -> bool | None:
    """Return whether every citation supports the sentence by itself; False if none is cited or one is unresolved."""
    if judged.claim.unresolved:
        return False
    return all_yes(judgement.verdict.ais for judgement in judged.alone)
