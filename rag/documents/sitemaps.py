"""Sitemaps: the pages and further sitemaps that one lists (https://www.sitemaps.org/protocol.html)."""

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from rag.base.errors import FormatError

_ENTRIES = {"urlset": "url", "sitemapindex": "sitemap"}
_ROOT = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)\b")
_MAX_DEPTH = 20


@dataclass(slots=True)
class Sitemap:
    """What a sitemap lists, in its order."""

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def read_sitemap(data: bytes, location: str) -> Sitemap | None:
    """Read a sitemap or an index of sitemaps; None for anything else, such as a page.

    Raises `FormatError` for a sitemap that is broken, or has a DOCTYPE, as entities could make it endless.
    """
    reader = _Reader()
    try:
        reader.parse(data)
    except _Doctype as result:
        if str(result).lower() == "html" or not _ROOT.search(data.replace(b"\0", b"")):
            return None
        raise FormatError(f"{location}: a sitemap with a DOCTYPE, which is not read") from None
    except _OtherRoot:
        return None
    except (expat.ExpatError, LookupError, ValueError) as error:  # not well-formed, an unknown or unusable encoding
        if reader.root is None:
            return None
        raise FormatError(f"{location}: a broken sitemap: {error}") from error
    return reader.found


class _Doctype(Exception):  # noqa: N818  (ends the parsing)
    pass


class _OtherRoot(Exception):  # noqa: N818
    pass


class _Reader:
    def __init__(self) -> None:
        self.found = Sitemap()
        self.root: str | None = None
        self._stack: list[str] = []
        self._text: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._data

    def parse(self, data: bytes) -> None:
        self._parser.Parse(data, True)

    def _doctype(self, name: str, *_: object) -> None:
        raise _Doctype(name)

    def _start(self, name: str, _: dict[str, str]) -> None:
        if self.root is None:
            if _local(name) not in _ENTRIES:
                raise _OtherRoot
            self.root = name
        if len(self._stack) == _MAX_DEPTH:
            raise ValueError("nested too deeply")
        self._stack.append(name)
        self._text.clear()

    def _data(self, text: str) -> None:
        self._text.append(text)

    def _end(self, _: str) -> None:
        assert self.root is not None
        kind = _local(self.root)
        home = self.root.removesuffix(kind)  # the namespace; images and videos of a page have another
        if self._stack == [self.root, f"{home}{_ENTRIES[kind]}", f"{home}loc"]:
            url = "".join(self._text).strip()
            (self.found.pages if kind == "urlset" else self.found.sitemaps).append(url)
        self._stack.pop()
        self._text.clear()


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
