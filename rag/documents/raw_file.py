"""A file to convert, as the converters get it."""

from collections import Counter
from dataclasses import dataclass

HEAD = 16_384  # bytes read to tell whether a file is what its name says


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file to convert: its bytes, where it lies (for errors), its name in the corpus, and counts of dropped parts."""

    data: bytes
    where: str
    name: str
    dropped: Counter[str]
