"""What an admin sees: progress and quality, single verdicts, ratings to audit, ties to decide."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import combinations
from statistics import median
from typing import Any

import sqlalchemy as sa

from autoais.formats.human_ratings.consensus import apply_cut, apply_flags, consensus
from autoais.formats.human_ratings.ratings import FLAG, Rating
from rag.annotate import queries
from rag.annotate.expected import item_is_right
from rag.annotate.ratings import current_ratings, evidence_in
from rag.annotate.record import StudyRecord
from rag.annotate.schemes import Question
from rag.annotate.store import assignments, batches, items, people, presses
from rag.annotate.triage import read_triage
from rag.annotate.types import (
    Audit,
    BatchProgress,
    Inspection,
    JudgeVerdict,
    PersonProgress,
    Progress,
    Tie,
    VerdictRecord,
    WorkWarning,
)

_MIN_FOR_MEDIAN = 10  # verdicts, before the time that they take says something about a person
_MIN_FOR_UNIFORM = 20  # items, before answers that are all alike say something about a person
_UNIFORM_SHARE, _OTHERS_SHARE = 0.95, 0.9  # a person's share of the same answer, and the most that others have of it


def progress(study: StudyRecord) -> Progress:
    """Return the progress of a study and its people."""
    with study.database.read(snapshot=True) as connection:
        return progress_in(study, connection)


def progress_in(study: StudyRecord, connection: "sa.Connection", exclude: Collection[str] = ()) -> Progress:
    """Return the progress of a study and its people in a transaction; people in `exclude` do not count."""
    tally = _Tally(study.settings.fast_seconds)
    rows = sorted(connection.execute(sa.select(people)).all(), key=lambda row: str(row.id))
    states = sa.select(assignments.c.annotator, assignments.c.state, sa.func.count()).where(
        assignments.c.phase != "training"
    )
    for person, state, n in connection.execute(states.group_by(assignments.c.annotator, assignments.c.state)):
        tally.states[person][state] = n
    rating_counts = (
        sa.select(items.c.id, items.c.open, sa.func.count(assignments.c.handle))
        .outerjoin(assignments, (assignments.c.item == items.c.id) & (assignments.c.state == "done"))
        .where(items.c.pool == "study")
        .group_by(items.c.id, items.c.open)
    )
    sizes: Counter[int] = Counter()
    still_open = 0
    for _, is_open, n in connection.execute(rating_counts):
        sizes[n] += 1
        still_open += is_open
    gold_query = sa.select(assignments.c.item, assignments.c.annotator).where(
        (assignments.c.phase == "gold") & (assignments.c.state != "leased")
    )
    gold = {(item, person) for item, person in connection.execute(gold_query)}
    for item, is_open, verdicts in current_ratings(connection, study.scheme, exclude):
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
        batches=tuple(_batches(connection)),
        warnings=tuple(warning for row in rows for warning in tally.warnings(str(row.id))),
    )


def _batches(connection: "sa.Connection") -> Iterator[BatchProgress]:
    ended = (assignments.c.item == batches.c.item) & (assignments.c.annotator == batches.c.annotator)
    query = (
        sa.select(batches.c.name, batches.c.annotator, sa.func.count(assignments.c.handle), sa.func.count())
        .outerjoin(assignments, ended & (assignments.c.state != "leased"))
        .group_by(batches.c.name, batches.c.annotator)
    )
    yield from sorted(
        (BatchProgress(*row) for row in connection.execute(query)), key=lambda batch: (batch.name, batch.annotator)
    )


class _Tally:
    """Counts over the current verdicts."""

    def __init__(self, fast_seconds: float) -> None:
        self._fast_seconds = fast_seconds
        self.states: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.flags: Counter[str] = Counter()
        self.ratings = self.ties = 0
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._gold: defaultdict[str, list[bool]] = defaultdict(list)
        self._audits: defaultdict[str, list[bool]] = defaultdict(list)
        self._pairs: defaultdict[str, list[bool]] = defaultdict(list)
        self._counts: defaultdict[str, list[Counter[str]]] = defaultdict(list)
        self._times: defaultdict[str, list[float]] = defaultdict(list)  # of each first verdict
        self._own: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # on items that others judged too
        self._others: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # of others, on these items

    def add(
        self, study: StudyRecord, item: str, is_open: bool, verdicts: list[Rating], gold: Set[tuple[str, str]]
    ) -> None:
        """Count the verdicts on an item; `gold` are the (item, person) of gold items that are finished."""
        self._add_gold(study, item, [rating for rating in verdicts if (item, rating.annotator) in gold])
        self._add_work(verdicts)
        self._add_pairs(verdicts)
        self._add_audits(verdicts)
        self.ties += 0 if is_open else sum(1 for _ in _find_ties(study, item, verdicts))

    def _add_gold(self, study: StudyRecord, item: str, verdicts: Iterable[Rating]) -> None:
        by_person: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for rating in verdicts:
            if rating.phase == "gold":
                by_person[rating.annotator][rating.question] = rating.value
        for person, values in by_person.items():
            self._gold[person].append(item_is_right(study.item(item), values, study.scheme))

    def _add_work(self, verdicts: Iterable[Rating]) -> None:
        """Count ratings and flags, and the seconds that each person took."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for rating in verdicts:
            if rating.phase in ("study", "gold") and rating.seconds is not None:
                seconds[rating.annotator] += rating.seconds
                if rating.question != FLAG and not rating.revised:
                    self._times[rating.annotator].append(rating.seconds)
            if rating.phase == "study" and rating.question == FLAG:
                self.flags[rating.value] += 1
            elif rating.phase == "study":
                self.ratings += 1
        for person, total in seconds.items():
            self._seconds[person].append(total)

    def _add_pairs(self, verdicts: Iterable[Rating]) -> None:
        """Count the values of each question, and whether each two people agree."""
        questions: defaultdict[str, list[Rating]] = defaultdict(list)
        for rating in _study_verdicts(verdicts):
            questions[rating.question].append(rating)
        for question, ratings in questions.items():
            self._add_others(question, ratings)
            self._counts[question].append(Counter(rating.value for rating in ratings))
            for first, second in combinations(ratings, 2):
                self._pairs[first.annotator].append(first.value == second.value)
                self._pairs[second.annotator].append(first.value == second.value)

    def _add_others(self, question: str, ratings: Sequence[Rating]) -> None:
        """Count each person's answer to a question about an item, beside those of others."""
        answers = Counter(rating.value for rating in ratings)
        for rating in ratings if len(ratings) > 1 else ():
            key = rating.annotator, question
            self._own[key][rating.value] += 1
            self._others[key].update(answers)
            self._others[key][rating.value] -= 1

    def warnings(self, name: str) -> Iterator[WorkWarning]:
        """Yield why an admin should look at a person: too fast, or the same answer where others differ."""
        times = self._times.get(name, [])
        if len(times) >= _MIN_FOR_MEDIAN and median(times) < self._fast_seconds:
            text = (
                f"Half of {len(times)} verdicts took less than {median(times):.1f} seconds each;"
                f" fast_seconds is {self._fast_seconds:g}."
            )
            yield WorkWarning(name, text)
        for (person, question), answers in sorted(self._own.items()):
            ((value, n),) = answers.most_common(1)
            if person != name or answers.total() < _MIN_FOR_UNIFORM or n <= _UNIFORM_SHARE * answers.total():
                continue
            others = self._others[person, question]
            if others[value] <= _OTHERS_SHARE * others.total():
                text = (
                    f"The answer to {question!r} was {value!r} on {n} of {answers.total()} items;"
                    f" others say so in {others[value] / others.total():.0%} of their verdicts on these items."
                )
                yield WorkWarning(name, text)

    def _add_audits(self, verdicts: Sequence[Rating]) -> None:
        """Count each person's audited items. As in `autoais agreement`, an item is right if all its verdicts are."""
        checks = [rating for rating in apply_cut(verdicts) if rating.phase == "audit"]
        right: dict[str, bool] = {}
        for rating in apply_cut(_study_verdicts(verdicts)):
            for check in checks:
                if check.question == rating.question:
                    right[rating.annotator] = right.get(rating.annotator, True) and rating.value == check.value
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
            fast=sum(seconds < self._fast_seconds for seconds in self._times.get(name, ())),
        )

    def alpha(self, question: Question) -> float | None:
        """Krippendorff's alpha: ordinal on the scale from 1 to 5, else nominal."""
        from autoais.meta.agreement import krippendorff_alpha

        counts = self._counts[question.name]
        if not counts:
            return None
        table = [[count[value] for value in sorted(question.values)] for count in counts]
        return krippendorff_alpha(table, ordinal=question.is_ordinal).value


