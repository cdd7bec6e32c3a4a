"""`package.module:Class`: code of the user's own, imported by name. Importing a module runs its code."""

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from autoais.errors import first_line
from rag.errors import RagError

_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_import_path(name: str) -> bool:
    """Whether the name has the form `package.module:Class`."""
    return _PATH.fullmatch(name) is not None


def import_object(what: str, name: str) -> object:
    """Import a module and return what it has by that name; `name` is `package.module:Class`, `what` stands in errors.

    The module is looked up as in any import and then in the current folder, so that no file of the current folder takes
    the place of an installed module. Raises `RagError` if the module cannot be imported, or has no such name.
    """
    path, _, wanted = name.partition(":")
    module = _module(what, name, path)
    found = getattr(module, wanted, None)
    if found is None:
        own = [one for one in vars(module) if not one.startswith("_")]
        raise RagError(f"{what} {name!r}: module {path} has no {wanted!r}; it has: {', '.join(own)[:200] or 'nothing'}")
    return found


def _module(what: str, name: str, path: str) -> ModuleType:
    if path in sys.modules:  # also __main__, the running script, which cannot be imported
        return sys.modules[path]
    here = str(Path.cwd())
    added = False
    try:
        if importlib.util.find_spec(path.partition(".")[0]) is None and here not in sys.path:
            sys.path.append(here)  # last: other imports must not find files of this folder first
            added = True
            importlib.invalidate_caches()
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name and (path == error.name or path.startswith(f"{error.name}.")):
            raise RagError(
                f"{what} {name!r}: no module called {error.name!r} is installed or in the current folder"
            ) from error
        raise RagError(f"{what} {name!r}: {path} cannot be imported: {first_line(error)}") from error
    except (Exception, SystemExit) as error:  # a script without a main guard may exit
        raise RagError(
            f"{what} {name!r}: {path} cannot be imported: {type(error).__name__}: {first_line(error)}"
        ) from error
    finally:
        if added and here in sys.path:  # later imports of the program do not look here
            sys.path.remove(here)
