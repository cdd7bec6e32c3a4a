"""Human labels of the answers of a run: is the answer attributable?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.answers import CitedAnswer
from autoais.metrics.hagrid import answer_attributable
from rag.bench.items import Item
from rag.errors import RagError


class HumanLabels:
    """The labels of a file in any format that has them, for answers as they were labelled.

    A label is of one answer with its citations: it counts for an item with the same question, text and cited passages,
    and is not carried over to another answer.
    """

    def __init__(self, path: Path) -> None:
        self._labels: dict[tuple[object, ...], list[bool]] = {}
        self.labels = 0
        for answer in formats.read(path):
            label = answer.attributable
            if label is None:
                label = answer_attributable([sentence.attributable for sentence in answer.sentences])
            if label is not None:
                self.labels += 1
                self._labels.setdefault(_key_of(answer), []).append(label)
        if not self.labels:
            raise RagError(f"{path}: no answer in it has a label (`attributable`)")

    def of(self, items: Sequence[Item]) -> tuple[Mapping[int, bool], dict[str, Any]]:
        """Return the labels by position among the items, and the counts of labels: all, used, contradictory.

        Several labels of one answer are decided by the majority; a tie is left out.
        """
        found, tied = {}, 0
        for place, item in enumerate(items):
            votes = self._labels.get(_key(item.question, item.answer, set(item.cites)), [])
            yes = sum(votes)
            if votes and 2 * yes == len(votes):
                tied += 1
            elif votes:
                found[place] = 2 * yes > len(votes)
        return found, {"labels": self.labels, "answers": len(found), "tied": tied}


def _key_of(answer: CitedAnswer) -> tuple[object, ...]:
    return _key(answer.question, answer.plain, {key for one in answer.sentences for key in one.cites})


def _key(question: str, answer: str, cited: set[str]) -> tuple[object, ...]:
    return " ".join(question.split()), " ".join(answer.split()), tuple(sorted(cited))
