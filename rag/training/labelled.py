"""Questions with quotes that answer them, as training data for the reader.

A file has one JSON object per line:

- `question`, and `collection`: a folder `documents/<collection>` below a data folder, or `index` for the index of the
  recipe;
- `path`: the document that answers it, below that folder, or the id of a passage of the index; null if the collection
  does not answer the question;
- `quotes`: the stretches that answer it, the best first: the texts themselves, or `{"words": n, "sha256": "<first 16
  digits>"}` of their normalised words (`fingerprint`), so that the file holds no text of the documents;
- `short`: the short answer within a quote, or null;
- `judged` (optional): passages that somebody judged, each as the fingerprint of its whole text with a `grade`: 2 if it
  answers the question by itself, 1 if it answers a part, 0 if it does not answer.
"""

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autoais.base.io.jsonl import field, read_objects
from autoais.metrics.short_answers import answer_spans
from rag.base.errors import FormatError, QuestionError
from rag.base.types import Passage
from rag.retrieval import Retriever

if TYPE_CHECKING:
    from rag.training.mining import Group

_WORD = re.compile(r"\w+")
DEPTH = 24  # hits of which the negatives are drawn
_ANSWERS, _PART, _NOTHING = 2, 1, 0  # grades
INDEX = "index"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The number of words of a stretch of text, and a hash of them."""

    words: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question of such a file."""

    question: str
    collection: str
    path: str | None
    quotes: tuple[Fingerprint, ...]
    short: str | None
    judged: Mapping[Fingerprint, int]


def fingerprint(text: str) -> Fingerprint:
    """The fingerprint of a stretch of text; it depends on its words alone, without case."""
    words = _WORD.findall(text.casefold())
    return Fingerprint(len(words), _hash(words))


def _hash(words: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(words).encode("utf-8", "replace")).hexdigest()[:16]


def read_labelled(path: Path) -> Iterator[Labelled]:
    """Read such a file; raises `FormatError` for a row that is not valid."""
    for where, row in read_objects(path):
        given = field(row, "quotes", list, where)
        quotes = [fingerprint(one) if isinstance(one, str) else _fingerprint(one, "quotes", where) for one in given]
        judged = {}
        for one in field(row, "judged", list, where) if "judged" in row else ():
            found = _fingerprint(one, "judged", where)
            judged[found] = field(one, "grade", int, where)
            if judged[found] not in (_ANSWERS, _PART, _NOTHING):
                raise FormatError(f"{where}: 'grade' should be 0, 1 or 2, found {judged[found]}")
        short, place = row.get("short"), row.get("path")
        for name, value in (("short", short), ("path", place)):
            if not isinstance(value, str | None):
                raise FormatError(f"{where}: {name!r} should be a string or null")
        question, collection = field(row, "question", str, where), field(row, "collection", str, where)
        yield Labelled(question, collection, place, tuple(quotes), short, judged)


def _fingerprint(given: object, name: str, where: str) -> Fingerprint:
    if not isinstance(given, Mapping):
        wanted = "texts, or objects with words and sha256" if name == "quotes" else "objects with words and sha256"
        raise FormatError(f"{where}: {name!r} should be {wanted}")
    return Fingerprint(field(given, "words", int, where), field(given, "sha256", str, where))


def find_quote(text: str, quote: Fingerprint) -> tuple[int, int] | None:
    """The first stretch of the text with that fingerprint, in characters."""
    found = [(word.start(), word.end(), word.group().casefold()) for word in _WORD.finditer(text)]
    words = [word for _, _, word in found]
    for first in range(len(words) - quote.words + 1) if quote.words else ():
        if _hash(words[first : first + quote.words]) == quote.sha256:
            return found[first][0], found[first + quote.words - 1][1]
    return None


def groups(
    rows: Iterable[Labelled],
    passages: Mapping[str, Sequence[Passage]],
    retriever: Retriever,
    rng: random.Random,
    *,
    others: int,
) -> "Iterator[Group]":
    """Yield a group per question: the passage with the most quotes, other hits that answer it, and hits that do not.

    `passages` are those of each path. Hits without any quote count as negatives, those judged to be before others; hits
    judged to answer a part are left out. So is a question without a passage that has its quotes or was judged to answer
    it, unless it has no quotes.
    """
    from rag.training.mining import Group, negatives

    for row in rows:
        try:
            (hits,) = retriever.search([row.question], DEPTH)
        except QuestionError:
            continue
        candidates = passages.get(row.path or "", ())
        best, kept = None, ()  # type: Passage | None, tuple[tuple[int, int], ...]
        for passage in candidates:
            found = tuple(span for quote in row.quotes if (span := find_quote(passage.text, quote)))
            if len(found) > len(kept):
                best, kept = passage, found
        lacking = [hit.passage for hit in hits if not any(find_quote(hit.passage.text, quote) for quote in row.quotes)]
        graded = [(passage, row.judged.get(fingerprint(passage.text))) for passage in lacking]
        also = [passage for passage, grade in graded if grade == _ANSWERS and passage != best]
        wrong = [passage for passage, grade in graded if grade == _NOTHING][:others]
        unread = [passage for passage, grade in graded if grade is None]
        if row.quotes and best is None and not also:
            continue
        spans: tuple[tuple[int, int], ...] | None = () if best is not None or not also else None
        if best is not None and row.short:
            said = answer_spans(best.text, [row.short])
            spans = tuple(s for s in said if any(a <= s[0] and s[1] <= b for a, b in kept)) or None
        right = [*([] if best is None else [best]), *also]
        lacking = [*wrong, *negatives(unread, others - len(wrong), rng)]
        yield Group(row.question, tuple(right), spans, tuple(sorted(kept)), (), tuple(lacking))
