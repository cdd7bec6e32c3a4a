"""Conversion between formats: joins with questions and corpora, and the features that are lost."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from autoais.base.answers import CitedAnswer
from autoais.base.markers.sentences import parse_sentences
from autoais.base.types import Question
from autoais.formats.base import Format, Notes
from autoais.formats.corpora import find_passages
from autoais.formats.human_ratings.ratings import TIES
from autoais.formats.markers import restore_answer

FEATURES: dict[str, Callable[[CitedAnswer], bool]] = {
    "ids": lambda a: a.id != a.question,
    "systems": lambda a: bool(a.extra.get("system")),
    "sentences": lambda a: len(a.sentences) > 1,
    "boundaries of sentences": lambda a: (
        not a.is_list and _parse_back(a) != [sentence.text for sentence in a.sentences]
    ),
    "citations beyond the first": lambda a: len({c for s in a.sentences for c in s.cites}) > 1,
    "texts of passages": lambda a: any(p.text for p in a.passages.values()),
    "titles of passages": lambda a: any(p.title or p.headings for p in a.passages.values()),
    "scores of passages": lambda a: bool(a.scores),
    "passages not cited": lambda a: bool(a.passages.keys() - {c for s in a.sentences for c in s.cites}),
    "short answers": lambda a: a.short_answer is not None and a.short_answer != a.plain,
    "reference answers": lambda a: bool(a.answers),
    "gold passages": lambda a: bool(a.gold),
    "labels of answers": lambda a: a.attributable is not None,
    "labels of sentences": lambda a: any(s.attributable is not None for s in a.sentences),
    "informativeness": lambda a: a.informative is not None or any(s.informative is not None for s in a.sentences),
    "worthiness": lambda a: any(s.worthy is not None for s in a.sentences),
    "levels of support": lambda a: any(s.support for s in a.sentences),
    "quotes": lambda a: any(c.quote for s in a.sentences for c in s.citations),
    "markers as written": lambda a: a.output is not None and a.output != a.plain,
    "no citations of its own": lambda a: a.whole_context,  # its contexts would become citations
    "unresolved markers in the text": lambda a: bool(a.unresolved_markers) and a.output is not None,
    "unresolved markers": lambda a: bool(a.unresolved_markers) and a.output is None,
    "abstention": lambda a: a.abstained,
    "ties of annotators": lambda a: bool(a.extra.get(TIES)),
}
"""Features that some formats cannot hold: name -> whether an answer has the feature."""


def _parse_back(answer: CitedAnswer) -> list[str]:
    """The sentences that a reader finds in the text of the answer."""
    return [sentence.text for sentence in parse_sentences(restore_answer(answer, Notes()), len(answer.passages))]


def count_losses(answers: Iterable[CitedAnswer], target: Format, losses: Counter[str]) -> Iterator[CitedAnswer]:
    """Yield the answers; count in `losses`, by feature, those with a feature that the target does not keep.

    An id that is the place in the file is no loss, as readers number answers without ids.
    """
    features = {name: has_feature for name, has_feature in FEATURES.items() if name not in target.supports}
    if "sentences" in features:
        features.pop("boundaries of sentences", None)
    for number, answer in enumerate(answers, 1):
        losses.update(
            name
            for name, has_feature in features.items()
            if has_feature(answer) and (name, answer.id) != ("ids", str(number))
        )
        yield answer


class DropCounter:
    """Counts the answers to questions outside the benchmark in `notes`, and names the first."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def drop(self, answer: CitedAnswer) -> None:
        """Count an answer."""
        first = f"{answer.id!r:.40}, {answer.question[:60]!r}" if answer.question != answer.id else f"{answer.id!r:.60}"
        self._notes.tell(
            "outside_benchmark", f"answers to questions outside the benchmark, dropped (the first: {first})"
        )


def join_questions(
    answers: Iterable[CitedAnswer], questions: Iterable[Question], notes: Notes
) -> Iterator[CitedAnswer]:
    """Give each answer its benchmark's references, matched by the exact text of the question (by id if it has no text).

    An answer to another question is dropped and counted in `notes`. Predictions of Attributed QA, whose only id is the
    question, get the benchmark's id. Where questions of the benchmark have the same text, an answer with none of their
    ids answers each of them.
    """
    by_text: dict[str, list[Question]] = {}
    by_id: dict[str, Question] = {}
    for question in questions:
        by_text.setdefault(question.text, []).append(question)
        by_id[question.id] = question
    drops = DropCounter(notes)
    for answer in answers:
        if answer.question:
            matches = by_text.get(answer.question, [])
        else:
            matches = [by_id[answer.id]] if answer.id in by_id else []
        if not matches:
            drops.drop(answer)
        same_id = [question for question in matches if question.id == answer.id]
        for question in same_id or matches:
            yield replace(
                answer,
                id=question.id if len(matches) > 1 or answer.id == answer.question else answer.id,
                question=question.text,
                answers=question.answers or answer.answers,
                gold=question.gold or answer.gold,
            )


def missing_texts(answers: Iterable[CitedAnswer]) -> set[str]:
    """Return the ids of the passages without a text."""
    return {key for answer in answers for key, passage in answer.passages.items() if not passage.text}


def count_textless(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[CitedAnswer]:
    """Yield the answers; count in `notes` the passages that are written without a text."""
    for answer in answers:
        if missing := len(missing_texts([answer])):
            notes["passages without a text, written empty (a corpus adds texts: --corpus FILE)"] += missing
        yield answer


def join_passages(
    answers: Callable[[], Iterable[CitedAnswer]], corpus: Sequence[Path], notes: Notes, *, skip_bad: bool = False
) -> Iterator[CitedAnswer]:
    """Fill in the texts of passages known by id only, in two passes over the answers and one over the corpus.

    An id missing from the corpus keeps its empty text: a sentence that cites only such passages is not attributable.
    """
    ids = missing_texts(answers())
    texts = find_passages(corpus, ids, notes, skip_bad=skip_bad)
    if len(texts) < len(ids):
        missing = len(ids) - len(texts)
        notes.tell("not_in_corpus", "passage ids that are not in the corpus: not attributable", missing)
    for answer in answers():
        passages = {
            key: passage if passage.text else texts.get(key, passage) for key, passage in answer.passages.items()
        }
        yield replace(answer, passages=passages)
