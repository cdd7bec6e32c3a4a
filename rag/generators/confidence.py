"""Confidence: how likely an answer is right, and the threshold to abstain."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autoais.errors import first_line
from rag.errors import RagError

# relevance: the highest relevance logit of the passages; agreement: the largest share of passages with the same short
# answer; keep: the highest probability of a unit of the best passage; covered: the share of the question's words, by
# inverse document frequency, in the best passage and its headings; found: the same in all passages read.
SIGNALS = ("relevance", "agreement", "keep", "covered", "found")


@dataclass(frozen=True, slots=True)
class Confidence:
    """A logistic regression on `SIGNALS`, fitted by `scripts/bench/abstention.py`; abstain below `threshold`."""

    weights: Mapping[str, float]
    bias: float
    threshold: float

    @classmethod
    def read(cls, path: Path) -> "Confidence":
        """Read a `confidence.json`; raises `RagError` if it is not valid."""
        try:
            row = json.loads(path.read_text("utf-8"))
            weights = {name: float(row["weights"][name]) for name in SIGNALS}
            found = cls(weights, float(row["bias"]), float(row["threshold"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RagError(f"{path}: not a confidence file ({first_line(error)})") from error
        if not all(math.isfinite(number) for number in (*weights.values(), found.bias, found.threshold)):
            raise RagError(f"{path}: a weight is not a number")
        return found

    def of(self, signals: Mapping[str, float]) -> float:
        """The confidence, 0 to 1."""
        logit = self.bias + sum(weight * signals[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))
