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
_ANSWERS, _PART, _NO_ANSWER = 2, 1, 0  # grades
INDEX = "index"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The number of words of a stretch of text, and a hash of them."""

    words: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
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


def read_labelled_questions(path: Path) -> Iterator[LabelledQuestion]:
    """Read such a file; raises `FormatError` for a row that is not valid."""
    for location, row in read_objects(path):
        quote_rows = field(row, "quotes", list, location)
        quotes = [
            fingerprint(quote_row) if isinstance(quote_row, str) else _fingerprint(quote_row, "quotes", location)
            for quote_row in quote_rows
        ]
        grades = {}
        for judged_row in field(row, "judged", list, location) if "judged" in row else ():
            key = _fingerprint(judged_row, "judged", location)
            grades[key] = field(judged_row, "grade", int, location)
            if grades[key] not in (_ANSWERS, _PART, _NO_ANSWER):
                raise FormatError(f"{location}: 'grade' should be 0, 1 or 2, found {grades[key]}")
        short, path_of_document = row.get("short"), row.get("path")
        for name, value in (("short", short), ("path", path_of_document)):
            if not isinstance(value, str | None):
                raise FormatError(f"{location}: {name!r} should be a string or null")
        question, collection = field(row, "question", str, location), field(row, "collection", str, location)
        yield LabelledQuestion(question, collection, path_of_document, tuple(quotes), short, grades)


def _fingerprint(quote_row: object, name: str, location: str) -> Fingerprint:
    if not isinstance(quote_row, Mapping):
        expected = "texts, or objects with words and sha256" if name == "quotes" else "objects with words and sha256"
        raise FormatError(f"{location}: {name!r} should be {expected}")
    return Fingerprint(field(quote_row, "words", int, location), field(quote_row, "sha256", str, location))


def find_quote(text: str, quote: Fingerprint) -> tuple[int, int] | None:
    """The first stretch of the text with that fingerprint, in characters."""
    word_spans = [(word.start(), word.end(), word.group().casefold()) for word in _WORD.finditer(text)]
    words = [word for _, _, word in word_spans]
    for first in range(len(words) - quote.words + 1) if quote.words else ():
        if _hash(words[first : first + quote.words]) == quote.sha256:
            return word_spans[first][0], word_spans[first + quote.words - 1][1]
    return None


def groups(
    rows: Iterable[LabelledQuestion],
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
        best, best_spans = None, ()  # type: Passage | None, tuple[tuple[int, int], ...]
        for passage in candidates:
            spans_of_quotes = tuple(span for quote in row.quotes if (span := find_quote(passage.text, quote)))
            if len(spans_of_quotes) > len(best_spans):
                best, best_spans = passage, spans_of_quotes
        negative_passages = [
            hit.passage for hit in hits if not any(find_quote(hit.passage.text, quote) for quote in row.quotes)
        ]
        grades = [(passage, row.judged.get(fingerprint(passage.text))) for passage in negative_passages]
        also = [passage for passage, grade in grades if grade == _ANSWERS and passage != best]
        wrong = [passage for passage, grade in grades if grade == _NO_ANSWER][:others]
        ungraded = [passage for passage, grade in grades if grade is None]
        if row.quotes and best is None and not also:
            continue
        spans: tuple[tuple[int, int], ...] | None = () if best is not None or not also else None
        if best is not None and row.short:
            occurrences = answer_spans(best.text, [row.short])
            spans = tuple(s for s in occurrences if any(a <= s[0] and s[1] <= b for a, b in best_spans)) or None
        right = [*([] if best is None else [best]), *also]
        negative_passages = [*wrong, *negatives(ungraded, others - len(wrong), rng)]
        yield Group(row.question, tuple(right), spans, tuple(sorted(best_spans)), (), tuple(negative_passages))
