"""A passage with its neighbours in the document, and the source of the document."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.base.types import Passage
from rag.index.index import Index
from rag.index.originals import Originals, Span, text_fragment

_NUMBERED_ID = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PassageContext:
    """A passage and its neighbours in the document, if the index has them.

    `source` is the URL of a web page, or the name of a file; empty if the index knows neither. `has_files` is whether
    the index knows the files that it was built from.
    """

    passage: Passage
    before: Passage | None = None
    after: Passage | None = None
    source: str = ""
    has_files: bool = False

    @property
    def url(self) -> str:
        """The source, if it is an address on the web."""
        return self.source if self.source.startswith(("https://", "http://")) else ""

    def url_at(self, spans: Sequence[Span]) -> str:
        """The address on the web at the page of the passage, or at the words of the first span; empty without one."""
        if not self.url:
            return ""
        if self.passage.page is not None:
            return f"{self.url}#page={self.passage.page}"
        return f"{self.url}{text_fragment(self.passage.text, spans)}"


class ServedPassages:
    """The passages of an index as it was opened: a reply keeps them when the index is replaced."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.originals = Originals(index)

    def find(self, identifier: str) -> PassageContext | None:
        """Return a passage with its neighbours and its source, or None."""
        passage = self.index.store.get(identifier)
        if passage is None:
            return None
        return PassageContext(
            passage,
            find_neighbour(self.index, passage, -1),
            find_neighbour(self.index, passage, 1),
            self.originals.source_of(passage),
            self.originals.has_files,
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
