"""What the reader's signals say: how likely its answer is right, and whether the passages answer the question."""

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoais.base.errors import first_line
from autoais.base.text.words import content_stems
from rag.base.errors import RagError

# relevance: the highest relevance logit of the passages; agreement: the largest share of passages, by their weights,
# with the same short answer; unmentioned: 1 if the question has a name or a year that no hit has, read or not, else 0.
SIGNALS = ("relevance", "agreement", "unmentioned")
_WORD = re.compile(r"(?<![\w.$~/%@=&-])[^\W\d_]\w+")
_BEGINS = re.compile(r"(?:^|[.?!:;]\s)[\W\d]*\Z", re.MULTILINE)  # what stands before a word that begins a sentence
_BEFORE = 50  # characters
_YEAR = re.compile(  # "in 1976", "the 2030 cup"; "2000 files" are no year
    r"\b(?:in|since|before|after|until|during|by|the)\s+(?:[A-Z][a-z]+\s+)?((?:1[5-9]|20)\d\d)(?![\w-]|[.,]\d|\s+[a-z]+s\b)"
)


@dataclass(frozen=True, slots=True)
class LogisticRegression:
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

    right: LogisticRegression
    answerable: LogisticRegression
    threshold: float

    @classmethod
    def read(cls, path: Path) -> "Confidence":
        """Read a `confidence.json`; raises `RagError` if it is not valid."""
        try:
            row = json.loads(path.read_text("utf-8"))
            confidence = cls(_estimate(row["right"]), _estimate(row["answerable"]), float(row["threshold"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RagError(f"{path}: not a confidence file ({first_line(error)})") from error
        if not math.isfinite(confidence.threshold):
            raise RagError(f"{path}: the threshold is not a number")
        return confidence


def _estimate(row: Mapping[str, Any]) -> LogisticRegression:
    if missing := [name for name in SIGNALS if name not in row["weights"]]:
        raise ValueError(f"no weight of {', '.join(missing)}: fit it to the signals of this version")
    estimate = LogisticRegression({name: float(row["weights"][name]) for name in SIGNALS}, float(row["bias"]))
    if not all(map(math.isfinite, (*estimate.weights.values(), estimate.bias))):
        raise ValueError("a weight is not a number")
    return estimate


def find_unmentioned(question: str, texts: Sequence[str]) -> list[str]:
    """The names and years of a question that none of the texts has, in any form: "Does it sync with Feedly?".

    A name is a capitalised word that begins no sentence; none is taken if most of the words that begin none have
    capitals. A name inside a longer word counts as there.
    """
    matches = [
        match
        for match in _WORD.finditer(question)
        if not _BEGINS.search(question, max(0, match.start() - _BEFORE), match.start())
    ]
    names = [match.group() for match in matches if match.group()[0].isupper()]
    if len(names) > len(matches) / 2:
        names = []
    names = [name for name in dict.fromkeys([*names, *_YEAR.findall(question)]) if content_stems(name)]
    folded_text = _fold("\n".join(texts)) if names else ""
    missing = [name for name in names if _fold(name) not in folded_text]
    stems = set(content_stems(folded_text)) if missing else set()
    return [name for name in missing if stems.isdisjoint(content_stems(_fold(name)))]


def _fold(text: str) -> str:
    """A text without case and accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text).casefold() if not unicodedata.combining(c))
