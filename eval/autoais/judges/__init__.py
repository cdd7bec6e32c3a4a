"""Judges by name, and the rule for pairs that leave nothing to judge."""

import inspect
from collections.abc import Callable, Sequence

from autoais.errors import UserError
from autoais.judges.lexical import LexicalJudge
from autoais.types import Attribution, Judge, Judgement, Verdict


def _hf() -> Callable[..., Judge]:
    from autoais.judges.hf import HfJudge

    return HfJudge


JUDGES: dict[str, Callable[..., Judge]] = {"lexical": LexicalJudge}
MODEL_JUDGES: dict[str, Callable[[], Callable[..., Judge]]] = {"hf": _hf}  # `kind:model`; imported when asked for


def open_judge(name: str, **options: object) -> Judge:
    """The judge of that name: one of `JUDGES`, or `hf:<model>[@revision]` with a hub name or a folder.

    `options` are the judge's own (keyword arguments of its class); those that are None are left to the judge.
    `UserError` lists the names, or the options, there are.
    """
    kind, colon, model = name.partition(":")
    if colon and kind in MODEL_JUDGES:
        make, arguments = MODEL_JUDGES[kind](), [model]
    elif name in JUDGES:
        make, arguments = JUDGES[name], []
    else:
        known = ", ".join([*sorted(JUDGES), *(f"{kind}:<model>" for kind in sorted(MODEL_JUDGES))])
        raise UserError(f"no judge called {name!r}; there are: {known}")
    given = {option: value for option, value in options.items() if value is not None}
    known_options = list(inspect.signature(make).parameters)[len(arguments) :]
    for option in given:
        if option not in known_options:
            raise UserError(f"judge {name!r} has no option {option!r}; there are: {', '.join(known_options) or 'none'}")
    return make(*arguments, **given)


def weigh(judge: Judge, attributions: Sequence[Attribution]) -> list[Judgement]:
    """Judge each different attribution once, with the rule for nothing to weigh.

    Nothing said or nothing cited is not attributable, and is counted (AIS: the system must supply parts of the
    corpus; ALCE: an uncited sentence has recall 0). No judge is asked about it.
    """
    verdicts: dict[Attribution, Judgement] = {}
    for attribution in attributions:
        if not attribution.claim.strip():
            verdicts[attribution] = Judgement(Verdict.NOT_ATTRIBUTABLE, None, "nothing was said")
        elif not any(text.strip() for text in attribution.evidence):
            verdicts[attribution] = Judgement(Verdict.NOT_ATTRIBUTABLE, None, "nothing was cited")
    asked = list(dict.fromkeys(a for a in attributions if a not in verdicts))
    verdicts.update(zip(asked, judge.judge(asked), strict=True))
    return [verdicts[attribution] for attribution in attributions]
