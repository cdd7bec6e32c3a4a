"""Which units of the hits that were read an answer quotes: neighbours around the best unit of the best passages."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from autoais.base.text.words import content_stems
from rag.answer.generators.readings import ReadHit
from rag.answer.generators.units import CODE, ITEM, ROW, SENTENCE, Unit, entry_of

# Chosen on the part `dev` of own-documents and on reader-validation.jsonl (eval/recipes), and some before that on every
# eighth question of nq_pool_dev:
_WORDS = 120  # of an answer, unless a single unit is longer
_EARLY = 60  # words of a stretch from which on it only grows forwards, so that its best unit comes early
_MOST = 3  # passages quoted

# Chosen on 715 questions about everyday documents (eval/recipes/everyday, six collections), `everyday-dev`, the part
# `dev` of own-documents and every third question of the validation:
_AROUND = 60  # words quoted around a certain short answer; its sentence alone is right less often
_WORTH = 0.01  # minimum weight of the next passage, as a share of the best one's; less adds words, but no right answers

# Set by hand, not by measurement:
_SAME = 0.75  # overlap of stems above which two quotes say the same
_BEFORE = 8  # units back to the lead-in of a list
_TERM = 25  # words back to the beginning of an entry

Quoted = tuple[ReadHit, Unit]
"""A unit that an answer quotes, and its hit."""


def quoted(read: Sequence[ReadHit], short: ReadHit | None, *, certain: bool) -> list[Quoted]:
    """The units to quote, in the order of the answer; only those around the short answer if it is certain."""
    most = max(one.weight for one in read)
    worth = [one for one in read if one.units and one.weight >= _WORTH * most]
    ranked = sorted(worth, key=lambda one: (-one.logit, one.hit.passage.id))
    holding = None if short is None else _holding(short)
    if short is not None and holding is not None:
        if certain:
            return [(short, unit) for unit in _stretch(short, holding, _AROUND)]
        ranked = [short, *(one for one in ranked if one is not short)]
    found: list[Quoted] = []
    passages = 0
    for one in ranked:
        best = holding if one is short and holding is not None else _best(one)
        new = [(one, unit) for unit in _stretch(one, best, _WORDS - _words(found))]
        if not found or (_words(found) + _words(new) <= _WORDS and not _repeats(new, found)):
            found += new
            passages += 1
        if passages == _MOST:
            break
    return found


def _words(found: list[Quoted]) -> int:
    return sum(unit.words for _, unit in found)


def _holding(short: ReadHit) -> int | None:
    """The place of the unit with the short answer."""
    start, end = short.reading.start or 0, short.reading.end or 0
    return next((place for place, unit in enumerate(short.units) if unit.start < end and start < unit.end), None)


def _best(one: ReadHit) -> int:
    """The place of the unit with the highest score, of those that say something."""
    whole = [place for place, unit in enumerate(one.units) if not _tiny(unit)]
    return max(whole or range(len(one.units)), key=lambda place: (one.scores[place], -place))


def _stretch(one: ReadHit, best: int, words: int) -> Sequence[Unit]:
    """Neighbouring units around a unit, in up to so many words, or this one alone if it is longer.

    Units of the same entry come before others, and nothing before the entry.
    """
    needed = _needed(one.units, best)
    first, last = min(needed), max(needed)
    if sum(unit.words for unit in one.units[first : last + 1]) > words:
        first = last = best
    length = sum(unit.words for unit in one.units[first : last + 1])
    entry = entry_of(one.units, best)
    while True:
        before = 0 if best in one.entries or first == entry else min(words, _EARLY)
        beside = [
            (entry is not None and entry_of(one.units, place) == entry, one.scores[place], place)
            for place, most in ((first - 1, before), (last + 1, words))
            if 0 <= place < len(one.units) and length + one.units[place].words <= most
        ]
        if not beside:
            return _trimmed(one.units, first, best, last)
        *_, place = max(beside)
        first, last, length = min(first, place), max(last, place), length + one.units[place].words


def _trimmed(pieces: Sequence[Unit], first: int, best: int, last: int) -> Sequence[Unit]:
    """The units from `first` to `last` without those at the ends that say nothing by themselves; `best` stays."""
    # What the last unit announces did not fit; a number such as "3.2." belongs to what follows.
    while last > first and (pieces[last].leads or (_tiny(pieces[last]) and not _ends_list(pieces, last))):
        last -= 1
    while first < best and _tiny(pieces[first]) and not pieces[first].leads:
        first += 1
    return pieces[first : last + 1]


def _tiny(unit: Unit) -> bool:
    return unit.words < 3 and unit.kind not in (CODE, ROW) and not unit.entry  # "Default: 3." says something


def _ends_list(pieces: Sequence[Unit], place: int) -> bool:
    after = pieces[place + 1].kind if place + 1 < len(pieces) else None
    return pieces[place].kind == ITEM and pieces[place].words > 1 and after != ITEM


def _needed(pieces: Sequence[Unit], place: int) -> set[int]:
    """The places of a unit and those that it needs to be understood."""
    wanted = {place}
    unit = pieces[place]
    begin = entry_of(pieces, place)  # "Default: 3." is said of the term at the beginning
    if begin is not None and sum(unit.words for unit in pieces[begin:place]) <= _TERM:
        wanted.add(begin)
    if unit.leans and place and pieces[place - 1].kind == SENTENCE:
        wanted.add(place - 1)
    if unit.kind != SENTENCE and (lead := _lead_in(pieces, place)) is not None:
        wanted.add(lead)
    if unit.leads:
        wanted.update(_announced(pieces, place))
    return wanted


def _lead_in(pieces: Sequence[Unit], place: int) -> int | None:
    """The place of what introduces an item, a row or code ("Run:", "The steps are:"); for code also any sentence."""
    for before in range(place - 1, max(-1, place - 1 - _BEFORE), -1):
        if pieces[before].leads:
            return before
        if pieces[before].kind == SENTENCE:
            return before if pieces[place].kind == CODE and before == place - 1 else None
    return None


def _announced(pieces: Sequence[Unit], place: int) -> Iterator[int]:
    """The places of what a unit announces: the next sentence or code, or all items or rows that follow."""
    after = range(place + 1, len(pieces))
    kind = pieces[after[0]].kind if after else None
    if kind in (SENTENCE, CODE):
        after = after[:1]
    return takewhile(lambda one: pieces[one].kind == kind, after)


def _repeats(new: list[Quoted], found: list[Quoted]) -> bool:
    """Whether the new units say nearly the same as those quoted."""
    a, b = (frozenset(content_stems(" ".join(map(quote, side)))) for side in (new, found))
    return bool(a and b) and len(a & b) / min(len(a), len(b)) > _SAME


def quote(chosen: Quoted) -> str:
    """The text of a unit."""
    one, unit = chosen
    return one.text[unit.start : unit.end]
