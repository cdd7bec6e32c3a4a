"""The pages that an answer cites as BibTeX, for LaTeX with bibtex or biblatex."""

import re
import unicodedata
from datetime import date

from rag.answer.export.escaping import bibtex_text
from rag.answer.export.sources import Link, list_pages
from rag.base.types import Answer


def to_bibtex(
    answer: Answer, link: Link | None = None, *, container: str | None = None, accessed: date | None = None
) -> str:
    """Return an entry `@misc` for each page cited, by first citation; the text is UTF-8.

    The fields are those of `rag.answer.export.csl.to_csl`. Titles have double braces, which keep their capitals.
    """
    entries, keys = [], set[str]()
    for page in list_pages(answer, link):
        fields = {"title": f"{{{bibtex_text(page.title)}}}"}
        if container:
            fields["howpublished"] = bibtex_text(container)
        if page.pages:
            fields["pages"] = ", ".join(map(str, page.pages))
        if page.sections:
            fields["note"] = "Section " + bibtex_text("; ".join(page.sections))
        if page.url:
            fields["url"] = page.url  # read verbatim
        if accessed:
            fields["urldate"] = accessed.isoformat()
        key = _key(page.id, keys)
        keys.add(key.casefold())
        body = "".join(f",\n  {name} = {{{value}}}" for name, value in fields.items())
        entries.append(f"@misc{{{key}{body}\n}}\n")
    return "\n".join(entries)


def _key(identifier: str, keys: set[str]) -> str:
    """An ASCII key of letters, digits, `-` and `_`; BibTeX takes keys that differ in case only for the same."""
    ascii_only = unicodedata.normalize("NFKD", identifier).encode("ascii", "ignore").decode()
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", ascii_only).strip("-") or "source"
    key, number = base, 1
    while key.casefold() in keys:
        number += 1
        key = f"{base}-{number}"
    return key
