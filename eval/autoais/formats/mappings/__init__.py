"""Answer formats of other evaluators that are a renaming of fields, each described by a TOML file beside this one.

`[fields]` maps our fields to theirs, in the order in which they are written: `id` (else answers are numbered),
`question`, `answer`, `contexts`, `reference` (one string) and `references` (a list). `required` are the fields that a
record must have, `required_to_detect` those that tell the format, if fewer. `extra` are fields that are kept as they
are. `csv`: a file may be a CSV, whose cells hold lists. `[context]` has the fields of a context that is an object.
`document` is the list that holds the records of a written file. `no_reference` is written where there is no reference.
`[schema]` has JSON Schemas of single fields that differ from those here.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.io.jsonl import dumps
from autoais.base.io.schema import IDENTIFIER, STRING, STRINGS_OR_NULL, TEXT_OR_NULL, Schema, list_of, record
from autoais.formats.base import Format, Notes, Row, check_by_reading, no_ids, unique_id
from autoais.formats.contexts import (
    CONTEXT_FEATURES,
    context_answer,
    context_output,
    first_reference,
    passage_texts,
    passages_of,
    select_extra,
    strings_in,
)
from autoais.formats.markers import in_document

_LIST_OR_CELL: Schema = {"type": ["array", "string", "null"], "items": STRING}


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """A TOML file of this folder."""

    name: str
    description: str
    fields: Mapping[str, str]
    required: Sequence[str]
    required_to_detect: Sequence[str] = ()
    extra: Sequence[str] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    schema: Mapping[str, Schema] = field(default_factory=dict)
    document: str | None = None
    no_reference: str | None = None
    csv: bool = False
    writable: bool = True
    one_context_without_list: bool = False

    def record_schema(self) -> Schema:
        """Return the JSON Schema of a record."""
        strings = _LIST_OR_CELL if self.csv else STRINGS_OR_NULL
        text = {name: IDENTIFIER if name == "id" else STRING for name in ("id", "question")}
        kinds = text | {"answer": TEXT_OR_NULL, "reference": TEXT_OR_NULL, "contexts": strings, "references": strings}
        if self.context:
            key = {self.context["id"]: {"type": ["string", "integer", "null"]}}
            kinds["contexts"] = list_of(record({self.context["text"]: STRING}, key))
        schemas = {name: kinds[role] for role, name in self.fields.items()} | dict(self.schema)
        return record(
            {name: schemas[name] for name in self.required},
            {name: schema for name, schema in schemas.items() if name not in self.required},
        )

    def read_contexts(self, row: Mapping[str, Any], location: str) -> list[tuple[str | None, str, str]]:
        """Return (id, title, text) of each context; raises `FormatError` for a cell that holds no list."""
        name = self.fields["contexts"]
        if self.context:
            keys = [context.get(self.context["id"]) for context in row[name]]
            contexts = [context[self.context["text"]] for context in row[name]]
            return [(None if key is None else str(key), "", text) for key, text in zip(keys, contexts, strict=True)]
        value = row.get(name)
        if self.one_context_without_list and isinstance(value, str) and value.strip()[:1] not in ("", "["):
            return [(None, "", value)]
        return [(None, "", text) for text in strings_in(row, name, location)]

    def read_references(self, row: Mapping[str, Any], location: str) -> list[str]:
        """Return the reference answers."""
        reference = row.get(self.fields.get("reference", ""))
        if reference:
            return [reference]
        return strings_in(row, self.fields["references"], location) if "references" in self.fields else []

    def read(self, rows: Iterable[Row], notes: Notes) -> Iterator[CitedAnswer]:
        """Yield the answers of records."""
        for number, (location, row) in enumerate(rows, 1):
            yield context_answer(
                str(row[self.fields["id"]] if "id" in self.fields else number),
                row[self.fields["question"]],
                row[self.fields["answer"]],
                passages_of(self.read_contexts(row, location)),
                references=self.read_references(row, location),
                extra={name: row[name] for name in self.extra if name in row},
            )

    def write(self, answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[str]:
        """Yield the lines of a file."""
        lines = (dumps(self.row(answer, notes)) for answer in answers)
        return lines if self.document is None else in_document(f'{{"{self.document}": [', lines)

    def row(self, answer: CitedAnswer, notes: Notes) -> dict[str, Any]:
        """Return the record of an answer."""
        values: dict[str, Any] = {"id": answer.id, "question": answer.question, "contexts": passage_texts(answer)}
        if "reference" in self.fields:
            reference = first_reference(answer, notes)
            values["reference"] = self.no_reference if reference is None else reference
        values["answer"] = context_output(answer, notes)
        if self.context:
            values["contexts"] = [
                {self.context["id"]: key, self.context["text"]: passage.evidence}
                for key, passage in answer.passages.items()
            ]
        row = {name: values[role] for role, name in self.fields.items() if values.get(role) is not None}
        return row | select_extra(answer, self.extra)


def read_mapping(name: str) -> Format:
    """Return the format that `name`.toml describes."""
    table = tomllib.loads(files("autoais.formats.mappings").joinpath(f"{name}.toml").read_text("utf-8"))
    mapping = FieldMapping(name, **table)
    key, lists = mapping.fields.get("id"), [mapping.fields[role] for role in ("references",) if role in mapping.fields]
    features = {"ids": key, "reference answers": mapping.fields.get("reference")}
    return Format(
        name=name,
        description=mapping.description,
        schema=mapping.record_schema(),
        required_fields=tuple(mapping.required_to_detect or mapping.required),
        read=mapping.read,
        write=mapping.write if mapping.writable else None,
        by_place=lambda row: key is None,
        ids=no_ids if key is None else unique_id(key),
        check=check_by_reading(mapping.read_contexts, *(partial(_read_list, name) for name in lists)),
        supports=CONTEXT_FEATURES | {feature for feature, field in features.items() if field}
        if mapping.writable
        else frozenset(),
        csv=mapping.csv,
    )


def _read_list(name: str, row: Mapping[str, Any], location: str) -> list[str]:
    return strings_in(row, name, location)


DEEPEVAL, RAGAS, RAGAS_0_1, RAGCHECKER, TRULENS = map(
    read_mapping, ("deepeval", "ragas", "ragas-0.1", "ragchecker", "trulens")
)
