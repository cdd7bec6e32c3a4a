"""The file formats of the field, by name: detection, reading into `CitedAnswer`, writing and validation."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.base import answers as own
from autoais.base.answers import CitedAnswer
from autoais.base.errors import AIS_REPORT, FormatError, UserError, field_names
from autoais.base.io.files import header_of, lines, records
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import Schema, faults, misspelt
from autoais.base.labels import Labelled
from autoais.base.registry import Registry
from autoais.base.types import Attribution, Question, Support
from autoais.formats import aqa, trec
from autoais.formats.base import Fault, Format, Notes, Row, unique_id
from autoais.formats.contexts import ALL_CITED, NONE_CITED, has_markers, uncited
from autoais.formats.convert import FEATURES, join_passages, join_questions


def _read_own(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for where, row in rows:
        yield own.from_row(row, where)


def _labels_own(row: dict[str, Any], where: str) -> Iterator[Labelled]:
    return labels_of(own.from_row(row, where))


def labels_of(answer: CitedAnswer) -> Iterator[Labelled]:
    """Yield the labels of sentences; of single citations where the sentence has none.

    A label of the whole answer is that of its sentence, if there is just one.
    """
    dataset, system = (str(answer.extra.get(name) or "") for name in ("dataset", "system"))
    for number, sentence in enumerate(answer.sentences):
        texts = {cited: answer.passages[cited].evidence for cited in sentence.cites}
        label = sentence.attributable
        if label is None and len(answer.sentences) == 1:
            label = answer.attributable
        if label is not None:
            attribution = Attribution(sentence.text, tuple(texts.values()), answer.question)
            yield Labelled(dataset or "answers", f"{answer.id}/{number}", attribution, label, system)
            continue
        for place, (cited, level) in enumerate(sentence.support.items(), 1):
            attribution = Attribution(sentence.text, (texts[cited],), answer.question)
            key, full = f"{answer.id}/{number}/{place}", level is Support.FULL
            yield Labelled(dataset or "answers", key, attribution, full, system, support=level)


def _check_own(rows: Iterable[Row]) -> Iterator[Fault]:
    for where, row in rows:
        try:
            answer = own.from_row(row, where)
        except FormatError as error:
            yield Fault(where, str(error).removeprefix(f"{where}: "))
            continue
        for bad in answer.unresolved_markers:
            if bad.reason == "unknown-id" and bad.sentence is not None:
                name = f"sentences[{bad.sentence}].citations"
                says = f"field {name!r}: {bad.marker!r} is not a passage of the row; it counts as unresolved"
                yield Fault(where, says, warning=True)
        yield from _span_faults(answer, where)
        sure = row.get("confidence")
        if sure is not None and (isinstance(sure, bool) or not isinstance(sure, int | float) or not 0 <= sure <= 1):
            found = f"{sure:.60}" if isinstance(sure, str) else f"{sure!r:.60}"
            yield Fault(where, f"field 'confidence' should be a number from 0 to 1 or null, found {found}")


def _span_faults(answer: CitedAnswer, where: str) -> Iterator[Fault]:
    """Yield the citations whose span is not in the text of their passage, or not what they quote."""
    for number, sentence in enumerate(answer.sentences):
        for one in sentence.citations:
            text = answer.passages[one.passage].text
            if not text or one.start is None or one.end is None:
                continue
            name = f"sentences[{number}].citations"
            cites = f"field {name!r}: {one.passage[:60]!r} is cited from {one.start} to {one.end}"
            if not one.start <= one.end <= len(text):
                yield Fault(where, f"{cites}, and its text has the characters 0 to {len(text)}")
            elif one.quote is not None and one.quote != (span := text[one.start : one.end]):
                same = "".join(one.quote.split()) == "".join(span.split())
                says = "with other white space than" if same else "and its 'quote' is not"
                yield Fault(where, f"{cites}, {says} the text there: {span[:60]!r}", warning=same)


_OF_ANSWERS = frozenset(["abstained", "answer", "output", "sentences", "short_answer"])

ANSWERS = Format(
    name="answers",
    description="our own answers.jsonl: holds everything that the other formats hold",
    schema=own.SCHEMA,
    required_fields=("id", "question"),
    read=_read_own,
    write=lambda answers, notes: own.write_answers(answers),
    labels=_labels_own,
    check=_check_own,
    ids=unique_id("id"),
    supports=frozenset(FEATURES),
)
SCORES = "aqa-scores"

_ALCE, _AQA, _CLAIMS, _PASSAGES, _HAGRID, _LIU, _TREC, _TRULENS = (
    f"autoais.formats.{module}" for module in ("alce", "aqa", "claims", "passages", "hagrid", "liu", "trec", "trulens")
)
FORMATS: Registry[Format] = Registry(
    "autoais.formats",
    "format",
    {
        "aqa-predictions": f"{_AQA}:PREDICTIONS",
        "aqa-ais": f"{_AQA}:AIS",
        "aqa-ratings": f"{_AQA}:RATINGS",
        "hagrid": f"{_HAGRID}:HAGRID",
        "alce": f"{_ALCE}:ALCE",
        "trec-rag-24": f"{_TREC}:TREC_24",
        "trec-rag-25": f"{_TREC}:TREC_25",
        "autojudge-reports": f"{_TREC}:REPORTS",
        "ragnarok": "autoais.formats.ragnarok:RAGNAROK",
        "nuggetizer": "autoais.formats.nuggetizer:NUGGETIZER",
        "ragas": "autoais.formats.ragas:RAGAS",
        "ragas-0.1": "autoais.formats.ragas:RAGAS_0_1",
        "ragchecker": "autoais.formats.ragchecker:RAGCHECKER",
        "open-rag-eval": "autoais.formats.open_rag_eval:OPEN_RAG_EVAL",
        "deepeval": "autoais.formats.deepeval:DEEPEVAL",
        "trulens": f"{_TRULENS}:TRULENS",
        "trulens-records": f"{_TRULENS}:RECORDS",
        "flashrag": "autoais.formats.flashrag:FLASHRAG",
        "expertqa": "autoais.formats.expertqa:EXPERTQA",
        "aggrefact": "autoais.formats.aggrefact:AGGREFACT",
        "liu-judgements": f"{_LIU}:JUDGEMENTS",
        "liu-annotations": f"{_LIU}:ANNOTATIONS",
        "attributionbench": f"{_CLAIMS}:ATTRIBUTIONBENCH",
        "attrscore": f"{_CLAIMS}:ATTRSCORE",
        "labels": f"{_CLAIMS}:LABELS",
        "ratings": "autoais.formats.ratings:RATINGS",
        "judgements": "autoais.formats.judgements:JUDGEMENTS",
        "aqa-corpus": f"{_PASSAGES}:AQA",
        "miracl-corpus": f"{_PASSAGES}:MIRACL",
        "msmarco-v2.1-corpus": f"{_PASSAGES}:MSMARCO",
        "beir-corpus": f"{_PASSAGES}:BEIR",
        "dpr-corpus": f"{_PASSAGES}:DPR",
        ANSWERS.name: ANSWERS,  # last: its required fields are the least specific
    },
)


def names() -> list[str]:
    """Return the names of all formats, sorted."""
    return sorted([*FORMATS, SCORES])


_LINE = re.compile(r"^(:\d+)?:? ?(.*)", re.DOTALL)
_LISTED = "`autoais schema` lists the formats"
_SHOWN = 2  # of the formats that are near
_TRIED = 1000  # records to look at when detecting the format; the first ones may be broken


def by_name(name: str) -> Format:
    """Return the format of that name; raises `UserError` for an unknown name."""
    if name not in FORMATS:
        raise UserError(f"no format called {name!r}; there are: {', '.join(names())}")
    return FORMATS[name]


def schema_of(name: str) -> Schema:
    """Return the JSON Schema (draft 2020-12) of one record: a line, a CSV row, or an item of the document."""
    schema = aqa.SCORES_SCHEMA if name == SCORES else by_name(name).schema
    description = "Attributed QA's three scores" if name == SCORES else by_name(name).description
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "description": description}
    return {**head, **schema}


def detect(path: Path) -> str:
    """Return the name of a file's format, from its first readable record.

    Raises `FormatError` if there is no such record or no format has its fields.
    """
    first = next(lines(path), b"")
    if first.startswith(b"AutoAIS: "):
        return SCORES
    where, row = _first_record(path)
    return _of_record(row, where).name


def _first_record(path: Path) -> Row:
    """Return the first readable record and its place; in a CSV the place is the header, which names the fields."""
    broken: FormatError | None = None
    for where, row in islice(records(path), _TRIED):
        if not isinstance(row, FormatError):
            return header_of(path) or where, row
        broken = broken or row
    if broken is None and (header := header_of(path)):
        broken = FormatError(f"{header}: not JSON, and as the header of a CSV it has no rows; {_LISTED}")
    raise broken or FormatError(f"{path}: holds no records; {_LISTED}")


def _of_record(row: dict[str, Any], where: str) -> Format:
    fitting = [one for _, one in FORMATS.items() if all(mark in row for mark in one.required_fields)]
    if not fitting:
        if "INT & AIS" in row:
            raise FormatError(f"{where}: holds majorities of annotators as the AIS paper released them; {AIS_REPORT}")
        near = "".join(f"{one.name} also has {_missing(row, one)}; " for one in (_near(row) or _alike(row))[:_SHOWN])
        found = f"no known format has the fields {field_names(row)}" if row else "the record has no fields"
        raise FormatError(f"{where}: {found}; {near}{_LISTED}")
    return max(fitting, key=lambda one: len(one.required_fields))


def _near(row: dict[str, Any]) -> list[Format]:
    """Return the formats that share at least two fields with a record, one of them required; the nearest first."""

    def known(one: Format) -> tuple[int, float]:
        marks = sum(mark in row for mark in one.required_fields)
        return sum(name in row for name in one.schema["properties"]) if marks else 0, marks / len(one.required_fields)

    ordered = sorted((one for _, one in FORMATS.items()), key=known, reverse=True)
    return [one for one in ordered if known(one)[0] > 1]


def _alike(row: dict[str, Any]) -> list[Format]:
    """Return the formats with answers that have a required field of a record; first those that lack the fewest."""

    def fits(name: str, one: Format) -> bool:
        return name in row and not any(faults(row[name], one.schema["properties"][name]))

    found = [one for _, one in FORMATS.items() if one.read and any(fits(mark, one) for mark in one.required_fields)]
    return sorted(found, key=lambda one: len([mark for mark in one.required_fields if mark not in row]))


def _nearest(row: dict[str, Any]) -> Format | None:
    return next(iter(_near(row)), None)


def _missing(row: dict[str, Any], one: Format) -> str:
    return ", ".join(mark for mark in one.required_fields if mark not in row)


def _checked(path: Path, one: Format) -> Iterator[Row]:
    """Yield the records; raises `FormatError` at the first that does not fit the schema. Lists may be too long."""
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
    """Stream the answers of a file in any answer format; `name` is the format (default: detected).

    `corpus` supplies the texts of passages known by id only. `questions` (the benchmark) supplies references and ids;
    answers to other questions are dropped. `notes` counts what was dropped or is missing. Raises `FormatError` for a
    broken record or a duplicate id.
    """
    notes = Notes() if notes is None else notes
    name = name or detect(path)
    if name == SCORES or by_name(name).read is None:
        readable = ", ".join(sorted(key for key, one in FORMATS.items() if one.read))
        raise UserError(f"{path}: {name} holds no answers; formats that do: {readable}")
    if not corpus:
        return _joined(path, by_name(name), questions, notes)
    return join_passages(_Passes(path, by_name(name), questions, notes), corpus, notes, skip_bad=skip_bad)


def read_rated(path: Path, notes: Notes | None = None) -> Iterator[CitedAnswer]:
    """Stream the answers that ratings are about, as `read`.

    Raises `UserError` if the file names no ids: in another order, the labels would be those of other answers.
    """
    one = by_name(detect(path))
    for where, row in _checked(path, one) if one.read else ():
        if one.by_place(row):
            raise UserError(
                f"{where}: answers without ids, which ratings cannot name; give the answers as they were rated, such "
                "as answers.jsonl of `rag annotate export`"
            )
    return read(path, one.name, notes=notes)


class _Passes:
    """Reads the answers of a file once per call; only the first pass counts notes."""

    def __init__(self, path: Path, one: Format, questions: Sequence[Question] | None, notes: Notes) -> None:
        self._arguments, self._notes = (path, one, questions), notes

    def __call__(self) -> Iterator[CitedAnswer]:
        notes, self._notes = self._notes, Notes()
        return _joined(*self._arguments, notes)


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
    marked: bool | None = None  # whether an answer of the file has markers; asked if one has none
    for answer in one.read(rows(), notes):
        if answer.id in seen:
            raise FormatError(f"{at}: id {answer.id!r} occurs twice")
        seen.add(answer.id)
        if one is ANSWERS or not answer.whole_context:
            yield answer
            continue
        if marked is None:
            marked = any(map(has_markers, one.read(_checked(path, one), Notes())))
        notes.tell(*NONE_CITED if marked else ALL_CITED)
        yield uncited(answer) if marked else answer


def to_write(name: str) -> Format:
    """Return the format of that name; raises `UserError` if it cannot be written."""
    if name not in FORMATS or FORMATS[name].write is None:
        writable = ", ".join(sorted(key for key, other in FORMATS.items() if other.write))
        raise UserError(f"nothing can be converted to {name!r}; formats to write: {writable}")
    return FORMATS[name]


def write(answers: Iterable[CitedAnswer], name: str, notes: Notes | None = None) -> Iterator[str]:
    """Return the lines of a file in that format, for `jsonl.write_atomic`; `notes` counts what is left out."""
    lines_of = to_write(name).write
    assert lines_of is not None
    return lines_of(answers, Notes() if notes is None else notes)


def read_labels(path: Path) -> Iterator[Labelled]:
    """Stream the human labels of a file; the fields of each record decide its format."""
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


def validate(
    path: Path,
    name: str | None = None,
    topics: Sequence[Question] | None = None,
    seen: Counter[str] | None = None,
) -> Iterator[Fault]:
    """Yield every fault of a file: broken records, fields that do not fit the schema, and breaches of other rules.

    If the first record lacks a required field of every format, the file is checked against the nearest format. With
    `topics` (TREC), also reports topics that are missing, unknown or reworded. `seen` counts the records under the name
    of the format that they were checked against.
    """
    seen = Counter() if seen is None else seen
    doubts: list[Fault] = []
    try:
        if name is None:
            name = detect(path)
            doubts = list(_doubts(path, name))
            yield from doubts
    except FormatError as error:
        guessed = _guess(path)
        if guessed is None:
            found = dict.fromkeys(_fault(one, path) for one in (error, *_broken(path)))  # each fault once
            yield from sorted(found, key=lambda fault: int(fault.where.removeprefix(str(path))[1:] or 0))
            return
        name, fault = guessed
        yield fault
    if name == SCORES:
        seen[name] += 1
        yield from _scores_faults(path)
        return
    one = by_name(name)
    if topics is not None and name not in trec.REFERENCES:
        raise UserError(f"{path}: topics (--questions) are for {' and '.join(trec.REFERENCES)}, this is {name}")
    official = None if topics is None else {topic.id: topic.text for topic in topics}
    waiting: list[Fault] = []
    answered: list[trec.Answered] = []  # for `topics` only
    check_ids = one.ids()
    unknown = _Unknown()

    answering = one is not ANSWERS or bool(doubts)  # or a row has a field of answers

    def rows() -> Iterator[Row]:
        nonlocal answering
        empty = True
        try:
            for where, row in records(path, one.schema["required"] if one.csv else ()):
                empty = False
                seen[one.name] += 1
                if isinstance(row, FormatError):
                    waiting.append(_fault(row, path))
                    continue
                answering = answering or not _OF_ANSWERS.isdisjoint(row)
                found = [Fault(where, message) for message in faults(row, one.schema)]
                waiting.extend(found)
                waiting.extend(check_ids(where, row))
                unknown.count(where, misspelt(row, one.schema))
                if official is not None:
                    answered.append(trec.answered(where, row))
                if not found or not any(faults(row, one.schema, limits=False)):
                    yield where, row
        except FormatError as error:  # the rest of the file cannot be read
            waiting.append(_fault(error, path))
        else:
            if empty:
                waiting.append(Fault(str(path), "holds no records"))

    for fault in one.check(rows()):
        yield from waiting
        waiting.clear()
        yield fault
    yield from waiting
    yield from unknown.faults()
    if seen[one.name] and not answering:
        says = "no row of the file has an answer or says `abstained`: these are questions, which `score` cannot judge"
        yield Fault(str(path), says, warning=True)
    if official is not None:
        yield from trec.check_topics(answered, official, str(path))


_VALUES = re.compile(r"field '[^']*'|(?<!\w)'[^']*'|\d+")


def once(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield the faults, and of the warnings that differ in values alone only the first, after all others, with a count.

    Values are numbers, and what stands in quotation marks but is no name of a field.
    """
    first: dict[str, Fault] = {}
    counts = Counter[str]()
    for fault in faults:
        if not fault.warning:
            yield fault
            continue
        kind = _VALUES.sub(lambda m: re.sub(r"\d+", "", m[0]) if m[0].startswith("field") else "", fault.message)
        first.setdefault(kind, fault)
        counts[kind] += 1
    for kind, fault in first.items():
        more = f"; {counts[kind] - 1:,} more of this kind" if counts[kind] > 1 else ""
        yield replace(fault, message=fault.message + more)


