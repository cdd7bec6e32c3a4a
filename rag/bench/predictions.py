"""Answers of other people's systems, joined with the questions of a benchmark."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.answers import CitedAnswer
from rag.bench.questions import BenchQuestion
from rag.errors import RagError
from rag.types import Passage, Question

DID_NOT_FIT = {
    "unknown": "questions outside the benchmark, discarded",
    "duplicates": "repeated answers, of which the last counts",
    "missing": "questions without an answer, which count as wrong",
    "not_in_corpus": "cited passages that are not in the corpus",
    "other_text": "passages with another text in the corpus, which is the one judged",
}
"""What `Joined` counts, for people."""

_LISTED = 1000  # examples that the record names

Texts = Callable[[set[str]], Mapping[str, Passage]]
"""Returns the passages of the corpus with these ids, those that it has."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The answers to a benchmark's questions, in their order, and what was found in the file besides.

    `record` counts, with examples: `unknown` questions, which are discarded; `duplicates`, of which the last answer
    counts; `missing` answers, which count as wrong; `not_in_corpus`, cited passage ids that the corpus does not have;
    `other_text`, those that it has with another text, which the judge reads instead of the file's. `not_asked` are
    answers to questions of the benchmark that are not in the sample.
    """

    system: str
    answers: Sequence[CitedAnswer]
    record: Mapping[str, Any]
    notes: Counter[str] = field(default_factory=Counter)


def given_texts(asked: Sequence[BenchQuestion]) -> Texts:
    """Return the look-up of the passages that come with questions, for a benchmark without a corpus."""
    known = {passage.id: passage for one in asked for passage in one.passages}
    return lambda wanted: {key: known[key] for key in sorted(wanted & known.keys())}


def join_predictions(path: Path, asked: Sequence[BenchQuestion], others: Iterable[str], texts: Texts | None) -> Joined:
    """Read answers in any format of `autoais schema`, matched by the text of the question (white space aside).

    `others` are the texts of the benchmark's questions that this run does not ask. `texts` looks up passages of the
    corpus; None leaves the file's own. Raises `RagError` if no answer belongs to the benchmark.
    """
    name = formats.detect(path)
    notes: formats.Notes = Counter()
    by_text: dict[str, list[Question]] = {}
    by_id = {one.question.id: one.question for one in asked}
    for one in asked:
        by_text.setdefault(_key(one.question.text), []).append(one.question)
    elsewhere = set(map(_key, others))
    found: dict[str, CitedAnswer] = {}
    unknown: list[str] = []
    duplicates: list[str] = []
    not_asked = 0
    for answer in formats.read(path, name, notes=notes):
        matches = by_text.get(_key(answer.question), [])
        if not answer.question.strip() and answer.id in by_id:
            matches = [by_id[answer.id]]
        if len(matches) > 1 and answer.id in {question.id for question in matches}:
            matches = [by_id[answer.id]]
        if not matches:
            if _key(answer.question) in elsewhere:
                not_asked += 1
            else:
                unknown.append(answer.question or answer.id)
            continue
        for question in matches:
            if question.id in found:
                duplicates.append(question.text)
            found[question.id] = _of_benchmark(answer, question)
    if not found and not not_asked:
        raise RagError(f"{path}: no answer has its question in the benchmark; do they belong together?")
    missing = [one.question.text for one in asked if one.question.id not in found]
    repeated = notes.pop("rows with a repeated question, only the last one kept", 0)  # the reader of csv drops them
    record = {
        "format": name,
        "answers": len(found),
        "unknown": _counted(unknown),
        "duplicates": {"count": len(duplicates) + repeated, "examples": duplicates[:_LISTED]},
        "missing": _counted(missing),
        "not_asked": not_asked,
    }
    answers = [found[one.question.id] for one in asked if one.question.id in found]
    if texts is not None:
        answers, about = _with_texts(answers, texts)
        record |= about
    named = {str(answer.extra.get("system")) for answer in answers if answer.extra.get("system")}
    return Joined(named.pop() if len(named) == 1 else path.stem, answers, record, notes)


def _key(text: str) -> str:
    return " ".join(text.split())


def _counted(found: Sequence[str]) -> dict[str, Any]:
    return {"count": len(found), "examples": list(found[:_LISTED])}


def _of_benchmark(answer: CitedAnswer, question: Question) -> CitedAnswer:
    return replace(
        answer,
        id=question.id,
        question=question.text,
        answers=question.answers,
        gold=question.gold,
        nuggets=question.nuggets,
    )


def _with_texts(answers: Sequence[CitedAnswer], texts: Texts) -> tuple[list[CitedAnswer], dict[str, Any]]:
    """The answers with the corpus's texts, and the ids that the corpus does not have, or has with another text."""
    wanted = {key for answer in answers for key in answer.passages}
    known = texts(wanted)
    cited = {key for answer in answers for sentence in answer.sentences for key in sentence.cites}
    other = {
        key
        for answer in answers
        for key, passage in answer.passages.items()
        if key in known and passage.text.strip() and _key(passage.text) != _key(known[key].text)
    }
    filled = [
        replace(answer, passages={key: known.get(key, passage) for key, passage in answer.passages.items()})
        for answer in answers
    ]
    about = {"not_in_corpus": _counted(sorted(cited - known.keys())), "other_text": _counted(sorted(other))}
    return filled, about
