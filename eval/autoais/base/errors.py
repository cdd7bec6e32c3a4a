"""Errors that users can fix. The message is one line: it names the thing, its value and the way out.

UserError              shown by the commands as one line, exit code 2
├── FormatError        a file is not in the expected format: `file:line`, field, what was there
├── CitationError      an answer cites a passage that it does not hold, or quotes text that is not in it
└── UsageError         a wrong call, such as one string instead of a list of strings; also a TypeError
"""

from collections.abc import Iterable
from io import UnsupportedOperation
from os import PathLike
from pathlib import Path, PurePath
from typing import TypeVar

T = TypeVar("T")
_IN_CHECKOUT = (Path(__file__).parents[3] / "pyproject.toml").is_file()


class UserError(Exception):
    """Base class of errors that commands show as one line, with exit code 2; others keep their traceback."""


class FormatError(UserError):
    """A file is not in the expected format; the message starts with `file:line` and names the field."""


class CitationError(UserError):
    """An answer cites a passage that it does not hold, or quotes text that is not in the passage."""


class UsageError(UserError, TypeError):
    """A call with an argument of the wrong kind."""


def check_type(name: str, value: object, expected: str, *types: type) -> None:
    """Raise `UsageError` unless the value is of one of the types; a bool is no number. `expected` names the types."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise UsageError(f"{name} should be {expected}, found {type(value).__name__}")


def check_list(name: str, value: object, expected: str = "a list") -> None:
    """Raise `UsageError` for one string (or a path) in place of a list, and for a value that is no iterable."""
    if isinstance(value, str | PurePath):
        raise UsageError(f"{name} should be {expected}, found one string; write [{str(value)[:30]!r}]")
    if isinstance(value, bytes):  # an iterable of numbers
        raise UsageError(f"{name} should be {expected}, found bytes")
    check_type(name, value, expected, Iterable)


def tuple_of(kind: type[T], name: str, value: Iterable[object], expected: str) -> tuple[T, ...]:
    """Return the items of a list as a tuple; raises `UsageError` as `check_list`, and for an item of another type."""
    check_list(name, value, expected)
    items = tuple(value)
    for item in items:
        if not isinstance(item, kind):
            raise UsageError(f"{name} should be {expected}, found {type(item).__name__} in it")
    return items  # type: ignore[return-value]  # each was checked


def as_path(name: str, value: object) -> Path:
    """Return the path of a file; raises `UsageError` for a value that is neither a string nor a path."""
    if isinstance(value, str | PathLike):
        return Path(value)
    raise UsageError(f"{name} should be the path of a file, found {type(value).__name__}")


def unreadable(path: Path, error: OSError) -> UserError:
    """Return the error for a file that cannot be read."""
    way_out = "; name a file" if path.is_dir() else ""
    if isinstance(error, UnsupportedOperation):  # a pipe, such as `<(command)`
        return UserError(f"{path}: a pipe, which cannot be read twice; save it to a file first")
    return UserError(f"{path}: cannot be read: {error.strerror or error}{way_out}")


def missing_extra(feature: str, extra: str, package: str = "a package that is not installed") -> UserError:
    """Return the error for an optional package that is not installed."""
    return UserError(f"{feature} needs {package}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra: from the folder of the checkout, or into an installed wheel.

    pip adds the extras of an installed distribution without looking for it on PyPI.
    """
    return f'pip install -e ".[{extra}]"' if _IN_CHECKOUT else f'pip install "attributed-rag[{extra}]"'


def json_kind(value: object) -> str:
    """Return the kind of a JSON value in the words of JSON: `a string`, `an object`, `null`, `true`."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names = {str: "a string", int: "an integer", float: "a number", list: "a list", tuple: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


AIS_REPORT = "use `autoais ais-report FILE`"


def field_names(names: Iterable[str]) -> str:
    """Return the names of fields in a file, sorted, on one printable line of at most 200 characters."""
    line = ", ".join(sorted(names))[:200]
    return "".join(c if c.isprintable() else "\ufffd" for c in line) or "no fields"


def reason_of(error: BaseException) -> str:
    """Return why something failed, on one line: of an error of the system, without its number and the path."""
    return error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 200 characters; the error's type if it has no message."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
