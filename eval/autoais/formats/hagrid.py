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
from autoais.base.labels import Labelled, answer_attributable, answer_informative, clean_reference
from autoais.base.markers.sentences import Marked, sentence, sentences
from autoais.base.types import Attribution, Citation, CitedSentence, Passage, Unresolved
from autoais.formats.base import Fault, Format, Notes, Row, passage_ids, set_name, sound, unique_key
from autoais.formats.human_ratings.ratings import SIMULATED_LABELS
from autoais.formats.marked import written, written_answer

_LABELS = ("informative", "attributable")


# In `extra`: the record and its line as they were, where the writer would write them otherwise.
_KEPT, _LINE = "hagrid", "hagrid_line"
_NO_ID = "hagrid_no_id"  # in `extra`: the answer has no id in the file, as in HAGRID's release, but its place


def _read(rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
    line_of = _Lines()
    for where, row in rows:
        answers = list(_answers(row))
        if not answers:
            notes.tell("without_answer", "questions without an answer, left out")
            continue
        line, usual = line_of(where), dumps(row)
        as_written = usual == dumps(_row(answers, Notes()))
        for number, (answer, given) in enumerate(zip(answers, row["answers"], strict=True)):
            kept = {} if as_written else {_KEPT: {**row, "answers": [given]}}
            style = {} if number or line in (None, usual) else {_LINE: line}
            yield replace(answer, extra={**answer.extra, **kept, **style}) if kept or style else answer


class _Lines:
    """The lines of a file, read beside its records, which come in the same order."""

    def __init__(self) -> None:
        self._path, self._number = "", 0
        self._left: Iterator[bytes] = iter(())

    def __call__(self, where: str) -> str | None:
        """Return the line of `file:line`; None if there is none, or it is no UTF-8."""
        path, _, number = where.rpartition(":")
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
        marked = _marked(answer, len(order))
        cited = []
        for item, one in zip(answer.get("sentences") or [{}] * len(marked), marked, strict=True):
            informative, attributable = (_label(item.get(name)) for name in _LABELS)
            citations = tuple(Citation(order[n - 1]) for n in one.cites)
            output = item.get("text")
            cited.append(
                CitedSentence(one.text, citations, output=output, informative=informative, attributable=attributable)
            )
        whole = {name: _label(answer.get(name)) for name in _LABELS}
        if whole["informative"] is None:
            whole["informative"] = answer_informative(one.informative for one in cited)
        if whole["attributable"] is None:
            whole["attributable"] = answer_attributable(one.attributable for one in cited)
        kind = {"answer_type": answer["answer_type"]} if "answer_type" in answer else {}
        named = {"dataset": row["dataset"]} if isinstance(row.get("dataset"), str) else {}
        unnamed = {} if "id" in answer else {_NO_ID: True}
        simulated = {SIMULATED_LABELS: True} if answer.get(SIMULATED_LABELS) is True else {}
        yield CitedAnswer(
            id=str(answer["id"]) if "id" in answer else f"{key}/{number}",
            question=row["query"],
            sentences=tuple(cited),
            passages=passages,
            ranking=order,
            unresolved_markers=tuple(Unresolved(*bad, n) for n, one in enumerate(marked) for bad in one.unresolved),
            output=answer["answer"],
            informative=whole["informative"],
            attributable=whole["attributable"],
            extra={"query_id": key} | named | kind | simulated | unnamed,
        )


def _marked(answer: dict[str, Any], n: int) -> list[Marked]:
    """Return the sentences as the file groups them (a group may hold several, with one citation), else as parsed."""
    if answer.get("sentences"):
        return [sentence(item["text"], n) for item in answer["sentences"]]
    return sentences(answer["answer"], n)


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


def _labels(row: dict[str, Any], where: str) -> Iterator[Labelled]:
    """Yield one label per sentence with a human label of attributability; not all answers were chosen for it.

    The data set is the one that the record names, else it has the name of the file.
    """
    for answer in _answers(row):
        dataset = str(answer.extra.get("dataset") or set_name(where.rpartition(":")[0]))
        for number, one in enumerate(answer.sentences):
            if one.attributable is not None:
                evidence = tuple(answer.passages[cited].evidence for cited in one.cites)
                attribution = Attribution(one.text, evidence, answer.question)
                yield Labelled(dataset, f"{answer.id}/{number}", attribution, one.attributable)


def _write(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
    """Yield one line per run of answers with the same question and passages."""

    def question(answer: CitedAnswer) -> tuple[object, ...]:
        return _query_id(answer), answer.question, tuple(answer.passages), _dataset(answer)

    for _, group in groupby(answers, question):
        row = _as_given(listed := list(group)) or _row(listed, notes)
        line = listed[0].extra.get(_LINE)
        yield line if isinstance(line, str) and _says(line, row) else dumps(row)


def _says(line: str, row: dict[str, Any]) -> bool:
    """Whether a line is the record, in whatever style of JSON."""
    try:
        return "\n" not in line and parse_object(line.encode(), "") == row
    except (FormatError, UnicodeEncodeError):
        return False


def _as_given(answers: Sequence[CitedAnswer]) -> dict[str, Any] | None:
    """The record as it was read, with the labels that the answers have now; None if more than labels has changed."""
    kept = [answer.extra.get(_KEPT) for answer in answers]
    if not all(isinstance(one, dict) and not any(faults(one, HAGRID.schema)) for one in kept):
        return None
    given: list[dict[str, Any]] = kept  # type: ignore[assignment]
    row = {**given[0], "answers": [item for one in given for item in one["answers"]]}
    before = list(_answers(row))
    if [_without_labels(one) for one in before] != [_without_labels(one) for one in answers]:
        return None
    relabelled = [_relabelled(*three) for three in zip(row["answers"], before, answers, strict=True)]
    return {name: relabelled if name == "answers" else value for name, value in row.items()}


def _without_labels(answer: CitedAnswer) -> CitedAnswer:
    sentences = tuple(replace(one, informative=None, attributable=None) for one in answer.sentences)
    key = "" if answer.extra.get(_NO_ID) else answer.id
    return replace(answer, id=key, sentences=sentences, informative=None, attributable=None, extra=_dataset(answer))


def _relabelled(given: dict[str, Any], before: CitedAnswer, now: CitedAnswer) -> dict[str, Any]:
    """Set the labels that changed; a label that is missing and follows from the sentences stays missing."""
    whole = _changed(before, now)
    pairs = zip(before.sentences, now.sentences, strict=True)
    sentences = [item | _changed(*pair) for item, pair in zip(given.get("sentences") or (), pairs, strict=False)]
    told = given | whole | ({"sentences": sentences} if sentences else {})
    if bool(now.extra.get(SIMULATED_LABELS)) != bool(before.extra.get(SIMULATED_LABELS)):
        told = {name: value for name, value in told.items() if name != SIMULATED_LABELS} | _simulated(now)
    return told


def _simulated(answer: CitedAnswer) -> dict[str, bool]:
    return {SIMULATED_LABELS: True} if answer.extra.get(SIMULATED_LABELS) else {}


def _changed(before: CitedAnswer | CitedSentence, now: CitedAnswer | CitedSentence) -> dict[str, int | None]:
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
    texts = [written(one, numbers, notes) for one in answer.sentences]
    return {
        **({} if answer.extra.get(_NO_ID) else {"id": answer.id}),
        "answer": written_answer(answer, Notes()),
        **({"answer_type": answer.extra["answer_type"]} if "answer_type" in answer.extra else {}),
        **_simulated(answer),
        "informative": _number(answer.informative),
        "attributable": _number(answer.attributable),
        "sentences": [
            {
                "index": index,
                "text": text,
                "informative": _number(one.informative),
                "attributable": _number(one.attributable),
            }
            for index, (text, one) in enumerate(zip(texts, answer.sentences, strict=True))
        ],
    }


def _number(label: bool | None) -> int | None:
    return None if label is None else int(label)


def _check(rows: Iterable[Row]) -> Iterator[Fault]:
    for where, row in rows:
        yield from _row_faults(where, row)


def _key(row: dict[str, Any]) -> str | None:
    return sound(row, "query_id" if "query_id" in row else "query")


def _row_faults(where: str, row: dict[str, Any]) -> Iterator[Fault]:
    numbers = [quote.get("idx", n) for n, quote in enumerate(row["quotes"], 1)]
    if sorted(numbers) != list(range(1, len(numbers) + 1)):
        yield Fault(where, f"field 'quotes': idx should run from 1 to {len(numbers)}, found {numbers[:20]}")
    for number, (raw, answer) in enumerate(zip(row["answers"], _answers(row), strict=True)):
        for bad in answer.unresolved_markers:
            yield Fault(where, f"field 'answers[{number}]': marker {bad.marker} is {bad.reason}", warning=True)
        rolled = (
            answer_informative(one.informative for one in answer.sentences),
            answer_attributable(one.attributable for one in answer.sentences),
        )
        for name, up in zip(_LABELS, rolled, strict=True):
            if up is not None and raw.get(name) is not None and bool(raw[name]) != up:
                message = f"field 'answers[{number}].{name}' is {raw[name]}, its sentences give {int(up)}"
                yield Fault(where, message, warning=True)


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
