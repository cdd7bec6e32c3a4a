"""Claims judged against all their citations, each citation alone, and all but one: input of the citation metrics."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from autoais.base.types import Attribution, Judge, Judgement, Place

_PAIRS = 1024  # leave-one-out pairs held at once: a sentence may have very many citations


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A sentence without markers, and the texts it cites, one per citation, in order.

    `unresolved` counts its unresolved markers. `question` is the question of the answer, empty if unknown. `place` is
    where it stands, with the ids of what it cites in the order of `cited`; None for a claim of no answer.
    """

    text: str
    cited: tuple[str, ...] = ()
    unresolved: int = 0
    question: str = ""
    place: Place | None = None

    def against(self, evidence: tuple[str, ...]) -> Attribution:
        """Return the claim with some of its evidence."""
        return Attribution(self.text, evidence, self.question)

    def pair(self, places: Sequence[int]) -> "PlacedPair":
        """Return the claim with the citations at these places of `cited`, and where they stand."""
        place = self.place
        if place is not None:
            place = Place(place.answer, place.sentence, tuple(place.passages[one] for one in places))
        return self.against(tuple(self.cited[one] for one in places)), place


PlacedPair = tuple[Attribution, Place | None]


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
    judgements = iter(_judge(judge, first))
    judged = []
    for claim in claims:
        union = next(judgements)
        if each and len(claim.cited) > 1:
            judged.append(JudgedClaim(claim, union, tuple(islice(judgements, len(claim.cited)))))
        else:
            judged.append(JudgedClaim(claim, union, (union,) * len(claim.cited) if each else ()))
    return _leave_out(judge, judged) if each else judged


def _judge(judge: Judge, pairs: Sequence[PlacedPair]) -> list[Judgement]:
    """The judgements of pairs, in order: what is known of a place goes before what follows from the texts."""
    known = [None if place is None else judge.of_place(place, pair) for pair, place in pairs]
    asked = [number for number, one in enumerate(known) if one is None]
    found = dict(zip(asked, judge.judge([pairs[number][0] for number in asked]), strict=True))
    return [found[number] if one is None else one for number, one in enumerate(known)]


def _first_round(claim: CitedClaim, *, each: bool) -> Iterator[PlacedPair]:
    yield claim.pair(range(len(claim.cited)))
    if each and len(claim.cited) > 1:
        yield from (claim.pair((place,)) for place in range(len(claim.cited)))


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
        pairs = []
        for row, place in asked:
            claim = judged[row].claim
            pairs.append(claim.pair([one for one in range(len(claim.cited)) if one != place]))
        for (row, place), judgement in zip(asked, _judge(judge, pairs), strict=True):
            without[row][place] = judgement
    return [
        JudgedClaim(item.claim, item.union, item.alone, tuple(rest)) for item, rest in zip(judged, without, strict=True)
    ]


def _to_leave_out(item: JudgedClaim) -> Iterator[int]:
    if item.union.verdict.ais is True and len(item.alone) > 1:
        yield from (place for place, judgement in enumerate(item.alone) if judgement.verdict.ais is not True)
