"""Items that are added to a study while it runs."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection

from autoais import formats
from autoais.base.answers import CitedAnswer, read_answers, write_answers
from autoais.base.io.jsonl import write_atomic
from rag.annotate.items import (
    Item,
    check_items,
    item_row,
    items_of,
    open_items,
    order_items,
    pool_of,
    read_items,
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
        new_items = open_items(items or (), flag_incomplete=flag_incomplete)
    valid_items = list(check_items(new_items, study.scheme, "items" if answers is None else "answers"))
    with study.database.write() as connection:
        _check_new(connection, valid_items)
        if answers is not None:
            write_atomic(study.folder / _ANSWERS, write_answers(_join(study.folder / _ANSWERS, new_answers)))
        else:
            earlier_items = list(read_items(study.folder / _ITEMS, flag_incomplete=True))
            earlier_ids = {item.id for item in earlier_items}
            missing_items = [item for item in valid_items if item.id not in earlier_ids]
            write_atomic(study.folder / _ITEMS, write_items([*earlier_items, *missing_items]))
        n = _insert(connection, valid_items, study.scheme, study.settings.seed)
    study.pools["study"] = study.pools.get("study", 0) + n
    return n


def _check_new(connection: Connection, new_items: Sequence[Item]) -> None:
    ids = set(connection.execute(sa.select(item_table.c.id)).scalars())
    for item in new_items:
        if item.id in ids:
            raise FormatError(f"item {item.id[:60]!r} is in the study already; rename it, or leave it out")
        ids.add(item.id)


def _join(path: Path, answers: Sequence[CitedAnswer]) -> Iterator[CitedAnswer]:
    """Yield the answers of the study, then the new ones; those of an addition that was stopped are there already."""
    answers_by_id = {}
    for answer in read_answers(path):
        answers_by_id[answer.id] = answer
        yield answer
    for answer in answers:
        if answer.id not in answers_by_id:
            yield answer
        elif answers_by_id[answer.id] != answer:
            raise FormatError(f"answer {answer.id[:60]!r} is in the study already, with other content; rename it")


def _insert(connection: Connection, new_items: Sequence[Item], scheme: Scheme, seed: int) -> int:
    place = connection.execute(sa.select(sa.func.coalesce(sa.func.max(item_table.c.place), -1))).scalar_one()
    rows = [
        item_row(item, place + number, pool_of(item, scheme))
        for number, item in enumerate(order_items(new_items, seed), 1)
    ]
    if rows:
        connection.execute(sa.insert(item_table), rows)
    return sum(row["pool"] == "study" for row in rows)
