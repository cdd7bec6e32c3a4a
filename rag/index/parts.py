"""Parts that recipes add to an index: a folder each beside the passages, whole or not there."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.io.jsonl import dumps, parse_object, write_whole
from autoais.io.locks import alone
from autoais.io.provenance import command, versions
from rag.errors import FormatError, IndexingError, RagError
from rag.index.recipes import Recipe

if TYPE_CHECKING:
    from rag.index.index import Index

_MANIFEST = "part.json"
_PLAN = "plan.json"

Tell = Callable[[int, str], None]
"""Told how many passages are done, and what is being done."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What adding a part takes, in bytes: `memory` while it is built, `resident` while it is searched, `disk`."""

    memory: int
    resident: int
    disk: int
    why: str = ""  # what was chosen, where there was a choice


def _home(index: "Index", recipe: Recipe) -> Path:
    if index.build is None:
        raise IndexingError(f"the index {index.name} takes no part {recipe.name!r}: build one with rag index build")
    if not recipe.name or Path(recipe.name).name != recipe.name or recipe.name.startswith("."):
        raise RagError(f"a recipe that adds to an index needs a plain name, not {recipe.name!r}")
    return index.build / "parts" / recipe.name


def open_part(index: "Index", recipe: Recipe) -> tuple[Path, dict[str, Any]]:
    """The folder of a recipe's part and its manifest; `IndexingError` where it is missing, damaged or another's."""
    home = _home(index, recipe)
    if not home.exists() and (old := home.with_name(f"{recipe.name}.old")).exists():
        home = old  # another was about to take its place, and was stopped
    path = home / _MANIFEST
    if not path.is_file():
        begun = ", it is half-built" if home.with_name(f"{recipe.name}.new").exists() else ""
        raise IndexingError(
            f"index {index.name} has no part {recipe.name!r} yet{begun}: "
            f"add it with rag index build --to {home.parents[2]} --recipe NAME, the recipe that you search by"
        )
    try:
        part = parse_object(path.read_bytes(), str(path))
        made_of, recipe_made = part["checksum"], part["recipe"]
    except (OSError, FormatError, KeyError) as error:
        raise IndexingError(f"{path} is damaged ({error}): add the part again") from error
    if made_of != index.manifest["checksum"]:
        raise IndexingError(f"{home} was made of other passages than the index holds: add the part again")
    if recipe_made != recipe.record():
        raise IndexingError(f"{home} was made by another recipe of that name: add the part again")
    return home, part


@contextmanager
def adding(index: "Index", recipe: Recipe, plan: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A folder to make the part in, and the record that will be its manifest; it is the part once the block ends.

    What a stopped run left there stays if `plan` (all that decides the bytes) is the same, so that the block can go on
    from it; else it is empty. `IndexingError` on a full or failing disk, and where another process is adding it.
    """
    home = _home(index, recipe)
    work, old = (home.with_name(f"{recipe.name}.{which}") for which in ("new", "old"))
    wanted = {"recipe": recipe.record(), "checksum": index.manifest["checksum"], **plan}
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        lock = home.with_name(f".{recipe.name}.lock")
        with alone(lock, IndexingError(f"another process is adding {recipe.name!r} to {index.name}; wait for it")):
            if old.exists() and not home.exists():  # stopped between the two moves below
                old.replace(home)
            shutil.rmtree(old, ignore_errors=True)
            if work.exists() and _read(work / _PLAN) != json.loads(dumps(wanted)):
                shutil.rmtree(work)
            work.mkdir(exist_ok=True)
            write_whole(work / _PLAN, [dumps(wanted)])
            record: dict[str, Any] = dict(wanted)
            yield work, record
            write_whole(work / _MANIFEST, [dumps(record | {"versions": versions(), "command": command()}, indent=2)])
            if home.exists():
                home.replace(old)
            work.replace(home)
            # Only now: killed before, the next run goes on from `work`, which its plan says is what was begun.
            (home / _PLAN).unlink()
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise IndexingError(f"{work}: cannot be written: {error.strerror or error}") from error


def _read(path: Path) -> object:
    try:
        return parse_object(path.read_bytes(), str(path))
    except (OSError, FormatError):
        return None
