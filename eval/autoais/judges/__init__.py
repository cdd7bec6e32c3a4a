"""Judges by name, and the rule for pairs that leave nothing to judge."""

from collections.abc import Callable, Sequence

from autoais.errors import UserError
from autoais.judges.lexical import LexicalJudge
from autoais.types import Attribution, Judge, Judgement, Verdict

JUDGES: dict[str, Callable[[], Judge]] = {"lexical": LexicalJudge}


def open_judge(name: str) -> Judge:
    """The judge of that name; `UserError` lists the names there are."""
    try:
        return JUDGES[name]()
    except KeyError:
        raise UserError(f"no judge called {name!r}; there are: {', '.join(sorted(JUDGES))}") from None


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
