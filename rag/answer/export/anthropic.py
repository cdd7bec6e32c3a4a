"""An answer as content blocks of Anthropic's Messages API, whose citations carry spans and quotes, as ours do."""

from typing import Any

from rag.base.types import Answer, Citation, Hit


def to_anthropic(answer: Answer) -> dict[str, Any]:
    """Return `content` (text blocks with citations) and `documents` (what they cite), both as in the Messages API.

    A citation is a `char_location`: `document_index` counts from 0 in `documents`; `start_char_index` and
    `end_char_index` (exclusive) are characters (Unicode code points) of the document's text, and `cited_text` is the
    text there. All texts are verbatim. The texts of the blocks together are the text of the answer; an abstention has
    no blocks.
    """
    return {"content": content_blocks(answer), "documents": documents(answer)}


def content_blocks(answer: Answer) -> list[dict[str, Any]]:
    """Return a text block for each cited sentence, and one for what lies between two."""
    numbered_hits = {hit.passage.id: (number - 1, hit) for number, _, hit in answer.number_hits()}
    blocks, position = [], 0
    for sentence in answer.sentences:
        start, end = sentence.start or 0, sentence.end or 0
        if not sentence.citations:
            continue
        if position < start:
            blocks.append(_block(answer.text[position:start], []))
        blocks.append(
            _block(
                sentence.text,
                [_location(citation, *numbered_hits[citation.passage]) for citation in sentence.citations],
            )
        )
        position = end
    if position < len(answer.text):
        blocks.append(_block(answer.text[position:], []))
    return blocks


def documents(answer: Answer) -> list[dict[str, Any]]:
    """Return the passages shown as plain-text documents: the cited ones by number, then the others by rank."""
    return [
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": hit.passage.text},
            "title": _title(hit),
            "context": f"Passage {hit.passage.id}",
            "citations": {"enabled": True},
        }
        for _, _, hit in answer.number_hits()
    ]


def _title(hit: Hit) -> str:
    return hit.passage.headings or hit.passage.id


def _block(text: str, citations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": citations or None}


def _location(citation: Citation, index: int, hit: Hit) -> dict[str, Any]:
    start, end = citation.span
    return {
        "type": "char_location",
        "cited_text": citation.quote,
        "document_index": index,
        "document_title": _title(hit),
        "start_char_index": start,
        "end_char_index": end,
        "file_id": None,
    }
