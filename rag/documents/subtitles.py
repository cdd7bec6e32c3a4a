"""Blocks from subtitles (.srt, .vtt): what is said, in paragraphs, each below the time at which it begins."""

import re
from collections.abc import Iterator
from html import unescape

from rag.base.errors import FormatError
from rag.documents.blocks import Block, heading, squeezed

_CUE = re.compile(
    r"[ \t]*((?:\d{1,3}:)?\d{1,2}:\d{1,2}(?:[.,]\d{1,3})?)[ \t]*-->[ \t]*((?:\d{1,3}:)?\d{1,2}:\d{1,2})\b.*"
)
_VOICE = re.compile(r"<v(?:\.[^<>\s]{0,60})?[ \t]+([^<>]{1,100})>")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>|<\d[\d:.]{0,20}>|\{\\[^{}]{0,100}\}|[♪♫]")
_TURN = re.compile(r"[-–—][ \t]*(?=\S)")  # before what another person says
_SOUND = re.compile(r"[\[(](?:music|applause|laughter|musik|musique|música)[\])]", re.IGNORECASE)
_ENDS = re.compile(r"[.!?…。！？][\"'”’»)\]]*\Z")
_WORDS, _MOST = 70, 120  # of a paragraph, after which it ends with the next sentence, or in any case
_PAUSE = 20  # seconds in which nothing is said


def subtitle_blocks(text: str, where: str) -> list[Block]:
    """The paragraphs of a file, below headings such as `0:12:05`."""
    blocks: list[Block] = []
    said: list[str] = []
    words, last = 0, 0.0
    found = False
    for begin, end, lines in _cues(text):
        found = True
        if said and ((words >= _WORDS and _ENDS.search(said[-1])) or words >= _MOST or begin - last > _PAUSE):
            blocks.append(Block(" ".join(said)))
            said, words = [], 0
        if lines and not said:
            blocks.append(heading(_clock(begin), 2))
        for line in lines:
            if said and _TURN.match(line):  # somebody else speaks
                blocks.append(Block(" ".join(said)))
                said = []
            said.append(_TURN.sub("", line, count=1))
            words += len(line.split())
        last = end
    if not found:
        raise FormatError(f"{where}: not subtitles: it has no times such as 00:00:01.000 --> 00:00:04.000")
    return [*blocks, Block(" ".join(said))] if said else blocks


def _cues(text: str) -> Iterator[tuple[float, float, list[str]]]:
    """The begin, the end and the lines of each cue, without lines that the cue before has too, as rolling ones do."""
    times: tuple[float, float] | None = None
    lines: list[str] = []
    before: list[str] = []
    for line in [*text.split("\n"), ""]:
        if cue := _CUE.fullmatch(line):
            if times is not None:  # without an empty line between; the last line is the number of this one
                yield *times, _new(lines[:-1] if lines and lines[-1].isdigit() else lines, before)
                before = lines
            times, lines = (_seconds(cue[1]), _seconds(cue[2])), []
        elif times is not None and line.strip():
            if said := _said(line):
                lines.append(said)
        elif times is not None:
            yield *times, _new(lines, before)
            times, before, lines = None, lines, []


def _new(lines: list[str], before: list[str]) -> list[str]:
    return [line for line in lines if line not in before[-3:]]


def _said(line: str) -> str:
    voice = _VOICE.search(line)
    text = squeezed(unescape(_SOUND.sub("", _TAG.sub("", line))))
    return f"{squeezed(voice[1])}: {text}" if voice and text else text


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
