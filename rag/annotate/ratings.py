"""What people's presses come to: the verdict of each person on each question that stands now."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from rag.annotate.store import items, presses

_PHASES = ("study", "gold", "training", "audit", "adjudication")


@dataclass(frozen=True, slots=True)
class Standing:
    """A verdict or flag that was not taken back. `revised`: an earlier one on the same question was."""

    annotator: str
    question: str
    value: str
    phase: str
    seconds: float | None
    at: float
    evidence: str
    reason: str
    revised: bool


def standing(connection: "sa.Connection") -> Iterator[tuple[str, bool, list[Standing]]]:
    """Stream (item id, whether it needs more people, its standing verdicts), in the order of the study.

    Of the training round, the last attempt counts; of audits and adjudications, the last one.
    """
    undo = presses.alias("undo")
    query = (
        sa.select(presses, undo.c.id.is_not(None).label("undone"), items.c.open)
        .join(items, items.c.id == presses.c.item)
        .outerjoin(undo, undo.c.undoes == presses.c.id)
        .where(presses.c.kind != "undo")
        .order_by(items.c.place, presses.c.id)
    )
    rows = connection.execution_options(yield_per=1000).execute(query)
    for item, group in groupby(rows, lambda row: str(row.item)):
        found = list(group)
        yield item, bool(found[0].open), _standing(found)


def _standing(rows: "list[sa.Row[Any]]") -> list[Standing]:
    attempts: dict[str, int] = {}
    for row in rows:
        if row.phase == "training":
            attempts[row.annotator] = max(row.attempt, attempts.get(row.annotator, 0))
    kept: dict[tuple[str, str, str], Standing] = {}
    undone: set[tuple[str, str, str]] = set()
    for row in rows:
        if row.phase == "training" and row.attempt < attempts[row.annotator]:
            continue
        key = ("" if row.phase == "adjudication" else row.annotator, row.phase, row.question)
        if row.undone:
            undone.add(key)
            continue
        kept[key] = Standing(
            row.annotator,
            row.question,
            row.value,
            row.phase,
            row.seconds,
            row.at,
            row.evidence,
            row.reason,
            key in undone,
        )
    # Not the order of the presses, which two people's clicks decide, nor that of a database's language.
    return sorted(kept.values(), key=lambda one: (_PHASES.index(one.phase), one.annotator, one.question))
