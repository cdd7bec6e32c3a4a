"""Files that ship with the product: prompts, index recipes, benchmarks and the handbook, in wheel or checkout."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

Kind = Literal["prompts", "indexes", "benchmarks", "handbook"]
_CHECKOUT = Path(__file__).parents[1]
_IN_CHECKOUT: dict[Kind, str] = {
    "prompts": "prompts",
    "indexes": "indexes",
    "benchmarks": "eval/benchmarks",
    "handbook": "docs/handbook",
}


def folder(kind: Kind) -> Traversable:
    """Where the files of that kind lie; `RuntimeError` if this install came without them."""
    packed = files("rag").joinpath("_shipped", kind)
    if packed.is_dir():
        return packed
    beside = _CHECKOUT / _IN_CHECKOUT[kind]
    if beside.is_dir():
        return beside
    raise RuntimeError(f"this install of attributed-rag came without its {kind}; reinstall it")


def names(kind: Kind, suffix: str) -> list[str]:
    """The names of the shipped files with that suffix, sorted, without it."""
    return sorted(f.name.removesuffix(suffix) for f in folder(kind).iterdir() if f.name.endswith(suffix))
