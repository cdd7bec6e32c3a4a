"""Quotations in a text: what stands in quotation marks or in a block quote, and presents itself as another's words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from autoais.base.text.words import words

MIN_WORDS = 4
"""Shorter strings in quotation marks are mostly terms, names and ironic quotes: people quote them from nobody.

In claims and answers that people judged, half of the 16 strings of three words that no source has were such, and
nearly all of two words.
"""
_MAX_LENGTH = 3_000  # characters; a mark that is not closed before is no quotation mark
_MAX_SINGLE = 400  # in single marks, which are mostly apostrophes
_MIN_UNMARKED = 8  # words: so long a string is a quotation even if no verb of saying introduces it

_MAX_TITLE = 15  # words with a capital: more are a heading, or shouted
_MINOR = frozenset(
    "a an and as at but by for from if in into nor of off on or per so the to up via vs with yet".split()
)

_PAIRS = {"“": "”", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"', "'": "'", "‘": "’"}
_PAIRS["„"] = "“”"  # German „…“, Polish „…”
_MARK = re.compile("[\"'“”‘’«»„「」『』]|\n[ \t]*\n")
_CODE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"(?:^[ \t]*>(?!>>).*(?:\n|\Z))+", re.MULTILINE)  # `>>>` is Python's prompt
_PREFIX = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_SIGNATURE = re.compile(r"\n[ \t]*[-–—][^\n]*\Z")  # of a block quote: "— Author"
# Remarks of the writer in the form of a block quote: "> **Note:** ...", "> [!TIP]".
_REMARK = re.compile(r"\W*(?:note|tip|warning|caution|important|info|hint|example|summary)\b", re.IGNORECASE)
_ELISION = re.compile(r"(?:tis|twas|em|til|cause|n|\d{2}s?)\b", re.IGNORECASE)  # after an apostrophe
# A name of a work, an example or the meaning of a word, by the words before it.
_NAMING = re.compile(
    r"(?:\b(?:(?:en)?titled|named|song|track|single|album|book|novel|story|poem|essay|play|film|movie|show|series|"
    r"episode|documentary|painting|article|paper|chapter|section|report|headline|magazine|journal|video|game|course|"
    r"motto|slogan|phrase|phrases|term|terms|word|words|concept|idiom|proverb|acronym|question|questions|query|"
    r"called|termed|dubbed|nicknamed|labell?ed|known as|referred to as|stands for|means?|meaning|translat\w+ (?:as|to)|"
    r"(?:can|could|might|may|would|should) say|such as|like|e\.g\.|i\.e\.|for example|for instance|ask(?:s|ed|ing)?|"
    r"so-called|literally|defined as|or)"
    r"|[A-Z]{2,}[)]?)[,:]?\s*[(]?\Z"
)
_SAYING = re.compile(
    r"\b(?:say|says|said|saying|state[sd]?|stating|according to|writes?|wrote|written|writing|quot\w+|notes|noted|"
    r"noting|explain(?:s|ed|ing)?|report(?:s|ed)?|declare[sd]?|declaring|claim(?:s|ed|ing)?|argue[sd]?|arguing|"
    r"add(?:s|ed|ing)|remark(?:s|ed)|reads?|conclude[sd]?|concluding|announce[sd]?|emphasi[sz]e[sd]?|"
    r"describe[sd]?(?: it| this| them)? as|stipulat\w+|provides? that|told|tells|recall(?:s|ed)|commented)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quotation:
    """Characters `start` to `end` (exclusive) of a text, without the marks around them.

    `is_block` is for a block quote, whose lines begin with `>`. `names` says that the words before it introduce a
    title, a term or an example, `has_speaker` that its sentence has a verb of saying or that it is long.
    """

    start: int
    end: int
    is_block: bool = False
    names: bool = False
    has_speaker: bool = False


def find_quotations(text: str) -> list[Quotation]:
    """Return the quotations of at least `MIN_WORDS` words, in order; those inside others are left out.

    Marks: "…", “…”, «…», »…«, „…“, 「…」, and '…' where both marks can be no apostrophe. Left out are code, and titles
    with capitals. Inside a word and before a blank, a mark opens nothing; a quotation ends with its paragraph. Linear
    in the length of the text.
    """
    visible_text = _CODE.sub(lambda match: " " * len(match[0]), text)
    quotations = []
    for start, end in (block.span() for block in _BLOCK.finditer(visible_text)):
        body = _PREFIX.sub(lambda match: " " * len(match[0]), text[start:end])
        if signature := _SIGNATURE.search(body.rstrip()):
            body = body[: signature.start()]
        if not _REMARK.match(body):
            quotations.append(_strip(text, start, start + len(body.rstrip()), is_block=True))
    visible_text = _BLOCK.sub(lambda match: " " * len(match[0]), visible_text)
    quotations += [_strip(text, *span) for span in _find_pairs(visible_text)]
    quotations = [quotation for quotation in quotations if _is_quotation(text[quotation.start : quotation.end])]
    return sorted(quotations, key=lambda quotation: quotation.start)


def _find_pairs(text: str) -> Iterator[tuple[int, int]]:
    """The spans between an opening mark and the mark that closes it; another pair of marks inside opens nothing."""
    start, closing = 0, ""
    for match in _MARK.finditer(text):
        mark, position = match[0], match.start()
        if len(mark) > 1 or position - start > (_MAX_SINGLE if closing in ("'", "’") else _MAX_LENGTH):
            closing = ""
        if len(mark) > 1:
            continue
        if mark in closing and _closes(mark, text, position):
            yield start, position
            closing = ""
        # The same mark again, where it can only open, says that the first one opened nothing: an inch, a lost mark.
        elif (not closing or _PAIRS.get(mark) == closing) and _opens(mark, text, position):
            start, closing = position + 1, _PAIRS[mark]


def _opens(mark: str, text: str, position: int) -> bool:
    before, after = text[max(0, position - 1) : position], text[position + 1 : position + 2]
    if mark not in _PAIRS or not after or (after.isspace() and mark != "«"):
        return False
    if mark in "'‘" and _ELISION.match(text, position + 1):
        return False
    return mark in "“«„「『" or not (before.isalnum() or (before and before in ".!?%)"))


def _closes(mark: str, text: str, position: int) -> bool:
    before, after = text[position - 1], text[position + 1 : position + 2]
    if mark in "'’":  # after an s and before a word it may be a plural's apostrophe: "the owners' names"
        return not (after.isalnum() or before.isspace() or (before in "sS" and after == " "))
    return mark != '"' or not (after.isalnum() or before.isspace())


def _strip(text: str, start: int, end: int, *, is_block: bool = False) -> Quotation:
    """The quotation without white space, marks and the `>` of a block at its ends."""
    span_text = text[start:end]
    body = span_text.strip(" \t\n>\"'“”‘’«»„*_")
    start += span_text.index(body) if body else 0
    end = start + len(body)
    before = text[max(0, start - 60) : start].rstrip("\"'“”‘’«»„*_ \t(")
    context = re.split(r"[.!?]\s+(?=[A-Z])|\n", text[max(0, start - 200) : start])[-1]
    context += " " + re.split(r"[.!?](?:\s|\Z)|\n", text[end + 1 : end + 120])[0]
    has_speaker = is_block or bool(_SAYING.search(context)) or len(words(body)) >= _MIN_UNMARKED
    return Quotation(start, end, is_block, not is_block and bool(_NAMING.search(before)), has_speaker)


def _is_quotation(body: str) -> bool:
    """Whether a string has the words of a quotation, and not the capitals of a title."""
    tokens = words(body)
    n_words = sum(0.5 if len(token) == 1 and token > "\u2e80" else 1 for token in tokens)
    return n_words >= MIN_WORDS and not _is_title(body)


def _is_title(body: str) -> bool:
    """Whether nearly all words that a title writes with a capital have one, and at least two: "Gone with the Wind"."""
    content = [word for word in re.findall(r"[^\W\d_][\w'’-]*", body) if word.lower() not in _MINOR]
    capitals = sum(word[0].isupper() for word in content)
    return capitals >= 2 and capitals >= 0.75 * len(content) and len(content) <= _MAX_TITLE
