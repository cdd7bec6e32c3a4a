"""Files of a folder that say the same: copies, and one document in several formats, are indexed once.

Each decision is about two files of one source, so it holds whatever else the folder has:

- The source of a page that Sphinx keeps (`_sources/a.rst.txt` beside `a.html`) repeats the page.
- A file repeats one of the same stem in a better format (HTML before Markdown before LaTeX before PDF before text) if
  they share half of their shingles, as each format loses and adds some words.
- A file repeats one before it of the same title if they share nine in ten of their shingles. Pages of one mould that
  differ in their titles say different things.

Files of a few words are left alone.

A passage that stands in several files of a source is indexed once, in the first of them by path. It is the same if the
text, the headings above it and the title are. Of longer texts, the title may have other numbers, as that of minutes or
of a page of another year: a notice says the same there, but not a list of names, nor a table.
"""

import base64
import binascii
import hashlib
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rag.base.types import Passage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rag.documents import Document

_MIN_OVERLAP = 0.9  # of the shingles of both files
_SAME_STEM = 0.5
_SHINGLE = 5  # words
_SIZE = 128  # of the smallest hashes of a file's shingles: the share that two files have is known to within .05
_PROSE = 40  # words of a passage that is the same in documents of several titles
_NO_PROSE = re.compile(r"(?:\A|\n)(?:[-*] | {2}|\w{1,3}\. )| \| ")  # an item, code or a row
_NUMBERS = re.compile(r"[\d\W_]+")
_MIN_COUNT = 30  # shingles; shorter files may say the same by chance
_KEYS = 8  # files that share none of so many smallest hashes are not alike
_SUFFIXES = re.compile(
    r"(?:\.(?:html?|xhtml|mht|mhtml|md|markdown|rst|adoc|asciidoc|org|txt|text|pdf|epub|docx|odt|rtf|docbook|xml"
    r"|pptx|odp|xlsx|ods|csv|tsv"
    r"|tex|ltx|latex|(?<=[^\W\d]\.)\d[a-z]*|gz|en))+$"
)
_FORMATS = (
    "html htm xhtml mht mhtml",
    "md markdown ipynb",
    "rst adoc asciidoc org docbook xml",
    "epub docx odt rtf pptx xlsx",
    "odp ods",
    "csv tsv",
    "tex ltx latex",
    "pdf",
)  # the best first; then text
_RANKS = {f".{suffix}": rank for rank, suffixes in enumerate(_FORMATS) for suffix in suffixes.split()}
_TEXT = len(_FORMATS)
_MAX_CANDIDATES = 8  # files of one stem to compare a file with
_SIGNS = bytes(code if chr(code).isalnum() or code > 127 else 32 for code in range(256))


@dataclass(frozen=True, slots=True)
class Sketch:
    """What a document is compared by: its own title, hashed (0 if it has none), and hashes of its shingles."""

    title: int
    hashes: "npt.NDArray[np.uint32]"


def sketch_of(document: "Document") -> Sketch:
    """The sketch of a document; the same on every machine."""
    import numpy as np

    text = " ".join(passage.text for passage in document.passages).lower().encode("utf-8", "replace")
    words = text.translate(_SIGNS).split()
    hashes = np.fromiter(map(zlib.crc32, words), np.uint64, len(words))
    shingles = hashes[: max(0, len(hashes) - _SHINGLE + 1)].copy()
    for step in range(1, _SHINGLE):
        shingles = shingles * np.uint64(0x9E3779B97F4A7C15) + hashes[step : step + len(shingles)]  # wraps around
    shingles ^= shingles >> np.uint64(29)
    shingles *= np.uint64(0xBF58476D1CE4E5B9)
    title = zlib.crc32(document.title.casefold().encode("utf-8", "replace")) if document.title else 0
    return Sketch(title, np.unique((shingles >> np.uint64(32)).astype(np.uint32))[:_SIZE])


def pack_sketch(sketch: Sketch) -> str:
    """A sketch as text, to be kept in a file."""
    title = sketch.title.to_bytes(4, "little")
    return base64.b64encode(title + sketch.hashes.astype("<u4").tobytes()).decode("ascii")


def unpack_sketch(text: str) -> Sketch:
    """The sketch that `pack_sketch` wrote; raises `ValueError`."""
    import numpy as np

    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not a sketch of a file: {error}") from error
    return Sketch(int.from_bytes(data[:4], "little"), np.frombuffer(data[4:], "<u4").astype(np.uint32))


