"""How long the network is trained and how fast; apart from what trains it, which needs torch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast: warm-up, a constant rate, and a linear decay to zero over the last part of the steps.

    `rate` is AdamW's; `batch` pairs a step, at most `most` steps; `token_weight` weighs the loss of single tokens.
    """

    rate: float = 8e-5
    batch: int = 32
    warm_up: int = 200
    epochs: float = 1.0
    decay: float = 0.2
    seed: int = 13
    token_weight: float = 0.5
    most: int | None = None

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step of so many."""
        start = steps * (1 - self.decay)
        falling = (steps - step) / max(1.0, steps - start) if step > start else 1.0
        return self.rate * min(1.0, (step + 1) / max(1, self.warm_up)) * falling
