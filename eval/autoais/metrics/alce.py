"""Citation recall and precision as ALCE defines them (Gao et al. 2023), normalised, and strict as in its eval.py."""

from collections.abc import Iterable, Iterator, Sequence

from autoais.base.markers.alce import StrictSentence, select_documents
from autoais.metrics.claims import CitedClaim, JudgedClaim
from autoais.metrics.rates import Ratio
from autoais.metrics.scores import CitationScores


def precision_outcomes(claim: JudgedClaim) -> Iterator[bool | None]:
    """Yield whether each citation counts: all support the claim together, and it does alone or the rest do not.

    None if that depends on an undecided judgement.
    """
    union = claim.union.verdict.ais
    for citation, remainder in zip(claim.per_citation, claim.leave_one_out, strict=True):
        if union is not True or citation.verdict.ais is True:
            yield union
            continue
        remainder_outcome = None if remainder is None else remainder.verdict.ais
        yield citation.verdict.ais if remainder_outcome is True else None if remainder_outcome is None else True


def add(
    scores: CitationScores, answer: Iterable[JudgedClaim], unresolved: int = 0, question: int | None = None
) -> None:
    """Add one answer, normalised: unresolved markers, of a claim or of the answer, are wrong citations.

    Read the result with `scores.macro_average(empty=0.0)`: an answer without sentences or citations scores 0.
    """
    claims = list(answer)
    wrong = unresolved + sum(claim.claim.unresolved for claim in claims)
    outcomes = [outcome for claim in claims for outcome in precision_outcomes(claim)]
    scores.add([claim.union.verdict.ais for claim in claims], outcomes + [False] * wrong, question)


def strict_claims(sentences: Iterable[StrictSentence], documents: Sequence[str]) -> list[CitedClaim]:
    """Return the claims that ALCE's eval.py judges.

    A sentence with any index above the documents cites nothing; citations beyond the third are dropped after that
    check; -1 is the last document. The hypothesis is the bare sentence, whatever the judge's template does with a
    question. Without documents the script fails at `[0]`; here `[0]` cites nothing.
    """
    return [CitedClaim(sentence.text, _strict_evidence(sentence.documents, documents)) for sentence in sentences]


def _strict_evidence(refs: tuple[int, ...], documents: Sequence[str]) -> tuple[str, ...]:
    indices = select_documents(refs, len(documents)) if documents else None
    return tuple(documents[ref] for ref in indices or ())


class StrictScores:
    """Scores answers by the rules of ALCE's eval.py, as fractions; the script prints them times 100.

    Undecided counts as not entailed, as the script knows only yes and no; if no claim with evidence was decided, there
    is no value. An answer without sentences is left out; one without citations has precision 0. An empty sentence or
    document is not entailed without a judge call, while the script asks its model.
    """

    def __init__(self) -> None:
        self.scores = CitationScores()
        self.left_out = self.undecided = self.decided = 0  # answers; claims with evidence

    def add(self, answer: Iterable[JudgedClaim], question: int | None = None) -> bool:
        """Add one answer, with the judged claims of `strict_claims`; False if it is left out.

        `question` is as in `Tally.add`.
        """
        claims = list(answer)
        if not claims:
            self.left_out += 1
            return False
        undecided = sum(claim.union.verdict.ais is None for claim in claims)
        self.undecided += undecided
        self.decided += sum(bool(claim.claim.evidence) for claim in claims) - undecided
        outcomes = [bool(outcome) for claim in claims for outcome in _strict_citations(claim)]
        # One wrong citation gives an answer without citations precision 0.
        self.scores.add([claim.union.verdict.ais is True for claim in claims], outcomes or [False], question)
        return True

    def macro_average(self) -> dict[str, Ratio]:
        """Return recall, precision and F1, means over the answers that were not left out."""
        return self.scores.macro_average()

    def records(self) -> dict[str, dict[str, object]]:
        """Return recall, precision and F1 as JSON, each with the counts of undecided sentences and answers left out."""
        counts: dict[str, object] = {"undecided_as_no": self.undecided, "left_out": self.left_out}
        if self.undecided and not self.decided:
            counts |= {"value": None, "interval95": None, "reason": "nothing was decided"}
        return {name: ratio.record() | counts for name, ratio in self.macro_average().items()}


def _strict_citations(claim: JudgedClaim) -> Iterator[bool]:
    is_supported = claim.union.verdict.ais is True
    for citation, remainder in zip(claim.per_citation, claim.leave_one_out, strict=True):
        is_needed = remainder is not None and remainder.verdict.ais is not True
        yield is_supported and (citation.verdict.ais is True or is_needed)
