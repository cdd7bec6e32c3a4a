"""BM25 by Lucene, through Anserini's jar (extra `lucene`): the engine that the field's baselines are made with."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from rag import jvm
from rag.errors import IndexingError
from rag.index.analysis import QUERY_STOP_WORDS, check_depth, query_terms
from rag.index.lucene import Passages, directory, faults
from rag.index.parts import Needs, Tell, adding, open_part
from rag.index.passages import Store
from rag.index.postings import FIELDS, TIED, parameters, weights_of
from rag.index.recipes import Recipe
from rag.types import Hit, ranked

if TYPE_CHECKING:
    from rag.index.index import Index

# One part serves every recipe of this kind, because k1, b and weights change no byte of it.
PART = Recipe(
    "anserini.v1",
    "lucene",
    {"fields": sorted(FIELDS), "analyzer": "Anserini's DefaultEnglishAnalyzer: Porter stems, stop words dropped"},
)
_UNTITLED = "untitled"  # a field with one term, in passages without headings
_BUFFER_MB = 128  # of postings in memory before they are written
_COMMIT = 100_000  # passages; what a stopped run goes on from
_BATCH = 1000
_MOST_TERMS = 30_000  # a query has at most 10,000 characters, and is asked up to three times


def needs(index: "Index", recipe: Recipe, memory: int | None) -> Needs:
    """As measured on 1.1M Wikipedia passages: postings are 0.19 of the passage store, twice that while they merge.

    `memory` changes nothing: the writer's buffer and Java's heap are what they are. Files that are mapped do not count.
    """
    _check(recipe)
    home = index.build / "passages.sqlite" if index.build else None
    size = home.stat().st_size if home and home.exists() else 0
    return Needs(
        memory=700_000_000, resident=300_000_000, disk=int(0.38 * size), why="half of the disk is for merging only"
    )


def _check(recipe: Recipe) -> None:
    weights_of(recipe)
    parameters(recipe)


def add(index: "Index", recipe: Recipe, memory: int | None, tell: Tell) -> None:
    """Index headings and text as Anserini's field `contents`, headings as `title` too, the passage id as its `id`.

    The part's folder `index` is an ordinary Anserini index, which Pyserini opens too. Lucene's own writer is fed, not
    Anserini's IndexCollection: that one wants the passages as files first, and only logs it when the disk is full.
    """
    _check(recipe)
    jvm.start()
    with adding(index, PART, {"engine": jvm.find_jar().name}) as (work, record):
        with _writer(work / "index") as writer:
            from jnius import autoclass

            document = autoclass("io.anserini.collection.JsonCollection$Document")
            generator = autoclass("io.anserini.index.generator.DefaultLuceneDocumentGenerator")()
            words, marker = (autoclass(f"org.apache.lucene.document.{kind}Field") for kind in ("Text", "String"))
            unstored = autoclass("org.apache.lucene.document.Field$Store").NO
            done: int = writer.getDocStats().numDocs
            tell(done, "")
            for row, passage in enumerate(index.store.scan(done), done):
                headings, contents = passage.headings, f"{passage.headings} {passage.text}"
                if not any(character > " " for character in contents):
                    contents = "."  # Anserini refuses a document without what Java calls a character
                made = generator.createDocument(document.fromFields(passage.id, contents))
                made.add(words("title", headings, unstored) if headings else marker(_UNTITLED, "1", unstored))
                writer.addDocument(made)
                if (row + 1) % _BATCH == 0:
                    tell(row + 1, "")
                if (row + 1) % _COMMIT == 0:
                    writer.commit()
            record["passages"] = writer.getDocStats().numDocs
            tell(record["passages"], "merging")
            writer.forceMerge(1)
        if record["passages"] != index.manifest["passages"]:
            raise IndexingError(f"Lucene took {record['passages']:,} of {index.manifest['passages']:,} passages")


@contextmanager
def _writer(folder: Path) -> Iterator[Any]:
    """Goes on after the last commit; commits when the block ends, and not when it is left by an error."""
    with faults(f"{folder} cannot be written"):
        from jnius import autoclass

        analyzer = autoclass("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        settings = autoclass("org.apache.lucene.index.IndexWriterConfig")(analyzer)
        settings.setRAMBufferSizeMB(float(_BUFFER_MB))
        settings.setUseCompoundFile(False)
        # This policy only merges neighbours; with one thread that writes, Lucene's numbers are the rows of the store.
        settings.setMergePolicy(autoclass("org.apache.lucene.index.LogDocMergePolicy")())
        writer = autoclass("org.apache.lucene.index.IndexWriter")(directory(folder), settings)
        try:
            yield writer
            writer.close()
        except BaseException:
            with suppress(Exception):  # what ended the block is what matters
                writer.rollback()
            raise


def retriever(index: "Index", recipe: Recipe) -> "Lucene":
    """Lucene over the part that `add` made, or over an index that is Anserini's own.

    `RagError` where the extra is not installed or Java is too old.
    """
    _check(recipe)
    if index.lucene is not None:
        return Lucene(index.lucene, index.store, recipe, mixed=False, way_out="build it again")
    home, _ = open_part(index, PART)
    # Where no passage, or every passage, lacks headings, there is nothing to make up for.
    return Lucene(
        home / "index", index.store, recipe, mixed=0 < index.manifest["untitled"] < index.manifest["passages"]
    )


class Lucene:
    """Searches an Anserini index whose documents are the rows of a passage store.

    A query is analysed by Anserini's DefaultEnglishAnalyzer, like the passages, but with the stop words of the other
    lexical retrievers (`rag.index.analysis`), so that all are asked the same and refuse the same.
    A term that stands twice in a query counts twice, as in Anserini. Fields are weighted as in `rag.retrievers.bm25`;
    if `mixed`, the text of a passage without headings stands in for its title, as there. Scores lack BM25's constant
    factor k1 + 1, which Lucene leaves out.
    """

    def __init__(
        self, folder: Path, store: Store, recipe: Recipe, *, mixed: bool, way_out: str = "add the part again"
    ) -> None:
        jvm.start()
        from jnius import autoclass, cast

        k1, b = parameters(recipe)
        self.name = recipe.name
        self._store, self._mixed, self._way_out = store, mixed, way_out
        self._one_at_a_time = Lock()  # stored fields are read by one thread only
        self._weights = weights_of(recipe)
        with faults(f"{folder} cannot be opened, {way_out}"):
            if isinstance(store, Passages):
                reader = store.reader
            else:
                reader = autoclass("org.apache.lucene.index.DirectoryReader").open(directory(folder))
                self._check_last(reader)
            self._passages: int = reader.numDocs()
            searcher = autoclass("org.apache.lucene.search.IndexSearcher")
            searcher.setMaxClauseCount(_MOST_TERMS)
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
        marker = autoclass("org.apache.lucene.index.Term")(_UNTITLED, "1")
        self._untitled = autoclass("org.apache.lucene.search.TermQuery")(marker)
        # An array of Java objects comes over as one text ten times sooner than object by object.
        self._json = autoclass("com.fasterxml.jackson.databind.ObjectMapper")()

    def _check_last(self, reader: Any) -> None:  # noqa: ANN401  (a Java object)
        """Lucene's numbers are the rows of the store, or the part is of something else."""
        last = reader.numDocs() - 1
        try:
            (passage,) = self._store.rows([last])
        except KeyError:
            passage = None
        if passage is None or reader.storedFields().document(last).get("id") != passage.id:
            raise IndexingError("the Lucene index is of other passages than the index holds: add the part again")

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """For each query at most k hits; `QuestionError` as for `query_terms`, `IndexingError` for a damaged index."""
        check_depth(k)
        for query in queries:
            query_terms(query)
        with self._one_at_a_time, faults(f"is damaged, {self._way_out}"):
            return [self._search(query, min(k, self._passages)) for query in queries]

    def _search(self, query: str, k: int) -> list[Hit]:
        found = self._top(self._query(query), k)
        return ranked(self._store.rows([hit["doc"] for hit in found]), [hit["score"] for hit in found])[:k]

    def _top(self, query: Any, k: int) -> list[dict[str, Any]]:  # noqa: ANN401
        """`doc` (the row) and `score` of the k best, and of all others that score the same as the k-th.

        Lucene could sort ties by id itself, which takes it a tenth to a quarter longer.
        """
        limit = k + TIED
        while True:
            written = self._json.writeValueAsString(self._searcher.search(query, limit))
            hits: list[dict[str, Any]] = json.loads(written)["scoreDocs"]
            if len(hits) < limit or hits[-1]["score"] < hits[k - 1]["score"]:
                return [hit for hit in hits if hit["score"] >= hits[k - 1]["score"]] if len(hits) > k else hits
            limit *= 2  # the tie at rank k runs on beyond what was fetched

    def _query(self, query: str) -> Any:  # noqa: ANN401
        whole = self._boolean()
        for field, weight in self._weights.items():
            whole.add(self._boosted(field, query, weight), self._should)
        if self._mixed and "title" in self._weights:
            alone = self._boolean()
            alone.add(self._boosted("contents", query, self._weights["title"]), self._must)
            alone.add(self._untitled, self._filter)
            whole.add(alone.build(), self._should)
        return whole.build()

    def _boosted(self, field: str, query: str, weight: float) -> Any:  # noqa: ANN401
        return self._boost(self._queries.buildQuery(field, self._analyzer, query), weight)
