"""The shipped prompts of judges: inside the package in a wheel, in `prompts/judge` in a checkout."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from autoais.base.errors import UserError

_CHECKOUT = Path(__file__).parents[3] / "prompts" / "judge"


def prompt_names() -> list[str]:
    """The names of the judges' prompts, sorted."""
    return sorted(file.name.removesuffix(".txt") for file in _folder().iterdir() if file.name.endswith(".txt"))


def read_prompt(name: str) -> bytes:
    """The bytes of the prompt of that name; raises `UserError` with the known names if it is unknown."""
    if name not in prompt_names():
        raise UserError(f"no prompt called {name!r}; there are: {', '.join(prompt_names())}")
    return _folder().joinpath(f"{name}.txt").read_bytes()


def _folder() -> Traversable:
    folder_in_wheel = files("autoais").joinpath("_shipped", "prompts")
    if folder_in_wheel.is_dir():
        return folder_in_wheel
    if _CHECKOUT.is_dir():
        return _CHECKOUT
    raise RuntimeError("this installation of attributed-rag has no judge prompts; reinstall it")
