"""Items that are added to a study while it runs."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection

from autoais import formats
from autoais.base.answers import CitedAnswer, read_answers, write_answers
from autoais.base.io.jsonl import dumps, write_atomic
from rag.annotate.items import (
    Item,
    check_items,
    item_of,
    items_of,
    order_items,
    pool_of,
    read_items,
    to_row,
    topic_of,
    write_items,
)
from rag.annotate.schemes import Kind, Scheme
from rag.annotate.store import items as item_table
from rag.annotate.study import Study
from rag.base.errors import FormatError, UsageError

_ANSWERS, _ITEMS = "answers.jsonl", "items.jsonl"


def add_items(
    study: Study,
    *,
    items: str | Path | Iterable[Item] | None = None,
    answers: str | Path | Iterable[CitedAnswer] | None = None,
    kind: Kind = "qa",
    flag_incomplete: bool = False,
) -> int:
    """Add items after those of a study, which may be served meanwhile; return how many people will judge.

    Give what the study was made of, as for `create_study`: items or answers. A judge does not choose among them. Raises
    `UsageError` for the other kind, `FormatError` for an item that is in the study already or has missing parts; then
    nothing is added.
    """
    if (items is None) == (answers is None):
        raise UsageError("name either items or answers to add")
    of_answers = (study.folder / _ANSWERS).exists()
    if of_answers != (answers is not None):
        raise UsageError(f"this study was made of {'answers' if of_answers else 'items'}: add such")
    new_answers: list[CitedAnswer] = []
    new_items: Iterable[Item]
    if answers is not None:
        new_answers = list(formats.read(Path(answers)) if isinstance(answers, str | Path) else answers)
        new_items = items_of(new_answers, study.scheme, kind=kind, flag_incomplete=flag_incomplete)
    else:
        new_items = _read(items or (), flag_incomplete)
    checked = list(check_items(new_items, study.scheme, "items" if answers is None else "answers"))
    with study.database.write() as connection:
        _check_new(connection, checked)
        if answers is not None:
            write_atomic(study.folder / _ANSWERS, write_answers(_join(study.folder / _ANSWERS, new_answers)))
        else:
            before = list(read_items(study.folder / _ITEMS, flag_incomplete=True))
            known = {item.id for item in before}
            added = [item for item in checked if item.id not in known]
            write_atomic(study.folder / _ITEMS, write_items([*before, *added]))
        n = _insert(connection, checked, study.scheme, study.settings.seed)
    study.pools["study"] = study.pools.get("study", 0) + n
    return n


def _read(items: str | Path | Iterable[Item], flag_incomplete: bool) -> Iterable[Item]:
    if isinstance(items, str | Path):
        return read_items(items, flag_incomplete=flag_incomplete)
    return (item_of(to_row(item), f"item {item.id!r:.60}", flag_incomplete=flag_incomplete) for item in items)


def _check_new(connection: Connection, new_items: Sequence[Item]) -> None:
    known = set(connection.execute(sa.select(item_table.c.id)).scalars())
    for item in new_items:
        if item.id in known:
            raise FormatError(f"item {item.id[:60]!r} is in the study already; rename it, or leave it out")
        known.add(item.id)


def _join(path: Path, answers: Sequence[CitedAnswer]) -> Iterator[CitedAnswer]:
    """Yield the answers of the study, then the new ones; those of an addition that was stopped are there already."""
    known = {}
    for answer in read_answers(path):
        known[answer.id] = answer
        yield answer
    for answer in answers:
        if answer.id not in known:
            yield answer
        elif known[answer.id] != answer:
            raise FormatError(f"answer {answer.id[:60]!r} is in the study already, with other content; rename it")


def _insert(connection: Connection, new_items: Sequence[Item], scheme: Scheme, seed: int) -> int:
    place = connection.execute(sa.select(sa.func.coalesce(sa.func.max(item_table.c.place), -1))).scalar_one()
    rows = [
        {
            "id": item.id,
            "place": place + number,
            "pool": pool_of(item, scheme),
            "answer": item.answer or item.id,
            "topic": topic_of(item),
            "open": True,
            "row": dumps(to_row(item)),
        }
        for number, item in enumerate(order_items(new_items, seed), 1)
    ]
    if rows:
        connection.execute(sa.insert(item_table), rows)
    return sum(row["pool"] == "study" for row in rows)
