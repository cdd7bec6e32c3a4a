"""HAGRID's rules (Kamalloo et al. 2023): every cited quote must support; sentence labels aggregate to answers."""

from autoais.metrics.claims import JudgedClaim, all_yes


def attributable(claim: JudgedClaim) -> bool | None:
    """Return whether every citation supports the sentence by itself; False if none is cited or one is unresolved."""
    if claim.claim.unresolved:
        return False
    return all_yes(judgement.verdict.ais for judgement in claim.per_citation)
