"""The file formats of the field, by name: detection, reading into `CitedAnswer`, writing and validation."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.base import answers as own
from autoais.base.answers import CitedAnswer
from autoais.base.errors import AIS_REPORT, FormatError, UserError, field_names
from autoais.base.io.files import find_header, lines, records
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import Schema, faults, find_misspellings
from autoais.base.labels import LabelledClaim
from autoais.base.registry import Registry
from autoais.base.types import Attribution, Question, Support
from autoais.formats import aqa, trec
from autoais.formats.base import Fault, Format, Notes, Row, refuse_faults, unique_id
from autoais.formats.contexts import ALL_CITED, NONE_CITED, has_markers, remove_citations
from autoais.formats.convert import FEATURES, join_passages, join_questions


def _read_own(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for location, row in rows:
        answer = own.from_row(row, location)
        refuse_faults(_value_faults(answer, row, location))
        yield answer


def _labels_own(row: dict[str, Any], location: str) -> Iterator[LabelledClaim]:
    return labels_of(own.from_row(row, location))


def labels_of(answer: CitedAnswer) -> Iterator[LabelledClaim]:
    """Yield the labels of sentences; of single citations where the sentence has none.

    A label of the whole answer is that of its sentence, if there is just one.
    """
    dataset, system = (str(answer.extra.get(name) or "") for name in ("dataset", "system"))
    for number, sentence in enumerate(answer.sentences):
        texts = {key: answer.passages[key].evidence for key in sentence.cites}
        label = sentence.attributable
        if label is None and len(answer.sentences) == 1:
            label = answer.attributable
        if label is not None:
            attribution = Attribution(sentence.text, tuple(texts.values()), answer.question)
            yield LabelledClaim(dataset or "answers", f"{answer.id}/{number}", attribution, label, system)
            continue
        for index, (passage_id, level) in enumerate(sentence.support.items(), 1):
            attribution = Attribution(sentence.text, (texts[passage_id],), answer.question)
            key, full = f"{answer.id}/{number}/{index}", level is Support.FULL
            yield LabelledClaim(dataset or "answers", key, attribution, full, system, support=level)


def _check_own(rows: Iterable[Row]) -> Iterator[Fault]:
    for location, row in rows:
        try:
            answer = own.from_row(row, location)
        except FormatError as error:
            yield Fault(location, str(error).removeprefix(f"{location}: "))
            continue
        for bad in answer.unresolved_markers:
            if bad.reason == "unknown-id" and bad.sentence is not None:
                name = f"sentences[{bad.sentence}].citations"
                message = f"field {name!r}: {bad.marker!r} is not a passage of the row; it counts as unresolved"
                yield Fault(location, message, warning=True)
        yield from _value_faults(answer, row, location)


def _value_faults(answer: CitedAnswer, row: dict[str, Any], location: str) -> Iterator[Fault]:
    yield from _span_faults(answer, location)
    confidence = row.get("confidence")
    if confidence is None:
        return
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        text = f"{confidence:.60}" if isinstance(confidence, str) else f"{confidence!r:.60}"
        yield Fault(location, f"field 'confidence' should be a number from 0 to 1 or null, found {text}")


def _span_faults(answer: CitedAnswer, location: str) -> Iterator[Fault]:
    """Yield the citations whose span is not in the text of their passage, or not what they quote."""
    for number, sentence in enumerate(answer.sentences):
        for citation in sentence.citations:
            text = answer.passages[citation.passage].text
            if not text or citation.start is None or citation.end is None:
                continue
            name = f"sentences[{number}].citations"
            cites = f"field {name!r}: {citation.passage[:60]!r} is cited from {citation.start} to {citation.end}"
            if not citation.start <= citation.end <= len(text):
                yield Fault(location, f"{cites}, and its text has the characters 0 to {len(text)}")
            elif citation.quote is not None and citation.quote != (span := text[citation.start : citation.end]):
                has_same_words = "".join(citation.quote.split()) == "".join(span.split())
                relation = "with other white space than" if has_same_words else "and its 'quote' is not"
                yield Fault(location, f"{cites}, {relation} the text there: {span[:60]!r}", warning=has_same_words)


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

_ALCE, _AQA, _CLAIMS, _PASSAGES, _HAGRID, _LIU, _TREC, _MAPPINGS = (
    f"autoais.formats.{module}" for module in ("alce", "aqa", "claims", "passages", "hagrid", "liu", "trec", "mappings")
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
        "ragas": f"{_MAPPINGS}:RAGAS",
        "ragas-0.1": f"{_MAPPINGS}:RAGAS_0_1",
        "ragchecker": f"{_MAPPINGS}:RAGCHECKER",
        "open-rag-eval": "autoais.formats.open_rag_eval:OPEN_RAG_EVAL",
        "deepeval": f"{_MAPPINGS}:DEEPEVAL",
        "trulens": f"{_MAPPINGS}:TRULENS",
        "trulens-records": "autoais.formats.trulens:RECORDS",
        "flashrag": "autoais.formats.flashrag:FLASHRAG",
        "expertqa": "autoais.formats.expertqa:EXPERTQA",
        "aggrefact": "autoais.formats.aggrefact:AGGREFACT",
        "ragtruth": "autoais.formats.ragtruth:RAGTRUTH",
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
_SCHEMA_HINT = "`autoais schema` lists the formats"
_MAX_SUGGESTIONS = 2  # of the formats that are near
_MAX_RECORDS = 1000  # records to look at when detecting the format; the first ones may be broken


def get_format(name: str) -> Format:
    """Return the format of that name; raises `UserError` for an unknown name."""
    if name not in FORMATS:
        raise UserError(f"no format called {name!r}; there are: {', '.join(names())}")
    return FORMATS[name]


def schema_of(name: str) -> Schema:
    """Return the JSON Schema (draft 2020-12) of one record: a line, a CSV row, or an item of the document."""
    schema = aqa.SCORES_SCHEMA if name == SCORES else get_format(name).schema
    description = "Attributed QA's three scores" if name == SCORES else get_format(name).description
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "description": description}
    return {**head, **schema}


def detect(path: Path) -> str:
    """Return the name of a file's format, from its first readable record.

    Raises `FormatError` if there is no such record or no format has its fields.
    """
    first = next(lines(path), b"")
    if first.startswith(b"AutoAIS: "):
        return SCORES
    location, row = _first_record(path)
    return _name_of_record(row, location)


def _first_record(path: Path) -> Row:
    """Return the first readable record and its place; in a CSV the place is the header, which names the fields."""
    error: FormatError | None = None
    for location, row in islice(records(path), _MAX_RECORDS):
        if not isinstance(row, FormatError):
            return find_header(path) or location, row
        error = error or row
    if error is None and (header := find_header(path)):
        error = FormatError(f"{header}: not JSON, and as the header of a CSV it has no rows; {_SCHEMA_HINT}")
    raise error or FormatError(f"{path}: holds no records; {_SCHEMA_HINT}")


@cache
def _read_required_fields() -> dict[str, list[str]]:
    text = files("autoais.formats").joinpath("required-fields.toml").read_text("utf-8")
    return tomllib.loads(text)


def _fields_to_detect(name: str) -> Sequence[str]:
    """Return the required fields of a format; of a built-in one, without importing it."""
    file_format = FORMATS.peek(name)
    if file_format is None and name in _read_required_fields():
        return _read_required_fields()[name]
    return FORMATS[name].required_fields


def _name_of_record(row: dict[str, Any], location: str) -> str:
    candidates = [name for name in FORMATS if all(mark in row for mark in _fields_to_detect(name))]
    if not candidates:
        if "INT & AIS" in row:
            raise FormatError(
                f"{location}: holds majorities of annotators as the AIS paper released them; {AIS_REPORT}"
            )
        suggestions = "".join(
            f"{file_format.name} also has {_list_missing(row, file_format)}; "
            for file_format in (_find_near(row) or _find_similar(row))[:_MAX_SUGGESTIONS]
        )
        fields = f"no known format has the fields {field_names(row)}" if row else "the record has no fields"
        raise FormatError(f"{location}: {fields}; {suggestions}{_SCHEMA_HINT}")
    return max(candidates, key=lambda name: len(_fields_to_detect(name)))


def _find_near(row: dict[str, Any]) -> list[Format]:
    """Return the formats that share at least two fields with a record, one of them required; the nearest first."""

    def count_fields(file_format: Format) -> tuple[int, float]:
        marks = sum(mark in row for mark in file_format.required_fields)
        field_count = sum(name in row for name in file_format.schema["properties"])
        return field_count if marks else 0, marks / len(file_format.required_fields)

    formats = sorted((file_format for _, file_format in FORMATS.items()), key=count_fields, reverse=True)
    return [file_format for file_format in formats if count_fields(file_format)[0] > 1]


def _find_similar(row: dict[str, Any]) -> list[Format]:
    """Return the formats with answers that have a required field of a record; first those that lack the fewest."""

    def fits(name: str, file_format: Format) -> bool:
        return name in row and not any(faults(row[name], file_format.schema["properties"][name]))

    formats = [
        file_format
        for _, file_format in FORMATS.items()
        if file_format.read and any(fits(mark, file_format) for mark in file_format.required_fields)
    ]
    return sorted(
        formats, key=lambda file_format: len([mark for mark in file_format.required_fields if mark not in row])
    )


def _find_nearest(row: dict[str, Any]) -> Format | None:
    return next(iter(_find_near(row)), None)


def _list_missing(row: dict[str, Any], file_format: Format) -> str:
    return ", ".join(mark for mark in file_format.required_fields if mark not in row)


def _check_records(path: Path, file_format: Format) -> Iterator[Row]:
    """Yield the records; raises `FormatError` at the first that does not fit the schema. Lists may be too long."""
    for location, row in records(path, file_format.schema["required"] if file_format.csv else ()):
        if isinstance(row, FormatError):
            raise row
        for fault in faults(row, file_format.schema, limits=False):
            raise FormatError(f"{location}: {fault}")
        yield location, row


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
    if name == SCORES or get_format(name).read is None:
        readable = ", ".join(sorted(key for key, file_format in FORMATS.items() if file_format.read))
        raise UserError(f"{path}: {name} holds no answers; formats that do: {readable}")
    if not corpus:
        return _read_and_join(path, get_format(name), questions, notes)
    return join_passages(_AnswerReader(path, get_format(name), questions, notes), corpus, notes, skip_bad=skip_bad)


def read_for_ratings(path: Path, notes: Notes | None = None) -> Iterator[CitedAnswer]:
    """Stream the answers that ratings are about, as `read`.

    Raises `UserError` if the file names no ids: in another order, the labels would be those of other answers.
    """
    file_format = get_format(detect(path))
    for location, row in _check_records(path, file_format) if file_format.read else ():
        if file_format.by_place(row):
            raise UserError(
                f"{location}: answers without ids, which ratings cannot name; give the answers as they were rated, "
                "such as answers.jsonl of `rag annotate export`"
            )
    return read(path, file_format.name, notes=notes)


class _AnswerReader:
    """Reads the answers of a file once per call; only the first pass counts notes."""

    def __init__(self, path: Path, file_format: Format, questions: Sequence[Question] | None, notes: Notes) -> None:
        self._arguments, self._notes = (path, file_format, questions), notes

    def __call__(self) -> Iterator[CitedAnswer]:
        notes, self._notes = self._notes, Notes()
        return _read_and_join(*self._arguments, notes)


def _read_and_join(
    path: Path, file_format: Format, questions: Sequence[Question] | None, notes: Notes
) -> Iterator[CitedAnswer]:
    answers = _read_distinct(path, file_format, notes)
    return answers if questions is None else join_questions(answers, questions, notes)


def _read_distinct(path: Path, file_format: Format, notes: Notes) -> Iterator[CitedAnswer]:
    location = str(path)

    def rows() -> Iterator[Row]:
        nonlocal location
        for row_location, row in _check_records(path, file_format):
            location = row_location
            yield row_location, row

    assert file_format.read is not None
    ids: set[str] = set()
    is_marked: bool | None = None  # whether an answer of the file has markers; asked if one has none
    for answer in file_format.read(rows(), notes):
        if answer.id in ids:
            raise FormatError(f"{location}: id {answer.id!r} occurs twice")
        ids.add(answer.id)
        if file_format is ANSWERS or not answer.whole_context:
            yield answer
            continue
        if is_marked is None:
            is_marked = any(map(has_markers, file_format.read(_check_records(path, file_format), Notes())))
        notes.tell(*NONE_CITED if is_marked else ALL_CITED)
        yield remove_citations(answer) if is_marked else answer


def get_writable(name: str) -> Format:
    """Return the format of that name; raises `UserError` if it cannot be written."""
    if name not in FORMATS or FORMATS[name].write is None:
        writable = ", ".join(sorted(key for key, other in FORMATS.items() if other.write))
        raise UserError(f"nothing can be converted to {name!r}; formats to write: {writable}")
    return FORMATS[name]


def write(answers: Iterable[CitedAnswer], name: str, notes: Notes | None = None) -> Iterator[str]:
    """Return the lines of a file in that format, for `jsonl.write_atomic`; `notes` counts what is left out."""
    lines_of = get_writable(name).write
    assert lines_of is not None
    return lines_of(answers, Notes() if notes is None else notes)


def read_labels(path: Path) -> Iterator[LabelledClaim]:
    """Stream the human labels of a file; the fields of each record decide its format."""
    for location, row in records(path):
        if isinstance(row, FormatError):
            raise row
        file_format = FORMATS[_name_of_record(row, location)]
        if file_format.labels is None:
            readable = ", ".join(sorted(key for key, other in FORMATS.items() if other.labels))
            raise FormatError(
                f"{location}: {file_format.name} has no labels of single claims; formats that do: {readable}"
            )
        for fault in faults(row, file_format.schema, limits=False):
            raise FormatError(f"{location}: {fault}")
        yield from file_format.labels(row, location)


def validate(
    path: Path,
    name: str | None = None,
    topics: Sequence[Question] | None = None,
    counts: Counter[str] | None = None,
) -> Iterator[Fault]:
    """Yield every fault of a file: broken records, fields that do not fit the schema, and breaches of other rules.

    If the first record lacks a required field of every format, the file is checked against the nearest format. With
    `topics` (TREC), also reports topics that are missing, unknown or reworded. `counts` counts the records under the
    name of the format that they were checked against.
    """
    counts = Counter() if counts is None else counts
    doubts: list[Fault] = []
    try:
        if name is None:
            name = detect(path)
            doubts = list(_find_doubts(path, name))
            yield from doubts
    except FormatError as error:
        guess = _guess(path)
        if guess is None:
            yield from _list_faults(error, path)
            return
        name, fault = guess
        yield fault
    if name == SCORES:
        counts[name] += 1
        yield from _scores_faults(path)
        return
    file_format = get_format(name)
    if topics is not None and name not in trec.REFERENCES:
        raise UserError(f"{path}: topics (--questions) are for {' and '.join(trec.REFERENCES)}, this is {name}")
    check = _RecordCheck(path, file_format, counts, with_topics=topics is not None)
    yield from check.faults()
    if counts[file_format.name] and not check.has_answers and not doubts:
        text = "no row of the file has an answer or says `abstained`: these are questions, which `score` cannot judge"
        yield Fault(str(path), text, warning=True)
    if topics is not None:
        yield from trec.check_topics(check.topic_rows, {topic.id: topic.text for topic in topics}, str(path))


class _RecordCheck:
    """Checks the records of a file against its format.

    Afterwards, `has_answers` says whether a record has an answer (always true of formats but our own, which also holds
    questions), and `topic_rows` are the topics of the records, if they are asked for.
    """

    def __init__(self, path: Path, file_format: Format, counts: Counter[str], *, with_topics: bool) -> None:
        self._path, self._format, self._counts, self._with_topics = path, file_format, counts, with_topics
        self._check_ids = file_format.ids()
        self._misspelt = _MisspeltFields()
        self._waiting: list[Fault] = []  # of the records before the one that the format's own check has
        self.has_answers = file_format is not ANSWERS
        self.topic_rows: list[trec.TopicRow] = []

    def faults(self) -> Iterator[Fault]:
        """Yield the faults of the records in their order, then the fields that look misspelt."""
        for fault in self._format.check(self._sound_rows()):
            yield from self._waiting
            self._waiting.clear()
            yield fault
        yield from self._waiting
        yield from self._misspelt.faults()

    def _sound_rows(self) -> Iterator[Row]:
        """Yield the records that fit the schema, lists that are too long apart; the faults of all go to `_waiting`."""
        schema, is_empty = self._format.schema, True
        try:
            for location, row in records(self._path, schema["required"] if self._format.csv else ()):
                is_empty = False
                self._counts[self._format.name] += 1
                if isinstance(row, FormatError):
                    self._waiting.append(_make_fault(row, self._path))
                    continue
                self.has_answers = self.has_answers or not _OF_ANSWERS.isdisjoint(row)
                messages = list(faults(row, schema))
                self._waiting.extend(Fault(location, message) for message in messages)
                self._waiting.extend(self._check_ids(location, row))
                self._misspelt.count(location, find_misspellings(row, schema))
                if self._with_topics:
                    self.topic_rows.append(trec.topic_row(location, row))
                if not messages or not any(faults(row, schema, limits=False)):
                    yield location, row
        except FormatError as error:  # the rest of the file cannot be read
            self._waiting.append(_make_fault(error, self._path))
        else:
            if is_empty:
                self._waiting.append(Fault(str(self._path), "holds no records"))


_VALUES = re.compile(r"field '[^']*'|(?<!\w)'[^']*'|\d+")


def merge_warnings(faults: Iterable[Fault]) -> Iterator[Fault]:
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
        suffix = f"; {counts[kind] - 1:,} more of this kind" if counts[kind] > 1 else ""
        yield replace(fault, message=fault.message + suffix)


class _MisspeltFields:
    """Counts fields that a format does not know but has nearly the name of one, for a warning each."""

    def __init__(self) -> None:
        self._counts, self._first = Counter[tuple[str, str]](), dict[tuple[str, str], str]()

    def count(self, location: str, names: Iterable[tuple[str, str]]) -> None:
        """Count the fields of a record, once each."""
        for pair in dict.fromkeys(names):
            self._counts[pair] += 1
            self._first.setdefault(pair, location)

    def faults(self) -> Iterator[Fault]:
        """Yield a warning for each field, at the first record that has it."""
        for (name, suggestion), count in self._counts.items():
            times = "" if count == 1 else f" ({count:,} records)"
            message = f"field {name!r} is not known; did you mean {suggestion!r}?{times}"
            yield Fault(self._first[name, suggestion], message, warning=True)


def _guess(path: Path) -> tuple[str, Fault] | None:
    """Return the nearest format of a file that fits none, and the fault that names the missing fields."""
    try:
        location, row = _first_record(path)
    except FormatError:
        return None
    file_format = _find_nearest(row)
    if file_format is None:
        return None
    note = f"checked as {file_format.name}, the nearest, which also has {_list_missing(row, file_format)}"
    return file_format.name, Fault(location, f"no known format has just these fields; {note}")


def _find_doubts(path: Path, name: str) -> Iterator[Fault]:
    """Yield a warning if the first record fits the detected format, but has more fields of another."""
    if name == SCORES:
        return
    location, row = _first_record(path)
    file_format = _find_nearest(row)
    if file_format is not None and (missing := _list_missing(row, file_format)):
        note = f"checked as {name}, yet most fields are those of {file_format.name}, which also has {missing}"
        yield Fault(location, f"{note}; choose another format (--format)", warning=True)


def _list_faults(error: FormatError, path: Path) -> list[Fault]:
    """Return the faults of a file of no format: why it has none, and the records that cannot be read, by line."""
    errors = [error]
    try:
        errors += [row for _, row in records(path) if isinstance(row, FormatError)]
    except FormatError as later_error:
        errors.append(later_error)
    unique_faults = dict.fromkeys(_make_fault(format_error, path) for format_error in errors)
    return sorted(unique_faults, key=lambda fault: int(fault.location.removeprefix(str(path))[1:] or 0))


def _make_fault(error: FormatError, path: Path) -> Fault:
    line, message = _LINE.findall(str(error).removeprefix(str(path)))[0]
    return Fault(f"{path}{line}", message)


def _scores_faults(path: Path) -> Iterator[Fault]:
    try:
        scores = aqa.read_scores(path)
    except FormatError as error:
        yield _make_fault(error, path)
        return
    yield from (Fault(str(path), message) for message in faults(scores, aqa.SCORES_SCHEMA))


def fix(path: Path, name: str | None = None) -> tuple[list[str], list[str]]:
    """Return the lines of a fixed TREC run, and the list of changes with their places.

    Raises `UserError` for other formats, and `FormatError` for a row that cannot be fixed automatically.
    """
    name = name or detect(path)
    if name not in trec.REFERENCES:
        raise UserError(f"{path}: only {' and '.join(trec.REFERENCES)} can be fixed, this is {name}")
    lines: list[str] = []
    all_changes: list[str] = []
    for location, row in _check_records(path, get_format(name)):
        row_fixed, row_changes = trec.fix(row, trec.REFERENCES[name])
        lines.append(dumps(row_fixed))
        all_changes.extend(f"{location}: {change}" for change in row_changes)
    return lines, all_changes


__all__ = [
    "FORMATS",
    "Fault",
    "Format",
    "Notes",
    "detect",
    "fix",
    "get_format",
    "get_writable",
    "labels_of",
    "merge_warnings",
    "read",
    "read_for_ratings",
    "read_labels",
    "schema_of",
    "validate",
    "write",
]  # fmt: skip