def _share(outcomes: list[bool]) -> float | None:
    return sum(outcomes) / len(outcomes) if outcomes else None


def _study_verdicts(verdicts: Iterable[Rating]) -> list[Rating]:
    """The verdicts of the study, without those of people who flagged the item."""
    return [rating for rating in apply_flags(verdicts) if rating.phase == "study"]


def _find_ties(study: StudyRecord, item: str, verdicts: Sequence[Rating]) -> Iterator[tuple[str, Counter[str]]]:
    """Yield (question, votes) where the most frequent values tie, unless an admin has decided the question.

    A question that the consensus on an earlier one skips has no tie, nor has one that asks for words, on which the
    majority decides word by word (`rag.annotate.words`). Values from 1 to 5 count as yes or no, as in the
    consensus.
    """
    consensus_values = {outcome.question: outcome.value for outcome in consensus(apply_cut(verdicts))}
    for question in study.scheme.questions_of(study.item(item).unit):
        name = question.name
        is_asked = all(consensus_values.get(earlier) in values for earlier, values in question.asked_if.items())
        if is_asked and not question.words_for and consensus_values.get(name, "") is None:
            yield name, Counter(rating.value for rating in _study_verdicts(verdicts) if rating.question == name)


def count_ties(study: StudyRecord, connection: "sa.Connection", exclude: Collection[str] = ()) -> int:
    """Return the number of ties among all current ratings, also on unfinished items; `exclude` as in `progress_in`.

    These are the labels that an export leaves undecided.
    """
    ratings_by_item = current_ratings(connection, study.scheme, exclude)
    return sum(1 for item, _, verdicts in ratings_by_item for _ in _find_ties(study, item, verdicts))


