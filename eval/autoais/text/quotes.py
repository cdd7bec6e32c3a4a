"""Sentences that are quoted from a text."""

import re

from autoais.text.sentences import sentence_spans

_LINE = re.compile(r"[^\s\n](?:[^\n]*[^\s\n])?")  # without white space around it


def is_quoted(sentence: str, text: str) -> bool:
    """Whether the sentence stands in the text, but for white space, as whole sentences or whole lines."""
    tokens = sentence.split()
    if not tokens:
        return False
    found = list(re.finditer(r"\s+".join(map(re.escape, tokens)), text))
    if not found:
        return False
    spans = [*sentence_spans(text), *(line.span() for line in _LINE.finditer(text))]
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    return any(match.start() in starts and match.end() in ends for match in found)
