"""Which units of the hits that were read an answer quotes: neighbours around the best unit of the best passages."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from autoais.base.text.words import content_stems
from rag.answer.generators.readings import ReadHit
from rag.answer.generators.units import CODE, ITEM, ROW, SENTENCE, Unit, entry_start

# Chosen on the part `dev` of own-documents and on reader-validation.jsonl (eval/recipes), and some before that on every
# eighth question of nq_pool_dev:
_MAX_WORDS = 120  # of an answer, unless a single unit is longer
_MAX_WORDS_BEFORE = 60  # words of a stretch from which on it only grows forwards, so that its best unit comes early
_MAX_PASSAGES = 3  # passages quoted

# Chosen on own-documents, `everyday-dev`, real-folders and 300 questions of nq_pool_dev; near values hardly differ:
_MIN_KEEP = 0.08  # probability (0 to 1) that the reader keeps a neighbour; an answer stops before one that has less
_MIN_KEEP_SHORT = 0.3  # the same if the question has a short answer
_MIN_KEEP_LISTED = 0.02  # the same of a further item, row or piece of code beside another
_MAX_WORDS_SHORT = 50  # words quoted around a certain short answer; its sentence alone is right less often
_MIN_WEIGHT_SHARE = 0.1  # minimum weight of the next passage, as a share of the best one's

# Set by hand, not by measurement:
_MAX_OVERLAP = 0.75  # overlap of stems above which two quotes say the same
_MAX_LEAD_IN_UNITS = 8  # units back to the lead-in of a list
_MAX_TERM_WORDS = 25  # words back to the beginning of an entry

_TURNS = re.compile(r"\b(?:not|no|none|never|except|unless|only|without)\b", re.IGNORECASE)  # the meaning of a list

QuotedUnit = tuple[ReadHit, Unit]
"""A unit that an answer quotes, and its hit."""


def choose_units(read_passages: Sequence[ReadHit], short: ReadHit | None, *, certain: bool) -> list[QuotedUnit]:
    """The units to quote, in the order of the answer; only those around the short answer if it is certain."""
    best_weight = max(passage.weight for passage in read_passages)
    candidates = [
        passage for passage in read_passages if passage.units and passage.weight >= _MIN_WEIGHT_SHARE * best_weight
    ]
    ranking = sorted(candidates, key=lambda passage: (-passage.logit, passage.hit.passage.id))
    short_position = None if short is None else _find_short_answer(short)
    if short is not None and short_position is not None:
        if certain:
            stretch = _stretch(short, short_position, _MAX_WORDS_SHORT, _MIN_KEEP_SHORT)
            return [(short, unit) for unit in _add_lead_in(short, stretch, short_position, _MAX_WORDS_SHORT)]
        ranking = [short, *(passage for passage in ranking if passage is not short)]
    min_keep = _MIN_KEEP if short_position is None else _MIN_KEEP_SHORT
    units: list[QuotedUnit] = []
    passage_count = 0
    for passage in ranking:
        best = short_position if passage is short and short_position is not None else _best_position(passage)
        words = _MAX_WORDS - _count_words(units)
        stretch = _add_lead_in(passage, _stretch(passage, best, words, min_keep), best, words)
        new = [(passage, unit) for unit in stretch]
        if not units or (_count_words(units) + _count_words(new) <= _MAX_WORDS and not _repeats(new, units)):
            units += new
            passage_count += 1
        if passage_count == _MAX_PASSAGES:
            break
    return units


def find_stretch(passage: ReadHit, words: int) -> Sequence[Unit]:
    """Neighbouring units around the passage's best one, in up to so many words, or the best one alone."""
    return _stretch(passage, _best_position(passage), words, 0.0)


def _count_words(units: list[QuotedUnit]) -> int:
    return sum(unit.words for _, unit in units)


def _find_short_answer(short: ReadHit) -> int | None:
    """The place of the unit with the short answer."""
    start, end = short.reading.start or 0, short.reading.end or 0
    return next((position for position, unit in enumerate(short.units) if unit.start < end and start < unit.end), None)


def _best_position(passage: ReadHit) -> int:
    """The place of the unit with the highest score, of those that say something."""
    positions = [position for position, unit in enumerate(passage.units) if not _is_tiny(unit)]
    return max(positions or range(len(passage.units)), key=lambda position: (passage.scores[position], -position))


def _stretch(passage: ReadHit, best: int, words: int, min_keep: float) -> Sequence[Unit]:
    """Neighbouring units around a unit, in up to so many words, or this one alone if it is longer.

    Units of the same entry come before others, and nothing before the entry. The stretch grows over units of the same
    entry, and over what the reader keeps with at least `min_keep` (0 to 1; less in a list or table).
    """
    context = _find_context(passage.units, best)
    first, last = min(context), max(context)
    if sum(unit.words for unit in passage.units[first : last + 1]) > words:
        following = _following_units(passage.units, best) if passage.units[best].leads else ()  # as many as fit
        fitting = takewhile(lambda end: sum(unit.words for unit in passage.units[best : end + 1]) <= words, following)
        first, last = best, max(fitting, default=best)
    length = sum(unit.words for unit in passage.units[first : last + 1])
    entry = entry_start(passage.units, best)
    while True:
        before = 0 if best in passage.entries or first == entry else min(words, _MAX_WORDS_BEFORE)
        neighbours = [
            (entry is not None and entry_start(passage.units, position) == entry, passage.scores[position], position)
            for position, limit in ((first - 1, before), (last + 1, words))
            if 0 <= position < len(passage.units)
            and length + passage.units[position].words <= limit
            and _belongs(passage, best, position, min_keep)
        ]
        if not neighbours:
            return _trim(passage, first, best, last)
        *_, neighbour = max(neighbours)
        first, last, length = min(first, neighbour), max(last, neighbour), length + passage.units[neighbour].words


