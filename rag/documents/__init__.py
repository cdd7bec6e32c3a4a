"""Documents to passages: one reader for each type of file, and one way to cut their blocks into passages.

`rag.documents.blocks` says how the text of a passage looks.
"""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from mimetypes import MimeTypes
from pathlib import Path, PurePosixPath
from stat import S_ISREG

from rag.base.errors import FormatError
from rag.base.types import Passage
from rag.documents.blocks import Block, Kind
from rag.documents.contents import drop_contents, drop_references
from rag.documents.converters.programs import INSTALL, find_program
from rag.documents.formats import FORMATS, is_plain_text
from rag.documents.raw_file import HEAD, RawFile
from rag.documents.sources import MAX_FILE_SIZE
from rag.documents.split import passages
from rag.documents.time_limit import limit_time
from rag.documents.titles import is_generic, is_name, is_placeholder

SUFFIXES = frozenset(FORMATS)
SECONDS = 90.0  # for one file, at most; a PDF has a shorter limit of its own
_AT_LEAST, _A_MEGABYTE = 8.0, 20.0  # seconds for a small file, and more for each megabyte
_FIRST = frozenset(["readme", "index"])  # files that are read first, of which a corpus has many
_MAN = re.compile(r"\.[1-8][a-z]{0,5}")
_README = re.compile(r"readme\.[a-z]\w*")
_TEXTS = re.compile(
    r"(?:readme|faq|install|howto|manual|guide|tutorial|quickstart|usage|notes|news|bugs|todo|hacking|contributing|"
    r"security|upgrading|porting|authors|credits|thanks|contributors|maintainers)(?:\.debian)?"
)
_NOTION_ID = re.compile(r"(?<=\S) [\da-f]{32}(?:_all)?\Z")  # what Notion adds to the name of each page
_NUMBER = re.compile(r"(?:\.\d+)?")  # a suffix that says nothing, as of `LICENSE` or `Apache-2.0`
_NO_DOCUMENTS = frozenset(["changelog", "copyright", "pkg-info"])  # histories, and a README once more
_SETTINGS = frozenset(["cmakelists.txt", "robots.txt"])
_REQUIREMENTS = re.compile(r"(?:[\w-]+[-_])?requirements(?:[-_][\w-]+)?\.txt")
_REQUIRED = re.compile(rb"(?:[ \t]*(?:#|-)[^\n]*|[\w.-]+(?:\[[\w, -]*\])?[ \t]*(?:[=<>!~;@\\][^\n]*)?|[ \t]*)(?:\n|\Z)")


@dataclass(slots=True)
class Document:
    """What was read of a file: its own title ("" if it has none), its passages, and counts of what was left out."""

    title: str
    passages: list[Passage]
    dropped: Counter[str] = field(default_factory=Counter)


def read_document(path: Path | Traversable, name: str) -> list[Passage]:
    """The passages of a file, ids `name#1`, `name#2`, ...; raises `FormatError` if it cannot be read."""
    return load_document(path, name).passages


def load_document(path: Path | Traversable, name: str) -> Document:
    """Read a file into passages with ids `name#1`, `name#2`, ...; raises `FormatError` if it cannot be read.

    The result depends on the file and the name alone.
    """
    kind = kind_of(name) or (".txt" if _may_be_text(name) else None)
    if kind is None:
        raise FormatError(f"{path}: not a known type of document ({', '.join(sorted(SUFFIXES))})")
    omissions: Counter[str] = Counter()
    file = RawFile(_bytes(path), str(path), name, omissions)
    seconds = SECONDS if kind == ".pdf" else min(SECONDS, _AT_LEAST + _A_MEGABYTE * len(file.data) / 1e6)
    late = FormatError(f"{path}: takes longer than {seconds:.3g} seconds to read")
    try:
        title, result = limit_time(lambda: _read(file, kind), seconds, late)
    except (RecursionError, MemoryError) as error:
        raise FormatError(f"{path}: cannot be read: {type(error).__name__}") from error
    return Document(title, result, +omissions)


def _read(file: RawFile, kind: str) -> tuple[str, list[Passage]]:
    """The title and the passages."""
    title, blocks = FORMATS[kind].read(file)
    title = "" if is_placeholder(title) and not is_name(title) else title
    lines = [*drop_references(drop_contents(blocks, file.dropped), file.dropped)]
    return title, list(passages(lines, file.name, title or _document_title(lines, file.name)))


