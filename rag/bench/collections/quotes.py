"""The quotes of a collection's questions: given with them, judged relevant by people, or retrieved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoais.base.io.notes import Notes
from autoais.base.io.provenance import sha256_file
from autoais.base.progress import Progress
from autoais.formats.corpora import find_passages
from autoais.metrics.runs import read_qrels
from rag.base.errors import QuestionError, RagError
from rag.base.types import Passage
from rag.bench.corpora import index_record
from rag.bench.output_folder import count_examples
from rag.bench.question_files import BenchQuestion, read_bench_questions, sample
from rag.index.open import open_index
from rag.retrieval import check_complete, open_retriever

KINDS = ("given", "gold", "retrieved")
RETRIEVER, K = "default-llm", 5  # of retrieved quotes
_MAX_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class QuoteSource:
    """Where questions and quotes come from.

    `kind`: `given` (the passages of the questions file), `gold` (those of `qrels` with a relevance above 0, or the
    field `gold` of the questions, in the order of the file) or `retrieved` (the first `k` hits of `retriever` in
    `index`). None: gold with qrels or a corpus, given if the questions have passages, else retrieved. Texts are looked
    up in `index` or `corpus`. `limit` draws a sample of the questions that have quotes, by `seed`.
    """

    questions: Path
    qrels: Path | None = None
    corpus: Path | None = None
    index: Path | None = None
    kind: str | None = None
    retriever: str | None = None
    k: int | None = None
    limit: int | None = None
    seed: int = 0

    def record(self) -> dict[str, Any]:
        """Return the names of the files with their checksums; raises `RagError` if one is missing."""
        files = {"questions": self.questions, "qrels": self.qrels, "corpus": self.corpus}
        for role, path in files.items():
            if path is not None and not path.is_file():
                raise RagError(f"{path}: no such file; name the {role}")
        return {
            role: {"file": path.name, "sha256": sha256_file(path)} for role, path in files.items() if path is not None
        }


@dataclass(frozen=True, slots=True)
class Quoted:
    """The questions with their quotes, the rows of those left out, and what was found (JSON)."""

    questions: list[BenchQuestion]
    omissions: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)


def find_quotes(source: QuoteSource, progress: Progress) -> Quoted:
    """Read the questions and find their quotes.

    Questions without a quote are left out; passages without a text, and questions of the qrels that the file lacks, are
    counted. Raises `RagError` if no question has a quote, `FormatError` for a broken file or a duplicate id.
    """
    if source.questions.suffix.lower() == ".csv":
        raise RagError(
            f"{source.questions}: questions in a table (CSV) are not read; write a line of JSON for each, such as "
            '{"id": "1", "question": "..."}, or of id, tab and question'
        )
    questions = read_bench_questions(source.questions)
    relevant = None if source.qrels is None else _relevant(source.qrels)
    kind = _kind(source, questions, has_qrels=relevant is not None)
    record: dict[str, Any] = {"kind": kind, "questions": len(questions)}
    if relevant is not None:
        question_ids = {question.question.id for question in questions}
        record["qrels_of_unknown_questions"] = count_examples(
            (key for key in relevant if key not in question_ids), _MAX_EXAMPLES
        )
    if kind == "retrieved":
        selection = _search_quotes(source, sample(questions, source.limit, source.seed), record, progress)
    else:
        if kind == "gold":
            questions = [_with_gold(question, relevant) for question in questions]
        selection = _positives(source, questions, record)
    if not selection.questions:
        raise RagError(f"{source.questions}: no question has a quote with a text; do the ids fit the corpus?")
    return selection


def _kind(source: QuoteSource, questions: Sequence[BenchQuestion], *, has_qrels: bool) -> str:
    has_gold = any(question.question.gold for question in questions)
    if source.kind is not None:
        if source.kind not in KINDS:
            raise RagError(f"no quotes called {source.kind!r}; there are: {', '.join(KINDS)}")
        kind = source.kind
    elif has_qrels or source.corpus is not None:
        kind = "gold"
    elif any(question.passages for question in questions):
        kind = "given"
    elif source.index is None:
        raise RagError(
            f"{source.questions}: the questions have no passages; name their qrels and a corpus (--qrels, --corpus), "
            "or an index to search (--index)"
        )
    elif has_gold:
        raise RagError(
            f"{source.questions}: the questions name gold passages; choose gold or retrieved quotes (--quotes)"
        )
    else:
        kind = "retrieved"
    if kind == "given" and not any(question.passages for question in questions):
        raise RagError(f"{source.questions}: the questions have no field 'passages', 'docids' or 'quotes'")
    if kind == "gold" and not has_qrels and not has_gold:
        raise RagError(f"{source.questions}: the questions have no field 'gold'; name their qrels (--qrels)")
    if kind == "retrieved" and source.index is None:
        raise RagError("retrieved quotes need an index (--index)")
    if kind == "retrieved" and (source.qrels is not None or source.corpus is not None):
        raise RagError("retrieved quotes come from the index alone; leave out qrels and corpus (--qrels, --corpus)")
    if kind != "retrieved" and (source.retriever is not None or source.k is not None):
        raise RagError(f"retriever and k (--retriever, --k) are for retrieved quotes; these are {kind}")
    if source.k is not None and source.k < 1:
        raise RagError(f"k must be at least 1, not {source.k}")
    return kind


def _relevant(path: Path) -> dict[str, tuple[str, ...]]:
    """The passages with a relevance above 0 of each question, in the order of the file."""
    return {
        key: tuple(passage for passage, grade in grades.items() if grade > 0)
        for key, grades in read_qrels(path).items()
    }


def _with_gold(question: BenchQuestion, relevant: Mapping[str, Sequence[str]] | None) -> BenchQuestion:
    gold = question.question.gold if relevant is None else relevant.get(question.question.id, ())
    passages = tuple(map(Passage, dict.fromkeys(gold)))
    return replace(question, question=replace(question.question, gold=tuple(gold)), passages=passages)


def _positives(source: QuoteSource, questions: Sequence[BenchQuestion], record: dict[str, Any]) -> Quoted:
    omissions = [
        _omission(question, "no-positive", "no passage of it is relevant")
        for question in questions
        if not question.passages
    ]
    candidates = sample([question for question in questions if question.passages], source.limit, source.seed)
    missing_ids = {passage.id for question in candidates for passage in question.passages if not passage.text.strip()}
    texts = _texts(source, missing_ids, record)
    unknown = {
        key: None
        for question in candidates
        for passage in question.passages
        if (key := passage.id) in missing_ids - texts.keys()
    }
    record["passages_without_text"] = count_examples(unknown, _MAX_EXAMPLES)
    quoted_questions, incomplete = [], 0
    for question in candidates:
        quotes = tuple(
            texts.get(passage.id, passage)
            for passage in question.passages
            if passage.text.strip() or passage.id in texts
        )
        if quotes:
            quoted_questions.append(replace(question, passages=quotes))
            incomplete += len(quotes) < len(question.passages)
        else:
            omissions.append(_omission(question, "no-quote-text", f"no text is known of {question.passages[0].id!r}"))
    record |= {"left_out": len(omissions), "incomplete": incomplete}
    return Quoted(quoted_questions, omissions, record)


def _texts(source: QuoteSource, ids: set[str], record: dict[str, Any]) -> dict[str, Passage]:
    """The passages with these ids that have a text."""
    if not ids:
        return {}
    if source.index is not None:
        index = open_index(source.index)
        record["index"] = index_record(index)
        passages = {key: passage for key in sorted(ids) if (passage := index.store.get(key)) is not None}
    elif source.corpus is not None:
        passages = find_passages([source.corpus], ids, Notes())
    else:
        raise RagError(f"{source.questions}: passages are known by id only; name their corpus (--corpus or --index)")
    return {key: passage for key, passage in passages.items() if passage.text.strip()}


def _search_quotes(
    source: QuoteSource, questions: Sequence[BenchQuestion], record: dict[str, Any], progress: Progress
) -> Quoted:
    assert source.index is not None
    index, k = open_index(source.index), source.k or K
    check_complete(index)
    retriever = open_retriever(source.retriever or RETRIEVER, index)
    quoted_questions, omissions = [], []
    for number, question in enumerate(questions, 1):
        try:
            hits = retriever.search([question.question.text], k)[0]
        except QuestionError as error:
            omissions.append(_omission(question, "not-searchable", str(error)))
        else:
            quotes = tuple(hit.passage for hit in hits if hit.passage.text.strip())
            if quotes:
                quoted_questions.append(replace(question, passages=quotes))
            else:
                omissions.append(_omission(question, "no-hit", "nothing was found"))
        progress("searching", number, len(questions))
    record |= {"index": index_record(index), "retriever": retriever.name, "k": k, "left_out": len(omissions)}
    return Quoted(quoted_questions, omissions, record)


def _omission(question: BenchQuestion, reason: str, detail: str) -> dict[str, Any]:
    return {"query_id": question.question.id, "question": question.question.text, "reason": reason, "detail": detail}
