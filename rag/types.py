"""The system's nouns. An `Answer` that cites what it was not shown, or misquotes it, cannot be built."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from autoais.questions import Question
from rag.errors import CitationError

__all__ = ["Answer", "Citation", "Hit", "Origin", "Passage", "Question", "Sentence", "Unresolved", "ranked"]

# Who says that a passage supports a sentence: the sentence was copied from there; the model cited it; the model cited
# another and a judge found this one; the model cited none and a judge found it (spec H3, the repair chain).
Origin = Literal["copied", "cited", "moved", "attached"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A citable piece of a corpus; `section` holds the headings below the title, joined by ", "."""

    id: str
    title: str
    text: str
    section: str = ""

    @property
    def headings(self) -> str:
        """Title and section on one line; empty where the corpus gives neither."""
        return ", ".join(part for part in (self.title, self.section) if part)


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage and its score; higher is better, and only comparable within one result list."""

    passage: Passage
    score: float


def ranked(passages: Sequence[Passage], scores: Sequence[float]) -> list[Hit]:
    """Hits of passages whose scores fall; those of equal score in the order of their ids."""
    hits = [Hit(passage, score) for passage, score in zip(passages, scores, strict=True)]
    if len(set(scores)) < len(scores):  # most lists have no ties
        hits.sort(key=lambda hit: (-hit.score, hit.passage.id))
    return hits


@dataclass(frozen=True, slots=True)
class Citation:
    """A pointer to the characters `start:end` of a passage's text, with the words that stand there."""

    passage: str
    start: int
    end: int
    quote: str
    origin: Origin = "copied"


@dataclass(frozen=True, slots=True)
class Sentence:
    """The characters `start:end` of an answer's text, and what they cite; no citations means uncited."""

    start: int
    end: int
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A citation marker that points nowhere, as it was written, and why (spec H: `out-of-range`, `unknown-id`...)."""

    marker: str
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question: clean text, its sentences with citations, and the passages it was given.

    `hits` are in rank order. `short_answer` is the string exact match is taken on; None where the system gives
    none. `abstained` means that the system says its passages do not answer, `reason` why; `failed` that it could not
    try, as its model gave nothing that can be used. `confidence` (0 to 1) is how likely the passages hold the answer,
    None where the system cannot tell. `trace` is what else is worth keeping (JSON): what the model wrote, tokens, what
    was cut. Raises `CitationError` if a span is out of place, a sentence cites a passage that is not among the hits,
    or a quote differs from it.
    """

    question: Question
    text: str
    sentences: tuple[Sentence, ...]
    hits: tuple[Hit, ...]
    system: str
    short_answer: str | None = None
    unresolved: tuple[Unresolved, ...] = ()
    abstained: bool = False
    reason: str | None = None
    failed: bool = False
    confidence: float | None = None
    trace: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shown = {hit.passage.id: hit.passage.text for hit in self.hits}
        end = 0
        for sentence in self.sentences:
            if not end <= sentence.start < sentence.end <= len(self.text):
                raise CitationError(
                    f"sentence {sentence.start}:{sentence.end} does not fit: the one before ends at {end}, "
                    f"the text has {len(self.text)} characters"
                )
            end = sentence.end
            for citation in sentence.citations:
                if citation.passage not in shown:
                    raise CitationError(f"cites passage {citation.passage!r}, which was not retrieved")
                there = shown[citation.passage][citation.start : citation.end]
                if not citation.quote or citation.start < 0 or there != citation.quote:
                    raise CitationError(
                        f"quotes {citation.quote[:60]!r}, but {citation.start}:{citation.end} of passage "
                        f"{citation.passage!r} is {there[:60]!r}"
                    )