def _belongs(passage: ReadHit, best: int, position: int, min_keep: float) -> bool:
    """Whether an answer around the best unit goes on over another one."""
    unit, entry = passage.units[position], entry_start(passage.units, best)
    if entry is not None and entry_start(passage.units, position) == entry:
        return True
    if position > best and _follows_question(passage, position):
        return True
    is_listed = passage.units[best].kind == unit.kind != SENTENCE
    return passage.reading.kept(unit.start, unit.end) >= (min(min_keep, _MIN_KEEP_LISTED) if is_listed else min_keep)


def _add_lead_in(passage: ReadHit, stretch: Sequence[Unit], best: int, words: int) -> Sequence[Unit]:
    """A stretch that begins inside a list, with the sentence that introduces the list, in up to so many words.

    The items between them are left out: "The tenant shall not:" and the last item that it forbids. A lead-in that turns
    the meaning of the items is there even if it does not fit. Without its best unit among the items, the stretch begins
    after them instead.
    """
    first = passage.units.index(stretch[0])
    lead = _lead_in(passage.units, first, len(passage.units)) if stretch[0].kind == ITEM else None
    if lead is None or not (text := quote((passage, passage.units[lead]))).endswith(":"):
        return stretch
    items = sum(1 for _ in takewhile(lambda unit: unit.kind == ITEM, stretch))
    if best >= first + items:
        return stretch[items:] or stretch
    room = words - passage.units[lead].words
    last = len(stretch)
    while last > best - first + 1 and sum(unit.words for unit in stretch[:last]) > room:
        last -= 1
    if sum(unit.words for unit in stretch[:last]) > room and not _TURNS.search(text):
        return stretch
    return [passage.units[lead], *stretch[:last]]


def _follows_question(passage: ReadHit, position: int) -> bool:
    """Whether the unit before ends in a question, which this one answers ("What if it rings? Call Ann.")."""
    return position > 0 and quote((passage, passage.units[position - 1])).endswith("?")


def _trim(passage: ReadHit, first: int, best: int, last: int) -> Sequence[Unit]:
    """The units from `first` to `last` without those at the ends that say nothing by themselves; one stays."""
    pieces = passage.units

    def says_nothing(position: int) -> bool:
        """What it announces did not fit, or it is a number such as "3.2.", which belongs to what follows."""
        is_tail = _ends_list(pieces, position) or _follows_question(passage, position)
        return bool(pieces[position].leads) or (_is_tiny(pieces[position]) and not is_tail)

    while last > first and says_nothing(last):
        last -= 1
    while first < min(best, last) and _is_tiny(pieces[first]) and not pieces[first].leads:
        first += 1
    return pieces[first : last + 1]


def _is_tiny(unit: Unit) -> bool:
    return unit.words < 3 and unit.kind not in (CODE, ROW) and not unit.entry  # "Default: 3." says something


def _ends_list(pieces: Sequence[Unit], position: int) -> bool:
    after = pieces[position + 1].kind if position + 1 < len(pieces) else None
    return pieces[position].kind == ITEM and pieces[position].words > 1 and after != ITEM


def _find_context(pieces: Sequence[Unit], position: int) -> set[int]:
    """The places of a unit and those that it needs to be understood."""
    positions = {position}
    unit = pieces[position]
    begin = entry_start(pieces, position)  # "Default: 3." is said of the term at the beginning
    if begin is not None and sum(unit.words for unit in pieces[begin:position]) <= _MAX_TERM_WORDS:
        positions.add(begin)
    if unit.leans and position and pieces[position - 1].kind == SENTENCE:
        positions.add(position - 1)
    if unit.kind != SENTENCE and (lead := _lead_in(pieces, position)) is not None:
        positions.add(lead)
    if unit.leads:
        positions.update(_following_units(pieces, position))
    return positions


def _lead_in(pieces: Sequence[Unit], position: int, units: int = _MAX_LEAD_IN_UNITS) -> int | None:
    """The place of what introduces an item, a row or code ("Run:", "The steps are:"); for code also any sentence."""
    for before in range(position - 1, max(-1, position - 1 - units), -1):
        if pieces[before].leads:
            return before
        if pieces[before].kind == SENTENCE:
            return before if pieces[position].kind == CODE and before == position - 1 else None
    return None


def _following_units(pieces: Sequence[Unit], position: int) -> Iterator[int]:
    """The places of what a unit announces: the next sentence or code, or all items or rows that follow."""
    after = range(position + 1, len(pieces))
    kind = pieces[after[0]].kind if after else None
    if kind in (SENTENCE, CODE):
        after = after[:1]
    return takewhile(lambda position_after: pieces[position_after].kind == kind, after)


def _repeats(new: list[QuotedUnit], units: list[QuotedUnit]) -> bool:
    """Whether the new units say nearly the same as those quoted."""
    a, b = (frozenset(content_stems(" ".join(map(quote, side)))) for side in (new, units))
    return bool(a and b) and len(a & b) / min(len(a), len(b)) > _MAX_OVERLAP


def quote(quoted_unit: QuotedUnit) -> str:
    """The text of a unit."""
    passage, unit = quoted_unit
    return passage.text[unit.start : unit.end]
