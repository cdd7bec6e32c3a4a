"""The SQL of a study's work, built once: building a statement takes longer than running it."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from rag.annotate.store import assignments, batches, items, people, presses

VERDICT, FLAG, COMMENT, UNDO = "verdict", "flag", "comment", "undo"
AUDIT, ADJUDICATION = "audit", "adjudication"

Row = sa.Row[Any]
_undo = presses.alias("undo")
_stands = ~sa.select(_undo.c.id).where(_undo.c.undoes == presses.c.id).exists()
_count = sa.func.count
_person: sa.BindParameter[str] = bindparam("person")
_item: sa.BindParameter[str] = bindparam("item")
_of_person = assignments.c.annotator == _person
_has_ended = assignments.c.state.in_(("done", "flagged"))
_is_live = (assignments.c.state == "leased") & assignments.c.leased.between(bindparam("low"), bindparam("high"))


def _count_others(item: "sa.ColumnElement[Any]") -> "sa.ScalarSelect[int]":
    """The number of other people who finished or flagged an item, or hold it now."""
    other_assignments = (assignments.c.item == item) & (assignments.c.annotator != _person)
    return sa.select(_count()).where(other_assignments & (_has_ended | _is_live)).scalar_subquery()


PERSON = sa.select(people).where(people.c.id == _person)
ITEM = sa.select(items.c.row).where(items.c.id == _item)
STUDY_ITEMS = sa.select(items.c.id).where(items.c.pool == "study")
POOLS = sa.select(items.c.pool, _count()).group_by(items.c.pool)

ASSIGNMENT = sa.select(assignments).where(_of_person & (assignments.c.handle == bindparam("handle")))
ASSIGNMENT_OF = sa.select(assignments).where(
    _of_person & (assignments.c.item == _item) & (assignments.c.attempt == bindparam("attempt"))
)
LEASES = sa.select(assignments).where(_of_person & (assignments.c.state == "leased")).order_by(assignments.c.turn)
"""The leases of a person, also expired ones; the first is the next to do."""
FINISHED_ASSIGNMENTS = (
    sa.select(assignments)
    .where(
        _of_person
        & (assignments.c.phase == bindparam("phase"))
        & (assignments.c.attempt == bindparam("attempt"))
        & (assignments.c.state != "leased")
    )
    .order_by(assignments.c.turn)
)
LAST_TURN = sa.select(sa.func.coalesce(sa.func.max(assignments.c.turn), 0)).where(
    _of_person & (assignments.c.attempt == bindparam("attempt"))
)
OTHER_RATERS = sa.select(_count_others(_item))
LAST_ITEM = (
    sa.select(items.c.answer, items.c.topic)
    .join(assignments, assignments.c.item == items.c.id)
    .where(_of_person & (assignments.c.phase == "study"))
    .order_by(assignments.c.turn.desc())
    .limit(1)
)

_was_given = sa.select(assignments.c.handle).where(_of_person & (assignments.c.item == items.c.id)).exists()
_is_named = items.c.id.in_(sa.select(batches.c.item))
_is_mine = items.c.id.in_(sa.select(batches.c.item).where(batches.c.annotator == _person))
_is_for_person = _is_mine | ~_is_named
_has_place = _is_mine | (~_is_named & (_count_others(items.c.id) < bindparam("wanted")))
_free = (items.c.pool == "study") & items.c.open & ~_was_given & _has_place


def _first(condition: "sa.ColumnElement[bool]") -> "sa.Select[Any]":
    return sa.select(items.c.id).where(_free & condition).order_by(items.c.place).limit(1)


NEXT_OF_ANSWER = _first(items.c.answer == bindparam("answer"))
NEXT_OF_OTHER_TOPIC = _first(items.c.topic != bindparam("topic"))
NEXT = _first(sa.true())
NAMED_OF_OTHER_TOPIC = _first(_is_mine & (items.c.topic != bindparam("topic")))
NAMED = _first(_is_mine)
"""The next item of a batch of this person."""
NAMES = sa.select(batches.c.annotator).where(batches.c.item == _item)
"""The people of an item; none if it is for everybody."""
NEW_ITEMS = (
    sa.select(items.c.id)
    .where(
        (items.c.pool == bindparam("pool"))
        & ~sa.select(assignments.c.handle)
        .where(_of_person & (assignments.c.item == items.c.id) & (assignments.c.attempt == bindparam("attempt")))
        .exists()
    )
    .order_by(items.c.place)
)
OPEN_ITEMS = sa.select(_count()).where((items.c.pool == "study") & items.c.open & _is_for_person)
STATES = (
    sa.select(assignments.c.phase, assignments.c.state, _count(), _count().filter(items.c.open & _is_for_person))
    .join(items, items.c.id == assignments.c.item)
    .where(_of_person & (assignments.c.attempt == bindparam("attempt")))
    .group_by(assignments.c.phase, assignments.c.state)
)
"""How many items a person has by phase and state, and how many of these are for this person and need more people."""

RENEW = sa.update(assignments).where(assignments.c.handle == bindparam("key")).values(leased=bindparam("now"))
END = sa.update(assignments).where(assignments.c.handle == bindparam("key")).values(state=bindparam("ended"))
REOPEN = RENEW.values(state="leased")
RELEASE = sa.update(assignments).where(_of_person & (assignments.c.state == "leased")).values(leased=0.0)


_ended_count = sa.select(_count()).where((assignments.c.item == items.c.id) & _has_ended).scalar_subquery()
_is_missing = (
    sa.select(batches.c.annotator)
    .where(
        (batches.c.item == items.c.id)
        & ~sa.select(assignments.c.handle)
        .where((assignments.c.item == batches.c.item) & (assignments.c.annotator == batches.c.annotator) & _has_ended)
        .exists()
    )
    .exists()
)
_needs_more = (_is_named & _is_missing) | (~_is_named & (_ended_count < bindparam("wanted")))
RECONSIDER_ALL = sa.update(items).where(items.c.pool == "study").values(open=_needs_more)
"""An item needs more people until the wanted number, or each person of its batches, has finished or flagged it.

