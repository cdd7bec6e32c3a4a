"""Judges by name, and the rule for pairs that leave nothing to judge."""

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import get_args

from autoais.errors import UserError
from autoais.types import Attribution, Judge, Judgement, Verdict

# Where each judge's class is; imported when asked for. Those of the second table take a model after a colon.
JUDGES = {"lexical": "lexical:LexicalJudge", "minilm": "minilm:MiniLMJudge"}
MODEL_JUDGES = {"hf": "hf:HfJudge", "llm": "llm:LlmJudge", "minilm": "minilm:MiniLMJudge"}
_HAS_A_DEFAULT = "hf"  # takes a model, and has one of its own where none is named
DEFAULT = "minilm"


def open_judge(name: str, **options: object) -> Judge:
    """The judge of that name: `minilm` (the model that ships), `minilm:<folder>`, `lexical`, `llm:<model>`,
    `hf:<model>[@revision]` (hub name or folder), `hf` (TRUE's T5).

    `options` are the judge's own (keyword arguments of its class); those that are None are left to the judge.
    `UserError` lists the names, or the options, there are.
    """
    kind, colon, model = name.partition(":")
    place = MODEL_JUDGES.get(kind) if colon or name == _HAS_A_DEFAULT else JUDGES.get(name)
    if place is None:
        models = (f"{kind}[:<model>]" if kind == _HAS_A_DEFAULT else f"{kind}:<model>" for kind in sorted(MODEL_JUDGES))
        known = ", ".join([*sorted(JUDGES), *models])
        raise UserError(f"no judge called {name!r}; there are: {known}")
    module, _, judge = place.partition(":")
    make: Callable[..., Judge] = getattr(import_module(f"autoais.judges.{module}"), judge)
    arguments = [model] if colon else []
    given = {option: value for option, value in options.items() if value is not None}
    parameters = inspect.signature(make).parameters
    known_options = {option: it.annotation for option, it in parameters.items() if _can_be_typed(it.annotation)}
    known_options.pop("model", None)
    for option, value in given.items():
        if option not in known_options:
            raise UserError(f"judge {name!r} has no option {option!r}; there are: {', '.join(known_options) or 'none'}")
        if not _fits(value, wanted := known_options[option]):
            raise UserError(f"judge {name!r}: option {option!r} should be {_said(wanted)}, found {value!r}")
    return make(*arguments, **given)


def _can_be_typed(annotation: object) -> bool:
    """Whether a person can give such a value on a command line."""
    return all(kind in (str, int, float, bool, type(None)) for kind in get_args(annotation) or (annotation,))


def _said(annotation: object) -> str:
    kinds = get_args(annotation) or (annotation,)
    return " or ".join(str(getattr(kind, "__name__", kind)) for kind in kinds if kind is not type(None))


def _fits(value: object, annotation: object) -> bool:
    kinds = [kind for kind in get_args(annotation) or (annotation,) if isinstance(kind, type)]
    return not kinds or isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)


NO_TEXT = "no text is known for what was cited"


def nothing_to_weigh(attribution: Attribution) -> str | None:
    """Why no judge is asked about a pair: nothing was said, nothing cited, or only what has no text; else None."""
    if not attribution.claim.strip():
        return "nothing was said"
    if not any(text.strip() for text in attribution.evidence):
        return NO_TEXT if attribution.evidence else "nothing was cited"
    return None


def weigh(judge: Judge, attributions: Sequence[Attribution]) -> list[Judgement]:
    """Judge each different attribution once, with the rule for nothing to weigh.

    Nothing said or nothing cited is not attributable, and is counted (AIS: the system must supply parts of the
    corpus; ALCE: an uncited sentence has recall 0). No judge is asked about it.
    """
    verdicts = {
        attribution: Judgement(Verdict.NOT_ATTRIBUTABLE, None, reason)
        for attribution in attributions
        if (reason := nothing_to_weigh(attribution))
    }
    asked = list(dict.fromkeys(a for a in attributions if a not in verdicts))
    verdicts.update(zip(asked, judge.judge(asked), strict=True))
    return [verdicts[attribution] for attribution in attributions]
