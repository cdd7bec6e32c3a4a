"""The indexes of a benchmark's corpora, opened when they are needed and built where they are missing."""

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from autoais.base.io.notes import Notes
from autoais.base.io.provenance import sha256_file
from autoais.base.progress import Progress, no_progress
from autoais.formats.corpora import find_passages, read_passages
from rag.api import add_retriever, build_index
from rag.base.errors import FormatError, RagError
from rag.base.types import Passage
from rag.bench.benchmark import Benchmark, Corpus
from rag.bench.output_folder import read_record, write_record
from rag.bench.predictions import by_text
from rag.bench.selections import FORMAT, RECORD, Selection, check_list, read_ids, write_selection
from rag.bench.tables import inside
from rag.index.index import Index
from rag.index.manifest import MANIFEST
from rag.index.open import open_index
from rag.index.parts import read_data_configs
from rag.retrieval import Retriever, check_complete, missing_retrievers, open_retriever, walk_data_configs


def index_record(index: Index) -> dict[str, Any]:
    """Return what identifies an index: its name, and number and checksum of its passages, and its BM25 settings."""
    return {"name": index.name} | {key: index.manifest[key] for key in ("passages", "checksum", "recipe", "analyzer")}


def corpus_files(source: Path) -> list[Path]:
    """Return the files of a folder that holds nothing but files of passages, sorted by name; else the path itself.

    Hidden files, and what `rag data fetch` leaves of downloads that failed, do not count.
    """
    members = sorted(source.iterdir()) if source.is_dir() else []
    members = [path for path in members if not path.name.startswith(".") and path.suffix not in (".part", ".wrong")]
    is_corpus = members and all(member.name.removesuffix(".gz").endswith((".jsonl", ".tsv")) for member in members)
    return members if is_corpus else [source]


