"""Compare the quotes of stored answers with an index: whether each still stands where it was cited."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from autoais.base.answers import CitedAnswer
from autoais.base.text.sentences import sentence_spans
from autoais.base.types import Citation
from rag.base.errors import QuestionError
from rag.base.types import Passage
from rag.index.index import Index

Status = Literal["same", "moved", "changed", "gone"]

_MAX_SEARCH_WORDS = 40  # words of a quote that is searched for
_MAX_CANDIDATES = 10  # passages that may have a quote that was moved or changed
_MIN_SIMILARITY = 0.6  # of the words of a quote and its changed form; set by hand
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class QuoteCheck:
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
        if self.text is None:
            return ""
        before, after = self.quote.split(), self.text.split()
        pieces: list[str] = []
        for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind == "equal":
                pieces += before[a:b]
                continue
            if a < b:
                pieces.append(f"[-{' '.join(before[a:b])}-]")
            if c < d:
                pieces.append(f"{{+{' '.join(after[c:d])}+}}")
        return " ".join(pieces)


def verify_quotes(answers: Iterable[CitedAnswer], index: Index) -> Iterator[QuoteCheck]:
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


def _check(index: Index, answer: str, sentence: int, citation: Citation, quote: str) -> QuoteCheck:
    cited = index.store.get(citation.passage)
    if cited is not None and citation.start is not None:
        end = citation.start + len(quote)
        if cited.text[citation.start : end] == quote:
            return QuoteCheck(answer, sentence, citation.passage, quote, "same", cited.id, citation.start)
    candidates = [] if cited is None else [cited]
    candidates += [passage for passage in _search(index, quote) if cited is None or passage.id != cited.id]
    pattern = re.compile(r"\s+".join(map(re.escape, quote.split())))
    for passage in candidates:
        if match := pattern.search(passage.text):
            is_same = cited is not None and passage is cited and citation.start is None
            status: Status = "same" if is_same else "moved"
            return QuoteCheck(answer, sentence, citation.passage, quote, status, passage.id, match.start())
    nearest = max((_nearest(passage, quote) for passage in candidates), default=None, key=lambda near: near[0])
    if nearest is None or nearest[0] < _MIN_SIMILARITY:
        return QuoteCheck(answer, sentence, citation.passage, quote, "gone")
    _, identifier, start, text = nearest
    return QuoteCheck(answer, sentence, citation.passage, quote, "changed", identifier, start, text)


def _search(index: Index, quote: str) -> list[Passage]:
    """The passages that share most words with a quote."""
    if index.postings is None:  # of Anserini: only the cited passage is compared
        return []
    try:
        (hits,) = index.postings.search([" ".join(quote.split()[:_MAX_SEARCH_WORDS])], _MAX_CANDIDATES)
    except QuestionError:
        return []
    return [hit.passage for hit in hits]


def _nearest(passage: Passage, quote: str) -> tuple[float, str, int, str]:
    """The similarity (0 to 1), passage id, start and text of the run of sentences that is most like the quote."""
    spans = sentence_spans(passage.text)
    count = max(1, len(sentence_spans(quote)))
    runs = [(spans[first][0], spans[min(first + count, len(spans)) - 1][1]) for first in range(len(spans))]
    words = _WORD.findall(quote.lower())
    best = (0.0, passage.id, 0, "")
    for start, end in runs:
        text = passage.text[start:end]
        similarity = SequenceMatcher(None, words, _WORD.findall(text.lower()), autojunk=False).ratio()
        if similarity > best[0]:
            best = (similarity, passage.id, start, text)
    return best
