"""A judge whose models are held by the workers of an engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autoais.base.engines import Engine
from autoais.base.errors import UserError
from autoais.base.types import Attribution, Judge, Judgement, Place
from autoais.judges import open_judge

Judging = Callable[[Sequence[Attribution]], list[Judgement]]

_PIECE = 32  # pairs a worker gets at once, if the judge has no `at_once` of its own
_PIECES = 4  # for each worker of a call, so that none is idle while another reads long texts


@dataclass(frozen=True)
class OpenJudge:
    """Opens a judge in a worker; `expected` is the name that it has where the run was started."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    expected: str = ""

    def __call__(self) -> Judging:
        """Return the method `judge`; raises `UserError` for another model, or another version of it."""
        judge = open_judge(self.name, **self.options)
        if judge.name != self.expected:
            raise UserError(
                f"judge {self.name!r} is {judge.name} here, {self.expected} where the run was started; "
                "put the same model on both"
            )
        return judge.judge


class EngineJudge(Judge):
    """Splits each batch into pieces for the workers of an engine; the judgements are those of `judge`, in order.

    `name` and `options` are those that `judge` was opened with. Raises `UserError` for a judge that asks a server,
    whose requests would not be counted.
    """

    def __init__(self, judge: Judge, name: str, options: Mapping[str, Any], engine: Engine) -> None:
        if hasattr(judge, "client"):
            raise UserError(
                f"judge {name!r} asks a server, which an engine does not make faster; leave out the engine (--engine), "
                "and give the judge the option concurrency"
            )
        self.wrapped, self._engine = judge, engine
        self._make = OpenJudge(name, dict(options), judge.name)
        self._piece: int = getattr(judge, "at_once", _PIECE)

    @property
    def name(self) -> str:
        """The name of the judge."""
        return self.wrapped.name

    @property
    def at_once(self) -> int:
        """Pairs per call for callers that cache: some pieces for each worker."""
        return self._piece * _PIECES * self._engine.workers

    def by_rule(self, attribution: Attribution) -> Judgement | None:
        """Return what the judge decides by rule."""
        return self.wrapped.by_rule(attribution)

    def of_answer(self, attribution: Attribution) -> Judgement | None:
        """Return what the judge says of a whole answer."""
        return self.wrapped.of_answer(attribution)

    def of_place(self, position: Place, attribution: Attribution) -> Judgement | None:
        """Return what the judge knows of the place."""
        return self.wrapped.of_place(position, attribution)

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge the pieces side by side."""
        starts = range(0, len(attributions), self._piece)
        pieces = (list(attributions[start : start + self._piece]) for start in starts)
        return [judgement for piece in self._engine.map(self._make, pieces) for judgement in piece]
