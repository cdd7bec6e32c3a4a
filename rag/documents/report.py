"""What was read of a corpus, and what was not: for the progress of a build, its manifest and its log."""

from collections import Counter
from dataclasses import dataclass, field

from rag.base.errors import FormatError

EXAMPLES = 3  # of files that are no documents, by kind
_REASONS = 20


@dataclass(slots=True)
class ReadReport:
    """What one pass over a corpus has read so far, and what it left out; it fills while the passages are taken.

    Files of folders that are not read are counted in `links`, `unread` and `passed`, each in one of them.
    """

    bytes_read: int = 0  # of source files as they lie on disk; for a Lucene index, its passages
    bad: int = 0  # documents and lines that were skipped as they cannot be read
    reasons: list[str] = field(default_factory=list)  # the errors of the first 20 of them
    dropped: Counter[str] = field(default_factory=Counter)  # parts of documents that were left out, by what they are
    twins: dict[str, str] = field(default_factory=dict)  # a file that repeats another one -> that other file
    sketches: dict[str, str] = field(default_factory=dict)  # of the documents read, to find their twins in an update
    links: int = 0  # that lead out of their folder
    unread: Counter[str] = field(default_factory=Counter)  # files that are no documents, by suffix
    examples: dict[str, list[str]] = field(default_factory=dict)  # the names of up to three of them, by suffix
    passed: Counter[str] = field(default_factory=Counter)  # other files and folders, by the reason

    def skip(self, error: FormatError) -> None:
        """Count a document or a line that cannot be read."""
        self.bad += 1
        if len(self.reasons) < _REASONS:
            self.reasons.append(str(error))

    def leave(self, name: str, kind: str) -> None:
        """Count a file that is no document."""
        self.unread[kind] += 1
        if self.unread[kind] <= EXAMPLES:
            self.examples.setdefault(kind, []).append(name)
