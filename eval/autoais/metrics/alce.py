"""Citation recall and precision as ALCE defines them (Gao et al. 2023), normalised, and strict as in its eval.py."""

from collections.abc import Iterable, Iterator, Sequence

from autoais.base.markers.alce import StrictSentence, judged_documents
from autoais.metrics.claims import CitedClaim, JudgedClaim
from autoais.metrics.rates import Ratio
from autoais.metrics.scores import CitationScores


def citations(judged: JudgedClaim) -> Iterator[bool | None]:
    """Yield whether each citation counts: all support the claim together, and it does alone or the rest do not.

    None if that depends on an undecided judgement.
    """
    whole = judged.union.verdict.ais
    for alone, rest in zip(judged.alone, judged.without, strict=True):
        if whole is not True or alone.verdict.ais is True:
            yield whole
            continue
        others = None if rest is None else rest.verdict.ais
        yield alone.verdict.ais if others is True else None if others is None else True


def add(
    scores: CitationScores, answer: Iterable[JudgedClaim], unresolved: int = 0, question: int | None = None
) -> None:
    """Add one answer, normalised: unresolved markers, of a claim or of the answer, are wrong citations.

    Read the result with `scores.averaged(empty=0.0)`: an answer without sentences or citations scores 0.
    """
    claims = list(answer)
    wrong = unresolved + sum(judged.claim.unresolved for judged in claims)
    counted = [outcome for judged in claims for outcome in citations(judged)]
    scores.add([judged.union.verdict.ais for judged in claims], counted + [False] * wrong, question)


def strict_claims(sentences: Iterable[StrictSentence], documents: Sequence[str]) -> list[CitedClaim]:
    """Return the claims that ALCE's eval.py judges.

    A sentence with any index above the documents cites nothing; citations beyond the third are dropped after that
    check; -1 is the last document. The hypothesis is the bare sentence, whatever the judge's template does with a
    question. Without documents the script fails at `[0]`; here `[0]` cites nothing.
    """
    return [CitedClaim(sentence.text, _strict_cited(sentence.documents, documents)) for sentence in sentences]


def _strict_cited(refs: tuple[int, ...], documents: Sequence[str]) -> tuple[str, ...]:
    judged = judged_documents(refs, len(documents)) if documents else None
    return tuple(documents[ref] for ref in judged or ())


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
        undecided = sum(judged.union.verdict.ais is None for judged in claims)
        self.undecided += undecided
        self.decided += sum(bool(judged.claim.cited) for judged in claims) - undecided
        outcomes = [bool(outcome) for judged in claims for outcome in _strict_citations(judged)]
        # One wrong citation gives an answer without citations precision 0.
        self.scores.add([judged.union.verdict.ais is True for judged in claims], outcomes or [False], question)
        return True

    def averaged(self) -> dict[str, Ratio]:
        """Return recall, precision and F1, means over the answers that were not left out."""
        return self.scores.averaged()

    def records(self) -> dict[str, dict[str, object]]:
        """Return recall, precision and F1 as JSON, each with the counts of undecided sentences and answers left out."""
        counts: dict[str, object] = {"undecided_as_no": self.undecided, "left_out": self.left_out}
        if self.undecided and not self.decided:
            counts |= {"value": None, "interval95": None, "reason": "nothing was decided"}
        return {name: ratio.record() | counts for name, ratio in self.averaged().items()}


def _strict_citations(judged: JudgedClaim) -> Iterator[bool]:
    whole = judged.union.verdict.ais is True
    for alone, rest in zip(judged.alone, judged.without, strict=True):
        needed = rest is not None and rest.verdict.ais is not True
        yield whole and (alone.verdict.ais is True or needed)
