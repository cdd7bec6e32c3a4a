"""ACL-Verbatim's gold (github.com/KRLabsOrg/acl-verbatim): queries with retrieved chunks and the text that answers.

One JSON object a line: `query`, and `results` with `document_id`, `chunk_number`, `chunk` (the text), `title` and
`gold_extraction` (the stretches of the chunk that people marked; empty if it does not answer).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from autoais.base.errors import FormatError
from autoais.base.io.jsonl import field, identifier, strings
from autoais.base.types import Passage


def is_acl_verbatim(row: Mapping[str, Any]) -> bool:
    """Whether a row has the fields of ACL-Verbatim's gold."""
    return "results" in row and "query" in row and "question" not in row


def chunks_of(row: Mapping[str, Any], source: str) -> Iterator[tuple[Passage, tuple[str, ...]]]:
    """Yield each chunk of a row, with the id `document#number`, and what people marked in it.

    Raises `FormatError`, which starts with `source`, for a broken row.
    """
    for number, result in enumerate(field(row, "results", list, source)):
        location = f"{source}: field 'results[{number}]'"
        if not isinstance(result, Mapping):
            raise FormatError(f"{location} should be an object")
        key = f"{identifier(result, 'document_id', location)}#{identifier(result, 'chunk_number', location)}"
        title = field(result, "title", str, location) if result.get("title") is not None else ""
        yield Passage(key, title, field(result, "chunk", str, location)), strings(result, "gold_extraction", location)
