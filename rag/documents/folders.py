"""Which files below a folder are read: documents, in the order of their paths."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from rag.documents import is_document, kind_of, missing_program
from rag.documents.report import ReadReport
from rag.documents.sources import is_selected

# Where Sphinx keeps styles, scripts and fonts, with their licences, and patterns of pages.
_NO_TEXT = frozenset(["_static", "_templates"])
_PACKAGED = (".egg-info", ".dist-info")  # what Python notes of a package: lists of its files and what it needs
_PACKINGS = frozenset([".gz", ".bz2", ".xz", ".zst"])


def documents_below(
    folder: Path, include: Sequence[str] = (), exclude: Sequence[str] = (), report: ReadReport | None = None
) -> Iterator[Path]:
    """Yield the documents below a folder that the globs choose, and count in the report what else is there."""
    yield from _Walk(folder, include, exclude, report or ReadReport()).below(folder)


class _Walk:
    def __init__(self, top: Path, include: Sequence[str], exclude: Sequence[str], report: ReadReport) -> None:
        self._top, self._include, self._exclude, self._report = top, include, exclude, report
        self._real = os.path.realpath(top)

    def below(self, folder: Path) -> Iterator[Path]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:  # removed meanwhile, or not ours to read
            self._report.passed["folder without permission"] += 1
            return
        for entry in entries:
            path = folder / entry.name
            within = path.relative_to(self._top).as_posix()
            if reason := _reason_to_skip(entry):
                self._report.passed[reason] += 1
            elif (leads_out := entry.is_symlink() and not self._stays(entry)) and (
                entry.is_dir() or kind_of(entry.name)
            ):
                self._report.links += 1
            elif entry.is_dir(follow_symlinks=False):
                yield from self.below(path)
            elif entry.is_dir():  # a link to a folder that is read where it stands
                continue
            elif not is_selected(within, self._include, self._exclude):
                self._report.passed["file outside of --include and --exclude"] += 1
            elif not leads_out and entry.is_file() and is_document(path):
                if program := missing_program(path):
                    self._report.passed[f"file for {program}"] += 1
                else:
                    yield path
            else:
                self._report.leave(within, _suffix(path.name))

    def _stays(self, entry: "os.DirEntry[str]") -> bool:
        """Whether a link leads to a file of the folder."""
        return f"{os.path.realpath(entry.path)}/".startswith(f"{self._real}/")


def _reason_to_skip(entry: "os.DirEntry[str]") -> str | None:
    """Why a file or folder is passed over, whatever it holds; else None."""
    if entry.name.startswith("."):
        return "item hidden by a dot"
    if entry.is_symlink() and not Path(entry.path).exists():
        return "link to nowhere"
    without_text = entry.name in _NO_TEXT or entry.name.endswith(_PACKAGED)
    return f"folder called {entry.name}" if without_text and entry.is_dir() else None


def _suffix(name: str) -> str:
    """The suffix of a file, with that of its packing; "without a suffix" if it has none."""
    path = PurePosixPath(name.lower())
    packing = path.suffix if path.suffix in _PACKINGS else ""
    suffix = path.with_suffix("").suffix if packing else path.suffix
    return f"{suffix}{packing}" or "without a suffix"
