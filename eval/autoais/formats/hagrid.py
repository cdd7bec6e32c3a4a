"""HAGRID (Kamalloo et al. 2023): one question per line, with numbered quotes and labelled answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError, UserError
from autoais.base.io.files import lines
from autoais.base.io.jsonl import dumps, parse_object
from autoais.base.io.schema import IDENTIFIER, LABEL, STRING, faults, list_of, record
from autoais.base.labels import LabelledClaim, answer_attributable, answer_informative, clean_reference
from autoais.base.markers.sentences import MarkedSentence, parse_sentence, parse_sentences
from autoais.base.types import Attribution, Citation, CitedSentence, Passage, Unresolved
from autoais.formats.base import (
    Fault,
    Format,
    Notes,
    Row,
    dataset_name,
    get_valid,
    passage_ids,
    refuse_faults,
    unique_key,
)
from autoais.formats.human_ratings.ratings import SIMULATED_LABELS
from autoais.formats.markers import restore_answer, restore_sentence

_LABELS = ("informative", "attributable")


# In `extra`: the record and its line as they were, where the writer would write them otherwise.
_ROW, _LINE = "hagrid", "hagrid_line"
_NO_ID = "hagrid_no_id"  # in `extra`: the answer has no id in the file, as in HAGRID's release, but its place


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    line_of = _Lines()
    for location, row in rows:
        refuse_faults(_number_faults(location, row))
        answers = list(_answers(row))
        if not answers:
            notes.tell("without_answer", "questions without an answer, left out")
            continue
        line, usual = line_of(location), dumps(row)
        as_written = usual == dumps(_row(answers, Notes()))
        for number, (answer, item) in enumerate(zip(answers, row["answers"], strict=True)):
            source = {} if as_written else {_ROW: {**row, "answers": [item]}}
            style = {} if number or line in (None, usual) else {_LINE: line}
            yield replace(answer, extra={**answer.extra, **source, **style}) if source or style else answer


class _Lines:
    """The lines of a file, read beside its records, which come in the same order."""

    def __init__(self) -> None:
        self._path, self._number = "", 0
        self._left: Iterator[bytes] = iter(())

    def __call__(self, location: str) -> str | None:
        """Return the line of `file:line`; None if there is none, or it is no UTF-8."""
        path, _, number = location.rpartition(":")
        if path != self._path:
            self._path, self._number, self._left = path, 0, lines(Path(path))
        try:
            for line in self._left:
                self._number += 1
                if str(self._number) == number:
                    return line.decode("utf-8").removesuffix("\n")
        except (UserError, UnicodeDecodeError):
            return None
        return None


def _answers(row: dict[str, Any]) -> Iterator[CitedAnswer]:
    passages = passages_of(row)
    order = tuple(passages)
    key = row.get("query_id", row["query"])
    for number, answer in enumerate(row["answers"], 1):
        parsed = _parse_groups(answer, len(order))
        sentence_list = []
        for item, group in zip(answer.get("sentences") or [{}] * len(parsed), parsed, strict=True):
            informative, attributable = (_label(item.get(name)) for name in _LABELS)
            citations = tuple(Citation(order[n - 1]) for n in group.cites)
            output = item.get("text")
            sentence_list.append(
                CitedSentence(group.text, citations, output=output, informative=informative, attributable=attributable)
            )
        labels = {name: _label(answer.get(name)) for name in _LABELS}
        if labels["informative"] is None:
            labels["informative"] = answer_informative(sentence.informative for sentence in sentence_list)
        if labels["attributable"] is None:
            labels["attributable"] = answer_attributable(sentence.attributable for sentence in sentence_list)
        kind = {"answer_type": answer["answer_type"]} if "answer_type" in answer else {}
        dataset = {"dataset": row["dataset"]} if isinstance(row.get("dataset"), str) else {}
        no_id = {} if "id" in answer else {_NO_ID: True}
        simulation = {SIMULATED_LABELS: True} if answer.get(SIMULATED_LABELS) is True else {}
        yield CitedAnswer(
            id=str(answer["id"]) if "id" in answer else f"{key}/{number}",
            question=row["query"],
            sentences=tuple(sentence_list),
            passages=passages,
            ranking=order,
            unresolved_markers=tuple(Unresolved(*bad, n) for n, group in enumerate(parsed) for bad in group.unresolved),
            output=answer["answer"],
            informative=labels["informative"],
            attributable=labels["attributable"],
            extra={"query_id": key} | dataset | kind | simulation | no_id,
        )


def _parse_groups(answer: dict[str, Any], n: int) -> list[MarkedSentence]:
    """Return the sentences as the file groups them (a group may hold several, with one citation), else as parsed."""
    if answer.get("sentences"):
        return [parse_sentence(item["text"], n) for item in answer["sentences"]]
    return parse_sentences(answer["answer"], n)


def passages_of(row: Mapping[str, Any]) -> dict[str, Passage]:
    """Return the quotes by docid, in the order of their numbers; `QUERY_ID:IDX` if the docid is missing or taken."""
    quotes = row["quotes"]
    if all("idx" in quote for quote in quotes):
        quotes = sorted(quotes, key=lambda quote: quote["idx"])
    query = row.get("query_id", "")
    keys = passage_ids([quote.get("docid") for quote in quotes], lambda number: f"{query}:{number}")
    return {key: Passage(key, text=clean_reference(quote["text"])) for key, quote in zip(keys, quotes, strict=True)}


def _label(value: object) -> bool | None:
    return None if value is None else bool(value)


def _labels(row: dict[str, Any], location: str) -> Iterator[LabelledClaim]:
    """Yield one label per sentence with a human label of attributability; not all answers were chosen for it.

    The data set is the one that the record names, else it has the name of the file.
    """
    for answer in _answers(row):
        dataset = str(answer.extra.get("dataset") or dataset_name(location.rpartition(":")[0]))
        for number, sentence in enumerate(answer.sentences):
            if sentence.attributable is not None:
                evidence = tuple(answer.passages[key].evidence for key in sentence.cites)
                attribution = Attribution(sentence.text, evidence, answer.question)
                yield LabelledClaim(dataset, f"{answer.id}/{number}", attribution, sentence.attributable)


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    """Yield one line per run of answers with the same question and passages."""

    def question(answer: CitedAnswer) -> tuple[object, ...]:
        return _query_id(answer), answer.question, tuple(answer.passages), _dataset(answer)

    for _, group in groupby(answers, question):
        row = _restore_row(answer_list := list(group)) or _row(answer_list, notes)
        line = answer_list[0].extra.get(_LINE)
        yield line if isinstance(line, str) and _says(line, row) else dumps(row)


def _says(line: str, row: dict[str, Any]) -> bool:
    """Whether a line holds the record, in any style of JSON."""
    try:
        return "\n" not in line and parse_object(line.encode(), "") == row
    except (FormatError, UnicodeEncodeError):
        return False


def _restore_row(answers: Sequence[CitedAnswer]) -> dict[str, Any] | None:
    """Return the record as it was read, with the present labels of its answers; None if more has changed."""
    sources = [answer.extra.get(_ROW) for answer in answers]
    if not all(isinstance(source, dict) and not any(faults(source, HAGRID.schema)) for source in sources):
        return None
    source_rows: list[dict[str, Any]] = sources  # type: ignore[assignment]
    row = {**source_rows[0], "answers": [item for source in source_rows for item in source["answers"]]}
    before = list(_answers(row))
    if [_without_labels(answer) for answer in before] != [_without_labels(answer) for answer in answers]:
        return None
    items = [_relabel(*three) for three in zip(row["answers"], before, answers, strict=True)]
    return {name: items if name == "answers" else value for name, value in row.items()}


def _without_labels(answer: CitedAnswer) -> CitedAnswer:
    sentences = tuple(replace(sentence, informative=None, attributable=None) for sentence in answer.sentences)
    key = "" if answer.extra.get(_NO_ID) else answer.id
    return replace(answer, id=key, sentences=sentences, informative=None, attributable=None, extra=_dataset(answer))


def _relabel(answer_row: dict[str, Any], before: CitedAnswer, now: CitedAnswer) -> dict[str, Any]:
    """Set the labels that changed; a label that is missing and follows from the sentences stays missing."""
    changes = _find_changes(before, now)
    pairs = zip(before.sentences, now.sentences, strict=True)
    sentences = [
        item | _find_changes(*pair) for item, pair in zip(answer_row.get("sentences") or (), pairs, strict=False)
    ]
    result = answer_row | changes | ({"sentences": sentences} if sentences else {})
    if bool(now.extra.get(SIMULATED_LABELS)) != bool(before.extra.get(SIMULATED_LABELS)):
        result = {name: value for name, value in result.items() if name != SIMULATED_LABELS} | _simulation_field(now)
    return result


def _simulation_field(answer: CitedAnswer) -> dict[str, bool]:
    return {SIMULATED_LABELS: True} if answer.extra.get(SIMULATED_LABELS) else {}


def _find_changes(before: CitedAnswer | CitedSentence, now: CitedAnswer | CitedSentence) -> dict[str, int | None]:
    return {name: _number(getattr(now, name)) for name in _LABELS if getattr(before, name) != getattr(now, name)}


def _row(answers: Sequence[CitedAnswer], notes: Notes) -> dict[str, Any]:
    """The record of answers to one question about the same passages."""
    first = answers[0]
    numbers = {passage: n for n, passage in enumerate(first.passages, 1)}
    return {
        **_dataset(first),
        "query_id": _query_id(first),
        "query": first.question,
        "quotes": [{"idx": n, "docid": p, "text": first.passages[p].text} for p, n in numbers.items()],
        "answers": [_answer_row(answer, numbers, notes) for answer in answers],
    }


def _query_id(answer: CitedAnswer) -> str | int:
    key = answer.extra.get("query_id")
    return key if isinstance(key, str | int) else answer.id


def _dataset(answer: CitedAnswer) -> dict[str, str]:
    """The field with the name of the data set; HAGRID's own records, whose answers have no ids, have none."""
    name = answer.extra.get("dataset")
    return {"dataset": name} if isinstance(name, str) and not answer.extra.get(_NO_ID) else {}


