"""Training of the models that ship with rag (`rag train`); needs the extra `train`."""

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from autoais.registry import Registry
from autoais.training import needs
from rag.errors import RagError
from rag.index.index import Index

# An entry has the signature of `run`.
TRAINERS: Registry[Callable[..., None]] = Registry(
    "rag.trainers",
    "kind of training recipe",
    {"reader": "rag.training.reader:run", "static": "rag.training.static:run"},
    RagError,
)


def run(
    path: Path, index: Index, data: Sequence[Path], out: Path, *, short: bool = False, log: Callable[[str], None]
) -> None:
    """Train the model of a recipe (TOML; `kind` selects the trainer) in `out`.

    Raises `RagError` for an unknown kind, `UserError` if another process trains in `out`.
    """
    kind = _table(path).get("kind")
    if not isinstance(kind, str) or kind not in TRAINERS:
        raise RagError(f"{path}: 'kind' should be one of: {', '.join(TRAINERS)}")
    needs("torch", "transformers", "onnx")
    from autoais.training.recipe import training_in

    with training_in(out):
        TRAINERS[kind](path, index, data, out, short=short, log=log)


def read_recipe(path: Path, recipe: type[Any]) -> Any:  # noqa: ANN401  (an instance of `recipe`)
    """Read a recipe into its dataclass, with `schedule`; raises `UserError` for a missing or unknown key."""
    from autoais.training.recipe import made
    from autoais.training.schedule import Schedule

    row = _table(path)
    if not isinstance(row.get("schedule"), dict):
        raise RagError(f"{path}: [schedule] is missing")
    return made(recipe, row | {"schedule": made(Schedule, row["schedule"], f"{path}: [schedule]")}, str(path))


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RagError(f"{path}: cannot be read as a training recipe: {error}") from error
