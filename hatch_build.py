"""Puts the shipped data files inside the wheel; a checkout reads them where they lie (see the `resources` modules)."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The folders of the checkout, and where their files lie in the wheel; the last entry that holds a file counts.
SHIPPED = {
    "prompts": "rag/_shipped/prompts",
    "prompts/judge": "autoais/_shipped/prompts",
    "indexes": "rag/_shipped/indexes",
    "eval/benchmarks": "rag/_shipped/benchmarks",
    "eval/reproductions": "rag/_shipped/reproductions",
    "docs/handbook": "rag/_shipped/handbook",
}


def shipped(root: Path) -> dict[str, str]:
    """Path in the checkout and path in the wheel of each shipped file."""
    return {
        f"{source}/{file}": f"{place}/{file}"
        for source, place in SHIPPED.items()
        for path in sorted((root / source).rglob("*"))
        if path.is_file()
        for file in [path.relative_to(root / source).as_posix()]
    }


class Ship(BuildHookInterface[Any]):
    """Maps each data file of the checkout to its place in the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, except to an editable install, which must read the live ones."""
        if version != "editable":
            build_data["force_include"].update(shipped(Path(self.root)))
