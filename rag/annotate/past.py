"""What a person has judged: the items, what they said, and what that replaced."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from rag.annotate import queries
from rag.annotate.items import Item
from rag.annotate.queries import COMMENT, FLAG, VERDICT, Row
from rag.annotate.ratings import evidence_in
from rag.annotate.record import StudyRecord
from rag.annotate.schemes import Question
from rag.annotate.types import PastItem, PastVerdict


def past_items(
    study: StudyRecord, connection: "sa.Connection", person: str, assignments: Sequence[Row]
) -> list[PastItem]:
    """Return what a person said about the items of finished assignments, in their order."""
    presses: defaultdict[str, list[Row]] = defaultdict(list)
    parameters = {"person": person, "items": [assignment.item for assignment in assignments]}
    for row in connection.execute(queries.PAST_PRESSES, parameters):
        presses[row.item].append(row)
    return [_past_item(study, assignment, presses[assignment.item]) for assignment in assignments]


def _past_item(study: StudyRecord, assignment: Row, presses: Sequence[Row]) -> PastItem:
    item = study.item(assignment.item)
    verdicts = []
    for question in study.scheme.questions_of(item.unit):
        rows = [row for row in presses if row.kind == VERDICT and row.question == question.name]
        standing = [row for row in rows if not row.taken_back]
        if standing:
            last = standing[-1]
            earlier = tuple((row.value, row.at) for row in rows if row.id < last.id)
            evidence = evidence_in(last.evidence)
            verdicts.append(PastVerdict(question, last.value, last.at, earlier, evidence, last.reason))
    flags = [row.value for row in presses if row.kind == FLAG and not row.taken_back]
    comments = [row.reason for row in presses if row.kind == COMMENT]
    last_question = verdicts[-1].question if verdicts else study.scheme.questions_of(item.unit)[0]
    return PastItem(
        redact(item, assignment.handle, last_question),
        tuple(verdicts),
        flags[-1] if flags else "",
        comments[-1] if comments else "",
    )


def redact(item: Item, handle: str, question: Question) -> Item:
    """Return the item without what a browser must not get while the question is asked."""
    visible_item = replace(item, id=handle, answer="", group="", system="", expected={}, explanation="", flags=())
    if question.source == "hidden":
        visible_item = replace(visible_item, sources=(), table=None)
        if item.kind != "qa":  # a summary or caption is judged by itself
            visible_item = replace(visible_item, query="", turns=())
    if "question" in question.hides:
        visible_item = replace(visible_item, query="", turns=())
    if "claim" in question.hides:
        visible_item = replace(visible_item, text="", before="", after="")
    return visible_item
