"""Links to passages: `{base}/p/{index}/{passage id}?mark=10-52,80-99` opens a passage with these spans marked."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from rag.answer.export.sources import Link, merge_spans
from rag.base.types import Answer
from rag.index.joined import split_id
from rag.index.originals import text_fragment

_VIEWED = {".html": "text/html", ".htm": "text/html", ".xhtml": "text/html", ".md": "text/plain", ".txt": "text/plain"}
_MARK = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_MAX_MARKS = 100


def passage_url(base: str, index: str, passage: str, spans: Iterable[tuple[int, int]] = ()) -> str:
    """Return the link to a passage, by its id, with the spans (characters, end exclusive) sorted and merged.

    A passage of several indexes (`a+b`) opens in its own.
    """
    index, passage = split_id(index, passage)
    marks = ",".join(f"{start}-{end}" for start, end in merge_spans(list(spans))[:_MAX_MARKS])
    url = f"{base.rstrip('/')}/p/{quote(index, safe='')}/{quote(passage, safe='')}"
    return f"{url}?mark={marks}" if marks else url


def viewed_as(name: str) -> str:
    """Return the media type with which a browser shows a file; empty if it is only saved."""
    return _VIEWED.get(PurePosixPath(name).suffix.lower(), "")


def view_url(passage: str, name: str, text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the link that shows the file of a passage at the first span of its text; empty for a file that is saved.

    `passage` is the link to the passage (`passage_url`), `name` that of the file.
    """
    path, _, _ = passage.partition("?")
    is_viewed = path.startswith("/p/") and viewed_as(name)
    return f"/view/{path.removeprefix('/p/')}{text_fragment(text, spans)}" if is_viewed else ""


def links_to(base: str, index: str) -> Link:
    """Return what gives the links to passages of an index, for the formats of `rag.answer.export`."""
    return lambda passage, spans: passage_url(base, index, passage.id, spans)


def answer_urls(base: str, index: str, answer: Answer) -> dict[str, str]:
    """Return one link for each passage of an answer, by passage id; it marks all spans that the answer cites."""
    spans_by_passage: dict[str, list[tuple[int, int]]] = {hit.passage.id: [] for _, _, hit in answer.number_hits()}
    for citation in answer.citations:
        spans_by_passage[citation.passage].append(citation.span)
    return {passage: passage_url(base, index, passage, spans) for passage, spans in spans_by_passage.items()}


def read_marks(text: str) -> list[tuple[int, int]]:
    """Return the spans of a `mark` parameter, sorted and merged; an empty list for a text of another form."""
    parts = text.split(",", _MAX_MARKS + 1)
    matches = [match for part in parts if (match := _MARK.fullmatch(part))]
    if len(matches) < len(parts) or len(matches) > _MAX_MARKS:
        return []
    spans = [(int(match[1]), int(match[2])) for match in matches]
    return list(merge_spans(spans)) if all(start < end for start, end in spans) else []
