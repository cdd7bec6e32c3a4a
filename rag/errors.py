"""Errors of `rag`, each one line that a person can act on.

UserError (autoais.errors: shown as one line, exit code 2)
├── FormatError       a line of a file is broken: `file:line`, field, what was there
└── RagError
    ├── IndexingError an index cannot be built, opened or read
    ├── QuestionError a question that cannot be searched for
    └── CitationError an answer cites what it was not shown, or quotes what is not there
"""

from autoais.errors import FormatError, UserError

__all__ = ["CitationError", "FormatError", "IndexingError", "QuestionError", "RagError", "UserError", "missing_extra"]


class RagError(UserError):
    """Root of the errors that `rag` itself raises."""


class IndexingError(RagError):
    """An index cannot be built, opened or read."""


class QuestionError(RagError):
    """A question that cannot be searched for: empty, too long, or without a content word."""


class CitationError(RagError):
    """An answer that cites a passage it was not shown, or a span that is not in the passage."""


def missing_extra(what: str, extra: str) -> RagError:
    """The one line to raise when an optional package is not installed."""
    return RagError(f'{what} needs a package that is not installed: pip install "attributed-rag[{extra}]"')
