"""The data that retrievers add to an index: one folder each, which is either complete or missing."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import gaierror
from typing import TYPE_CHECKING, Any

from autoais.base.io.jsonl import dumps, parse_object, write_atomic
from autoais.base.io.locks import file_lock
from autoais.base.io.provenance import command, versions
from rag.base.errors import FormatError, IndexingError, RagError
from rag.index.folder import LOCK
from rag.index.integrity import PART as _MANIFEST
from rag.index.integrity import PARTS, find_faults, fingerprints
from rag.index.manifest import read_fingerprints, read_manifest
from rag.index.retriever_config import RetrieverConfig

if TYPE_CHECKING:
    from rag.index.index import Index

_PLAN = "plan.json"

RowProgress = Callable[[int, str], None]
"""Called with the number of passages done and the name of the step."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a part, in bytes: `memory` to build it, `resident` to search it, and `disk`."""

    memory: int
    resident: int
    disk: int
    why: str = ""  # the reason for the kind of index, if one was chosen


def _home(index: "Index", config: RetrieverConfig) -> Path:
    if index.build is None:
        raise IndexingError(
            f"the index {index.name} cannot hold the data of {config.name!r}: build one with rag index build"
        )
    if not config.name or Path(config.name).name != config.name or config.name.startswith("."):
        raise RagError(f"a retriever that adds to an index needs a plain name, not {config.name!r}")
    return index.build / PARTS / config.name


def open_part(index: "Index", config: RetrieverConfig) -> tuple[Path, dict[str, Any]]:
    """The folder and manifest of a retriever's data; raises `IndexingError` if missing, damaged or not its own."""
    home = _home(index, config)
    if not home.exists() and (old := home.with_name(f"{config.name}.old")).exists():
        home = old  # a run was stopped while it replaced the part
    path = home / _MANIFEST
    if not path.is_file():
        half_built = ", it is half-built" if home.with_name(f"{config.name}.new").exists() else ""
        raise IndexingError(
            f"index {index.name} has no data of {config.name!r} yet{half_built}: "
            f"add it with rag index build --to {home.parents[2]} --retriever NAME (the one that you search with)"
        )
    try:
        part = parse_object(path.read_bytes(), str(path))
        checksum, record = part["checksum"], part["recipe"]
        files = read_fingerprints(part, str(path))
    except (OSError, FormatError, KeyError) as error:
        raise IndexingError(f"{path} is damaged ({error}): add the data again") from error
    if checksum != index.manifest["checksum"]:
        raise IndexingError(f"{home} was built from other passages than the index: add the data again")
    if record != config.record():
        raise IndexingError(f"{home} was built with another retriever of that name: add the data again")
    for fault in find_faults(home, files):  # FAISS may search a damaged index for ever
        raise IndexingError(f"{home}: {fault}, it is damaged: add the data again")
    return home, part


def read_data_configs(index: "Index") -> list[RetrieverConfig]:
    """The configurations of the retrievers that have their data in an index; of several, in each of them."""
    if index.members:
        first, *others = (read_data_configs(member) for member in index.members.values())
        return [config for config in first if all(config in configs for configs in others)]
    configs = []
    for path in sorted((index.build / PARTS).glob(f"*/{_MANIFEST}")) if index.build else ():
        try:
            configs.append(RetrieverConfig.of(parse_object(path.read_bytes(), str(path))["recipe"]))
        except (OSError, FormatError, KeyError, TypeError, AttributeError):
            continue  # damaged: to be added again in any case
    return configs


def remove_work(index: "Index", config: RetrieverConfig) -> None:
    """Remove what a run that failed left of a part."""
    home = _home(index, config)
    shutil.rmtree(home.with_name(f"{config.name}.new"), ignore_errors=True)


@contextmanager
def adding(
    index: "Index", config: RetrieverConfig, plan: Mapping[str, Any], *, updating: bool = False
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a work folder and the record for its manifest; at the end of the block, the folder becomes the part.

    Raises as `beginning`, whose folder it is.
    """
    with beginning(index, config, plan, updating=updating) as (work, record):
        yield work, record
        home = _home(index, config)
        old = home.with_name(f"{config.name}.old")
        files = {name: stamp for name, stamp in fingerprints(work).items() if name != _PLAN}
        provenance = {"versions": versions(), "command": command(), "files": files}
        write_atomic(work / _MANIFEST, [dumps(record | provenance, indent=2)])
        if home.exists():
            home.replace(old)
        work.replace(home)
        # Removed last: after a kill before this point, the next run recognises its work folder by the plan.
        (home / _PLAN).unlink()
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def beginning(
    index: "Index", config: RetrieverConfig, plan: Mapping[str, Any], *, updating: bool = False
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a work folder, which stays for `adding` to go on with, and the record so far.

    The folder holds the files of a stopped run if its `plan` (everything that determines the bytes) is the same, so
    that the block can resume; otherwise it is empty. Raises `IndexingError` on a full or failing disk, or if another
    process is adding the part or updating the index; with `updating`, it is this process that updates it.
    """
    home = _home(index, config)
    work, old = (home.with_name(f"{config.name}.{suffix}") for suffix in ("new", "old"))
    full_plan = {"recipe": config.record(), "checksum": index.manifest["checksum"], **plan}
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        lock = home.with_name(f".{config.name}.lock")
        busy = IndexingError(f"another process is adding {config.name!r} to {index.name}; wait for it")
        with ExitStack() as stack:
            if not updating:
                stack.enter_context(_current(home.parents[2], home.parents[1].name))
            stack.enter_context(file_lock(lock, busy))
            if old.exists() and not home.exists():  # stopped between the two moves below
                old.replace(home)
            shutil.rmtree(old, ignore_errors=True)
            if work.exists() and _read(work / _PLAN) != json.loads(dumps(full_plan)):
                shutil.rmtree(work)
            work.mkdir(exist_ok=True)
            write_atomic(work / _PLAN, [dumps(full_plan)])
            yield work, full_plan
    except OSError as error:
        is_elsewhere = isinstance(error.filename, str) and not Path(error.filename).is_relative_to(home.parent)
        if is_elsewhere or isinstance(error, (ConnectionError, TimeoutError, gaierror)):
            raise  # of the block: a model that is not there, a server that is away
        raise IndexingError(f"{work}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _current(folder: Path, build: str) -> Iterator[None]:
    """Keep others from replacing a build; raises `IndexingError` if it is being replaced, or was."""
    busy = IndexingError(f"{folder} is being built or updated by another process; wait for it")
    with file_lock(folder / LOCK, busy, is_shared=True):
        if read_manifest(folder)["build"] != build:
            raise IndexingError(f"{folder} was updated since it was opened: run the command again")
        yield


def _read(path: Path) -> object:
    try:
        return parse_object(path.read_bytes(), str(path))
    except (OSError, FormatError):
        return None


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def parse_size(size: str) -> int:
    """Parse a size such as `8GiB`, `500MB` or `1.5g` into bytes, or a number such as `33M`.

    Raises `RagError` for anything else.
    """
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]+)?)\s*([kmg]i?)?b?", size.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise RagError(f"{size!r} is not a size or number; write passages as 33M, memory as 8GiB or 500MB")
    return int(float(match[1]) * _UNITS[match[2] or ""])