def _answer_row(answer: CitedAnswer, numbers: dict[str, int], notes: Notes) -> dict[str, Any]:
    texts = [restore_sentence(sentence, numbers, notes) for sentence in answer.sentences]
    return {
        **({} if answer.extra.get(_NO_ID) else {"id": answer.id}),
        "answer": restore_answer(answer, Notes()),
        **({"answer_type": answer.extra["answer_type"]} if "answer_type" in answer.extra else {}),
        **_simulation_field(answer),
        "informative": _number(answer.informative),
        "attributable": _number(answer.attributable),
        "sentences": [
            {
                "index": index,
                "text": text,
                "informative": _number(sentence.informative),
                "attributable": _number(sentence.attributable),
            }
            for index, (text, sentence) in enumerate(zip(texts, answer.sentences, strict=True))
        ],
    }


def _number(label: bool | None) -> int | None:
    return None if label is None else int(label)


def _check(rows: Iterable[Row]) -> Iterator[Fault]:
    for location, row in rows:
        yield from _row_faults(location, row)


def _key(row: dict[str, Any]) -> str | None:
    return get_valid(row, "query_id" if "query_id" in row else "query")


def _number_faults(location: str, row: dict[str, Any]) -> Iterator[Fault]:
    """Yield a fault if the quotes are not numbered as the markers count them."""
    numbers = [quote.get("idx", n) for n, quote in enumerate(row["quotes"], 1)]
    if sorted(numbers) != list(range(1, len(numbers) + 1)):
        yield Fault(location, f"field 'quotes': idx should run from 1 to {len(numbers)}, found {numbers[:20]}")


