"""Judges by name."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import get_args

from autoais.base.errors import UserError, check_type
from autoais.base.registry import Registry
from autoais.base.types import Judge
from autoais.judges.imported import import_judge, is_import_path, make_judge

# An entry is a class, or a function that returns a judge. If it takes a model, its first parameter is `model` and the
# judge's name is `kind:<model>`. All other parameters are the judge's options.
JUDGES: Registry[Callable[..., Judge]] = Registry(
    "autoais.judges",
    "judge",
    {
        "lexical": "autoais.judges.lexical:LexicalJudge",
        "minilm": "autoais.judges.minilm:MiniLMJudge",
        "human": "autoais.judges.human:HumanJudge",
        "released": "autoais.judges.released:ReleasedJudge",
        "hf": "autoais.judges.hf:HfJudge",
        "llm": "autoais.judges.llm:LlmJudge",
    },
    kind=("a class of judges or a function that opens one", Callable),  # type: ignore[arg-type]  # for isinstance
)
DEFAULT = "minilm"
_SYNTAX = {
    "minilm": "minilm[:<folder>]",
    "hf": "hf[:<model>]",
    "llm": "llm:<model>",
    "human": "human:<file>",
    "released": "released:<file>",
}


def open_judge(name: str = DEFAULT, **options: object) -> Judge:
    """Return the judge of that name.

    Names are `minilm` (the shipped model), `minilm:<folder>`, `lexical`, `llm:<model>`, `hf:<model>[@revision]` (hub
    name or folder), `hf` (TRUE's T5), `human:<file>` (labels of people), `released:<file>` (the AutoAIS in Attributed
    QA's ratings), those of installed packages, and `package.module:Class` for a class of your own. The module of a
    class is imported, which runs its code: do not pass a name that comes from somebody else.

    `options` are keyword arguments of the judge's class; an option that is None keeps its default. Raises `UserError`
    with a list of the known names or options if one is unknown.
    """
    check_type("judge", name, "a name such as 'minilm'", str)
    kind, colon, model = name.partition(":")
    is_imported = kind not in JUDGES
    if is_imported and not is_import_path(name):
        raise _unknown(name)
    make: Callable[..., Judge] = import_judge(name) if is_imported else JUDGES[kind]
    parameters = _signature(make).parameters
    takes_model = not is_imported and next(iter(parameters), "") == "model"
    needs_model = takes_model and parameters["model"].default is inspect.Parameter.empty
    if (colon and not takes_model and not is_imported) or (needs_model and not colon):
        raise _unknown(name)
    settings = {option: value for option, value in options.items() if value is not None}
    option_types = {
        option: _annotation(parameter)
        for option, parameter in parameters.items()
        if _is_command_line_type(_annotation(parameter))
    }
    if takes_model:
        option_types.pop("model", None)
    for option, value in settings.items():
        if option not in option_types:
            raise UserError(f"judge {name!r} has no option {option!r}; there are: {', '.join(option_types) or 'none'}")
        if not _fits(value, option_type := option_types[option]):
            raise UserError(f"judge {name!r}: option {option!r} should be {_type_names(option_type)}, found {value!r}")
    if is_imported:
        return make_judge(name, make, settings, reserved_names=JUDGES)
    if _is_shipped(make):
        return make(model, **settings) if colon else make(**settings)
    return make_judge(name, partial(make, model) if colon else make, settings)


def _is_shipped(make: object) -> bool:
    """Whether a judge is one of this package: these keep the contract, and the name of some takes time."""
    return str(getattr(make, "__module__", "")).startswith(f"{__name__}.")


def _unknown(name: str) -> UserError:
    names = ", ".join(_SYNTAX.get(kind, kind) for kind in JUDGES)
    return UserError(f"no judge called {name!r}; there are: {names}, and your own package.module:Class")


def _signature(make: Callable[..., Judge]) -> inspect.Signature:
    try:
        return inspect.signature(make, eval_str=True)
    except Exception:  # noqa: BLE001  (an annotation as text may be anything)
        return inspect.signature(make)


def _annotation(parameter: inspect.Parameter) -> object:
    """The annotation of a parameter; without one, any value of the command line will do."""
    return str | float | bool if parameter.annotation is parameter.empty else parameter.annotation


def _is_command_line_type(annotation: object) -> bool:
    """Whether a value of this type can be given on the command line."""
    return all(kind in (str, int, float, bool, type(None)) for kind in get_args(annotation) or (annotation,))


def _type_names(annotation: object) -> str:
    kinds = get_args(annotation) or (annotation,)
    return " or ".join(str(getattr(kind, "__name__", kind)) for kind in kinds if kind is not type(None))


def _fits(value: object, annotation: object) -> bool:
    kinds = [kind for kind in get_args(annotation) or (annotation,) if isinstance(kind, type)]
    if isinstance(value, bool):
        return bool in kinds
    return not kinds or isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)
