"""What runs and collections share: the lock of their folder, what a kill leaves in it, and rows that resume."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.jsonl import read_objects
from autoais.base.progress import no_progress
from rag.base.errors import FormatError, RagError
from rag.base.types import Question
from rag.bench.output_folder import LOCK, lock_folder, sweep_folder, write_rows
from rag.bench.question_files import BenchQuestion

QUESTIONS = [BenchQuestion(Question(str(number), f"Who built mill {number}?")) for number in range(4)]
WRITTEN = re.compile(r"run\.json|answers\.jsonl")


def test_an_error_before_the_first_file_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()

    def fail(name: str, *files: str) -> None:
        with lock_folder(tmp_path / name):
            for file in files:
                (tmp_path / name / file).touch()
            raise RagError("no mill")

    for arguments in (("old",), ("new",), ("begun", "run.json")):
        with pytest.raises(RagError, match="no mill"):
            fail(*arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "old"]
    with lock_folder(tmp_path / "old"), pytest.raises(RagError, match="another process is using it"):
        lock_folder(tmp_path / "old").__enter__()


def test_only_what_killed_writes_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "reader").mkdir()
    names = [".run.json.0123456789abcdef", "reader/.answers.jsonl.0123456789abcdef"]
    others = [".answers.jsonl.swp", "reader/.notes.0123456789abcdef", "run.json", "thesis.tex", LOCK]
    for name in names + others:
        (tmp_path / name).touch()
    sweep_folder(tmp_path, "run.json", WRITTEN)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == sorted([*others, "reader"])


def test_a_folder_of_something_else_is_refused_and_left(tmp_path: Path) -> None:
    for name in (LOCK, "questions.jsonl", ".run.json.0123456789abcdef", "thesis.tex"):
        (tmp_path / name).touch()
    with pytest.raises(RagError, match=r"is not empty \(it holds thesis\.tex\)"):
        sweep_folder(tmp_path, "run.json", WRITTEN, ["questions.jsonl"])
    assert len(list(tmp_path.iterdir())) == 4
    (tmp_path / "thesis.tex").unlink()
    sweep_folder(tmp_path, "run.json", WRITTEN, ["questions.jsonl"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [LOCK, "questions.jsonl"]


def test_rows_go_on_where_they_stopped_and_failed_ones_are_made_again(tmp_path: Path) -> None:
    path, asked = tmp_path / "rows.jsonl", []
    steps: list[tuple[str, int, int]] = []

    def answer(questions: Sequence[BenchQuestion]) -> Iterator[dict[str, Any]]:
        for question in questions:
            asked.append(question.question.id)
            if len(asked) == 3:
                raise RagError("stopped")
            yield {"id": question.question.id, "failed": question.question.id == "1" and len(asked) < 5}

    with pytest.raises(RagError, match="stopped"):
        write_rows(path, QUESTIONS, {"system": "a"}, answer, no_progress, "answering")
    write_rows(
        path, QUESTIONS, {"system": "a"}, answer, lambda *step: steps.append(step), "answering", "answering again"
    )
    assert asked == ["0", "1", "2", "2", "3", "1"]
    assert steps == [("answering", 3, 4), ("answering", 4, 4), ("answering again", 1, 1)]
    assert [row for _, row in read_objects(path)] == [{"id": str(n), "failed": False} for n in range(4)]
    with pytest.raises(RagError, match="started with another system"):
        write_rows(path, QUESTIONS, {"system": "b"}, answer, no_progress, "answering")
    with pytest.raises(FormatError, match="not the first of these questions"):
        write_rows(path, QUESTIONS[1:], {"system": "a"}, answer, no_progress, "answering")
