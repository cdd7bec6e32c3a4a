"""Questions with the passages that were retrieved for them, from what retrievers and other tools write."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.base.answers import CitedAnswer, HasCited, as_cited_answer
from autoais.base.errors import FormatError, UsageError, UserError, check_list
from autoais.base.io.files import lines, records
from autoais.base.io.jsonl import field as field_of
from autoais.base.io.jsonl import identifier
from autoais.base.types import Passage, Question
from autoais.formats.corpora import read_passages
from autoais.formats.questions import read_questions
from autoais.metrics.runs import read_run

_RUN_COLUMNS = 6  # topic Q0 id rank score tag


@dataclass(frozen=True, slots=True)
class Candidates:
    """A question with its passages, best first, and by id the grades of those that were graded.

    A grade is None if grading failed.
    """

    topic: str
    query: str
    passages: tuple[Passage, ...]
    grades: Mapping[str, int | None] = field(default_factory=dict)

    def relevant(self, min_grade: int) -> "Candidates":
        """Return the question without the passages that have a lower grade; one that was never graded stays.

        From 1 up, a passage whose grading failed is left out too.
        """

        def is_relevant(passage: Passage) -> bool:
            grade = self.grades.get(passage.id, min_grade)
            return min_grade <= 0 if grade is None else grade >= min_grade

        return Candidates(self.topic, self.query, tuple(filter(is_relevant, self.passages)), self.grades)


def read_candidates(
    source: str | Path | Iterable[object],
    *,
    questions: Sequence[Question] | None = None,
    corpus: Sequence[Path] = (),
    depth: int | None = None,
) -> list[Candidates]:
    """Return questions with their passages, of each question the first `depth`.

    `source` is a file, or a list of `Candidates` or of answers (as `autoais.score` takes them). A file is a TREC run,
    which needs `questions` and a `corpus`; requests of Castorini's tools (jsonl: `query` with `qid` and `text`, and
    `candidates` with `docid`, `doc` and perhaps a `judgment`); judgements of umbrela (jsonl: `query`, `passage`,
    `judgment`; ours also have `qid` and `docid`); or answers with their passages, in any format. Raises `FormatError`
    for a broken row or a question that comes twice, and `UserError` for a passage without a text.
    """
    if isinstance(source, str | Path):
        candidate_lists = list(_of_file(Path(source), questions, corpus))
        source_name = str(source)
    else:
        check_list("passages", source, "a file or a list of Candidates or answers")
        if corpus or questions is not None:
            raise UsageError("questions and corpus are for files that name passages by id")
        candidate_lists, source_name = [_of_item(item, number) for number, item in enumerate(source, 1)], "the list"
    if not candidate_lists:
        raise UserError(f"{source_name}: holds no questions with passages")
    topics: set[str] = set()
    for candidates in candidate_lists:
        if candidates.topic in topics:
            raise FormatError(f"{source_name}: question {candidates.topic!r:.80} occurs twice")
        topics.add(candidates.topic)
    cut = [Candidates(c.topic, c.query, c.passages[:depth], c.grades) for c in candidate_lists]
    for candidates in cut:
        for passage in candidates.passages:
            if not passage.text.strip():
                raise UserError(
                    f"{source_name}: question {candidates.topic!r:.60}: passage {passage.id!r:.60} has no text; give a "
                    "corpus that holds it (--corpus)"
                )
    return cut


def of_answer(answer: CitedAnswer) -> Candidates:
    """Return the question of an answer with its passages, as the retriever ranked them, then the others."""
    keys = dict.fromkeys([*(key for key in answer.ranking if key in answer.passages), *answer.passages])
    return Candidates(answer.id, answer.question, tuple(answer.passages[key] for key in keys))


def _of_item(item: object, number: int) -> Candidates:
    if isinstance(item, Candidates):
        return item
    if isinstance(item, CitedAnswer | HasCited | Mapping):
        return of_answer(as_cited_answer(item, number))
    raise UsageError(f"passages should be a list of Candidates or answers, found {type(item).__name__} in it")


def _of_file(path: Path, questions: Sequence[Question] | None, corpus: Sequence[Path]) -> Iterator[Candidates]:
    first = next((line.split() for line in lines(path) if line.strip()), [])
    if len(first) == _RUN_COLUMNS and not first[0].startswith((b"{", b"[")):
        yield from _of_run(path, questions, corpus)
        return
    row = next((row for _, row in records(path)), {})
    if isinstance(row, dict) and {"query", "candidates"} <= row.keys():
        yield from _of_requests(path)
    elif isinstance(row, dict) and {"query", "passage", "judgment"} <= row.keys():
        yield from _of_judgements(path)
    else:
        yield from map(of_answer, formats.read(path, corpus=corpus, questions=questions))


def _of_run(path: Path, questions: Sequence[Question] | None, corpus: Sequence[Path]) -> Iterator[Candidates]:
    if questions is None or not corpus:
        raise UserError(
            f"{path}: a run names topics and passages by id; give their texts: questions and a corpus (--questions, "
            "--corpus)"
        )
    rankings = read_run(path).rankings
    queries = {question.id: question.text for question in questions}
    if unknown := sorted(rankings.keys() - queries.keys()):
        raise UserError(f"{path}: topic {unknown[0]!r:.60} is not among the questions; are these the run's topics?")
    keys = {key for ranking in rankings.values() for key in ranking}
    passages: dict[str, Passage] = {}
    for file in corpus:
        for _, passage in read_passages(file):
            if isinstance(passage, FormatError):
                raise passage
            if passage.id in keys:
                passages.setdefault(passage.id, passage)
    for topic, ranking in rankings.items():
        yield Candidates(topic, queries[topic], tuple(passages.get(key, Passage(key)) for key in ranking))


def _of_requests(path: Path) -> Iterator[Candidates]:
    """Yield the requests that Castorini's rerankers and umbrela write, and nuggetizer's `create` reads."""
    for number, (location, row) in enumerate(_rows(path), 1):
        query = row.get("query")
        if isinstance(query, dict):
            topic, text = identifier(query, "qid", location), field_of(query, "text", str, location)
        else:
            topic, text = str(number), field_of(row, "query", str, location)
        passages: dict[str, Passage] = {}
        grades: dict[str, int | None] = {}
        for index, candidate in enumerate(field_of(row, "candidates", list, location)):
            item_location = f"{location}: candidates[{index}]"
            if isinstance(candidate, str):
                candidate = {"doc": candidate}
            if not isinstance(candidate, dict):
                raise FormatError(f"{item_location} should be an object or a string")
            key = identifier(candidate, "docid", item_location) if "docid" in candidate else f"d{index}"
            if key in passages:
                raise FormatError(f"{item_location}: passage {key!r:.60} occurs twice in its list")
            passages[key] = Passage(key, text=_doc_text(candidate, item_location))
            if candidate.get("judgment") is not None:
                grades[key] = _grade(candidate["judgment"], item_location)
        yield Candidates(topic, text, tuple(passages.values()), grades)


def _doc_text(candidate: Mapping[str, Any], location: str) -> str:
    doc = candidate.get("doc")
    texts = [doc, candidate.get("text")]
    if isinstance(doc, dict):
        texts = [doc.get(name) for name in ("segment", "contents", "text")]
    text = next((text for text in texts if isinstance(text, str) and text), None)
    if text is None:
        raise FormatError(f"{location} has no text: 'doc' should be a string, or have 'segment' or 'contents'")
    return text


def _grade(value: object, location: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in range(4):
        raise FormatError(f"{location}: field 'judgment' should be 0, 1, 2 or 3, found {str(value)[:40]!r}")
    return int(value)


def _of_judgements(path: Path) -> Iterator[Candidates]:
    """Yield the questions of judgements, one a row; without `qid` and `docid` (umbrela's own), both are numbered.

    A failed judgement (`result_status` 0, which umbrela writes with grade 0) has the grade None.
    """
    queries: dict[str, str] = {}
    passages: dict[str, dict[str, Passage]] = {}
    grades: dict[str, dict[str, int | None]] = {}
    number_of_query: dict[str, int] = {}
    for location, row in _rows(path):
        query = field_of(row, "query", str, location)
        number = number_of_query.setdefault(query, len(number_of_query) + 1)
        topic = identifier(row, "qid", location) if "qid" in row else str(number)
        if queries.setdefault(topic, query) != query:
            raise FormatError(f"{location}: another query than before for topic {topic!r:.60}")
        topic_passages = passages.setdefault(topic, {})
        key = identifier(row, "docid", location) if "docid" in row else f"d{len(topic_passages)}"
        if key in topic_passages:
            raise FormatError(f"{location}: passage {key!r:.60} occurs twice for topic {topic!r:.60}")
        topic_passages[key] = Passage(key, text=field_of(row, "passage", str, location))
        is_failed = row.get("judgment") is None or row.get("result_status") == 0
        grades.setdefault(topic, {})[key] = None if is_failed else _grade(row["judgment"], location)
    for topic, query in queries.items():
        yield Candidates(topic, query, tuple(passages[topic].values()), grades.get(topic, {}))


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for location, row in records(path):
        if isinstance(row, FormatError):
            raise row
        yield location, row


def questions_of(questions: str | Path | Sequence[Question] | None) -> list[Question] | None:
    """Return the questions of a file or a list; None stays None."""
    if questions is None:
        return None
    return list(read_questions(Path(questions))) if isinstance(questions, str | Path) else list(questions)
