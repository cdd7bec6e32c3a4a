"""BM25 by Lucene, through Anserini's jar (extra `lucene`): the engine that the field's baselines are made with."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais import wikipedia
from autoais.jsonl import parse_object
from rag import jvm
from rag.analysis import QUERY_STOP_WORDS, check_depth, query_terms
from rag.corpus import Corpus
from rag.errors import FormatError, IndexingError
from rag.parts import Needs, Tell, adding, open_part
from rag.recipes import Recipe
from rag.retrievers.bm25 import FIELDS, TIED, parameters, weights_of
from rag.store import PassageStore
from rag.types import Hit, Passage, ranked

if TYPE_CHECKING:
    from rag.index import Index

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
_DPR = re.compile(r'"([^\n]*)"\n(.+)', re.DOTALL)  # how Pyserini writes DPR's passages: the title in quotes, a line end
_JAVAS_NAMES = re.compile(r"^JVM exception occurred: |[\w.]+\.\w+(?:Exception|Error): ")  # around what went wrong
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
    index.store.unmap()
    with adding(index, PART, {"engine": jvm.find_jar().name}) as (work, record):
        with _writer(work / "index") as writer:
            from jnius import autoclass

            document = autoclass("io.anserini.collection.JsonCollection$Document")
            generator = autoclass("io.anserini.index.generator.DefaultLuceneDocumentGenerator")()
            words, marker = (autoclass(f"org.apache.lucene.document.{kind}Field") for kind in ("Text", "String"))
            unstored = autoclass("org.apache.lucene.document.Field$Store").NO
            done: int = writer.getDocStats().numDocs
            tell(done, "")
            for row, passage in islice(enumerate(index.store), done, None):
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
    with _faults(f"{folder} cannot be written"):
        from jnius import autoclass

        analyzer = autoclass("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        settings = autoclass("org.apache.lucene.index.IndexWriterConfig")(analyzer)
        settings.setRAMBufferSizeMB(float(_BUFFER_MB))
        settings.setUseCompoundFile(False)
        # This policy only merges neighbours; with one thread that writes, Lucene's numbers are the rows of the store.
        settings.setMergePolicy(autoclass("org.apache.lucene.index.LogDocMergePolicy")())
        writer = autoclass("org.apache.lucene.index.IndexWriter")(_directory(folder), settings)
        try:
            yield writer
            writer.close()
        except BaseException:
            with suppress(Exception):  # what ended the block is what matters
                writer.rollback()
            raise


def _directory(folder: Path) -> Any:  # noqa: ANN401  (a Java object)
    from jnius import autoclass

    return autoclass("org.apache.lucene.store.FSDirectory").open(autoclass("java.io.File")(str(folder)).toPath())


@contextmanager
def _faults(what: str) -> Iterator[None]:
    from jnius import JavaException

    try:
        yield
    except JavaException as error:
        reason = _JAVAS_NAMES.sub("", str(error).splitlines()[0])
        raise IndexingError(f"the Lucene index {what}: {reason}") from error


def retriever(index: "Index", recipe: Recipe) -> "Lucene":
    """Lucene over the part that `add` made; `RagError` where the extra is not installed or Java is too old."""
    _check(recipe)
    home, _ = open_part(index, PART)
    # Where no passage, or every passage, lacks headings, there is nothing to make up for.
    return Lucene(
        home / "index", index.store, recipe, mixed=0 < index.manifest["untitled"] < index.manifest["passages"]
    )


class Lucene:
    """Searches an Anserini index whose documents are the rows of a passage store.

    A query is analysed by Anserini's DefaultEnglishAnalyzer, like the passages, but with the stop words of the other
    lexical retrievers (`rag.analysis`), so that all of them are asked the same. What those refuse is refused here too.
    A term that stands twice in a query counts twice, as in Anserini. Fields are weighted as in `rag.retrievers.bm25`;
    if `mixed`, the text of a passage without headings stands in for its title, as there. Scores lack BM25's constant
    factor k1 + 1, which Lucene leaves out.
    """

    def __init__(self, folder: Path, store: PassageStore, recipe: Recipe, *, mixed: bool) -> None:
        jvm.start()
        from jnius import autoclass, cast

        k1, b = parameters(recipe)
        self.name = recipe.name
        self._store, self._mixed = store, mixed
        self._weights = weights_of(recipe)
        with _faults(f"{folder} cannot be opened, add the part again"):
            reader = autoclass("org.apache.lucene.index.DirectoryReader").open(_directory(folder))
            self._passages: int = reader.numDocs()
            self._check_last(reader)
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
        last = self._passages - 1
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
        with _faults("is damaged, add the part again"):
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


class Stored(Corpus):
    """The passages that an Anserini index stores, as a corpus to build an index of our own from.

    Their text is Anserini's field `raw`: JSON of a corpus format (`rag.corpus`) or the text itself; else `contents`.
    """

    unit = "passages"

    def __init__(self, folder: Path, *, skip_bad: bool = False) -> None:
        if not any(folder.glob("segments_*")):
            raise IndexingError(f"{folder} is no Lucene index (no segments_*)")
        super().__init__([folder], skip_bad=skip_bad)
        jvm.start()
        from jnius import autoclass

        with _faults(f"{folder} cannot be opened"):
            self._reader = autoclass("org.apache.lucene.index.DirectoryReader").open(_directory(folder))
            self._texts = self._reader.storedFields()

    @property
    def bytes_total(self) -> int:
        """The number of documents: how far the reading is cannot be told in bytes."""
        return int(self._reader.maxDoc())

    @property
    def bytes_unpacked(self) -> int:
        """About three times the files that store documents, which are packed."""
        return 3 * sum(path.stat().st_size for path in self.sources[0].glob("*.fdt"))

    def read(self) -> Iterator[tuple[str, Passage]]:
        """Yield (where it stands, passage) in Lucene's order. None counts as deleted: Anserini only adds."""
        self.bytes_read = 0
        for number in range(self.bytes_total):
            self.bytes_read = number + 1
            where = f"{self.sources[0]}, document {number}"
            with _faults("is damaged"):
                document = self._texts.document(number)
                name, text = document.get("id"), document.get("raw") or document.get("contents")
            try:
                yield where, _passage(name, text, where)
            except FormatError as error:
                self.refuse(error)


def _passage(name: str | None, text: str | None, where: str) -> Passage:
    if not name or not text:
        raise FormatError(f"{where}: it stores no id or no text; an index made with -storeRaw is needed")
    try:
        row = parse_object(text.encode("utf-8", "replace"), where)
    except FormatError:
        row = {}
    if isinstance(row.get("text"), str):
        title = row.get("title")
        passage = Passage(name, title if isinstance(title, str) else "", row["text"])
    else:
        contents = row["contents"] if isinstance(row.get("contents"), str) else text
        parts, quoted = wikipedia.parse(contents), _DPR.fullmatch(contents)
        if parts:
            passage = Passage(name, parts.title, parts.text, parts.section)
        else:
            passage = Passage(name, quoted[1], quoted[2]) if quoted else Passage(name, "", contents)
    if not passage.text.strip():
        raise FormatError(f"{where}: passage {name!r} has no text")
    return passage
