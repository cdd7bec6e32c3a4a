"""The requests and responses of the API; spans count characters (Unicode code points), end exclusive.

Fields that end in `_utf16` are the same places in UTF-16 code units, by which JavaScript, Java and C# cut text.

An answer is a row of `answers.jsonl` (`autoais.base.answers.to_row`), so that all that reads those rows reads it.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from autoais.base.types import Verdict
from rag.answer.options import OPTIONS
from rag.base.types import Passage
from rag.base.types import Turn as ConversationTurn
from rag.index.statistics import Statistics
from rag.retrieval.client import AskOptions

_INDEX = Field(
    None, description="Name of an index, or of several to search as one, such as a+b; the first one if none is given."
)
_RETRIEVER = Field("bm25", description="Retriever, as for `rag search --retriever`.")
_START: Any = Field(description="Counts characters (Unicode code points).")
_START_UTF16: Any = Field(description="`start` in UTF-16 code units, as JavaScript counts.")
_K = Field(10, ge=1, description="Number of passages.")


def _field_of(name: str) -> Any:  # noqa: ANN401  (what Field returns)
    """A field of a request from the table of a system's options."""
    option = OPTIONS[name]
    return Field(None, ge=option.minimum, le=option.maximum, description=option.help)


class Request(BaseModel):
    """A request; unknown fields are refused, so that a typo is not ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TermStatistics(Request):
    """The statistics that BM25 uses for the terms of a query."""

    passages: int = Field(ge=0)
    untitled: int = Field(ge=0, description="Passages without headings.")
    lengths: dict[str, float] = Field(description="Mean number of tokens of each field.")
    frequencies: dict[str, list[int]] = Field(description="Passages that have each term in the field.")

    def statistics(self) -> Statistics:
        """Return the statistics as the library has them."""
        counts = {name: tuple(numbers) for name, numbers in self.frequencies.items()}
        return Statistics(self.passages, self.untitled, self.lengths, counts)


class SearchRequest(Request):
    """One query, or several."""

    query: str | None = Field(None, description="The query; or give `queries`.")
    queries: list[str] | None = Field(None, description="Several queries, searched one after the other.")
    index: str | None = _INDEX
    retriever: str = _RETRIEVER
    k: int = _K
    statistics: list[TermStatistics] | None = Field(
        None, description="Of the whole collection, one for each of `queries`, if the index is a shard of it."
    )


class StatisticsRequest(Request):
    """Queries whose terms are looked up."""

    queries: list[str]
    index: str | None = _INDEX
    retriever: str = Field("bm25", description="A retriever of kind bm25.")


class Turn(Request):
    """An earlier question and its answer."""

    question: str
    answer: str

    def turn(self) -> ConversationTurn:
        """Return the turn as the library has it."""
        return ConversationTurn(self.question, self.answer)


class AskRequest(Request):
    """A question, which may follow up on earlier turns."""

    question: str
    id: str = Field("q1", max_length=200, description="Id of the answer's row.")
    index: str | None = _INDEX
    system: str | None = Field(None, description="Name of a system; the first one if none is given.")
    history: list[Turn] = Field([], description="Earlier turns, oldest first.")
    retriever: str | None = _field_of("retriever")
    k: int | None = _field_of("k")
    min_confidence: float | None = _field_of("min_confidence")
    verdicts: bool = Field(False, description="Judge each sentence, which takes longer.")
    stream: bool = Field(False, description="Send the text as it is written, as server-sent events.")

    def options(self) -> AskOptions:
        """Return the options of the system."""
        return {"retriever": self.retriever, "k": self.k, "min_confidence": self.min_confidence}


class Evidence(Request):
    """A text with what stands above it; a judge reads `title, section. text`."""

    text: str
    id: str = ""
    title: str = ""
    section: str = ""

    def passage(self) -> Passage:
        """Return it as a passage."""
        return Passage(self.id, self.title, self.text, self.section)


class JudgeRequest(Request):
    """A claim and its evidence."""

    claim: str
    evidence: list[str | Evidence] = Field(description="Texts, which together should support the claim.")
    question: str = Field("", description="The question that the claim answers.")

    def passages(self) -> list[Passage]:
        """Return the evidence as passages."""
        return [Passage("", "", piece) if isinstance(piece, str) else piece.passage() for piece in self.evidence]


class AttributeRequest(Request):
    """An answer of any system; its citation markers are removed."""

    question: str
    answer: str
    index: str | None = _INDEX
    retriever: str = _RETRIEVER
    k: int = _K


# --- responses --------------------------------------------------------------------------------------------------------


class Hit(BaseModel):
    """A passage that was found."""

    rank: int
    id: str
    title: str
    section: str
    headings: str | None = Field(None, description="Only if they differ from title and section.")
    page: int | None = Field(None, description="Page of a document on which the text begins.")
    text: str
    score: float
    url: str = Field(description="Opens the passage on a page of this server.")


class QueryHits(BaseModel):
    """The hits of a query, best first."""

    query: str
    hits: list[Hit]


class SearchResponse(BaseModel):
    """The hits of one query (`hits`), or of several (`results`), in their order."""

    index: str
    checksum: str = Field(description="Changes whenever the index changes.")
    retriever: str = Field(description="Name of the retriever with all settings that can change a ranking.")
    hits: list[Hit] | None = None
    results: list[QueryHits] | None = None


class StatisticsResponse(BaseModel):
    """The statistics that BM25 uses for the terms of each query, in the order of the queries."""

    index: str
    checksum: str
    retriever: str
    statistics: list[TermStatistics]


class Citation(BaseModel):
    """What a sentence cites: a span of a passage's text, and its words."""

    passage: str = Field(description="Id of the passage.")
    start: int = _START
    end: int
    start_utf16: int = _START_UTF16
    end_utf16: int
    quote: str
    origin: str | None = Field(None, description="copied, cited, moved or attached.")


