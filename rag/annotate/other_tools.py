"""Export of a study to other annotation tools, a folder for each unit."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from autoais.base.io.jsonl import parse_object, write_atomic
from autoais.formats.human_ratings.ratings import Rating
from rag.annotate.export import check_people
from rag.annotate.items import item_of
from rag.annotate.label_studio import write_label_studio
from rag.annotate.potato import write_potato
from rag.annotate.ratings import current_ratings
from rag.annotate.record import StudyRecord
from rag.annotate.store import items
from rag.annotate.unit_export import PASSAGE, RatedItem, UnitExport
from rag.base.errors import UsageError, UserError

_POOLS = ("study", "flagged", "judged", "check", "unasked")
_WRITERS: dict[str, Callable[[UnitExport], dict[str, bytes]]] = {
    "label-studio": write_label_studio,
    "potato": write_potato,
}
TOOLS = tuple(_WRITERS)
"""The tools whose formats are written: for each unit, files by their names in its folder."""


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
        rated_items = list(_rated_items(study, connection, exclude))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it has names and verdicts
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror or error}") from error
    report: dict[str, Any] = {"files": {}, "notes": []}
    for unit in study.scheme.units:
        export = UnitExport(
            study.settings.title,
            unit,
            study.scheme.questions_of(unit),
            [entry for entry in rated_items if entry.item.unit == unit],
            study.settings.reasons != "off",
            study.settings.evidence != "off",
        )
        for name, content in _WRITERS[tool](export).items() if export.items else ():
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
