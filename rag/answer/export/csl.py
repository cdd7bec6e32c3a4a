"""The pages that an answer cites as CSL-JSON, which Zotero, pandoc and citeproc read."""

from datetime import date
from typing import Any

from rag.answer.export.escaping import one_line
from rag.answer.export.sources import Link, list_pages
from rag.base.types import Answer


def to_csl(
    answer: Answer, link: Link | None = None, *, container: str | None = None, accessed: date | None = None
) -> list[dict[str, Any]]:
    """Return a CSL-JSON item (schema `csl-data.json` of CSL 1.0.2) for each page cited, by first citation.

    `container` is the name of what the pages are part of, such as an index or `Wikipedia`, `accessed` the day on which
    they were read. `locator` has the numbers of the pages cited, in documents that have pages; `section` the headings.
    """
    items = []
    for page in list_pages(answer, link):
        item: dict[str, Any] = {"id": page.id, "type": "webpage" if page.url else "document", "title": page.title}
        if container:
            item["container-title"] = one_line(container)
        if page.sections:
            item["section"] = "; ".join(page.sections)
        if page.pages:
            item["locator"] = ", ".join(map(str, page.pages))
        if page.url:
            item["URL"] = page.url
        if accessed:
            item["accessed"] = {"date-parts": [[accessed.year, accessed.month, accessed.day]]}
        items.append(item)
    return items
