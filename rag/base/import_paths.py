"""`package.module:Class`: code of the user's own, imported by name. Importing a module runs its code."""

from autoais.base.errors import UserError
from autoais.judges.imported import import_module, is_import_path
from rag.base.errors import RagError

__all__ = ["import_object", "is_import_path"]


def import_object(role: str, name: str) -> object:
    """Import a module and return what it has by that name; `name` is `package.module:Class`, `role` stands in errors.

    Raises `RagError` if the module cannot be imported (`autoais.judges.imported.import_module`), or has no such name.
    """
    try:
        module = import_module(role, name)
    except UserError as error:
        raise RagError(str(error)) from error
    attribute = name.partition(":")[2]
    value = getattr(module, attribute, None)
    if value is None:
        public_names = [attribute_name for attribute_name in vars(module) if not attribute_name.startswith("_")]
        listing = ", ".join(public_names)[:200] or "nothing"
        raise RagError(f"{role} {name!r}: module {module.__name__} has no {attribute!r}; it has: {listing}")
    return value
