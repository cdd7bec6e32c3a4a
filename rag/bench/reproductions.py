"""Reproductions: a TOML names commands, the data they need and the values that their outputs should hold.

The files are in `eval/reproductions`; one's own is read by path. It may come from somebody else: only the commands of
`COMMANDS` are run (`rag.bench.rerun`), on files that the TOML names and files that they made themselves.
"""

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag.base.errors import RagError
from rag.base.resources import names
from rag.bench.benchmark import DataFile
from rag.bench.tables import Table, is_below, read_toml

COMMANDS = (
    "autoais ais-report", "autoais compare", "autoais convert", "autoais evaluate-judge", "autoais evaluate-run",
    "autoais score", "rag answer", "rag bench judges", "rag bench run", "rag index build", "rag search",
    "python -m scripts.bench.abstention measure", "python -m scripts.bench.partial",
    "python -m scripts.bench.shared_words", "python -m scripts.bench.three_way", "python -m scripts.coverage",
    "python -m scripts.retrieval",
)  # fmt: skip
NOT_REPRODUCIBLE = "not-reproducible"  # the file of what no reproduction makes again
TOLERANCE = 5e-7  # results are rounded to six decimals

_MAX_DEPTH = 20

Expected = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Step:
    """A command, the file that it writes (None: JSON on standard output), and the values expected in it by place.

    A place is a list of keys. In a list of objects, the key `name=value` is the one object with that value; another key
    is the number of an item, from 0. Numbers may be off by `tolerance`. `result` is the file of the checkout that
    has the same values, if they are our own.
    """

    command: tuple[str, ...]
    output: str | None
    result: str | None
    tolerance: float
    expected: Mapping[tuple[str, ...], Expected]

    @property
    def line(self) -> str:
        """The command as one can type it."""
        return shlex.join(self.command)


@dataclass(frozen=True, slots=True)
class Data:
    """A file of the data folder, and where to get it."""

    file: DataFile
    source: str


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What is made again, and how.

    `minutes` is about how long it takes; None for a quick one, which takes seconds. `inputs` are files beside the TOML,
    `packages` Python packages that not every install has. `path` is the TOML.
    """

    name: str
    reproduces: str
    minutes: int | None
    data: tuple[Data, ...]
    inputs: tuple[str, ...]
    packages: tuple[str, ...]
    steps: tuple[Step, ...]
    path: Path

    @property
    def quick(self) -> bool:
        """Whether it takes seconds."""
        return self.minutes is None


def list_reproductions() -> list[Reproduction]:
    """Return the reproductions that ship with rag, sorted by name."""
    return [read_reproduction(name) for name in names("reproductions", ".toml") if name != NOT_REPRODUCIBLE]


def not_reproducible() -> list[dict[str, str]]:
    """Return `name`, `reproduces` and `reason` of each result that no reproduction makes again."""
    table, _, _ = read_toml(NOT_REPRODUCIBLE, "reproductions", "list of results")
    return [{name: row.line(name) for name in ("name", "reproduces", "reason")} for row in table.tables("results")]


def read_reproduction(name: str | Path) -> Reproduction:
    """Read a reproduction that ships with rag by name, or your own by path (`.toml`).

    Raises `RagError` for an unknown name, for a file that is not a reproduction, and for a command that is not one of
    `COMMANDS` or names code, an address or a file elsewhere.
    """
    table, home, _ = read_toml(name, "reproductions", "reproduction")
    table.only("name", "reproduces", "quick", "minutes", "data", "inputs", "packages", "steps")
    steps = tuple(map(_step, table.tables("steps")))
    if not any(step.expected for step in steps):
        raise RagError(f"{table.source}: not a reproduction: no step has expected values")
    inputs = table.lines("inputs") if "inputs" in table.row else ()
    if missing := [name for name in inputs if not is_below(name) or not (home / name).is_file()]:
        raise table.error("inputs", "files beside this one", missing[0])
    packages = table.lines("packages") if "packages" in table.row else ()
    if wrong := [name for name in packages if not name.isidentifier()]:
        raise table.error("packages", "names of Python packages", wrong[0])
    return Reproduction(
        name=table.line("name"),
        reproduces=table.line("reproduces"),
        minutes=None if table.flag("quick") else table.number("minutes", 10_000),
        data=tuple(map(_data, table.tables("data"))) if "data" in table.row else (),
        inputs=inputs,
        packages=packages,
        steps=steps,
        path=Path(name) if str(name).endswith(".toml") else home / f"{name}.toml",
    )


def _data(table: Table) -> Data:
    table.only("file", "sha256", "source")
    return Data(DataFile(table.path("file"), table.checksum()), table.line("source"))


def _step(table: Table) -> Step:
    table.only("command", "output", "result", "tolerance", "expected")
    tolerance = table.row.get("tolerance", TOLERANCE)
    if not isinstance(tolerance, int | float) or isinstance(tolerance, bool) or not 0 <= tolerance < math.inf:
        raise table.error("tolerance", "a number from 0", tolerance)
    return Step(
        command=_command(table),
        output=table.path("output") if "output" in table.row else None,
        result=table.path("result") if "result" in table.row else None,
        tolerance=tolerance,
        expected=dict(_leaves(table.table("expected"))) if "expected" in table.row else {},
    )


def _command(table: Table) -> tuple[str, ...]:
    arguments = table.lines("command")
    allowed_words = next(
        (words for words in (tuple(command.split()) for command in COMMANDS) if arguments[: len(words)] == words), None
    )
    if allowed_words is None:
        raise RagError(f"{table.source}: {' '.join(arguments)[:60]!r} may not be run; there are: {', '.join(COMMANDS)}")
    for argument in arguments[len(allowed_words) :]:
        if not _safe(argument):
            raise RagError(
                f"{table.source}: argument {argument[:60]!r} may not be given: files are named below the folder of the "
                "run, code and addresses not at all"
            )
    return arguments


def _safe(argument: str) -> bool:
    """Whether an argument is an option, a word or a path below the current folder: no code, address or other path."""
    short = re.match(r"-[^-]", argument)
    return not short and "~" not in argument and all(map(is_below, re.split("[=,]", argument)))


def _leaves(table: Table, parents: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Expected]]:
    for key, value in table.row.items():
        if isinstance(value, dict) and len(parents) < _MAX_DEPTH:
            yield from _leaves(table.table(key), (*parents, key))
        elif isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            yield (*parents, key), value
        else:
            raise table.error(key, "a number, a string, true or false", value)
