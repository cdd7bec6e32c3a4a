"""Scores a file of cited answers: one pass, one judgement a sentence, every question of the benchmark counted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from autoais.answers import CitedAnswer
from autoais.errors import UserError
from autoais.judges import weigh
from autoais.metrics import Mean, Rate, exact_match, f1, has_answer
from autoais.questions import Question
from autoais.types import Attribution, Judge, Judgement

DEPTHS = (1, 5, 20, 100)
_NEEDS = {"Success": "gold passages", "R": "gold passages", "answer_hit": "reference answers"}
_BATCH = 256  # answers judged together: bounds memory, changes no result


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A question of the benchmark, its answer (None if it was never answered) and a judgement a sentence."""

    question: Question
    answer: CitedAnswer | None
    judgements: tuple[Judgement, ...]

    @property
    def ais(self) -> bool | None:
        """Whether the whole answer is attributable: all sentences are (HAGRID's roll-up).

        No answer is a no; one sentence that is not attributable decides; else one undecided leaves it undecided.
        """
        if not self.judgements:
            return False
        outcomes = [judgement.verdict.ais for judgement in self.judgements]
        if False in outcomes:
            return False
        return None if None in outcomes else True

    def records(self, judge: str) -> Iterator[dict[str, Any]]:
        """One JSON row a judged sentence: id, sentence (0-based), text, cites, verdict, probability, reason, judge."""
        sentences = self.answer.sentences if self.answer else ()
        for number, (sentence, judgement) in enumerate(zip(sentences, self.judgements, strict=True)):
            yield {
                "id": self.question.id,
                "sentence": number,
                "text": sentence.text,
                "cites": list(sentence.cites),
                "verdict": judgement.verdict.value,
                "probability": judgement.probability,
                "reason": judgement.reason,
                "judge": judge,
            }


def judge_answers(
    answers: Iterable[CitedAnswer], judge: Judge, questions: Iterable[Question] | None = None
) -> Iterator[JudgedAnswer]:
    """Judge each answer's sentences against the union of the passages they cite, streaming.

    With `questions` (the whole benchmark), references come from there, a question without an answer is yielded
    with None, and an answer to a question that is not among them is a `UserError`. Without, the answers' own
    rows are taken for the benchmark.
    """
    benchmark = None if questions is None else {question.id: question for question in questions}
    stream = iter(answers)
    while batch := list(islice(stream, _BATCH)):
        pairs = [
            Attribution(sentence.text, tuple(answer.passages[cited].evidence for cited in sentence.cites))
            for answer in batch
            for sentence in answer.sentences
        ]
        judgements = iter(weigh(judge, pairs))
        for answer in batch:
            if benchmark is None:
                question: Question | None = Question(answer.id, answer.question, answer.answers, answer.gold)
            else:
                question = benchmark.pop(answer.id, None)
            if question is None:
                raise UserError(f"answer {answer.id!r} is to no question of the benchmark; are these its answers?")
            if question.text.split() != answer.question.split():
                raise UserError(
                    f"answer {answer.id!r} is to {answer.question[:60]!r}, the benchmark's question of that id is "
                    f"{question.text[:60]!r}; are these its answers?"
                )
            yield JudgedAnswer(question, answer, tuple(islice(judgements, len(answer.sentences))))
    for question in (benchmark or {}).values():
        yield JudgedAnswer(question, None, ())


class Summary:
    """All metrics over the benchmark's questions, as fractions; what cannot be computed is null with a reason.

    `autoais`: answers whose every sentence is attributable, of all questions. `sentences`: attributable sentences.
    `em`, `f1`: SQuAD, on `short_answer`. `answer_recall`: a reference string stands in the cited sentences.
    `Success@k`, `R@k` (ir_measures): gold passages in the first k; `answer_hit@k`: a reference in the first k texts.
    Per question it keeps a few numbers and no text.
    """

    def __init__(self) -> None:
        self.questions = self.answered = self.unresolved = self.short_answers = self.with_references = 0
        self.depth = 0  # of the longest list of passages
        self.answer_ais: list[bool | None] = []
        self.sentence_ais: list[bool | None] = []
        self.em: list[float] = []
        self.f1: list[float] = []
        self.answer_recall: list[bool | None] = []
        self.success: dict[int, list[bool | None]] = {k: [] for k in DEPTHS}
        self.recall: dict[int, list[float]] = {k: [] for k in DEPTHS}
        self.answer_hit: dict[int, list[bool | None]] = {k: [] for k in DEPTHS}

    def add(self, item: JudgedAnswer) -> None:
        """Count one question of the benchmark."""
        question, answer = item.question, item.answer
        self.questions += 1
        self.answer_ais.append(item.ais)
        self.sentence_ais.extend(judgement.verdict.ais for judgement in item.judgements)
        ranking = answer.ranking if answer else ()
        if answer:
            self.answered += bool(answer.sentences)
            self.unresolved += answer.unresolved
            self.short_answers += answer.short_answer is not None
            self.depth = max(self.depth, len(ranking))
        if question.answers:
            self.with_references += 1
            short = (answer.short_answer if answer else None) or ""
            self.em.append(exact_match(short, question.answers))
            self.f1.append(f1(short, question.answers))
            cited = " ".join(s.text for s in answer.sentences if s.cites) if answer else ""
            self.answer_recall.append(has_answer(cited, question.answers))
            first = next((r for r, i in enumerate(ranking, 1) if _holds(answer, i, question)), None)
            for k in DEPTHS:
                self.answer_hit[k].append(first is not None and first <= k)
        if question.gold:
            for k in DEPTHS:
                found = len(set(question.gold).intersection(ranking[:k]))
                self.success[k].append(found > 0)
                self.recall[k].append(found / len(set(question.gold)))

    def report(self, judge: str) -> dict[str, Any]:
        """The metrics by name, as JSON."""
        metrics: dict[str, Any] = {
            "autoais": Rate.of(self.answer_ais).record(),
            "sentences": Rate.of(self.sentence_ais).record(),
        }
        no_references = "no question has reference answers"
        if not self.with_references:
            metrics |= {name: _absent(no_references) for name in ("em", "f1", "answer_recall")}
        else:
            metrics["answer_recall"] = Rate.of(self.answer_recall).record()
            if self.short_answers:
                metrics["em"] = Rate.of(bool(value) for value in self.em).record()
                metrics["f1"] = Mean.of(self.f1).record()
            else:
                metrics |= {name: _absent("the system gives no short answers") for name in ("em", "f1")}
        for k in DEPTHS:
            # A depth beyond what the system returned would only repeat the value at the last one.
            too_deep = f"no answer lists {k} passages" if k > self.depth else None
            for name, values in (("Success", self.success[k]), ("answer_hit", self.answer_hit[k])):
                missing = too_deep or (None if values else f"no question has {_NEEDS[name]}")
                metrics[f"{name}@{k}"] = _absent(missing) if missing else Rate.of(values).record()
            missing = too_deep or (None if self.recall[k] else f"no question has {_NEEDS['R']}")
            metrics[f"R@{k}"] = _absent(missing) if missing else Mean.of(self.recall[k]).record()
        for metric in metrics.values():
            if metric["value"] is None:
                metric.setdefault("reason", "nothing was decided")
        return {
            "judge": judge,
            "questions": self.questions,
            "answered": self.answered,
            "unresolved_markers": self.unresolved,
            "metrics": metrics,
        }


def _holds(answer: CitedAnswer | None, passage: str, question: Question) -> bool:
    return answer is not None and has_answer(answer.passages[passage].text, question.answers)


def _absent(reason: str) -> dict[str, Any]:
    return {"value": None, "reason": reason}
