"""Thoughts that models write into their replies, in all the forms of public chat templates.

Servers should send thoughts apart from the text (`reasoning_content`); one that does not know the template of a model
leaves its marks in the text. A template may also write the first mark into the prompt, so that a reply has only the
second.
"""

import json
import re
from dataclasses import dataclass
from itertools import pairwise

_NAME = r"(?:\w{1,12}:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|inner_monologue|antthinking)"
_MARK = re.compile(
    # Begin: tags, also with attributes; Mistral; Kimi-VL; OpenThinker; Command A; Apertus; MedGemma; Gemma 4; channels
    # of gpt-oss other than the final one, also where a tokenizer dropped the special tokens; Granite 3.2.
    rf"(?P<begin><\|?\s?{_NAME}(?:\s[^<>]{{0,200}})?\|?(?<!/)>|\[THINK\]|◁think▷|<\|begin_of_thought\|>"
    r"|<\|START_THINKING\|>|<\|inner_prefix\|>|<unused94>|<\|channel>(?!final)|<\|channel\|>(?!\s*final)"
    r"|\A\s*(?:analysis|commentary)(?=(?-i:[A-Z]))|\A\s*here(?:['’]s| is) my thought process:)"
    rf"|(?P<end><\|?\s?/\s?{_NAME}\s?\|?>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>"
    r"|<\|inner_suffix\|>|<unused95>|<channel\|>|here(?:['’]s| is) my response:)"
    # The final channel of gpt-oss: whatever comes before it is thoughts.
    r"|(?P<final><\|channel\|>\s*final\s*(?:<\|constrain\|>\s*\w{0,20}\s*)?(?:<\|message\|>)?"
    r"|final\s*(?:<\|constrain\|>\s*\w{0,20}\s*)?<\|message\|>|assistantfinal(?=\s{0,9}(?-i:[A-Z0-9\"'{\[*#-])))"
    # The end of a turn: of thoughts in a channel, or of the answer.
    r"|(?P<stop><\|(?:end|return|call)\|>)"
    rf"|(?P<empty><\|(?:start|begin)\|>\w{{0,20}}|<\|(?:message|content)\|>|<\s?{_NAME}\s?/>)",
    re.IGNORECASE,
)
_WRAPPER = re.compile(
    r"\s*(?:<(?P<tag>answer|response|output|solution|final_answer)>|<\|(?:begin_of_solution|START_RESPONSE"
    r"|START_TEXT)\|>)",
    re.IGNORECASE,
)
_WRAPPER_END = re.compile(r"<\|(?:end_of_solution|END_RESPONSE|END_TEXT)\|>\s*\Z", re.IGNORECASE)
_OBJECT = re.compile(r"\s*(?:```(?:json)?\s*)?(?=\{\s*[\"}])")
_QUOTE_BEFORE = re.compile(r"(?:\A|[\s(\[])[`'\"“‘«]\Z")
_QUOTES_AFTER = "`'\"”’»"
_MAX_MARK = 30  # characters of a mark, without attributes
_UNFINISHED_MARK = re.compile(r"[<◁][\w|:/ ]{0,28}\Z|\[/?[A-Z]{0,5}\Z")
_UNFINISHED_WORDS = re.compile(r"\s*(?:[A-Za-z]{0,10}|Here[\w'’ ]{0,24})\Z")
_decoder = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The text without thoughts.

    `begins` is whether the reply begins with thoughts, `is_open` whether it ends in them, and `has_lone_end` whether
    they end without a beginning.
    """

    text: str
    begins: bool = False
    is_open: bool = False
    has_lone_end: bool = False


def without_thoughts(text: str) -> str:
    """A reply without the model's thoughts.

    Thoughts that do not end take the rest of the reply; thoughts that do not begin take what is before their first end,
    unless the reply begins with others. A mark in quotation marks or backticks and one inside a JSON object are text.
    """
    return _read(text).text


def only_ends_thoughts(text: str) -> bool:
    """Whether a reply has thoughts that it ends, but does not begin."""
    return _read(text).has_lone_end


def is_thinking(text: str, *, thinks: bool = False) -> bool:
    """Whether a reply that is still growing may end in thoughts, or in a part of a mark, or is only white space.

    `thinks` is whether the model is known to write thoughts without their beginning.
    """
    reading = _read(text)
    if reading.is_open or (thinks and not reading.has_lone_end and not reading.begins):
        return True
    if _UNFINISHED_MARK.search(text, max(0, len(text) - _MAX_MARK)):
        return True
    return _UNFINISHED_WORDS.match(reading.text) is not None


def _read(text: str) -> _Reading:
    pieces: list[str] = []
    depth, start = 0, 0  # of thoughts in thoughts, and of the text that is no thought
    inner_end: int | None = None  # where thoughts inside of thoughts ended
    begins = has_begun = has_lone_end = has_marks = False
    cursor = _skip_object(text, 0)
    while match := _MARK.search(text, cursor):
        cursor, kind = match.end(), match.lastgroup
        if _is_quoted(text, match):
            continue
        has_marks = True
        if kind == "begin":
            if not depth:
                pieces.append(text[start : match.start()])
                inner_end = None
                if not has_begun and not has_lone_end:
                    begins = not "".join(pieces).strip()
            depth, has_begun = depth + 1, True
        elif kind == "final" or (kind == "end" and depth < 2) or (kind == "stop" and depth == 1):
            if not depth and not begins and not has_lone_end:
                has_lone_end = True
                pieces.clear()
            elif not depth:
                pieces.append(text[start : match.start()])
            depth, start, cursor = 0, cursor, _skip_object(text, cursor)
        elif depth:
            if kind in ("end", "stop"):
                depth, inner_end = depth - 1, cursor
        else:
            pieces.append(text[start : match.start()])
            start = cursor
    if not has_marks:
        return _Reading(_unwrap(text))
    if not depth:
        pieces.append(text[start:])
    elif inner_end is not None:  # two beginnings and one end: the second is a word of the thoughts
        pieces.append(_MARK.sub("", text[inner_end:]))
    for number, (piece, next_piece) in enumerate(pairwise(pieces)):
        if not next_piece or next_piece[0].isspace():
            pieces[number] = piece.rstrip()
    return _Reading(_unwrap("".join(pieces)), begins, depth > 0, has_lone_end)


def _skip_object(text: str, position: int) -> int:
    """The end of the JSON object that begins here, or of the text if it is broken off; else the position."""
    match = _OBJECT.match(text, position)
    if match is None:
        return position
    try:
        return _decoder.raw_decode(text, match.end())[1]
    except (ValueError, RecursionError):
        return len(text)


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    before, after = text[max(0, match.start() - 2) : match.start()], text[match.end() : match.end() + 1]
    return bool(after) and after in _QUOTES_AFTER and _QUOTE_BEFORE.search(before) is not None


def _unwrap(text: str) -> str:
    """The text without the tags that some models write around an answer."""
    match = _WRAPPER.match(text)
    if match is None:
        return text
    text = text[match.end() :]
    if match["tag"]:
        return re.sub(rf"</{match['tag']}>\s*\Z", "", text, count=1, flags=re.IGNORECASE)
    return _WRAPPER_END.sub("", text)
