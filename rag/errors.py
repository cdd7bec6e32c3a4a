"""Errors of `rag`, each a one-line message that says what to do.

UserError (autoais.errors: printed as one line, exit code 2)
├── FormatError, CitationError, UsageError    as in autoais.errors
└── RagError
    ├── IndexingError    an index cannot be built, opened or read
    └── QuestionError    a question cannot be searched
"""

from autoais import errors
from autoais.errors import CitationError, FormatError, UsageError, UserError, check_type

__all__ = [
    "CitationError",
    "FormatError",
    "IndexingError",
    "QuestionError",
    "RagError",
    "UsageError",
    "UserError",
    "check_type",
    "missing_extra",
]


class RagError(UserError):
    """Root of the errors that `rag` itself raises."""


class IndexingError(RagError):
    """An index cannot be built, opened or read."""


class QuestionError(RagError):
    """A question cannot be searched: it is empty, too long, or has no content word."""


def missing_extra(what: str, extra: str) -> RagError:
    """`autoais.errors.missing_extra`, as a `RagError`."""
    return RagError(str(errors.missing_extra(what, extra)))
