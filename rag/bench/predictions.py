"""Answers of other people's systems, joined with the questions of a benchmark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from autoais import formats
from autoais.base.answers import CitedAnswer
from rag.base.errors import RagError
from rag.base.types import Citation, Passage, Question
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

_LISTED = 1000  # examples that the record names


class Passages(Protocol):
    """Looks up the passages of a corpus."""

    def find(self, wanted: set[str]) -> Mapping[str, Passage]:
        """Return the passages with these ids, those that the corpus has."""
        ...

    def find_texts(self, wanted: set[str]) -> Mapping[str, Passage]:
        """Return the first passage with each of these texts (`folded`), those that the corpus has."""
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

    def __init__(self, asked: Sequence[BenchQuestion]) -> None:
        self._known = {passage.id: passage for one in asked for passage in one.passages}

    def find(self, wanted: set[str]) -> Mapping[str, Passage]:
        """Return the passages with these ids."""
        return {key: self._known[key] for key in sorted(wanted & self._known.keys())}

    def find_texts(self, wanted: set[str]) -> Mapping[str, Passage]:
        """Return the first passage with each of these texts."""
        return by_text(self._known.values(), wanted)


def folded(text: str) -> str:
    """Return a text with its white space as single spaces."""
    return " ".join(text.split())


def by_text(passages: Iterable[Passage], wanted: set[str]) -> dict[str, Passage]:
    """Return the first passage with each of these texts (`folded`); stops where all are found."""
    found: dict[str, Passage] = {}
    for passage in passages:
        if len(found) == len(wanted):
            break
        if (text := folded(passage.text)) in wanted:
            found.setdefault(text, passage)
    return found


def join_predictions(
    path: Path, asked: Sequence[BenchQuestion], others: Iterable[str], corpus: Passages | None
) -> Joined:
    """Read answers in any format of `autoais schema`, matched by the text of the question (white space aside).

    `others` are the texts of the benchmark's questions that this run does not ask. `corpus` looks up passages;
    None leaves the file's own. Raises `RagError` if no answer belongs to the benchmark.
    """
    name = formats.detect(path)
    notes = formats.Notes()
    by_text: dict[str, list[Question]] = {}
    by_id = {one.question.id: one.question for one in asked}
    for one in asked:
        by_text.setdefault(folded(one.question.text), []).append(one.question)
    elsewhere = set(map(folded, others))
    found: dict[str, CitedAnswer] = {}
    unknown: list[str] = []
    duplicates: list[str] = []
    not_asked = 0
    for answer in formats.read(path, name, notes=notes):
        matches = by_text.get(folded(answer.question), [])
        if not answer.question.strip() and answer.id in by_id:
            matches = [by_id[answer.id]]
        if len(matches) > 1 and answer.id in {question.id for question in matches}:
            matches = [by_id[answer.id]]
        if not matches:
            if folded(answer.question) in elsewhere:
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
    repeated = notes.pop("repeated_questions", 0)  # the reader of csv drops them
    record = {
        "format": name,
        "answers": len(found),
        "unknown": _counted(unknown),
        "duplicates": {"count": len(duplicates) + repeated, "examples": duplicates[:_LISTED]},
        "missing": _counted(missing),
        "not_asked": not_asked,
    }
    answers = [found[one.question.id] for one in asked if one.question.id in found]
    if corpus is not None:
        answers, about = _of_corpus(answers, corpus)
        record |= about
    named = {str(answer.extra.get("system")) for answer in answers if answer.extra.get("system")}
    return Joined(named.pop() if len(named) == 1 else path.stem, answers, record, notes)


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


def _of_corpus(answers: Sequence[CitedAnswer], corpus: Passages) -> tuple[list[CitedAnswer], dict[str, Any]]:
    """The answers with the passages of the corpus, and those that it does not have or has otherwise.

    A passage whose id it lacks is the one with the same text, or else has no text: it supports nothing.
    """
    known = dict(corpus.find({key for answer in answers for key in answer.passages}))
    texts = {folded(one.text) for answer in answers for key, one in answer.passages.items() if key not in known} - {""}
    elsewhere = corpus.find_texts(texts) if texts else {}
    other = {
        key
        for answer in answers
        for key, passage in answer.passages.items()
        if key in known and passage.text.strip() and folded(passage.text) != folded(known[key].text)
    }
    renamed = [_renamed(answer, known, elsewhere) for answer in answers]
    known |= {passage.id: passage for passage in elsewhere.values()}
    filled = [_showing(answer, {key: known.get(key, Passage(key)) for key in answer.passages}) for answer in renamed]
    cited = {key for answer in filled for sentence in answer.sentences for key in sentence.cites}
    about = {
        "not_in_corpus": _counted(sorted(cited - known.keys())),
        "other_text": _counted(sorted(other)),
        "other_id": _counted(sorted({passage.id for passage in elsewhere.values()})),
    }
    return filled, about


def _renamed(answer: CitedAnswer, known: Mapping[str, Passage], elsewhere: Mapping[str, Passage]) -> CitedAnswer:
    """The answer with the corpus's passages for those that are not `known`, and that it has `elsewhere`, by text."""
    there = {
        key: elsewhere[text]
        for key, passage in answer.passages.items()
        if key not in known and (text := folded(passage.text)) in elsewhere
    }
    if not there:
        return answer
    answer = _showing(answer, {**answer.passages, **there})
    ids = {key: passage.id for key, passage in there.items()}
    sentences = tuple(
        replace(
            one,
            citations=tuple(replace(cited, passage=ids.get(cited.passage, cited.passage)) for cited in one.citations),
        )
        for one in answer.sentences
    )
    return replace(
        answer,
        sentences=sentences,
        passages={ids.get(key, key): passage for key, passage in answer.passages.items()},
        ranking=tuple(dict.fromkeys(ids.get(key, key) for key in answer.ranking)),
        scores={ids.get(key, key): score for key, score in answer.scores.items()},
    )


def _showing(answer: CitedAnswer, passages: Mapping[str, Passage]) -> CitedAnswer:
    """The answer with these passages in place of those of the same ids, and the spans of its citations in them."""
    sentences = tuple(
        replace(
            one,
            citations=tuple(
                _placed(cited, answer.passages[cited.passage].text, passages[cited.passage].text)
                for cited in one.citations
            ),
        )
        for one in answer.sentences
    )
    return replace(answer, sentences=sentences, passages=passages)


def _placed(cited: Citation, given: str, shown: str) -> Citation:
    """The citation of a given text with its span in the text that is shown, white space aside; without one if none is.

    Where no text is given, the offsets are those of the text shown.
    """
    start, end = cited.start, cited.end
    if start is None or end is None or shown == given or not (given or cited.quote):
        return cited
    quote = given[start:end] if cited.quote is None else cited.quote
    if quote and shown[start:end] == quote:
        return cited
    wanted = "".join(quote.split())
    there = [at for at, character in enumerate(shown) if not character.isspace()]
    text = "".join(shown.split())
    place = len("".join(given[:start].split()))
    at = place if text.startswith(wanted, place) else text.find(wanted)
    if not wanted or at < 0:
        return replace(cited, start=None, end=None, quote=None)
    start, end = there[at], there[at + len(wanted) - 1] + 1
    return replace(cited, start=start, end=end, quote=None if cited.quote is None else shown[start:end])
