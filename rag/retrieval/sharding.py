"""Builds a collection as several indexes, some at the same time, and the file that configures their search as one.

Each is built by `rag index build --shard`, in a process of its own. If the process that started them is killed, each
ends at its next message, and the same command resumes.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from autoais.base.io.jsonl import write_atomic
from rag.base.errors import IndexingError, RagError, UsageError
from rag.documents.corpus import Corpus
from rag.documents.sources import Shard
from rag.index.build import has_sources
from rag.index.manifest import MANIFEST
from rag.index.open import open_index
from rag.index.parts import read_data_configs
from rag.index.retriever_config import read_config
from rag.retrieval import walk_data_configs

CONFIG_FILE = "shards.toml"

_NAME = "shards-{}.v1"
_TEXT = """\
# Searches {of} indexes as one. If a shard moves, name its new folder, or the address of a server that has it.
name = "{name}"
kind = "shards"
shards = {places}
recipe = {retriever}
"""
_PATIENCE = 30.0  # seconds that a process has to clean up


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """The options of `rag index build` that all shards have; `memory` is in bytes, `engine` as on the command line."""

    retrievers: Sequence[str] = ()
    memory: int | None = None
    format: str | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    skip_bad: bool = False
    strict: bool = False
    engine: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A shard to build: its sources, part, folder and options, and whether an index there is replaced."""

    sources: Sequence[Path]
    shard: Shard
    folder: Path
    options: ShardOptions
    replace: bool = False

    def commands(self) -> Iterator[list[str]]:
        """The commands that build the shard; one that is there is brought up to date and gets what it lacks.

        Raises `IndexingError` if the index in the folder is no shard of these sources by these options.
        """
        memory = [] if self.options.memory is None else [f"--memory={self.options.memory}"]
        engine = self.options.engine
        to = f"--to={self.folder.absolute()}"
        if self.replace or not (self.folder / MANIFEST).exists():
            yield [
                "build",
                to,
                f"--shard={self.shard}",
                *memory,
                *engine,
                *(f"--retriever={name}" for name in self.options.retrievers),
                *(f"--include={glob}" for glob in self.options.include),
                *(f"--exclude={glob}" for glob in self.options.exclude),
                *([] if self.options.format is None else [f"--format={self.options.format}"]),
                *(f"--{name}" for name, is_set in (("skip-bad", self.options.skip_bad), ("strict", self.options.strict),
                                               ("replace", self.replace)) if is_set),
                "--",
                *(str(source.absolute()) for source in self.sources),
            ]  # fmt: skip
            return
        self._check()
        yield ["update", str(self.folder.absolute())]
        records = [config.record() for config in read_data_configs(open_index(self.folder))]
        parts = {name: part for retriever in self.options.retrievers for name, part in walk_data_configs(retriever)}
        for name, part in parts.items():
            if part.record() not in records:
                yield ["build", to, *memory, *engine, f"--retriever={name}"]

    def _check(self) -> None:
        options = self.options
        corpus = Corpus(
            self.sources,
            options.format,
            options.skip_bad,
            include=options.include,
            exclude=options.exclude,
            strict=options.strict,
            shard=self.shard,
        )
        if not has_sources(self.folder, corpus):
            raise IndexingError(
                f"{self.folder} was built from other sources or with other options; replace=True (--replace) builds "
                "all shards anew"
            )


def jobs(sources: Sequence[Path], to: Path, shards: int, options: ShardOptions, *, replace: bool) -> list[Job]:
    """The shards of a collection: `001-of-008.index` and so on.

    Raises `IndexingError` for a source that does not exist, `FormatError` for one of unknown format, and
    `IndexingError` for a folder that is an index, or that has another number of shards or another retriever.
    """
    _ = Corpus(sources, options.format, include=options.include, exclude=options.exclude).described  # may raise
    if (to / MANIFEST).exists():
        raise IndexingError(f"{to} is an index: choose another folder for the shards")
    jobs_of_shards = [
        Job(sources, Shard.parse(f"{n}/{shards}"), to / f"{n:03}-of-{shards:03}.index", options, replace)
        for n in range(1, shards + 1)
    ]
    folders = {job.folder for job in jobs_of_shards}
    for other in sorted(to.glob("[0-9]*-of-[0-9]*.index")):
        if other not in folders:
            raise IndexingError(f"{to} has a shard of another number, {other.name}: choose another folder")
    path = to / CONFIG_FILE
    if path.exists() and read_config(str(path)).name != _NAME.format(shards):
        raise IndexingError(f"{path} configures another retriever: choose another folder")
    return jobs_of_shards