class _Unknown:
    """Counts fields that a format does not know but has nearly the name of one, for a warning each."""

    def __init__(self) -> None:
        self._counts, self._first = Counter[tuple[str, str]](), dict[tuple[str, str], str]()

    def count(self, where: str, found: Iterable[tuple[str, str]]) -> None:
        """Count the fields of a record, once each."""
        for one in dict.fromkeys(found):
            self._counts[one] += 1
            self._first.setdefault(one, where)

    def faults(self) -> Iterator[Fault]:
        """Yield a warning for each field, at the first record that has it."""
        for (name, near), count in self._counts.items():
            times = "" if count == 1 else f" ({count:,} records)"
            message = f"field {name!r} is not known; did you mean {near!r}?{times}"
            yield Fault(self._first[name, near], message, warning=True)


def _guess(path: Path) -> tuple[str, Fault] | None:
    """Return the nearest format of a file that fits none, and the fault that names the missing fields."""
    try:
        where, row = _first_record(path)
    except FormatError:
        return None
    near = _nearest(row)
    if near is None:
        return None
    checked = f"checked as {near.name}, the nearest, which also has {_missing(row, near)}"
    return near.name, Fault(where, f"no known format has just these fields; {checked}")


def _doubts(path: Path, name: str) -> Iterator[Fault]:
    """Yield a warning if the first record fits the detected format, but has more fields of another."""
    if name == SCORES:
        return
    where, row = _first_record(path)
    near = _nearest(row)
    if near is not None and (missing := _missing(row, near)):
        checked = f"checked as {name}, yet most fields are those of {near.name}, which also has {missing}"
        yield Fault(where, f"{checked}; choose another format (--format)", warning=True)


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
    """Return the lines of a fixed TREC run, and the list of changes with their places.

    Raises `UserError` for other formats, and `FormatError` for a row that cannot be fixed automatically.
    """
    name = name or detect(path)
    if name not in trec.REFERENCES:
        raise UserError(f"{path}: only {' and '.join(trec.REFERENCES)} can be fixed, this is {name}")
    fixed: list[str] = []
    did: list[str] = []
    for where, row in _checked(path, by_name(name)):
        row_fixed, changes = trec.fix(row, trec.REFERENCES[name])
        fixed.append(dumps(row_fixed))
        did.extend(f"{where}: {change}" for change in changes)
    return fixed, did


__all__ = [
    "FORMATS", "Fault", "Format", "Notes", "by_name", "detect", "fix", "labels_of", "once", "read", "read_labels",
    "read_rated", "schema_of", "to_write", "validate", "write",
]  # fmt: skip
