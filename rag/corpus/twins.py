"""Files of a folder that say the same: copies, and one document in several formats, are indexed once.

Each decision is about two files of one source, so it holds whatever else the folder has:

- The source of a page that Sphinx keeps (`_sources/a.rst.txt` beside `a.html`) repeats the page.
- A file repeats one of the same stem in a better format (HTML before Markdown before text) if they share half of their
  shingles, as each format loses and adds some words.
- A file repeats one before it if they share nine in ten of their shingles.

Files of a few words are left alone.
"""

import base64
import binascii
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rag.types import Passage

    Sketch = npt.NDArray[np.uint32]

_SAME = 0.9  # of the shingles of both files
_SAME_STEM = 0.5
_SHINGLE = 5  # words
_SIZE = 128  # of the smallest hashes of a file's shingles: the share that two files have is known to within .05
_FEWEST = 30  # shingles; shorter files may say the same by chance
_KEYS = 8  # files that share none of so many smallest hashes are not alike
_SUFFIXES = re.compile(r"(?:\.(?:html?|xhtml|md|markdown|rst|txt|text|pdf|epub|docx|\d[a-z]*|gz|en))+$")
_RANKS = {".html": 0, ".htm": 0, ".xhtml": 0, ".md": 1, ".markdown": 1, ".ipynb": 1, ".rst": 2, ".epub": 3, ".docx": 3}
_OTHERS = 4  # the rank of formats with pages or without markup
_MOST = 8  # files of one stem to compare a file with
_WORD = re.compile(r"\w+")


def sketch_of(passages: "Iterable[Passage]") -> "Sketch":
    """The smallest hashes of the shingles of a document; the same on every machine."""
    import numpy as np

    words = [word for passage in passages for word in _WORD.findall(passage.text.lower())]
    hashes = np.fromiter((zlib.crc32(word.encode("utf-8", "replace")) for word in words), np.uint64, len(words))
    mixed = hashes[: max(0, len(hashes) - _SHINGLE + 1)].copy() if len(hashes) >= _SHINGLE else hashes[:1].copy()
    for step in range(1, min(_SHINGLE, len(hashes))):
        part = hashes[step : step + len(mixed)]
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + part  # wraps around
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return np.unique((mixed >> np.uint64(32)).astype(np.uint32))[:_SIZE]


def packed(sketch: "Sketch") -> str:
    """A sketch as text, to be kept in a file."""
    return base64.b64encode(sketch.astype("<u4").tobytes()).decode("ascii")


def unpacked(text: str) -> "Sketch":
    """The sketch that `packed` wrote; raises `ValueError`."""
    import numpy as np

    try:
        return np.frombuffer(base64.b64decode(text, validate=True), "<u4").astype(np.uint32)
    except binascii.Error as error:
        raise ValueError(f"not a sketch of a file: {error}") from error


def likeness(one: "Sketch", other: "Sketch") -> float:
    """About the share of shingles that two documents have in common; 0 for a document without words."""
    import numpy as np

    if not len(one) or not len(other):
        return 0.0
    smallest = np.union1d(one, other)[: max(len(one), len(other))]
    both = np.intersect1d(one, other, assume_unique=True)
    return float(np.isin(smallest, both, assume_unique=True).sum() / len(smallest))


class Twins:
    """Finds for a file of a source the one that it repeats. `names` are all files of the source.

    `read` gives the sketch of a file that was not added yet; None if it cannot be read.
    """

    def __init__(self, names: Iterable[str], read: "Callable[[str], Sketch | None]") -> None:
        self._read = read
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        self._names = set(names)
        for name in sorted(self._names):
            self._by_stem[_stem(name)].append(name)
        self._sketches: dict[str, Sketch | None] = {}
        self._by_hash: dict[int, list[str]] = defaultdict(list)

    def page_of(self, name: str) -> str | None:
        """The page that a file is the source of, by the names alone."""
        parts = PurePosixPath(name).parts
        if "_sources" not in parts:
            return None
        at = parts.index("_sources")
        stem = PurePosixPath(*parts[:at], *parts[at + 1 :]).as_posix()
        base = _SUFFIXES.sub("", stem)
        return next((page for suffix in (".html", ".htm") if (page := base + suffix) in self._names), None)

    def add(self, name: str, sketch: "Sketch") -> None:
        """Remember a file that is kept."""
        self._sketches[name] = sketch
        for value in sketch[:_KEYS].tolist():
            self._by_hash[value].append(name)

    def find(self, name: str, sketch: "Sketch") -> str | None:
        """The file that a file repeats, or None."""
        if len(sketch) < _FEWEST:
            return None
        return self._in_better_format(name, sketch) or self._like(name, sketch)

    def _in_better_format(self, name: str, sketch: "Sketch") -> str | None:
        rank = _rank(name)
        better = [other for other in self._by_stem[_stem(name)] if _rank(other) < rank]
        better.sort(key=lambda other: (_rank(other), _distance(name, other), other))
        for other in better[:_MOST]:
            if other not in self._sketches:
                self._sketches[other] = self._read(other)
            known = self._sketches[other]
            if known is not None and likeness(sketch, known) >= _SAME_STEM:
                return other
        return None

    def _like(self, name: str, sketch: "Sketch") -> str | None:
        candidates = {other for value in sketch[:_KEYS].tolist() for other in self._by_hash.get(value, ())}
        for other in sorted(candidates - {name}):
            known = self._sketches[other]
            worse = _stem(other) == _stem(name) and _rank(other) > _rank(name)
            if known is not None and not worse and likeness(sketch, known) >= _SAME:
                return other
        return None


def _stem(name: str) -> str:
    return _SUFFIXES.sub("", PurePosixPath(name).name.lower())


def _rank(name: str) -> int:
    path = PurePosixPath(name.lower())
    return _RANKS.get(path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix, _OTHERS)


def _distance(one: str, other: str) -> int:
    """How many folders lie between two files."""
    first, second = PurePosixPath(one).parent.parts, PurePosixPath(other).parent.parts
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    return len(first) + len(second) - 2 * shared
