"""What an admin sees: progress and quality, ratings to audit, ties to decide."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from itertools import combinations
from statistics import median
from typing import Any

import sqlalchemy as sa

from autoais.formats.human_ratings.consensus import consensus, cut, unflagged
from autoais.formats.human_ratings.ratings import FLAG, Rating
from rag.annotate import queries
from rag.annotate.expected import item_is_right
from rag.annotate.ratings import standing
from rag.annotate.record import StudyRecord
from rag.annotate.schemes import Question
from rag.annotate.store import assignments, items, people
from rag.annotate.types import Audit, PersonProgress, Progress, Tie


def progress(study: StudyRecord) -> Progress:
    """Return how far a study and its people are."""
    with study.database.read(snapshot=True) as connection:
        return progress_in(study, connection)


def progress_in(study: StudyRecord, connection: "sa.Connection", without: Collection[str] = ()) -> Progress:
    """Return how far a study and its people are, as a transaction sees it; what some said can be left `without`."""
    tally = _Tally()
    rows = sorted(connection.execute(sa.select(people)).all(), key=lambda row: str(row.id))
    states = sa.select(assignments.c.annotator, assignments.c.state, sa.func.count()).where(
        assignments.c.phase != "training"
    )
    for person, state, n in connection.execute(states.group_by(assignments.c.annotator, assignments.c.state)):
        tally.states[person][state] = n
    finished = (
        sa.select(items.c.id, items.c.open, sa.func.count(assignments.c.handle))
        .outerjoin(assignments, (assignments.c.item == items.c.id) & (assignments.c.state == "done"))
        .where(items.c.pool == "study")
        .group_by(items.c.id, items.c.open)
    )
    sizes: Counter[int] = Counter()
    still_open = 0
    for _, is_open, n in connection.execute(finished):
        sizes[n] += 1
        still_open += is_open
    ended = sa.select(assignments.c.item, assignments.c.annotator).where(
        (assignments.c.phase == "gold") & (assignments.c.state != "leased")
    )
    gold = {(item, person) for item, person in connection.execute(ended)}
    for item, is_open, verdicts in standing(connection, study.scheme, without):
        tally.add(study, item, is_open, verdicts, gold)
    return Progress(
        total=sum(sizes.values()),
        finished=sum(sizes.values()) - still_open,
        items=dict(sorted(sizes.items())),
        flags=dict(sorted(tally.flags.items())),
        ratings=tally.ratings,
        people=tuple(tally.person(row) for row in rows),
        alpha={question.name: tally.alpha(question) for question in study.scheme.questions},
        ties=tally.ties,
    )


class _Tally:
    """Counts over the standing verdicts."""

    def __init__(self) -> None:
        self.states: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.flags: Counter[str] = Counter()
        self.ratings = self.ties = 0
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._gold: defaultdict[str, list[bool]] = defaultdict(list)
        self._audits: defaultdict[str, list[bool]] = defaultdict(list)
        self._pairs: defaultdict[str, list[bool]] = defaultdict(list)
        self._counts: defaultdict[str, list[Counter[str]]] = defaultdict(list)

    def add(
        self, study: StudyRecord, item: str, is_open: bool, verdicts: list[Rating], gold: Set[tuple[str, str]]
    ) -> None:
        """Count the verdicts on an item; `gold` are the (item, person) of gold items that are finished."""
        self._add_gold(study, item, [one for one in verdicts if (item, one.annotator) in gold])
        self._add_work(verdicts)
        self._add_pairs(verdicts)
        self._add_audits(verdicts)
        self.ties += 0 if is_open else sum(1 for _ in _tied(study, item, verdicts))

    def _add_gold(self, study: StudyRecord, item: str, verdicts: Iterable[Rating]) -> None:
        by_person: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for one in verdicts:
            if one.phase == "gold":
                by_person[one.annotator][one.question] = one.value
        for person, given in by_person.items():
            self._gold[person].append(item_is_right(study.item(item), given, study.scheme))

    def _add_work(self, verdicts: Iterable[Rating]) -> None:
        """Count ratings and flags, and the seconds that each person took."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for one in verdicts:
            if one.phase in ("study", "gold") and one.seconds is not None:
                seconds[one.annotator] += one.seconds
            if one.phase == "study" and one.question == FLAG:
                self.flags[one.value] += 1
            elif one.phase == "study":
                self.ratings += 1
        for person, total in seconds.items():
            self._seconds[person].append(total)

    def _add_pairs(self, verdicts: Iterable[Rating]) -> None:
        """Count the values of each question, and whether each two people agree."""
        questions: defaultdict[str, list[Rating]] = defaultdict(list)
        for one in _counted(verdicts):
            questions[one.question].append(one)
        for question, rated in questions.items():
            self._counts[question].append(Counter(one.value for one in rated))
            for one, other in combinations(rated, 2):
                self._pairs[one.annotator].append(one.value == other.value)
                self._pairs[other.annotator].append(one.value == other.value)

    def _add_audits(self, verdicts: Sequence[Rating]) -> None:
        """Count the tasks that were audited; as in `autoais agreement`, one is right if all that was audited is."""
        checks = [one for one in cut(verdicts) if one.phase == "audit"]
        right: dict[str, bool] = {}
        for one in cut(_counted(verdicts)):
            for check in checks:
                if check.question == one.question:
                    right[one.annotator] = right.get(one.annotator, True) and one.value == check.value
        for name, was_right in right.items():
            self._audits[name].append(was_right)

    def person(self, row: "sa.Row[Any]") -> PersonProgress:
        name = str(row.id)
        seconds = self._seconds.get(name)
        return PersonProgress(
            id=name,
            role=row.role,
            passed=row.passed,
            blocked=row.blocked,
            revoked=row.token_hash is None,
            done=self.states[name]["done"],
            flagged=self.states[name]["flagged"],
            median_seconds=median(seconds) if seconds else None,
            gold=len(self._gold[name]),
            gold_right=_share(self._gold[name]),
            audited=len(self._audits[name]),
            audit_right=_share(self._audits[name]),
            agreement=_share(self._pairs[name]),
        )

    def alpha(self, question: Question) -> float | None:
        """Krippendorff's alpha: ordinal on the scale from 1 to 5, else nominal."""
        from autoais.meta.agreement import krippendorff_alpha

        counts = self._counts[question.name]
        if not counts:
            return None
        table = [[one[value] for value in sorted(question.values)] for one in counts]
        return krippendorff_alpha(table, ordinal=question.is_ordinal).value


