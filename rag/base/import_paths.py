"""`package.module:Class`: code of the user's own, imported by name. Importing a module runs its code."""

from autoais.base.errors import UserError
from autoais.judges.imported import import_module, is_import_path
from rag.base.errors import RagError

__all__ = ["import_object", "is_import_path"]


def import_object(what: str, name: str) -> object:
    """Import a module and return what it has by that name; `name` is `package.module:Class`, `what` stands in errors.

    Raises `RagError` if the module cannot be imported (`autoais.judges.imported.import_module`), or has no such name.
    """
    try:
        module = import_module(what, name)
    except UserError as error:
        raise RagError(str(error)) from error
    wanted = name.partition(":")[2]
    found = getattr(module, wanted, None)
    if found is None:
        own = [one for one in vars(module) if not one.startswith("_")]
        had = ", ".join(own)[:200] or "nothing"
        raise RagError(f"{what} {name!r}: module {module.__name__} has no {wanted!r}; it has: {had}")
    return found
