"""`lexical` counts words: the baseline that any other judge must beat."""

from collections.abc import Sequence

from autoais.errors import UserError
from autoais.types import Attribution, Judgement, Verdict
from autoais.words import content_stems, idf


class LexicalJudge:
    """IDF-weighted share of the claim's content words that stand in the evidence, at least `threshold`.

    Blind where claim and evidence share their words and differ in one number, name or negation; a report must
    call it by its name and never plain "AutoAIS".
    """

    def __init__(self, threshold: float = 0.6) -> None:
        if not 0 < threshold <= 1:
            raise UserError(f"lexical threshold {threshold}: must be above 0 and at most 1")
        self.threshold = threshold

    @property
    def name(self) -> str:
        """Revision of the word table, threshold and hypothesis template (the bare statement)."""
        return f"lexical@1/{self.threshold!r}/statement.v1"

    def judge(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge by weighted overlap; a claim without content words is undecided."""
        return [self._one(attribution) for attribution in attributions]

    def _one(self, attribution: Attribution) -> Judgement:
        claim = dict.fromkeys(content_stems(attribution.claim))
        if not claim:
            return Judgement(Verdict.UNDECIDED, None, "the claim has no content words")
        evidence = {stem for text in attribution.evidence for stem in content_stems(text)}
        weights = {stem: idf(stem) for stem in claim}
        share = sum(weight for stem, weight in weights.items() if stem in evidence) / sum(weights.values())
        verdict = Verdict.ATTRIBUTABLE if share >= self.threshold else Verdict.NOT_ATTRIBUTABLE
        return Judgement(verdict, share)
