"""BM25 by Tantivy: Rust, memory-mapped, no JVM. Two fields, English analysis, ties broken by passage id."""

import copy
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Occur, Query

from autoais.base.errors import first_line
from rag.base.errors import IndexingError, RagError, UsageError
from rag.base.types import Hit, Passage, best_first, rank_hits
from rag.index.analysis import ANALYSIS, Analysis, check_search
from rag.index.passages import PassageStore, Store
from rag.index.retriever_config import RetrieverConfig, is_weight
from rag.index.statistics import FIELDS, Statistics, field_text

POSTINGS = "bm25"
HEAP_BYTES = 500_000_000  # with half of it, a million passages end in twice the segments, which search slower
_UPDATE_HEAP_BYTES = 50_000_000
_ANALYZER_ID = ANALYSIS.name
_MAX_FETCHED = 5_000  # hits fetched for one query
_SPARE = 10  # extra hits fetched where other statistics may change their order
_ROUNDING = 1 + 1e-5  # scores have 32 bits
TIE_MARGIN = 5  # extra hits fetched: 95 % of ties at rank k are shorter, and a second search would cost more


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in sorted(FIELDS):
        # Without positions, which only phrase queries need, the index is smaller.
        builder.add_text_field(name, tokenizer_name=_ANALYZER_ID, index_option="freq")
    builder.add_integer_field("row", fast=True, indexed=True)  # indexed, so that an update can delete a row
    builder.add_integer_field("untitled", indexed=True)
    return builder.build()


def weights_of(config: RetrieverConfig) -> Mapping[str, float]:
    """The weight of each field; raises `RagError` if the retriever's weights are invalid."""
    config.check_settings(["engine", "k1", "b", "weights"])
    weights: Mapping[str, float] = config.setting("weights", dict)
    if not weights or not weights.keys() <= set(FIELDS) or not all(map(is_weight, weights.values())):
        raise RagError(
            f"retriever {config.name}: weights of {', '.join(sorted(FIELDS))} should be above 0, found {weights}"
        )
    return weights


def parameters(config: RetrieverConfig) -> tuple[float, float]:
    """BM25's k1 and b; raises `RagError` for values out of range."""
    k1, b = config.setting("k1", float, 1.2), config.setting("b", float, 0.75)
    if k1 < 0 or not 0 <= b <= 1:
        raise RagError(f"retriever {config.name}: k1 should be at least 0 and b from 0 to 1, found {k1} and {b}")
    return k1, b


class BM25Writer:
    """Writes passages into a new Tantivy index; `folder` None keeps it in memory.

    Each thread writes segments of its own. A `shard` has one thread, as several shards with few segments are searched
    faster as one (`rag.index.joined`).
    """

    def __init__(self, folder: Path | None, heap_bytes: int, *, shard: bool = False) -> None:
        with _writing():
            if folder is None:
                self.index = tantivy.Index(_schema())
            else:
                folder.mkdir()
                self.index = tantivy.Index(_schema(), path=str(folder), reuse=False)
            self.index.register_tokenizer(_ANALYZER_ID, ANALYSIS.analyzer)
            self._writer = self.index.writer(heap_size=heap_bytes, num_threads=1 if shard or folder is None else 2)

    def add(self, row: int, passage: Passage) -> None:
        """Add one passage; `row` is its row in the passage store."""
        with _writing():
            self._writer.add_document(_document(row, passage))

    def abandon(self) -> None:
        """Stop the writing threads, so that the folder can be removed."""
        with suppress(ValueError, OSError):
            self._writer.rollback()
            self._writer.wait_merging_threads()

    def finish(self) -> None:
        """Commit and wait for the segments to merge."""
        with _writing():
            self._writer.commit()
            self._writer.wait_merging_threads()
            self.index.reload()


