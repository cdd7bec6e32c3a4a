"""Citation recall and precision as ALCE defines them (Gao et al. 2023; spec F1), normalised and strict (F2)."""

from collections.abc import Iterable, Iterator, Sequence

from autoais.markers.alce import StrictSentence, judged_documents
from autoais.metrics.claims import CitedClaim, JudgedClaim
from autoais.metrics.rates import Ratio
from autoais.metrics.scores import CitationScores

AT_MOST = 3  # ALCE's `at_most_citations`


def citations(judged: JudgedClaim) -> Iterator[bool | None]:
    """Whether each citation counts: all together support the claim, and it does alone or the rest do not.

    None where that hangs on something undecided.
    """
    whole = judged.union.verdict.ais
    for alone, rest in zip(judged.alone, judged.without, strict=True):
        if whole is not True or alone.verdict.ais is True:
            yield whole
            continue
        others = None if rest is None else rest.verdict.ais
        yield alone.verdict.ais if others is True else None if others is None else True


def add(scores: CitationScores, answer: Iterable[JudgedClaim], unresolved: int = 0) -> None:
    """Count one answer, normalised: a marker that points nowhere, of a claim or of the answer, is a wrong citation.

    To be read with `scores.averaged(empty=0.0)`: an answer that says or cites nothing scores 0.
    """
    claims = list(answer)
    wrong = unresolved + sum(judged.claim.unresolved for judged in claims)
    counted = [outcome for judged in claims for outcome in citations(judged)]
    scores.add([judged.union.verdict.ais for judged in claims], counted + [False] * wrong)


def strict_claims(
    sentences: Iterable[StrictSentence], documents: Sequence[str], at_most: int | None = AT_MOST
) -> list[CitedClaim]:
    """What ALCE's script judges: a sentence with any number above the documents cites nothing, further citations
    than `at_most` are dropped after that check, and -1 is the last document (spec F2). The hypothesis is the bare
    sentence, whatever the judge's template makes of a question.

    Where there are no documents at all the script stops with an error at `[0]`; here that cites nothing.
    """
    return [CitedClaim(sentence.text, _strict_cited(sentence.documents, documents, at_most)) for sentence in sentences]


def _strict_cited(refs: tuple[int, ...], documents: Sequence[str], at_most: int | None) -> tuple[str, ...]:
    judged = judged_documents(refs, len(documents), at_most) if documents else None
    return tuple(documents[ref] for ref in judged or ())


class StrictScores:
    """Gathers answers by the rules of ALCE's script; what it prints is this times 100.

    Undecided is not entailed, an answer without sentences is left out, one without citations has precision 0. An
    empty sentence or document is never put to the judge (it is not entailed), where the script asks its model.
    """

    def __init__(self) -> None:
        self._scores = CitationScores()
        self.left_out = self.undecided = 0

    def add(self, answer: Iterable[JudgedClaim]) -> None:
        """Count one answer, its claims made by `strict_claims`."""
        claims = list(answer)
        if not claims:
            self.left_out += 1
            return
        self.undecided += sum(judged.union.verdict.ais is None for judged in claims)
        outcomes = [bool(outcome) for judged in claims for outcome in _strict_citations(judged)]
        # An answer without citations has precision 0, which one wrong citation gives it.
        self._scores.add([judged.union.verdict.ais is True for judged in claims], outcomes or [False])

    def averaged(self) -> dict[str, Ratio]:
        """Recall, precision and F1, means over the answers that were not left out."""
        return self._scores.averaged()

    def records(self) -> dict[str, dict[str, object]]:
        """Recall, precision and F1 as JSON, each with the undecided sentences and the answers left out."""
        told = {"undecided_as_no": self.undecided, "left_out": self.left_out}
        return {name: ratio.record() | told for name, ratio in self.averaged().items()}


def _strict_citations(judged: JudgedClaim) -> Iterator[bool]:
    whole = judged.union.verdict.ais is True
    for alone, rest in zip(judged.alone, judged.without, strict=True):
        needed = rest is not None and rest.verdict.ais is not True
        yield whole and (alone.verdict.ais is True or needed)
