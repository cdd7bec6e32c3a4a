"""Errors that a person can mend: one line that names the thing, what was there and the way out."""


class UserError(Exception):
    """Root of all errors shown as one line with exit code 2; any other exception keeps its traceback."""


class FormatError(UserError):
    """A file is not in the format it should be in; the message starts with `file:line` and names the field."""


def first_line(error: Exception) -> str:
    """The first 200 characters of what a library's error says, without line breaks; its type where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
