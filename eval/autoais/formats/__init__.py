"""The field's file formats by name: told apart, read into the common record, written, checked."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from autoais import answers as own
from autoais.answers import CitedAnswer
from autoais.errors import FormatError, UserError
from autoais.formats import alce, aqa, claims, corpora, hagrid, liu, trec
from autoais.formats.base import Fault, Format, Notes, Row, id_twice
from autoais.formats.convert import FEATURES, join_passages, join_questions
from autoais.io.files import header_of, lines, records
from autoais.io.jsonl import dumps
from autoais.io.schema import Schema, faults
from autoais.labels import Labelled
from autoais.questions import Question
from autoais.types import Attribution


def _read_own(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for where, row in rows:
        yield own.from_row(row, where)


def _labels_own(row: dict[str, Any], where: str) -> Iterator[Labelled]:
    answer = own.from_row(row, where)
    for number, sentence in enumerate(answer.sentences):
        if sentence.attributable is not None:
            evidence = tuple(answer.passages[cited].evidence for cited in sentence.cites)
            attribution = Attribution(sentence.text, evidence, answer.question)
            dataset, system = (str(answer.extra.get(name) or "") for name in ("dataset", "system"))
            yield Labelled(dataset or "answers", f"{answer.id}/{number}", attribution, sentence.attributable, system)


def _check_own(rows: Iterable[Row]) -> Iterator[Fault]:
    for where, row in rows:
        try:
            answer = own.from_row(row, where)
        except FormatError as error:
            yield Fault(where, str(error).removeprefix(f"{where}: "))
            continue
        for bad in answer.unresolved_markers:
            if bad.reason == "unknown-id" and bad.sentence is not None:
                message = (
                    f"field 'sentences[{bad.sentence}].citations' cites {bad.marker!r}, which is no passage of the row"
                )
                yield Fault(where, message)


ANSWERS = Format(
    name="answers",
    says="our own answers.jsonl: holds all that the other formats hold",
    schema=own.SCHEMA,
    marks=("id", "question"),
    read=_read_own,
    write=lambda answers, notes: own.write_answers(answers),
    labels=_labels_own,
    check=_check_own,
    ids=id_twice("id"),
    keeps=frozenset(FEATURES),
)
SCORES = "aqa-scores"

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        aqa.PREDICTIONS, aqa.AIS, aqa.RATINGS, hagrid.HAGRID, alce.ALCE, trec.TREC_24, trec.TREC_25, liu.JUDGEMENTS,
        liu.ANNOTATIONS, claims.ATTRIBUTIONBENCH, claims.ATTRSCORE, claims.LABELS, corpora.AQA, corpora.MIRACL,
        ANSWERS,  # last: its marks say least
    )
}  # fmt: skip

NAMES = sorted([*FORMATS, SCORES])
_LINE = re.compile(r"^(:\d+)?:? ?(.*)", re.DOTALL)
_TRIED = 1000  # records that may be broken before the format is given up on


def by_name(name: str) -> Format:
    """The format of that name; `UserError` lists the names there are."""
    if name not in FORMATS:
        raise UserError(f"no format called {name!r}; there are: {', '.join(NAMES)}")
    return FORMATS[name]


def schema_of(name: str) -> Schema:
    """The JSON Schema (draft 2020-12) of one record of the format: a line, a CSV row, or an item of the document."""
    schema = aqa.SCORES_SCHEMA if name == SCORES else by_name(name).schema
    says = "Attributed QA's three scores" if name == SCORES else by_name(name).says
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "description": says, **schema}


def detect(path: Path) -> str:
    """The name of the format of a file, from its first record that can be read.

    `FormatError` where there is none, or where no format has its fields; it lists the formats there are.
    """
    first = next(lines(path), b"")
    if first.startswith(b"AutoAIS: "):
        return SCORES
    where, row = _first_record(path)
    return _of_record(row, where).name


def _first_record(path: Path) -> Row:
    """The first record that can be read; in a CSV it stands for the header, which is where its fields are named."""
    broken: FormatError | None = None
    for where, row in islice(records(path), _TRIED):
        if not isinstance(row, FormatError):
            return header_of(path) or where, row
        broken = broken or row
    raise broken or FormatError(f"{path}: holds no records; the formats are: {', '.join(NAMES)}")


def _of_record(row: dict[str, Any], where: str) -> Format:
    fitting = [one for one in FORMATS.values() if all(mark in row for mark in one.marks)]
    if not fitting:
        found = ", ".join(sorted(row))[:200]
        near = _nearest(row)
        hint = "" if near is None else f"{near.name} also has {_missing(row, near)}; "
        raise FormatError(f"{where}: no known format has the fields {found}; {hint}there are: {', '.join(NAMES)}")
    return max(fitting, key=lambda one: len(one.marks))


def _nearest(row: dict[str, Any]) -> Format | None:
    """The format that knows most fields of a record; None where no format knows two and has one of them as a mark."""

    def known(one: Format) -> tuple[int, float]:
        marks = sum(mark in row for mark in one.marks)
        return sum(name in row for name in one.schema["properties"]) if marks else 0, marks / len(one.marks)

    near = max(FORMATS.values(), key=known)
    return near if known(near)[0] > 1 else None


def _missing(row: dict[str, Any], one: Format) -> str:
    return ", ".join(mark for mark in one.marks if mark not in row)


def _checked(path: Path, one: Format) -> Iterator[Row]:
    """Records that fit the schema; `FormatError` at the first that does not. Lists that are too long can be read."""
    for where, row in records(path, one.schema["required"] if one.csv else ()):
        if isinstance(row, FormatError):
            raise row
        for fault in faults(row, one.schema, limits=False):
            raise FormatError(f"{where}: {fault}")
        yield where, row


def read(
    path: Path,
    name: str | None = None,
    *,
    corpus: Sequence[Path] = (),
    questions: Sequence[Question] | None = None,
    notes: Notes | None = None,
    skip_bad: bool = False,
) -> Iterator[CitedAnswer]:
    """Stream the answers of a file in any format that holds some, told from its first record unless named.

    `corpus` gives the texts of passages known by id only, `questions` (the benchmark) references and ids; answers to
    other questions are dropped. What happened by the way is counted in `notes`. `FormatError` at a broken record or
    an id that occurs twice.
    """
    notes = Notes() if notes is None else notes
    name = name or detect(path)
    if name == SCORES or by_name(name).read is None:
        readable = ", ".join(sorted(key for key, one in FORMATS.items() if one.read))
        raise UserError(f"{path}: {name} holds no answers; formats that do: {readable}")
    if not corpus:
        return _joined(path, by_name(name), questions, notes)
    return join_passages(_Passes(path, by_name(name), questions, notes), corpus, notes, skip_bad=skip_bad)


class _Passes:
    """The answers of a file as often as they are asked for; only the first pass counts its notes."""

    def __init__(self, path: Path, one: Format, questions: Sequence[Question] | None, notes: Notes) -> None:
        self._of, self._notes = (path, one, questions), notes

    def __call__(self) -> Iterator[CitedAnswer]:
        notes, self._notes = self._notes, Notes()
        return _joined(*self._of, notes)


def _joined(path: Path, one: Format, questions: Sequence[Question] | None, notes: Notes) -> Iterator[CitedAnswer]:
    answers = _distinct(path, one, notes)
    return answers if questions is None else join_questions(answers, questions, notes)


def _distinct(path: Path, one: Format, notes: Notes) -> Iterator[CitedAnswer]:
    at = str(path)

    def rows() -> Iterator[Row]:
        nonlocal at
        for where, row in _checked(path, one):
            at = where
            yield where, row

    assert one.read is not None
    seen: set[str] = set()
    for answer in one.read(rows(), notes):
        if answer.id in seen:
            raise FormatError(f"{at}: id {answer.id!r} occurs twice")
        seen.add(answer.id)
        yield answer


def to_write(name: str) -> Format:
    """The format of that name, which can be written; `UserError` lists those that can."""
    one = FORMATS.get(name)
    if one is None or one.write is None:
        writable = ", ".join(sorted(key for key, other in FORMATS.items() if other.write))
        raise UserError(f"nothing can be converted to {name!r}; formats to write: {writable}")
    return one


def write(answers: Iterable[CitedAnswer], name: str, notes: Notes | None = None) -> Iterator[str]:
    """The lines of a file in that format (`jsonl.write_whole` writes them); what is left out is counted in `notes`."""
    lines_of = to_write(name).write
    assert lines_of is not None
    return lines_of(answers, Notes() if notes is None else notes)


def read_labels(path: Path) -> Iterator[Labelled]:
    """The human labels of a file, the format of each record told by its fields (`labels.read_labels`)."""
    for where, row in records(path):
        if isinstance(row, FormatError):
            raise row
        one = _of_record(row, where)
        if one.labels is None:
            known = ", ".join(sorted(key for key, other in FORMATS.items() if other.labels))
            raise FormatError(f"{where}: {one.name} has no labels of single claims; formats that do: {known}")
        for fault in faults(row, one.schema, limits=False):
            raise FormatError(f"{where}: {fault}")
        yield from one.labels(row, where)


def validate(path: Path, name: str | None = None, topics: Sequence[Question] | None = None) -> Iterator[Fault]:
    """Every fault of a file: records that cannot be read, fields that do not fit the schema, what the format forbids.

    Where the first record lacks a field that its format is told by, the file is checked against the nearest format.
    With `topics` (TREC), also topics that are missing, foreign or reworded.
    """
    try:
        if name is None:
            name = detect(path)
            yield from _doubts(path, name)
    except FormatError as error:
        guessed = _guess(path)
        if guessed is None:
            found = dict.fromkeys(_fault(one, path) for one in (error, *_broken(path)))  # broken records alone: once
            yield from sorted(found, key=lambda fault: int(fault.where.removeprefix(str(path))[1:] or 0))
            return
        name, fault = guessed
        yield fault
    if name == SCORES:
        yield from _scores_faults(path)
        return
    one = by_name(name)
    if topics is not None and name not in trec.REFERENCES:
        raise UserError(f"{path}: --questions is for {' and '.join(trec.REFERENCES)}, this is {name}")
    official = None if topics is None else {topic.id: topic.text for topic in topics}
    waiting: list[Fault] = []
    answered: list[trec.Answered] = []  # kept for the topics only
    check_ids = one.ids()

    def rows() -> Iterator[Row]:
        empty = True
        try:
            for where, row in records(path, one.schema["required"] if one.csv else ()):
                empty = False
                if isinstance(row, FormatError):
                    waiting.append(_fault(row, path))
                    continue
                found = [Fault(where, message) for message in faults(row, one.schema)]
                waiting.extend(found)
                waiting.extend(check_ids(where, row))
                if official is not None:
                    answered.append(trec.answered(where, row))
                if not found or not any(faults(row, one.schema, limits=False)):
                    yield where, row
        except FormatError as error:  # the file breaks off
            waiting.append(_fault(error, path))
        else:
            if empty:
                waiting.append(Fault(str(path), "holds no records"))

    for fault in one.check(rows()):
        yield from waiting
        waiting.clear()
        yield fault
    yield from waiting
    if official is not None:
        yield from trec.check_topics(answered, official, str(path))


def _guess(path: Path) -> tuple[str, Fault] | None:
    """The nearest format of a file whose first record is of none, and what that record lacks."""
    try:
        where, row = _first_record(path)
    except FormatError:
        return None
    near = _nearest(row)
    if near is None:
        return None
    says = f"checked as {near.name}, the nearest, which also has {_missing(row, near)}"
    return near.name, Fault(where, f"no known format has just these fields; {says}")


def _doubts(path: Path, name: str) -> Iterator[Fault]:
    """A warning where the first record fits the format that was told, yet has more fields of another."""
    if name == SCORES:
        return
    where, row = _first_record(path)
    near = _nearest(row)
    if near is not None and (missing := _missing(row, near)):
        says = f"checked as {name}, yet most fields are those of {near.name}, which also has {missing}"
        yield Fault(where, f"{says}: --format names another", warning=True)


def _broken(path: Path) -> list[FormatError]:
    broken = []
    try:
        broken += [row for _, row in records(path) if isinstance(row, FormatError)]
    except FormatError as error:
        broken.append(error)
    return broken


def _fault(error: FormatError, path: Path) -> Fault:
    line, message = _LINE.findall(str(error).removeprefix(str(path)))[0]
    return Fault(f"{path}{line}", message)


def _scores_faults(path: Path) -> Iterator[Fault]:
    try:
        scores = aqa.read_scores(path)
    except FormatError as error:
        yield _fault(error, path)
        return
    yield from (Fault(str(path), message) for message in faults(scores, aqa.SCORES_SCHEMA))


def fix(path: Path, name: str | None = None) -> tuple[list[str], list[str]]:
    """(lines of a mended TREC run, what was done and where); `UserError` where a person must mend it first."""
    name = name or detect(path)
    if name not in trec.REFERENCES:
        raise UserError(f"{path}: only {' and '.join(trec.REFERENCES)} can be mended, this is {name}")
    fixed: list[str] = []
    did: list[str] = []
    for where, row in _checked(path, by_name(name)):
        mended, what = trec.fix(row, trec.REFERENCES[name])
        fixed.append(dumps(mended))
        did.extend(f"{where}: {one}" for one in what)
    return fixed, did


__all__ = [
    "FORMATS", "NAMES", "Fault", "Format", "Notes", "by_name", "detect", "fix", "read", "read_labels", "schema_of",
    "to_write", "validate", "write",
]  # fmt: skip
