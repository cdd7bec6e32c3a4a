"""Counted notes for the user about a file that was read or written."""

from collections import Counter
from typing import Any


class Notes(Counter[str]):
    """Counts of events, such as dropped rows and unknown ids.

    The keys are names that stay (`outside_benchmark`), so that programs can look for them in a report. `texts` has the
    sentence of each, which people read and which may name the first thing. An event without a name is its own sentence.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}

    def tell(self, name: str, text: str, count: int = 1) -> None:
        """Count an event; the text of its first time stays."""
        self.texts.setdefault(name, text)
        self[name] += count

    def by_text(self) -> dict[str, int]:
        """Return the counts by sentence."""
        return {self.texts.get(name, name): count for name, count in self.items()}

    def record(self) -> dict[str, dict[str, Any]]:
        """Return the notes as a report in JSON has them: `count` and `text` by name."""
        return {name: {"count": count, "text": self.texts.get(name, name)} for name, count in self.items()}
