"""Sentences that are quoted from a text."""

import re

from autoais.base.text.sentences import sentence_spans

_LINE = re.compile(r"[^\s\n](?:[^\n]*[^\s\n])?")  # without white space around it


def is_quoted(sentence: str, text: str) -> bool:
    """Whether the sentence stands in the text, but for white space, as whole sentences or whole lines."""
    return find_quote(sentence, text) is not None


def find_quote(sentence: str, text: str) -> tuple[int, int] | None:
    """Where the sentence first stands in the text as whole sentences or whole lines, but for white space; else None."""
    tokens = sentence.split()
    if not tokens:
        return None
    matches = list(re.finditer(r"\s+".join(map(re.escape, tokens)), text))
    if not matches:
        return None
    spans = [*sentence_spans(text), *(line.span() for line in _LINE.finditer(text))]
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    return next((match.span() for match in matches if match.start() in starts and match.end() in ends), None)
