"""Files that ship: prompts, configurations of retrievers, benchmarks, reproductions, the handbook."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

Kind = Literal["prompts", "indexes", "benchmarks", "reproductions", "handbook"]
_CHECKOUT = Path(__file__).parents[2]
_IN_CHECKOUT: dict[Kind, str] = {
    "prompts": "prompts",
    "indexes": "indexes",
    "benchmarks": "eval/benchmarks",
    "reproductions": "eval/reproductions",
    "handbook": "docs/handbook",
}


@cache
def folder(kind: Kind) -> Traversable:
    """The folder with the files of that kind; raises `RuntimeError` if they are not installed."""
    installed_folder = files("rag").joinpath("_shipped", kind)
    if installed_folder.is_dir():
        return installed_folder
    checkout_folder = _CHECKOUT / _IN_CHECKOUT[kind]
    if checkout_folder.is_dir():
        return checkout_folder
    raise RuntimeError(f"this install of attributed-rag lacks its {kind}; reinstall it")


@cache
def names(kind: Kind, suffix: str) -> tuple[str, ...]:
    """The names of the shipped files with that suffix, without it, sorted."""
    return tuple(sorted(f.name.removesuffix(suffix) for f in folder(kind).iterdir() if f.name.endswith(suffix)))
