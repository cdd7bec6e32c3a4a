"""The judge of a service: what a model server said stays in the log."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from autoais.base.types import Attribution, Judge, Judgement, Verdict
from autoais.judges import open_judge
from autoais.judges.llm import LlmJudge

_log = logging.getLogger(__name__)

NO_VERDICT = "the judge gave no verdict"


class DiscreetJudge(Judge):
    """Judges as another judge; the log has the reason of an undecided pair, callers get `NO_VERDICT`."""

    def __init__(self, judge: LlmJudge) -> None:
        self._judge = judge

    @property
    def name(self) -> str:
        """The name of the other judge, without its server's address: callers need not know who serves the model."""
        return self._judge.name.replace(f"@{self._judge.client.endpoint}", "", 1)

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge each attribution; raises what the other judge raises."""
        return [_hide_reason(judgement) for judgement in self._judge.judge(attributions)]


def open_served_judge(name: str) -> Judge:
    """Open a judge whose reasons callers may read; raises `UserError` for one that cannot be opened."""
    judge = open_judge(name)
    return DiscreetJudge(judge) if isinstance(judge, LlmJudge) else judge  # the others have only our words


def _hide_reason(judgement: Judgement) -> Judgement:
    if judgement.verdict is not Verdict.UNDECIDED:
        return judgement
    _log.warning("the judge gave no verdict: %s", judgement.reason)
    return replace(judgement, reason=NO_VERDICT)
