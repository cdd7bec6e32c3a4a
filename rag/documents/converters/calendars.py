"""Blocks from calendars (.ics): an event is a row."""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from rag.base.errors import FormatError
from rag.documents.blocks import Block, row
from rag.documents.encodings import decode_text
from rag.documents.normalize import squeeze
from rag.documents.raw_file import RawFile

_FOLD = re.compile(r"\r?\n[ \t]")
_LINE = re.compile(r'([\w-]+)(?:;(?:[^":]|"[^"]*")*)?:(.*)')
_ESCAPE = re.compile(r"\\(.)")
_TIME = re.compile(r"(\d{8})(?:T(\d{4})\d\d(Z?))?")
_OFTEN = re.compile(r"FREQ=(\w+)")
_NAMES = ("Event", "Start", "End", "Repeats", "Place", "Description")


def read_calendar(file: RawFile) -> tuple[str, list[Block]]:
    """The name of a calendar ("" if it has none) and its events."""
    text = decode_text(file.data, file.where)
    lines = [match.groups() for line in unfold_lines(text) if (match := _LINE.fullmatch(line))]
    if ("BEGIN", "VCALENDAR") not in [(name.upper(), value.strip().upper()) for name, value in lines[:1]]:
        raise FormatError(f"{file.where}: not a calendar")
    title = next((unescape_value(value) for name, value in lines if name.upper() == "X-WR-CALNAME"), "")
    return title, [block for event in _events(lines) if (block := row(_cells(event), _NAMES)) is not None]


def unfold_lines(text: str) -> list[str]:
    """The lines of a text in which a line that begins with a space goes on from the one before."""
    return _FOLD.sub("", text).splitlines()


def _events(lines: list[tuple[str, ...]]) -> Iterator[dict[str, str]]:
    """What the lines of each event say, by their names, without those of its alarms."""
    stack: list[str] = []
    event: dict[str, str] = {}
    for name, value in ((name.upper(), value) for name, value in lines):
        if name == "BEGIN":
            stack.append(value.strip().upper())
            event = {} if stack[-1] == "VEVENT" else event
        elif name == "END" and stack:
            if stack.pop() == "VEVENT":
                yield event
        elif stack and stack[-1] == "VEVENT":
            event.setdefault(name, value)


def _cells(event: dict[str, str]) -> list[str]:
    often = _OFTEN.search(event.get("RRULE", ""))
    return [
        unescape_value(event.get("SUMMARY", "")),
        _time(event.get("DTSTART", "")),
        _time(event.get("DTEND", ""), is_end=True),
        often[1].lower() if often else "",
        unescape_value(event.get("LOCATION", "")),
        unescape_value(event.get("DESCRIPTION", "")),
    ]


def unescape_value(value: str) -> str:
    """What a value says, without the signs that mark commas and ends of lines."""
    return squeeze(_ESCAPE.sub(lambda mark: " " if mark[1] in "nN" else mark[1], value))


def _time(value: str, *, is_end: bool = False) -> str:
    """A date, with its time if it has one; an event of whole days ends before the day that is its end."""
    match = _TIME.fullmatch(value.strip())
    if match is None:
        return ""
    day, clock, zone = match.groups()
    try:
        if clock is None:
            return (date.fromisoformat(day) - timedelta(days=is_end)).isoformat()
        return f"{datetime.strptime(day + clock, '%Y%m%d%H%M'):%Y-%m-%d %H:%M}{' UTC' if zone else ''}"
    except (ValueError, OverflowError):
        return ""
