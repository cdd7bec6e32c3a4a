"""Puts the shipped data files inside the wheel; a checkout reads them where they lie (see the `resources` modules).

The wheel also holds the index of the handbook; a checkout builds it in the user's cache folder (`rag.index.handbook`).
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The folders of the checkout, and where their files lie in the wheel; the last entry that holds a file counts.
SHIPPED = {
    "prompts": "rag/_shipped/prompts",
    "prompts/judge": "autoais/_shipped/prompts",
    "prompts/assessor": "autoais/_shipped/prompts/assessor",
    "indexes": "rag/_shipped/indexes",
    "eval/benchmarks": "rag/_shipped/benchmarks",
    "eval/reproductions": "rag/_shipped/reproductions",
    "docs/handbook": "rag/_shipped/handbook",
}


HANDBOOK_INDEX = "rag/_shipped/handbook-index"


def shipped(root: Path) -> dict[str, str]:
    """Path in the checkout and path in the wheel of each shipped file."""
    return {
        f"{source}/{file}": f"{place}/{file}"
        for source, place in SHIPPED.items()
        for path in sorted((root / source).rglob("*"))
        if path.is_file()
        for file in [path.relative_to(root / source).as_posix()]
    }


def build_handbook_index(root: Path, folder: Path) -> dict[str, str]:
    """Build the index of the handbook in a folder; path of each of its files there, and in the wheel."""
    sys.path[:0] = [str(root), str(root / "eval")]
    from rag.index.folder import LOCK
    from rag.index.handbook import build_handbook, list_pages

    build_handbook(folder, list_pages())
    return {
        str(path): f"{HANDBOOK_INDEX}/{path.relative_to(folder).as_posix()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LOCK
    }


class Ship(BuildHookInterface[Any]):
    """Maps each data file of the checkout to its path in the wheel, and adds the index of the handbook."""

    _folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, except to an editable install, which must read the live ones."""
        if version != "editable":
            self._folder = tempfile.mkdtemp(prefix="rag-wheel-")
            build_data["force_include"].update(shipped(Path(self.root)))
            build_data["force_include"].update(
                build_handbook_index(Path(self.root), Path(self._folder, "handbook.index"))
            )

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built for the wheel."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
