"""Judges by name, and the rule for pairs that leave nothing to judge."""

from collections.abc import Callable, Sequence
from typing import Any

from autoais.errors import UserError
from autoais.judges.lexical import LexicalJudge
from autoais.types import Attribution, Judge, Judgement, Verdict


def _llm(model: str, **options: Any) -> Judge:  # noqa: ANN401  (what the judge's class takes)
    from autoais.judges.llm import LlmJudge

    return LlmJudge(model, **options)


JUDGES: dict[str, Callable[..., Judge]] = {"lexical": LexicalJudge}
MODELS: dict[str, Callable[..., Judge]] = {"llm": _llm}  # these take the name of a model after a colon


def open_judge(name: str, **options: Any) -> Judge:  # noqa: ANN401  (what the judge's class takes)
    """The judge of that name, such as `lexical` or `llm:<model>`; `UserError` lists the names there are."""
    kind, colon, model = name.partition(":")
    if colon and kind in MODELS:
        return MODELS[kind](model, **options)
    try:
        judge = JUDGES[name]
    except KeyError:
        known = [*sorted(JUDGES), *(f"{kind}:<model>" for kind in sorted(MODELS))]
        raise UserError(f"no judge called {name!r}; there are: {', '.join(known)}") from None
    return judge(**options)


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
