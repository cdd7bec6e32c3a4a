"""One run of `autoais score`: a file of any format in, judgements as they come, then the report."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.answers import CitedAnswer
from autoais.errors import UserError
from autoais.formats import Notes
from autoais.meta.human import HumanSummary
from autoais.metrics.short_answers import f1
from autoais.questions import Question
from autoais.scoring import Summary, judge_answers
from autoais.types import Judge

_NO_SENTENCES = "answers without sentences, not attributable (`abstained` marks those meant so)"
_NO_TEXT = "cited passages without a text, not attributable (--corpus FILE gives texts)"


def answers_to_score(
    path: Path,
    format_name: str,
    questions: Sequence[Question] | None = None,
    corpus: Sequence[Path] = (),
    notes: Notes | None = None,
    *,
    skip_bad: bool = False,
) -> Iterator[CitedAnswer]:
    """Stream the answers of a file in any format, as `judge_answers` takes them.

    With `questions`, answers of other systems get the benchmark's ids and references by the exact text of the
    question; those to other questions are dropped and counted in `notes` (spec A5), and `UserError` is raised where
    all are. Our own format has the benchmark's ids: there `judge_answers` refuses an answer that fits none.
    """
    notes = Notes() if notes is None else notes
    join = None if format_name == formats.ANSWERS.name else questions
    ids = {question.text: question.id for question in join or ()}
    some = False
    for answer in formats.read(path, format_name, corpus=corpus, questions=join, notes=notes, skip_bad=skip_bad):
        some = True
        if not (answer.sentences or answer.abstained):
            notes[_NO_SENTENCES] += 1
        if not corpus:
            cited = {key for sentence in answer.sentences for key in sentence.cites}
            if missing := sum(not answer.passages[key].text.strip() for key in cited):
                notes[_NO_TEXT] += missing
        yield answer if join is None else replace(answer, id=ids[answer.question])
    if join and notes and not some:
        raise UserError(f"{path}: no answer is to a question of the benchmark; are these its answers?")


class Run:
    """Judges answers, counts them, and keeps (answer, whether it is attributable) of each with `keep_answers`.

    Without that it keeps a few numbers a question, and no text. `as_2023` counts as Attributed QA's script (spec A7).
    """

    def __init__(
        self, judge: Judge, metrics: Collection[str], *, as_2023: bool = False, keep_answers: bool = False
    ) -> None:
        self.judge = judge
        self.summary, self.human = Summary(metrics, undecided_is_no=as_2023), HumanSummary()
        self._as_2023 = as_2023
        self.kept: list[tuple[CitedAnswer, bool | None]] = []
        self._keep_answers = keep_answers

    def records(
        self, answers: Iterable[CitedAnswer], questions: Iterable[Question] | None = None
    ) -> Iterator[dict[str, Any]]:
        """One JSON row a sentence (`JudgedAnswer.records`); when all are taken, `report` is complete."""
        measured = self.summary.metrics
        for item in judge_answers(answers, self.judge, questions, each=bool(measured), strict="alce" in measured):
            self.summary.add(item)
            if self._as_2023 and item.question.answers:
                short = (item.answer.short_answer if item.answer else None) or ""
                self.summary.f1[-1] = f1(short, item.question.answers, nothing=0.0)
            self.human.add(item)
            if self._keep_answers and item.answer is not None:
                self.kept.append((item.answer, item.ais))
            yield from item.records(self.judge.name)

    def report(self) -> dict[str, Any]:
        """`Summary.report`, and as `human` what people said, where they said something."""
        human = self.human.report()
        return self.summary.report(self.judge.name) | ({"human": human} if human else {})