def _document_title(blocks: list[Block], name: str) -> str:
    """What to call a document without a title: as its file, or a README as the heading that it begins with."""
    stem = _stem(name)
    first = blocks[0] if blocks else None
    if stem.casefold() in _FIRST and first is not None and first.kind is Kind.HEADING and not is_generic(first.text):
        return first.text
    return stem


def _stem(name: str) -> str:
    """The name of a file without its folder and the suffixes that tell how it is read."""
    file = PurePosixPath(PurePosixPath(name).name.removesuffix(".gz"))
    suffix = file.suffix.lower()
    is_known = suffix in FORMATS or _MAN.fullmatch(suffix)
    return _NOTION_ID.sub("", file.stem if is_known else file.name)


def kind_of(name: str) -> str | None:
    """The suffix that tells how a file is read, in lower case; None if it is no document.

    Files such as README and FAQ need none.
    """
    path = PurePosixPath(name.lower())
    if path.suffix == ".gz":
        path = path.with_suffix("")
    if path.suffix in FORMATS:
        return path.suffix
    if _TEXTS.fullmatch(path.name) or _is_readme(path.name):
        return ".txt"
    return ".1" if _MAN.fullmatch(path.suffix) else None


def _is_readme(name: str) -> bool:
    """Whether a file is a README about something, such as README.Maildir, and not one in a format that has a type."""
    return _README.fullmatch(name) is not None and MimeTypes().guess_type(name)[0] is None


def _may_be_text(name: str) -> bool:
    """Whether a name says nothing of what a file holds; some of these are not read."""
    bare = name.lower().removesuffix(".gz")
    return _NUMBER.fullmatch(PurePosixPath(bare).suffix) is not None and PurePosixPath(bare).name not in _NO_DOCUMENTS


def is_document(path: Path) -> bool:
    """Whether a file is of a known type, by its name, and where other files are called so, by its beginning."""
    kind, name = kind_of(path.name), path.name.lower()
    if (kind is None and not _may_be_text(name)) or name in _SETTINGS:
        return False
    if _REQUIREMENTS.fullmatch(name):
        check: Callable[[bytes], bool] = _is_no_list_of_packages
    elif kind is None:
        check = is_plain_text
    elif (part := FORMATS[kind].check) is not None:
        or_text = FORMATS[kind].or_text
        check = lambda head: part(head) or (or_text and is_plain_text(head))  # noqa: E731
    else:
        return True
    head = _head(path)
    return head is not None and check(head)


def missing_program(path: Path) -> str | None:
    """The program that a document needs to be read, with how to install it; None if all is there."""
    kind = kind_of(path.name)
    program = FORMATS[kind].program if kind is not None else ""
    if kind is None or not program or find_program(program) is not None:
        return None
    check, head = FORMATS[kind].check, _head(path) if FORMATS[kind].or_text else None
    if check is not None and head is not None and not check(head):
        return None  # it is plain text
    return f"{program} ({INSTALL[program]})"


def _head(path: Path) -> bytes | None:
    """The first bytes of a file, unpacked if it is gzip; None if it cannot be read."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.read(HEAD)
    except (OSError, EOFError, zlib.error):
        return None


def _is_no_list_of_packages(head: bytes) -> bool:
    """Whether the beginning of a file says more than which packages a program needs, a line each."""
    lines = head.replace(b"\r", b"").splitlines(keepends=True)[: -1 if len(head) == HEAD else None]
    return not all(map(_REQUIRED.fullmatch, lines))


def _bytes(path: Path | Traversable) -> bytes:
    if isinstance(path, Path):
        _check(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    return unpack_gzip(data, str(path)) if path.name.lower().endswith(".gz") else data


def _check(path: Path) -> None:
    """Refuse a file that is too large, or no file, before it is read."""
    try:
        status = path.stat()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    if not S_ISREG(status.st_mode):
        raise FormatError(f"{path}: not a file")
    if status.st_size > MAX_FILE_SIZE:
        raise FormatError(
            f"{path}: {status.st_size >> 20:,} MiB; a document may have at most {MAX_FILE_SIZE >> 20} MiB"
        )


def unpack_gzip(data: bytes, location: str) -> bytes:
    """Unpack gzip; raises `FormatError` if it is broken, cut off, or unpacks to more than a document may be."""
    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MAX_FILE_SIZE + 1)
    except EOFError as error:
        raise FormatError(f"{location}: the compressed file is cut off") from error
    except (OSError, zlib.error) as error:
        raise FormatError(f"{location}: the compressed file is broken: {error}") from error
    if len(content) > MAX_FILE_SIZE:
        raise FormatError(
            f"{location}: unpacks to more than {MAX_FILE_SIZE >> 20} MiB, the most that a document may have"
        )
    return content
