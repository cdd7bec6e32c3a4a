"""Citation parsing as in ALCE's eval.py, with its quirks, for figures that compare with published ones.

ALCE splits sentences with NLTK, which is used where it is installed. Otherwise `sentence_spans` splits, and citations
after a full stop move to the next sentence, as with NLTK; sentences still differ where the two splitters do.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import pairwise

from autoais.base.errors import UserError, install_command
from autoais.base.text.sentences import sentence_spans

_MAX_CITATIONS = 3  # `at_most_citations` of ALCE's eval.py
_CITATION = re.compile(r"\[(\d+)")
_BEHIND_STOP = re.compile(r"(?<=[.!?])[\"'”’)]*(?P<markers>(?:\s*\[\d[^\[\]]*\])+)(?=\s|\Z)")
SPLITTERS = ("nltk", "sentencex")
_INSTALL = f"{install_command('alce')} and python -m nltk.downloader punkt_tab"


@dataclass(frozen=True, slots=True)
class StrictSentence:
    """A sentence without markers, and the indices of the documents it cites (0-based), as ALCE parses them.

    `documents` may hold duplicates, -1 (written `[0]`: Python indexing gives the last document) and indices that are
    too high.
    """

    text: str
    documents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Splitter:
    """A sentence splitter, and its name for reports."""

    name: str
    split: Callable[[str], list[str]]


@cache
def open_splitter(name: str | None = None) -> Splitter:
    """Return the splitter `nltk` or `sentencex`; by default NLTK's if the package and its English data are installed.

    Nothing is downloaded. Raises `UserError` for another name, and for `nltk` where it is not installed.
    """
    if name not in (None, *SPLITTERS):
        raise UserError(f"no splitter called {name!r}; there are: {', '.join(SPLITTERS)}")
    if name != "sentencex":
        missing = "NLTK is not installed"
        try:
            import nltk

            nltk.sent_tokenize("A. B.")
            return Splitter(f"nltk {version('nltk')}", nltk.sent_tokenize)
        except ImportError:
            pass
        except LookupError:
            missing = "NLTK has no English data (punkt_tab)"
        if name == "nltk":
            raise UserError(f"{missing}: {_INSTALL}")
    return Splitter(f"sentencex {version('sentencex')}", _split)


def remove_citations(sentence: str) -> str:
    """Remove ` [d`, `[d`, ` |` and every `]`, as ALCE does; `[1,2].` leaves `,2.`."""
    text = re.sub(r"\[\d+", "", re.sub(r" \[\d+", "", sentence))
    return text.replace(" |", "").replace("]", "")


def first_line(output: str) -> str:
    """Return the part of an output that ALCE scores: its first line, without the end mark of chat models."""
    return output.strip().split("\n")[0].replace("<|im_end|>", "")


def strict_sentences(output: str, splitter: Splitter | None = None) -> tuple[StrictSentence, ...]:
    """Return the sentences of the output's first line; ALCE leaves an answer without any out of its average."""
    split = (splitter or open_splitter()).split
    return tuple(map(_parse_strict, split(first_line(output))))


def list_items(output: str) -> list[str]:
    """Return the items of a list as QAMPARI's outputs write it, between commas; a last full stop does not count."""
    return [item.strip() for item in output.rstrip().rstrip(".").rstrip(",").split(",")]


def strict_items(question: str, output: str) -> tuple[StrictSentence, ...]:
    """Return the claims of a list (QAMPARI) as ALCE makes them: the question and an item; one of an empty output."""
    return tuple(_parse_strict(f"{question} {item}") for item in list_items(first_line(output)))


def select_documents(documents: Sequence[int], document_count: int) -> tuple[int, ...] | None:
    """Return the citations of a sentence that ALCE judges, duplicates included, given `document_count` documents.

    At most three, as `at_most_citations` says there. None if one index is too high, also beyond these: the sentence
    then has recall 0, and none of its citations counts for precision. A negative index counts from the end.
    """
    if any(document >= document_count for document in documents):
        return None
    return tuple(documents[:_MAX_CITATIONS])


def _parse_strict(sentence: str) -> StrictSentence:
    return StrictSentence(remove_citations(sentence).strip(), tuple(map(_index, _CITATION.findall(sentence))))


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
