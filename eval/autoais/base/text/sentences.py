"""The sentence splitter of both packages (Wikimedia's sentencex, pinned): spans and metrics depend on it."""

import re

import sentencex

# sentencex takes quadratic time if quotation marks are left open.
_WINDOW = 10_000
_SURROGATE = re.compile("[\ud800-\udfff]")
# At a single capital, white space beyond ASCII and a full stop ("vitamin A\u00a0."), sentencex 1.0.32 panics: it raises
# an error that no `except Exception` catches.
_PANICS = re.compile(r"(?<![^\s.])([A-Z]\s*)[^\S\x00-\x7f](?=\.)")
# What may stand before and after a sentence boundary without white space: "ran.[1]The cat", not `foo.C` or `.First`.
_ENDS = re.compile(r"(?:^|[\s\"'“‘(\[])[a-z0-9'’-]*[a-z0-9)\]\"”’][.!?]+[\"'”’)\]]*$")
_BEGINS = re.compile(r"[\"'“‘(\[]*(?:[A-Z][a-z]+(?=[\s,])|[AI] )")
_STARTER = re.compile(
    r"(?:A|An|And|As|At|But|By|For|From|He|Her|His|However|I|If|In|It|Its|On|She|That|The|Their|There|These|They|This|"
    r"Those|To|We|When|While|With|You)(?=[\s,])"
)
# Abbreviations that sentencex' English list lacks, with what follows them inside of a sentence. Each row is certain by
# itself, whatever the language of the text.
_ABBREVIATIONS = (
    (  # a small letter
        re.compile(r"(?:^|[\s(\[])(?:approx|bijv|bzw|ca|dept|est|excl|incl|max|p\. ?ex|resp|temp|UU|[а-я])\.$"),
        re.compile(r"[^\W\d_A-ZА-Я]"),
    ),
    (
        re.compile(r"(?:^|[\s(\[])(?:[Aa]rt|[Cc]h|[Ee]qs?|[Ff]igs?|[Rr]efs?|[Ss]ec|[Tt]ab|[Vv]ols?)\.$"),
        re.compile(r"\d"),
    ),
    (re.compile(r"(?:^|[\s(\[])(?:Sra|Srta|[Ss]ig|(?<!\d )г)\.$"), re.compile(r"[A-ZÀ-ÞА-Я]")),
    (re.compile(r"(?:^|\s)EE\.$"), re.compile(r"UU\.")),
    (re.compile(r"(?:^|\s)(?:Am|[Dd]e[rnms]|[Vv]om|[Zz]um|[Bb]eim|[Ii]m) \d{1,2}\.$"), re.compile(r"[A-ZÄÖÜ]")),
    (
        re.compile(r"(?:^|\s)\d{1,2}\.$"),
        re.compile(r"(?:Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember|Jahrhunderts?)\b"),
    ),
)
_LONGEST_ABBREVIATION = 12  # characters, with a blank before it


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of each sentence in characters, without surrounding white space.

    Accepts any text. Linear in its length; a sentence of more than 10,000 characters is cut. Names with a dot or a mark
    inside, such as `./configure`, `foo.C` and `System.Out`, stay whole.
    """
    spans: list[tuple[int, int]] = []
    begin = 0
    while begin < len(text):
        end = begin + _WINDOW
        sentences = [(begin + start, begin + stop) for start, stop in _split(text[begin:end])]
        # The last sentence of a window may continue after it.
        begin = sentences.pop()[0] if end < len(text) and len(sentences) > 1 else end
        spans += sentences
    return spans


def boundaries(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of each sentence as sentencex finds it, with the white space after it."""
    # sentencex needs UTF-8, which has no lone surrogates. Replacing single characters keeps the offsets.
    readable = _PANICS.sub(r"\1 ", _SURROGATE.sub("\ufffd", text))
    spans = sentencex.get_sentence_boundaries("en", readable)
    return [(span["start_index"], span["end_index"]) for span in spans]


def _split(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start, end in boundaries(text):
        piece = text[start:end]
        if sentence := piece.strip():
            start += piece.index(sentence[0])
            if spans and _goes_on(text, *spans[-1], start):
                spans[-1] = (spans[-1][0], start + len(sentence))
            else:
                spans.append((start, start + len(sentence)))
    return spans


def _goes_on(text: str, start: int, end: int, following: int) -> bool:
    """Return whether the sentence from `start` to `end` has no end there, and goes on at `following`."""
    return (following == end and _inside_name(text, start, end)) or _is_abbreviated(text, start, end, following)


def _is_abbreviated(text: str, start: int, end: int, following: int) -> bool:
    """Return whether the full stop at `end` belongs to an abbreviation, by that and by what follows on its line."""
    if text[end - 1] != "." or "\n" in text[end:following]:
        return False
    before = text[max(start, end - _LONGEST_ABBREVIATION) : end]
    return any(word.search(before) and then.match(text, following) for word, then in _ABBREVIATIONS)


def _inside_name(text: str, start: int, end: int) -> bool:
    """Return whether a boundary at `end`, without white space, is inside a name; scripts without cases have none."""
    if text[end - 1] in "。！？｡" or (text[end].isalpha() and not (text[end].islower() or text[end].isupper())):
        return False
    if _STARTER.match(text, end):
        return False
    return not (_BEGINS.match(text, end) and _ENDS.search(text[max(start, end - 40) : end]))
