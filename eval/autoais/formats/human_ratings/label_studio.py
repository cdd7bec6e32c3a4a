"""Label Studio: ratings as its JSON (a list of tasks with annotations), the labelling configuration, and back.

Shapes: labelstud.io/guide/task_format and labelstud.io/guide/export. Written annotations name no user
(`completed_by`), since an import with an unknown one fails; the annotator is in the `meta` of each result.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.files import record_key
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import STRING, faults, list_of, record
from autoais.formats.base import Notes
from autoais.formats.human_ratings.ratings import FLAG, LIKERT, VALUES, Rating, from_row, to_row
from autoais.formats.human_ratings.texts import answer_of, sources_of, text_of

_SKIP_REASON = "skipped"  # what Label Studio's Skip gives as the reason of a flag
_ITEM_FIELDS = ("item", "answer", "sentence", "citation", "system")
_META = ("annotator", "phase", "seconds", "at", "evidence", "reason", "revised", "audited", "source_seen")
_SCHEMA = record(
    {
        "data": {"type": "object"},
        "annotations": list_of(
            record({"result": list_of(record({}, {"from_name": STRING, "type": STRING, "value": {"type": "object"}}))})
        ),
    }
)


def is_task(row: Mapping[str, Any]) -> bool:
    """Whether a record is a task of Label Studio."""
    return "data" in row and "annotations" in row


def read(row: Mapping[str, Any], location: str) -> Iterator[Rating]:
    """Yield the ratings of a task: single choices and stars, by the name of their control (`from_name`).

    `data` may name `item`, `answer`, `sentence`, `citation` and `system`; else the task's number is the item. A skipped
    task is a flag, whatever its form holds. The time of an annotation is shared evenly by its questions, unless the
    file has theirs.
    """
    for fault in faults(row, _SCHEMA):
        raise FormatError(f"{location}: {fault}")
    item = {name: row["data"][name] for name in _ITEM_FIELDS if row["data"].get(name) is not None}
    item.setdefault("item", str(row.get("id", record_key(location))))
    for annotation in row["annotations"]:
        results = [(result, value) for result in annotation["result"] if (value := _value(result)) is not None]
        reasons = [
            text for result in annotation["result"] if result.get("type") == "textarea" for text in _texts(result)
        ]
        common = {"annotator": _annotator(annotation), "at": annotation.get("created_at"), "reason": "\n".join(reasons)}
        seconds = annotation.get("lead_time")
        if isinstance(seconds, int | float):
            common["seconds"] = round(seconds / max(len(results), 1), 3)
        if annotation.get("was_cancelled") and not any(result.get("from_name") == FLAG for result, _ in results):
            results = [({"from_name": FLAG}, _SKIP_REASON)]
        for result, value in results:
            meta = result.get("meta") if isinstance(result.get("meta"), dict) else {}
            fields = {name: meta[name] for name in _META if name in (meta or {})}
            question = str(result.get("from_name", ""))
            yield from_row(
                item | common | fields | {"question": question, "value": _match_case(question, value)}, location
            )


def _value(result: Mapping[str, Any]) -> str | None:
    """The choice or the number of stars of a result; None for a control of another kind."""
    value = result.get("value") or {}
    choices = value.get("choices")
    if isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], str):
        return choices[0]
    stars = value.get("rating")
    return str(stars) if isinstance(stars, int) and not isinstance(stars, bool) else None


def _match_case(question: str, value: str) -> str:
    """Return the value in the spelling of the question, such as yes for Yes."""
    return value.lower() if value.lower() in VALUES.get(question, ()) else value


def _texts(result: Mapping[str, Any]) -> list[str]:
    texts = (result.get("value") or {}).get("text") or []
    return [text for text in ([texts] if isinstance(texts, str) else texts) if isinstance(text, str)]


def _annotator(annotation: Mapping[str, Any]) -> str:
    user = annotation.get("completed_by")
    if isinstance(user, dict):
        return str(user.get("email") or f"user {user.get('id')}")
    return "unknown" if user is None else f"user {user}"


def write(ratings: Iterable[Rating], answers: Mapping[str, CitedAnswer], notes: Notes) -> Iterator[str]:
    """Yield the lines of a JSON file with a task per item and an annotation per annotator; `read` restores it.

    `notes` counts ratings of training and gold items, which are left out: their texts are not among the answers.
    """
    items: dict[str, list[Rating]] = {}
    for rating in ratings:
        if rating.phase in ("training", "gold"):
            notes["ratings of training and gold items, left out"] += 1
        else:
            items.setdefault(rating.item, []).append(rating)
    yield "["
    for number, group in enumerate(items.values(), 1):
        yield dumps(_task(number, group, answers)) + ("," if number < len(items) else "")
    yield "]"


def _task(number: int, group: Sequence[Rating], answers: Mapping[str, CitedAnswer]) -> dict[str, Any]:
    first = to_row(group[0])
    people: dict[str, list[Rating]] = {}
    for rating in group:
        people.setdefault(rating.annotator, []).append(rating)
    return {
        "id": number,
        "data": {
            **{name: first[name] for name in _ITEM_FIELDS},
            "question": answer_of(group[0], answers).question,
            "text": text_of(group[0], answers),
            "sources": "\n\n".join(sources_of(group[0], answers)),
        },
        "annotations": [
            {
                "result": [_result(f"{number}-{index}-{n}", rating) for n, rating in enumerate(person_ratings)],
                "was_cancelled": any(rating.question == FLAG for rating in person_ratings),
                "lead_time": sum(rating.seconds or 0 for rating in person_ratings),
            }
            for index, person_ratings in enumerate(people.values())
        ],
        "predictions": [],
    }


def _result(key: str, rating: Rating) -> dict[str, Any]:
    row = to_row(rating)
    return {
        "id": key,
        "from_name": rating.question,
        "to_name": "text",
        "type": "choices",
        "value": {"choices": [rating.value]},
        "meta": {name: row[name] for name in _META if name in row},
    }


def configuration(ratings: Iterable[Rating]) -> Iterator[str]:
    """Yield the lines of the labelling configuration (XML) for the questions of the ratings.

    Without an answer to `interpretable`, the source and the other questions stay hidden; Label Studio sends them to the
    browser all the same.
    """
    values: dict[str, dict[str, None]] = {}
    for rating in ratings:
        values.setdefault(rating.question, {})[rating.value] = None
    for question, options_in_use in values.items():
        standard_values = VALUES.get(question, ())
        if question == "attributable":  # either yes and no, or 1 to 5
            standard_values = LIKERT if options_in_use.keys() & set(LIKERT) else ("yes", "no")
        values[question] = dict.fromkeys([*standard_values, *options_in_use])
    yield "<View>"
    yield '  <Text name="question" value="$question"/>'
    yield '  <Header value="What is rated"/>'
    yield '  <Text name="text" value="$text"/>'
    if "interpretable" in values:
        yield from _choices("interpretable", values.pop("interpretable"))
        yield '  <View visibleWhen="choice-selected" whenTagName="interpretable" whenChoiceValue="yes">'
    else:
        yield "  <View>"
    yield '  <Header value="Sources"/>'
    yield '  <Text name="sources" value="$sources"/>'
    flags = values.pop(FLAG, {})
    for question, options in values.items():
        yield from _choices(question, options)
    yield "  </View>"
    if flags:
        yield from _choices(FLAG, flags)
    yield '  <TextArea name="reason" toName="text" placeholder="Reason"/>'
    yield "</View>"


def _choices(question: str, values: Iterable[str]) -> Iterator[str]:
    yield f"  <Header value={_attribute(question)}/>"
    yield f'  <Choices name={_attribute(question)} toName="text" choice="single" showInLine="true">'
    yield from (f"    <Choice value={_attribute(value)}/>" for value in values)
    yield "  </Choices>"


def _attribute(text: str) -> str:
    """The text as a quoted attribute, without characters that XML cannot hold."""
    return quoteattr("".join(c if c.isprintable() else "\ufffd" for c in text))
