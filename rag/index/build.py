"""Builds an index; a build that is stopped, killed or out of disk leaves the existing index intact."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.io.jsonl import dumps, write_atomic
from autoais.io.locks import exclusive_lock
from autoais.io.provenance import command
from rag.corpus.reader import Corpus
from rag.errors import FormatError, IndexingError
from rag.index.manifest import BUILD, MANIFEST, described
from rag.index.passages import PassageStore
from rag.index.postings import BM25Writer
from rag.types import Passage

_LOCK = ".rag-lock"
_BATCH = 1000
_HEAP_BYTES = 500_000_000  # with half of it, a million passages end in twice the segments, which search slower

Progress = Callable[[Corpus, int], None]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated needs of a build, in bytes."""

    memory: int
    disk: int


def estimate(corpus: Corpus) -> Estimate:
    """Estimate memory (the writer's heap and caches) and disk (the passages, and about 0.4 times that for postings)."""
    return Estimate(memory=_HEAP_BYTES + 100_000_000, disk=int(corpus.bytes_unpacked * 1.45))


def build(corpus: Corpus, to: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Build an index in the folder `to` and return its manifest.

    An existing index stays in use until the new manifest replaces the old one atomically, so a build that is stopped,
    killed or out of disk loses nothing; the next build removes its files. Raises `IndexingError` (a folder that is not
    an index, a full disk, no passages) or `FormatError` (a broken line).
    """
    made = not to.exists()
    with _claimed(to):
        return _build(corpus, to, made, progress)


def _build(corpus: Corpus, to: Path, made: bool, progress: Progress | None) -> dict[str, Any]:
    try:
        work = Path(tempfile.mkdtemp(prefix=BUILD, dir=to))
    except OSError as error:
        raise IndexingError(f"{to}: cannot be written: {error.strerror}") from error
    work.chmod(0o755)
    try:
        counts, checksum = _fill(corpus, work, progress)
        manifest = {
            "build": work.name,
            **described([source.name for source in corpus.sources], sorted(corpus.formats), counts, checksum),
            "skipped": corpus.bad,
            "command": command(),
        }
        write_atomic(to / MANIFEST, [dumps(manifest, indent=2)])
    except BaseException:  # also Ctrl-C: remove the files of an unfinished build
        shutil.rmtree(work, ignore_errors=True)
        if made:
            (to / _LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                to.rmdir()
        raise
    _sweep(to, keep=work.name)
    return manifest


@contextmanager
def _claimed(to: Path) -> Iterator[None]:
    """Create the folder, or check that it is an index or empty, and lock it against other builds."""
    if to.exists() and not to.is_dir():
        raise IndexingError(f"{to} is a file; name a folder for the index")
    with ExitStack() as stack:
        try:
            to.mkdir(parents=True, exist_ok=True)
            if not all(_ours(path.name) for path in to.iterdir()):
                raise IndexingError(f"{to} holds other files and is not an index; name a new or an empty folder")
            stack.enter_context(exclusive_lock(to / _LOCK, IndexingError(f"{to}: another build is running in it")))
        except OSError as error:
            raise IndexingError(f"{to}: cannot be written: {error.strerror}") from error
        yield


def _ours(name: str) -> bool:
    # A kill while the manifest is written can leave `.manifest.json.*`.
    return name in (MANIFEST, _LOCK) or name.startswith((BUILD, f".{MANIFEST}."))


def _sweep(to: Path, keep: str) -> None:
    """Remove the files of earlier builds."""
    for path in to.iterdir():
        if _ours(path.name) and path.name not in (MANIFEST, _LOCK, keep):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _fill(corpus: Corpus, work: Path, progress: Progress | None) -> tuple[dict[str, int], str]:
    store = PassageStore.create(work / "passages.sqlite")
    postings = BM25Writer(work / "bm25", _HEAP_BYTES)
    try:
        return write_passages(
            corpus.read(), store, postings, corpus.refuse, lambda rows: progress and progress(corpus, rows)
        )
    except BaseException:
        postings.abandon()
        raise


def write_passages(
    located: Iterable[tuple[str, Passage]],
    store: PassageStore,
    postings: BM25Writer,
    refuse: Callable[[FormatError], None],
    progress: Callable[[int], object],
) -> tuple[dict[str, int], str]:
    """Write all passages to store and postings; return counts and the SHA-256 of ids, headings and texts in order."""
    digest = hashlib.sha256()
    rows = untitled = 0
    stream = _encodable(located, refuse)
    while batch := list(islice(stream, _BATCH)):
        added = store.add(rows, [passage for _, passage, _ in batch])
        for (where, passage, encoded), is_new in zip(batch, added, strict=True):
            if not is_new:
                refuse(FormatError(f"{where}: id {passage.id!r} occurs twice in the corpus"))
                continue
            digest.update(encoded)
            postings.add(rows, passage)
            rows += 1
            untitled += not passage.headings
        progress(rows)
    if not rows:
        raise IndexingError("the corpus holds no passages")
    store.finish()
    postings.finish()
    return {"passages": rows, "untitled": untitled}, digest.hexdigest()


def _encodable(
    located: Iterable[tuple[str, Passage]], refuse: Callable[[FormatError], None]
) -> Iterator[tuple[str, Passage, bytes]]:
    for where, passage in located:
        try:
            own = "" if passage.headings == passage.default_headings else passage.headings
            parts = (passage.id, passage.title, passage.section, passage.text, own)
            encoded = "\x1f".join(parts).encode("utf-8")
        except UnicodeEncodeError:  # JSON can contain a lone surrogate: "\ud83d"
            refuse(FormatError(f"{where}: passage {passage.id!r} contains a lone surrogate, which is not a character"))
        else:
            yield where, passage, encoded
