"""Potato's formats: the configuration of a task, its items, and the state of each user with their annotations.

Documented at potatoannotator.readthedocs.io (data format, configuration reference, export formats). JSON is YAML.
Its page counts the offsets of spans as JavaScript does, in UTF-16 units, and without line breaks, which are `<br>`.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from autoais.base.io.jsonl import dumps
from autoais.formats.human_ratings.ratings import Rating
from rag.annotate.schemes import Question
from rag.annotate.unit_export import EVIDENCE, PASSAGE, REASON, RatedItem, UnitExport, is_flag
from rag.answer.export.escaping import visible

_OUTPUT = "annotation_output"
_LABELS = {"question": "Question", "claim": "What is judged", "passage": "Source"}
FLAGGED = "flagged"


def write_potato(export: UnitExport) -> dict[str, bytes]:
    """Return `config.yaml`, `items.jsonl`, and a `user_state.json` for each person who answered."""
    config = dumps(_config(export), indent=2) + "\n"
    files = {
        "config.yaml": config.encode(),
        "items.jsonl": "".join(_line(export, entry) for entry in export.items).encode(),
    }
    people = sorted({person for entry in export.items for person in entry.people})
    for person in people:
        state = _user_state(export, person)
        files[f"{_OUTPUT}/{_folder(person)}/user_state.json"] = (dumps(state, indent=2) + "\n").encode()
    return files


def _folder(person: str) -> str:
    """A person's name as that of a folder, which leads nowhere else."""
    return quote(person, safe="").replace(".", "%2E")


def _line(export: UnitExport, entry: RatedItem) -> str:
    texts = entry.texts()
    return dumps({"id": entry.item.id} | {name: texts[name] for name in export.fields}) + "\n"


def _config(export: UnitExport) -> dict[str, Any]:
    schemes = [scheme for question in export.questions for scheme in _schemes(export, question)]
    fields = [
        {"key": name, "type": "text", "label": _LABELS[name], "span_target": name == PASSAGE} for name in export.fields
    ]
    return {
        "annotation_task_name": visible(export.title),
        "task_dir": ".",
        "output_annotation_dir": f"{_OUTPUT}/",
        "data_files": ["items.jsonl"],
        "item_properties": {"id_key": "id", "text_key": export.fields[-1]},
        "user_config": {"allow_all_users": True, "users": []},
        "require_password": False,
        "instance_display": {"layout": {"direction": "vertical"}, "fields": fields},
        "annotation_schemes": [*schemes, _flag_scheme()],
    }


def _flag_scheme() -> dict[str, Any]:
    return {
        "annotation_type": "multiselect",
        "name": FLAGGED,
        "description": "Can this item not be judged?",
        "labels": [{"name": FLAGGED, "tooltip": "It cannot be judged."}],
    }


def _schemes(export: UnitExport, question: Question) -> list[dict[str, Any]]:
    kind = export.items[0].item.kind
    conditions = [
        {"schema": name, "operator": "equals", "value": list(values)} for name, values in question.asked_if.items()
    ]
    logic = {"display_logic": {"show_when": conditions, "logic": "all"}} if conditions else {}
    labels = [
        {"name": option.value, "tooltip": visible(option.label_for(kind)), "key_value": option.key}
        for option in question.options
    ]
    text = question.text_for(kind) + (f" {question.help}" if question.help else "")
    schemes: list[dict[str, Any]] = [
        {"annotation_type": "radio", "name": question.name, "description": visible(text), "labels": labels} | logic
    ]
    if export.asks_evidence(question):
        span = {"annotation_type": "span", "name": f"{question.name}-{EVIDENCE}", "labels": [EVIDENCE]}
        schemes.append(span | {"description": "Mark the words in the source."} | logic)
    if export.has_reasons:
        reason = {"annotation_type": "text", "name": f"{question.name}-{REASON}", "description": "Reason"}
        schemes.append(reason | logic)
    return schemes


def _user_state(export: UnitExport, person: str) -> dict[str, Any]:
    labels: dict[str, list[Any]] = {}
    spans: dict[str, list[Any]] = {}
    for entry in export.items:
        if ratings := entry.people.get(person):
            labels[entry.item.id] = _labels(export, ratings)
            if instance_spans := _spans(export, entry, ratings):
                spans[entry.item.id] = instance_spans
    return {
        "user_id": person,
        "instance_id_ordering": list(labels),
        "current_instance_index": 0,
        "current_phase_and_page": ["annotation", "annotation"],
        "completed_phase_and_pages": [],
        "max_assignments": len(labels),
        "instance_id_to_label_to_value": labels,
        "instance_id_to_span_to_value": spans,
        "phase_to_page_to_label_to_value": {},
        "phase_to_page_to_span_to_value": {},
    }


def _labels(export: UnitExport, ratings: Sequence[Rating]) -> list[list[Any]]:
    if is_flag(ratings):
        return [[_label(FLAGGED, FLAGGED), "true"]]
    labels = [[_label(rating.question, rating.value), "true"] for rating in ratings]
    if export.has_reasons:
        labels += [
            [_label(f"{rating.question}-{REASON}", "text_box"), rating.reason] for rating in ratings if rating.reason
        ]
    return labels


def _label(schema: str, name: str) -> Mapping[str, str]:
    return {"schema": schema, "name": name}


def _spans(export: UnitExport, entry: RatedItem, ratings: Sequence[Rating]) -> list[list[Any]]:
    if is_flag(ratings):
        return []
    evidence_questions = {question.name for question in export.questions if export.asks_evidence(question)}
    passage = entry.texts()[PASSAGE]
    return [
        [
            {
                "schema": f"{rating.question}-{EVIDENCE}",
                "name": EVIDENCE,
                "title": EVIDENCE,
                "start": _page_offset(passage, start),
                "end": _page_offset(passage, end),
                "id": f"{rating.question}-{number}",
                "target_field": PASSAGE,
            },
            "true",
        ]
        for rating in ratings
        if rating.question in evidence_questions
        for number, (start, end) in enumerate(entry.spans(rating))
    ]


def _page_offset(text: str, position: int) -> int:
    """Return where Potato's page has the code point at this position."""
    return len(text[:position].replace("\n", "").encode("utf-16-le", "surrogatepass")) // 2
