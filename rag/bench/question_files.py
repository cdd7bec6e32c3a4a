"""Questions with what a benchmark or a collection knows of them: kind, collection, answerable, given passages."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from autoais.base.errors import FormatError
from autoais.base.io.jsonl import field, identifier, strings
from autoais.base.io.schema import faults
from autoais.formats import alce
from autoais.formats.acl_verbatim import chunks_of, is_acl_verbatim
from autoais.formats.hagrid import HAGRID, passages_of
from autoais.formats.questions import read_question_rows, read_questions
from autoais.formats.spans import Spans, spans_of
from autoais.metrics.runs import read_judgements
from rag.base.types import Passage, Question


@dataclass(frozen=True, slots=True)
class BenchQuestion:
    """A question of a benchmark.

    `collection` names its corpus, if the benchmark has several. `answerable` is false if no passage answers it.
    `passages` come with the question (task `given`); their texts are empty if only the ids are known. `language` is a
    code such as `en`, if the data says it.

    What people marked as the answer is known by place or by text, or not at all: `spans` are those of the passages, by
    id; `evidence` are texts of the corpus, `where` the document that has them. `alce` are the references of ALCE's
    data, by its names: `qa_pairs`, `answers`, `claims`, `annotations`, `answer`.
    """

    question: Question
    kind: str | None = None
    collection: str | None = None
    answerable: bool = True
    passages: tuple[Passage, ...] = ()
    language: str | None = None
    spans: Mapping[str, Spans] | None = None
    evidence: tuple[str, ...] | None = None
    where: str | None = None
    alce: Mapping[str, Any] | None = None

    def row(self) -> dict[str, Any]:
        """Return the question as a row of `questions.jsonl`, which `read_questions` of autoais reads too."""
        question = self.question
        return {
            "id": question.id,
            "question": question.text,
            "answers": list(question.answers),
            "gold": list(question.gold),
            "nuggets": [list(phrases) for phrases in question.nuggets],
            "answerable": self.answerable,
            "kind": self.kind,
            "collection": self.collection,
            **({} if self.language is None else {"language": self.language}),
            "passages": [passage_row(passage) for passage in self.passages],
            **(
                {} if self.spans is None else {"spans": {key: [*map(list, spans)] for key, spans in self.spans.items()}}
            ),
            **({} if self.evidence is None else {"evidence": list(self.evidence), "where": self.where}),
            **({} if self.alce is None else {"alce": dict(self.alce)}),
        }


def read_bench_questions(path: Path, part: str | None = None, passages: int | None = None) -> list[BenchQuestion]:
    """Read the questions of a file in any format of `read_questions`; raises `FormatError` for a broken row.

    Also for one that is not answerable and has answers.

    Rows of jsonl may also have `answerable`, `kind`, `collection`, `language`, `part`, and `passages` (ids, or objects
    with id, title and text), `docids`, HAGRID's `quotes`, ACL-Verbatim's `results` or ALCE's `docs`. What people marked
    is in `spans` (`autoais.formats.spans`), or in `evidence`, a list of texts, with `where`. `part` keeps the questions
    of that part, `passages` so many passages of each.
    """
    return [
        _bench_question(question, row, source, passages) if row else BenchQuestion(question)
        for question, source, row in read_question_rows(path)
        if not row or part is None or row.get("part") == part
    ]


def read_judged_questions(topics: Path, qrels: Path) -> list[BenchQuestion]:
    """Read questions in any format, with the passages that TREC qrels judge, in their order, as those that are given.

    A question is answerable if one of them is relevant. Those of which no passage is judged are left out. Raises
    `FormatError` for a broken line.
    """
    judgements = read_judgements(qrels)
    return [
        BenchQuestion(
            replace(question, gold=tuple(key for key, relevance in judgements[question.id].items() if relevance)),
            answerable=any(judgements[question.id].values()),
            passages=tuple(map(Passage, judgements[question.id])),
        )
        for question in read_questions(topics)
        if question.id in judgements
    ]


def _bench_question(question: Question, row: Mapping[str, Any], source: str, max_passages: int | None) -> BenchQuestion:
    answerable = field(row, "answerable", bool, source) if "answerable" in row else question.answerable
    if not answerable and question.answers:
        raise FormatError(
            f"{source}: field 'answerable' is false, and the question has answers; leave out one of the two"
        )
    kind, collection, language = (
        None if row.get(name) is None else field(row, name, str, source) for name in ("kind", "collection", "language")
    )
    is_alce = alce.is_alce_question(row)
    passages = tuple(islice(alce.docs_of(row, question) if is_alce else _passages(row, source), max_passages))
    try:
        "".join(text for passage in passages for text in (passage.id, passage.contents)).encode()
    except UnicodeEncodeError:
        raise FormatError(f"{source}: a passage has a lone surrogate, which is not a character") from None
    references = alce.references_of(row) if is_alce else row.get("alce")
    return BenchQuestion(
        question,
        kind,
        collection,
        answerable,
        passages,
        language,
        _spans(row, passages, source),
        *_evidence(row),
        alce=references if isinstance(references, Mapping) else None,
    )


def _spans(row: Mapping[str, Any], passages: Iterable[Passage], source: str) -> Mapping[str, Spans] | None:
    if is_acl_verbatim(row):
        spans: Mapping[str, Any] = {passage.id: list(quotes) for passage, quotes in chunks_of(row, source)}
    elif row.get("spans") is None:
        return None
    else:
        spans = field(row, "spans", dict, source)
    return spans_of(spans, {passage.id: passage.text for passage in passages}, source)


def _evidence(row: Mapping[str, Any]) -> tuple[tuple[str, ...] | None, str | None]:
    """The fields `evidence` and `where`, if they are what `everyday` has: other data calls other things so."""
    evidence, where = row.get("evidence"), row.get("where")
    if not isinstance(evidence, list) or not all(isinstance(text, str) for text in evidence):
        return None, None
    return tuple(evidence), where if isinstance(where, str) else None


def _passages(row: Mapping[str, Any], source: str) -> Iterator[Passage]:
    if "quotes" in row:
        for fault in faults(row, HAGRID.schema):
            raise FormatError(f"{source}: {fault}")
        yield from passages_of(row).values()
        return
    if is_acl_verbatim(row):
        rows: object = [passage_row(passage) for passage, _ in chunks_of(row, source)]
    else:
        rows = row.get("passages")
    if rows is None:
        rows = strings(row, "docids", source)
    if not isinstance(rows, list | tuple) or not all(isinstance(entry, str | dict) for entry in rows):
        raise FormatError(f"{source}: field 'passages' should be a list of ids or of passages")
    ids = set()
    for entry in rows:
        passage = Passage(entry) if isinstance(entry, str) else passage_of(entry, source)
        if not passage.id.strip() or passage.id in ids:
            raise FormatError(f"{source}: passage id {passage.id!r} is empty or occurs twice")
        ids.add(passage.id)
        yield passage


def passage_row(passage: Passage) -> dict[str, Any]:
    """Return a passage as JSON, without what is derived from the rest."""
    return {
        "id": passage.id,
        "title": passage.title,
        "section": passage.section,
        **({} if passage.headings == passage.default_headings else {"headings": passage.headings}),
        **({} if passage.page is None else {"page": passage.page}),
        "text": passage.text,
    }


def passage_of(row: Mapping[str, Any], source: str) -> Passage:
    """Return the passage of a row (`passage_row`); title, section, headings, page and text may be missing."""
    texts = {
        name: field(row, name, str, source)
        for name in ("title", "section", "headings", "text")
        if row.get(name) is not None
    }
    page = field(row, "page", int, source) if row.get("page") is not None else None
    return Passage(identifier(row, "id", source), page=page, **texts)


def sample(questions: Iterable[BenchQuestion], limit: int | None, seed: int) -> list[BenchQuestion]:
    """Return `limit` questions in their order, drawn by a hash of seed and id; a larger sample holds a smaller one."""
    question_list = list(questions)
    if limit is None or limit >= len(question_list):
        return question_list
    sampled_questions = sorted(
        question_list, key=lambda question: sha256(f"{seed}:{question.question.id}".encode()).digest()
    )[:limit]
    ids = {question.question.id for question in sampled_questions}
    return [question for question in question_list if question.question.id in ids]
