"""The training schedule, in a module of its own that does not import torch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """The learning rate over one pass: linear warm-up, a constant rate, and linear decay to zero.

    `rate` is AdamW's learning rate, `batch` the pairs per step, `warm_up` a number of steps, `decay` a share of the
    steps, and `most` the maximum number of steps. `token_weight` is the weight of the token loss.
    """

    rate: float
    batch: int
    warm_up: int
    decay: float
    token_weight: float = 0.3
    most: int | None = None

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate at step `step` of `steps`."""
        start = steps * (1 - self.decay)
        falling = (steps - step) / max(1.0, steps - start) if step > start else 1.0
        return self.rate * min(1.0, (step + 1) / max(1, self.warm_up)) * falling
