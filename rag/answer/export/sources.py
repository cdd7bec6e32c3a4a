"""The passages and pages that an answer cites, as other formats list them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag.answer.export.escaping import one_line, safe_url
from rag.base.types import Answer, CitedSentence, Passage

Span = tuple[int, int]
"""Characters of a passage's text: start, and end (exclusive)."""

Link = Callable[[Passage, Sequence[Span]], str | None]
"""Returns the URL of a passage, where these spans are marked if it can; None if the passage has no URL."""


NOT_ANSWERED = "The sources do not answer this question"
NO_ANSWER = "The system gave no answer"


@dataclass(frozen=True, slots=True)
class Source:
    """A cited passage with its number in the answer, the spans cited (in order, without overlap) and its URL."""

    number: int
    passage: Passage
    spans: tuple[Span, ...]
    url: str | None

    @property
    def title(self) -> str:
        """Title and section on one line, else the id."""
        return one_line(self.passage.headings) or one_line(self.passage.id)

    @property
    def quotes(self) -> list[str]:
        """The texts of the spans."""
        return [self.passage.text[start:end] for start, end in self.spans]


@dataclass(frozen=True, slots=True)
class CitedPage:
    """A cited page: the document or article of one or more cited passages (the part of their ids before `#`).

    `pages` are the page numbers, if the document has some, and `sections` the headings of the passages, in order.
    """

    id: str
    title: str
    url: str | None
    pages: tuple[int, ...]
    sections: tuple[str, ...]


def list_sources(answer: Answer, link: Link | None = None) -> list[Source]:
    """The passages that the answer cites, by number. URLs other than http and https are left out."""
    spans: dict[str, list[Span]] = {}
    for citation in answer.citations:
        spans.setdefault(citation.passage, []).append(citation.span)
    sources = []
    for number, _, hit in answer.number_hits()[: len(spans)]:
        marks = merge_spans(spans[hit.passage.id])
        url = safe_url(link(hit.passage, marks)) if link else None
        sources.append(Source(number, hit.passage, marks, url))
    return sources


def merge_spans(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The spans in order, with those that overlap or touch as one."""
    merged_spans: list[Span] = []
    for start, end in sorted(spans):
        if merged_spans and start <= merged_spans[-1][1]:
            merged_spans[-1] = (merged_spans[-1][0], max(merged_spans[-1][1], end))
        else:
            merged_spans.append((start, end))
    return tuple(merged_spans)


def spans_of(sentence: CitedSentence, passage: str) -> tuple[Span, ...]:
    """The spans of a passage (its id) that a sentence cites, merged."""
    return merge_spans([citation.span for citation in sentence.citations if citation.passage == passage])


def list_pages(answer: Answer, link: Link | None = None) -> list[CitedPage]:
    """The pages that the answer cites, by first citation. The URL is that of its first cited passage, without spans."""
    groups: dict[str, list[Passage]] = {}
    for source in list_sources(answer):
        identifier = source.passage.id
        groups.setdefault(identifier.rpartition("#")[0] or identifier, []).append(source.passage)
    return [
        CitedPage(
            one_line(identifier),
            one_line(passages[0].title) or one_line(identifier),
            safe_url(link(passages[0], ())) if link else None,
            tuple(sorted({passage.page for passage in passages if passage.page is not None})),
            tuple(dict.fromkeys(one_line(passage.section) for passage in passages if passage.section.strip())),
        )
        for identifier, passages in groups.items()
    ]


def abstention_notice(answer: Answer) -> str:
    """A sentence for people which says that there is no answer, and why."""
    reason = one_line(answer.reason or "").rstrip(".")
    suffix = f": {reason}." if reason else "."
    return (NO_ANSWER if answer.failed else NOT_ANSWERED) + suffix
