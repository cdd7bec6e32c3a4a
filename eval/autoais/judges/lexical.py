"""`lexical` counts words: the baseline that any other judge must beat."""

from collections.abc import Sequence

from autoais.errors import UserError
from autoais.judges.reading import excerpt
from autoais.judges.templates import template as hypothesis_template
from autoais.text.words import content_stems, idf
from autoais.types import Attribution, Judgement, Verdict


class LexicalJudge:
    """IDF-weighted share of the claim's content words that stand in the evidence, at least `threshold`.

    All evidence counts, however far apart its words stand; `Judgement.evidence` are the sentences that hold most of
    them (`reading.excerpt`). `template` makes the claim (`judges.templates`). Blind where claim and evidence share
    their words and differ in one number, name or negation; a report must call it by its name and never plain "AutoAIS".
    """

    def __init__(self, threshold: float = 0.6, *, template: str = "statement.v1") -> None:
        if not 0 < threshold <= 1:
            raise UserError(f"lexical threshold {threshold}: must be above 0 and at most 1")
        self.threshold = threshold
        self._template, self._hypothesis = template, hypothesis_template(template)

    @property
    def name(self) -> str:
        """Revision of the rules for words, threshold and hypothesis template."""
        return f"lexical@2/{self.threshold!r}/{self._template}"

    def judge(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge by weighted overlap; a claim without content words is undecided."""
        return [self._one(attribution) for attribution in attributions]

    def _one(self, attribution: Attribution) -> Judgement:
        hypothesis = self._hypothesis(attribution)
        claim = dict.fromkeys(content_stems(hypothesis))
        if not claim:
            return Judgement(Verdict.UNDECIDED, None, "the claim has no content words")
        evidence = {stem for text in attribution.evidence for stem in content_stems(text)}
        weights = {stem: idf(stem) for stem in claim}
        share = sum(weight for stem, weight in weights.items() if stem in evidence) / sum(weights.values())
        verdict = Verdict.ATTRIBUTABLE if share >= self.threshold else Verdict.NOT_ATTRIBUTABLE
        spans = excerpt(hypothesis, attribution.evidence) if verdict is Verdict.ATTRIBUTABLE else ()
        return Judgement(verdict, share, None, spans)
