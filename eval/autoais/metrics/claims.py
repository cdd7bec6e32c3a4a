"""Claims judged against all their citations, each citation alone, and all but one: input of the citation metrics."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from autoais.types import Attribution, Judge, Judgement

_PAIRS = 1024  # leave-one-out pairs held at once: a sentence may have very many citations


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A sentence without markers, and the texts it cites, one per citation, in order.

    `unresolved` counts its unresolved markers. `question` is the question of the answer, empty if unknown.
    """

    text: str
    cited: tuple[str, ...] = ()
    unresolved: int = 0
    question: str = ""

    def against(self, evidence: tuple[str, ...]) -> Attribution:
        """Return the claim with some of its evidence."""
        return Attribution(self.text, evidence, self.question)


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """The judgements of a claim against all its citations (`union`), each citation `alone`, and all `without` one.

    `alone` and `without` have one entry per citation, or are empty if not requested. An entry of `without` is None if
    it is not needed: the citation supports the claim alone, or all together do not.
    """

    claim: CitedClaim
    union: Judgement
    alone: tuple[Judgement, ...] = ()
    without: tuple[Judgement | None, ...] = ()


def all_yes(outcomes: Iterable[bool | None]) -> bool | None:
    """Return whether all outcomes are yes: False if there are none or one is no, else None if one is undecided."""
    listed = list(outcomes)
    if not listed or False in listed:
        return False
    return None if None in listed else True


def judge_claims(judge: Judge, claims: Sequence[CitedClaim], *, each: bool = True) -> list[JudgedClaim]:
    """Judge claims against all their citations and, with `each`, against single citations and all but one.

    Takes two rounds, each of which judges every distinct pair once; a cache does so across rounds and calls.
    """
    first = [pair for claim in claims for pair in _first_round(claim, each=each)]
    judgements = iter(judge.judge(first))
    judged = []
    for claim in claims:
        union = next(judgements)
        if each and len(claim.cited) > 1:
            judged.append(JudgedClaim(claim, union, tuple(islice(judgements, len(claim.cited)))))
        else:
            judged.append(JudgedClaim(claim, union, (union,) * len(claim.cited) if each else ()))
    return _leave_out(judge, judged) if each else judged


def _first_round(claim: CitedClaim, *, each: bool) -> Iterator[Attribution]:
    yield claim.against(claim.cited)
    if each and len(claim.cited) > 1:
        yield from (claim.against((text,)) for text in claim.cited)


def _leave_out(judge: Judge, judged: Sequence[JudgedClaim]) -> list[JudgedClaim]:
    without: list[list[Judgement | None]] = [[None] * len(item.alone) for item in judged]
    wanted = ((row, place) for row, item in enumerate(judged) for place in _to_leave_out(item))
    while batch := list(islice(wanted, _PAIRS)):
        asked = []
        for row, place in batch:
            item = judged[row]
            if len(item.alone) == 2:  # the rest is the other citation, already judged
                without[row][place] = item.alone[1 - place]
            else:
                asked.append((row, place))
        claims = [judged[row].claim for row, _ in asked]
        pairs = [
            claim.against(claim.cited[:place] + claim.cited[place + 1 :])
            for claim, (_, place) in zip(claims, asked, strict=True)
        ]
        for (row, place), judgement in zip(asked, judge.judge(pairs), strict=True):
            without[row][place] = judgement
    return [
        JudgedClaim(item.claim, item.union, item.alone, tuple(rest)) for item, rest in zip(judged, without, strict=True)
    ]


def _to_leave_out(item: JudgedClaim) -> Iterator[int]:
    if item.union.verdict.ais is True and len(item.alone) > 1:
        yield from (place for place, judgement in enumerate(item.alone) if judgement.verdict.ais is not True)
