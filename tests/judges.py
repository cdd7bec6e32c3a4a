"""The judge that tests make theirs of."""

from collections.abc import Sequence

from autoais.base.types import Attribution, Judge, Judgement, Verdict


class OneByOne(Judge):
    """Judges each pair by itself, as `of` says, and remembers what it was asked; as it is, it never decides."""

    name = "one-by-one@1"
    says = Judgement(Verdict.UNDECIDED)

    def __init__(self) -> None:
        self.asked: list[Attribution] = []

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        self.asked += attributions
        return [self.of(attribution) for attribution in attributions]

    def of(self, attribution: Attribution) -> Judgement:
        return self.says
