"""TOML files of `rag bench`, checked value by value: they may come from somebody else, and are data."""

import re
import tomllib
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Any

from rag.base.errors import RagError, check_type
from rag.base.resources import Kind, folder, names

_MAX_BYTES = 1 << 20  # bytes of a file
_MAX_CHARACTERS = 400  # characters of a line
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KINDS = {str: "a string", int: "an integer", bool: "true or false", dict: "a table", list: "a list"}


def read_toml(
    name: str | Path, kind: Kind, kind_name: str, fits: Callable[["Table"], bool] = lambda table: True
) -> tuple["Table", Path, str]:
    """Return the table of a file that ships, by name, or of one's own, by path (`.toml`); its folder; its SHA-256.

    `kind_name` names the thing in errors. Raises `RagError` for an unknown name, with the known ones that fit, and for
    a file that is no TOML.
    """
    check_type(kind_name, name, "a name or a .toml file", str, Path)
    table_names = names(kind, ".toml")
    if str(name) in table_names:
        home = Path(str(folder(kind)))
        path, source = home / f"{name}.toml", str(name)
    elif str(name).endswith(".toml"):
        path = Path(name)
        home, source = path.parent, str(name)
    else:
        fitting_names = [table_name for table_name in table_names if fits(read_toml(table_name, kind, kind_name)[0])]
        raise RagError(
            f"no {kind_name} called {str(name)!r}; there are: {', '.join(fitting_names)}, or a file that ends in .toml"
        )
    table, checksum = read_table(path, source, kind_name)
    return table, home, checksum


def read_table(path: Path | Traversable, source: str, kind_name: str) -> tuple["Table", str]:
    """Return the table of a file, and its SHA-256; `source` names the file in errors. Raises `RagError`."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise RagError(f"{source}: not a {kind_name}: it is longer than {_MAX_BYTES:,} bytes")
        table = tomllib.loads(text.decode("utf-8-sig"))  # editors of Windows write a byte order mark
    except OSError as error:
        raise RagError(f"{source}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RagError(f"{source}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise RagError(f"{source}: not a {kind_name}: {str(error).splitlines()[0]}") from error
    return Table(table, source, kind_name), sha256(text).hexdigest()


class Table:
    """A table of a TOML; a value of another type is a `RagError` that names it."""

    def __init__(self, row: Mapping[str, Any], source: str, kind_name: str) -> None:
        self.row, self.source, self.kind_name = row, source, kind_name

    def only(self, *keys: str) -> None:
        """Raise `RagError` for an unknown key, so that a typo is not ignored."""
        if unknown := sorted(set(self.row) - set(keys)):
            raise RagError(f"{self.source}: unknown setting {_quote(unknown[0])}; there are: {', '.join(sorted(keys))}")

    def error(self, name: str, expectation: str, value: object) -> RagError:
        """Return the error of a value: what it should be, and what it is."""
        return RagError(f"{self.source}: {_quote(name)} should be {expectation}, found {_quote(value)}")

    def _get(self, name: str, kind: type) -> Any:  # noqa: ANN401  (of type `kind`)
        if name not in self.row:
            raise RagError(f"{self.source}: not a {self.kind_name}: setting {name!r} is missing")
        value = self.row[name]
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise self.error(name, _KINDS[kind], value)
        return value

    def table(self, name: str) -> "Table":
        """The table of that name."""
        return Table(self._get(name, dict), f"{self.source}: [{name}]", self.kind_name)

    def tables(self, name: str) -> list["Table"]:
        """The tables of a list, [[name]]; there is at least one."""
        tables = self._get(name, list)
        if not tables or not all(isinstance(table, dict) for table in tables):
            raise self.error(name, f"one or more tables [[{name}]]", tables)
        return [
            Table(table, f"{self.source}: [[{name}]] {number}", self.kind_name)
            for number, table in enumerate(tables, 1)
        ]

    def lines(self, name: str) -> tuple[str, ...]:
        """A list of strings; there is at least one, and none is empty."""
        lines = self._get(name, list)
        if not lines or not all(isinstance(line, str) and line.strip() for line in lines):
            raise self.error(name, "a list of names", lines)
        return tuple(lines)

    def flag(self, name: str) -> bool:
        """True or false."""
        return bool(self._get(name, bool))

    def number(self, name: str, max_value: int) -> int:
        """A whole number from 1 to `max_value`."""
        value: int = self._get(name, int)
        if not 1 <= value <= max_value:
            raise self.error(name, f"from 1 to {max_value:,}", value)
        return value

    def line(self, name: str) -> str:
        """One line of printable characters."""
        value: str = self._get(name, str)
        if not value.strip() or not value.isprintable() or len(value) > _MAX_CHARACTERS:
            raise self.error(name, f"one line of 1 to {_MAX_CHARACTERS} printable characters", value)
        return value

    def one_of(self, name: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """One of the known values; `default` stands in for a missing one."""
        value = self.line(name) if name in self.row or default is None else default
        if value not in choices:
            raise self.error(name, f"one of {', '.join(choices)}", value)
        return value

    def percentages(self, name: str, count: int) -> tuple[float, ...]:
        """A list of `count` numbers from 0 to 100."""
        values = self._get(name, list)
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if len(numbers) != len(values) or len(values) != count or not all(0 <= number <= 100 for number in numbers):
            raise self.error(name, f"{count} numbers from 0 to 100", values)
        return tuple(map(float, numbers))

    def checksum(self) -> str:
        """The SHA-256 of a file, in `sha256`."""
        value = self.line("sha256")
        if not _SHA256.fullmatch(value):
            raise self.error("sha256", "64 hexadecimal digits in lower case", value)
        return value

    def path(self, name: str) -> str:
        """A relative path that stays in its folder."""
        value = self.line(name)
        if not is_below(value):
            raise self.error(name, "a relative path that stays in its folder", value)
        return value


def _quote(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def is_below(path: str) -> bool:
    """Whether a path is relative and names nothing above its folder."""
    parts = PurePosixPath(path).parts
    safe = path.isprintable() and "\\" not in path and ":" not in path
    return safe and bool(parts) and not path.startswith("/") and ".." not in parts


def inside(root: Path, path: str, *, links: bool = True) -> Path:
    """Return the path below `root`; raises `RagError` if it leaves it, which links may do only if `links` is set."""
    target = root / path
    if not is_below(path) or not (links or target.resolve().is_relative_to(root.resolve())):
        raise RagError(f"{path!r} leaves {root}; only files below it can be named")
    return target
