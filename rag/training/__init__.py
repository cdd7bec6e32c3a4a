"""Training of the models that ship with rag (`rag train`); needs the extra `train`."""

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from autoais.base.errors import reason_of
from autoais.base.registry import Registry
from autoais.training import needs
from rag.base.errors import RagError
from rag.index.index import Index

# An entry has the signature of `run`, without `prepare`, which is for readers only.
TRAINERS: Registry[Callable[..., None]] = Registry(
    "rag.trainers",
    "kind of training recipe",
    {"reader": "rag.training.reader:run", "static": "rag.training.static:run"},
    RagError,
)


def run(
    path: Path,
    index: Index | None,
    data: Sequence[Path],
    out: Path,
    *,
    short: bool = False,
    prepare: bool = False,
    log: Callable[[str], None],
) -> None:
    """Train the model of a recipe (TOML; `kind` selects the trainer) in `out`.

    A reader can be prepared on one machine (`prepare`) and trained on another, without an index
    (`rag.training.reader.run`). Raises `RagError` for an unknown kind and for other models without an index,
    `UserError` if another process trains in `out`.
    """
    kind = _table(path).get("kind")
    if not isinstance(kind, str) or kind not in TRAINERS:
        raise RagError(f"{path}: 'kind' should be one of: {', '.join(TRAINERS)}")
    needs("torch", "transformers", "onnx")
    from autoais.training.recipe import training_in

    options: dict[str, Any] = {"short": short, "log": log}
    if prepare or index is None:
        if kind != "reader":
            raise RagError(
                f"{path}: {'prepare (--prepare) is for readers only' if prepare else 'give an index (--index)'}"
            )
        options["prepare"] = prepare
    with training_in(out):
        TRAINERS[kind](path, index, data, out, **options)


def read_recipe(path: Path, recipe: type[Any]) -> Any:  # noqa: ANN401  (an instance of `recipe`)
    """Read a recipe with `schedule`, `teacher`, `finetune` and `kept` into its dataclass.

    Raises `UserError` for a missing or unknown key.
    """
    from autoais.training.recipe import make_settings
    from autoais.training.schedule import Schedule

    row = _table(path)
    if not isinstance(row.get("schedule"), dict):
        raise RagError(f"{path}: [schedule] is missing")
    row["schedule"] = make_settings(Schedule, row["schedule"], f"{path}: [schedule]")
    if isinstance(row.get("teacher"), dict):
        from rag.training.recipe import TeacherRecipe

        teacher, location = row["teacher"], f"{path}: [teacher]"
        if not isinstance(teacher.get("schedule"), dict):
            raise RagError(f"{path}: [teacher.schedule] is missing")
        schedule = make_settings(Schedule, teacher["schedule"], f"{path}: [teacher.schedule]")
        row["teacher"] = make_settings(TeacherRecipe, teacher | {"schedule": schedule}, location)
    if isinstance(row.get("finetune"), dict):
        row["finetune"] = make_settings(Schedule, row["finetune"], f"{path}: [finetune]")
    if isinstance(row.get("kept"), dict):
        from rag.training.recipe import KeptRecipe

        row["kept"] = make_settings(KeptRecipe, row["kept"], f"{path}: [kept]")
    return make_settings(recipe, row, str(path))


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RagError(f"{path}: cannot be read as a training recipe: {reason_of(error)}") from error
