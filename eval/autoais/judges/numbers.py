"""Numbers in a claim that are missing from its evidence: "8 euros" if the evidence only has "6 euros" or "8 hours"."""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

# In digits ("1,233", "3.2", "1·7", "40 000"), as a time ("20:30") or in words.
_TOKEN = re.compile(
    r"(?<![\d:.,])(?P<clock>(?:[01]?[0-9]|2[0-4]):[0-5][0-9])(?![\d:])"
    r"|(?P<digits>[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?![0-9.,])|[0-9]+(?:[.,·][0-9]+)*)|[^\W\d_]+"
)
UNDER_TWENTY = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
""".split()
_ORDINALS = """
    zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
    fifteenth sixteenth seventeenth eighteenth nineteenth
""".split()
_ROMAN = "ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "mln": 1e6, "billion": 1e9, "bn": 1e9,
    "trillion": 1e12,
}  # fmt: skip
_AMBIGUOUS_SCALES = {"m": 1e6, "b": 1e9}  # 5m may be five million or five metres
_VALUES = (
    {word: float(value) for words in (UNDER_TWENTY, _ORDINALS) for value, word in enumerate(words)}
    | {word: float(value) for value, word in enumerate(_ROMAN, 2)}
    | {word: 10.0 * tens for tens, word in enumerate(TENS, 2)}
    | {f"{word[:-1]}ieth": 10.0 * tens for tens, word in enumerate(TENS, 2)}
    | {"once": 1.0, "twice": 2.0, "half": 0.5, "dozen": 12.0}
    | {word: scale for word, scale in _SCALES.items() if len(word) > 2}
)
_CLOCK = "clock"  # measures hours since midnight
_HALF_DAY = "half day"  # hours of a clock with twelve, which only a bare number says too: "8 pm", "at 8"
# What each unit measures, and its size in that measure.
_UNITS = {
    unit: (measure, size)
    for measure, size, units in (
        ("time", 1e-3, "ms millisecond milliseconds"),
        ("time", 1, "s sec secs second seconds"),
        ("time", 60, "min mins minute minutes"),
        ("time", 3600, "h hr hrs hour hours"),
        ("time", 86400, "day days"),
        ("time", 604800, "week weeks"),
        ("months", 1, "month months"),
        ("months", 12, "year years yr yrs"),
        ("metres", 1e-3, "mm millimetre millimetres millimeter millimeters"),
        ("metres", 1e-2, "cm centimetre centimetres centimeter centimeters"),
        ("metres", 1, "metre metres meter meters"),
        ("metres", 1e3, "km kilometre kilometres kilometer kilometers"),
        ("feet", 1, "ft foot feet"),
        ("feet", 5280, "mi mile miles"),
        ("grams", 1, "g gram grams"),
        ("grams", 1e3, "kg kilogram kilograms kilo kilos"),
        ("percent", 1, "% percent pct"),
        ("dollars", 1, "$ usd dollar dollars"),
        ("euros", 1, "€ eur euro euros"),
        ("pounds", 1, "£ gbp"),
        (_CLOCK, 1, "am pm"),
    )
    for unit in units.split()
}
# What stands behind a number: "million", "%", "p.m.".
_FOLLOWING = re.compile(r"[ \u00a0\u202f-]?(%|€|per cent\b|[ap]\.m\.|[^\W\d_]+)", re.IGNORECASE)
_COUNTS = frozenset([*UNDER_TWENTY, *TENS])  # "second" and "once" may be no number
_APPROXIMATORS = frozenset("about around approximately roughly nearly almost some circa ca".split())
_MORE = frozenset("more over above least exceed exceeds exceeding exceeded".split())
_LESS = frozenset("less under below fewer most".split())
_LOWER_BOUND_WORDS = _MORE | frozenset("after since past".split())
_UPPER_BOUND_WORDS = _LESS | frozenset("before until by prior up within".split())
_NOT = frozenset(["no", "not"])
_ARTICLES = frozenset(["a", "an"])
_CENTURY = re.compile(r"(?:st|nd|rd|th)?[ -]centur", re.IGNORECASE)
_STEP = re.compile(r"\s*(?:[-*•]\s*)?\d{1,3}[.)]\s+")
_SOURCES = re.compile(r"\[\d+(?:[,-]\s*\d+)*\]")
_WORD = re.compile(r"[^\W\d_]+")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
# "May" and "March" are other words too, if no "in" stands before them and no number beside them.
_MONTH = re.compile(
    r"\b(?:January|February|April|June|July|August|September|October|November|December)\b"
    r"|(?:(?<=\b(?:in|of|on|by) )|(?<=\d ))(?:March|May)\b|\b(?:March|May)\b(?= \d)"
)
_MONTH_BEGIN = re.compile(rf"\b(?:{'|'.join(_MONTHS)})", re.IGNORECASE)
_DATE = re.compile(r"\b\d{4}-(\d\d)\b|\b(\d{1,2})[/.](\d{1,2})\b|\b(\d{1,2})[/.]\d{4}\b")
_MONTH_OF_DATE = re.compile(r"\b(?:\d{1,2}[/.])?(0?[1-9]|1[0-2])[/.](?:19|20)\d\d\b|\b(?:19|20)\d\d-(0[1-9]|1[0-2])\b")
_YEAR_BEFORE = re.compile(r"(?<!\d)(1\d|20)\d\d[-–/]\Z")
_YEAR_LENGTH = 5  # characters of the year and what stands behind it
_MAX_VALUE = 1e18  # larger numbers are compared as they are written
_TOLERANCE = 0.1  # how far from a number "about" reaches, as a share of it
_MAX_FACTOR = 5.0  # "more than 100" is not said of 1,000: a bound and its number differ at most by this factor


@dataclass(frozen=True, slots=True)
class _Number:
    start: int
    end: int
    value: float  # NaN for one that is compared as it is written, such as a version
    digits: int  # significant ones; 0 for a number in words
    measure: str = ""  # of its unit; empty for a number without a known one
    size: float = 1.0  # of its unit


class Numbers:
    """The numbers and months in the evidence of a claim."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def find_missing(self, claim: str, *, exact: bool = False) -> list[tuple[int, int]]:
        """The digits and months of a claim that are in no text: (start, end) in characters of the claim, end exclusive.

        With `exact`, numbers in words ("two") and 1 are looked for too, and "until 1975" is another time than 1970.

        A number is in a text if the text has it in digits or words, or a longer number that rounds to it. "About 20"
        matches numbers within a tenth, "more than 20" larger ones. A number with a unit must have that unit in the
        text, an equal one (60 seconds for a minute), or no known unit. Ignored are 1, the 00 of 19:00, numbers of steps
        and sources ("2. Open it [1]") and parts of names ("COVID-19").
        """
        labels = [match.span() for match in (_STEP.match(claim), *_SOURCES.finditer(claim)) if match]
        labels += [span for span, month in _months_of_dates(claim) if month in self._months]
        presence: dict[tuple[int, int], bool] = {}
        for number in _numbers(claim):
            is_label = any(start <= number.start < end for start, end in labels)
            span = number.start, number.end
            needs_support = exact or (number.digits and number.value != 1)
            if needs_support and _is_count(number, claim) and not is_label and not _in_name(claim, number.start):
                presence[span] = presence.get(span, False) or self._have(number, claim, exact=exact)
        missing = [missing_span for missing_span, is_present in presence.items() if not is_present]
        return sorted(
            missing
            + [month.span() for month in _MONTH.finditer(claim) if not self._have_month(month, claim, exact=exact)]
        )

    def _have(self, number: _Number, claim: str, *, exact: bool = False) -> bool:
        if math.isnan(number.value):
            return any(claim[number.start : number.end] in text for text in self._texts)
        values, by_measure = self._values
        same_measure = [(by_measure.get(number.measure, []), number.size), (by_measure.get("", []), 1.0)]
        candidates = same_measure if number.measure else [(values, 1.0)]
        ranges = list(_ranges(number, claim, exact=exact))
        return any(_between(sizes, low * size, high * size) for low, high in ranges for sizes, size in candidates)

    def _have_month(self, month: re.Match[str], claim: str, *, exact: bool) -> bool:
        if month[0][:3].casefold() in self._months:
            return True
        return not exact and bool(_before(claim, month.start()) & (_LOWER_BOUND_WORDS | _UPPER_BOUND_WORDS))

    @cached_property
    def _values(self) -> tuple[list[float], dict[str, list[float]]]:
        """The values as they stand there, and by what they measure, in its unit of size 1; both sorted."""
        values: list[float] = []
        by_measure: dict[str, list[float]] = {}
        for number in chain.from_iterable(map(_numbers, self._texts)):
            if math.isnan(number.value):
                continue
            readings = [number.value % 100] if 1000 <= number.value <= 2100 else []  # '98
            values += [number.value, *readings]
            if number.measure != _HALF_DAY:  # 8 am is not 8 pm
                by_measure.setdefault(number.measure, []).append(number.value * number.size)
            by_measure.setdefault("", []).extend(readings)
        return sorted(values), {measure: sorted(numbers) for measure, numbers in by_measure.items()}

    @cached_property
    def _months(self) -> set[str]:
        """The first three letters of the months of the texts, which may be numbers of dates."""
        months = {month.casefold() for text in self._texts for month in _MONTH_BEGIN.findall(text)}
        dates = (int(part) for text in self._texts for date in _DATE.findall(text) for part in date if part)
        return months | {_MONTHS[part - 1] for part in dates if 1 <= part <= 12}


