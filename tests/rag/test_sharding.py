"""Shards that are built at once: the hits of one index, and nothing is lost or left running when a build ends early."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import rag as package
from rag.corpus.sources import Shard
from rag.errors import IndexingError, UsageError
from rag.sharding import Job, run
from tests.conftest import Command, one_line_error, write_corpus

ROWS = [(f"{n:03}#0", f"Town {n % 40}", f"The mill of Aller, number {n:03}, sells salt.") for n in range(120)]
QUERIES = ["number 077", "the mill of Aller", "Town 12 salt"]
STATIC = ["static"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("towns") / "towns.jsonl", ROWS)


@pytest.fixture(scope="module")
def made(source: Path) -> Path:
    """The recipe of three shards."""
    return package.build_shards(source, source.parent / "shards", 3, recipes=STATIC)


def folders(recipe: Path) -> list[Path]:
    return sorted(recipe.parent.glob("*.index"))


def ids(recipe: str | Path, index: Path | None) -> list[list[str]]:
    found = package.open_retriever(str(recipe), index).search(QUERIES, 20)
    return [[hit.passage.id for hit in hits] for hits in found]


def test_the_shards_find_what_one_index_finds(made: Path, source: Path, tmp_path: Path) -> None:
    package.build_index(source, tmp_path / "whole.index", recipes=STATIC)
    assert [folder.name for folder in folders(made)] == ["001-of-003.index", "002-of-003.index", "003-of-003.index"]
    assert sum(package.open_index(folder).manifest["passages"] for folder in folders(made)) == len(ROWS)
    assert ids(made, folders(made)[0]) == ids("static", tmp_path / "whole.index")
    words = package.build_shards(source, tmp_path / "words", 2)
    assert ids(words, None) == ids("bm25", tmp_path / "whole.index")


def test_a_second_run_builds_what_is_missing(made: Path, source: Path) -> None:
    before = ids(made, None)
    first, second, third = folders(made)
    shutil.rmtree(first)
    shutil.rmtree(next(second.glob("*/parts")))
    stamp, lines = (third / "manifest.json").stat().st_mtime_ns, list[str]()
    assert package.build_shards(source, made.parent, 3, recipes=STATIC, log=lines.append) == made
    assert (third / "manifest.json").stat().st_mtime_ns == stamp
    assert any(line.startswith(f"{second.name}: static is in") for line in lines)
    assert f"{third.name}: {third} was there" in lines
    assert ids(made, None) == before


def test_shards_of_other_sources_or_numbers_are_refused(made: Path, source: Path, tmp_path: Path) -> None:
    other = write_corpus(tmp_path / "other.jsonl", ROWS[:60])
    with pytest.raises(IndexingError, match="has other sources or options; --replace"):
        package.build_shards(other, made.parent, 3, recipes=STATIC)
    with pytest.raises(IndexingError, match=r"has a shard of another collection, 001-of-003\.index"):
        package.build_shards(source, made.parent, 4)
    with pytest.raises(IndexingError, match="is an index: choose another folder"):
        package.build_shards(source, folders(made)[0], 2)
    with pytest.raises(IndexingError, match=r"source .*nothing\.jsonl does not exist"):
        package.build_shards(tmp_path / "nothing.jsonl", tmp_path / "shards", 2)
    with pytest.raises(UsageError, match="from 2 to 256, found 1"):
        package.build_shards(source, tmp_path / "shards", 1)
    with pytest.raises(UsageError, match="URLs cannot be built in shards"):
        package.build_shards("https://example.org/", tmp_path / "shards", 2)
    assert not (tmp_path / "shards").exists()


def test_the_command_builds_and_says_how_to_search(source: Path, tmp_path: Path, rag: Command) -> None:
    build = ("index", "build", source, "--to", tmp_path / "shards", "--shards", 2)
    done = rag(*build)
    assert done.returncode == 0, done.stderr
    recipe = tmp_path / "shards" / "shards.toml"
    assert done.stderr.splitlines()[-1] == f"2 shards in {recipe.parent}; search them as one with --recipe {recipe}"
    found = rag("search", "number 077", "--recipe", recipe, "-k", 1)
    assert "077#0" in found.stdout
    one_line_error(rag(*build, "--shard", "1/2"), "--shards or --shard, not both")
    one_line_error(rag("index", "build", "--to", tmp_path / "x", "--recipe", "static", "--shards", 2), "for SOURCES")


# --- builds that end early --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Doomed(Job):
    """A shard whose process is killed."""

    def build(self) -> list[str]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []


@dataclass(frozen=True, slots=True)
class Long(Job):
    """A shard that takes long; its folder becomes a file with the number of its process."""

    def build(self) -> list[str]:
        self.folder.write_text(str(os.getpid()))
        time.sleep(60)
        return []


@dataclass(frozen=True, slots=True)
class Bad(Job):
    """A shard that cannot be built, which shows when the next one has begun."""

    def build(self) -> list[str]:
        until(lambda: self.folder.with_name("long").exists())
        raise IndexingError("the corpus holds no passages")


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def jobs(folder: Path, *kinds: type[Job]) -> Sequence[Job]:
    return [kind([], Shard(1, 2), folder / kind.__name__.lower()) for kind in kinds]


def test_a_killed_process_is_named(tmp_path: Path) -> None:
    with pytest.raises(IndexingError, match=r"doomed: its process ended with -9, .*the same command goes on"):
        list(run(jobs(tmp_path, Doomed), 1))


def test_the_first_error_stops_the_others(tmp_path: Path) -> None:
    with pytest.raises(IndexingError, match="bad: the corpus holds no passages"):
        list(run(jobs(tmp_path, Bad, Long), 2))
    assert gone(int((tmp_path / "long").read_text()))


def test_no_process_outlives_the_one_that_started_it(tmp_path: Path) -> None:
    code = "import sys; from tests.rag.test_sharding import *; list(run(jobs(Path(sys.argv[1]), Long), 1))"
    parent = subprocess.Popen([sys.executable, "-c", code, tmp_path], cwd=Path(__file__).parents[2])
    written = tmp_path / "long"
    until(lambda: written.exists() and bool(written.read_text()))
    parent.kill()
    parent.wait()
    until(lambda: gone(int(written.read_text())))
