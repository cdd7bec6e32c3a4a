"""Lucene indexes built by Anserini or Pyserini, to search or import; needs the extra `lucene`."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.io.jsonl import parse_object
from autoais.base.io.provenance import sha256_file, versions
from autoais.base.text import wikipedia
from rag.base import jvm
from rag.base.errors import FormatError, IndexingError
from rag.base.types import Passage
from rag.documents.corpus import Corpus
from rag.documents.report import ReadReport
from rag.documents.sources import LUCENE, Source, SourceFile
from rag.index.retriever_config import read_config

if TYPE_CHECKING:
    from rag.index.index import Index

_DPR = re.compile(r'"([^\n]*)"\n(.+)', re.DOTALL)  # Pyserini's form of DPR's passages: the title in quotes, a line end
_EXCEPTION_NAMES = re.compile(r"^JVM exception occurred: |[\w.]+\.\w+(?:Exception|Error): ")  # before the message


def directory(folder: Path) -> Any:  # noqa: ANN401  (a Java object)
    """The folder as a Lucene `Directory`."""
    from jnius import autoclass

    return autoclass("org.apache.lucene.store.FSDirectory").open(autoclass("java.io.File")(str(folder)).toPath())


@contextmanager
def faults(problem: str) -> Iterator[None]:
    """Raise Java exceptions as an `IndexingError` of one line."""
    from jnius import JavaException

    try:
        yield
    except JavaException as error:
        reason = _EXCEPTION_NAMES.sub("", str(error).splitlines()[0])
        raise IndexingError(f"the Lucene index {problem}: {reason}") from error


class Passages:
    """The passages stored in an Anserini index, by Lucene's document number (as row) and by id.

    Their text is Anserini's field `raw` (JSON of a corpus format, or plain text), or else `contents`. Raises
    `FormatError` for a document without a passage, `IndexingError` for an index with deleted documents, in which some
    passages would occur twice.
    """

    def __init__(self, folder: Path) -> None:
        if not any(folder.glob("segments_*")):
            raise IndexingError(f"{folder} is not a Lucene index (no segments_*)")
        jvm.start()
        from jnius import autoclass

        self.folder = folder
        with faults(f"{folder} cannot be opened"):
            self.reader = autoclass("org.apache.lucene.index.DirectoryReader").open(directory(folder))
            self._texts = self.reader.storedFields()
        if self.reader.hasDeletions():
            raise IndexingError(f"{folder} has deleted documents; merge it first (Anserini's -optimize)")

    def __len__(self) -> int:
        return int(self.reader.maxDoc())

    def at(self, number: int) -> Passage:
        """The passage of a document, by its number."""
        with faults("is damaged"):
            document = self._texts.document(number)
            name, text = document.get("id"), document.get("raw") or document.get("contents")
        return _passage(name, text, f"{self.folder}, document {number}")

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        """The passages of these documents, in the given order."""
        return [self.at(row) for row in rows]

    def scan(self, first: int = 0) -> Iterator[Passage]:
        """Stream the passages, from a document on."""
        return (self.at(number) for number in range(first, len(self)))

    def get(self, identifier: str) -> Passage | None:
        """The passage with that id, or None."""
        from jnius import autoclass, cast

        term = autoclass("org.apache.lucene.index.Term")("id", identifier)
        with faults("is damaged"):
            searcher = autoclass("org.apache.lucene.search.IndexSearcher")
            searcher = searcher(cast("org.apache.lucene.index.IndexReader", self.reader))
            documents = searcher.search(autoclass("org.apache.lucene.search.TermQuery")(term), 1).scoreDocs
        return self.at(documents[0].doc) if documents else None


class Stored(Corpus):
    """The passages stored in an Anserini index, as a corpus to build an index from."""

    def __init__(self, folder: Path, *, skip_bad: bool = False) -> None:
        self._passages = Passages(folder)
        super().__init__([folder], skip_bad=skip_bad)
        self.described = [Source(folder, LUCENE)]

    @property
    def bytes_total(self) -> int:
        """The number of documents, as progress cannot be measured in bytes."""
        return len(self._passages)

    @property
    def bytes_unpacked(self) -> int:
        """An estimate: three times the size of the compressed files that store documents."""
        return 3 * sum(path.stat().st_size for path in self.sources[0].glob("*.fdt"))

    def files(self) -> Iterator[SourceFile]:
        """Begin a pass and its report; yield the index as one file."""
        self.report = ReadReport()
        yield self.described[0].file(self.sources[0])

    def read_file(self, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        """Yield (location, passage) in Lucene's order."""
        for number in range(len(self._passages)):
            self.report.bytes_read = number + 1
            try:
                yield f"{self.sources[0]}, document {number}", self._passages.at(number)
            except FormatError as error:
                self.refuse(error)


def open_lucene(folder: Path) -> "Index":
    """Open an index built by Anserini, for retrievers of kind `lucene`; no parts can be added to it."""
    from rag.index.index import Index

    passages = Passages(folder)
    newest = max(folder.glob("segments_*"), key=lambda path: (len(path.name), path.name))
    manifest = {
        "sources": [folder.resolve().name],
        "format": LUCENE,
        "passages": len(passages),
        "untitled": 0,
        "checksum": f"sha256:{sha256_file(newest)}",  # it names all files of the index, with checksums
        "recipe": read_config("lucene").record(),
        "analyzer": "as the index was made; queries by Anserini's DefaultEnglishAnalyzer with the stop words of bm25",
        "versions": versions(),
    }
    return Index(folder.resolve().name, None, manifest, passages, None, lucene=folder)


def _passage(name: str | None, text: str | None, location: str) -> Passage:
    if not name or not text:
        raise FormatError(f"{location}: it stores no id or no text; build the index with -storeRaw")
    try:
        row = parse_object(text.encode("utf-8", "replace"), location)
    except FormatError:
        row = {}
    if isinstance(row.get("text"), str):
        title = row["title"] if isinstance(row.get("title"), str) else ""
        # Anserini also indexes titles, so a document with only a title is a passage too.
        passage = Passage(name, title, row["text"]) if row["text"].strip() else Passage(name, "", title)
    else:
        contents = row["contents"] if isinstance(row.get("contents"), str) else text
        parsed, dpr_match = wikipedia.parse(contents, name), _DPR.fullmatch(contents)
        plain = Passage(name, dpr_match[1], dpr_match[2]) if dpr_match else Passage(name, "", contents)
        passage = parsed or plain
    if not passage.text.strip():
        raise FormatError(f"{location}: passage {name!r} has no text")
    # JSON can contain lone surrogates, which are not characters.
    texts = (passage.id, passage.title, passage.text, passage.section, passage.headings)
    name, title, text, section, headings = (part.encode("utf-8", "replace").decode("utf-8") for part in texts)
    return Passage(name, title, text, section, headings)
