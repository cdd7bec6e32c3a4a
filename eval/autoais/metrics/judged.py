"""Answers with one judged claim per sentence, the input of every metric."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.io.notes import Notes
from autoais.base.markers.alce import open_splitter, strict_items, strict_sentences
from autoais.base.text.claims import is_applicable
from autoais.base.types import (
    NO_TEXT,
    NOT_APPLICABLE,
    NOT_JUDGED,
    NOT_WORTHY,
    UNSETTLED_REASONS,
    Attribution,
    Judge,
    Judgement,
    Place,
    Question,
    Verdict,
)
from autoais.metrics import alce, hagrid
from autoais.metrics.alce_answers import claims as reference_claims
from autoais.metrics.alce_answers import text_to_score
from autoais.metrics.claims import CitedClaim, JudgedClaim, all_yes, judge_claims
from autoais.metrics.nuggets import find_nuggets

_BATCH = 256  # answers judged together: bounds memory, changes no result


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A question of the benchmark, its answer (None if missing) and a judged claim per sentence.

    The claim is None for a sentence that claims nothing (a question, an instruction) or that people, as the judge, find
    not worth verifying: it is not judged and not counted.
    `strict` holds the claims as ALCE's eval.py parses them from the output; None if the output is unknown. `nuggets`
    has a verdict per nugget of the question: whether the answer supports one of its phrases; None if undecided.
    `reference_claims` has a verdict per claim of ELI5's reference (ALCE): whether the answer supports it.
    `whole_answer` is the judgement of the whole answer where it does not follow from the sentences: people rated the
    answer as one, or did not settle all of it.
    """

    question: Question
    answer: CitedAnswer | None
    claims: tuple[JudgedClaim | None, ...]
    strict: tuple[JudgedClaim, ...] | None = None
    nuggets: tuple[bool | None, ...] = ()
    reference_claims: tuple[bool | None, ...] = ()
    whole_answer: Judgement | None = None

    @property
    def question_key(self) -> str:
        """What tells its question from others: answers with the same key are not independent.

        The answer's `query_id`, if it is an integer or a string that is not empty (HAGRID has several answers to a
        question); else the text of the question without differences of white space, or its id if there is no text.
        """
        return self._query_id or self.text or self.question.id

    @property
    def text(self) -> str:
        """The text of the question without differences of white space; empty if it is not known."""
        return _words(self.question.text)

    @property
    def query(self) -> str:
        """The id of the question: the answer's `query_id`, as for `asked`, else the question's own."""
        return self._query_id or self.question.id

    @property
    def _query_id(self) -> str:
        query_id = self.answer.extra.get("query_id") if self.answer else None
        return str(query_id).strip() if isinstance(query_id, int | str) and not isinstance(query_id, bool) else ""

    @property
    def applicable_claims(self) -> list[JudgedClaim]:
        """The judged claims, without sentences that claim nothing."""
        return [claim for claim in self.claims if claim is not None]

    @property
    def ais(self) -> bool | None:
        """Whether the answer is attributable: every sentence is, to all its citations together (rule `union`).

        False if there is no answer or a sentence is not attributable; otherwise None if a sentence is undecided. As
        `whole_answer`, if there is one.
        """
        return (
            self.whole_answer.verdict.ais
            if self.whole_answer
            else all_yes(claim.union.verdict.ais for claim in self.applicable_claims)
        )

    @property
    def hagrid(self) -> bool | None:
        """As `ais`, with HAGRID's rule for sentences: every citation must support by itself.

        None if people did not settle every citation by itself: a no would depend on what they were asked.
        """
        if any(
            judgement.reason in UNSETTLED_REASONS
            for claim in self.applicable_claims
            for judgement in claim.per_citation
        ):
            return None
        return all_yes(map(hagrid.attributable, self.applicable_claims))

    def records(self, judge: str) -> Iterator[dict[str, Any]]:
        """Yield one JSON row per sentence; for a question without an answer one row, with a null sentence.

        Fields: id, sentence (0-based), text, cites, verdict, probability, reason, judge; `alone`, the verdict on each
        citation by itself, in the order of `cites`; `evidence`, the spans that the verdict rests on, as character
        offsets into the premise (headings, then text); `unsupported`, spans of the sentence without support; `answer`,
        the verdict on the whole answer, if there is a `whole_answer`.
        """
        answer_field = {} if self.whole_answer is None else {"answer": self.whole_answer.verdict.value}
        sentences = self.answer.sentences if self.answer else ()
        if not sentences:
            yield _row(self.question.id, judge, Verdict.NOT_ATTRIBUTABLE, "nothing was said")
        for number, (sentence, claim) in enumerate(zip(sentences, self.claims, strict=True)):
            fields = {"sentence": number, "text": sentence.text, "cites": list(sentence.cites), **answer_field}
            if claim is None:
                claims_something = is_applicable(sentence.text, self.answer.short_answer if self.answer else None)
                no_claim_reason = NOT_WORTHY if claims_something else "a question or an instruction"
                yield _row(self.question.id, judge, NOT_APPLICABLE, no_claim_reason) | fields
                continue
            union = claim.union
            # All citations of a sentence may be unresolved: their ids are not among the row's passages.
            reason = NO_TEXT if not claim.claim.evidence and claim.claim.unresolved else union.reason
            yield _row(self.question.id, judge, union.verdict, reason) | fields | {
                "probability": union.probability,
                "alone": [judgement.verdict.value for judgement in claim.per_citation],
                "evidence": [
                    {"passage": sentence.cites[span.evidence], "start": span.start, "end": span.end}
                    for span in union.evidence
                    if span.evidence < len(sentence.cites)
                ],
                "unsupported": [list(part) for part in union.unsupported],
            }  # fmt: skip


