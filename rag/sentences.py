"""The one sentence splitter (Wikimedia's sentencex, pinned): spans and metrics depend on where sentences end."""

import sentencex


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """`(start, end)` of each sentence in characters, without the white space around it."""
    spans = []
    for boundary in sentencex.get_sentence_boundaries("en", text):
        start, end = boundary["start_index"], boundary["end_index"]
        piece = text[start:end]
        if stripped := piece.strip():
            start += piece.index(stripped[0])
            spans.append((start, start + len(stripped)))
    return spans
