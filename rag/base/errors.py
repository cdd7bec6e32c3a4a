"""Errors of `rag`, each a one-line message that says what to do.

UserError (autoais.base.errors: printed as one line, exit code 2)
├── FormatError, CitationError, UsageError    as in autoais.base.errors
└── RagError
    ├── IndexingError    an index cannot be built, opened or read
    ├── QuestionError    a question cannot be searched
    ├── StudyError       an annotation study cannot be opened, or its database cannot be reached
    ├── LinkError        a link of an annotator is not valid
    ├── PressError       an annotator's verdict does not fit what is asked
    ├── NotFoundError    a server has no index, system or passage of that name
    ├── AuthenticationError    a server does not know the key
    ├── BusyError        a server answers too many questions already
    ├── TimeLimitError   a server's time limit for a request is over
    └── ModelFailureError    a server's language model did not answer
"""

from autoais.base import errors
from autoais.base.errors import CitationError, FormatError, UsageError, UserError, check_list, check_type

__all__ = [
    "AuthenticationError",
    "BusyError",
    "CitationError",
    "FormatError",
    "IndexingError",
    "LinkError",
    "ModelFailureError",
    "NotFoundError",
    "PressError",
    "QuestionError",
    "RagError",
    "StudyError",
    "TimeLimitError",
    "UsageError",
    "UserError",
    "check_list",
    "check_type",
    "missing_extra",
]


class RagError(UserError):
    """Root of the errors that `rag` itself raises."""


class IndexingError(RagError):
    """An index cannot be built, opened or read."""


class QuestionError(RagError):
    """A question cannot be searched: it is empty, too long, or has no content word."""


class StudyError(RagError):
    """An annotation study cannot be opened, or its database cannot be reached; nothing was recorded."""


class LinkError(RagError):
    """A link of an annotator is not valid. The message does not say why, which would help to guess one."""

    def __init__(self) -> None:
        super().__init__("this link is not valid; ask who runs the study for a new one")


class PressError(RagError):
    """An annotator's verdict does not fit what is asked, as from a page that is out of date; nothing was recorded."""


class NotFoundError(RagError):
    """A server has no index, system or passage of that name."""


class AuthenticationError(RagError):
    """A server does not know the key, or wants one."""


class BusyError(RagError):
    """A server answers too many questions already; try again in `retry_after` seconds (None: the server says none)."""

    def __init__(self, message: str = "", retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimeLimitError(RagError):
    """A server's time limit for a request is over."""


class ModelFailureError(RagError):
    """A server's language model did not answer, or wrote nothing that can be used; only the server's log says why."""

    def __init__(self, message: str = "the language model did not answer") -> None:
        super().__init__(message)


def missing_extra(parameter: str, extra: str) -> RagError:
    """`autoais.base.errors.missing_extra`, as a `RagError`."""
    return RagError(str(errors.missing_extra(parameter, extra)))
