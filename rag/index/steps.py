"""`rag index build`: what is built, what it takes, and how far it is."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from rag.corpus.reader import Corpus
from rag.errors import RagError
from rag.index.build import build, estimate
from rag.index.open import open_index
from rag.index.parts import Needs
from rag.index.recipes import Recipe, made_of
from rag.retrievers import kind_of
from rag.terminal import counted, megabytes, note, progress_bar

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def build_base(corpus: Corpus, to: Path) -> None:
    """Passages and postings."""
    needed = estimate(corpus)
    note(f"needs about {megabytes(needed.disk)} of disk ({_free(to)} free), {megabytes(needed.memory)} of memory")
    try:
        with progress_bar("indexing", corpus.bytes_total, corpus.unit) as advance:

            def tell(reading: Corpus, passages: int) -> None:
                advance(reading.bytes_read, f"{passages:,} passages")

            manifest = build(corpus, to, tell)
    except KeyboardInterrupt:
        note(f"stopped; {to} is as it was before")
        raise
    for reason in corpus.reasons:
        note(f"skipped {reason}")
    if corpus.bad > len(corpus.reasons):
        note(f"... and {corpus.bad - len(corpus.reasons)} more skipped")
    note(f"{counted(manifest['passages'], 'passage')} in {to}, {manifest['skipped']:,} skipped")


def check_parts(names: Sequence[str], memory: str | None) -> None:
    """`RagError` for names of recipes and amounts of memory that cannot be: before an hour's work, not after it."""
    if memory is not None:
        in_bytes(memory)
    for name in names:
        for _, recipe in made_of(name):
            kind_of(recipe)


def add_parts(to: Path, names: Sequence[str], memory: str | None) -> None:
    """The parts of recipes, added to an index that is there; a stopped run goes on from what it left."""
    budget = None if memory is None else in_bytes(memory)
    for name in names:
        parts = [(part, recipe) for part, recipe in made_of(name) if hasattr(kind_of(recipe), "add")]
        if not parts:
            note(f"{name}: adds nothing to the index")
        for part, recipe in parts:
            _add(to, part, recipe, budget)


def _add(to: Path, name: str, recipe: Recipe, memory: int | None) -> None:
    module, index = kind_of(recipe), open_index(to)
    found: Needs = module.needs(index, recipe, memory)
    disk, building, searching = (megabytes(size) for size in (found.disk, found.memory, found.resident))
    note(
        f"{name}: {found.why + '; ' if found.why else ''}needs about {disk} of disk ({_free(to)} free), "
        f"{building} of memory to build and {searching} to search"
    )
    try:
        with progress_bar(name, index.manifest["passages"], "passages") as advance:
            module.add(index, recipe, memory, advance)
    except KeyboardInterrupt:
        note("stopped; the same command goes on from here")
        raise
    note(f"{name} is in {to}")


def in_bytes(size: str) -> int:
    """`8GiB`, `500MB`, `1.5g`; `RagError` for anything else."""
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]+)?)\s*([kmg]i?)?b?", size.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise RagError(f"{size!r} is no amount of memory; write it as 8GiB or 500MB")
    return int(float(match[1]) * _UNITS[match[2] or ""])


def _free(to: Path) -> str:
    home = next(folder for folder in (to, *to.absolute().parents) if folder.exists())
    return megabytes(shutil.disk_usage(home).free)
