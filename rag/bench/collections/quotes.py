"""The quotes of a collection's questions: given with them, judged relevant by people, or retrieved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoais.base.io.notes import Notes
from autoais.base.io.provenance import sha256_file
from autoais.formats.corpora import find_passages
from autoais.metrics.runs import read_qrels
from rag.base.errors import QuestionError, RagError
from rag.base.progress import Progress
from rag.base.types import Passage
from rag.bench.question_files import BenchQuestion, read_bench_questions, sample
from rag.index.index import Index
from rag.index.open import open_index
from rag.retrieval import open_retriever

KINDS = ("given", "gold", "retrieved")
RETRIEVER, K = "default-llm", 5  # of retrieved quotes
_EXAMPLES = 20


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
    left_out: list[dict[str, Any]] = field(default_factory=list)
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
    listed = read_bench_questions(source.questions)
    relevant = None if source.qrels is None else _relevant(source.qrels)
    kind = _kind(source, listed, known=relevant is not None)
    record: dict[str, Any] = {"kind": kind, "questions": len(listed)}
    if relevant is not None:
        known = {one.question.id for one in listed}
        record["qrels_of_unknown_questions"] = _examples(key for key in relevant if key not in known)
    if kind == "retrieved":
        found = _retrieved(source, sample(listed, source.limit, source.seed), record, progress)
    else:
        if kind == "gold":
            listed = [_with_gold(one, relevant) for one in listed]
        found = _positives(source, listed, record)
    if not found.questions:
        raise RagError(f"{source.questions}: no question has a quote with a text; do the ids fit the corpus?")
    return found


def _kind(source: QuoteSource, listed: Sequence[BenchQuestion], *, known: bool) -> str:
    has_gold = any(one.question.gold for one in listed)
    if source.kind is not None:
        if source.kind not in KINDS:
            raise RagError(f"no quotes called {source.kind!r}; there are: {', '.join(KINDS)}")
        kind = source.kind
    elif known or source.corpus is not None:
        kind = "gold"
    elif any(one.passages for one in listed):
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
    if kind == "given" and not any(one.passages for one in listed):
        raise RagError(f"{source.questions}: the questions have no field 'passages', 'docids' or 'quotes'")
    if kind == "gold" and not known and not has_gold:
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
    return {key: tuple(one for one, grade in judged.items() if grade > 0) for key, judged in read_qrels(path).items()}


def _with_gold(one: BenchQuestion, relevant: Mapping[str, Sequence[str]] | None) -> BenchQuestion:
    gold = one.question.gold if relevant is None else relevant.get(one.question.id, ())
    passages = tuple(map(Passage, dict.fromkeys(gold)))
    return replace(one, question=replace(one.question, gold=tuple(gold)), passages=passages)


def _positives(source: QuoteSource, listed: Sequence[BenchQuestion], record: dict[str, Any]) -> Quoted:
    left_out = [_left_out(one, "no-positive", "no passage of it is relevant") for one in listed if not one.passages]
    asked = sample([one for one in listed if one.passages], source.limit, source.seed)
    wanted = {passage.id for one in asked for passage in one.passages if not passage.text.strip()}
    texts = _texts(source, wanted, record)
    unknown = {key: None for one in asked for passage in one.passages if (key := passage.id) in wanted - texts.keys()}
    record["passages_without_text"] = _examples(unknown)
    found, incomplete = [], 0
    for one in asked:
        quotes = tuple(texts.get(each.id, each) for each in one.passages if each.text.strip() or each.id in texts)
        if quotes:
            found.append(replace(one, passages=quotes))
            incomplete += len(quotes) < len(one.passages)
        else:
            left_out.append(_left_out(one, "no-quote-text", f"no text is known of {one.passages[0].id!r}"))
    record |= {"left_out": len(left_out), "incomplete": incomplete}
    return Quoted(found, left_out, record)


def _texts(source: QuoteSource, wanted: set[str], record: dict[str, Any]) -> dict[str, Passage]:
    """The passages with these ids that have a text."""
    if not wanted:
        return {}
    if source.index is not None:
        index = open_index(source.index)
        record["index"] = index_record(index)
        found = {key: one for key in sorted(wanted) if (one := index.store.get(key)) is not None}
    elif source.corpus is not None:
        found = find_passages([source.corpus], wanted, Notes())
    else:
        raise RagError(f"{source.questions}: passages are known by id only; name their corpus (--corpus or --index)")
    return {key: one for key, one in found.items() if one.text.strip()}


def _retrieved(
    source: QuoteSource, asked: Sequence[BenchQuestion], record: dict[str, Any], progress: Progress
) -> Quoted:
    assert source.index is not None
    index, k = open_index(source.index), source.k or K
    retriever = open_retriever(source.retriever or RETRIEVER, index)
    found, left_out = [], []
    for done, one in enumerate(asked, 1):
        try:
            hits = retriever.search([one.question.text], k)[0]
        except QuestionError as error:
            left_out.append(_left_out(one, "not-searchable", str(error)))
        else:
            quotes = tuple(hit.passage for hit in hits if hit.passage.text.strip())
            if quotes:
                found.append(replace(one, passages=quotes))
            else:
                left_out.append(_left_out(one, "no-hit", "nothing was found"))
        progress("searching", done, len(asked))
    record |= {"index": index_record(index), "retriever": retriever.name, "k": k, "left_out": len(left_out)}
    return Quoted(found, left_out, record)


def index_record(index: Index) -> dict[str, Any]:
    """Return what identifies an index."""
    return {"name": index.name} | {key: index.manifest[key] for key in ("passages", "checksum", "recipe", "analyzer")}


def _left_out(one: BenchQuestion, reason: str, detail: str) -> dict[str, Any]:
    return {"query_id": one.question.id, "question": one.question.text, "reason": reason, "detail": detail}


def _examples(keys: Iterable[str]) -> dict[str, Any]:
    listed = list(keys)
    return {"count": len(listed), "examples": listed[:_EXAMPLES]}
