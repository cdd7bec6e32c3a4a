"""BM25 by Lucene, through Anserini's jar (extra `lucene`): the engine of published baselines."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from rag.base import jvm
from rag.base.errors import IndexingError
from rag.base.types import Hit, rank_hits
from rag.index.analysis import QUERY_STOP_WORDS, check_search, query_terms
from rag.index.index import Index
from rag.index.lucene import Passages, directory, faults
from rag.index.parts import Needs, RowProgress, adding, open_part
from rag.index.passages import PASSAGES, Store
from rag.index.postings import TIE_MARGIN, parameters, weights_of
from rag.index.retriever_config import RetrieverConfig
from rag.index.statistics import FIELDS
from rag.retrieval import RetrieverKind

# One part serves every retriever of this kind: k1, b and weights only matter at search time.
DATA_CONFIG = RetrieverConfig(
    "anserini.v1",
    "lucene",
    {"fields": sorted(FIELDS), "analyzer": "Anserini's DefaultEnglishAnalyzer: Porter stems, stop words dropped"},
)
_UNTITLED_FIELD = "untitled"  # a field with one term, only in passages without headings
_BUFFER_MB = 128  # postings in memory before they are written
_COMMIT = 100_000  # passages between commits; a stopped run resumes after the last one
_BATCH = 1000
_MAX_TERMS = 30_000  # a query has at most 10,000 characters, and its terms occur up to three times


def needs(index: Index, config: RetrieverConfig, memory: int | None) -> Needs:
    """Estimate what `add` takes, as measured on 1.1M Wikipedia passages: postings are 0.19 of the passage store.

    They take twice that while they merge. `memory` is ignored: the writer's buffer and Java's heap have fixed sizes.
    Memory-mapped files do not count.
    """
    _check(config)
    home = index.build / PASSAGES if index.build else None
    size = home.stat().st_size if home and home.exists() else 0
    return Needs(
        memory=700_000_000, resident=300_000_000, disk=int(0.38 * size), why="half of the disk is for merging only"
    )


def _check(config: RetrieverConfig) -> None:
    weights_of(config)
    parameters(config)


def add(index: Index, config: RetrieverConfig, memory: int | None, progress: RowProgress) -> None:
    """Index headings and text as Anserini's field `contents`, headings also as `title`, and the passage id as `id`.

    The part's folder `index` is an ordinary Anserini index, which Pyserini can open. It is written with Lucene's
    IndexWriter instead of Anserini's IndexCollection, which needs the passages in files and only logs a full disk.
    """
    _check(config)
    jvm.start()
    with adding(index, DATA_CONFIG, {"engine": jvm.find_jar().name}) as (work, record):
        with _writer(work / "index") as writer:
            from jnius import autoclass

            document = autoclass("io.anserini.collection.JsonCollection$Document")
            generator = autoclass("io.anserini.index.generator.DefaultLuceneDocumentGenerator")()
            words, marker = (autoclass(f"org.apache.lucene.document.{kind}Field") for kind in ("Text", "String"))
            no_store = autoclass("org.apache.lucene.document.Field$Store").NO
            count: int = writer.getDocStats().numDocs
            progress(count, "")
            for row, passage in enumerate(index.store.scan(count), count):
                headings, contents = passage.headings, passage.contents
                if not any(character > " " for character in contents):
                    contents = "."  # Anserini refuses documents that are blank for Java
                lucene_document = generator.createDocument(document.fromFields(passage.id, contents))
                lucene_document.add(
                    words("title", headings, no_store) if headings else marker(_UNTITLED_FIELD, "1", no_store)
                )
                writer.addDocument(lucene_document)
                if (row + 1) % _BATCH == 0:
                    progress(row + 1, "")
                if (row + 1) % _COMMIT == 0:
                    writer.commit()
            record["passages"] = writer.getDocStats().numDocs
            progress(record["passages"], "merging")
            writer.forceMerge(1)
        if record["passages"] != index.manifest["passages"]:
            raise IndexingError(f"Lucene took {record['passages']:,} of {index.manifest['passages']:,} passages")


@contextmanager
def _writer(folder: Path) -> Iterator[Any]:
    """Open a writer after the last commit; commits at the end of the block, rolls back on an error."""
    with faults(f"{folder} cannot be written"):
        from jnius import autoclass

        analyzer = autoclass("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        settings = autoclass("org.apache.lucene.index.IndexWriterConfig")(analyzer)
        settings.setRAMBufferSizeMB(float(_BUFFER_MB))
        settings.setUseCompoundFile(False)
        # This policy only merges adjacent segments; with one writing thread, document numbers equal rows of the store.
        settings.setMergePolicy(autoclass("org.apache.lucene.index.LogDocMergePolicy")())
        writer = autoclass("org.apache.lucene.index.IndexWriter")(directory(folder), settings)
        try:
            yield writer
            writer.close()
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                writer.rollback()
            raise


def open_lucene(index: Index, config: RetrieverConfig) -> "Lucene":
    """Open Lucene over the part that `add` built, or over an index built by Anserini.

    Raises `RagError` if the extra is not installed or Java is too old.
    """
    _check(config)
    if index.lucene is not None:
        return Lucene(index.lucene, index.store, config, is_mixed=False, way_out="build it again")
    home, _ = open_part(index, DATA_CONFIG)
    # If all passages have headings, or none has, scores need no correction.
    return Lucene(
        home / "index", index.store, config, is_mixed=0 < index.manifest["untitled"] < index.manifest["passages"]
    )


class Lucene:
    """Searches an Anserini index whose documents are the rows of a passage store.

    A query is analysed by Anserini's DefaultEnglishAnalyzer, like the passages, but with the stop words of the other
    lexical retrievers (`rag.index.analysis`), so that all of them refuse the same queries. A term that occurs twice
    in a query counts twice, as in Anserini. Fields are weighted as in `rag.index.postings`; if `mixed`, the text of a
    passage without headings also counts as its title, as there. Scores lack BM25's constant factor k1 + 1, which Lucene
    leaves out.
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        config: RetrieverConfig,
        *,
        is_mixed: bool,
        way_out: str = "add the data again",
    ) -> None:
        jvm.start()
        from jnius import autoclass, cast

        k1, b = parameters(config)
        self.name = config.name
        self._store, self._mixed, self._way_out = store, is_mixed, way_out
        self._lock = Lock()  # the reader of stored fields is not thread-safe
        self._weights = weights_of(config)
        with faults(f"{folder} cannot be opened, {way_out}"):
            if isinstance(store, Passages):
                reader = store.reader
            else:
                reader = autoclass("org.apache.lucene.index.DirectoryReader").open(directory(folder))
                self._check_last(reader)
            self._passages: int = reader.numDocs()
            searcher = autoclass("org.apache.lucene.search.IndexSearcher")
            searcher.setMaxClauseCount(_MAX_TERMS)
            self._searcher = searcher(cast("org.apache.lucene.index.IndexReader", reader))
            self._searcher.setSimilarity(autoclass("org.apache.lucene.search.similarities.BM25Similarity")(k1, b))
        words = autoclass("java.util.ArrayList")()
        for word in QUERY_STOP_WORDS:
            words.add(word)
        stop_words = autoclass("org.apache.lucene.analysis.CharArraySet")(words, False)
        analyzer = autoclass("io.anserini.analysis.DefaultEnglishAnalyzer")
        self._analyzer = analyzer.newStemmingInstance("porter", stop_words)
        self._queries = autoclass("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self._boolean = autoclass("org.apache.lucene.search.BooleanQuery$Builder")
        self._boost = autoclass("org.apache.lucene.search.BoostQuery")
        occur = autoclass("org.apache.lucene.search.BooleanClause$Occur")
        self._should, self._must, self._filter = occur.SHOULD, occur.MUST, occur.FILTER
        marker = autoclass("org.apache.lucene.index.Term")(_UNTITLED_FIELD, "1")
        self._untitled = autoclass("org.apache.lucene.search.TermQuery")(marker)
        # Converting Java objects as one JSON text is ten times faster than one by one.
        self._json = autoclass("com.fasterxml.jackson.databind.ObjectMapper")()

    def _check_last(self, reader: Any) -> None:  # noqa: ANN401  (a Java object)
        """Raise `IndexingError` unless the last document is the last row of the store, as in a matching part."""
        last = reader.numDocs() - 1
        try:
            (passage,) = self._store.rows([last])
        except IndexingError:  # the store has no such row
            passage = None
        if passage is None or reader.storedFields().document(last).get("id") != passage.id:
            raise IndexingError("the Lucene index has other passages than the index: add the data again")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return at most k hits per query; raises `QuestionError` (`query_terms`), or `IndexingError` on damage."""
        check_search(queries, k)
        for query in queries:
            query_terms(query)
        with self._lock, faults(f"is damaged, {self._way_out}"):
            return [self._search(query, min(k, self._passages)) for query in queries]

    def _search(self, query: str, k: int) -> list[Hit]:
        top = self._top(self._query(query), k)
        return rank_hits(self._store.rows([hit["doc"] for hit in top]), [hit["score"] for hit in top])[:k]

    def _top(self, query: Any, k: int) -> list[dict[str, Any]]:  # noqa: ANN401
        """`doc` (the row) and `score` of the top k documents, and of all others that tie with the k-th.

        Sorting ties by id in Lucene would take 10 to 25 % longer.
        """
        limit = k + TIE_MARGIN
        while True:
            text = self._json.writeValueAsString(self._searcher.search(query, limit))
            hits: list[dict[str, Any]] = json.loads(text)["scoreDocs"]
            if len(hits) < limit or hits[-1]["score"] < hits[k - 1]["score"]:
                return [hit for hit in hits if hit["score"] >= hits[k - 1]["score"]] if len(hits) > k else hits
            limit *= 2  # the tie at rank k continues beyond the fetched hits

    def _query(self, query: str) -> Any:  # noqa: ANN401
        query_builder = self._boolean()
        for field, weight in self._weights.items():
            query_builder.add(self._boost_query(field, query, weight), self._should)
        if self._mixed and "title" in self._weights:
            untitled_builder = self._boolean()
            untitled_builder.add(self._boost_query("contents", query, self._weights["title"]), self._must)
            untitled_builder.add(self._untitled, self._filter)
            query_builder.add(untitled_builder.build(), self._should)
        return query_builder.build()

    def _boost_query(self, field: str, query: str, weight: float) -> Any:  # noqa: ANN401
        return self._boost(self._queries.buildQuery(field, self._analyzer, query), weight)


KIND = RetrieverKind(open_lucene, needs, add)