class Corpora:
    """Opens the index of each corpus of a benchmark, once.

    `folder` is the index, or the folder of the indexes if the benchmark has several corpora; what is missing is built
    there, or refused without `build`. `corpus` replaces the benchmark's only corpus.

    Of a corpus with a list of ids (`Corpus.ids`), only those passages are searched. With `sample`, that many of the
    only corpus are: those listed, the passages `gold`, and others by the hash of their id. Such a selection has a file,
    its record and its index in `folder`.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        data: Path | None,
        folder: Path,
        corpus: Path | None,
        progress: Progress | None = None,
        *,
        build: bool = True,
        sample: int | None = None,
        gold: Collection[str] = (),
    ) -> None:
        if corpus is not None and list(benchmark.corpora) != [""]:
            raise RagError(f"{benchmark.id} has several corpora; only a benchmark with one takes another")
        self._benchmark, self._data, self._folder, self._corpus = benchmark, data, folder, corpus
        self._progress, self._build = progress, build
        self._open: dict[str, Index] = {}
        self._selection_records: dict[str, dict[str, Any]] = {}
        self.sample = sample
        if sample is not None:
            self._check_sampling()
        names = [name for name in benchmark.corpora if self._is_selected(name)] if build else []
        self._selections = {name: self._select(name, gold) for name in names}

    def _check_sampling(self) -> None:
        """Raise `RagError` for a benchmark of whose corpus no sample can be taken."""
        if list(self._benchmark.corpora) != [""] or self._benchmark.task == "given":
            raise RagError(f"{self._benchmark.id} has no corpus of its own to sample, or several; leave out the sample")
        if self._corpus is None and self._benchmark.corpora[""].is_shipped:
            raise RagError(f"{self._benchmark.id} has a corpus that ships, and is small; leave out the sample")

    def _is_selected(self, name: str) -> bool:
        """Whether only a part of a corpus is searched, chosen by ids."""
        return self.sample is not None or self._benchmark.corpora[name].ids is not None

    def _select(self, name: str, gold: Collection[str]) -> Selection:
        listed = self._benchmark.corpora[name].ids
        ids = {} if listed is None else read_ids(listed.check(self._data, self._benchmark.home))
        return Selection(dict.fromkeys(gold, "") | ids if self.sample else ids, self.sample)

    @property
    def corpus_paths(self) -> tuple[Path | None, Path, Path | None]:
        """Where data, indexes and the other corpus are, for `Corpora` elsewhere."""
        data, corpus = (None if path is None else path.resolve() for path in (self._data, self._corpus))
        return data, self._folder.resolve(), corpus

    def name_of(self, collection: str | None) -> str:
        """The corpus that a question's collection is searched in."""
        return self._benchmark.corpus_of(collection) or ""

    def open(self, name: str) -> Index:
        """Return the index of a corpus; builds it if it is missing."""
        if name not in self._open:
            self._open[name] = self._open_index(name)
        return self._open[name]

    def retriever(self, name: str, retriever: str) -> Retriever:
        """Open a retriever over the index of a corpus; adds the data that the index lacks."""
        index = self.open(name)
        part_names = {part.name for part in read_data_configs(index)}
        if (
            self._build
            and index.build is not None
            and any(part.name not in part_names for _, part in walk_data_configs(retriever))
        ):
            add_retriever(self._place(name), retriever, progress=self._progress)
            index = self._open[name] = open_index(self._place(name))
        return open_retriever(retriever, index)

    def _open_index(self, name: str) -> Index:
        if name not in self._benchmark.corpora:
            raise RagError(f"{self._benchmark.id} has no corpus; its passages come with the questions")
        corpus = self._benchmark.corpora[name]
        if corpus.is_handbook and self._corpus is None:
            return open_index(None)
        index_path = self._place(name)
        if name in self._selections:
            self._write_selection(name)
        if not self._is_built(name):
            if not self._build:
                raise RagError(f"{index_path} is missing; copy the index of the machine where the run was started")
            if name in self._selections:
                file = index_path.with_suffix(".jsonl")
                return build_index(file, index_path, format=FORMAT, replace=True, progress=self._progress)
            source = self._corpus or corpus.check(self._data, self._benchmark.home)
            form = None if self._corpus else corpus.format
            sources = corpus_files(source.resolve())
            documents = source.is_dir() and sources == [source.resolve()]
            return build_index(
                sources, index_path, format=form, skip_bad=documents, replace=True, progress=self._progress
            )
        index = open_index(index_path)
        holds, expected_checksum = index.manifest.get("checksum"), corpus.index
        is_checked = self._corpus is None and expected_checksum is not None and not self._is_selected(name)
        if is_checked and holds is not None and holds != expected_checksum:
            raise RagError(
                f"{index_path}: an index of other passages than {corpus.path} of {self._benchmark.id} "
                f"({index.manifest['passages']:,}); name another index, or its corpus (--corpus)"
            )
        if not self._build:
            check_complete(index)
        missing = missing_retrievers(index)
        for retriever in missing:  # a benchmark does not measure what a stopped build left
            add_retriever(index_path, retriever, progress=self._progress)
        return open_index(index_path) if missing else index

    def _write_selection(self, name: str) -> None:
        """Write the file of a selection, and the record that completes it, unless they or its index are there."""
        index_path, corpus = self._place(name), self._benchmark.corpora[name]
        file, record_path = index_path.with_suffix(".jsonl"), index_path.with_suffix(".json")
        if (index_path.parent / MANIFEST).exists():
            raise RagError(f"{index_path.parent} is an index; name another folder for that of a part of the corpus")
        facts = self.source_record()[name]
        if record_path.exists():
            record = read_record(record_path, RECORD, "remove it, and its passages are selected again")
            if record["source"] != facts:
                raise RagError(
                    f"{index_path} is of another corpus, other gold passages or another list; name another index"
                )
            self._selection_records[name] = record["selection"]
            if file.exists() or self._is_built(name):
                return
        elif (index_path / MANIFEST).exists():  # of a selection whose record was removed
            shutil.rmtree(index_path)
        source = self._corpus or corpus.check(self._data, self._benchmark.home)
        files = corpus_files(source.resolve())
        if any(path.is_dir() for path in files):
            raise RagError(f"{source} holds documents; only files of passages have ids to select by")
        form = None if self._corpus else corpus.format
        selection = write_selection(files, form, self._selections[name], file, self._progress or no_progress)
        if corpus.ids is not None:
            try:
                check_list(selection, source)
            except RagError:
                file.unlink()
                raise
        write_record(record_path, {"source": facts, "selection": selection})
        self._selection_records[name] = selection

    def _place(self, name: str) -> Path:
        folder = self._folder / f"{name}.index" if name else self._folder
        if not self._is_selected(name):
            return folder
        return folder / ("ids.index" if self.sample is None else f"sample-{self.sample}.index")

    def _is_built(self, name: str) -> bool:
        index_path = self._place(name)
        return name in self._open or (index_path / MANIFEST).exists() or any(index_path.glob("segments_*"))

    def _source(self) -> Path | None:
        """The file or folder of the only corpus that is searched whole; None if there are several, or it ships."""
        corpus = self._benchmark.corpora.get("")
        if corpus is not None and self._is_selected(""):
            return None
        if self._corpus is not None or corpus is None or corpus.is_shipped or self._data is None:
            return self._corpus
        return inside(self._data, corpus.path)

    def find(self, ids: set[str]) -> Mapping[str, Passage]:
        """Return the passages with these ids, those that the corpora have.

        Reads the corpus file where there is no index of it, which takes less than building one.
        """
        source = self._read_source()
        if source is not None:
            return find_passages([source], ids, Notes())
        passages: dict[str, Passage] = {}
        for corpus in self._benchmark.corpora:
            store = self.open(corpus).store
            passages |= {key: passage for key in sorted(ids) if (passage := store.get(key)) is not None}
        return passages

    def find_texts(self, texts: set[str]) -> Mapping[str, Passage]:
        """Return the first passage with each of these texts (`fold`), those that the corpora have; reads them all."""
        source = self._read_source()
        if source is not None:
            return by_text(self._passages_of(source), texts)
        return by_text(
            (passage for corpus in self._benchmark.corpora for passage in self.open(corpus).store.scan()), texts
        )

    def _read_source(self) -> Path | None:
        """The corpus file, checked, if there is no index of it."""
        source = self._source()
        if source is None or not source.is_file() or self._is_built(""):
            return None
        if self._corpus is None:
            self._benchmark.corpora[""].check(self._data, self._benchmark.home)
        return source

    @staticmethod
    def _passages_of(source: Path) -> Iterator[Passage]:
        for _, passage in read_passages(source, empty=True):
            if isinstance(passage, FormatError):
                raise passage
            yield passage

    def find_missing(self, keys: Iterable[tuple[str | None, str]]) -> list[str]:
        """Return the ids that the corpus of their collection lacks, sorted, from (collection, id) of each.

        Only of the indexes that are open: none is built or read for it.
        """
        entries = ((self._open.get(self.name_of(collection)), key) for collection, key in keys)
        return sorted({key for index, key in entries if index is not None and index.store.get(key) is None})

    def record(self) -> dict[str, Any]:
        """Return name, checksum and BM25 settings of the open indexes, by corpus, and what is selected of it."""
        return {
            name: index_record(index)
            | ({"selection": self._selection_records[name]} if name in self._selection_records else {})
            for name, index in sorted(self._open.items())
        }

    def source_record(self) -> dict[str, Any]:
        """Return what is searched, by corpus: path below the data folder, SHA-256 of files, and what is selected."""
        selections = {name: selection.record() for name, selection in self._selections.items()}
        return {name: facts | selections.get(name, {}) for name, facts in self._sources.items()}

    @cached_property
    def _sources(self) -> dict[str, dict[str, Any]]:
        if self._corpus is not None:
            digest = sha256_file(self._corpus) if self._corpus.is_file() else None
            return {"": {"path": self._corpus.name, "sha256": digest}}
        corpora = sorted(self._benchmark.corpora.items())
        return {
            name: {"path": corpus.path, "sha256": corpus.sha256 or self._sha256_of(corpus)} for name, corpus in corpora
        }

    def _sha256_of(self, corpus: Corpus) -> str | None:
        """The checksum of a corpus file of which the benchmark does not say it; None for a folder."""
        if corpus.is_shipped or self._data is None:
            return None
        path = inside(self._data, corpus.path)
        return sha256_file(path) if path.is_file() else None
