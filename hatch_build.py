"""Puts the shipped data files inside the wheel; a checkout reads them where they lie (see rag/resources.py)."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = {"prompts": "prompts", "indexes": "indexes", "eval/benchmarks": "benchmarks", "docs/handbook": "handbook"}


class Ship(BuildHookInterface[Any]):
    """Maps each data folder of the checkout to `rag/_shipped/<kind>` in the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders, except to an editable install, which must read the live files."""
        if version != "editable":
            for source, kind in SHIPPED.items():
                build_data["force_include"][source] = f"rag/_shipped/{kind}"