def update_postings(
    old: Path, new: Path, dead: Iterable[int], fresh: Iterable[tuple[int, Passage]], passages: int
) -> bool:
    """Write postings with other rows into the folder `new`; False if the result has not as many as `passages`.

    Both share the files that stay as they are, as hard links where the file system has them: Tantivy never changes a
    file that it has written. Rows in `dead` go, those in `fresh` come. The deleted ones still count in the statistics
    of BM25 until their segment is merged or the postings are written anew.
    """
    new.mkdir()
    for path in old.iterdir():
        if not path.name.startswith(".tantivy"):  # locks
            _link(path, new / path.name, as_copy=path.name in _REWRITTEN_FILES)
    with _writing():
        index = tantivy.Index.open(str(new))
        index.register_tokenizer(_ANALYZER_ID, ANALYSIS.analyzer)
        writer = index.writer(heap_size=_UPDATE_HEAP_BYTES, num_threads=1)
        try:
            for row in dead:
                writer.delete_documents_by_term("row", row)
            for row, passage in fresh:
                writer.add_document(_document(row, passage))
            writer.commit()
        except BaseException:
            with suppress(ValueError, OSError):
                writer.rollback()
            raise
        finally:
            writer.wait_merging_threads()
        index.reload()
        return bool(index.searcher().num_docs == passages)


_REWRITTEN_FILES = ("meta.json", ".managed.json")  # written anew and moved over the old file


def _link(path: Path, to: Path, *, as_copy: bool) -> None:
    if not as_copy:
        with suppress(OSError):  # a file system without hard links, or with a limit on them
            os.link(path, to)
            return
    shutil.copyfile(path, to)


def _document(row: int, passage: Passage) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text("contents", ANALYSIS.prepare(field_text(passage, "contents")))
    if passage.headings:
        document.add_text("title", ANALYSIS.prepare(field_text(passage, "title")))
    else:
        document.add_integer("untitled", 1)
    document.add_integer("row", row)
    return document


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:  # tantivy reports a full disk as ValueError
        raise IndexingError(f"the postings cannot be written: {error}") from error


@contextmanager
def faults(word_reason: Callable[[str], str]) -> Iterator[None]:
    """Raise what Tantivy raises for damaged or unreadable files as an `IndexingError`; `word_reason` words it."""
    try:
        yield
    except BaseException as error:
        if not _is_fault(error):
            raise
        raise IndexingError(word_reason(first_line(error))) from error


def _is_fault(error: BaseException) -> bool:
    # A Rust panic in pyo3 is not an Exception, and cannot be imported.
    return isinstance(error, ValueError | OSError | LookupError) or type(error).__name__ == "PanicException"


def _reading() -> AbstractContextManager[None]:
    return faults(lambda reason: f"the index is damaged ({reason}): build it again")


def count_documents(folder: Path) -> int:
    """The number of passages in the postings of a folder; raises `IndexingError` if they cannot be read."""
    with _reading(), ExitStack() as stack:
        return int(_open_tantivy(folder, stack).searcher().num_docs)


def _open_tantivy(folder: Path, stack: ExitStack) -> tantivy.Index:
    """Open the postings of a folder, which may be read-only; closing `stack` removes what this needs.

    Raises `IndexingError` if they are damaged.
    """
    try:
        return tantivy.Index.open(str(folder))
    except BaseException as error:
        if not _is_fault(error):
            raise
        if os.access(folder, os.W_OK) or not os.access(folder, os.R_OK):
            raise IndexingError(_damage_message(folder)(first_line(error))) from error
    # Tantivy needs a lock file even for reading; a temporary folder of links can hold it.
    links = Path(tempfile.mkdtemp(prefix="rag-"))
    stack.callback(shutil.rmtree, links, ignore_errors=True)
    for path in folder.glob("[!.]*"):  # without the writer's old lock files
        (links / path.name).symlink_to(path.absolute())
    with faults(_damage_message(folder)):
        return tantivy.Index.open(str(links))


