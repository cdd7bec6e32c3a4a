"""The passages and pages that an answer cites, as other formats list them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autoais.base.text.sentences import sentence_spans
from autoais.base.text.words import content_stems
from rag.answer.export.escaping import one_line, safe_url, shorten
from rag.base.types import Answer, CitedSentence, Passage

Span = tuple[int, int]
"""Characters of a passage's text: start, and end (exclusive)."""

Link = Callable[[Passage, Sequence[Span]], str | None]
"""Returns the URL of a passage, where these spans are marked if it can; None if the passage has no URL."""


NOT_ANSWERED = "The sources do not answer this question"
NO_ANSWER = "The system gave no answer"

_MAX_TITLE_LENGTH, _MAX_QUOTE_LENGTH = 80, 160  # characters of the closest passage in a sentence
# What the reader says of every question that it refuses, with its figures; the sentence around it says the same.
_DOUBT = re.compile(r"the retrieved passages do not seem to answer it(?: \([^()]*\))?(?:; )?")


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
    """Say for people, on one line, that there is no answer, and why, and what the closest passage says instead.

    The figures of the model are left out. If the system failed, no passage is named.
    """
    reason = plain_reason(answer)
    suffix = f": {reason}." if reason else "."
    if answer.failed:
        return NO_ANSWER + suffix
    return " ".join(filter(None, (NOT_ANSWERED + suffix, _describe_closest(answer))))


def plain_reason(answer: Answer) -> str:
    """Why there is no answer, on one line and without figures; empty if it is only that the sources do not answer."""
    return one_line(_DOUBT.sub("", answer.reason or "")).rstrip(".")


def _describe_closest(answer: Answer) -> str:
    """A sentence with the title of the closest passage and a part of it; empty without passages."""
    hits = {hit.passage.id: hit.passage for hit in answer.hits}
    if not hits:
        return ""
    candidate, identifier = answer.trace.get("candidate"), answer.trace.get("passage")
    passage = hits[identifier] if isinstance(identifier, str) and identifier in hits else answer.hits[0].passage
    title = shorten(passage.headings, _MAX_TITLE_LENGTH) or shorten(passage.id, _MAX_TITLE_LENGTH)
    is_there = isinstance(candidate, str) and candidate in " ".join(passage.text.split())
    text = candidate if isinstance(candidate, str) and is_there else _closest_sentence(passage, answer.question.text)
    quote = shorten(text, _MAX_QUOTE_LENGTH)
    return f"The closest passage, “{title}”, says: “{quote}”" if quote else f"The closest passage is “{title}”."


def _closest_sentence(passage: Passage, question: str) -> str:
    """The sentence of a passage that has most words of a question, the first of several."""
    stems = set(content_stems(question))
    sentences = [passage.text[start:end] for start, end in sentence_spans(passage.text)]
    return max(sentences, key=lambda sentence: len(stems & set(content_stems(sentence))), default="")