def format_config(jobs: Sequence[Job], retriever: str) -> str:
    """The text of the file that configures the search of the shards with a retriever.

    Raises `UsageError` for a retriever that has shards of its own, and for a folder that TOML cannot name.
    """
    if read_config(retriever).kind in ("shards", "remote"):
        raise UsageError(
            f"retriever {retriever}: shards cannot be searched with a retriever of kind {read_config(retriever).kind}"
        )
    name = str(Path(retriever).absolute()) if retriever.endswith(".toml") else retriever
    folders = [str(job.folder.absolute()) for job in jobs]
    text = _TEXT.format(
        of=len(jobs),
        name=_NAME.format(len(jobs)),
        places=json.dumps(folders, indent=4, ensure_ascii=False),
        retriever=json.dumps(name, ensure_ascii=False),
    )
    try:
        text.encode()
        tomllib.loads(text)
    except ValueError as error:
        raise UsageError(f"{jobs[0].folder.parent} cannot be named in a retriever: choose another folder") from error
    return text


def write_config(to: Path, text: str) -> Path:
    """Write the configuration of the shards and return its path; one that is there with the same retriever is kept."""
    path = to / CONFIG_FILE
    try:
        is_same = read_config(str(path)).settings.get("recipe") == tomllib.loads(text)["recipe"]
    except RagError:
        is_same = False
    if not is_same:
        write_atomic(path, [text.removesuffix("\n")])
    return path


def run(jobs: Sequence[Job], processes: int, log: Callable[[str], None]) -> Generator[Job, None, None]:
    """Build the shards, `processes` at a time, and yield each as it finishes; `log` gets the lines of all.

    The first error stops the others and is raised, as Ctrl-C does; what was built stays whole.
    """
    builds = _Builds(log)
    with ThreadPoolExecutor(processes) as pool:
        waiting = {pool.submit(builds.build, job): job for job in jobs}
        try:
            for future in as_completed(waiting):
                future.result()
                yield waiting[future]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            builds.stop()
            raise


class _Builds:
    """The processes that run now."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log, self._lock, self._stopped = log, threading.Lock(), False
        self._running: set[subprocess.Popen[str]] = set()

    def build(self, job: Job) -> None:
        """Build a shard; raises `IndexingError` with the error of its process."""
        for command in job.commands():
            error = self._run(job.folder.name, command)
            if error:
                raise IndexingError(f"{job.folder.name}: {error}")

    def _run(self, name: str, command: Sequence[str]) -> str:
        """Run a command and return its error, or an empty text."""
        with self._lock:
            if self._stopped:
                return "stopped"
            process = subprocess.Popen(
                # -P: the current folder may have modules of these names.
                [sys.executable, "-P", "-m", "rag", "index", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
            )
            self._running.add(process)
        error = ""
        assert process.stderr is not None
        with process, process.stderr as lines:
            for line in lines:
                if line.startswith("error: "):
                    error = line.removeprefix("error: ").strip()
                else:
                    with self._lock:
                        if not self._stopped:  # Python may be interrupted while it starts, and writes a traceback
                            self._log(f"{name}: {line.rstrip()}")
        with self._lock:
            self._running.discard(process)
        if process.returncode < 0:
            return f"its process was killed by signal {-process.returncode}; run the command again to resume"
        return error or (f"its process ended with {process.returncode}" if process.returncode else "")

    def stop(self) -> None:
        """Interrupt all processes, and kill those that do not end."""
        with self._lock:
            self._stopped, running = True, list(self._running)
        for process in running:
            process.send_signal(signal.SIGINT)
        for process in running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
