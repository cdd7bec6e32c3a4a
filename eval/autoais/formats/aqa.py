"""The files of Attributed QA (Bohnet et al. 2022): predictions, ratings, AIS output and scores."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.files import lines, records
from autoais.base.io.schema import STRING, record
from autoais.base.labels import LabelledClaim
from autoais.base.text import wikipedia
from autoais.base.types import Attribution, Citation, CitedSentence, Passage
from autoais.formats.base import CheckIds, Fault, Format, Notes, Row, get_valid

PREDICTIONS_COLUMNS = ("question", "answer", "attribution")
AIS_COLUMNS = ("question", "answer", "passage", "autoais")
RATINGS_COLUMNS = (
    "system_name", "question", "answer", "attribution", "passage", "human_rating", "auto_ais", "nli_score",
)  # fmt: skip
SCORES = ("AutoAIS", "SQuAD (em)", "SQuAD (f1)")
_YES_NO = {"Y": True, "N": False}


def csv_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    r"""Yield CSV rows without the final `\n`; they end in `\r\n`, as in Python's csv module and the released script."""
    for row in rows:
        buffer = io.StringIO(newline="")
        csv.writer(buffer).writerow([cell.encode("utf-8", "replace").decode("utf-8") for cell in row])
        yield buffer.getvalue().removesuffix("\n")


def csv_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the header and the rows of a CSV; nothing if there are no rows."""
    for number, row in enumerate(rows):
        yield from csv_lines([row] if number else [columns, row])


# --- predictions ---------------------------------------------------------------------------------------------------


def _answer(
    question: str, answer: str, attribution: str, passage: Passage, attributable: bool | None = None
) -> CitedAnswer:
    """Return the answer as one sentence that cites the passage under the id `attribution`."""
    cites = (attribution,) if attribution.strip() else ()
    sentence = CitedSentence(answer, tuple(map(Citation, cites)), attributable=attributable)
    return CitedAnswer(
        id=question,
        question=question,
        sentences=(sentence,) if answer.strip() else (),
        passages={key: replace(passage, id=key) for key in cites},
        ranking=cites,
        short_answer=answer,
        attributable=attributable,
    )


def _predictions_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    """Yield the last row of each question, at the position of its first, as the released script's dict does."""
    last: dict[str, dict[str, Any]] = {}
    for _, row in rows:
        if row["question"] in last:
            notes.tell("repeated_questions", "rows with a repeated question, only the last one kept")
        last[row["question"]] = row
    for question, row in last.items():
        yield _answer(question, row["answer"], row["attribution"], Passage(""))


def _predictions_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    return csv_table(PREDICTIONS_COLUMNS, _predictions_rows(answers, notes))


