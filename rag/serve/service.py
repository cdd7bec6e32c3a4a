"""Answers questions over open indexes for many callers at once, within limits. It knows nothing of HTTP."""

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Unpack

from autoais.base.types import Attribution, Judge, Judgement
from rag.answer.attribution.post_hoc import PostHoc, answer_of_pair
from rag.answer.generator import map_answers
from rag.answer.generators.follow_up import make_standalone
from rag.answer.llms import MODEL_FAILED, ModelUnavailableError
from rag.answer.llms.labelled_replies import failed_answer
from rag.answer.specs import SystemSpec
from rag.answer.system import RetrieveThenRead, System
from rag.answer.systems import open_system
from rag.base.config import DEFAULT_JUDGE, DEFAULT_SYSTEM
from rag.base.errors import (
    BusyError,
    IndexingError,
    ModelFailureError,
    NotFoundError,
    QuestionError,
    RagError,
    UsageError,
    check_type,
)
from rag.base.resources import names
from rag.base.terminal import pluralize
from rag.base.types import Answer, Hit, Passage, Question, Turn
from rag.index.index import Index
from rag.index.joined import can_join, join, join_names, split_names
from rag.index.manifest import read_manifest
from rag.index.open import open_index
from rag.index.postings import BM25
from rag.index.retriever_config import read_config, walk_configs
from rag.index.statistics import Statistics
from rag.retrieval import RETRIEVERS, Retriever, missing_retrievers, open_retriever, searches_elsewhere
from rag.retrieval.client import AskOptions, UnreachableError
from rag.retrieval.databases import DATABASES
from rag.retrieval.remote import IndexChangedError, Remote
from rag.retrieval.shards import Shards
from rag.serve.judging import open_served_judge
from rag.serve.passages import PassageContext, ServedPassages
from rag.serve.workers import P, T, Workers

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_EXCLUDED_RECIPES = (
    "lucene",
    "reference",
    *DATABASES,
)  # start a JVM, read all passages into memory, or speak to a database
_MAX_FUSED = 4
_MAX_OFFERED = 4  # indexes up to which each choice of several is offered
_MAX_JOINED = 16  # choices of several indexes that stay open
_REOPEN_S = 2.0  # seconds between two looks for updated indexes
_PATIENCE = 10.0  # seconds without any reply after which another machine is taken to hang
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request, and of the number of requests.

    `workers`: questions answered at once. `waiting`: questions that wait; more are refused. `seconds`: of one request.
    `question`, `text`: characters of a question, and of an answer or a piece of evidence. `passages`: of one search.
    `claims`: sentences, pieces of evidence, queries or turns of one request.
    """

    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    waiting: int = 64
    seconds: float = 60.0
    question: int = 2_000
    text: int = 20_000
    passages: int = 100
    claims: int = 100


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the names of index and system, the question as it was searched, and the seconds it took.

    `passages` are those of the index that was searched, also after it has been replaced. `is_complete` is false for the
    answer so far of a stream.
    """

    answer: Answer
    index: str
    system: str
    question: str
    seconds: float
    passages: ServedPassages
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class _Work:
    """A question with the system that answers it, the names of system and index, and when it was asked."""

    system: System
    name: str
    index: str
    passages: ServedPassages
    question: Question
    start_time: float

    def make_reply(self, answer: Answer, *, is_complete: bool = True) -> Reply:
        seconds = time.perf_counter() - self.start_time
        return Reply(answer, self.index, self.name, self.question.text, seconds, self.passages, is_complete)


