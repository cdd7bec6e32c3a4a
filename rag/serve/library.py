"""The documents of an index as a list that people search and leaf through."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from rag.base.errors import IndexingError, UsageError
from rag.index.index import Index
from rag.index.listing import IndexedDocument, list_documents

Order = Literal["name", "newest", "largest"]
Filter = Literal["all", "uploaded", "left-out"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A document of an index.

    `label` is its name for people, `place` where it lies: a folder or file that the index was given, or an address on
    the web. `upload` is the name under which people may replace and delete it, empty if they may not.
    """

    document: IndexedDocument
    label: str
    place: str
    upload: str


class Library:
    """The documents of one build of an index, in every order that pages ask for.

    `is_upload` tells which of them people added. Raises `IndexingError` for an index that does not know its documents.
    """

    def __init__(self, index: Index, is_upload: Callable[[IndexedDocument], bool] = lambda _: False) -> None:
        self.index = index
        entries = []
        for document in list_documents(index):
            uploaded = is_upload(document)
            label = document.path.name if uploaded else document.name
            place = "" if uploaded else document.url or document.source.name
            entries.append(Entry(document, label, place, label if uploaded else ""))
        self._ordered: dict[str, list[Entry]] = {
            "name": sorted(entries, key=lambda entry: (entry.label.casefold(), entry.document.name)),
            "newest": sorted(entries, key=_time_of, reverse=True),
            "largest": sorted(entries, key=lambda entry: entry.document.size, reverse=True),
        }
        self._text = {id(entry): f"{entry.label}\n{entry.place}".casefold() for entry in entries}
        self.uploads: Mapping[str, Entry] = {entry.upload: entry for entry in entries if entry.upload}

    def __len__(self) -> int:
        return len(self._text)

    def find(self, query: str = "", order: str = "name", show: str = "all") -> list[Entry]:
        """Return the documents whose name or place has all words of a query, in an `Order`, chosen by a `Filter`.

        Raises `UsageError` for other values.
        """
        for name, value, choices in (("order", order, get_args(Order)), ("show", show, get_args(Filter))):
            if value not in choices:
                raise UsageError(f"{name} should be one of {', '.join(choices)}, found {value[:100]!r}")
        words = query.casefold().split()
        return [
            entry
            for entry in self._ordered[order]
            if (show == "all" or (entry.upload if show == "uploaded" else entry.document.left_out))
            and all(word in self._text[id(entry)] for word in words)
        ]


class Libraries:
    """The libraries of a service, made again when an index has been replaced; threads share it."""

    def __init__(self, uploads: Mapping[str, Callable[[IndexedDocument], bool]]) -> None:
        self._uploads = uploads
        self._lock = threading.Lock()
        self._libraries: dict[str, Library] = {}

    def open(self, name: str, index: Index) -> Library:
        """Return the library of an index; takes a while for many documents. Raises `UsageError` if it has no list."""
        with self._lock:
            library = self._libraries.get(name)
            if library is None or library.index is not index:
                try:
                    library = Library(index, self._uploads.get(name, lambda _: False))
                except IndexingError as error:
                    raise UsageError(f"index {name!r} has no list of documents") from error
                self._libraries[name] = library
            return library


def _time_of(entry: Entry) -> float:
    return entry.document.modified.timestamp() if entry.document.modified else 0.0
