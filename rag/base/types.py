"""The data types. An `Answer` that cites a passage it was not shown, or misquotes one, cannot be constructed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import CitationError
from autoais.base.io.jsonl import round_floats
from autoais.base.types import Citation, CitedSentence, Passage, Question, Unresolved

__all__ = [
    "DOCUMENTS",
    "MIN_SHORT_SHARE",
    "Answer",
    "Citation",
    "CitedSentence",
    "Hit",
    "Passage",
    "Question",
    "Turn",
    "Unresolved",
    "best_first",
    "rank_hits",
]

DOCUMENTS = "documents"
"""The format of sources that are files or folders of documents."""

MIN_SHORT_SHARE = (
    0.9  # least share of the passages' votes for a short answer to be shown by itself; most with less are wrong
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage and its score; higher is better. Scores are comparable only within one result list.

    `searches` are the further queries that found it, each with its score there (`rag.answer.rounds`).
    """

    passage: Passage
    score: float
    searches: tuple[tuple[str, float], ...] = ()


def best_first(hits: Iterable[Hit]) -> list[Hit]:
    """The hits in descending order of score; ties by passage id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.passage.id))


def rank_hits(passages: Sequence[Passage], scores: Sequence[float]) -> list[Hit]:
    """The hits of passages that are in descending order of score; sorts ties by passage id."""
    hits = [Hit(passage, score) for passage, score in zip(passages, scores, strict=True)]
    if len(set(scores)) < len(scores):  # most lists have no ties and need no sort
        return best_first(hits)
    return hits


def _is_offset(value: object) -> bool:
    return value is None or isinstance(value, int | Integral)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question: clean text, its sentences with citations, and the passages that were shown.

    `str(answer)` is the text with `[n]` markers. `hits` are in rank order. `short_answer` is the string that exact
    match compares, or None. `abstained` means that the system found no answer in the passages (`reason` explains why),
    `failed` that its model returned nothing usable. `confidence` is the probability that the passages contain the
    answer, or None. `trace` holds further data (JSON): the model's raw output, tokens, what was cut, and the short
    answer's share of the passages' votes (`short_share`, 0 to 1), the check of each sentence of a model (`checked`),
    places of cited passages that read like an instruction to a machine (`instructions`), and further searches of a
    model (`searches`).

    The `origin` of a citation is `copied` (the sentence is a quote), `cited` (by the model), `moved` (the model cited
    another passage, a judge chose this one) or `attached` (the model cited none, a judge chose this one).

    Raises `CitationError` if a span does not fit its text, a cited passage is not among the hits, or a quote differs
    from the passage.
    """

    question: Question
    text: str
    sentences: tuple[CitedSentence, ...]
    hits: tuple[Hit, ...]
    system: str
    short_answer: str | None = None
    unresolved: tuple[Unresolved, ...] = ()
    abstained: bool = False
    reason: str | None = None
    failed: bool = False
    confidence: float | None = None
    trace: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        texts = {hit.passage.id: hit.passage.text for hit in self.hits}
        end = 0
        for sentence in self.sentences:
            end = self._check_place(sentence, end)
            for citation in sentence.citations:
                if citation.passage not in texts:
                    raise CitationError(
                        f"answer {self.question.id!r} cites passage {citation.passage!r}, which was not retrieved"
                    )
                if not (_is_offset(citation.start) and _is_offset(citation.end)):
                    raise CitationError(
                        f"answer {self.question.id!r} cites {citation.passage!r} from {citation.start!r:.40} to "
                        f"{citation.end!r:.40}, which should be two integers: Citation(id, start, end, quote)"
                    )
                start, stop = (-1, -1) if citation.start is None or citation.end is None else citation.span
                excerpt = texts[citation.passage][start:stop] if start >= 0 else ""
                if not citation.quote or excerpt != citation.quote:
                    raise CitationError(
                        f"answer {self.question.id!r} quotes {(citation.quote or '')[:60]!r}, but {start}:{stop} of "
                        f"passage {citation.passage!r} is {excerpt[:60]!r}"
                    )

    def _check_place(self, sentence: CitedSentence, before: int) -> int:
        """The end of the sentence; raises `CitationError` if it overlaps the one before or differs from the text."""
        start, end = sentence.start, sentence.end
        if start is None or end is None or not before <= start < end <= len(self.text):
            raise CitationError(
                f"sentence {start}:{end} does not fit: the one before ends at {before}, "
                f"the text has {len(self.text)} characters"
            )
        if self.text[start:end] != sentence.text:
            raise CitationError(f"sentence {start}:{end} is {sentence.text[:60]!r}, which differs from the text there")
        return end

    @property
    def headline(self) -> str | None:
        """The short answer to show by itself; None if it is uncertain: its `short_share` is below 0.9."""
        share = self.trace.get("short_share")
        return None if isinstance(share, int | float) and share < MIN_SHORT_SHARE else self.short_answer

    def __str__(self) -> str:
        """The text with `[n]` markers before the final punctuation of cited sentences, numbered as in `numbered`."""
        return "".join(
            f"{text} {''.join(f'[{n}]' for n in numbers)}" if numbers else text for text, numbers in self.pieces()
        )

    def pieces(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the text in pieces, each with the numbers of the passages that are cited where it ends.

        The pieces together are the text. Citations stand before the final punctuation of a sentence, or after code.
        """
        number = {hit.passage.id: n for n, _, hit in self.number_hits()}
        position = 0
        for sentence in self.sentences:
            if sentence.citations:
                code = sentence.text.rpartition("\n")[2].startswith("    ")
                end = (sentence.start or 0) + len(sentence.text if code else sentence.text.rstrip(".!?"))
                yield self.text[position:end], tuple(number[identifier] for identifier in sentence.cites)
                position = end
        if position < len(self.text):
            yield self.text[position:], ()

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations, sentence by sentence."""
        return tuple(citation for sentence in self.sentences for citation in sentence.citations)

    def number_hits(self) -> list[tuple[int, int, Hit]]:
        """The hits as `(n, rank, hit)`: n counts cited passages by first citation, then the others by rank."""
        cited_ids = dict.fromkeys(citation.passage for citation in self.citations)
        positions = {identifier: position for position, identifier in enumerate(cited_ids)}
        hits_in_order = sorted(
            enumerate(self.hits, 1), key=lambda item: (positions.get(item[1].passage.id, len(positions)), item[0])
        )
        return [(n, rank, hit) for n, (rank, hit) in enumerate(hits_in_order, 1)]

    def to_cited(self, index: str | None = None, seconds: float | None = None) -> CitedAnswer:
        """Convert to the evaluator's type, as stored in `answers.jsonl`; reference answers and gold are included.

        `index` is the name of the index, `seconds` the time that answering took. Floats are rounded to six digits.
        """
        extra = {
            "system": self.system,
            "index": index,
            "failed": self.failed,
            "reason": self.reason,
            "confidence": self.confidence,
            "trace": dict(self.trace),
            "seconds": seconds if seconds is None else round(seconds, 4),
        }
        always_present = ("failed", "reason", "confidence", "trace")
        return CitedAnswer(
            id=self.question.id,
            question=self.question.text,
            sentences=self.sentences,
            passages={hit.passage.id: hit.passage for _, _, hit in self.number_hits()},
            ranking=tuple(hit.passage.id for hit in self.hits),
            scores={hit.passage.id: round_floats(float(hit.score)) for hit in self.hits},
            short_answer=self.short_answer,
            abstained=self.abstained,
            unresolved_markers=self.unresolved,
            answers=self.question.answers,
            gold=self.question.gold,
            nuggets=self.question.nuggets,
            text=self.text,
            extra=round_floats({k: v for k, v in extra.items() if v is not None or k in always_present}),
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of a conversation and its answer."""

    question: str
    answer: str
