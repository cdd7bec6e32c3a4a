"""How the models that ship with the system are made (`rag train`); needs the extra `train`."""

import tomllib
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from autoais.training import needs
from rag.errors import RagError
from rag.index.index import Index

KINDS = {"reader": "rag.training.reader", "static": "rag.training.static"}


def run(
    path: Path, index: Index, data: Sequence[Path], out: Path, *, short: bool = False, say: Callable[[str], None]
) -> None:
    """Make the model of a recipe (TOML, `kind` says what it is) in `out`; `RagError` lists the kinds there are."""
    kind = _table(path).get("kind")
    if kind not in KINDS:
        raise RagError(f"{path}: 'kind' should be one of: {', '.join(KINDS)}")
    needs("torch", "transformers", "onnx")
    import_module(KINDS[kind]).run(path, index, data, out, short=short, say=say)


def read_recipe(path: Path, recipe: type[Any]) -> Any:  # noqa: ANN401  (an object of that class)
    """A recipe as its dataclass, whose `schedule` is one too; `UserError` names what is missing or unknown."""
    from autoais.training.recipe import made
    from autoais.training.schedule import Schedule

    row = _table(path)
    if not isinstance(row.get("schedule"), dict):
        raise RagError(f"{path}: [schedule] is missing")
    return made(recipe, row | {"schedule": made(Schedule, row["schedule"], f"{path}: [schedule]")}, str(path))


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RagError(f"{path}: cannot be read as a training recipe: {error}") from error
