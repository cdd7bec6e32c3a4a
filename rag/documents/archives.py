"""Zip archives, which office documents and e-books are, opened with care: a small file may unpack to anything."""

import io
import zipfile

from autoais.base.errors import first_line
from rag.base.errors import FormatError

_MAX_UNPACKED = 512 << 20  # bytes of all files
_FILE = 64 << 20  # bytes of one
_FILES = 20_000
_RATIO = 200  # text shrinks to a tenth, and repeated markup to a hundredth
_OLE = b"\xd0\xcf\x11\xe0"


def open_zip(data: bytes, location: str) -> zipfile.ZipFile:
    """The archive; raises `FormatError` if it is broken, encrypted, or unpacks to more than a document would."""
    if data.startswith(_OLE):
        raise FormatError(
            f"{location}: encrypted, or of an old Office program: save it without a password as a new file"
        )
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        files = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
        raise FormatError(f"{location}: broken: {first_line(error)}") from error
    if any(file.flag_bits & 1 for file in files):
        raise FormatError(f"{location}: encrypted: save it without a password first")
    size = sum(file.file_size for file in files)
    texts = [file for file in files if file.filename.endswith((".xml", ".rels", "html", ".htm", ".ncx", ".opf"))]
    largest = max((file.file_size for file in texts), default=0)
    packed_size = sum(file.compress_size for file in files)
    if len(files) > _FILES or size > _MAX_UNPACKED or largest > _FILE or size > _RATIO * packed_size + (1 << 20):
        raise FormatError(f"{location}: refused, as its {len(files):,} files unpack to {size >> 20:,} MiB")
    return archive


def read_member(archive: zipfile.ZipFile, name: str, location: str) -> bytes:
    """The bytes of a file in an archive; raises `FormatError` if it is missing or broken."""
    try:
        with archive.open(name) as file:
            data = file.read(_FILE + 1)
    except Exception as error:
        raise FormatError(f"{location}: broken: {name!r}: {first_line(error)}") from error
    if len(data) > _FILE:
        raise FormatError(f"{location}: refused, as {name!r} unpacks to more than {_FILE >> 20} MiB")
    return data
