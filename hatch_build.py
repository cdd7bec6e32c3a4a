"""Puts the shipped data files inside the wheel; a checkout reads them where they lie (see the `resources` modules)."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The files of each folder of the checkout, not those of folders in it, and where they lie in the wheel.
SHIPPED = {
    "prompts": "rag/_shipped/prompts",
    "prompts/judge": "autoais/_shipped/prompts",
    "indexes": "rag/_shipped/indexes",
    "eval/benchmarks": "rag/_shipped/benchmarks",
    "eval/benchmarks/handbook": "rag/_shipped/benchmarks/handbook",
    "eval/benchmarks/own-documents": "rag/_shipped/benchmarks/own-documents",
    "eval/reproductions": "rag/_shipped/reproductions",
    "eval/reproductions/inputs": "rag/_shipped/reproductions/inputs",
    "docs/handbook": "rag/_shipped/handbook",
}


def shipped(root: Path) -> dict[str, str]:
    """Path in the checkout and path in the wheel of each shipped file."""
    return {
        f"{source}/{file.name}": f"{place}/{file.name}"
        for source, place in SHIPPED.items()
        for file in sorted((root / source).iterdir())
        if file.is_file()
    }


class Ship(BuildHookInterface[Any]):
    """Maps each data file of the checkout to its place in the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, except to an editable install, which must read the live ones."""
        if version != "editable":
            build_data["force_include"].update(shipped(Path(self.root)))