def _row_faults(location: str, row: dict[str, Any]) -> Iterator[Fault]:
    yield from _number_faults(location, row)
    for number, (raw, answer) in enumerate(zip(row["answers"], _answers(row), strict=True)):
        for bad in answer.unresolved_markers:
            yield Fault(location, f"field 'answers[{number}]': marker {bad.marker} is {bad.reason}", warning=True)
        rollup = (
            answer_informative(sentence.informative for sentence in answer.sentences),
            answer_attributable(sentence.attributable for sentence in answer.sentences),
        )
        for name, label in zip(_LABELS, rollup, strict=True):
            if label is not None and raw.get(name) is not None and bool(raw[name]) != label:
                message = f"field 'answers[{number}].{name}' is {raw[name]}, its sentences give {int(label)}"
                yield Fault(location, message, warning=True)


HAGRID = Format(
    name="hagrid",
    description="HAGRID's jsonl: questions with numbered quotes, answers labelled as informative and attributable",
    schema=record(
        {
            "query": STRING,
            "quotes": list_of(record({"text": STRING}, {"idx": {"type": "integer"}, "docid": STRING})),
            "answers": list_of(
                record(
                    {"answer": STRING},
                    {
                        "id": IDENTIFIER,
                        "informative": LABEL,
                        "attributable": LABEL,
                        "sentences": {
                            "type": ["array", "null"],
                            "items": record({"text": STRING}, {"informative": LABEL, "attributable": LABEL}),
                        },
                    },
                )
            ),
        },
        {"query_id": IDENTIFIER},
    ),
    required_fields=("query", "quotes", "answers"),
    read=_read,
    write=_write,
    labels=_labels,
    check=_check,
    ids=unique_key(_key, "field 'query_id': {key} occurs twice (first at {first})"),
    supports=frozenset(
        {"ids", "sentences", "boundaries of sentences", "citations beyond the first", "texts of passages",
         "passages not cited", "labels of answers", "labels of sentences", "informativeness", "markers as written"}
    ),
    by_place=lambda row: not all("id" in answer for answer in row["answers"]),
)  # fmt: skip