def _share(outcomes: list[bool]) -> float | None:
    return sum(outcomes) / len(outcomes) if outcomes else None


def _counted(verdicts: Iterable[Rating]) -> list[Rating]:
    """The verdicts of the study, without those of people who flagged the item."""
    return [one for one in unflagged(verdicts) if one.phase == "study"]


def _tied(study: StudyRecord, item: str, verdicts: Sequence[Rating]) -> Iterator[tuple[str, Counter[str]]]:
    """Yield (question, votes) where two values are most frequent, and nobody has decided.

    Not a question that the consensus on an earlier one leaves out. Values from 1 to 5 are a yes or a no, as in the
    consensus.
    """
    agreed = {one.question: one.value for one in consensus(cut(verdicts))}
    for question in study.scheme.questions_of(study.item(item).unit):
        name = question.name
        asked = all(agreed.get(earlier) in values for earlier, values in question.asked_if.items())
        if asked and agreed.get(name, "") is None:
            yield name, Counter(one.value for one in _counted(verdicts) if one.question == name)


def count_ties(study: StudyRecord, connection: "sa.Connection", without: Collection[str] = ()) -> int:
    """Return the number of ties over all ratings that stand, also of unfinished items; `without` as in `progress_in`.

    These are the labels that an export leaves undecided.
    """
    found = standing(connection, study.scheme, without)
    return sum(1 for item, _, verdicts in found for _ in _tied(study, item, verdicts))


def ties(study: StudyRecord) -> list[Tie]:
    """Return the ties of finished items that nobody has adjudicated, in the order of the study."""
    found = []
    with study.database.read(snapshot=True) as connection:
        for item, is_open, verdicts in standing(connection, study.scheme):
            for question, votes in () if is_open else _tied(study, item, verdicts):
                whole = study.item(item)
                reasons = {
                    value: tuple(
                        one.reason
                        for one in verdicts
                        if (one.phase, one.question, one.value) == ("study", question, value) and one.reason
                    )
                    for value in votes
                }
                asked = study.scheme.question_of(whole.unit, question)
                found.append(Tie(whole, asked, dict(sorted(votes.items())), reasons))
    return found


def audit_sample(study: StudyRecord, n: int) -> list[Audit]:
    """Return up to n ratings that nobody has audited, of items that their annotators have finished.

    They come in an order by chance that does not change as others come in, and no question about an item twice: one
    answer of the admin audits all who were asked.
    """
    chosen: dict[tuple[str, str], Audit] = {}
    with (
        study.database.read(snapshot=True) as connection,
        connection.execution_options(yield_per=100).execute(queries.UNAUDITED) as rows,
    ):
        for row in rows:
            if len(chosen) == n:
                break
            if (key := (row.item, row.question)) not in chosen:
                whole = study.item(row.item)
                asked = study.scheme.question_of(whole.unit, row.question)
                chosen[key] = Audit(whole, asked, row.annotator, row.value, row.reason)
    return list(chosen.values())
