"""Claims judged against all their citations, each citation alone, and all but one: input of the citation metrics."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from autoais.base.types import Attribution, Judge, Judgement, Place

_PAIRS = 1024  # leave-one-out pairs held at once: a sentence may have very many citations


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A sentence without markers, and the texts it cites, one per citation, in order.

    `unresolved` counts its unresolved markers. `question` is the question of the answer, empty if unknown. `position`
    is where it stands, with the ids of what it cites in the order of `evidence`; None for a claim of no answer.
    """

    text: str
    evidence: tuple[str, ...] = ()
    unresolved: int = 0
    question: str = ""
    position: Place | None = None

    def against(self, evidence: tuple[str, ...]) -> Attribution:
        """Return the claim with some of its evidence."""
        return Attribution(self.text, evidence, self.question)

    def pair(self, indices: Sequence[int]) -> "PlacedPair":
        """Return the claim with the citations at these places of `evidence`, and where they stand."""
        position = self.position
        if position is not None:
            position = Place(position.answer, position.sentence, tuple(position.passages[index] for index in indices))
        return self.against(tuple(self.evidence[index] for index in indices)), position


PlacedPair = tuple[Attribution, Place | None]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """The judgements of a claim: `union` of all its citations, then of each (`per_citation`) and of all but each.

    `per_citation` and `leave_one_out` have one entry per citation, or are empty if not requested. An entry of
    `leave_one_out` is None if it is not needed: the citation supports the claim alone, or all together do not.
    """

    claim: CitedClaim
    union: Judgement
    per_citation: tuple[Judgement, ...] = ()
    leave_one_out: tuple[Judgement | None, ...] = ()


def all_yes(outcomes: Iterable[bool | None]) -> bool | None:
    """Return whether all outcomes are yes: False if there are none or one is no, else None if one is undecided."""
    values = list(outcomes)
    if not values or False in values:
        return False
    return None if None in values else True


def judge_claims(judge: Judge, claims: Sequence[CitedClaim], *, per_citation: bool = True) -> list[JudgedClaim]:
    """Judge claims against all their citations and, with `per_citation`, against single citations and all but one.

    Takes two rounds, each of which judges every distinct pair once; a cache does so across rounds and calls.
    """
    first = [pair for claim in claims for pair in _first_round(claim, per_citation=per_citation)]
    judgements = iter(_judge(judge, first))
    judged_claims = []
    for claim in claims:
        union = next(judgements)
        if per_citation and len(claim.evidence) > 1:
            judged_claims.append(JudgedClaim(claim, union, tuple(islice(judgements, len(claim.evidence)))))
        else:
            judged_claims.append(JudgedClaim(claim, union, (union,) * len(claim.evidence) if per_citation else ()))
    return _leave_out(judge, judged_claims) if per_citation else judged_claims


def _judge(judge: Judge, pairs: Sequence[PlacedPair]) -> list[Judgement]:
    """The judgements of pairs, in order: what is known of a place goes before what follows from the texts."""
    known_judgements = [None if position is None else judge.of_place(position, pair) for pair, position in pairs]
    missing = [number for number, judgement in enumerate(known_judgements) if judgement is None]
    new_judgements = dict(zip(missing, judge.judge([pairs[number][0] for number in missing]), strict=True))
    return [
        new_judgements[number] if judgement is None else judgement for number, judgement in enumerate(known_judgements)
    ]


def _first_round(claim: CitedClaim, *, per_citation: bool) -> Iterator[PlacedPair]:
    yield claim.pair(range(len(claim.evidence)))
    if per_citation and len(claim.evidence) > 1:
        yield from (claim.pair((index,)) for index in range(len(claim.evidence)))


def _leave_out(judge: Judge, judged_claims: Sequence[JudgedClaim]) -> list[JudgedClaim]:
    leave_one_out: list[list[Judgement | None]] = [[None] * len(item.per_citation) for item in judged_claims]
    jobs = ((row, index) for row, item in enumerate(judged_claims) for index in _to_leave_out(item))
    while batch := list(islice(jobs, _PAIRS)):
        open_jobs = []
        for row, index in batch:
            item = judged_claims[row]
            if len(item.per_citation) == 2:  # the rest is the other citation, already judged
                leave_one_out[row][index] = item.per_citation[1 - index]
            else:
                open_jobs.append((row, index))
        pairs = []
        for row, index in open_jobs:
            claim = judged_claims[row].claim
            pairs.append(claim.pair([other for other in range(len(claim.evidence)) if other != index]))
        for (row, index), judgement in zip(open_jobs, _judge(judge, pairs), strict=True):
            leave_one_out[row][index] = judgement
    return [
        JudgedClaim(item.claim, item.union, item.per_citation, tuple(judgements))
        for item, judgements in zip(judged_claims, leave_one_out, strict=True)
    ]


def _to_leave_out(item: JudgedClaim) -> Iterator[int]:
    if item.union.verdict.ais is True and len(item.per_citation) > 1:
        yield from (index for index, judgement in enumerate(item.per_citation) if judgement.verdict.ais is not True)
