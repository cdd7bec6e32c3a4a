"""What the reader's signals say: how likely its answer is right, and whether the passages answer the question."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoais.errors import first_line
from rag.errors import RagError

# relevance: the highest relevance logit of the passages; agreement: the largest share of passages with the same short
# answer; keep: the highest probability of a unit of the best passage; covered: the share of the question's words, by
# inverse document frequency, in the best passage and its headings; found: the same in all passages read.
SIGNALS = ("relevance", "agreement", "keep", "covered", "found")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A logistic regression on `SIGNALS`."""

    weights: Mapping[str, float]
    bias: float

    def of(self, signals: Mapping[str, float]) -> float:
        """The probability, 0 to 1."""
        logit = self.bias + sum(weight * signals[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))


@dataclass(frozen=True, slots=True)
class Confidence:
    """Two estimates, fitted by `scripts/bench/abstention.py`, and the threshold of the second.

    `right`: that the answer is right; this is the confidence of an answer. `answerable`: that the passages answer the
    question; the reader abstains below `threshold`. They differ: a long answer to a hard question is often wrong,
    though the passages answer it.
    """

    right: Estimate
    answerable: Estimate
    threshold: float

    @classmethod
    def read(cls, path: Path) -> "Confidence":
        """Read a `confidence.json`; raises `RagError` if it is not valid."""
        try:
            row = json.loads(path.read_text("utf-8"))
            found = cls(_estimate(row["right"]), _estimate(row["answerable"]), float(row["threshold"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RagError(f"{path}: not a confidence file ({first_line(error)})") from error
        if not math.isfinite(found.threshold):
            raise RagError(f"{path}: the threshold is not a number")
        return found


def _estimate(row: Mapping[str, Any]) -> Estimate:
    found = Estimate({name: float(row["weights"][name]) for name in SIGNALS}, float(row["bias"]))
    if not all(map(math.isfinite, (*found.weights.values(), found.bias))):
        raise ValueError("a weight is not a number")
    return found