A flag counts: else an item that one of just enough people flags would stay open, with nobody left to judge it.
"""
STALE_ITEM = sa.select(items.c.id).where((items.c.pool == "study") & (items.c.open != _needs_more)).limit(1)
"""An item whose column `open` is wrong."""
RECONSIDER = RECONSIDER_ALL.where(items.c.id == _item)

PRESS = sa.select(presses).where(presses.c.press == bindparam("press"))
LAST_TIME = (
    sa.select(presses.c.at)
    .where((presses.c.annotator == _person) & (presses.c.kind != COMMENT))
    .order_by(presses.c.id.desc())
    .limit(1)
)
STANDING = (
    sa.select(presses.c.question, presses.c.value, presses.c.id)
    .where(
        (presses.c.annotator == _person)
        & (presses.c.item == _item)
        & (presses.c.attempt == bindparam("attempt"))
        & presses.c.kind.in_((VERDICT, FLAG))
        & _stands
    )
    .order_by(presses.c.id)
)
"""A person's verdicts on an item, and the flag, without those that were taken back."""
LAST_ENTERED = (
    sa.select(presses)
    .where(
        (presses.c.annotator == _person)
        & (presses.c.item == _item)
        & (presses.c.attempt == bindparam("attempt"))
        & (presses.c.kind == VERDICT)
        & (presses.c.question == bindparam("question"))
    )
    .order_by(presses.c.id.desc())
    .limit(1)
)
"""A person's last verdict on a question about an item, also one that was taken back."""
LAST_PRESS = (
    sa.select(presses)
    .where(
        (presses.c.annotator == _person)
        & (presses.c.phase != "training")
        & presses.c.kind.in_((VERDICT, FLAG))
        & _stands
    )
    .order_by(presses.c.id.desc())
    .limit(1)
)
"""The last press that can be taken back."""

PAST_ASSIGNMENTS = (
    sa.select(assignments)
    .where(_of_person & (assignments.c.phase != "training") & (assignments.c.state != "leased"))
    .order_by(assignments.c.turn.desc())
)
"""The items that a person has finished or flagged, the last one first."""
PAST_PRESSES = (
    sa.select(presses, (~_stands).label("taken_back"))
    .where(
        (presses.c.annotator == _person)
        & presses.c.item.in_(bindparam("items", expanding=True))
        & (presses.c.attempt == 0)
        & presses.c.kind.in_((VERDICT, FLAG, COMMENT))
    )
    .order_by(presses.c.id)
)
"""What a person has pressed and written about items, also what was taken back."""

_audit = presses.alias("audit")
VERDICTS_TO_AUDIT = (
    sa.select(presses.c.item, presses.c.question, presses.c.annotator, presses.c.value, presses.c.reason)
    .join(
        assignments,
        (assignments.c.annotator == presses.c.annotator)
        & (assignments.c.item == presses.c.item)
        & (assignments.c.attempt == presses.c.attempt),
    )
    .where(
        (assignments.c.phase == "study")
        & (assignments.c.state == "done")
        & (presses.c.kind == VERDICT)
        & _stands
        & ~sa.select(_audit.c.id)
        .where((_audit.c.item == presses.c.item) & (_audit.c.question == presses.c.question) & (_audit.c.kind == AUDIT))
        .exists()
    )
    .order_by(assignments.c.handle, presses.c.id)
)
"""Verdicts on finished items that nobody has audited, in a random order: that of the handles."""

ADD_ASSIGNMENT = sa.insert(assignments)
ADD_PRESS = sa.insert(presses)
