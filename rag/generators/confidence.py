"""How likely the passages found hold the answer, and from where on a system says it."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autoais.errors import first_line
from rag.errors import RagError

# The reader's logit of the passage that answers; the share of the votes that the answer has among the passages read;
# the judge's probability that this passage supports the answer.
SIGNALS = ("relevance", "agreement", "judge")


@dataclass(frozen=True, slots=True)
class Confidence:
    """A logistic regression on `SIGNALS` (`scripts/bench/abstention.py` fits it); below `least` nothing is answered."""

    weights: Mapping[str, float]
    bias: float
    least: float

    @classmethod
    def read(cls, path: Path) -> "Confidence":
        """From `confidence.json`; `RagError` where it is none."""
        try:
            row = json.loads(path.read_text("utf-8"))
            weights = {name: float(row["weights"][name]) for name in SIGNALS}
            found = cls(weights, float(row["bias"]), float(row["least"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RagError(f"{path}: holds no weights of confidence ({first_line(error)})") from error
        if not all(math.isfinite(number) for number in (*weights.values(), found.bias, found.least)):
            raise RagError(f"{path}: a weight is not a number")
        return found

    def of(self, signals: Mapping[str, float]) -> float:
        """The probability, 0 to 1."""
        logit = self.bias + sum(weight * signals[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))
