"""Citation parsing as in ALCE's eval.py, with its quirks, for figures that compare with published ones.

ALCE splits sentences with NLTK. Here `sentence_spans` splits, and citations after a full stop move to the next
sentence, as with NLTK. Sentences still differ where the two splitters do.
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
    """A sentence without markers, and the indices of the documents it cites (0-based), as ALCE parses them.

    `documents` may hold duplicates, -1 (written `[0]`: Python indexing gives the last document) and indices that are
    too high.
    """

    text: str
    documents: tuple[int, ...]


def remove_citations(sentence: str) -> str:
    """Remove ` [d`, `[d`, ` |` and every `]`, as ALCE does; `[1,2].` leaves `,2.`."""
    without = re.sub(r"\[\d+", "", re.sub(r" \[\d+", "", sentence))
    return without.replace(" |", "").replace("]", "")


def strict_sentences(output: str) -> tuple[StrictSentence, ...]:
    """Return the sentences of the output's first line; ALCE leaves an answer without any out of its average."""
    line = output.strip().split("\n")[0].replace("<|im_end|>", "")
    return tuple(
        StrictSentence(
            remove_citations(sentence).strip(), tuple(_index(digits) for digits in _CITATION.findall(sentence))
        )
        for sentence in _split(line)
    )


def judged_documents(documents: Sequence[int], shown: int, at_most: int | None = 3) -> tuple[int, ...] | None:
    """Return the citations of a sentence that ALCE judges, duplicates included, given `shown` documents.

    None if one index is too high: the sentence then has recall 0, and none of its citations counts for precision. The
    check precedes the cut to `at_most`. A negative index counts from the end.
    """
    if any(document >= shown for document in documents):
        return None
    return tuple(documents[:at_most])


def _index(digits: str) -> int:
    return int(digits) - 1 if len(digits) < 19 else sys.maxsize


def _split(line: str) -> list[str]:
    """Split a line into sentences; citations after a full stop start the next sentence, or stand alone at the end."""
    starts = {start for start, _ in sentence_spans(line)}
    for match in _BEHIND_STOP.finditer(line):
        begin, end = match.span("markers")
        following = line[end : end + 16]
        starts.difference_update(range(begin, end + len(following) - len(following.lstrip()) + 1))
        if not following.lstrip()[:1].islower():  # else the full stop belongs to an abbreviation
            starts.add(begin)
    pieces = (line[start:end].strip() for start, end in pairwise([0, *sorted(starts), len(line)]))
    return [piece for piece in pieces if piece]
