"""The sources of an answer for Open WebUI, which shows each in a card with its quotes."""

from collections import Counter
from typing import Any

from rag.answer.export.escaping import inert, visible
from rag.answer.export.sources import Link, list_sources
from rag.base.types import Answer


def source_cards(answer: Answer, link: Link | None = None) -> list[dict[str, Any]]:
    """Return a source for each cited passage, by number: `source` (name and URL), `document` (quotes), `metadata`.

    Open WebUI makes a card for each value of `metadata.source`, and `[2]` in the text opens the second card. It finds
    the card of a marker by `metadata.name`, so names of two passages differ. Quotes are shown as Markdown: they are
    `inert`.
    """
    sources = list_sources(answer, link)
    counts = Counter(source.title for source in sources)
    cards = []
    for source in sources:
        name = source.title if counts[source.title] == 1 else f"{source.title} ({source.number})"
        metadata = {"source": f"passage {source.passage.id}", "name": name}
        cards.append(
            {
                "source": {"name": name} | ({"url": source.url} if source.url else {}),
                "document": [inert(visible(quote)) for quote in source.quotes],
                "metadata": [metadata for _ in source.quotes],
            }
        )
    return cards
