"""What exports to other annotation tools are made of: rated items, and the items of one unit with their questions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autoais.formats.human_ratings.ratings import FLAG, Rating
from rag.annotate.items import Item
from rag.annotate.schemes import Question, Unit

CLAIM, PASSAGE, QUESTION = "claim", "passage", "question"
EVIDENCE, REASON = "evidence", "reason"


@dataclass(frozen=True, slots=True)
class RatedItem:
    """An item with the current ratings of each person, by the person's id, and the decisions of an admin."""

    item: Item
    people: Mapping[str, Sequence[Rating]]
    decisions: Sequence[Rating]

    def texts(self) -> dict[str, str]:
        """Return the texts of the page: the question with earlier turns, the claim, and the passages as one text."""
        turns = [f"{turn.speaker}: {turn.text}" for turn in self.item.turns]
        claim = " ".join(part for part in (self.item.before, self.item.text, self.item.after) if part)
        return {
            QUESTION: "\n".join([*turns, self.item.query] if self.item.query else turns),
            CLAIM: claim if self.item.sentence is None else f"{self.item.text}\n\n(in: {claim})",
            PASSAGE: self._passages()[0],
        }

    def spans(self, rating: Rating) -> Iterator[tuple[int, int]]:
        """Yield the evidence of a rating as code points of the text of all passages."""
        _, starts = self._passages()
        for span in rating.evidence:
            if span.start is not None and span.end is not None and span.passage in starts:
                yield starts[span.passage] + span.start, starts[span.passage] + span.end

    def _passages(self) -> tuple[str, dict[str, int]]:
        """The text of all passages, and where each begins. A passage that is judged by itself is its text alone."""
        if self.item.passage is not None:
            return self.item.sources[0].text, {self.item.passage: 0}
        text, starts = "", {}
        for source in self.item.sources:
            number = "" if source.number is None else f"[{source.number}]"
            heading = " ".join(part for part in (number, source.title, source.section) if part)
            text += ("\n\n" if text else "") + (f"{heading}\n" if heading else "")
            starts[source.id] = len(text)
            text += source.text
        if self.item.table is not None:
            table = self.item.table
            rows = [" | ".join(f"*{cell.text}*" if cell.is_highlighted else cell.text for cell in row)
                    for row in table.rows]  # fmt: skip
            text += "\n".join(part for part in (table.title, table.section, table.text, *rows) if part)
        return text, starts


@dataclass(frozen=True, slots=True)
class UnitExport:
    """The items of one unit with their questions: what becomes one project of another tool."""

    title: str
    unit: Unit
    questions: tuple[Question, ...]
    items: Sequence[RatedItem]
    has_reasons: bool
    has_evidence: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """The texts that any question shows, in the order of the page."""
        parts = {
            QUESTION: any(QUESTION not in question.hides for question in self.questions),
            CLAIM: self.unit != PASSAGE and any(CLAIM not in question.hides for question in self.questions),
            PASSAGE: any(question.source == "shown" for question in self.questions),
        }
        return tuple(name for name, is_shown in parts.items() if is_shown) or (CLAIM,)

    def asks_evidence(self, question: Question) -> bool:
        """Whether people chose spans for a question."""
        return bool(question.words_for or (self.has_evidence and question.evidence_for))


def is_flag(ratings: Sequence[Rating]) -> bool:
    """Whether a person flagged the item."""
    return any(rating.question == FLAG for rating in ratings)
