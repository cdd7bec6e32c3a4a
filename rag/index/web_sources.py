"""Web sources of an index: their pages are mirrored in a folder of the index, which is read as any other folder."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from autoais.base.io.jsonl import sync
from autoais.base.io.locks import shared_lock
from autoais.base.progress import Progress
from autoais.base.urls import host_of, is_url, key_of, normalize_url
from rag.base.errors import IndexingError, UsageError
from rag.base.types import DOCUMENTS
from rag.documents.corpus import Corpus
from rag.documents.sources import Source, check_globs, is_selected
from rag.index.build import check_new
from rag.index.files import Root
from rag.index.folder import LOCK, lock_folder
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
    progress: Progress | None = None


def refusal_reason(*, allow_network: bool) -> str:
    """Why the network may not be used, and what allows it; empty if it may."""
    from autoais.base.network import is_offline

    if is_offline():
        return "RAG_OFFLINE is set, unset it to fetch pages"
    return "" if allow_network else "--allow-network (from Python, allow_network=True) fetches pages"


def check_sources(sources: Sequence[str | Path], *, allow_network: bool, format: str | None = None) -> None:  # noqa: A002
    """Raise `UsageError` for a URL that may not be fetched, is no URL or given twice, or has another format."""
    keys = set()
    for source in sources:
        if not isinstance(source, str) or not is_url(source):
            if isinstance(source, Path) and source.parts[:1] in (("http:",), ("https:",)) and not source.exists():
                raise UsageError(f"{source} was a URL before it became a Path: give it as a string")
            continue
        key = key_of(source)
        if reason := refusal_reason(allow_network=allow_network):
            raise UsageError(f"{source} is a URL: {reason}")
        if key in keys:
            raise UsageError(f"{source} is given twice")
        if format not in (None, DOCUMENTS):
            raise UsageError(f"{source}: pages are documents, they cannot be read as {format}")
        keys.add(key)


def fetch_sources(index: Path, sources: Sequence[str | Path], roots: Sequence[Root], options: Fetching) -> Fetched:
    """Mirror the URLs among the sources in new folders of an index, whose sources so far are `roots`.

    The index must be locked. Raises `IndexingError` for a URL from which nothing can be fetched, for one that the
    index has, and for a folder that cannot be written.
    """
    if local := [Path(source) for source in sources if not is_url(source)]:
        Corpus(local)  # a path that is not there is said before pages are fetched
    result = Fetched()
    web_sources = [root.source for root in roots if root.source.url]
    for target in sources:
        if not isinstance(target, str) or not is_url(target):
            result.paths.append(Path(target))
            continue
        url = normalize_url(target)
        path = new_folder(index) / host_of(url)
        source = Source(
            path, DOCUMENTS, include=check_globs(options.include), exclude=check_globs(options.exclude), url=url
        )
        result.notes += _mirror(source, web_sources, options)
        result.paths.append(path)
        result.urls[path] = url
        web_sources.append(source)
    return result


def refresh(root: Root, roots: Sequence[Root], progress: Progress | None = None) -> list[str]:
    """Bring the mirror of a source up to date; returns what to tell people.

    Raises `IndexingError` for a folder that cannot be written or was tampered with, and if the source is strict, for a
    page that cannot be fetched.
    """
    source = root.source
    other_sources = [other.source for other in roots if other.source.url not in ("", source.url)]
    return _mirror(source, other_sources, Fetching(strict=root.strict, progress=progress))


def _mirror(source: Source, other_sources: Sequence[Source], options: Fetching) -> list[str]:
    from rag.documents.mirrors import mirror, read_pages

    def is_wanted(name: str) -> bool:
        return is_selected(name, source.include, source.left_out)

    host = host_of(source.url)
    sources_on_host = [other for other in other_sources if host_of(other.url) == host]
    pages = {
        key: page.file
        for other in sources_on_host
        for key, page in read_pages(other.path.parent).items()
        if is_selected(page.file, other.include, other.left_out)
    }
    report = mirror(source.url, source.path.parent, wanted=is_wanted, others=pages, progress=options.progress)
    if options.strict and report.failed:
        raise IndexingError(report.reasons[0])
    return list(report.lines())


def copy_source(source: Source, index: Path) -> Source:
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
            target = new / path.relative_to(old)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            sync(target)
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
def fetch_for_build(
    to: Path, sources: Sequence[str | Path], options: Fetching, *, replace: bool = False
) -> Iterator[Fetched]:
    """Mirror the URLs among the sources for an index that is to be built in the folder `to`.

    An exception removes the mirrors again. Raises `IndexingError` as `fetch_sources` does, and for a folder in which
    nothing can be built.
    """
    if not any(map(is_url, sources)):
        yield Fetched([Path(source) for source in sources])
        return
    is_new_folder = not to.exists()
    try:
        with ExitStack() as locks:
            with lock_folder(to):
                if not replace:
                    check_new(to)
                result = fetch_sources(to, sources, [], options)
                for path in result.urls:  # until the manifest names them
                    locks.enter_context(shared_lock(path.parent))
            yield result
    except BaseException:
        with suppress(IndexingError), lock_folder(to):  # which sweeps
            pass
        if is_new_folder and not (to / MANIFEST).exists():
            (to / LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                to.rmdir()
        raise
