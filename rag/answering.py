"""Answers and search results as JSON and TREC lines: the only place where our types become dicts."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from autoais.errors import FormatError
from autoais.io.jsonl import dumps, field, parse_object, read_objects, round_floats, write_whole
from rag.citations import numbered
from rag.errors import RagError
from rag.types import Answer, Hit, Passage, Question


def passage_record(passage: Passage) -> dict[str, Any]:
    """id, title, section, text."""
    return {"id": passage.id, "title": passage.title, "section": passage.section, "text": passage.text}


def answer_record(answer: Answer, index: str, seconds: float) -> dict[str, Any]:
    """One row of `answers.jsonl`. `passages` are in the order of their numbers `n`; `rank` is the retriever's."""
    question = answer.question
    record: dict[str, Any] = {
        "id": question.id,
        "question": question.text,
        "system": answer.system,
        "index": index,
        "answer": answer.text,
        "short_answer": answer.short_answer,
        "sentences": [
            {
                "text": answer.text[sentence.start : sentence.end],
                "start": sentence.start,
                "end": sentence.end,
                "citations": [
                    {"passage": c.passage, "start": c.start, "end": c.end, "quote": c.quote, "origin": c.origin}
                    for c in sentence.citations
                ],
            }
            for sentence in answer.sentences
        ],
        "passages": [
            {"n": n, "rank": rank, **passage_record(hit.passage), "score": hit.score}
            for n, rank, hit in numbered(answer)
        ],
        "unresolved": [{"marker": u.marker, "reason": u.reason} for u in answer.unresolved],
        "abstained": answer.abstained,
        "failed": answer.failed,
        "reason": answer.reason,
        "confidence": answer.confidence,
        "trace": dict(answer.trace),
        "seconds": round(seconds, 4),
    }
    # References and gold travel along, so that the file can be scored by itself.
    if question.answers:
        record["answers"] = list(question.answers)
    if question.gold:
        record["gold"] = list(question.gold)
    rounded: dict[str, Any] = round_floats(record)
    return rounded


def search_record(question: Question, hits: Sequence[Hit]) -> dict[str, Any]:
    """A query and its hits, for `rag search --json`."""
    listed = [{"rank": r, **passage_record(h.passage), "score": h.score} for r, h in enumerate(hits, 1)]
    record: dict[str, Any] = round_floats({"id": question.id, "question": question.text, "hits": listed})
    return record


def tokens_of(answers: Path) -> tuple[int, int]:
    """How many tokens the language models of a file's answers read and wrote."""
    read = written = 0
    for where, row in read_objects(answers):
        trace = field(row, "trace", dict, where)
        if "tokens" in trace:
            tokens = field(trace, "tokens", dict, where)
            read += field(tokens, "read", int, where)
            written += field(tokens, "written", int, where)
    return read, written


def trec_lines(question: Question, hits: Sequence[Hit], tag: str) -> Iterator[str]:
    """`qid Q0 docid rank score tag`, rank from 1; an id with white space, which the format cannot hold, is refused."""
    tag = "_".join(tag.split()) or "-"
    for rank, hit in enumerate(hits, 1):
        for value in (question.id, hit.passage.id):
            if not value or any(c.isspace() for c in value):
                raise RagError(f"a TREC run cannot hold the id {value!r}: it is empty or has white space in it")
        yield f"{question.id} Q0 {hit.passage.id} {rank} {hit.score:.6f} {tag}"


class Journal:
    """An `answers.jsonl` that grows a whole row at a time and can be taken up again after a kill.

    `settings` (all that changes a row, and the command) are kept beside it in `<name>.run.json`; a run that is resumed
    with others is refused, because its rows would not belong together. `done` are the ids of the rows that were there,
    `failed` of those among them whose model gave nothing (`Answer.failed`).
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self._settings_path = path.with_name(path.name + ".run.json")
        self.done: list[str] = []
        self.failed: list[str] = []
        if path.exists() and not resume:
            raise RagError(f"{path} exists: finish it with --resume, or name another file")
        if path.exists():
            self._check_settings(settings)
            self.done = self._recover()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():  # a run that is resumed keeps the record of how it was begun
                write_whole(self._settings_path, [dumps(settings, indent=2)])
            self._file: TextIO = path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise RagError(f"{path}: cannot be written: {error.strerror}") from error

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        where = str(self._settings_path)
        try:
            before = parse_object(self._settings_path.read_bytes(), where)
        except (OSError, FormatError) as error:
            raise RagError(f"{self.path} cannot be resumed: {where} cannot be read") from error
        changed = [key for key, value in settings.items() if key != "command" and before.get(key) != value]
        if changed:
            raise RagError(f"{self.path} cannot be resumed: it was begun with another {', '.join(changed)}")

    def _recover(self) -> list[str]:
        """Ids of the whole rows; a last row without its line end was cut off by a kill and is taken away."""
        whole = 0
        done = []
        with self.path.open("rb+") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                where = f"{self.path}:{number}"
                row = parse_object(line, where)
                done.append(field(row, "id", str, where))
                if row.get("failed") is True:
                    self.failed.append(done[-1])
                whole += len(line)
            file.truncate(whole)
        return done

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one row; it is in the file when this returns."""
        try:
            self._file.write(dumps(record) + "\n")
            self._file.flush()
        except OSError as error:
            raise RagError(f"{self.path}: cannot be written: {error.strerror}; --resume goes on from here") from error

    def replace(self, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Put other rows in the place of those with these ids, in one step: a kill leaves the old rows or the new."""
        self.close()
        write_whole(self.path, self._rows(records))
        self._file = self.path.open("a", encoding="utf-8", newline="\n")

    def _rows(self, records: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        for where, row in read_objects(self.path):
            new = records.get(field(row, "id", str, where))
            yield dumps(row if new is None else new)

    def close(self) -> None:
        """Make sure the rows are on disk."""
        try:
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise RagError(f"{self.path}: cannot be written: {error.strerror}") from error


def pending(questions: Iterable[Question], done: Sequence[str]) -> list[Question]:
    """The questions still to answer; `FormatError` if the rows there are not the first questions in order."""
    listed = list(questions)
    if [question.id for question in listed[: len(done)]] != list(done):
        raise FormatError("the rows already written are not the first of these questions; was the file changed?")
    return listed[len(done) :]
