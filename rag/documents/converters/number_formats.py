"""Numbers and times as a sheet shows them, by the formats of their cells: `01234`, `12 kg`, `25%`, `30:00`.

Thousands stay without signs between them, and a fraction that is all zeros is left out.
"""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?sx) "(?P<quoted>[^"]*)" | \\(?P<escaped>.) | \[\$(?P<money>[^\]-]*)[^\]]*\] | \[(?P<bracket>[^\]]*)\]
    | (?P<gap>_.) | \*. | (?P<digits>General | @ | [0#?.][0#?.,]* (?:(?<=\#)\\?[ ][0#?.,]+)*) | (?P<sign>.)"""
)
_CONDITION = re.compile(r"[<>=]")
_MAX_DECIMALS, _MAX_NUMBER = 12, 10**15  # a sheet has 15 exact digits
_MAX_LENGTH = 255  # characters of a format; Excel takes no more
_TIME = re.compile(r'(?i)"([^"]*)"|\\(.)|\[([hms])\3*\]|([hms])\4*(?:\.0+)?')
_SECONDS = {"h": 3600, "m": 60, "s": 1}


@dataclass(slots=True)
class _Section:
    """The part of a format for some numbers: its texts, with None where digits stand, and the signs for digits."""

    parts: list[str | None] = field(default_factory=list)
    digits: list[str] = field(default_factory=list)
    shift: int = 0  # of the decimal point to the right: 2 for a percent, -3 for a comma at the end
    is_plain: bool = False  # a fraction, a power of ten or a condition, which we do not write


def format_number(value: float, code: str) -> str:
    """A number in a format of Excel, such as `0" kg"` or `00000`; it is rounded as in the sheet."""
    sections = _sections(code[:_MAX_LENGTH])
    section = sections[0]
    if value < 0 and len(sections) > 1 and sections[1].digits:
        section = sections[1]  # which has a sign of its own
    elif value == 0 and len(sections) > 2 and sections[2].parts and not sections[2].digits:
        section = sections[2]  # a word for none
    is_plain = any(item.is_plain for item in sections) or not abs(value) < _MAX_NUMBER
    amounts = None if is_plain else _write_digits(Decimal(repr(value)).copy_abs().scaleb(section.shift), section.digits)
    parts = [amounts.pop(0) if part is None else part for part in section.parts] if amounts is not None else []
    if text := " ".join("".join(parts).split()):
        return f"{'-' if value < 0 else ''}{text}"
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def format_time(value: timedelta, code: str) -> str:
    """A length of time in a format of Excel, such as `[h]:mm`, where brackets stand around the largest unit."""
    total = round(abs(value.total_seconds()))

    def unit(match: re.Match[str]) -> str:
        quotation, escape, largest, smaller = match.groups()
        if largest:
            return str(total // _SECONDS[largest.lower()])
        return f"{total // _SECONDS[smaller.lower()] % 60:02}" if smaller else quotation or escape or ""

    return f"{'-' if value < timedelta() else ''}{_TIME.sub(unit, code[:_MAX_LENGTH].partition(';')[0])}"


def _write_digits(amount: Decimal, slots: list[str]) -> list[str] | None:
    """The digits for each place of a section; None if they do not fit."""
    if len(slots) == 1:
        return [_write_amount(amount, slots[0])]
    if amount % 1 or not set("".join(slots)) <= set("0#?"):
        return None if slots else []
    text = f"{amount:.0f}".zfill("".join(slots).count("0"))  # such as 000-0000
    groups = []
    for slot in reversed(slots[1:]):
        groups.append(text[-len(slot) :])
        text = text[: -len(slot)]
    return [text, *reversed(groups)]


def _write_amount(amount: Decimal, signs: str) -> str:
    if signs in ("General", "@"):
        return f"{float(amount):.12g}"
    whole_signs, _, fraction_signs = signs.partition(".")
    decimals = min(len(fraction_signs), _MAX_DECIMALS)
    integer, _, fraction = f"{amount.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}".partition(".")
    min_decimals = fraction_signs.count("0")
    fraction = fraction[:min_decimals] + fraction[min_decimals:].rstrip("0")
    integer = integer if "," in whole_signs else integer.zfill(whole_signs.count("0"))
    return f"{integer}.{fraction}" if fraction.strip("0") else integer


@lru_cache(maxsize=1000)
def _sections(code: str) -> list[_Section]:
    """The sections of a format: for numbers above zero, below it, and zero."""
    sections = [_Section()]
    for token in _TOKEN.finditer(code):
        kind, section = token.lastgroup, sections[-1]
        text = token[kind] if kind else ""
        if kind == "sign" and text == ";":
            sections.append(_Section())
        elif kind == "digits":
            section.parts.append(None)
            section.digits.append(text.rstrip(","))
            section.shift -= 3 * (len(text) - len(section.digits[-1]))
        elif kind == "bracket" or (kind == "sign" and text in "Ee/"):
            section.is_plain |= kind == "sign" or _CONDITION.search(text) is not None
        elif not (len(sections) == 2 and text in ("(", ")", "-")):  # minus stands before all
            section.parts.append(" " if kind == "gap" else text)
            section.shift += 2 * (kind == "sign" and text == "%")
    return sections
