"""Export of a study to other annotation tools: what their formats share, and the folder that is written."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from autoais.base.io.jsonl import parse_object, write_atomic
from autoais.formats.human_ratings.ratings import FLAG, Rating
from rag.annotate.export import check_people
from rag.annotate.items import Item, item_of
from rag.annotate.ratings import current_ratings
from rag.annotate.record import StudyRecord
from rag.annotate.schemes import Question, Unit
from rag.annotate.store import items
from rag.base.errors import UsageError, UserError

CLAIM, PASSAGE, QUESTION = "claim", "passage", "question"
EVIDENCE, REASON = "evidence", "reason"
_POOLS = ("study", "flagged", "judged", "check")


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
        shown = {
            QUESTION: any(QUESTION not in question.hides for question in self.questions),
            CLAIM: self.unit != PASSAGE and any(CLAIM not in question.hides for question in self.questions),
            PASSAGE: any(question.source == "shown" for question in self.questions),
        }
        return tuple(name for name, is_shown in shown.items() if is_shown) or (CLAIM,)

    def asks_evidence(self, question: Question) -> bool:
        """Whether people chose spans for a question."""
        return bool(question.words_for or (self.has_evidence and question.evidence_for))


Write = Callable[[UnitExport], dict[str, bytes]]
"""Returns the files of a unit, by their names in its folder."""


def _writers() -> dict[str, Write]:
    from rag.annotate.label_studio import write_label_studio
    from rag.annotate.potato import write_potato

    return {"label-studio": write_label_studio, "potato": write_potato}


TOOLS = ("label-studio", "potato")


def export_to(study: StudyRecord, folder: Path, tool: str, *, exclude: Collection[str] = ()) -> dict[str, Any]:
    """Write the items and ratings of a study for another tool (`TOOLS`), a folder for each unit; return what it wrote.

    `files` has the bytes of each file by its name, `notes` what the tool's format lacks. Raises `UsageError` for an
    unknown tool, `UserError` for an unknown person, and for a folder that is not empty or cannot be written.
    """
    if tool not in TOOLS:
        raise UsageError(f"no annotation tool called {tool[:60]!r}; there are: {', '.join(TOOLS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists, and is not an empty folder; name another one")
    with study.database.read(snapshot=True) as connection:
        check_people(connection, exclude)
        rated = list(_rated_items(study, connection, exclude))
    report: dict[str, Any] = {"files": {}, "notes": []}
    for unit in study.scheme.units:
        export = UnitExport(
            study.settings.title,
            unit,
            study.scheme.questions_of(unit),
            [entry for entry in rated if entry.item.unit == unit],
            study.settings.reasons != "off",
            study.settings.evidence != "off",
        )
        for name, content in _writers()[tool](export).items() if export.items else ():
            write_atomic(folder / unit / name, content)
            report["files"][f"{unit}/{name}"] = {"bytes": len(content)}
        if any(question.source == "hidden" for question in export.questions) and PASSAGE in export.fields:
            report["notes"].append(
                f"{tool} shows the sources from the first question on; in this study the first one hides them ({unit})"
            )
    return report


def _rated_items(study: StudyRecord, connection: "sa.Connection", exclude: Collection[str]) -> Iterator[RatedItem]:
    ratings = {key: verdicts for key, _, verdicts in current_ratings(connection, study.scheme, exclude)}
    query = sa.select(items.c.id, items.c.row).where(items.c.pool.in_(_POOLS)).order_by(items.c.place)
    for key, row in connection.execute(query):
        item = item_of(parse_object(row.encode(), "the database"), f"item {key!r:.60}", flag_incomplete=True)
        people: dict[str, list[Rating]] = {}
        for rating in ratings.get(key, ()):
            if rating.phase == "study":
                people.setdefault(rating.annotator, []).append(rating)
        decisions = [rating for rating in ratings.get(key, ()) if rating.phase == "adjudication"]
        yield RatedItem(item, people, decisions)


def is_flag(ratings: Sequence[Rating]) -> bool:
    """Whether a person flagged the item."""
    return any(rating.question == FLAG for rating in ratings)
