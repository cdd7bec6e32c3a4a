"""Benchmarks: a TOML that names questions, corpus and rules by path and checksum (`eval/benchmarks`, or your own)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from autoais.base.io.provenance import sha256_file
from rag.base.errors import RagError, UserError, check_type
from rag.base.resources import names
from rag.bench.tables import Table, inside, read_toml

TASKS = ("answer", "given")
RIGHT = ("em", "answer_recall", "answer_in_text", "gold_cited", "nuggets@60", "nuggets@120")
HANDBOOK = "handbook"  # the shipped corpus that has an index already

_MAX_HITS = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a benchmark: below the data folder, or (`is_shipped`) beside its TOML.

    `sha256` is None if it ships, and if the benchmark does not say it (`"unknown"`, or left out).
    """

    file: str
    sha256: str | None = None
    is_shipped: bool = False

    def path(self, data: Path | None, home: Path) -> Path:
        """Return the path of the file, which may be missing."""
        return inside(home if self.is_shipped else _data(data), self.file, links=not self.is_shipped)

    def check(self, data: Path | None, home: Path) -> Path:
        """Return the path of the file; raises `RagError` if it is missing or has another checksum."""
        path = self.path(data, home)
        if not path.is_file():
            raise RagError(f"{path} is missing; {_way_to_get(self.file)}")
        if self.sha256 is not None and (digest := sha256_file(path)) != self.sha256:
            raise RagError(
                f"{path} is another version: its sha256 is {digest}, the setting sha256 of the benchmark is "
                f"{self.sha256[:12]}...; change or leave out the setting if this file is meant"
            )
        return path


