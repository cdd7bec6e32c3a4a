"""Human labels of the answers of a run: is the answer attributable, and each of its sentences?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.base.answers import CitedAnswer
from autoais.base.labels import sentences_attributable
from rag.base.errors import RagError
from rag.bench.items import Item


class HumanLabels:
    """The labels of a file in any format that has them, for answers as they were labelled.

    A label is of one answer with its citations: it counts for an item with the same question, text and cited passages,
    and is not carried over to another answer. Several labels are decided by the majority; a tie is left out.
    """

    def __init__(self, path: Path) -> None:
        self._labels: dict[tuple[object, ...], list[bool]] = {}
        self._sentences: dict[tuple[object, ...], list[bool]] = {}
        self.labels = 0
        for answer in formats.read(path):
            labels = [sentence.attributable for sentence in answer.sentences]
            label = sentences_attributable(answer.sentences) if answer.attributable is None else answer.attributable
            if label is not None:
                self.labels += 1
                self._labels.setdefault(_key_of(answer), []).append(label)
            for sentence, sentence_label in zip(answer.sentences, labels, strict=True):
                key = (_key_of(answer), *_key(sentence.cites, sentence.text))
                if sentence_label is not None:
                    self._sentences.setdefault(key, []).append(sentence_label)
                elif sentence.worthy is False:
                    self._sentences.setdefault(key, [])
        if not self.labels:
            raise RagError(f"{path}: no answer in it has a label (`attributable`)")

    def on(self, items: Iterable[Item]) -> list[Item]:
        """Return the items with the labels of their sentences in `human`.

        A sentence is a labelled one if its text and cited passages are the same. A label of the whole answer is that
        of its only sentence, and of every sentence if it is a yes, but of those that are not worth verifying.
        """
        return [self._add_labels(item) for item in items]

    def _add_labels(self, item: Item) -> Item:
        answer = _key_of_item(item)
        answer_label = _majority(self._labels.get(answer, ()))
        default = answer_label if answer_label or len(item.sentences) == 1 else None
        labels = []
        for sentence in item.sentences:
            votes = self._sentences.get(
                (answer, *_key((citation.passage for citation in sentence.citations), sentence.text))
            )
            labels.append(default if votes is None else _majority(votes))
        sentences = zip(item.sentences, labels, strict=True)
        return replace(item, sentences=tuple(replace(sentence, human=label) for sentence, label in sentences))

    def of(self, items: Sequence[Item]) -> tuple[Mapping[int, bool], dict[str, Any]]:
        """Return the labels by position among the items, and the counts of labels: all, used, contradictory."""
        labels, tie_count = {}, 0
        for index, item in enumerate(items):
            votes = self._labels.get(_key_of_item(item), [])
            label = _majority(votes)
            if label is not None:
                labels[index] = label
            elif votes:
                tie_count += 1
        return labels, {"labels": self.labels, "answers": len(labels), "tied": tie_count}


def _majority(votes: Sequence[bool]) -> bool | None:
    yes = sum(votes)
    return None if 2 * yes == len(votes) else 2 * yes > len(votes)


def _key_of(answer: CitedAnswer) -> tuple[object, ...]:
    return _key((key for sentence in answer.sentences for key in sentence.cites), answer.question, answer.plain)


def _key_of_item(item: Item) -> tuple[object, ...]:
    return _key(item.cites, item.question, item.answer)


def _key(cited_ids: Iterable[str], *texts: str) -> tuple[object, ...]:
    """What texts that differ in white space only, and cite the same passages, have in common."""
    return (*(" ".join(text.split()) for text in texts), tuple(sorted(set(cited_ids))))