def _row(question: str, judge: str, verdict: str, reason: str | None) -> dict[str, Any]:
    return {
        "id": question, "sentence": None, "text": "", "cites": [], "verdict": str(verdict), "probability": None,
        "reason": reason, "judge": judge, "alone": [], "evidence": [], "unsupported": [],
    }  # fmt: skip


def judge_answers(
    answers: Iterable[CitedAnswer],
    judge: Judge,
    questions: Iterable[Question] | None = None,
    *,
    per_citation: bool = True,
    strict: bool = False,
    splitter: str | None = None,
) -> Iterator[JudgedAnswer]:
    """Judge each answer's sentences against the passages they cite, streaming.

    With `per_citation`, citations are also judged singly; with `strict`, so are the sentences that ALCE's script would
    parse (`splitter`: `markers.alce.open_splitter`), and the claims of its references. `questions` is the whole
    benchmark: it supplies the references, a question without an answer is yielded with None, and a second answer to a
    question, or an answer to another question, raises `UserError`. An answer belongs to the question with its id; if
    there is no such id, to that with the text of its own question (of several, the first without an answer). Without
    `questions`, the answers' own questions are the benchmark.
    """
    benchmark = None if questions is None else {question.id: question for question in questions}
    open_questions = dict(benchmark or {})
    by_text: dict[str, list[Question]] = {}
    for question in open_questions.values():
        by_text.setdefault(_words(question.text), []).append(question)
    stream = iter(answers)
    while batch := list(islice(stream, _BATCH)):
        batch_questions = [
            _own_question(answer) if benchmark is None else _find_question(answer, benchmark, by_text, open_questions)
            for answer in batch
        ]
        claims = [claims_to_judge(answer) for answer in batch]
        as_alce = [_strict_claims(answer, splitter) if strict else None for answer in batch]
        batch_claims = [claim for row in claims for claim in row if claim is not None]
        batch_claims += [claim for row in as_alce for claim in row or ()]
        judged_claims = iter(judge_claims(judge, batch_claims, per_citation=per_citation))
        rows = [
            tuple(None if claim is None else _drop_not_worthy(next(judged_claims)) for claim in row) for row in claims
        ]
        nuggets = _nuggets(judge, batch_questions, batch)
        reference_verdicts = _reference_claims(judge, batch if strict else ())
        for question, answer, row, strictly, nugget_verdicts in zip(
            batch_questions, batch, rows, as_alce, nuggets, strict=True
        ):
            as_judged = None if strictly is None else tuple(islice(judged_claims, len(strictly)))
            answer_judgement = _whole(judge, answer, row)
            yield JudgedAnswer(
                question, answer, row, as_judged, nugget_verdicts, next(reference_verdicts, ()), answer_judgement
            )
    for question in open_questions.values():
        yield JudgedAnswer(question, None, (), None, (False,) * len(question.nuggets))


def _drop_not_worthy(claim: JudgedClaim) -> JudgedClaim | None:
    """The judged claim; None if people find it not worth verifying."""
    return None if claim.union.reason == NOT_WORTHY else claim


def whole_answer(answer: CitedAnswer) -> Attribution:
    """Return an answer against all that it cites."""
    keys = dict.fromkeys(key for sentence in answer.sentences for key in sentence.cites)
    return Attribution(answer.plain, tuple(answer.passages[key].evidence for key in keys), answer.question)


def _whole(judge: Judge, answer: CitedAnswer, claims: Iterable[JudgedClaim | None]) -> Judgement | None:
    """The judgement of the whole answer, if people gave one; undecided if they did not settle all of its sentences."""
    pair = whole_answer(answer)
    if (judgement := judge.of_place(Place(answer.id), pair) or judge.of_answer(pair)) is not None:
        return judgement
    is_unsettled = any(claim is not None and claim.union.reason in UNSETTLED_REASONS for claim in claims)
    return Judgement(Verdict.UNDECIDED, None, NOT_JUDGED) if is_unsettled else None


