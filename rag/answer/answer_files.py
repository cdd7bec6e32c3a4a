"""Answers the questions of a file, and adds citations to the answers of a file, in a `Journal`."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.answers import to_row
from autoais.base.io.jsonl import check_outputs, field, read_objects
from autoais.base.io.provenance import command, sha256_file, versions
from autoais.base.models.pace import AUTO, Pace, RequestTotals
from autoais.base.progress import Progress
from autoais.formats.questions import read_questions
from rag.answer.llms import Price, cost
from rag.answer.system import System, answer_each
from rag.base.errors import RagError, check_type
from rag.base.journal import Journal, pending
from rag.index.index import Index

if TYPE_CHECKING:
    from rag.answer.attribution.post_hoc import PostHoc
    from rag.answer.attribution.revise import Reviser


@dataclass(frozen=True, slots=True)
class AnswerRun:
    """The summary of a run: the rows in the file, the refusals and failures among them, and the tokens of models.

    `served` says what model servers did in this run.
    """

    answers: int
    refused: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    served: RequestTotals | None = None

    @property
    def answered(self) -> int:
        """The questions that have an answer."""
        return self.answers - self.refused - self.failed

    def cost(self, price: Price) -> float:
        """The cost of the tokens, given the prices per million input and output tokens."""
        return cost(self.prompt_tokens, self.completion_tokens, price)


@dataclass(frozen=True, slots=True)
class AttributionRun:
    """The summary of a run: the answers in the file, and the sentences with and without a source in this run.

    `contradicted` are those of the latter that a passage contradicts.
    """

    answers: int
    attached: int
    uncited: int
    contradicted: int


def answer_file(
    questions: str | Path,
    out: str | Path,
    system: System,
    index: Index,
    *,
    concurrency: int | str = AUTO,
    resume: bool = False,
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> AnswerRun:
    """Answer every question of a file; each answer is appended to `out` (`answers.jsonl`) when it is complete.

    `resume` continues after the last row of a stopped run and ends with the same rows. `retry_failed` asks only the
    questions whose model failed and keeps the other rows. `concurrency` is the number of questions asked at once, or
    `auto`: as many as make a model server faster, and one of a system that asks none. Raises `RagError` if `out` exists
    and neither is set, or if `out` belongs to another run.
    """
    check_type("system", system, "an open system (rag.open_system)", System)
    check_type("index", index, "an open index (rag.open_index)", Index)
    questions, out, pace = Path(questions), Path(out), Pace(concurrency)
    if retry_failed and not out.exists():
        raise RagError(f"{out}: no such file; retry_failed (--retry-failed) needs the answers of an earlier run")
    question_list = list(read_questions(questions))
    settings = _settings(system.name, index, "questions", questions)
    with Journal(out, settings, resume=resume or retry_failed) as journal:
        remaining, finished_count = pending(question_list, journal.done), len(journal.done)
        if retry_failed:
            retry_ids = set(journal.failed)
            remaining = [question for question in question_list if question.id in retry_ids]
            finished_count -= len(retry_ids)
        write = journal.renew if retry_failed else journal.write
        for answer, seconds in answer_each(system, remaining, pace):
            write(to_row(answer.to_cited(index.name, seconds)))
            finished_count += 1
            if progress:
                progress("answering", finished_count, len(question_list))
    refused, failed = _count_without_answer(out)
    return AnswerRun(finished_count, refused, failed, *tokens_of(out), pace.totals)


def attribute_file(
    answers: str | Path,
    out: str | Path,
    post_hoc: "PostHoc",
    index: Index,
    *,
    reviser: "Reviser | None" = None,
    format: str | None = None,  # noqa: A002  (named like the command-line option)
    resume: bool = False,
    progress: Progress | None = None,
) -> AttributionRun:
    """Add citations to the answers of a file, in any format that `autoais` reads, and write them to `out`.

    `reviser` drops or rewrites unsupported sentences. `resume` as for `answer_file`.
    """
    from rag.answer.attribution.post_hoc import read_uncited_answers

    answers, out = Path(answers), Path(out)
    check_outputs([answers], [out])
    answer_list = list(read_uncited_answers(answers, format))
    name = post_hoc.name if reviser is None else f"{post_hoc.name}>{reviser.name}"
    with Journal(out, _settings(name, index, "answers", answers), resume=resume) as journal:
        pending([answer.question for answer in answer_list], journal.done)
        finished_count, attached_count, uncited_count, contradicted_count = len(journal.done), 0, 0, 0
        for answer in answer_list[finished_count:]:
            start_time = time.perf_counter()
            answer_with_citations = post_hoc.attribute(answer)
            attached_count += answer_with_citations.trace["attribution"]["attached"]
            uncited_count += answer_with_citations.trace["attribution"]["uncited"]
            contradicted_count += sum("contradiction" in check for check in answer_with_citations.trace["checked"])
            if reviser is not None:
                answer_with_citations = reviser.revise(answer_with_citations)
            journal.write(to_row(answer_with_citations.to_cited(index.name, time.perf_counter() - start_time)))
            finished_count += 1
            if progress:
                progress("attributing", finished_count, len(answer_list))
    return AttributionRun(len(answer_list), attached_count, uncited_count, contradicted_count)


def _settings(system: str, index: Index, role: str, path: Path) -> dict[str, Any]:
    """Everything that determines the rows of a run, and its command."""
    return {
        "system": system,
        "index": {"name": index.name} | {key: index.manifest[key] for key in ("checksum", "recipe", "analyzer")},
        role: {"file": path.name, "sha256": sha256_file(path)},
        "versions": versions(),
        "command": command(),
    }


def _count_without_answer(answers: Path) -> tuple[int, int]:
    """The numbers of refusals and of failures in a file of answers."""
    refused = failed = 0
    for location, row in read_objects(answers):
        has_failed = row.get("failed") is True
        failed += has_failed
        refused += not has_failed and field(row, "abstained", bool, location)
    return refused, failed


def tokens_of(answers: Path) -> tuple[int, int]:
    """The numbers of tokens that language models read and wrote for the answers of a file."""
    prompt_tokens = completion_tokens = 0
    for location, row in read_objects(answers):
        trace = field(row, "trace", dict, location)
        if "tokens" in trace:
            tokens = field(trace, "tokens", dict, location)
            prompt_tokens += field(tokens, "read", int, location)
            completion_tokens += field(tokens, "written", int, location)
    return prompt_tokens, completion_tokens
