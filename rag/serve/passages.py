"""A passage with its neighbours in the document, and the source of the document."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from rag.base.errors import IndexingError
from rag.base.types import DOCUMENTS, Passage
from rag.index.files import roots_of
from rag.index.index import Index

_NUMBERED_ID = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PassageContext:
    """A passage and its neighbours in the document, if the index has them.

    `source` is the URL of a web page, or the name of a file; empty if the index knows neither.
    """

    passage: Passage
    before: Passage | None = None
    after: Passage | None = None
    source: str = ""

    @property
    def url(self) -> str:
        """The source, if it is an address on the web."""
        return self.source if self.source.startswith(("https://", "http://")) else ""


class ServedPassages:
    """The passages of an index as it was opened: a reply keeps them when the index is replaced."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._urls = page_urls(index)

    def find(self, identifier: str) -> PassageContext | None:
        """Return a passage with its neighbours and its source, or None."""
        passage = self.index.store.get(identifier)
        if passage is None:
            return None
        return PassageContext(
            passage,
            find_neighbour(self.index, passage, -1),
            find_neighbour(self.index, passage, 1),
            source_of(self.index, self._urls, passage),
        )


def find_neighbour(index: Index, passage: Passage, step: int) -> Passage | None:
    """Return the passage `step` passages further on in the same document, or None.

    Passages of a document are numbered: `file.md#3`, `12#0`, or `4711` (DPR's Wikipedia). Rows of the store would not
    do, as an update moves some. Without a `#`, passages of other documents follow, which have another title.
    """
    match = _NUMBERED_ID.fullmatch(passage.id)
    if match is None or int(match[2]) + step < 0:
        return None
    candidate = index.store.get(f"{match[1]}{int(match[2]) + step}")
    if candidate is None or match[1].endswith("#"):
        return candidate
    return candidate if passage.title and candidate.title == passage.title else None


def page_urls(index: Index) -> dict[str, str]:
    """Return the URLs of the web pages of an index, by the names of their files, with which passage ids begin."""
    if index.build is None:
        return {}
    from rag.documents.mirrors import read_pages

    urls = {}
    try:
        for root in roots_of(index.manifest, index.build.parent):
            scheme = urlsplit(root.source.url).scheme
            if scheme in ("http", "https"):
                for page in read_pages(root.source.path.parent).values():
                    urls[root.source.prefix + page.file] = f"{scheme}://{page.page}"
    except IndexingError:  # an index that does not know its sources
        return {}
    return urls


def source_of(index: Index, urls: dict[str, str], passage: Passage) -> str:
    """Return the URL or the file name of a passage's document; empty if the index knows neither."""
    name, number, _ = passage.id.rpartition("#")
    if name in urls:
        return urls[name]
    return name if number and DOCUMENTS in str(index.manifest.get("format", "")).split(", ") else ""
