"""Sources of passages: files, folders and URLs as they were given, and which files of a folder are read."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autoais.base.urls import host_of
from rag.base.errors import RagError, UsageError

MAX_FILE_SIZE = 64 << 20  # bytes of a document
_BYTE = re.compile("[\udc80-\udcff]")  # how Python reads a byte of a path that is no UTF-8
_WEB = Path("web")  # stands for the web in the homes of sources
LUCENE = "a Lucene index"  # not a format of files: an index that was imported


MAX_SHARDS = 256
"""Shards of a collection that are searched as one."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `of` parts of a collection, counted from 1: each passage is in the part that the hash of its page says."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """From `2/8`; raises `UsageError` for anything else."""
        match = re.fullmatch(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", text)
        if match is None or int(match[1]) > int(match[2]):
            raise UsageError(f"shard {text[:30]!r}: write N/M with N from 1 to M, such as 2/8")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def holds(self, identifier: str) -> bool:
        """Whether a passage is in this part; those of a page or file, whose ids are equal up to `#`, stay together."""
        page = identifier.partition("#")[0].encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(page).digest()[:8]) % self.of == self.number - 1


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder that was given, its format, and globs for the files of a folder.

    `prefix` stands before the names of its files, so that two folders may both hold a README.md. A source with a `url`
    is a folder of the index that mirrors its pages (`rag.documents.mirrors`). With a `shard`, it is a part of the
    source.
    `removed` are globs of files that were removed from an index; they are left out beside those of `exclude`.
    """

    path: Path
    format: str
    prefix: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    url: str = ""
    shard: Shard | None = None
    removed: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Globs of the files that are not read."""
        return (*self.exclude, *self.removed)

    @property
    def given(self) -> str:
        """The source as it was given."""
        return self.url or str(self.path)

    @property
    def name(self) -> str:
        """The name of a file or folder, or the URL."""
        return self.url or self.path.name

    @property
    def home(self) -> Path:
        """The folder whose name tells the files of the source from those of another."""
        return home_of(self.path, self.url)

    def file(self, path: Path) -> "SourceFile":
        """A file of the source, with its name."""
        relative_path = "" if path == self.path else path.relative_to(self.path).as_posix()
        return SourceFile(_escape(self.prefix + (relative_path or path.name)), path, relative_path, self)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source: `within` is its path inside a folder, or empty; ids of documents begin with its name."""

    name: str
    path: Path
    within: str
    source: Source


def _escape(name: str) -> str:
    """A name of a file as text: bytes that are no UTF-8, as in old archives, as `\\xe9`."""
    return _BYTE.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", name)


def home_of(path: Path, url: str = "") -> Path:
    """The folder whose name tells the files of a source from those of another: its own, or that of its host."""
    if url:
        return _WEB / host_of(url)
    return path.absolute() if path.is_dir() else path.absolute().parent


def prefixes(homes: Sequence[Path], reserved: Mapping[str, Path] | None = None) -> list[str]:
    """A prefix for the names of each source: none for a single one, else its folder, or enough folders to differ.

    The names of pages always begin with their host. `homes` are the folders of the sources (`home_of`); `reserved` maps
    the prefixes of sources that are there to theirs.
    """
    prefixes_in_use = dict(reserved or {})
    if len(homes) == 1 and not prefixes_in_use and homes[0].parent != _WEB:
        return [""]
    items = []
    for home in homes:
        steps = [part.strip("/") for part in home.parts]
        choices = ["/".join(steps[-n:]) + "/" for n in range(1, len(steps) + 1)]
        items.append(next((choice for choice in choices if prefixes_in_use.get(choice, home) == home), choices[-1]))
        prefixes_in_use[items[-1]] = home
    return items


def is_selected(path: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether globs choose a path inside a folder: `*.md` matches a name at any depth, `old/**` all below `old`.

    A glob without a slash is compared with each part of the path, so `old` means the folder of that name too.
    """
    return (not include or _matches(path, include)) and not _matches(path, exclude)


def _matches(path: str, globs: Sequence[str]) -> bool:
    return any(matches(path, glob) for glob in globs)


def matches(path: str, glob: str) -> bool:
    """Whether a glob matches a path or a folder above it; one that begins with a slash, from the first folder on."""
    pattern, parts = _compile_glob(glob), path.strip("/").split("/")
    if "/" not in glob.rstrip("/"):
        return any(pattern.fullmatch(part) for part in parts)
    return any(pattern.fullmatch("/".join(parts[:n])) for n in range(len(parts), 0, -1))


@cache
def _compile_glob(glob: str) -> re.Pattern[str]:
    """The regular expression of a glob: `*` and `?` stay within a folder, `**` does not."""
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    tokens = re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", glob.strip("/").removeprefix("./"), re.DOTALL)
    try:
        return re.compile("".join(pieces.get(token) or _literal(token) for token in tokens), re.DOTALL)
    except re.error as error:
        raise RagError(f"{glob!r} is not a glob: {error}") from error


def _literal(token: str) -> str:
    if token.startswith("[") and len(token) > 2:
        characters = token[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[^{characters[1:]}]" if characters[0] == "!" else f"[{characters}]"
    return re.escape(token)


def check_globs(globs: Sequence[str]) -> tuple[str, ...]:
    """The globs without empty ones; raises `RagError` for one that cannot be read."""
    for glob in globs:
        _compile_glob(glob)
    return tuple(glob for glob in globs if glob.strip("/ "))


def escape_glob(name: str) -> str:
    """A glob that matches only this path inside a source."""
    return "/" + "".join(f"[{character}]" if character in "*?[" else character for character in name)


def place(path: str) -> list[str]:
    """The key by which the files of a source are sorted."""
    return path.split("/")