def _damage_message(folder: Path) -> Callable[[str], str]:
    return lambda reason: f"{folder}: cannot be opened as a Tantivy index ({reason}): build the index again"


class BM25:
    """Searches an index of `BM25Writer`, with the field weights of a configuration (`indexes/bm25.toml`).

    A passage without headings cannot match in `title`. To make up for this, its text also counts as its title: its
    contents get both weights.
    """

    def __init__(
        self,
        index: tantivy.Index,
        store: Store,
        config: RetrieverConfig,
        *,
        untitled: int,
        passages: int,
        analysis: Analysis = ANALYSIS,
    ) -> None:
        self.name = config.name
        self.config = config
        self._weights = weights_of(config)
        self._searcher = index.searcher()
        self._schema = index.schema
        self._store = store
        self.analysis = analysis
        # If all passages have headings, or none has, scores need no correction.
        self._mixed = 0 < untitled < passages
        self._untitled_passages = untitled
        self._lengths: dict[str, tuple[float, int]] = {}

    @classmethod
    def open(
        cls,
        folder: Path,
        store: PassageStore,
        config: RetrieverConfig,
        *,
        untitled: int,
        passages: int,
        analysis: Analysis = ANALYSIS,
    ) -> "BM25":
        """Open an index folder, which may be read-only and may have terms of an older analysis."""
        with ExitStack() as stack:
            with faults(_damage_message(folder)):
                index = _open_tantivy(folder, stack)
                bm25 = cls(index, store, config, untitled=untitled, passages=passages, analysis=analysis)
            weakref.finalize(bm25, stack.pop_all().close)
        return bm25

    def with_config(self, config: RetrieverConfig) -> "BM25":
        """The same index, searched with the weights of another configuration."""
        other = copy.copy(self)
        other.name, other.config, other._weights = config.name, config, weights_of(config)
        return other

    def with_store(self, store: Store) -> "BM25":
        """The same index, with another store of the same rows."""
        other = copy.copy(self)
        other._store = store
        return other

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query; raises `QuestionError` for a query that cannot be searched."""
        check_search(queries, k)
        terms = [self.analysis.query_terms(query) for query in queries]
        with _reading():
            return [self._search(query, k) for query in terms]

    def statistics(self, queries: Sequence[str]) -> list[Statistics]:
        """Return what the terms of each query are weighed by here; raises as `search` does."""
        check_search(queries, 1)
        with _reading():
            return [self._statistics(self.analysis.query_terms(query)) for query in queries]

    def search_within(self, queries: Sequence[str], k: int, statistics: Sequence[Statistics]) -> list[list[Hit]]:
        """Search as a part of a collection with these statistics, one for each query.

        More hits are fetched until no other passage can be among the best under those statistics. Raises `UsageError`
        for statistics so different that too many would be.
        """
        check_search(queries, k)
        terms = [self.analysis.query_terms(query) for query in queries]
        with _reading():
            return [
                self._within(query, k, query_statistics)
                for query, query_statistics in zip(terms, statistics, strict=True)
            ]

    def _within(self, terms: list[str], k: int, collection: Statistics) -> list[Hit]:
        index_statistics = self._statistics(terms)
        if {len(frequencies) for frequencies in collection.frequencies.values()} != {len(terms)}:
            raise UsageError(f"the statistics are not those of {len(terms)} terms")
        growth, depth = index_statistics.max_growth(collection, self._weights) * _ROUNDING, k + max(_SPARE, k // 4)
        score = collection.scorer(terms, self._weights, self.analysis)
        while True:
            hits = self._search(terms, depth)
            hits_by_score = best_first(Hit(hit.passage, score(hit.passage)) for hit in hits)
            if len(hits) < depth or hits_by_score[k - 1].score > hits[-1].score * growth:
                return hits_by_score[:k]
            if depth > _MAX_FETCHED:
                raise UsageError("the statistics differ too much from those here: spread the passages at random")
            depth *= 2

    def _statistics(self, terms: list[str]) -> Statistics:
        lengths, count = {}, self._searcher.num_docs
        for name in FIELDS:
            lengths[name], count = self._length(name, count)
        frequencies = {name: tuple(self._searcher.doc_freq(name, term) for term in terms) for name in FIELDS}
        return Statistics(count, self._untitled_passages, lengths, frequencies)

    def _length(self, name: str, passages: int) -> tuple[float, int]:
        """The mean length of a field, and the passages that are counted: deleted ones too, until they are merged."""
        if name not in self._lengths:
            self._lengths[name] = (0.0, passages)
            nobody = name == "title" and self._untitled_passages == passages
            for passage in () if nobody else self._store.scan():
                if term := next(iter(self.analysis.passage_terms(field_text(passage, name))), None):
                    query = Query.term_query(self._schema, name, term, index_option="freq")
                    (_, address), *_ = self._searcher.search(query, 1, count=False).hits
                    explanation = json.loads(query.explain(self._searcher, address).to_json())
                    values = {
                        detail["description"][:5]: detail["value"]
                        for part in explanation["details"]
                        for detail in part.get("details", ())
                    }
                    self._lengths[name] = (values["avgdl"], round(values["N, to"]))
                    break
        return self._lengths[name]

    def _search(self, terms: list[str], k: int) -> list[Hit]:
        top = self._top(self._query(terms, self._weights), k)
        untitled_top = self._top_untitled(terms, k, top[k - 1][0] if len(top) >= k else 0.0) if self._mixed else []
        rows = self._rows([address for _, address in (*top, *untitled_top)])
        best = [(row, float(score)) for row, (score, _) in zip(rows, (*top, *untitled_top), strict=True)]
        if untitled_top:
            # dict() keeps the later score of a passage, which is the higher one.
            best = sorted(dict(best).items(), key=lambda item: -item[1])
            # Keep ties with the k-th, which are sorted by id; the rest need not be fetched.
            best = [item for item in best if item[1] >= best[min(k, len(best)) - 1][1]]
        return rank_hits(self._store.rows([row for row, _ in best]), [score for _, score in best])[:k]

    def _rows(self, addresses: list[Any]) -> list[int]:
        """The rows of the store where the passages at these addresses are."""
        return [int(row or 0) for row in self._searcher.fast_field_values("row", addresses)]

    def _top_untitled(self, terms: list[str], k: int, min_score: float) -> list[tuple[Any, Any]]:
        """(score, address) of the top k passages without headings, and ties, with a score of at least `min_score`."""
        contents_query = self._query(terms, {"contents": sum(self._weights.values())})
        marker = Query.const_score_query(Query.term_query(self._schema, "untitled", 1), 0.0)
        top = self._top(Query.boolean_query([(Occur.Must, marker), (Occur.Must, contents_query)]), k)
        return [hit for hit in top if hit[0] >= min_score]

    def _query(self, terms: list[str], weights: Mapping[str, float]) -> Query:
        return Query.boolean_query(
            [
                (
                    Occur.Should,
                    Query.boost_query(Query.term_query(self._schema, field, term, index_option="freq"), weight),
                )
                for term in terms
                for field, weight in weights.items()
            ]
        )

    def _top(self, query: Query, k: int) -> list[tuple[Any, Any]]:
        """(score, address) of the top k, and of all others that tie with the k-th."""
        limit = min(k, self._searcher.num_docs) + TIE_MARGIN  # the engine allocates memory for the limit
        while True:
            hits: list[tuple[Any, Any]] = self._searcher.search(query, limit, count=False).hits
            if len(hits) < limit or hits[-1][0] < hits[k - 1][0]:
                return [hit for hit in hits if hit[0] >= hits[k - 1][0]] if len(hits) > k else hits
            limit *= 2  # the tie at rank k continues beyond the fetched hits