def ties(study: StudyRecord) -> list[Tie]:
    """Return the ties of finished items that nobody has adjudicated, in the order of the study."""
    ties = []
    with study.database.read(snapshot=True) as connection:
        for item, is_open, verdicts in current_ratings(connection, study.scheme):
            for question, votes in () if is_open else _find_ties(study, item, verdicts):
                full_item = study.item(item)
                reasons = {
                    value: tuple(
                        rating.reason
                        for rating in verdicts
                        if (rating.phase, rating.question, rating.value) == ("study", question, value) and rating.reason
                    )
                    for value in votes
                }
                scheme_question = study.scheme.question_of(full_item.unit, question)
                ties.append(Tie(full_item, scheme_question, dict(sorted(votes.items())), reasons))
    return ties


def audit_sample(study: StudyRecord, n: int) -> list[Audit]:
    """Return up to n ratings that nobody has audited, of items that their annotators have finished.

    The order is random, and stays as it is when more ratings come in. A question about an item comes once: the admin's
    verdict audits everybody who answered it.
    """
    audits: dict[tuple[str, str], Audit] = {}
    with (
        study.database.read(snapshot=True) as connection,
        connection.execution_options(yield_per=100).execute(queries.VERDICTS_TO_AUDIT) as rows,
    ):
        for row in rows:
            if len(audits) == n:
                break
            if (key := (row.item, row.question)) not in audits:
                item = study.item(row.item)
                question = study.scheme.question_of(item.unit, row.question)
                audits[key] = Audit(item, question, row.annotator, row.value, row.reason)
    return list(audits.values())


def verdicts(
    study: StudyRecord, filters: Mapping[str, str], *, fast: bool = False, start: int = 0, limit: int = 200
) -> list[VerdictRecord]:
    """Return single verdicts and flags, the last one first; `filters` by the name of a column, empty for all."""
    with study.database.read() as connection:
        query = _verdict_query(filters)
        if fast:
            query = query.where((presses.c.kind == queries.VERDICT) & (presses.c.seconds < study.settings.fast_seconds))
        rows = connection.execute(query.order_by(presses.c.id.desc()).offset(start).limit(limit)).all()
    return [_record_of(row, study.settings.fast_seconds) for row in rows]


def _verdict_query(filters: Mapping[str, str]) -> "sa.Select[Any]":
    undo = presses.alias("undo")
    query = (
        sa.select(presses, undo.c.id.is_not(None).label("taken_back"))
        .outerjoin(undo, undo.c.undoes == presses.c.id)
        .where(presses.c.kind.in_((queries.VERDICT, queries.FLAG)))
    )
    for name, text in filters.items():
        if text:
            query = query.where(presses.c[name] == text)
    return query


def _record_of(row: "sa.Row[Any]", fast_seconds: float) -> VerdictRecord:
    return VerdictRecord(
        item=row.item,
        annotator=row.annotator,
        question=row.question,
        value=row.value,
        phase=row.phase,
        seconds=row.seconds,
        is_fast=row.kind == queries.VERDICT and row.seconds is not None and row.seconds < fast_seconds,
        at=row.at,
        reason=row.reason,
        taken_back=row.taken_back,
        evidence=evidence_in(row.evidence),
    )


def inspect(study: StudyRecord, item: str) -> Inspection:
    """Return an item with all verdicts and comments; raises `UsageError` if there is none.

    The judge's verdict comes after those of people: not while the item needs more of them, or an admin has to decide.
    """
    full_item = study.item(item)
    with study.database.read(snapshot=True) as connection:
        rows = connection.execute(_verdict_query({"item": item}).order_by(presses.c.id)).all()
        comments = connection.execute(
            sa.select(presses.c.annotator, presses.c.reason, presses.c.at)
            .where((presses.c.item == item) & (presses.c.kind == queries.COMMENT))
            .order_by(presses.c.id)
        ).all()
        is_open = connection.execute(sa.select(items.c.open).where(items.c.id == item)).scalar_one()
        groups = current_ratings(connection, study.scheme, only=item)
        ratings = [rating for _, _, group in groups for rating in group]
    is_decided = bool(rows) and not is_open and next(_find_ties(study, item, ratings), None) is None
    return Inspection(
        full_item,
        tuple(_record_of(row, study.settings.fast_seconds) for row in rows),
        tuple((row.annotator, row.reason, row.at) for row in comments if row.reason.strip()),
        _judge_verdict(study, item) if is_decided else None,
    )


def _judge_verdict(study: StudyRecord, item: str) -> JudgeVerdict | None:
    path = study.folder / "triage.jsonl"
    if not path.exists():
        return None
    for row in read_triage(path):
        if row.item == item:
            return JudgeVerdict(row.judge, row.attributable, row.probability)
    return None
