"""The citations of an answer as `url_citation` annotations of OpenAI's chat completions and responses."""

from typing import Any

from rag.answer.export.rendering import Rendered
from rag.base.utf16 import utf16_span


def response_annotations(rendering: Rendered) -> list[dict[str, Any]]:
    """Return the annotations of a rendered answer in the flat form of responses, in the order of the text.

    `start_index` and `end_index` are the place of the citation itself, such as `[1]`, in the text of the message, as in
    OpenAI's web search, not that of the sentence that it supports. `end_index` is exclusive, so that
    `text[start_index:end_index]` is the citation: the SDK's docstring says "the index of the last character", but
    programs cut and replace texts this way. Both count characters (Unicode code points); `start_utf16` and
    `end_utf16` are the same place for languages that index UTF-16, such as JavaScript. The URL marks what the sentence
    cites, so that a later sentence changes no annotation. `quotes` are these words, verbatim. A source without an http
    or https URL has no annotation.
    """
    return [
        {
            "type": "url_citation",
            "start_index": location.start,
            "end_index": location.end,
            **utf16_span(rendering.text, location.start, location.end),
            "title": location.source.title,
            "url": location.url,
            "quotes": location.quotes,
        }
        for location in rendering.places
        if location.url
    ]


def chat_annotations(rendering: Rendered) -> list[dict[str, Any]]:
    """Return the annotations of `response_annotations` in the nested form of chat completions."""
    annotations = []
    for annotation in response_annotations(rendering):
        kind = annotation.pop("type")
        annotations.append({"type": kind, kind: annotation})
    return annotations
