"""The names of pages as files: safe whatever a URL says, and with a suffix that tells how they are read."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from rag.documents import kind_of

_TYPES = {
    "text/html": ".html",
    "application/xhtml+xml": ".xhtml",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/x-markdown": ".md",
    "text/x-rst": ".rst",
    "application/pdf": ".pdf",
    "application/docbook+xml": ".docbook",
    "application/epub+zip": ".epub",
    "application/x-ipynb+json": ".ipynb",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/mbox": ".mbox",
    "application/rtf": ".rtf",
    "application/x-latex": ".tex",
    "application/x-tex": ".tex",
    "multipart/related": ".mhtml",
    "text/asciidoc": ".adoc",
    "text/calendar": ".ics",
    "text/org": ".org",
    "text/rtf": ".rtf",
    "text/x-tex": ".tex",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
_HTML = frozenset({".html", ".htm", ".xhtml"})
_MAX_LENGTH, _MAX_DEPTH = 200, 30
_UNSAFE = re.compile(r"[^\w.~@+=,()!-]")


def page_name(url: str, content_type: str = "text/html") -> str | None:
    """The path of a page below the folder of its host; None if neither the URL nor the type names a document.

    A path that ends in a slash is called `index`, a query is part of the name.
    """
    parts = urlsplit(url)
    *folders, last = (_safe(segment) for segment in parts.path.removeprefix("/").split("/"))
    last = last or "index"
    if parts.query:
        last = f"{last}_{_safe(parts.query)}"
    suffix, kind = _TYPES.get(content_type, ""), kind_of(last)
    if kind == ".xml":  # a feed or a map of the site
        kind = None
    if kind in _HTML or (kind is not None and suffix not in _HTML):  # a page called guide.md may well be HTML
        suffix = ""
    elif not suffix:
        return None
    name = "/".join([*filter(None, folders), f"{last}{suffix}"])
    parts_of_name = name.split("/")
    fits = all(len(part.encode()) <= _MAX_LENGTH for part in parts_of_name) and len(parts_of_name) <= _MAX_DEPTH
    return name if fits else short_name(url, name)


def short_name(url: str, name: str) -> str:
    """A short name that no other URL has."""
    path = PurePosixPath(name)
    kind = kind_of(path.name) or ".html"
    return f"{path.name.removesuffix(kind)[:40]}-{hashlib.sha256(url.encode()).hexdigest()[:16]}{kind}"


def _safe(segment: str) -> str:
    """A part of a path as the name of a file that is not hidden and leads nowhere else."""
    name = _UNSAFE.sub("_", unicodedata.normalize("NFC", unquote(segment, errors="replace")))
    return f"_{name[1:]}" if name.startswith(".") else name


class Names:
    """The names that are taken; a folder takes its name too."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        for name in names:
            self._add(name)

    def take(self, url: str, name: str) -> str:
        """The name, or one of its own for the URL if it is taken."""
        path = PurePosixPath(name.casefold())
        parents = {str(parent) for parent in path.parents}
        free = str(path) not in self._files and str(path) not in self._folders and not parents & self._files
        unique_name = name if free else short_name(url, name)
        self._add(unique_name)
        return unique_name

    def _add(self, name: str) -> None:
        path = PurePosixPath(name.casefold())  # as some file systems do not tell capitals apart
        self._files.add(str(path))
        self._folders.update(str(parent) for parent in path.parents)
