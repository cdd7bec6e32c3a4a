"""How the models that ship with the system are made (`rag train`); needs the extra `train`."""

import tomllib
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from autoais.training import needs
from rag.errors import RagError
from rag.index import Index

KINDS = {"reader": "rag.training.reader", "static": "rag.training.static"}


def run(
    path: Path, index: Index, data: Sequence[Path], out: Path, *, short: bool = False, say: Callable[[str], None]
) -> None:
    """Make the model of a recipe (TOML, `kind` says what it is) in `out`; `RagError` lists the kinds there are."""
    try:
        kind = tomllib.loads(path.read_text("utf-8"))["kind"]
        module = KINDS[kind]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RagError(f"{path}: cannot be read as a training recipe: {error}") from error
    except (KeyError, TypeError):
        raise RagError(f"{path}: 'kind' should be one of: {', '.join(KINDS)}") from None
    needs("torch", "transformers", "onnx")
    import_module(module).run(path, index, data, out, short=short, say=say)