@dataclass(frozen=True, slots=True)
class QuestionFile(DataFile):
    """A file of questions: `part` is the value of their field `part` (None: all), `count` how many there are.

    `qrels` says which passages come with each question and which of them answer it; `passages` is how many of the
    passages of a question are given, from the first of the file. `ids` is a list of the questions that count, beside
    the TOML. Each is None if the benchmark does not say it.
    """

    qrels: DataFile | None = None
    part: str | None = None
    passages: int | None = None
    count: int | None = None
    ids: DataFile | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a benchmark searches: a file with its checksum, or a folder of documents.

    Both lie below the data folder; a folder may ship (`is_shipped`): then it lies beside the TOML, or is the handbook
    that ships with rag (`"handbook"`). `format` is a corpus format of `rag index build` (None: detected). `index` is
    the checksum of its passages, as the manifest of an index records it (None: an index is not checked). `ids` is a
    list of the passages that belong to it, beside the TOML (`rag.bench.selections.read_ids`; None: all).
    """

    path: str
    sha256: str | None = None
    format: str | None = None
    is_shipped: bool = False
    index: str | None = None
    ids: DataFile | None = None

    @property
    def is_handbook(self) -> bool:
        """Whether it is the handbook that ships with rag."""
        return self.is_shipped and self.path == HANDBOOK

    def check(self, data: Path | None, home: Path) -> Path:
        """Return the path of the file or folder; raises `RagError` if it is missing or has another checksum."""
        path = inside(home if self.is_shipped else _data(data), self.path, links=not self.is_shipped)
        if self.sha256 is not None:
            return DataFile(self.path, self.sha256).check(data, path)
        if not path.exists():
            raise RagError(f"{path} is missing; {_way_to_get(self.path)}")
        if not self.is_shipped:
            _check_whole(self.path, _data(data))
        return path


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Questions, corpora and rules of a benchmark.

    `task` is `answer` (search a corpus) or `given` (the passages come with each question). `corpora` has one entry, or
    one per collection that questions name in their field `collection`, or none if the passages are given with texts.
    `right` is the rule by which an answer counts as right (`rag.bench.outcomes.is_right`); None if the benchmark cannot
    say. `k` is the depth for every system (None: the system's own). `sources` are the files of questions. `texts` has
    the texts of given passages that they name by id, for a benchmark that searches nothing. `gold` is a file of the
    same questions with gold passages of this corpus, or TREC qrels. `other_corpora` names further corpora that may be
    searched instead: paths below the data folder.
    Every report of a result must state `closed_pool`.
    `home` is the folder of the TOML, `sha256` its checksum.
    """

    name: str
    version: int
    description: str
    licence: str
    task: str
    closed_pool: bool
    right: str | None
    k: int | None
    sources: tuple[QuestionFile, ...]
    texts: Corpus | None
    gold: DataFile | None
    corpora: Mapping[str, Corpus]
    other_corpora: Mapping[str, str]
    home: Path
    sha256: str

    @property
    def id(self) -> str:
        """Name and version, as results name it."""
        return f"{self.name}.v{self.version}"

    @property
    def questions(self) -> QuestionFile:
        """The file of the questions, the first if there are several."""
        return self.sources[0]

    @property
    def count(self) -> int | None:
        """The number of questions; None if the benchmark does not say it."""
        counts = [file.count for file in self.sources]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def files(self) -> list[DataFile]:
        """All files of questions, each with the file of its judgements behind it."""
        return [file for questions in self.sources for file in (questions, questions.qrels) if file is not None]

    @property
    def needs_data(self) -> bool:
        """Whether anything of it lies in a data folder."""
        are_shipped = [file.is_shipped for file in self.files]
        are_shipped += [corpus.is_shipped for corpus in self.corpora.values()]
        are_shipped += [file.is_shipped for file in (self.gold, self.texts) if file is not None]
        return not all(are_shipped)

    @property
    def ids(self) -> DataFile | None:
        """The list of the passages of its only corpus, which other corpora may have too."""
        return self.corpora[""].ids if "" in self.corpora else None

    def question_files(self, corpus: str | Path | None = None) -> list[str]:
        """Return the paths below the data folder of what is asked of systems, over another corpus if it is named."""
        files = [*self.files, *([self.gold] if self.gold is not None and (corpus is None or self.ids) else [])]
        texts = [] if self.texts is None or self.texts.is_shipped else [self.texts.path]
        return [*(file.file for file in files if not file.is_shipped), *texts]

    def searched_files(self, corpus: str | Path | None = None) -> list[str]:
        """Return the paths below the data folder of what is searched, over another corpus if it is named."""
        if corpus is not None:
            return [self.other_corpora[str(corpus)]] if str(corpus) in self.other_corpora else []
        return [searched.path for searched in self.corpora.values() if not searched.is_shipped]

    def corpus_of(self, collection: str | None) -> str | None:
        """The name of the corpus that a question's collection is searched in; None if it names none of several."""
        if collection in self.corpora:
            return collection
        if "" in self.corpora or not self.corpora:
            return ""
        return next(iter(self.corpora)) if collection is None and len(self.corpora) == 1 else None

    def other_corpus(self, name: str | Path, data: Path | None) -> Path:
        """Return the path of another corpus: one of `other_corpora` by name, or a path as it is.

        Raises `RagError` if there is no such name and no such file or folder.
        """
        if str(name) in self.other_corpora:
            path = inside(_data(data), self.other_corpora[str(name)])
            if not path.exists():
                way = _way_to_get(self.other_corpora[str(name)])
                raise RagError(f"{path} is missing: the corpus {str(name)!r} of {self.id} belongs there; {way}")
            _check_whole(self.other_corpora[str(name)], _data(data))
            return path
        path = Path(name)
        if not path.exists():
            names_hint = f", or one of: {', '.join(sorted(self.other_corpora))}" if self.other_corpora else ""
            raise RagError(f"{path}: no such file or folder; name a corpus{names_hint}")
        return path


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Claims with evidence and people's labels: what judges are measured on (`rag bench judges`), not systems.

    `collection` is the name of its files together, `only` the data sets in them that count (None: all), `count` the
    number of labels.
    """

    name: str
    version: int
    description: str
    licence: str
    collection: str
    files: tuple[DataFile, ...]
    only: tuple[str, ...] | None
    count: int
    home: Path


def list_benchmarks() -> list[Benchmark]:
    """Return the benchmarks that ship with rag, sorted by name."""
    return [read_benchmark(name) for name in _list_tables(labels=False)]


def list_label_sets() -> list[LabelSet]:
    """Return the labelled sets that rag knows, sorted by name."""
    return [read_label_set(name) for name in _list_tables(labels=True)]


def read_benchmark(name: str | Path) -> Benchmark:
    """Read a benchmark that ships with rag by name, or your own by path (`.toml`).

    A file is data: nothing in it is run, and its paths stay below the data folder (or beside the file). Raises
    `RagError` for an unknown name, and for a file that is not a benchmark.
    """
    table, home, digest = read_toml(name, "benchmarks", "benchmark", lambda table: not _is_labels(table))
    if _is_labels(table):
        raise RagError(f"{name} has labels to measure judges on: rag bench judges --set {name}")
    return _benchmark(table, home, digest)


def read_label_set(name: str | Path) -> LabelSet:
    """Read a labelled set by name, or your own by path (`.toml`); raises `RagError` as `read_benchmark` does."""
    check_type("set", name, "a name or a .toml file", str, Path)
    table, home, _ = read_toml(name, "benchmarks", "labelled set", _is_labels)
    if not _is_labels(table):
        raise RagError(f"{name} asks questions of systems: rag bench run {name}")
    table.only("name", "version", "description", "licence", "task", "collection", "sets", "count", "labels")
    return LabelSet(
        name=table.line("name"),
        version=table.number("version", 10**6),
        description=table.line("description"),
        licence=table.line("licence"),
        collection=table.line("collection"),
        files=tuple(map(_file, table.tables("labels"))),
        only=table.lines("sets") if "sets" in table.row else None,
        count=table.number("count", 10**9),
        home=home,
    )


def _list_tables(*, labels: bool) -> list[str]:
    benchmark_names = names("benchmarks", ".toml")
    return [name for name in benchmark_names if _is_labels(read_toml(name, "benchmarks", "benchmark")[0]) == labels]


def _is_labels(table: Table) -> bool:
    return table.row.get("task") == "judge"


def _benchmark(table: Table, home: Path, digest: str) -> Benchmark:
    table.only(
        "name", "version", "description", "licence", "task", "closed_pool", "right", "k", "questions", "texts", "gold",
        "corpus", "corpora", "other_corpora",
    )  # fmt: skip
    name = table.line("name")
    if not _NAME.fullmatch(name):
        raise table.error("name", "letters, digits, dots, dashes and underscores", name)
    task = table.one_of("task", TASKS, "answer")
    is_list = isinstance(table.row.get("questions"), list)
    tables = table.tables("questions") if is_list else [table.table("questions")]
    corpora = dict(_corpora(table))
    if "texts" in table.row and (corpora or task != "given"):
        raise RagError(f"{table.source}: [texts] belongs to given passages without a corpus; leave out one of the two")
    gold = table.table("gold") if "gold" in table.row else None
    if gold is not None:
        gold.only("file", "sha256", "shipped")
    return Benchmark(
        name=name,
        version=table.number("version", 10**6),
        description=table.line("description"),
        licence=table.line("licence"),
        task=task,
        closed_pool="closed_pool" in table.row and table.flag("closed_pool"),
        right=table.one_of("right", RIGHT) if "right" in table.row else None,
        k=table.number("k", _MAX_HITS) if "k" in table.row else None,
        sources=tuple(map(_question_file, tables)),
        texts=_texts(table.table("texts")) if "texts" in table.row else None,
        gold=None if gold is None else _file(gold),
        corpora=corpora,
        other_corpora=_other_corpora(table),
        home=home,
        sha256=digest,
    )


def _file(table: Table) -> DataFile:
    is_shipped = "shipped" in table.row and table.flag("shipped")
    has_checksum = not is_shipped and table.row.get("sha256", "unknown") != "unknown"
    return DataFile(table.path("file"), table.checksum() if has_checksum else None, is_shipped)


def _ids(table: Table) -> DataFile | None:
    """The list of ids of a table, which lies beside the TOML."""
    if "ids" not in table.row:
        return None
    ids = table.table("ids")
    ids.only("file", "sha256")
    return DataFile(ids.path("file"), ids.checksum() if "sha256" in ids.row else None, is_shipped=True)


def _texts(table: Table) -> Corpus:
    table.only("file", "folder", "sha256", "shipped")
    return _corpus(table)


def _question_file(table: Table) -> QuestionFile:
    table.only("file", "sha256", "shipped", "qrels", "part", "passages", "count", "ids")
    file, qrels = _file(table), table.table("qrels") if "qrels" in table.row else None
    if qrels is not None:
        qrels.only("file", "sha256", "shipped")
        if "part" in table.row:
            raise RagError(f"{table.source}: 'part' is of rows of jsonl, 'qrels' of topics; leave out one of the two")
    return QuestionFile(
        file.file,
        file.sha256,
        file.is_shipped,
        None if qrels is None else _file(qrels),
        table.line("part") if "part" in table.row else None,
        table.number("passages", _MAX_HITS) if "passages" in table.row else None,
        table.number("count", 10**9) if "count" in table.row else None,
        _ids(table),
    )


def _corpora(table: Table) -> Iterable[tuple[str, Corpus]]:
    if table.row.get("task") == "given" and not table.row.keys() & {"corpus", "corpora"}:
        return
    if ("corpus" in table.row) == ("corpora" in table.row):
        raise RagError(f"{table.source}: not a benchmark: it should have either [corpus] or [corpora.NAME]")
    if "corpus" in table.row:
        yield "", _corpus(table.table("corpus"))
        return
    corpora = table.table("corpora")
    yield from ((name, _corpus(corpora.table(name))) for name in _names(corpora))
    if not corpora.row:
        raise RagError(f"{table.source}: not a benchmark: [corpora] is empty")


def _other_corpora(table: Table) -> dict[str, str]:
    if "other_corpora" not in table.row:
        return {}
    corpora = table.table("other_corpora")
    return {name: corpora.path(name) for name in _names(corpora)}


def _names(corpora: Table) -> Iterator[str]:
    for name in corpora.row:
        if not _NAME.fullmatch(name):
            raise corpora.error(name, "a name of letters, digits, dots, dashes and underscores", name)
        yield name


def _corpus(table: Table) -> Corpus:
    table.only("file", "folder", "sha256", "format", "shipped", "index", "ids")
    form, ids = table.line("format") if "format" in table.row else None, _ids(table)
    if "shipped" in table.row and table.flag("shipped"):
        return Corpus(table.path("folder"), format=form, is_shipped=True, ids=ids)
    if ("file" in table.row) == ("folder" in table.row):
        raise RagError(f"{table.source}: a corpus should have either a file or a folder")
    if "folder" in table.row:
        return Corpus(table.path("folder"), format=form, ids=ids)
    index = table.line("index") if "index" in table.row else None
    has_checksum = table.row.get("sha256", "unknown") != "unknown"
    return Corpus(table.path("file"), table.checksum() if has_checksum else None, form, index=index, ids=ids)


def _way_to_get(path: str) -> str:
    from rag.bench.datasets import find_datasets_of_files

    datasets = find_datasets_of_files([path])
    fetch = f", or fetch it: rag data fetch {datasets[0].name} --data FOLDER --allow-network" if datasets else ""
    return f"name the folder of the data{fetch}"


def _check_whole(folder: str, data: Path) -> None:
    """Raise `RagError` for a folder that holds some files of a data set, and not all: a download stopped."""
    from rag.bench.datasets import list_datasets

    for dataset in list_datasets():
        files = [file for file in dataset.files if str(PurePosixPath(file.to).parent) == folder]
        missing = sum(not file.path(data).exists() for file in files)
        if 0 < missing < len(files):
            raise RagError(
                f"{data / folder}: {missing} of {len(files)} files are missing; "
                f"rag data fetch {dataset.name} --data {data} --allow-network fetches them"
            )


def _data(data: Path | None) -> Path:
    if data is None:
        raise RagError(
            "the benchmark needs its data: name the folder (--data), or download what is public (--download)"
        )
    if not data.is_dir():
        raise UserError(f"{data} is not a folder; name the folder of the data")
    return data
