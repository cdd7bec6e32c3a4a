"""Label Studio's formats: tasks with annotations (`tasks.json`), and the labeling interface (`config.xml`).

Documented at labelstud.io/guide/task_format and labelstud.io/tags; offsets of `Text` count code points, as ours do.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from autoais.base.io.jsonl import dumps
from autoais.formats.human_ratings.ratings import Rating
from rag.annotate.schemes import Question
from rag.annotate.unit_export import EVIDENCE, PASSAGE, REASON, RatedItem, UnitExport, is_flag
from rag.answer.export.escaping import visible

_HEADINGS = {"question": "Question", "claim": "What is judged", "passage": "Source"}


def write_label_studio(export: UnitExport) -> dict[str, bytes]:
    """Return `config.xml`, the labeling interface of a project, and `tasks.json` to import into it."""
    tasks = [_task(export, entry) for entry in export.items]
    return {"config.xml": _config(export), "tasks.json": (dumps(tasks, indent=2) + "\n").encode()}


def _target(export: UnitExport) -> str:
    """The text that choices are about; each control of Label Studio has one."""
    return next(name for name in ("claim", "passage", "question") if name in export.fields)


def _config(export: UnitExport) -> bytes:
    view = ET.Element("View")
    ET.SubElement(view, "Style").text = ".htx-text { white-space: pre-wrap; }"
    for name in export.fields:
        ET.SubElement(view, "Header", value=_HEADINGS[name])
        ET.SubElement(view, "Text", name=name, value=f"${name}")
    for question in export.questions:
        part = ET.SubElement(view, "View")
        for name, values in question.asked_if.items():  # all have to hold: a view in a view
            part.set("visibleWhen", "choice-selected")
            part.set("whenTagName", name)
            part.set("whenChoiceValue", ",".join(values))
            part = ET.SubElement(part, "View")
        _add_question(part, export, question)
    ET.indent(view)
    return (ET.tostring(view, "unicode") + "\n").encode()


def _add_question(part: ET.Element, export: UnitExport, question: Question) -> None:
    kind = export.items[0].item.kind
    ET.SubElement(part, "Header", value=visible(question.text_for(kind)))
    if question.help:
        ET.SubElement(part, "Header", value=visible(question.help), size="6")
    choices = ET.SubElement(
        part, "Choices", name=question.name, toName=_target(export), choice="single-radio", required="true"
    )
    for option in question.options:
        ET.SubElement(choices, "Choice", value=option.value, hint=visible(option.label_for(kind)), hotkey=option.key)
    if export.asks_evidence(question):
        labels = ET.SubElement(part, "Labels", name=f"{question.name}-{EVIDENCE}", toName=PASSAGE)
        ET.SubElement(labels, "Label", value=EVIDENCE)
    if export.has_reasons:
        ET.SubElement(part, "TextArea", name=f"{question.name}-{REASON}", toName=_target(export), placeholder="Reason")


def _task(export: UnitExport, entry: RatedItem) -> dict[str, Any]:
    people = sorted(entry.people)
    annotations = [_annotation(export, entry, entry.people[person]) for person in people]
    if entry.decisions:
        annotations.append(_annotation(export, entry, entry.decisions) | {"ground_truth": True})
        people.append(entry.decisions[-1].annotator)
    texts = entry.texts()
    data: dict[str, Any] = {"id": entry.item.id} | {name: texts[name] for name in export.fields}
    # Annotations name their makers by accounts of Label Studio, which nobody has there yet.
    return {"data": data | {"annotators": people}, "annotations": annotations}


def _annotation(export: UnitExport, entry: RatedItem, ratings: Sequence[Rating]) -> dict[str, Any]:
    seconds = [rating.seconds for rating in ratings if rating.seconds is not None]
    skipped = is_flag(ratings)
    annotation: dict[str, Any] = {
        "result": [] if skipped else list(_results(export, entry, ratings)),
        "was_cancelled": skipped,
        "ground_truth": False,
    }
    return annotation | ({"lead_time": round(sum(seconds), 3)} if seconds else {})


def _results(export: UnitExport, entry: RatedItem, ratings: Sequence[Rating]) -> Iterator[dict[str, Any]]:
    passage = entry.texts()[PASSAGE]
    questions = {question.name: question for question in export.questions}
    order = list(questions)
    scheme_ratings = [rating for rating in ratings if rating.question in questions]
    for rating in sorted(scheme_ratings, key=lambda rating: order.index(rating.question)):
        target = {"to_name": _target(export)}
        yield _result(rating.question, target | {"type": "choices", "value": {"choices": [rating.value]}})
        if export.asks_evidence(questions[rating.question]):
            for number, (start, end) in enumerate(entry.spans(rating)):
                value = {"start": start, "end": end, "text": passage[start:end], "labels": [EVIDENCE]}
                fields = {"to_name": PASSAGE, "type": "labels", "value": value}
                yield _result(f"{rating.question}-{EVIDENCE}", fields, number)
        if export.has_reasons and rating.reason:
            fields = target | {"type": "textarea", "value": {"text": [rating.reason]}}
            yield _result(f"{rating.question}-{REASON}", fields)


def _result(name: str, fields: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return {"id": f"{name}-{number}", "from_name": name, **fields}
