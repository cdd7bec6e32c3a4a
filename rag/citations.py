"""Citations as spans inside, as numbers outside: numbering and rendering of an `Answer`."""

from rag.types import Answer, Hit


def numbered(answer: Answer) -> list[tuple[int, int, Hit]]:
    """`(n, rank, hit)`: n counts cited passages in order of first mention, then the others in rank order."""
    cited = dict.fromkeys(c.passage for sentence in answer.sentences for c in sentence.citations)
    place = {identifier: position for position, identifier in enumerate(cited)}
    ranked = sorted(enumerate(answer.hits, 1), key=lambda item: (place.get(item[1].passage.id, len(place)), item[0]))
    return [(n, rank, hit) for n, (rank, hit) in enumerate(ranked, 1)]


def render(answer: Answer) -> str:
    """The answer's text with `[n]` before each cited sentence's closing stop, numbered as `numbered` does."""
    number = {hit.passage.id: n for n, _, hit in numbered(answer)}
    pieces, end = [], 0
    for sentence in answer.sentences:
        cited = dict.fromkeys(number[citation.passage] for citation in sentence.citations)
        text = answer.text[sentence.start : sentence.end]
        body = text.rstrip(".!?")
        markers = "".join(f"[{n}]" for n in cited)
        pieces.append(answer.text[end : sentence.start] + body + (f" {markers}" if markers else "") + text[len(body) :])
        end = sentence.end
    return "".join(pieces) + answer.text[end:]