class _LockedRetriever:
    """A retriever that several threads may call: not every engine is thread-safe."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever, self._lock = retriever, threading.Lock()

    @property
    def name(self) -> str:
        return self._retriever.name

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        with self._lock:
            return self._retriever.search(queries, k)


class _RemoteRetriever:
    """A retriever that asks other machines. It is opened again when an index there has been replaced.

    It uses at most half of the workers, so that a machine that hangs does not block searches of local indexes. Further
    searches wait while replies arrive. After some seconds without a reply they are refused, until one arrives.
    """

    def __init__(self, opener: Callable[[], Retriever], workers: int) -> None:
        self._open, self._retriever = opener, opener()
        is_shareable = isinstance(self._retriever, Remote | Shards)  # others may hold an engine that is not thread-safe
        self._free = threading.Semaphore(max(1, workers // 2) if is_shareable else 1)
        self._opening, self._hangs, self._replies = threading.Lock(), False, 0

    @property
    def name(self) -> str:
        return self._retriever.name

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        replies = self._replies
        while not self._free.acquire(timeout=0.0 if self._hangs else _PATIENCE):
            if replies == self._replies:
                self._hangs = True
                raise UnreachableError(f"{self.name}: the machine that it asks does not answer")
            replies = self._replies
        try:
            retriever = self._retriever
            try:
                return retriever.search(queries, k)
            except IndexChangedError:
                with self._opening:
                    if self._retriever is retriever:
                        self._retriever = self._open()
                return self._retriever.search(queries, k)
        finally:
            self._hangs, self._replies = False, self._replies + 1
            self._free.release()


class _IndexEntry:
    """An index with its open retrievers and systems. An updated index gets a new entry."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.passages = ServedPassages(index)
        self.is_complete = not missing_retrievers(index)
        self.lock = threading.RLock()
        self.retrievers: dict[str, Retriever] = {}
        self.systems: dict[str, System] = {}