def likeness(item: Sketch, other: Sketch) -> float:
    """About the share of shingles that two documents have in common; 0 for a document of a few words."""
    import numpy as np

    if not len(item.hashes) or not len(other.hashes):
        return 0.0
    smallest = np.union1d(item.hashes, other.hashes)[: max(len(item.hashes), len(other.hashes))]
    names = np.intersect1d(item.hashes, other.hashes, assume_unique=True)
    return float(np.isin(smallest, names, assume_unique=True).sum() / len(smallest))


def passage_key(passage: Passage) -> str:
    """What is the same for passages of two files of which one is left out."""
    is_prose = len(passage.text.split()) >= _PROSE and _NO_PROSE.search(passage.text) is None
    title = _NUMBERS.sub("", passage.title) if is_prose else passage.title
    parts = (title, passage.section, passage.text)
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def find_repeats(files: Iterable[tuple[str, Sequence[str]]]) -> dict[str, set[str]]:
    """The keys that a fresh build leaves out of each file, from (name, keys of its passages) in order."""
    first: dict[str, str] = {}
    repeats: dict[str, set[str]] = {}
    for name, keys in files:
        for key in keys:
            if first.setdefault(key, name) != name:
                repeats.setdefault(name, set()).add(key)
    return repeats


class Duplicates:
    """Finds for a file of a source the one that it repeats. `names` are all files of the source.

    `read` gives the sketch of a file that was not added yet; None if it cannot be read.
    """

    def __init__(self, names: Iterable[str], read: Callable[[str], Sketch | None]) -> None:
        self._read = read
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._names = set(names)
        for name in sorted(self._names):
            self._by_stem[_stem(name)].append(name)
        self._sketches: dict[str, Sketch | None] = {}
        self._by_hash: dict[int, list[str]] = defaultdict(list)
        self._first: dict[str, str] = {}  # the file that a passage was met in first, by its key

    def page_of(self, name: str) -> str | None:
        """The page that a file is the source of, by the names alone."""
        parts = PurePosixPath(name).parts
        if "_sources" not in parts:
            return None
        position = parts.index("_sources")
        stem = PurePosixPath(*parts[:position], *parts[position + 1 :]).as_posix()
        base = _SUFFIXES.sub("", stem)
        return next((page for suffix in (".html", ".htm", ".html.gz") if (page := base + suffix) in self._names), None)

    def add(self, name: str, sketch: Sketch) -> None:
        """Remember a file that is kept."""
        self._sketches[name] = sketch
        for value in sketch.hashes[:_KEYS].tolist():
            self._by_hash[value].append(name)

    def first_file(self, key: str, name: str) -> str:
        """The file that had the passage with that key first; the file itself if none had."""
        return self._first.setdefault(key, name)

    def find(self, name: str, sketch: Sketch) -> str | None:
        """The file that a file repeats, or None."""
        if len(sketch.hashes) < _MIN_COUNT:
            return None
        return self._in_better_format(name, sketch) or self._like(name, sketch)

    def _in_better_format(self, name: str, sketch: Sketch) -> str | None:
        rank = _rank(name)
        better = [other for other in self._by_stem[_stem(name)] if _rank(other) < rank]
        better.sort(key=lambda other: (_rank(other), _distance(name, other), other))
        for other in better[:_MAX_CANDIDATES]:
            if other not in self._sketches:
                self._sketches[other] = self._read(other)
            entry = self._sketches[other]
            if entry is not None and likeness(sketch, entry) >= _SAME_STEM:
                return other
        return None

    def _like(self, name: str, sketch: Sketch) -> str | None:
        candidates = {other for value in sketch.hashes[:_KEYS].tolist() for other in self._by_hash.get(value, ())}
        for other in sorted(candidates - {name}):
            entry = self._sketches[other]
            worse = _stem(other) == _stem(name) and _rank(other) > _rank(name)
            if entry is None or worse or entry.title != sketch.title:
                continue
            if likeness(sketch, entry) >= _MIN_OVERLAP:
                return other
        return None


def _stem(name: str) -> str:
    return _SUFFIXES.sub("", PurePosixPath(name).name.lower())


def _rank(name: str) -> int:
    path = PurePosixPath(name.lower())
    return _RANKS.get(path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix, _TEXT)


def _distance(item: str, other: str) -> int:
    """How many folders lie between two files."""
    first, second = PurePosixPath(item).parent.parts, PurePosixPath(other).parent.parts
    common = 0
    while common < min(len(first), len(second)) and first[common] == second[common]:
        common += 1
    return len(first) + len(second) - 2 * common
