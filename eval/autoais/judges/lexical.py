"""`lexical`: word overlap, the baseline that every other judge must beat."""

from collections.abc import Sequence

from autoais.base.errors import UserError
from autoais.base.text.excerpt import EvidenceTexts, excerpt
from autoais.base.text.words import content_stems, idf
from autoais.base.types import Attribution, Judge, Judgement, Verdict
from autoais.judges.partial import check_partial_from, partial_suffix, with_partial
from autoais.judges.templates import template as hypothesis_template


class LexicalJudge(Judge):
    """Attributable if the IDF-weighted share of the claim's content words found in the evidence reaches `threshold`.

    The default has the highest macro-F1 on AttributionBench dev, as that of the judge `minilm` has. A word counts if it
    occurs anywhere in the evidence. `Judgement.evidence` holds the sentences with most of the words
    (`text.excerpt.excerpt`). With `partial_from`, a claim below the threshold is partially attributable from that share
    on. `template` builds the hypothesis (`judges.templates`). The judge misses a single changed number, name or
    negation; reports must call it by its name, never just "AutoAIS".
    """

    def __init__(
        self, threshold: float = 0.7, *, template: str = "statement.v1", partial_from: float | None = None
    ) -> None:
        if not 0 < threshold <= 1:
            raise UserError(f"lexical threshold {threshold}: must be above 0 and at most 1")
        check_partial_from(partial_from, threshold)
        self.threshold, self.partial_from = threshold, partial_from
        self._template, self._hypothesis = template, hypothesis_template(template)

    @property
    def name(self) -> str:
        """`lexical@<revision of the word rules>/<threshold>/<hypothesis template>`, `+partial<from>` if set."""
        return f"lexical@2/{self.threshold!r}/{self._template}{partial_suffix(self.partial_from)}"

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge by weighted word overlap; a claim without content words is undecided."""
        return [self._one(attribution) for attribution in attributions]

    def _one(self, attribution: Attribution) -> Judgement:
        hypothesis = self._hypothesis(attribution)
        claim = dict.fromkeys(content_stems(hypothesis))
        if not claim:
            return Judgement(Verdict.UNDECIDED, None, "the claim has no content words")
        evidence = EvidenceTexts(attribution.evidence)
        weights = {stem: idf(stem) for stem in claim}
        share = sum(weight for stem, weight in weights.items() if stem in evidence.stems) / sum(weights.values())
        verdict = Verdict.ATTRIBUTABLE if share >= self.threshold else Verdict.NOT_ATTRIBUTABLE
        spans = excerpt(hypothesis, evidence) if verdict is Verdict.ATTRIBUTABLE else ()
        return with_partial(Judgement(verdict, share, None, spans), self.partial_from)