def _predictions_rows(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[tuple[str, ...]]:
    questions = set()
    for answer in _drop_without_question(answers, notes):
        if answer.question in questions:
            notes["answers to a repeated question; readers keep the last one"] += 1
        questions.add(answer.question)
        yield answer.question, _short(answer), _first_citation(answer)


def _drop_without_question(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[CitedAnswer]:
    """Yield the answers with a question text, the only id in these files; count the others."""
    for answer in answers:
        if answer.question.strip():
            yield answer
        else:
            notes["answers without the text of their question, left out"] += 1


def _short(answer: CitedAnswer) -> str:
    return answer.plain if answer.short_answer is None else answer.short_answer


def _first_citation(answer: CitedAnswer) -> str:
    return next((key for sentence in answer.sentences for key in sentence.cites), "")


def _predictions_check(rows: Iterable[Row]) -> Iterator[Fault]:
    locations: dict[str, str] = {}
    for location, row in rows:
        if row["question"] in locations:
            first = locations[row["question"]]
            yield Fault(location, f"the question of {first} is repeated; readers keep the last row", warning=True)
        locations.setdefault(row["question"], location)
        if not row["attribution"].strip():
            yield Fault(location, "field 'attribution' is empty: not attributable", warning=True)


PREDICTIONS = Format(
    name="aqa-predictions",
    description="Attributed QA's predictions (csv): question, answer, attribution (a passage id)",
    schema=record({"question": STRING | {"pattern": r"\S"}, "answer": STRING, "attribution": STRING}),
    required_fields=PREDICTIONS_COLUMNS,
    read=_predictions_read,
    write=_predictions_write,
    check=_predictions_check,
    supports=frozenset({"short answers"}),
    csv=True,
)


def last_question(path: Path) -> str:
    """Return the question of the last row of a predictions file; the released script writes it in every row."""
    question = ""
    for _, row in records(path, PREDICTIONS_COLUMNS):
        if isinstance(row, FormatError):
            raise row
        question = row["question"]
    return question


# --- AIS output ----------------------------------------------------------------------------------------------------


def ais_lines(
    pairs: Iterable[tuple[CitedAnswer, bool | None]], *, compat: bool = False, last: str = ""
) -> Iterator[str]:
    """Yield the AIS output CSV of pairs (answer, whether it is attributable); None (not judged, undecided) is `N`.

    `compat` (google-2023) gives the bytes of the released script: each row has the `last` question of the predictions
    file (`last_question`), and passages have the script's format (`wikipedia.shown`). Questions without an answer get
    no row.
    """
    yield from csv_lines([AIS_COLUMNS])
    for answer, attributable in pairs:
        passage = answer.passages.get(_first_citation(answer) or next(iter(answer.ranking), ""))
        passage_text = "" if passage is None else wikipedia.format_display(passage, compat=compat)
        short = _short(answer)
        if compat:  # the script reads its input in text mode
            short = short.replace("\r\n", "\n").replace("\r", "\n")
        yield from csv_lines([(last if compat else answer.question, short, passage_text, "Y" if attributable else "N")])


def _ais_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    def read_labels() -> Iterator[tuple[CitedAnswer, bool | None]]:
        for answer in answers:
            if answer.attributable is None:
                notes["answers without a human label, written as N"] += 1
            yield answer, answer.attributable

    return ais_lines(read_labels())


def _ais_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for location, row in rows:
        notes.tell("judged_verdicts", "verdicts in the file, dropped because they are a judge's")
        passage = _parse_passage(row["passage"])
        answer = _answer(row["question"], row["answer"], "1" if passage.text else "", passage)
        yield _with_id(answer, f"line {location.rpartition(':')[2]}", {})


AIS = Format(
    name="aqa-ais",
    description="Attributed QA's AIS output (csv): question, answer, passage as displayed, autoais Y or N",
    schema=record(
        {"question": STRING, "answer": STRING, "passage": STRING, "autoais": {"type": "string", "enum": ["Y", "N"]}}
    ),
    required_fields=AIS_COLUMNS,
    read=_ais_read,
    write=_ais_write,
    supports=frozenset({"short answers", "texts of passages", "titles of passages", "labels of answers"}),
    csv=True,
)

# --- ratings -------------------------------------------------------------------------------------------------------


def _parse_passage(passage: str) -> Passage:
    return wikipedia.parse_display(passage) or Passage("", text=passage)


def _with_id(answer: CitedAnswer, key: str, extra: Mapping[str, Any]) -> CitedAnswer:
    return replace(answer, id=key, extra=extra)


def _ratings_read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    for _, row in rows:
        attributable = _YES_NO.get(row["human_rating"])
        passage = _parse_passage(row["passage"])
        answer = _answer(row["question"], row["answer"], row["attribution"], passage, attributable=attributable)
        scores = {name: row[name] for name in ("auto_ais", "nli_score") if row.get(name)}
        yield _with_id(answer, f"{row['system_name']}: {row['question']}", {"system": row["system_name"]} | scores)


def _ratings_labels(row: dict[str, Any], location: str) -> Iterator[LabelledClaim]:
    attributable = _YES_NO.get(row["human_rating"])
    if attributable is not None:
        attribution = Attribution(row["answer"], (_parse_passage(row["passage"]).evidence,), row["question"])
        key = f"{row['system_name']}: {row['question']}"
        yield LabelledClaim("AttributedQA", key, attribution, attributable, row["system_name"])


def _ratings_write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    return csv_table(RATINGS_COLUMNS, _ratings_rows(answers, notes))


def _ratings_rows(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[tuple[str, ...]]:
    keys = set()
    for answer in _drop_without_question(answers, notes):
        system = str(answer.extra.get("system") or "unknown")
        if (system, answer.question) in keys:
            notes["further answers of a system to the same question, left out"] += 1
            continue
        keys.add((system, answer.question))
        attribution = _first_citation(answer)
        passage = answer.passages.get(attribution)
        rating = "" if answer.attributable is None else "Y" if answer.attributable else "N"
        row = (system, answer.question, _short(answer), attribution)
        passage_text = "" if passage is None else wikipedia.format_display(passage)
        scores = (str(answer.extra.get("auto_ais", "")), str(answer.extra.get("nli_score", "")))
        yield (*row, passage_text, rating, *scores)


def _ratings_ids() -> CheckIds:
    locations: dict[tuple[str, str], str] = {}

    def check(location: str, row: dict[str, Any]) -> Iterator[Fault]:
        system, question = get_valid(row, "system_name"), get_valid(row, "question")
        if system is not None and question is not None:
            if (system, question) in locations:
                yield Fault(location, f"system {system!r} answers the question of {locations[system, question]} again")
            locations.setdefault((system, question), location)

    return check


RATINGS = Format(
    name="aqa-ratings",
    description="Attributed QA's released ratings (csv): eight columns, human_rating Y, N or empty",
    schema=record(
        {
            "system_name": STRING | {"pattern": r"\S"},
            "question": STRING | {"pattern": r"\S"},
            "answer": STRING,
            "attribution": STRING,
            "passage": STRING,
            "human_rating": {"type": "string", "enum": ["Y", "N", ""]},
            "auto_ais": {"type": "string", "enum": ["Y", "N", ""]},
            "nli_score": {"type": "string", "pattern": r"^([0-9.eE+-]+)?$"},
        }
    ),
    required_fields=RATINGS_COLUMNS,
    read=_ratings_read,
    write=_ratings_write,
    labels=_ratings_labels,
    ids=_ratings_ids,
    supports=frozenset({"systems", "short answers", "texts of passages", "titles of passages", "labels of answers"}),
    csv=True,
)

# --- scores --------------------------------------------------------------------------------------------------------


def scores_lines(autoais: float, em: float, f1: float) -> list[str]:
    """Return the three lines of the scores file; AutoAIS is given as a fraction, EM and F1 in percent."""
    return [f"{name}: {value}" for name, value in zip(SCORES, (autoais, em, f1), strict=True)]


def read_scores(path: Path) -> dict[str, float]:
    """Return the values of a scores file by name; raises `FormatError` for a line that is not `name: number`."""
    scores = {}
    for number, line in enumerate(lines(path), 1):
        name, _, value = line.decode("utf-8", "replace").rstrip().rpartition(": ")
        try:
            scores[name] = float(value)
        except ValueError:
            raise FormatError(f"{path}:{number}: expected `name: number`, found {name[:60]!r}") from None
        if not scores[name] < float("inf"):
            raise FormatError(f"{path}:{number}: {name!r} is not a number: {value}")
    return scores


_PERCENT = {"type": "number", "minimum": 0, "maximum": 100}
SCORES_SCHEMA = record(
    {"AutoAIS": {"type": "number", "minimum": 0, "maximum": 1}} | dict.fromkeys(SCORES[1:], _PERCENT)
)
