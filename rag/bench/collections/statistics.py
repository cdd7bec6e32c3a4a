"""HAGRID's Tables 2 and 3 (Kamalloo et al. 2023) of any cited answers: sizes, and counts of people's labels."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.labels import answer_informative, sentences_attributable
from autoais.base.text.folding import questions_key
from autoais.base.types import Support
from autoais.formats.human_ratings.ratings import SIMULATED_LABELS
from autoais.metrics.rates import Rate
from rag.base.terminal import pluralize

Part = Callable[[CitedAnswer], bool]

LABELLED_BY = ("people", "simulated")

TABLE2 = {
    "questions": "Questions",
    "quotes_per_question": "Quotes per question",
    "answers": "Answers",
    "answers_per_question": "Answers per question",
    "sentences": "Sentences or groups",
    "uncited_sentences": "of them without a citation",
    "citations": "Citations",
    "citations_per_answer": "Citations per answer",
}
"""The rows of Table 2: their keys in `Statistics.table2`, and their names."""

TABLE3 = {
    "informative": "informative answers",
    "attributable": "attributable answers",
    "sentence_informative": "informative sentences",
    "sentence_attributable": "attributable sentences",
    "sentence_worthy": "sentences worth verifying",
}
"""The rows of Table 3: their keys in `Statistics.table3`, and their names."""


def question_key(answer: CitedAnswer) -> str:
    """Return what the answers of one question share: its text without case, punctuation and articles."""
    return questions_key(answer.question) or answer.question


def whole_labels(answer: CitedAnswer) -> dict[str, bool | None]:
    """Return people's labels of an answer; where it has none, they follow from its sentences.

    The rules are HAGRID's, over the sentences that are worth verifying (Liu et al. 2023).
    """
    informative, attributable = answer.informative, answer.attributable
    if informative is None:
        informative = answer_informative(sentence.informative for sentence in answer.sentences)
    if attributable is None:
        attributable = sentences_attributable(answer.sentences)
    return {"informative": informative, "attributable": attributable}


class Statistics:
    """Counts answers one by one (`add`); `table2` and `table3` are what the paper's tables hold."""

    def __init__(self) -> None:
        self._questions: dict[str, int] = {}
        self._quotes: dict[str, int] = {}  # by question: the most that an answer was given, as in `autoais score`
        self._answers = self._citations = self._sentences = self._uncited = 0
        self._labels: dict[str, list[tuple[bool, int]]] = {}
        self._support: Counter[Support] = Counter()
        self.systems: Counter[str] = Counter()
        self.labelled_by = dict.fromkeys(LABELLED_BY, 0)
        """The answers that have labels: of people alone, and simulated ones (`SIMULATED_LABELS`)."""

    def add(self, answer: CitedAnswer) -> None:
        """Count one answer."""
        key = str(answer.extra.get("query_id", question_key(answer)))
        question = self._questions.setdefault(key, len(self._questions))
        self._quotes[key] = max(self._quotes.get(key, 0), len(answer.passages))
        self._answers += 1
        self.systems[str(answer.extra.get("system") or "unknown")] += 1
        for name, label in whole_labels(answer).items():
            self._label(name, label, question)
        for sentence in answer.sentences:
            self._sentences += 1
            self._citations += len(sentence.cites)
            self._uncited += not sentence.cites
            self._label("sentence_informative", sentence.informative, question)
            self._label("sentence_attributable", sentence.attributable, question)
            self._label("sentence_worthy", sentence.worthy, question)
            self._support.update(sentence.support.values())
        if any(label is not None for label in _labels(answer)):
            self.labelled_by["simulated" if answer.extra.get(SIMULATED_LABELS) else "people"] += 1

    def _label(self, name: str, label: bool | None, question: int) -> None:
        if label is not None:
            self._labels.setdefault(name, []).append((label, question))

    def table2(self) -> dict[str, Any]:
        """Return the sizes: questions, quotes a question, answers, citations, and their averages (None without any)."""
        questions, answers = len(self._questions), self._answers
        return {
            "questions": questions,
            "quotes_per_question": _over(sum(self._quotes.values()), len(self._quotes)),
            "answers": answers,
            "answers_per_question": _over(answers, questions),
            "sentences": self._sentences,
            "uncited_sentences": self._uncited,
            "citations": self._citations,
            "citations_per_answer": _over(self._citations, answers),
        }

    def table3(self) -> dict[str, Any]:
        """Return total, yes and no of each label, with the share of yes and its 95 % interval over questions.

        `informative` and `attributable` are labels of answers, those with `sentence_` of sentences, `support` counts
        the levels of single citations. Labels that nobody gave are left out.
        """
        table: dict[str, Any] = {}
        for name in TABLE3:
            if label_list := self._labels.get(name):
                rate = Rate.of([label for label, _ in label_list], [question for _, question in label_list])
                table[name] = {
                    "total": rate.total,
                    "yes": rate.yes,
                    "no": rate.total - rate.yes,
                    "share": rate.value,
                    "interval95": list(rate.interval) if rate.interval else None,
                }
        if self._support:
            table["support"] = {level.value: self._support[level] for level in Support}
        return table


def _labels(answer: CitedAnswer) -> Iterator[object]:
    yield from whole_labels(answer).values()
    for sentence in answer.sentences:
        yield from (sentence.informative, sentence.attributable, sentence.worthy, *sentence.support.values())


def describe_labellers(counts: Mapping[str, int]) -> str:
    """Return in words who labelled how many answers (`Statistics.labelled_by`)."""
    people, simulated_answers = (pluralize(n, "answer") if (n := counts[name]) else "" for name in LABELLED_BY)
    if not simulated_answers:
        return f"People judged {people}." if people else "No person has judged these answers."
    summary = f"Simulation: a program drew the labels of {simulated_answers}, or some of them."
    return f"{summary} People alone judged {people}." if people else f"{summary} No person judged the answers."


def _over(part: int, total: int) -> float | None:
    return part / total if total else None


def statistics_of(answers: Iterable[CitedAnswer], parts: dict[str, Part]) -> dict[str, Statistics]:
    """Return the statistics of each part of the answers, in one pass."""
    statistics = {name: Statistics() for name in parts}
    for answer in answers:
        for name, holds in parts.items():
            if holds(answer):
                statistics[name].add(answer)
    return statistics
