"""The shipped prompts of judges and assessors: inside the package in a wheel, in `prompts/` in a checkout."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from autoais.base.errors import UserError

Kind = Literal["judge", "assessor"]

_CHECKOUT = Path(__file__).parents[3] / "prompts"
_IN_WHEEL: dict[Kind, tuple[str, ...]] = {"judge": (), "assessor": ("assessor",)}


def prompt_names(kind: Kind = "judge") -> list[str]:
    """The names of the prompts of that kind, sorted."""
    return sorted(file.name.removesuffix(".txt") for file in _folder(kind).iterdir() if file.name.endswith(".txt"))


def read_prompt(name: str, kind: Kind = "judge") -> bytes:
    """The bytes of the prompt of that name; raises `UserError` with the known names if it is unknown."""
    if name not in prompt_names(kind):
        raise UserError(f"no prompt called {name!r}; there are: {', '.join(prompt_names(kind))}")
    return _folder(kind).joinpath(f"{name}.txt").read_bytes()


def _folder(kind: Kind) -> Traversable:
    folder_in_wheel = files("autoais").joinpath("_shipped", "prompts", *_IN_WHEEL[kind])
    if folder_in_wheel.is_dir():
        return folder_in_wheel
    if (_CHECKOUT / kind).is_dir():
        return _CHECKOUT / kind
    raise RuntimeError(f"this installation of attributed-rag has no {kind} prompts; reinstall it")
