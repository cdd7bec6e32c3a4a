"""Builds a collection as several indexes, some of them at the same time, with the recipe that searches them as one."""

import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from autoais.io.jsonl import write_atomic
from rag.corpus.reader import Corpus
from rag.corpus.sources import Shard
from rag.errors import IndexingError, UserError
from rag.index.files import Root
from rag.index.manifest import MANIFEST, read_manifest

RECIPE = "shards.toml"

_TEXT = """\
# Searches {of} indexes as one. If a shard moves, name its new folder, or the address of a server that has it.
name = "shards-{of}.v1"
kind = "shards"
shards = {places}
recipe = {recipe}
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A shard to build: its folder, the options of `rag.build_index`, and whether an index there is replaced."""

    sources: Sequence[Path]
    shard: Shard
    folder: Path
    options: dict[str, Any] = field(default_factory=dict)
    replace: bool = False

    def build(self) -> list[str]:
        """Build the shard, or what it lacks, and return what there is to say."""
        from rag.api import add_recipe, build_index, open_index
        from rag.index.parts import recipes_of
        from rag.retrievers import kind_of, parts_of

        lines: list[str] = []
        if self.replace or not (self.folder / MANIFEST).exists():
            build_index(
                self.sources, self.folder, shard=str(self.shard), replace=self.replace, log=lines.append, **self.options
            )
            return lines
        self.check()
        there = [recipe.record() for recipe in recipes_of(open_index(self.folder))]
        for name in self.options["recipes"] or ():
            parts = [part for _, part in parts_of(name) if kind_of(part).add is not None]
            if any(part.record() not in there for part in parts):
                add_recipe(self.folder, name, memory=self.options["memory"], log=lines.append)
        return [*lines, f"{self.folder} was there"]

    def check(self) -> None:
        """Raise `IndexingError` if the index in the folder is not this shard of these sources, by these options."""
        chosen = {name: self.options[name] for name in ("format", "include", "exclude", "skip_bad", "strict")}
        corpus = Corpus(self.sources, shard=self.shard, **chosen)
        roots = [Root(source, corpus.skip_bad, corpus.strict).record(self.folder) for source in corpus.described]
        if read_manifest(self.folder).get("roots") != roots:
            raise IndexingError(
                "the index that is there has other sources or options; --replace builds all shards anew"
            )


def jobs(sources: Sequence[Path], to: Path, shards: int, options: dict[str, Any], *, replace: bool) -> list[Job]:
    """The shards of a collection, `001-of-008.index` and so on.

    Raises `IndexingError` for a source that does not exist, and for a folder that is an index or has other shards.
    """
    Corpus(sources, options["format"], include=options["include"], exclude=options["exclude"])  # raises for a bad one
    if (to / MANIFEST).exists():
        raise IndexingError(f"{to} is an index: choose another folder for the shards")
    made = [
        Job(sources, Shard.parse(f"{n}/{shards}"), to / f"{n:03}-of-{shards:03}.index", options, replace)
        for n in range(1, shards + 1)
    ]
    known = {job.folder for job in made}
    for other in sorted(to.glob("[0-9]*-of-[0-9]*.index")):
        if other not in known:
            raise IndexingError(f"{to} has a shard of another collection, {other.name}: choose another folder")
    return made


def write_recipe(to: Path, made: Sequence[Job], recipe: str) -> Path:
    """Write the recipe that searches the shards with another one, and return its path."""
    places = json.dumps([str(job.folder.absolute()) for job in made], indent=4, ensure_ascii=False)
    path = to / RECIPE
    write_atomic(path, [_TEXT.format(of=len(made), places=places, recipe=json.dumps(recipe, ensure_ascii=False))])
    return path


def run(made: Sequence[Job], processes: int) -> Iterator[tuple[Job, list[str]]]:
    """Build the shards in so many processes at a time, and yield each that is done with what there is to say.

    The first error stops the others and is raised; what they have built stays whole, as after any stopped build.
    """
    context = get_context("spawn")
    left = list(reversed(made))
    running: dict[Any, tuple[Job, BaseProcess]] = {}  # by the connection to each
    try:
        while left or running:
            while left and len(running) < processes:
                ours, theirs = context.Pipe(duplex=False)
                job = left.pop()
                started = context.Process(target=_work, args=(job, theirs))
                started.start()
                theirs.close()
                running[ours] = job, started
            for answer in wait(list(running)):
                job, ended = running.pop(answer)
                yield job, _result(job, ended, answer)
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def _result(job: Job, process: BaseProcess, answer: Any) -> list[str]:  # noqa: ANN401  (a connection)
    """What a process said about its shard; raises the error that it had."""
    lines: list[str] = []
    try:
        lines, error = answer.recv()
        process.join()
    except EOFError:
        process.join()
        error = f"its process ended with {process.exitcode}, perhaps for want of memory; the same command goes on"
    if error:
        raise IndexingError(f"{job.folder}: {error}")
    return lines


def _work(job: Job, answer: Any) -> None:  # noqa: ANN401  (a connection)
    """Build a shard in this process and send what there is to say: lines, and an error or None."""
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    try:
        answer.send((job.build(), None))
    except UserError as error:
        answer.send(([], str(error)))
    except KeyboardInterrupt:
        answer.send(([], "stopped; the same command goes on"))


def _end_with(parent: int) -> None:
    """End this process when the one that started it has ended."""
    wait([parent])
    os._exit(1)
