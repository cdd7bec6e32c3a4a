"""An index is a folder: `manifest.json`, written last, names the build folder that holds passages and postings."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.jsonl import dumps, field, parse_object, write_whole
from autoais.provenance import command, versions
from rag.analysis import ANALYZER
from rag.corpus import DOCUMENTS, Corpus
from rag.documents import read_document
from rag.errors import FormatError, IndexingError, RagError
from rag.locks import alone
from rag.recipes import Recipe, read_recipe
from rag.resources import folder as shipped_folder
from rag.retrievers.bm25 import BM25, BM25Writer, weights_of
from rag.store import PassageStore, Store
from rag.types import Passage

HANDBOOK = "handbook"
FORMAT_VERSION = 1
_RECIPE = "bm25"
_RECIPE_NOTE = "k1 and b are fixed by tantivy's Python binding"
_MANIFEST = "manifest.json"
_BUILD = ".rag-build-"
_LOCK = ".rag-lock"
_BATCH = 1000
_HEAP_BYTES = 500_000_000  # half of it leaves a million passages in twice the segments, which take longer to search
_SMALL_HEAP_BYTES = 15_000_000  # the least Tantivy takes

Progress = Callable[[Corpus, int], None]


@dataclass(frozen=True, slots=True)
class Index:
    """An opened index: its manifest, its passages and the BM25 retriever over them.

    `build` is the folder that holds them, and the parts that recipes add (`rag.parts`); None for one in memory, and for
    one that Anserini made, whose folder is `lucene` and which has no BM25 but Lucene's.
    """

    name: str
    build: Path | None
    manifest: dict[str, Any]
    store: Store
    postings: BM25 | None
    lucene: Path | None = None

    @property
    def bm25(self) -> BM25:
        """BM25 as the recipe `bm25` has it; `IndexingError` for an index that Anserini made."""
        if self.postings is None:
            raise IndexingError(
                f"{self.name} is a Lucene index: search it by --recipe lucene, or import it (rag index import)"
            )
        return self.postings


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a build will need, in bytes."""

    memory: int
    disk: int


def estimate(corpus: Corpus) -> Estimate:
    """Memory and disk of a build: the writer's heap, and caches; passages as they are plus about 0.4 of postings."""
    return Estimate(memory=_HEAP_BYTES + 100_000_000, disk=int(corpus.bytes_unpacked * 1.45))


