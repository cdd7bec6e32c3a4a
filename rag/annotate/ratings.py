"""Each person's current rating of each question about each item."""

import json
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from autoais.base.types import Citation
from autoais.formats.human_ratings.ratings import Rating
from rag.annotate.schemes import Scheme
from rag.annotate.store import items, presses
from rag.annotate.types import Evidence

_PHASES = ("study", "gold", "training", "audit", "adjudication")


def current_ratings(
    connection: "sa.Connection", scheme: Scheme, exclude: Collection[str] = (), *, only: str | None = None
) -> Iterator[tuple[str, bool, list[Rating]]]:
    """Yield (item id, whether it needs more people, its ratings), in the order of the study.

    Verdicts that were undone are left out. `Rating.answer`, `sentence`, `citation` and `system` are not filled in. Of
    the training round, the last attempt counts; of audits and adjudications, the last one. Verdicts of people in
    `exclude` are left out. With `only`, the id of an item, there are no others.
    """
    undo = presses.alias("undo")
    query = (
        sa.select(presses, undo.c.id.is_not(None).label("undone"), items.c.open)
        .join(items, items.c.id == presses.c.item)
        .outerjoin(undo, undo.c.undoes == presses.c.id)
        .where(presses.c.kind.not_in(("undo", "comment")) & presses.c.annotator.not_in(list(exclude)))
        .order_by(items.c.place, presses.c.id)
    )
    if only is not None:
        query = query.where(presses.c.item == only)
    revealing = scheme.revealing
    rows = connection.execution_options(yield_per=1000).execute(query)
    for item, group in groupby(rows, lambda row: str(row.item)):
        item_rows = list(group)
        yield item, bool(item_rows[0].open), _standing(item_rows, revealing)


def _standing(rows: "list[sa.Row[Any]]", revealing: frozenset[tuple[str, str]]) -> list[Rating]:
    attempts: dict[str, int] = {}
    for row in rows:
        if row.phase == "training":
            attempts[row.annotator] = max(row.attempt, attempts.get(row.annotator, 0))
    hidden_questions = {question for question, _ in revealing}
    current: dict[tuple[str, str, str], Rating] = {}
    undone_keys: set[tuple[str, str, str]] = set()
    source_viewers: set[tuple[str, str]] = set()  # people and phases: the source was shown, and the verdict undone
    for row in rows:
        if row.phase == "training" and row.attempt < attempts[row.annotator]:
            continue
        key = ("" if row.phase == "adjudication" else row.annotator, row.phase, row.question)
        if row.undone:
            undone_keys.add(key)
            if (row.question, row.value) in revealing:
                source_viewers.add((row.annotator, row.phase))
            continue
        current[key] = Rating(
            item=row.item,
            annotator=row.annotator,
            question=row.question,
            value=row.value,
            phase=row.phase,
            seconds=None if row.seconds is None else round(row.seconds, 3),
            at=utc(row.at),
            evidence=tuple(Citation(span["passage"], span["start"], span["end"]) for span in json.loads(row.evidence)),
            reason=row.reason,
            revised=key in undone_keys,
            source_seen=row.question in hidden_questions and (row.annotator, row.phase) in source_viewers,
        )
    # A fixed order: that of presses depends on who clicks first, and that of a database on its language.
    return sorted(current.values(), key=lambda rating: (_PHASES.index(rating.phase), rating.annotator, rating.question))


def evidence_in(text: str) -> tuple[Evidence, ...]:
    """Return the evidence of a press, which the database holds as JSON."""
    return tuple(Evidence(span["passage"], span["start"], span["end"]) for span in json.loads(text))


def utc(seconds: float) -> str:
    """Return a time in ISO 8601, UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
