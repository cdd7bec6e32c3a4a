"""The sentence splitter of both packages (Wikimedia's sentencex, pinned): spans and metrics depend on it."""

import re

import sentencex

# sentencex takes quadratic time if quotation marks are left open.
_WINDOW = 10_000
_SURROGATE = re.compile("[\ud800-\udfff]")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of each sentence in characters, without surrounding white space.

    Accepts any text. Linear in its length; a sentence of more than 10,000 characters is cut.
    """
    spans: list[tuple[int, int]] = []
    begin = 0
    while begin < len(text):
        end = begin + _WINDOW
        found = [(begin + left, begin + right) for left, right in _split(text[begin:end])]
        # The last sentence of a window may continue after it.
        begin = found.pop()[0] if end < len(text) and len(found) > 1 else end
        spans += found
    return spans


def _split(text: str) -> list[tuple[int, int]]:
    spans = []
    # sentencex needs UTF-8, which has no lone surrogates; replacing them one by one keeps the offsets.
    for boundary in sentencex.get_sentence_boundaries("en", _SURROGATE.sub("\ufffd", text)):
        start, end = boundary["start_index"], boundary["end_index"]
        piece = text[start:end]
        if stripped := piece.strip():
            start += piece.index(stripped[0])
            spans.append((start, start + len(stripped)))
    return spans