def build(corpus: Corpus, to: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Build an index in the folder `to` and return its manifest.

    An index that is already there stays in use until the new manifest replaces the old in one step, so a build that
    is stopped, killed or out of disk loses nothing; what it left behind is removed by the next build.
    Raises `IndexingError` (a folder that is no index, a full disk, no passages) or `FormatError` (a broken line).
    """
    made = not to.exists()
    with _claimed(to):
        return _build(corpus, to, made, progress)


def _build(corpus: Corpus, to: Path, made: bool, progress: Progress | None) -> dict[str, Any]:
    try:
        work = Path(tempfile.mkdtemp(prefix=_BUILD, dir=to))
    except OSError as error:
        raise IndexingError(f"{to}: cannot be written: {error.strerror}") from error
    work.chmod(0o755)
    try:
        counts, checksum = _fill(corpus, work, progress)
        manifest = {
            "build": work.name,
            **_described([source.name for source in corpus.sources], sorted(corpus.formats), counts, checksum),
            "skipped": corpus.bad,
            "command": command(),
        }
        write_whole(to / _MANIFEST, [dumps(manifest, indent=2)])
    except BaseException:  # also Ctrl-C: an unfinished build must not stay and fill the disk
        shutil.rmtree(work, ignore_errors=True)
        if made:
            (to / _LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                to.rmdir()
        raise
    _sweep(to, keep=work.name)
    return manifest


def _described(sources: list[str], formats: list[str], counts: dict[str, int], checksum: str) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "sources": sources,
        "format": ", ".join(formats),
        **counts,
        "checksum": f"sha256:{checksum}",
        "recipe": read_recipe(_RECIPE).record(),
        "recipe_note": _RECIPE_NOTE,
        "analyzer": ANALYZER,
        "versions": versions(),
    }


@contextmanager
def _claimed(to: Path) -> Iterator[None]:
    """Make the folder, or check that it is ours to build in, and keep other builds out of it."""
    if to.exists() and not to.is_dir():
        raise IndexingError(f"{to} is a file; name a folder for the index")
    with ExitStack() as stack:
        try:
            to.mkdir(parents=True, exist_ok=True)
            if not all(_ours(path.name) for path in to.iterdir()):
                raise IndexingError(f"{to} holds other files and is not an index; name a new or an empty folder")
            stack.enter_context(alone(to / _LOCK, IndexingError(f"{to}: another build is running in it")))
        except OSError as error:
            raise IndexingError(f"{to}: cannot be written: {error.strerror}") from error
        yield


def _ours(name: str) -> bool:
    # `.manifest.json.*` is what a kill can leave of writing the manifest.
    return name in (_MANIFEST, _LOCK) or name.startswith((_BUILD, f".{_MANIFEST}."))


def _sweep(to: Path, keep: str) -> None:
    """Remove what earlier builds left, once the manifest names another."""
    for path in to.iterdir():
        if _ours(path.name) and path.name not in (_MANIFEST, _LOCK, keep):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _fill(corpus: Corpus, work: Path, progress: Progress | None) -> tuple[dict[str, int], str]:
    store = PassageStore.create(work / "passages.sqlite")
    postings = BM25Writer(work / "bm25", _HEAP_BYTES)
    try:
        return _write(corpus.read(), store, postings, corpus.refuse, lambda rows: progress and progress(corpus, rows))
    except BaseException:
        postings.abandon()
        raise


def _write(
    located: Iterable[tuple[str, Passage]],
    store: PassageStore,
    postings: BM25Writer,
    refuse: Callable[[FormatError], None],
    tell: Callable[[int], object],
) -> tuple[dict[str, int], str]:
    """Write all passages to both; return counts and the SHA-256 over ids, headings and texts in order."""
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
        tell(rows)
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
            encoded = "\x1f".join((passage.id, passage.title, passage.section, passage.text, "")).encode("utf-8")
        except UnicodeEncodeError:  # JSON can write half a surrogate pair: "\ud83d"
            refuse(FormatError(f"{where}: passage {passage.id!r} holds half a surrogate pair, which is no character"))
        else:
            yield where, passage, encoded


def open_index(folder: Path | None) -> Index:
    """Open an index by its folder, also one that Anserini made; None is the handbook that ships, indexed in memory.

    Raises `IndexingError` if the folder does not exist, is half-built, or was written by a newer version.
    """
    if folder is None:
        return _handbook()
    if not (folder / _MANIFEST).exists() and any(folder.glob("segments_*")):
        from rag.anserini import open_lucene

        return open_lucene(folder)
    manifest = _read_manifest(folder)
    work = folder / manifest["build"]
    if not work.is_dir():
        raise IndexingError(f"{folder}: {_MANIFEST} names {work.name!r}, which is not there; build the index again")
    store = PassageStore.open(work / "passages.sqlite")
    counts = {name: manifest[name] for name in ("untitled", "passages")}
    name = folder.resolve().name
    return Index(name, work, manifest, store, BM25.open(work / "bm25", store, Recipe.of(manifest["recipe"]), **counts))


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / _MANIFEST
    if not folder.exists():
        raise IndexingError(f"no index at {folder}: build one with rag index build SOURCE --to {folder}")
    if not path.exists():
        if folder.is_dir() and any(p.name.startswith(_BUILD) for p in folder.iterdir()):
            raise IndexingError(f"the index at {folder} is half-built (no {_MANIFEST}): build it again")
        raise IndexingError(f"{folder} is not an index (no {_MANIFEST})")
    try:
        manifest = parse_object(path.read_bytes(), str(path))
        version = field(manifest, "format_version", int, str(path))
    except (OSError, FormatError) as error:
        raise IndexingError(f"the manifest is damaged ({error}): build the index again") from error
    if version > FORMAT_VERSION:
        raise IndexingError(
            f"{folder} is an index of format {version}, this version reads {FORMAT_VERSION}: upgrade attributed-rag"
        )
    try:
        weights_of(Recipe.of(manifest["recipe"]))
        counts = [field(manifest, name, int, str(path)) for name in ("passages", "untitled")]
        build = field(manifest, "build", str, str(path))
        field(manifest, "checksum", str, str(path))
    except (RagError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise IndexingError(f"the manifest is damaged ({error}): build the index again") from error
    # `build` becomes a path: a manifest from elsewhere must not lead out of its folder.
    if version < 1 or min(counts) < 0 or not build.startswith(_BUILD) or Path(build).name != build:
        raise IndexingError(f"{path} is damaged: build the index again")
    return manifest


def _handbook() -> Index:
    pages = sorted(shipped_folder("handbook").iterdir(), key=lambda page: page.name)
    located = (
        (page.name, passage)
        for page in pages
        if page.name.endswith(".md")
        for passage in read_document(page, page.name)
    )
    store = PassageStore.create(None)
    postings = BM25Writer(None, _SMALL_HEAP_BYTES)
    counts, checksum = _write(located, store, postings, _raise, lambda _: None)
    manifest = _described(["docs/handbook"], [DOCUMENTS], counts, checksum) | {"skipped": 0}
    return Index(HANDBOOK, None, manifest, store, BM25(postings.index, store, read_recipe(_RECIPE), **counts))


def _raise(error: FormatError) -> None:
    raise error
