"""`package.module:Class`: judges of the user's own, imported by name. Importing a module runs its code."""

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from types import ModuleType

from autoais.base.errors import UserError, check_type, first_line
from autoais.base.types import Judge

_SPEC = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")

_KIND = re.compile(r"[@:/+]")  # ends the first word of a judge's name


def is_import_path(name: str) -> bool:
    """Whether the name has the form `package.module:Class`."""
    return _SPEC.fullmatch(name) is not None


def import_judge(name: str) -> type[Judge]:
    """Import a module and return its class; `name` is `package.module:Class`.

    Raises `UserError` if the module cannot be imported, or what it has by that name is no judge.
    """
    class_name = name.partition(":")[2]
    module = import_module("judge", name)
    member = getattr(module, class_name, None)
    if member is None:
        raise UserError(f"judge {name!r}: {_where(module)} has no {class_name!r}; {_judges(module)}")
    if not (inspect.isclass(member) and issubclass(member, Judge)):
        kind = "a class without that base" if inspect.isclass(member) else type(member).__name__
        raise UserError(f"judge {name!r}: {class_name} should be a subclass of autoais.Judge, found {kind}")
    if inspect.isabstract(member):
        missing = ", ".join(sorted(member.__abstractmethods__))
        raise UserError(f"judge {name!r}: class {class_name} lacks {missing}; a judge defines name and decide")
    return member


def make_judge(
    name: str, make: Callable[..., Judge], options: Mapping[str, object], reserved_names: Container[str] = ()
) -> Judge:
    """Open a judge of the class; raises `UserError` if that fails or the judge cannot be used.

    Its name must not begin with a word of `reserved_names`, the kinds of other judges: judgements are cached by name.
    """
    missing = [
        option
        for option, parameter in inspect.signature(make).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and option not in options
    ]
    if missing:
        raise UserError(f"judge {name!r} needs judge options: {', '.join(f'{option}=...' for option in missing)}")
    try:
        judge = make(**options)
        check_type(f"judge {name!r}", judge, "a Judge", Judge)
        judge_name = judge.name
    except UserError:
        raise
    except Exception as error:  # somebody else's code may raise anything
        raise UserError(f"judge {name!r} cannot be opened: {_what(error)}") from error
    check_name(f"judge {name!r}", judge_name)
    if (kind := _KIND.split(judge_name.strip(), maxsplit=1)[0]) in reserved_names:
        raise UserError(f"judge {name!r}: its name {judge_name!r:.60} is one of the judge {kind!r}; choose another")
    if inspect.iscoroutinefunction(judge.decide):
        raise UserError(f"judge {name!r}: decide should be a plain function, found an async one")
    try:
        inspect.signature(judge.decide).bind([])
    except TypeError as error:
        signature = inspect.signature(judge.decide)
        raise UserError(
            f"judge {name!r}: decide should take one list of Attributions, found decide{signature}"
        ) from error
    return judge


def check_name(judge: str, judge_name: object) -> None:
    """Raise `UserError` unless the name of a judge can be the key of its judgements."""
    if callable(judge_name):
        raise UserError(f"{judge}: its name is a method; put @property before it, or write name = '...'")
    if not isinstance(judge_name, str) or not judge_name.strip() or not judge_name.isprintable():
        raise UserError(f"{judge}: its name should be a line of text, found {judge_name!r:.60}")


def import_module(kind: str, name: str) -> ModuleType:
    """Import the module of `package.module:Class`; `kind`, such as "judge", stands before it in errors.

    The module is looked up as in any import and then in the current folder, so that no file of the current folder takes
    the place of an installed module. Raises `UserError` if it cannot be imported.
    """
    path = name.partition(":")[0]
    if path in sys.modules:  # also __main__, the running script, which cannot be imported
        return sys.modules[path]
    folder = str(Path.cwd())
    is_added = False
    try:
        if importlib.util.find_spec(path.partition(".")[0]) is None and folder not in sys.path:
            sys.path.append(folder)  # last: other imports must not find files of this folder first
            is_added = True
            importlib.invalidate_caches()
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name and (path == error.name or path.startswith(f"{error.name}.")):
            raise UserError(
                f"{kind} {name!r}: no module called {error.name!r} is installed or in the current folder"
            ) from error
        raise UserError(f"{kind} {name!r}: {path} cannot be imported: {_what(error)}") from error
    except (Exception, SystemExit) as error:  # a script without a main guard may exit
        raise UserError(f"{kind} {name!r}: {path} cannot be imported: {_what(error)}") from error
    finally:
        if is_added and folder in sys.path:  # later imports of the program do not look here
            sys.path.remove(folder)


def _what(error: BaseException) -> str:
    """The error on one line, with the file and line of the code that raised it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"SyntaxError: {error.msg} ({Path(error.filename).name}:{error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    location = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    message = first_line(error)
    kind = type(error).__name__
    return f"{message if message == kind else f'{kind}: {message}'}{location}"


def _where(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return f"module {module.__name__}" + (f" ({file})" if file else "")


def _judges(module: ModuleType) -> str:
    """What the module has, for the message about a name that it has not."""
    names = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Judge) and value.__module__ == module.__name__
    ]
    return f"it has: {', '.join(sorted(names))}" if names else "it has no subclass of autoais.Judge"