class Service:
    """Indexes, systems and a judge behind one object that threads share.

    `indexes` maps names (letters, digits, `.`, `_`, `-`) to open indexes; `a+b` is the name of two that are searched as
    one (`rag.index.joined`). `systems` are names of systems, also with
    options (`rag.answer.specs`), or a mapping from the names that callers use to these; the first index and the first
    system are the defaults. Raises `UsageError` for a name that cannot be used. Callers without an event loop call the
    methods directly; those with one use `run` and `run_stream`.
    """

    def __init__(
        self,
        indexes: Mapping[str, Index],
        systems: Sequence[str] | Mapping[str, str] = (DEFAULT_SYSTEM,),
        *,
        judge: str = DEFAULT_JUDGE,
        limits: Limits | None = None,
    ) -> None:
        if not indexes or not systems:
            raise UsageError("a service needs an index and a system")
        for name in indexes:
            check_index_name(name)
        self.limits = limits or Limits()
        self.workers = Workers(self.limits.workers, self.limits.waiting, self.limits.seconds)
        specs_by_name = systems if isinstance(systems, Mapping) else {name: name for name in systems}
        self._specs = {name: SystemSpec.parse(text) for name, text in specs_by_name.items()}
        self._entries = {name: _IndexEntry(index) for name, index in indexes.items()}
        self._joined_entries: dict[str, _IndexEntry] = {}
        self._models: dict[str, RetrieveThenRead] = {}
        self._broken_builds: dict[str, Path] = {}  # builds that could not be opened, by the name of the index
        self._missing: set[str] = set()  # names of indexes whose folder cannot be read
        self._shared_retrievers: dict[str, Retriever] = {}  # by retriever; they search none of our indexes
        self._lock = threading.RLock()
        self.judge_name = judge
        self._judge: Judge | None = None
        self._watchers: list[Callable[[Reply], None]] = []
        self._failure_callbacks: list[Callable[[str, str], None]] = []

    @property
    def indexes(self) -> Mapping[str, Index]:
        """The indexes by name."""
        return MappingProxyType({name: entry.index for name, entry in self._entries.items()})

    @property
    def choices(self) -> list[str]:
        """What a question can be asked of: each index, and several as one; of more than four, only all of them."""
        together = [name for name, index in self.indexes.items() if can_join(index)]
        sizes = range(2, len(together) + 1) if len(together) <= _MAX_OFFERED else [len(together)]
        return [*self.indexes, *(join_names(names) for size in sizes for names in combinations(together, size))]

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(self._specs)

    @property
    def judge_model(self) -> Judge:
        """The judge, opened on first use."""
        with self._lock:
            if self._judge is None:
                self._judge = open_served_judge(self.judge_name)
            return self._judge

    def warm(self) -> None:
        """Open all systems and the judge and load their networks, so that the first question takes no longer.

        Raises `UserError` for what cannot be opened.
        """
        _ = self.judge_model.name
        for index in self._entries:
            for name in self._specs:
                system = self.system(name, index)
                if isinstance(system, RetrieveThenRead) and not system.streams:  # not a language model
                    with suppress(QuestionError):
                        system.ask("What is this about?")

    def watch(self, watcher: Callable[[Reply], None], on_failure: Callable[[str, str], None] | None = None) -> None:
        """Call a function with each answer, in the thread that answers; its errors are only logged.

        A language model that failed is an answer too, with `failed`, which callers do not get.

        `on_failure` is called with the names of index and system for a question of `run_question` that ends in the time
        limit, or in an error that is not the caller's (`is_callers`).
        """
        self._watchers.append(watcher)
        if on_failure is not None:
            self._failure_callbacks.append(on_failure)

    # --- the work -----------------------------------------------------------------------------------------------------

    def system(self, name: str | None = None, index: str | None = None) -> System:
        """Return a system over an index, opened once; raises `NotFoundError` for a name that is not served."""
        return self._system(self._system_name(name), self._entry(index))

    def index(self, name: str | None = None) -> Index:
        """Return an index, or several as one (`a+b`); raises `NotFoundError` for a name that is not served."""
        return self._entry(name).index

    def index_name(self, name: str | None = None) -> str:
        """Return the name of an index (default: the first), or of several in the order in which they are served.

        Raises `NotFoundError` for a name that is not served, `UsageError` for one that is there twice.
        """
        if name is None:
            return next(iter(self._entries))
        parts = [_check_name("index", part, self._entries) for part in split_names(name)]
        if len(set(parts)) < len(parts):
            raise UsageError(f"{name[:100]!r} names an index twice")
        return join_names(entry for entry in self._entries if entry in parts)

    def search(self, query: str, index: str | None = None, *, retriever: str = "bm25", k: int = 10) -> list[Hit]:
        """Return at most k hits, best first; raises `QuestionError` for a query that cannot be searched."""
        (hits,) = self.search_many([query], index, retriever=retriever, k=k)
        return hits

    def search_many(
        self,
        queries: Sequence[str],
        index: str | None = None,
        *,
        retriever: str = "bm25",
        k: int = 10,
        statistics: Sequence[Statistics] | None = None,
    ) -> list[list[Hit]]:
        """Return the hits of each query; with `statistics`, one for each, as a part of a larger collection."""
        texts = self._queries(queries)
        if statistics is None:
            return self.retriever(index, retriever).search(texts, self._k(k))
        if len(statistics) != len(queries):
            raise UsageError(f"there are {len(statistics)} statistics for {len(queries)} queries")
        return self._bm25(index, retriever).search_within(texts, self._k(k), statistics)

    def statistics(self, queries: Sequence[str], index: str | None = None, retriever: str = "bm25") -> list[Statistics]:
        """Return the statistics that BM25 uses for the terms of each query."""
        return self._bm25(index, retriever).statistics(self._queries(queries))

    def _queries(self, queries: Sequence[str]) -> list[str]:
        self._check_many("queries", queries)
        return [self._text("a query", query, self.limits.question) for query in queries]

    def _bm25(self, index: str | None, retriever: str) -> BM25:
        self.retriever(index, retriever)  # checks the retriever
        if retriever not in names("indexes", ".toml") or (settings := read_config(retriever)).kind != "bm25":
            raise UsageError(f"retriever {retriever[:100]!r} has no statistics: it is not of kind bm25")
        return self._entry(index).index.bm25.with_config(settings)

    def ask(
        self,
        question: str,
        index: str | None = None,
        system: str | None = None,
        *,
        history: Sequence[Turn] = (),
        identifier: str = "q1",
        **options: Unpack[AskOptions],
    ) -> Reply:
        """Answer a question, which may follow up on `history`; raises `QuestionError` if it cannot be searched.

        `identifier` is the id of the answer's row. Raises `ModelFailureError` if a language model does not answer.
        """
        *_, reply = self.stream(question, index, system, history=history, identifier=identifier, **options)
        return reply

    def stream(
        self,
        question: str,
        index: str | None = None,
        system: str | None = None,
        *,
        history: Sequence[Turn] = (),
        identifier: str = "q1",
        **options: Unpack[AskOptions],
    ) -> Iterator[Reply]:
        """Yield the answer so far, with its complete sentences, while it is written; last, the answer of `ask`.

        An answer that has not grown is yielded again (`Reply.answer` is the same object), so that the work can end.
        Raises as `ask` does.
        """
        work = self._prepare(question, index, system, history, identifier, options)
        last: Answer | None = None
        try:
            for answer in map_answers(_hide_words_of_model, work.system.stream(work.question)):
                if last is not None:
                    yield work.make_reply(last, is_complete=False)
                last = answer
        except ModelUnavailableError as error:
            last = failed_answer(work.question, work.name, str(error))
        assert last is not None
        reply = work.make_reply(last)
        if last.failed:
            self._notify_watchers(reply)
            raise ModelFailureError
        yield reply
        self._notify_watchers(reply)

    def _prepare(
        self,
        question: str,
        index: str | None,
        system: str | None,
        history: Sequence[Turn],
        identifier: str,
        options: AskOptions,
    ) -> "_Work":
        start_time = time.perf_counter()
        full_question = self._standalone(question, history)
        name, index_name = self._system_name(system), self.index_name(index)
        entry = self._entry(index_name)  # once: the index may be replaced meanwhile
        request_system = self._with_options(self._system(name, entry), name, entry, options)
        return _Work(request_system, name, index_name, entry.passages, Question(identifier, full_question), start_time)

    def _notify_watchers(self, reply: Reply) -> None:
        """Call the watchers with an answer that its caller got; not if the caller left or the time limit was over.

        The failure of a model is logged, as callers of a server cannot fix it.
        """
        if reply.answer.failed:
            _log.warning("system %s, index %s: no answer: %s", reply.system, reply.index, reply.answer.reason)
        for watcher in self._watchers:
            try:
                watcher(reply)
            except Exception as error:  # noqa: BLE001  (a full disk, a closed pipe: the answer is not to blame)
                _log.warning("an answer was not recorded: %s", error)

    def judge(self, claim: str, evidence: Sequence[Passage], question: str = "") -> Judgement:
        """Judge whether the passages together support a claim (AutoAIS); spans are of `Passage.evidence`."""
        self._check_many("pieces of evidence", evidence)
        texts = tuple(self._text("a piece of evidence", passage.evidence, self.limits.text) for passage in evidence)
        question_text = self._text("the question", question, self.limits.question, empty=True)
        (judgement,) = self.judge_model.judge(
            [Attribution(self._text("the claim", claim, self.limits.text), texts, question_text)]
        )
        return judgement

    def attribute(
        self, question: str, answer: str, index: str | None = None, *, retriever: str = "bm25", k: int = 10
    ) -> Answer:
        """Add citations to an answer of any system: each sentence cites the passage that supports it, or none."""
        pair = (
            self._text("the question", question, self.limits.question, empty=True),
            self._text("the answer", answer, self.limits.text),
        )
        plain_answer = answer_of_pair(pair, 1)
        self._check_many("sentences", plain_answer.sentences)
        return PostHoc(self.retriever(index, retriever), self.judge_model, self._k(k)).attribute(plain_answer)

    def passage(self, index: str, identifier: str) -> PassageContext:
        """Return a passage with its neighbours and its source; raises `NotFoundError`."""
        context = self._entry(index).passages.find(_SURROGATE.sub("\ufffd", identifier))
        if context is None:
            raise NotFoundError(f"index {index!r} has no passage {identifier[:100]!r}")
        return context

    def retriever(self, index: str | None = None, retriever: str = "bm25") -> Retriever:
        """Return a retriever over an index, opened once, that threads may share.

        Retrievers that ship with rag are served, and several of them fused (`a+b`), but no files. Raises `UsageError`
        for another retriever, and for an index that lacks data that the retriever needs.
        """
        return self._open_retriever(self._entry(index), retriever)

    def passages(self, index: str) -> ServedPassages:
        """Return the passages of an index as it is now; raises `NotFoundError` for a name that is not served."""
        return self._entry(index).passages

    def replace(self, name: str, index: Index) -> None:
        """Replace an index, or add it. Questions that are being answered go on with the old one."""
        check_index_name(name)
        with self._lock:
            self._entries = {**self._entries, name: _IndexEntry(index)}
            self._joined_entries = {}

    def reopen(self) -> list[str]:
        """Open the indexes again whose folders have been updated or got their vectors, and return their names.

        One that cannot be opened, or is gone, is logged once, and the old one stays.
        """
        names = []
        for name, index in self.indexes.items():
            if index.build is None:
                continue
            build = _current_build(index.build.parent)
            if build is None and name not in self._missing:
                self._missing.add(name)
                _log.warning("%s: %s cannot be read; what was opened of it is still served", name, index.build.parent)
            if build is None:
                continue
            self._missing.discard(name)
            is_completed = not self._entries[name].is_complete and not missing_retrievers(index)
            if build in (index.build, self._broken_builds.get(name)) and not is_completed:
                continue
            try:
                self.replace(name, open_index(build.parent))
            except RagError as error:
                self._broken_builds[name] = build
                _log.warning("%s: the changed index is not served: %s", name, error)
            else:
                names.append(name)
                passages = self.indexes[name].manifest["passages"]
                _log.warning("%s: the changed index is served, with %s", name, pluralize(passages, "passage"))
        return names

    # --- for an event loop --------------------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Open indexes again that are updated meanwhile (`reopen`), until it is cancelled."""
        while True:
            await asyncio.sleep(_REOPEN_S)
            await asyncio.to_thread(self.reopen)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a worker thread: `await service.run(service.ask, "When ...?")`.

        Raises `BusyError` if too many requests wait, `TimeLimitError` after the time limit.
        """
        return await self.workers.run(work, *args, **kwargs)

    def run_stream(self, work: Callable[P, Iterator[T]], *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        """Iterate in a worker thread: `async for piece in service.run_stream(service.stream, "When ...?")`.

        A consumer that stops ends the work. Raises as `run` does; `BusyError` at once.
        """
        return self.workers.stream(work, *args, **kwargs)

    def run_question(
        self,
        index: str | None,
        system: str | None,
        work: Callable[P, Iterator[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> AsyncGenerator[T, None]:
        """Iterate as `run_stream` does over the work of a question to a system over an index; watchers see it fail."""
        return self._report_failures(self.run_stream(work, *args, **kwargs), index, system)

    async def _report_failures(
        self, pieces: AsyncGenerator[T, None], index: str | None, system: str | None
    ) -> AsyncGenerator[T, None]:
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        except Exception as error:
            if not is_callers(error) and not isinstance(error, ModelFailureError):  # which the watchers have
                for on_failure in self._failure_callbacks:
                    on_failure(self.index_name(index), self._system_name(system))
            raise

    def stop(self) -> None:
        """Refuse waiting and further requests; running ones go on."""
        self.workers.stop()

    def close(self) -> None:
        """End the worker threads once they have nothing to do."""
        self.workers.close()

    # --- systems and retrievers
    # -----------------------------------------------------------------------------------------------

    def _system(self, name: str, entry: _IndexEntry) -> System:
        with entry.lock:
            if name not in entry.systems:
                entry.systems[name] = self._open(name, entry)
            return entry.systems[name]

    def _open(self, name: str, entry: _IndexEntry) -> System:
        """Open a system over an index; the model of one that retrieves and reads is loaded once for all indexes."""
        spec = self._specs[name]
        with self._lock:
            retriever = self._retriever(entry, spec.retriever or spec.kind.search_defaults(spec.options)[0])
            if name in self._models:
                return replace(self._models[name], retriever=retriever)
            system = open_system(spec.name, entry.index, spec.options, k=spec.k, retriever=retriever)
            if isinstance(system, RetrieveThenRead):
                self._models[name] = system
            return system

    def _with_options(self, system: System, name: str, entry: _IndexEntry, options: AskOptions) -> System:
        spec = self._specs[name]
        retriever_name, k, min_confidence = options.get("retriever"), options.get("k"), options.get("min_confidence")
        if not isinstance(system, RetrieveThenRead):
            if (retriever_name, k, min_confidence) != (None, None, None):
                raise UsageError(f"system {name!r} takes no options")
            return system
        if retriever_name is None and k is None and min_confidence is None:
            return replace(system)  # with a lock of its own: our retrievers have the lock that they need
        retriever = system.retriever if retriever_name is None else self._open_retriever(entry, retriever_name)
        system_copy = replace(system, retriever=retriever, k=system.k if k is None else self._k(k))
        if k is None and min_confidence is None:
            return system_copy
        from rag.answer.generators.passage_reader import PassageReader

        reader = system.generator if isinstance(system.generator, PassageReader) else None
        is_deeper = reader is not None and system_copy.k > system.k
        if min_confidence is None and not is_deeper:
            return system_copy
        try:
            if reader is not None and min_confidence is not None and not is_deeper:
                return replace(system_copy, generator=reader.with_min_confidence(min_confidence))
            # Opened again: the reader reads as many passages as it was opened for.
            minimum = spec.options.min_confidence if min_confidence is None else min_confidence
            spec_options = replace(spec.options, min_confidence=minimum)
            return open_system(spec.name, entry.index, spec_options, retriever=retriever, k=system_copy.k)
        except RagError as error:
            raise UsageError(str(error)) from None

    def _open_retriever(self, entry: _IndexEntry, retriever: str) -> Retriever:
        _check_retriever(retriever)
        try:
            return self._retriever(entry, retriever)
        except IndexingError:
            raise UsageError(
                f"the index cannot be searched with retriever {retriever!r}: it lacks data that the retriever needs"
            ) from None

    def _retriever(self, entry: _IndexEntry, retriever: str) -> Retriever:
        """A retriever of an index, opened once; those that search only elsewhere are the same for all indexes."""
        (_, first), *_ = walk_configs(retriever, kinds=RETRIEVERS)
        is_shared = first.kind in ("remote", "shards")
        retrievers = self._shared_retrievers if is_shared else entry.retrievers

        def load() -> Retriever:
            base_entry = next(iter(self._entries.values())) if is_shared else entry
            return open_retriever(retriever, base_entry.index)

        with self._lock if is_shared else entry.lock:
            if retriever not in retrievers:
                is_remote = searches_elsewhere(retriever)
                retrievers[retriever] = (
                    _RemoteRetriever(load, self.limits.workers) if is_remote else _LockedRetriever(load())
                )
            return retrievers[retriever]

    # --- names and limits ---------------------------------------------------------------------------------------------

    def _entry(self, index: str | None) -> _IndexEntry:
        """The entry of an index, or of several as one, which are opened on first use."""
        name = self.index_name(index)
        if name in self._entries:
            return self._entries[name]
        with self._lock:
            entry = self._joined_entries.pop(name, None) or _IndexEntry(self._join(name))
            if len(self._joined_entries) == _MAX_JOINED:  # the one that was asked longest ago goes
                del self._joined_entries[next(iter(self._joined_entries))]
            self._joined_entries[name] = entry
            return entry

    def _join(self, name: str) -> Index:
        try:
            return join({part: self._entries[part].index for part in split_names(name)})
        except (IndexingError, UsageError) as error:  # its words may have paths
            _log.warning("%s: %s", name, error)
            raise UsageError(f"{name} cannot be searched as one: ask each of these indexes") from None

    def _system_name(self, name: str | None) -> str:
        return _check_name("system", name, self._specs)

    def _standalone(self, question: str, history: Sequence[Turn]) -> str:
        self._check_many("turns", history)
        turns = [
            Turn(
                self._text("a turn's question", turn.question, self.limits.question),
                self._text("a turn's answer", turn.answer, self.limits.text, empty=True),
            )
            for turn in history
        ]
        return make_standalone(self._text("the question", question, self.limits.question), turns)

    def _text(self, name: str, text: str, max_length: int, *, empty: bool = False) -> str:
        """Return a text without lone surrogates, which no answer could be sent with."""
        check_type(name, text, "a string", str)
        if len(text) > max_length:
            raise UsageError(f"{name} has {len(text):,} characters; the maximum is {max_length:,}")
        if not text.strip() and not empty:
            raise UsageError(f"{name} is empty")
        return _SURROGATE.sub("\ufffd", text)

    def _k(self, k: int) -> int:
        if not 1 <= k <= self.limits.passages:
            raise UsageError(f"k should be from 1 to {self.limits.passages}, found {k}")
        return k

    def _check_many(self, name: str, items: Collection[object]) -> None:
        if len(items) > self.limits.claims:
            raise UsageError(f"there are {len(items)} {name}; the maximum is {self.limits.claims}")


def _hide_words_of_model(answer: Answer) -> Answer:
    """The answer without what a model that failed said while it searched; the log has it."""
    searches = answer.trace.get("searches")
    if not isinstance(searches, Mapping) or not (stopped := str(searches.get("stopped"))).startswith(MODEL_FAILED):
        return answer
    _log.warning("system %s: further searches ended: %s", answer.system, stopped)
    return replace(answer, trace={**answer.trace, "searches": {**searches, "stopped": MODEL_FAILED}})


def is_callers(error: Exception) -> bool:
    """Return whether the caller can fix an error, or should try again; others are for the operator."""
    if isinstance(error, UnreachableError):
        return False
    return isinstance(error, UsageError | QuestionError | NotFoundError | BusyError)


def check_index_name(name: str) -> None:
    """Raise `UsageError` unless it can be the name of a served index, which is a part of URLs."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"the name of an index should be letters, digits, '.', '_' and '-', found {name!r:.80}")


def _check_name(kind: str, name: str | None, choices: Mapping[str, object]) -> str:
    """Return the name if it is served; the first one for None."""
    if name is None:
        return next(iter(choices))
    if name not in choices:
        raise NotFoundError(f"no {kind} called {name[:100]!r}; there are: {', '.join(choices)}")
    return name


def _current_build(folder: Path) -> Path | None:
    """The build that the manifest of an index names; None if it is gone."""
    with suppress(RagError, OSError):
        return folder / str(read_manifest(folder)["build"])
    return None


def _check_retriever(retriever: str) -> None:
    retrievers = [name for name in names("indexes", ".toml") if name not in _EXCLUDED_RECIPES]
    parts = retriever.split("+")
    if len(parts) > _MAX_FUSED or not set(parts) <= set(retrievers):
        raise UsageError(
            f"no retriever called {retriever[:100]!r}; there are: {', '.join(retrievers)}, and a+b fuses two"
        )
    if len(set(parts)) < len(parts):
        raise UsageError(f"retriever {retriever!r} names a retriever twice; a+b fuses two different ones")