class Sentence(BaseModel):
    """A sentence: characters `start` to `end` of the answer."""

    text: str
    start: int = _START
    end: int
    start_utf16: int = _START_UTF16
    end_utf16: int
    citations: list[Citation]


class CitedPassage(BaseModel):
    """A passage that the system was shown; `n` is its number in `str(answer)`, `rank` that of the retriever."""

    n: int
    rank: int
    id: str
    title: str
    section: str
    headings: str | None = None
    page: int | None = None
    text: str
    score: float | None = None


class Unresolved(BaseModel):
    """A marker of a language model that leads to no passage."""

    marker: str
    reason: str
    sentence: int | None = None


class QuoteSource(BaseModel):
    """A span of a passage that has a quotation, a part of it, or what comes nearest to it."""

    passage: str
    start: int
    end: int
    quote: str


class QuoteCheck(BaseModel):
    """A quotation in a sentence, compared with the passages."""

    quote: str
    status: Literal["verbatim", "misattributed", "stitched", "misquoted"]
    spans: list[tuple[int, int, int]] = Field(description="Where it stands: sentence (from 0), start and end.")
    sources: list[QuoteSource] = Field(description="What has it, part by part; of a misquotation the nearest text.")
    diff: str = Field(description="Of a misquotation: words that the source lacks in `[-...-]`, its own in `{+...+}`.")


class Nearest(QuoteSource):
    """The span of a passage that says most about a sentence, which does not cite it."""

    supports: bool = Field(description="Whether the judge finds that the passage supports the sentence.")


class Contradiction(QuoteSource):
    """The span of a passage that says otherwise."""

    differences: list[tuple[int, int]] | None = Field(None, description="Words of the quote that clash, as offsets.")


class SentenceCheck(BaseModel):
    """Whether what a sentence cites supports it; `no_claim` is for a sentence that needs no source.

    A sentence that cites nothing is contradicted if the passage that says most about it says otherwise.
    """

    verdict: Literal["supported", "not_enough", "contradicted", "undecided", "no_claim"]
    probability: float | None = Field(description="Probability that it is supported, if the judge gives one.")
    reason: str | None
    unsupported: list[tuple[int, int]] = Field(description="Spans of the sentence without support in the evidence.")
    nearest: Nearest | None = Field(None, description="Of a sentence that what it cites does not support.")
    contradiction: Contradiction | None = None
    numbers: tuple[str, str] | None = Field(None, description="The source's number, and that of the sentence.")
    quotes: list[QuoteCheck] = Field(description="The quotations of at least four words that begin in it.")


class AnswerResponse(BaseModel):
    """A row of `answers.jsonl`, with a link for each passage."""

    id: str
    question: str = Field(description="As it was searched: a follow-up question as a whole one.")
    system: str = Field(description="Name of the system with all settings that can change an answer.")
    index: str
    answer: str
    short_answer: str | None
    sentences: list[Sentence]
    passages: list[CitedPassage]
    unresolved: list[Unresolved]
    abstained: bool = Field(description="The passages do not answer the question; `reason` says why.")
    failed: bool
    reason: str | None
    confidence: float | None
    trace: dict[str, Any]
    seconds: float
    urls: dict[str, str] = Field(description="A link for each passage, with what is cited marked, by passage id.")
    verdicts: list[SentenceCheck] | None = Field(None, description="One for each sentence, if asked for.")


class Span(BaseModel):
    """Characters of a piece of evidence, counted in what the judge read: `title, section. text`."""

    evidence: int
    start: int = _START
    end: int
    start_utf16: int = _START_UTF16
    end_utf16: int


class JudgeResponse(BaseModel):
    """A judgement."""

    verdict: Verdict
    probability: float | None = Field(description="Probability of attributable, if the judge gives one.")
    reason: str | None
    evidence: list[Span]
    unsupported: list[tuple[int, int]]
    judge: str = Field(description="Name of the judge with all settings that can change a verdict.")


class IndexInfo(BaseModel):
    """An index that is served."""

    name: str
    checksum: str
    passages: int


class IndexesResponse(BaseModel):
    """The indexes and systems that are served; the first of each is the default."""

    version: str
    indexes: list[IndexInfo]
    systems: list[str]
    judge: str


class PageResponse(BaseModel):
    """A page of a PDF: its number from 1, its size in points, the boxes on it, and the address of its picture (PNG).

    A box is left, top, right and bottom as fractions of the width and the height of the page as it is seen, from its
    upper left corner; so it fits a picture of any size.
    """

    page: int
    width: float
    height: float
    boxes: list[tuple[float, float, float, float]]
    image: str


class OriginalResponse(BaseModel):
    """Where a passage stands in the file that it was read from.

    `pages` are those of a PDF on which the words stand; the one where the passage begins, without boxes, if they were
    not found, as `note` says. `page_count` is 0 for other files. `url` is the address of a page of the web, at the
    words, or empty; `download` is that of the file.
    """

    index: str
    passage: str
    file: str
    download: str
    url: str
    page_count: int
    pages: list[PageResponse]
    note: str


class Fault(BaseModel):
    """`type` is the name of an error of `rag.base.errors`, or AuthenticationError, HTTPError or InternalError."""

    type: str
    message: str


class ErrorResponse(BaseModel):
    """An error in one line."""

    error: Fault
