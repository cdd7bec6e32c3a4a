"""ALCE's own way to read citations, with its quirks (spec F2), for figures that compare with published ones.

ALCE splits with NLTK; here the one splitter splits, and citations behind a full stop then go to the next sentence as
NLTK makes them go. Sentences can still differ from NLTK's where the two splitters do.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from autoais.text.sentences import sentence_spans

_CITATION = re.compile(r"\[(\d+)")
_BEHIND_STOP = re.compile(r"(?<=[.!?])[\"'”’)]*(?P<markers>(?:\s*\[\d[^\[\]]*\])+)(?=\s|\Z)")


@dataclass(frozen=True, slots=True)
class StrictSentence:
    """A sentence without its markers, and the 0-based documents it cites as ALCE counts them.

    `documents` may repeat, may be -1 (written `[0]`: the last document, by Python's indexing), and may be too high.
    """

    text: str
    documents: tuple[int, ...]


def remove_citations(sentence: str) -> str:
    """ALCE's removal: ` [d`, `[d`, ` |` and every `]` go, so that `[1,2].` leaves `,2.` behind."""
    without = re.sub(r"\[\d+", "", re.sub(r" \[\d+", "", sentence))
    return without.replace(" |", "").replace("]", "")


def strict_sentences(output: str) -> tuple[StrictSentence, ...]:
    """The sentences of the output's first line; none where ALCE leaves the answer out of its average."""
    line = output.strip().split("\n")[0].replace("<|im_end|>", "")
    return tuple(
        StrictSentence(
            remove_citations(sentence).strip(), tuple(_index(digits) for digits in _CITATION.findall(sentence))
        )
        for sentence in _split(line)
    )


def judged_documents(documents: Sequence[int], shown: int, at_most: int | None = 3) -> tuple[int, ...] | None:
    """What ALCE judges of a sentence's citations, repeats included, of `shown` documents.

    None where one is too high: the sentence then has recall 0, and none of its citations counts for precision. The
    check comes before the cut to `at_most`. A negative index is an index from the end.
    """
    if any(document >= shown for document in documents):
        return None
    return tuple(documents[:at_most])


def _index(digits: str) -> int:
    return int(digits) - 1 if len(digits) < 19 else sys.maxsize


def _split(line: str) -> list[str]:
    """The sentences, with citations behind a full stop at the head of the next one, or alone at the end."""
    starts = {start for start, _ in sentence_spans(line)}
    for match in _BEHIND_STOP.finditer(line):
        begin, end = match.span("markers")
        following = line[end : end + 16]
        starts.difference_update(range(begin, end + len(following) - len(following.lstrip()) + 1))
        if not following.lstrip()[:1].islower():  # else the stop is an abbreviation's
            starts.add(begin)
    pieces = (line[start:end].strip() for start, end in pairwise([0, *sorted(starts), len(line)]))
    return [piece for piece in pieces if piece]