def _nuggets(
    judge: Judge, questions: Sequence[Question], answers: Sequence[CitedAnswer]
) -> list[tuple[bool | None, ...]]:
    """A verdict per nugget of each question. A phrase that the answer contains needs no judge."""
    occurrences = [
        find_nuggets(answer.plain, question.nuggets) for question, answer in zip(questions, answers, strict=True)
    ]
    open_phrases = [
        Attribution(phrase, (answer.plain,), question.text)
        for question, answer, present in zip(questions, answers, occurrences, strict=True)
        for phrases, occurs in zip(question.nuggets, present, strict=True)
        if not occurs and answer.plain.strip()
        for phrase in phrases
    ]
    verdicts = iter([judgement.verdict.ais for judgement in judge.judge(open_phrases)] if open_phrases else [])
    return [
        tuple(
            True if occurs else _any_yes([next(verdicts) for _ in phrases]) if answer.plain.strip() else False
            for phrases, occurs in zip(question.nuggets, present, strict=True)
        )
        for question, answer, present in zip(questions, answers, occurrences, strict=True)
    ]


def _reference_claims(judge: Judge, answers: Sequence[CitedAnswer]) -> Iterator[tuple[bool | None, ...]]:
    """A verdict per claim of each answer's reference; the premise is the answer as ALCE scores it."""
    pairs_by_answer = []
    for answer in answers:
        claims = reference_claims(answer)
        premise = (text_to_score(answer),) if claims else ()
        pairs_by_answer.append([Attribution(claim, premise) for claim in claims])
    pairs = [pair for row in pairs_by_answer for pair in row]
    verdicts = iter([judgement.verdict.ais for judgement in judge.judge(pairs)] if pairs else [])
    return (tuple(islice(verdicts, len(row))) for row in pairs_by_answer)


def _any_yes(outcomes: Sequence[bool | None]) -> bool | None:
    return True if True in outcomes else None if None in outcomes else False


def _own_question(answer: CitedAnswer) -> Question:
    return Question(answer.id, answer.question, answer.answers, answer.gold, answer.nuggets)


def in_benchmark(answers: Iterable[CitedAnswer], questions: Sequence[Question], notes: Notes) -> Iterator[CitedAnswer]:
    """Yield the answers to questions of the benchmark, as `judge_answers` finds them; count the others in `notes`.

    Raises `UserError` if there are answers, and none is to such a question.
    """
    from autoais.formats.convert import DropCounter

    keys = {(question.id, None) for question in questions} | {(None, _words(question.text)) for question in questions}
    outsiders, first, has_match = DropCounter(notes), None, False
    for answer in answers:
        if (answer.id, None) in keys or (None, _words(answer.question)) in keys:
            has_match = True
            yield answer
            continue
        first = first or answer
        outsiders.drop(answer)
    if first is not None and not has_match:
        raise UserError(
            f"answer {first.id!r}: neither its id nor its question {first.question[:60]!r} is in the benchmark, nor is "
            "that of any other answer; do they belong together?"
        )


def _words(text: str) -> str:
    return " ".join(text.split())


def _find_question(
    answer: CitedAnswer,
    benchmark: Mapping[str, Question],
    by_text: Mapping[str, Sequence[Question]],
    open_questions: dict[str, Question],
) -> Question:
    """Return the benchmark's question for an answer, and remove it from `open_questions`, the unanswered questions."""
    question = benchmark.get(answer.id)
    if question is None:
        candidates = by_text.get(_words(answer.question), ())
        question = next(
            (candidate for candidate in candidates if candidate.id in open_questions),
            candidates[0] if candidates else None,
        )
    if question is None:
        raise UserError(
            f"answer {answer.id!r}: neither its id nor its question {answer.question[:60]!r} is in the benchmark; do "
            "they belong together?"
        )
    if _words(question.text) != _words(answer.question):
        raise UserError(
            f"answer {answer.id!r}: its question is {answer.question[:60]!r}, the benchmark's question of that id is "
            f"{question.text[:60]!r}; do they belong together?"
        )
    if open_questions.pop(question.id, None) is None:
        raise UserError(
            f"question {question.id!r} ({question.text[:60]!r}) has two answers; keep one, or give no questions"
        )
    return question


def claims_to_judge(answer: CitedAnswer) -> list[CitedClaim | None]:
    """Return what is judged of each sentence of an answer; None for one that claims nothing."""
    unresolved = Counter(marker.sentence for marker in answer.unresolved_markers if marker.is_citation)
    is_list = answer.is_list  # ALCE judges an item of a list together with the question
    return [
        CitedClaim(
            f"{answer.question} {sentence.text}" if is_list else sentence.text,
            tuple(answer.passages[key].evidence for key in sentence.cites),
            unresolved[number],
            "" if is_list else answer.question,
            Place(answer.id, number, sentence.cites),
        )
        if is_list or is_applicable(sentence.text, answer.short_answer)
        else None
        for number, sentence in enumerate(answer.sentences)
    ]


def _strict_claims(answer: CitedAnswer, splitter: str | None) -> list[CitedClaim] | None:
    """Return the claims that ALCE's script would parse from the output; None without an output or passage texts."""
    if answer.output is None or not any(passage.text.strip() for passage in answer.passages.values()):
        return None
    documents = [f"Title: {passage.title}\n{passage.text}" for passage in answer.passages.values()]
    if answer.is_list:
        return alce.strict_claims(strict_items(answer.question, answer.output), documents)
    return alce.strict_claims(strict_sentences(answer.output, open_splitter(splitter)), documents)