def is_unit(word: str) -> bool:
    """Whether a word is a unit that is known: seconds, km, dollars."""
    return word.casefold() in _UNITS


def find_clash(claim: str, text: str) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The number of a claim and that of a text, as (start, end) in each, if each has exactly one that the other lacks.

    They measure the same, or neither has a known unit; a year is no count. Numbers in words count, and so does 1 with a
    unit.
    """
    own_numbers, other_numbers = _lacking(claim, text), _lacking(text, claim)
    if len(own_numbers) != 1 or len(other_numbers) != 1:
        return None
    (own,), (other,) = own_numbers, other_numbers
    is_alike = own.measure == other.measure and _is_year(own) == _is_year(other)
    return ((own.start, own.end), (other.start, other.end)) if is_alike else None


def _is_year(number: _Number) -> bool:
    return not number.measure and number.end - number.start == 4 and 1000 <= number.value <= 2100


def _lacking(text: str, other: str) -> list[_Number]:
    """The numbers of a text that another text lacks, in order."""
    numbers = Numbers([other])
    labels = [match.span() for match in (_STEP.match(text), *_SOURCES.finditer(text)) if match]
    readings: dict[tuple[int, int], list[_Number]] = {}
    for number in _numbers(text):
        is_label = any(start <= number.start < end for start, end in labels) or _in_name(text, number.start)
        if _is_count(number, text) and not is_label and (number.value != 1 or number.measure):
            readings.setdefault((number.start, number.end), []).append(number)
    return [group[0] for group in readings.values() if not any(numbers._have(number, text) for number in group)]


def _is_count(number: _Number, text: str) -> bool:
    """Whether it is a number for sure: in digits, but not the 00 of 19:00:30, or in such words ("second" is none)."""
    token = text[number.start : number.end]
    return token != "00" if number.digits else re.split(r"\W", token)[0].casefold() in _COUNTS


def _months_of_dates(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """The place and the first three letters of each month that is a number of a date ("05/2013", "2013-05")."""
    for match in _MONTH_OF_DATE.finditer(text):
        group = 1 if match[1] else 2
        yield match.span(group), _MONTHS[int(match[group]) - 1]


def _between(values: Sequence[float], low: float, high: float) -> bool:
    """Whether one of the sorted values is in the range, or a rounding error away from it."""
    index = bisect_left(values, low * (1 - 1e-9))
    return index < len(values) and values[index] <= high * (1 + 1e-9)


def _before(claim: str, start: int) -> set[str]:
    """The up to three words before a place, after the last digit before it."""
    return set(_WORD.findall(re.split(r"\d", claim[max(0, start - 24) : start].casefold())[-1])[-3:])


def _ranges(number: _Number, claim: str, *, exact: bool) -> Iterator[tuple[float, float]]:
    """What a number of the claim may stand for: the lowest and the highest value.

    With `exact`, a time is itself: only words such as "more than", before a number that is no year, make it a bound.
    """
    value = number.value
    yield value, value
    if number.digits > 1 and not _is_year(number):
        half = 0.5 * 10.0 ** (math.floor(math.log10(value)) + 1 - number.digits)
        yield value - half, value + half
    before, after = _before(claim, number.start), claim[number.end : number.end + 12]
    if before & _APPROXIMATORS:
        yield value * (1 - _TOLERANCE), value / (1 - _TOLERANCE)
    lower, upper = (_MORE, _LESS) if exact else (_LOWER_BOUND_WORDS, _UPPER_BOUND_WORDS)
    if exact and (_is_year(number) or number.measure == _CLOCK):
        lower = upper = frozenset()
    is_above, is_below = bool(before & lower) or after.startswith("+"), bool(before & upper)
    if before & _NOT:  # no more than
        is_above, is_below = is_below, is_above
    older = "than" in before and not is_above and not is_below  # or younger, or taller
    if is_above or older:
        yield value, value * _MAX_FACTOR
    if is_below or older:
        yield value / _MAX_FACTOR, value
    if after.startswith("s"):  # the 1990s
        yield value, value + 9
    if _CENTURY.match(after):
        yield 100 * (value - 1), 100 * value


def _in_name(text: str, start: int) -> bool:
    """Whether what starts there is part of a name: IPv6, COVID-19."""
    return re.search(r"[^\W\d_][-–]?$", text[max(0, start - 2) : start]) is not None


def _numbers(text: str) -> Iterator[_Number]:
    """The numbers of a text, in order; one that can be read in two ways comes twice."""
    end = 0
    for match in _TOKEN.finditer(text):
        if match["clock"]:
            hours, minutes = map(int, match["clock"].split(":"))
            yield from _clock(match.start(), match.end(), hours + minutes / 60, text)
            end = match.end()
            continue
        digit_text, word = match["digits"], match[0].casefold()
        if match.start() < end or not (digit_text or word in _VALUES):
            if word in _ARTICLES and (unit := _unit(text, match.start(), match.end()))[0]:  # a minute
                yield _Number(match.start(), match.end(), 1.0, 0, *unit)
            continue
        value, end = _with_words(_value(digit_text) if digit_text else _VALUES[word], match.end(), text)
        value = value if value <= _MAX_VALUE else math.nan
        digits = len(re.sub(r"\D", "", digit_text).strip("0")) or 1 if digit_text else 0
        number = _Number(match.start(), end, value, digits)
        measure, size = _unit(text, number.start, end)
        if measure == _CLOCK and value <= 12:
            yield from _clock(number.start, end, value, text)
            continue
        yield replace(number, measure=measure, size=size)
        if digit_text and len(digit_text) == 2:
            place = match.start()
            if year := _YEAR_BEFORE.search(text, max(0, place - _YEAR_LENGTH), place):  # 1998-99
                yield replace(number, value=float(year[1]) * 100 + value)
        letter = _FOLLOWING.match(text, end) if digit_text else None
        if letter and (scale := _AMBIGUOUS_SCALES.get(letter[1].casefold())):
            yield replace(number, value=value * scale, measure=measure, size=size)


def _clock(start: int, end: int, hours: float, text: str) -> Iterator[_Number]:
    """A time of day, "8:30 p.m." or "20:30"; one without "am" or "pm" may be of both halves of the day."""
    following = _FOLLOWING.match(text, end)
    half = re.sub(r"\W", "", following[1].casefold()) if following else ""
    if half in ("am", "pm") and hours < 13:
        number = _Number(start, end, hours % 12 + (12 if half == "pm" else 0), 1, _CLOCK)
        yield number
        yield replace(number, value=hours, measure=_HALF_DAY)
    else:
        yield _Number(start, end, hours % 24, 1, _CLOCK)  # 24:00 is 0:00
        if hours < 13:
            yield _Number(start, end, (hours + 12) % 24, 1, _CLOCK)


def _value(digits: str) -> float:
    plain = re.sub(r"[, \u00a0\u202f]", "", digits.replace("·", "."))
    return float(plain) if plain.count(".") < 2 else math.nan


def _with_words(value: float, end: int, text: str) -> tuple[float, int]:
    """A number with the words that go on with it, and where they end: twenty-one, 2 million, 5k."""
    while following := _FOLLOWING.match(text, end):
        word = following[1].casefold()
        if scale := _SCALES.get(word):
            value *= scale
        elif value in range(20, 100, 10) and 0 < _VALUES.get(word, 0) < 10:
            value += _VALUES[word]
        else:
            break
        end = following.end()
    return value, end


def _unit(text: str, start: int, end: int) -> tuple[str, float]:
    """The measure and the size of the unit of the number there; an empty measure if it has none that is known."""
    if sign := _UNITS.get(text[start - 1 : start]):
        return sign
    following = _FOLLOWING.match(text, end)
    word = re.sub(r"[. ]", "", following[1].casefold()) if following else ""
    return _UNITS.get(word, ("", 1.0)) if word != "s" or text[end] != "s" else ("", 1.0)  # the 1990s
