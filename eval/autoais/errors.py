"""Errors that a person can mend: one line that names the thing, what was there and the way out."""


class UserError(Exception):
    """Root of all errors shown as one line with exit code 2; any other exception keeps its traceback."""


class FormatError(UserError):
    """A file is not in the format it should be in; the message starts with `file:line` and names the field."""
