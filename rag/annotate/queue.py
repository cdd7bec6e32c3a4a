"""Which item a person gets next, and for how long: leases, the training round, gold items."""

import random
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection

from rag.annotate import queries
from rag.annotate.links import Links
from rag.annotate.queries import Row
from rag.annotate.settings import Settings
from rag.annotate.types import Phase


class Queue:
    """The queue of a study. Each method runs inside the transaction of its caller, `Study`."""

    def __init__(self, settings: Settings, pools: Mapping[str, int], links: Links, clock: Callable[[], float]) -> None:
        self._settings, self._pools, self._links, self._clock = settings, pools, links, clock
        self._lease = settings.lease_minutes * 60

    # --- leases ----------------------------------------------------------------------------------------------------

    def _leases(self, connection: Connection, person: Row) -> list[Row]:
        """The person's leases, also expired ones, in this attempt at the training round or in the study."""
        rows = connection.execute(queries.LEASES, {"person": person.id}).all()
        return [row for row in rows if row.attempt == (0 if person.passed else person.attempt)]

    def current_assignment(self, connection: Connection, person: Row) -> Row | None:
        """Return the assignment that the person does now; None if they hold none."""
        return self._live(self._leases(connection, person))

    def _live(self, leases: Sequence[Row]) -> Row | None:
        return next((row for row in leases if row.phase == "training" or self._is_live(row, self._lease)), None)

    def _is_live(self, assignment: Row, seconds: float) -> bool:
        """Whether a lease is at most `seconds` old, or that far in the future, if a clock was set back."""
        return bool(abs(self._clock() - assignment.leased) <= seconds)

    def is_fresh(self, assignment: Row) -> bool:
        """Whether at least half of the lease is left, so that it need not be renewed."""
        return assignment.phase == "training" or self._is_live(assignment, self._lease / 2)

    def _rater_parameters(self, person: Row) -> dict[str, object]:
        """The parameters of queries that count the raters of an item."""
        now = self._clock()
        annotators = self._settings.annotators
        return {"person": person.id, "low": now - self._lease, "high": now + self._lease, "wanted": annotators}

    def _needs_raters(self, connection: Connection, item: str, person: Row) -> bool:
        """Whether an item has a place for this person: a named one, or one of those that are for everybody."""
        if names := connection.execute(queries.NAMES, {"item": item}).scalars().all():
            return person.id in names
        rater_count = connection.execute(
            queries.OTHER_RATERS, {"item": item, **self._rater_parameters(person)}
        ).scalar_one()
        return bool(rater_count < self._settings.annotators)

    def start_lease(self, connection: Connection, assignment: Row) -> None:
        """Start the lease of an assignment, or start it again."""
        connection.execute(queries.RENEW, {"key": assignment.handle, "now": self._clock()})

    def renew(self, connection: Connection, person: Row, assignment: Row) -> None:
        """Renew a lease, unless it has expired and enough other people have the item."""
        if self.is_fresh(assignment):
            return
        if assignment.phase == "gold" or self._needs_raters(connection, assignment.item, person):
            self.start_lease(connection, assignment)

    # --- the next item ---------------------------------------------------------------------------------------------

    def lease_next(self, connection: Connection, person: Row) -> None:
        """Lease the next item to a person who holds none: first one whose lease has expired. None may be left."""
        assignments = self._leases(connection, person)
        if self._live(assignments) is not None:
            return
        if not person.passed:
            self._give_training(connection, person)
            return
        for expired_lease in assignments:
            if expired_lease.phase == "gold" or self._needs_raters(connection, expired_lease.item, person):
                self.start_lease(connection, expired_lease)
                return
        item, same_answer = self._next_item(connection, person)
        turn = connection.execute(queries.LAST_TURN, {"person": person.id, "attempt": 0}).scalar_one() + 1
        # Never between two items of one answer, where a gold item would stand out: it comes after the answer.
        if not same_answer and self._owes_gold(connection, person.id, turn if item is not None else turn - 1):
            parameters = {"person": person.id, "attempt": 0, "pool": "gold"}
            if keys := connection.execute(queries.NEW_ITEMS, parameters).scalars().all():
                # Each person gets the gold items in another order: people talk.
                gold_item = random.Random(f"{self._settings.seed} gold {person.id} {turn}").choice(keys)
                self._assign(connection, person, gold_item, "gold", turn)
                return
        if item is not None:
            self._assign(connection, person, item, "study", turn)

    def _give_training(self, connection: Connection, person: Row) -> None:
        parameters = {"person": person.id, "attempt": person.attempt}
        item = connection.execute(queries.NEW_ITEMS, parameters | {"pool": "training"}).scalars().first()
        if item is not None:
            turn = connection.execute(queries.LAST_TURN, parameters).scalar_one() + 1
            self._assign(connection, person, item, "training", turn)

    def _assign(self, connection: Connection, person: Row, item: str, phase: Phase, turn: int) -> None:
        attempt, now = person.attempt if phase == "training" else 0, self._clock()
        handle = self._links.handle(person.id, item, attempt)
        values = {"handle": handle, "annotator": person.id, "item": item, "attempt": attempt, "phase": phase}
        state = {"state": "leased", "turn": turn, "opened": now, "leased": now}
        connection.execute(queries.ADD_ASSIGNMENT, values | state)

    def _next_item(self, connection: Connection, person: Row) -> tuple[str | None, bool]:
        """Return the next item of the study, and whether it is of the answer of the person's last one.

        Items that are for this person by name come first.
        """
        free = self._rater_parameters(person)
        last = connection.execute(queries.LAST_ITEM, {"person": person.id}).first()
        if last is not None:
            item = connection.execute(queries.NEXT_OF_ANSWER, free | {"answer": last.answer}).scalar()
            if item is not None:
                return str(item), True
        for of_other_topic, of_any in (
            (queries.NAMED_OF_OTHER_TOPIC, queries.NAMED),
            (queries.NEXT_OF_OTHER_TOPIC, queries.NEXT),
        ):
            item = None
            if last is not None:
                item = connection.execute(of_other_topic, free | {"topic": last.topic}).scalar()
            if item is None:
                item = connection.execute(of_any, free).scalar()
            if item is not None:
                return str(item), False
        return None, False

    def _owes_gold(self, connection: Connection, person: str, turns: int) -> bool:
        """Whether a person has had fewer gold items than are drawn for so many turns."""
        if not self._pools.get("gold"):
            return False
        chance = random.Random(f"{self._settings.seed} {person}")
        gold_count = sum(chance.random() < self._settings.gold_share for _ in range(turns))
        states = connection.execute(queries.STATES, {"person": person, "attempt": 0})
        return bool(gold_count > sum(n for phase, _, n, _ in states if phase == "gold"))

    def counts(self, connection: Connection, person: Row) -> tuple[int, int]:
        """Return how many items the person has finished, and how many are left; gold items count like others."""
        attempt = 0 if person.passed else person.attempt
        done_count = turns = gold = lease_count = open_count = 0
        for phase, state, n, n_open in connection.execute(queries.STATES, {"person": person.id, "attempt": attempt}):
            turns += n
            done_count += n if state != "leased" else 0
            lease_count += n if state == "leased" else 0
            gold += n if phase == "gold" else 0
            open_count += n_open if phase == "study" else 0
        if not person.passed:
            return done_count, self._pools["training"] - done_count
        study = connection.execute(queries.OPEN_ITEMS, {"person": person.id}).scalar_one() - open_count
        remaining = lease_count + study
        # All gold items that will be drawn until the study ends, also those that wait for the end of an answer.
        study, owed_gold, new_gold = study + turns - gold, -gold, self._pools.get("gold", 0)
        chance = random.Random(f"{self._settings.seed} {person.id}")
        while study > 0 and new_gold > 0:
            if chance.random() < self._settings.gold_share:
                owed_gold, new_gold = owed_gold + 1, new_gold - 1
            else:
                study -= 1
        return done_count, remaining + max(owed_gold, 0)
