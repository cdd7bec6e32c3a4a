"""Answers of other people's systems, joined with the questions of a benchmark."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from autoais import formats
from autoais.base.answers import CitedAnswer, write_answers
from autoais.base.io.jsonl import write_atomic
from rag.answer.specs import number_duplicates, safe_name
from rag.base.errors import RagError
from rag.base.types import Citation, Passage, Question
from rag.bench.output_folder import count_examples
from rag.bench.question_files import BenchQuestion

DID_NOT_FIT = {
    "unknown": "questions outside the benchmark, discarded",
    "duplicates": "repeated answers, of which the last counts",
    "missing": "questions without an answer, which count as wrong",
    "not_in_corpus": "cited passages that are not in the corpus",
    "other_text": "passages with another text in the corpus, which is the one judged",
    "other_id": "passages under another id in the corpus, found by their text",
}
"""What `Joined` counts, for people."""

_count_examples = partial(count_examples, max_examples=1000)


class Passages(Protocol):
    """Looks up the passages of a corpus."""

    def find(self, ids: set[str]) -> Mapping[str, Passage]:
        """Return the passages with these ids, those that the corpus has."""
        ...

    def find_texts(self, texts: set[str]) -> Mapping[str, Passage]:
        """Return the first passage with each of these texts (`fold`), those that the corpus has."""
        ...


@dataclass(frozen=True, slots=True)
class Joined:
    """The answers to a benchmark's questions, in their order, and what was found in the file besides.

    `record` counts, with examples: `unknown` questions, which are discarded; `duplicates`, of which the last answer
    counts; `missing` answers, which count as wrong; `not_in_corpus`, cited passage ids that the corpus does not have;
    `other_text`, those that it has with another text, which the judge reads instead of the file's; `other_id`, those
    whose id it lacks and whose text it has, which are that passage. `not_asked` are answers to questions of the
    benchmark that are not in the sample.
    """

    system: str
    answers: Sequence[CitedAnswer]
    record: Mapping[str, Any]
    notes: formats.Notes = field(default_factory=formats.Notes)


class GivenPassages:
    """The passages that come with questions, for a benchmark without a corpus."""

    def __init__(self, questions: Sequence[BenchQuestion]) -> None:
        self._known = {passage.id: passage for question in questions for passage in question.passages}

    def find(self, ids: set[str]) -> Mapping[str, Passage]:
        """Return the passages with these ids."""
        return {key: self._known[key] for key in sorted(ids & self._known.keys())}

    def find_texts(self, texts: set[str]) -> Mapping[str, Passage]:
        """Return the first passage with each of these texts."""
        return by_text(self._known.values(), texts)


def fold(text: str) -> str:
    """Return a text with its white space as single spaces."""
    return " ".join(text.split())


def by_text(passages: Iterable[Passage], texts: set[str]) -> dict[str, Passage]:
    """Return the first passage with each of these texts (`fold`); stops where all are found."""
    passages_by_text: dict[str, Passage] = {}
    for passage in passages:
        if len(passages_by_text) == len(texts):
            break
        if (text := fold(passage.text)) in texts:
            passages_by_text.setdefault(text, passage)
    return passages_by_text


def join_predictions(
    path: Path, questions: Sequence[BenchQuestion], other_texts: Iterable[str], corpus: Passages | None
) -> Joined:
    """Read answers in any format of `autoais schema`, matched by the text of the question (white space aside).

    `other_texts` are the texts of the benchmark's questions that this run does not ask. `corpus` looks up passages;
    None leaves the file's own. Raises `RagError` if no answer belongs to the benchmark, or if several systems answer
    the same question.
    """
    name = formats.detect(path)
    notes = formats.Notes()
    by_text: dict[str, list[Question]] = {}
    by_id = {question.question.id: question.question for question in questions}
    for bench_question in questions:
        by_text.setdefault(fold(bench_question.question.text), []).append(bench_question.question)
    folded_texts = set(map(fold, other_texts))
    answers_by_id: dict[str, CitedAnswer] = {}
    unknown: list[str] = []
    duplicates: list[str] = []
    systems: set[str] = set()
    not_asked = 0
    for answer in formats.read(path, name, notes=notes):
        matches = by_text.get(fold(answer.question), [])
        if not answer.question.strip() and answer.id in by_id:
            matches = [by_id[answer.id]]
        if len(matches) > 1 and answer.id in {question.id for question in matches}:
            matches = [by_id[answer.id]]
        if not matches:
            if fold(answer.question) in folded_texts:
                not_asked += 1
            else:
                unknown.append(answer.question or answer.id)
            continue
        for question in matches:
            if question.id in answers_by_id:
                duplicates.append(question.text)
                systems |= {_system_of(answers_by_id[question.id]), _system_of(answer)} - {""}
            answers_by_id[question.id] = _of_benchmark(answer, question)
    if len(systems) > 1:
        raise RagError(
            f"{path}: {_list_names(systems)} answer the same questions; give each system its own file: "
            f"rag bench split {shlex.quote(str(path))} --to FOLDER"
        )
    if not answers_by_id and not not_asked:
        raise RagError(f"{path}: no answer has its question in the benchmark; do they belong together?")
    missing = [question.question.text for question in questions if question.question.id not in answers_by_id]
    record: dict[str, Any] = {
        "format": name,
        "answers": len(answers_by_id),
        "unknown": _count_examples(unknown),
        "duplicates": _count_examples(duplicates),
        "missing": _count_examples(missing),
        "not_asked": not_asked,
    }
    record["duplicates"]["count"] += notes.pop("repeated_questions", 0)  # which the reader of csv drops
    answers = [answers_by_id[question.question.id] for question in questions if question.question.id in answers_by_id]
    if corpus is not None:
        answers, facts = _of_corpus(answers, corpus)
        record |= facts
    system_names = {_system_of(answer) for answer in answers} - {""}
    return Joined(system_names.pop() if len(system_names) == 1 else path.stem, answers, record, notes)


def split_predictions(path: str | Path, output_folder: str | Path) -> list[Path]:
    """Write the answers of each system of a file to a file of its own in a folder, and return these files.

    The file has any format of `autoais schema` that names systems, such as Attributed QA's ratings.csv. Raises
    `RagError` if an answer names no system, or if a file of a system exists already.
    """
    path, folder = Path(path), Path(output_folder)
    lines: dict[str, list[str]] = {}
    for answer in formats.read(path, formats.detect(path)):
        if not (system := _system_of(answer)):
            raise RagError(f"{path}: an answer to {answer.question[:60]!r} names no system; give the file as it is")
        lines.setdefault(system, []).extend(write_answers([answer]))
    files = [folder / f"{name}.jsonl" for name in number_duplicates(map(safe_name, lines))]
    if existing := [file for file in files if file.exists()]:
        raise RagError(f"{existing[0]} exists; name another folder")
    for file, system_lines in zip(files, lines.values(), strict=True):
        write_atomic(file, system_lines)
    return files


def _system_of(answer: CitedAnswer) -> str:
    """The name of the system that gave an answer; empty if the file does not say."""
    return str(answer.extra.get("system") or "")


def _list_names(names: Iterable[str], shown: int = 3) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - shown} more" if len(ordered) > shown else ""
    return f"{', '.join(f'{name[:40]!r}' for name in ordered[:shown])}{more}"


def _of_benchmark(answer: CitedAnswer, question: Question) -> CitedAnswer:
    return replace(
        answer,
        id=question.id,
        question=question.text,
        answers=question.answers,
        gold=question.gold,
        nuggets=question.nuggets,
    )


def _of_corpus(answers: Sequence[CitedAnswer], corpus: Passages) -> tuple[list[CitedAnswer], dict[str, Any]]:
    """The answers with the passages of the corpus, and those that it does not have or has otherwise.

    A passage whose id it lacks is the one with the same text, or else has no text: it supports nothing.
    """
    passages_by_id = dict(corpus.find({key for answer in answers for key in answer.passages}))
    texts = {
        fold(passage.text)
        for answer in answers
        for key, passage in answer.passages.items()
        if key not in passages_by_id
    } - {""}
    passages_by_text = corpus.find_texts(texts) if texts else {}
    other = {
        key
        for answer in answers
        for key, passage in answer.passages.items()
        if key in passages_by_id and passage.text.strip() and fold(passage.text) != fold(passages_by_id[key].text)
    }
    filled_answers = [
        _replace_passages(
            answer,
            {
                key: passages_by_id.get(key) or passages_by_text.get(fold(passage.text)) or Passage(key)
                for key, passage in answer.passages.items()
            },
        )
        for answer in answers
    ]
    passages_by_id |= {passage.id: passage for passage in passages_by_text.values()}
    cited_ids = {key for answer in filled_answers for sentence in answer.sentences for key in sentence.cites}
    facts = {
        "not_in_corpus": _count_examples(sorted(cited_ids - passages_by_id.keys())),
        "other_text": _count_examples(sorted(other)),
        "other_id": _count_examples(sorted({passage.id for passage in passages_by_text.values()})),
    }
    return filled_answers, facts


def _replace_passages(answer: CitedAnswer, passages: Mapping[str, Passage]) -> CitedAnswer:
    """The answer with these passages, by their own ids, in place of those that it has; its citations follow."""
    sentences = tuple(
        replace(
            sentence,
            citations=tuple(
                _move_citation(citation, answer.passages[citation.passage].text, passages[citation.passage])
                for citation in sentence.citations
            ),
        )
        for sentence in answer.sentences
    )
    answer = replace(answer, sentences=sentences, passages={passage.id: passage for passage in passages.values()})
    if all(key == passage.id for key, passage in passages.items()):
        return answer
    ids = {key: passage.id for key, passage in passages.items()}
    return replace(
        answer,
        ranking=tuple(dict.fromkeys(ids.get(key, key) for key in answer.ranking)),
        scores={ids.get(key, key): score for key, score in answer.scores.items()},
    )


def _move_citation(citation: Citation, old_text: str, passage: Passage) -> Citation:
    """The citation of the passage, with its span in that text, white space aside; without one if it is not there.

    Where no text is given, the offsets are those of the text shown.
    """
    citation, new_text = replace(citation, passage=passage.id), passage.text
    start, end = citation.start, citation.end
    if start is None or end is None or new_text == old_text or not (old_text or citation.quote):
        return citation
    quote = old_text[start:end] if citation.quote is None else citation.quote
    if quote and new_text[start:end] == quote:
        return citation
    characters = "".join(quote.split())
    offsets = [offset for offset, character in enumerate(new_text) if not character.isspace()]
    text = "".join(new_text.split())
    before = len("".join(old_text[:start].split()))
    position = before if text.startswith(characters, before) else text.find(characters)
    if not characters or position < 0:
        return replace(citation, start=None, end=None, quote=None)
    start, end = offsets[position], offsets[position + len(characters) - 1] + 1
    return replace(citation, start=start, end=end, quote=None if citation.quote is None else new_text[start:end])
