"""Compare the quotes of stored answers with an index: whether each still stands where it was cited."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from autoais.base.answers import CitedAnswer
from autoais.base.text.nearest import compare_words, find_nearest, format_changes
from autoais.base.types import Citation
from rag.base.errors import QuestionError
from rag.base.types import Passage
from rag.index.index import Index

Status = Literal["same", "moved", "changed", "gone"]

_MAX_SEARCH_WORDS = 40  # words of a quote that is searched for
_MAX_CANDIDATES = 10  # passages that may have a quote that was moved or changed
_MIN_SIMILARITY = 0.6  # of the words of a quote and its changed form; set by hand


@dataclass(frozen=True, slots=True)
class QuoteComparison:
    """What became of a quote: of answer `answer` (its id), sentence `sentence` (from 0), cited from passage `passage`.

    `status`: `same` (it stands where it was cited), `moved` (word for word at another place or in another passage),
    `changed` (the nearest text differs), `gone` (no passage has anything like it). `current_passage` is the passage
    that has the quote, or its changed form `text`, from character `start` on; None if it is gone.
    """

    answer: str
    sentence: int
    passage: str
    quote: str
    status: Status
    current_passage: str | None = None
    start: int | None = None
    text: str | None = None

    @property
    def diff(self) -> str:
        """A changed quote with the words that went in `[-...-]` and those that came in `{+...+}`."""
        return "" if self.text is None else format_changes(compare_words(self.quote, self.text))


def verify_quotes(answers: Iterable[CitedAnswer], index: Index) -> Iterator[QuoteComparison]:
    """Check every quote of the answers against the index, in order; citations without a quote are passed over."""
    for answer in answers:
        for number, sentence in enumerate(answer.sentences):
            for citation in sentence.citations:
                quote = _quote_of(answer, citation)
                if quote.strip():
                    yield _check(index, answer.id, number, citation, quote)


def _quote_of(answer: CitedAnswer, citation: Citation) -> str:
    """The quote of a citation, or the text that its span has in the answer's own passage."""
    if citation.quote:
        return citation.quote
    if citation.start is None or citation.end is None:
        return ""
    return answer.passages[citation.passage].text[citation.start : citation.end]


def _check(index: Index, answer: str, sentence: int, citation: Citation, quote: str) -> QuoteComparison:
    cited = index.store.get(citation.passage)
    if cited is not None and citation.start is not None:
        end = citation.start + len(quote)
        if cited.text[citation.start : end] == quote:
            return QuoteComparison(answer, sentence, citation.passage, quote, "same", cited.id, citation.start)
    candidates = [] if cited is None else [cited]
    candidates += [passage for passage in _search(index, quote) if cited is None or passage.id != cited.id]
    pattern = re.compile(r"\s+".join(map(re.escape, quote.split())))
    for passage in candidates:
        if match := pattern.search(passage.text):
            is_same = cited is not None and passage is cited and citation.start is None
            status: Status = "same" if is_same else "moved"
            return QuoteComparison(answer, sentence, citation.passage, quote, status, passage.id, match.start())
    texts = [(passage, nearest) for passage in candidates if (nearest := find_nearest(quote, passage.text))]
    texts = [(passage, nearest) for passage, nearest in texts if nearest.similarity >= _MIN_SIMILARITY]
    if not texts:
        return QuoteComparison(answer, sentence, citation.passage, quote, "gone")
    passage, nearest = max(texts, key=lambda pair: pair[1].similarity)
    text = passage.text[nearest.start : nearest.end]
    return QuoteComparison(answer, sentence, citation.passage, quote, "changed", passage.id, nearest.start, text)


def _search(index: Index, quote: str) -> list[Passage]:
    """The passages that share most words with a quote."""
    if index.postings is None:  # of Anserini: only the cited passage is compared
        return []
    try:
        (hits,) = index.postings.search([" ".join(quote.split()[:_MAX_SEARCH_WORDS])], _MAX_CANDIDATES)
    except QuestionError:
        return []
    return [hit.passage for hit in hits]
