"""How long the network is trained and how fast; apart from what trains it, which needs torch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """How fast one pass over the pairs is: warm-up, a constant rate, a linear decay to zero over the last of the steps.

    `rate` is AdamW's; `batch` pairs a step, at most `most` steps; `token_weight` weighs the loss of single tokens.
    """

    rate: float
    batch: int
    warm_up: int
    decay: float
    token_weight: float = 0.3
    most: int | None = None

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step of so many."""
        start = steps * (1 - self.decay)
        falling = (steps - step) / max(1.0, steps - start) if step > start else 1.0
        return self.rate * min(1.0, (step + 1) / max(1, self.warm_up)) * falling
