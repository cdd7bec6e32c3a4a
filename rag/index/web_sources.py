"""Web sources of an index: their pages are mirrored in a folder of the index, which is read as any other folder."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from autoais.base.io.jsonl import sync
from autoais.base.io.locks import shared_lock
from rag.base.errors import IndexingError, UsageError
from rag.base.progress import Count
from rag.base.types import DOCUMENTS
from rag.base.urls import host_of, is_url, key_of, normalized
from rag.documents.corpus import Corpus
from rag.documents.sources import Source, check_globs, is_selected
from rag.index.build import check_new
from rag.index.files import Root
from rag.index.folder import LOCK, claimed
from rag.index.manifest import MANIFEST, WEB


@dataclass(slots=True)
class Fetched:
    """Sources as paths, the URLs of those that are mirrors, and what to tell people."""

    paths: list[Path] = field(default_factory=list)
    urls: dict[Path, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fetching:
    """How pages are fetched: globs that choose those of sitemaps, and whether one that is not fetched is an error."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    strict: bool = False
    progress: Count | None = None


def forbidden(*, allow_network: bool) -> str:
    """Why the network may not be used, and what allows it; empty if it may."""
    from rag.base.network import is_offline

    if is_offline():
        return "RAG_OFFLINE is set, unset it to fetch pages"
    return "" if allow_network else "--allow-network (from Python, allow_network=True) fetches pages"


def check_sources(sources: Sequence[str | Path], *, allow_network: bool, format: str | None = None) -> None:  # noqa: A002
    """Raise `UsageError` for a URL that may not be fetched, is no URL or given twice, or has another format."""
    seen = set()
    for source in sources:
        if not isinstance(source, str) or not is_url(source):
            if isinstance(source, Path) and source.parts[:1] in (("http:",), ("https:",)) and not source.exists():
                raise UsageError(f"{source} was a URL before it became a Path: give it as a string")
            continue
        key = key_of(source)
        if reason := forbidden(allow_network=allow_network):
            raise UsageError(f"{source} is a URL: {reason}")
        if key in seen:
            raise UsageError(f"{source} is given twice")
        if format not in (None, DOCUMENTS):
            raise UsageError(f"{source}: pages are documents, they cannot be read as {format}")
        seen.add(key)


def fetch_sources(index: Path, sources: Sequence[str | Path], roots: Sequence[Root], how: Fetching) -> Fetched:
    """Mirror the URLs among the sources in new folders of an index, whose sources so far are `roots`.

    The index must be locked. Raises `IndexingError` for a URL from which nothing can be fetched, for one that the
    index has, and for a folder that cannot be written.
    """
    if local := [Path(source) for source in sources if not is_url(source)]:
        Corpus(local)  # a path that is not there is said before pages are fetched
    found = Fetched()
    known = [root.source for root in roots if root.source.url]
    for given in sources:
        if not isinstance(given, str) or not is_url(given):
            found.paths.append(Path(given))
            continue
        url = normalized(given)
        path = new_folder(index) / host_of(url)
        source = Source(path, DOCUMENTS, include=check_globs(how.include), exclude=check_globs(how.exclude), url=url)
        found.notes += _mirrored(source, known, how)
        found.paths.append(path)
        found.urls[path] = url
        known.append(source)
    return found


def refresh(root: Root, roots: Sequence[Root], progress: Count | None = None) -> list[str]:
    """Bring the mirror of a source up to date; returns what to tell people.

    Raises `IndexingError` for a folder that cannot be written or was tampered with, and if the source is strict, for a
    page that cannot be fetched.
    """
    source = root.source
    others = [other.source for other in roots if other.source.url not in ("", source.url)]
    return _mirrored(source, others, Fetching(strict=root.strict, progress=progress))


def _mirrored(source: Source, others: Sequence[Source], how: Fetching) -> list[str]:
    from rag.documents.mirrors import mirror, read_pages

    def wanted(name: str) -> bool:
        return is_selected(name, source.include, source.left_out)

    host = host_of(source.url)
    same = [other for other in others if host_of(other.url) == host]
    taken = {
        key: page.file
        for other in same
        for key, page in read_pages(other.path.parent).items()
        if is_selected(page.file, other.include, other.left_out)
    }
    report = mirror(source.url, source.path.parent, wanted=wanted, others=taken, progress=how.progress)
    if how.strict and report.failed:
        raise IndexingError(report.reasons[0])
    return list(report.lines())


def copied(source: Source, index: Path) -> Source:
    """A source of another index, with its mirror copied into this one if it has a URL; the index must be locked.

    Raises `IndexingError` for a folder that cannot be read or written.
    """
    from rag.documents.mirrors import PAGES

    if not source.url:
        return source
    old, new = source.path.parent, new_folder(index)
    try:
        # First the list: a page that an update changes meanwhile is then newer than it says, and is fetched again.
        paths = [old / PAGES, *sorted(path for path in source.path.rglob("*") if not path.is_symlink())]
        for path in filter(Path.is_file, paths):
            place = new / path.relative_to(old)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
            sync(place)
    except OSError as error:
        raise IndexingError(f"{old} cannot be copied to {new}: {error.strerror or error}") from error
    return replace(source, path=new / source.path.name)


def new_folder(index: Path) -> Path:
    """A new folder for a mirror; `sweep` removes it unless the manifest names it or somebody holds it."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=WEB, dir=index))
        folder.chmod(0o755)
    except OSError as error:
        raise IndexingError(f"{index}: cannot be written: {error.strerror}") from error
    return folder


@contextmanager
def fetched(to: Path, sources: Sequence[str | Path], how: Fetching, *, replace: bool = False) -> Iterator[Fetched]:
    """Mirror the URLs among the sources for an index that is to be built in the folder `to`.

    An exception removes the mirrors again. Raises `IndexingError` as `fetch_sources` does, and for a folder in which
    nothing can be built.
    """
    if not any(map(is_url, sources)):
        yield Fetched([Path(source) for source in sources])
        return
    made = not to.exists()
    try:
        with ExitStack() as held:
            with claimed(to):
                if not replace:
                    check_new(to)
                found = fetch_sources(to, sources, [], how)
                for path in found.urls:  # until the manifest names them
                    held.enter_context(shared_lock(path.parent))
            yield found
    except BaseException:
        with suppress(IndexingError), claimed(to):  # which sweeps
            pass
        if made and not (to / MANIFEST).exists():
            (to / LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                to.rmdir()
        raise
