"""Shards that are built at once: the hits of one index, and nothing is lost or left running when a build ends early."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rag as package
from rag.base.errors import IndexingError, UsageError
from rag.documents.sources import Shard
from rag.retrieval.sharding import Job, ShardOptions, run
from tests.conftest import Command, one_line_error, write_corpus

ROWS = [(f"{n:03}#0", f"Town {n % 40}", f"The mill of Aller, number {n:03}, sells salt.") for n in range(120)]
QUERIES = ["number 077", "the mill of Aller", "Town 12 salt"]
STATIC = ["static"]
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("towns") / "towns.jsonl", ROWS)


@pytest.fixture(scope="module")
def made(source: Path) -> Path:
    """The retriever of three shards."""
    return package.build_shards(source, source.parent / "shards", 3, retrievers=STATIC)


def folders(retriever: Path) -> list[Path]:
    return sorted(retriever.parent.glob("*.index"))


def stamp(folder: Path) -> int:
    return (folder / "manifest.json").stat().st_mtime_ns


def ids(retriever: str | Path, index: Path | None) -> list[list[str]]:
    found = package.open_retriever(str(retriever), index).search(QUERIES, 20)
    return [[hit.passage.id for hit in hits] for hits in found]


def test_the_shards_find_what_one_index_finds(made: Path, source: Path, tmp_path: Path) -> None:
    package.build_index(source, tmp_path / "whole.index", retrievers=STATIC)
    assert [folder.name for folder in folders(made)] == ["001-of-003.index", "002-of-003.index", "003-of-003.index"]
    assert sum(package.open_index(folder).manifest["passages"] for folder in folders(made)) == len(ROWS)
    assert ids(made, folders(made)[0]) == ids("static", tmp_path / "whole.index")
    words = package.build_shards(source, tmp_path / "words", 2, processes=1)
    assert ids(words, None) == ids("bm25", tmp_path / "whole.index")


@pytest.mark.slow
def test_a_second_run_builds_what_is_missing_and_updates_the_rest(source: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(source, tmp_path / "towns.jsonl"))
    made = package.build_shards(copy, tmp_path / "shards", 3, retrievers=STATIC)
    before, (first, second, third) = ids(made, None), folders(made)
    shutil.rmtree(first)
    shutil.rmtree(next(second.glob(".rag-build-*/parts")))
    unchanged = stamp(third)
    assert package.build_shards(copy, made.parent, 3, retrievers=STATIC) == made
    assert stamp(third) == unchanged
    assert ids(made, None) == before

    write_corpus(copy, [(key, title, text.replace("salt", "soap")) for key, title, text in ROWS])
    package.build_shards(copy, made.parent, 3, retrievers=STATIC)
    (hits,) = package.open_retriever(str(made)).search(["who sells soap"], 120)
    assert {hit.passage.text.split()[-1] for hit in hits} == {"soap."}

    built = [stamp(folder) for folder in folders(made)]
    package.build_shards(copy, made.parent, 3, replace=True)
    assert all(stamp(folder) > before for folder, before in zip(folders(made), built, strict=True))
    assert 'recipe = "bm25"' in made.read_text("utf-8")


def test_edits_of_the_retriever_are_kept(made: Path, source: Path) -> None:
    text = made.read_text("utf-8")
    made.write_text(text + 'missing = "skip"\n', "utf-8")
    package.build_shards(source, made.parent, 3, retrievers=STATIC)
    assert 'missing = "skip"' in made.read_text("utf-8")
    made.write_text(text, "utf-8")


def test_shards_that_move_with_their_retriever_are_found_and_updated(source: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(source, tmp_path / "towns.jsonl"))
    made = package.build_shards(copy, tmp_path / "shards", 2)
    before = ids(made, None)
    (tmp_path / "there").mkdir()
    moved = made.parent.rename(tmp_path / "there" / "moved") / made.name
    assert ids(moved, None) == before
    write_corpus(copy, ROWS[:60])
    assert package.build_shards(copy, moved.parent, 2) == moved
    assert sum(package.open_index(folder).manifest["passages"] for folder in folders(moved)) == 60
    with pytest.raises(IndexingError, match=r"was built from other sources"):
        package.build_shards(source, moved.parent, 2)
    alone = moved.parent.rename(tmp_path / "alone") / made.name
    shutil.rmtree(folders(alone)[0])
    with pytest.raises(IndexingError, match=r"no index at .*001-of-002\.index"):
        ids(alone, None)


def test_a_document_by_itself_is_in_one_shard(tmp_path: Path) -> None:
    documents = [tmp_path / f"{name}.md" for name in "abcdefgh"]
    for path in documents:
        path.write_text(f"# {path.stem}\n\nThe mill of {path.stem} sells salt.\n")
    shards = [package.build_index(documents, tmp_path / f"{n}.index", shard=f"{n}/2") for n in (1, 2)]
    found = [passage.id for index in shards for passage in index.store.scan()]
    assert len(set(found)) == len(found) == 8


def test_what_cannot_be_built_is_refused_before_anything_is_written(made: Path, source: Path, tmp_path: Path) -> None:
    shards, out = made.parent, tmp_path / "shards"
    with pytest.raises(IndexingError, match=r"has a shard of another number, 001-of-003\.index"):
        package.build_shards(source, shards, 4)
    with pytest.raises(IndexingError, match="is an index: choose another folder"):
        package.build_shards(source, folders(made)[0], 2)
    with pytest.raises(IndexingError, match=r"source .*nothing\.jsonl does not exist"):
        package.build_shards(tmp_path / "nothing.jsonl", out, 2)
    with pytest.raises(UsageError, match="shards should be from 2 to 256, found 1"):
        package.build_shards(source, out, 1)
    with pytest.raises(UsageError, match="processes should be from 1 to 256, found -1"):
        package.build_shards(source, out, 2, processes=-1)
    with pytest.raises(UsageError, match="URLs cannot be built in shards"):
        package.build_shards("https://example.org/", out, 2)
    with pytest.raises(UsageError, match="shards cannot be searched with a retriever of kind shards"):
        package.build_shards(source, out, 2, retrievers=[str(made)])
    with pytest.raises(UsageError, match="cannot be named in a retriever"):
        package.build_shards(source, tmp_path / "a\x7fb", 2)
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    (out / "shards.toml").write_text('name = "mine.v1"\nkind = "bm25"\n')
    with pytest.raises(IndexingError, match="configures another retriever"):
        package.build_shards(source, out, 2)


def test_other_sources_and_an_empty_shard_are_named(made: Path, source: Path, tmp_path: Path) -> None:
    other = write_corpus(tmp_path / "other.jsonl", ROWS[:60])
    with pytest.raises(IndexingError, match="was built from other sources or with other options; replace=True"):
        package.build_shards(other, made.parent, 3, retrievers=STATIC)
    few = write_corpus(tmp_path / "few.jsonl", ROWS[:2])
    with pytest.raises(
        IndexingError, match=r"-of-009\.index: shard \d/9 of the corpus holds no passages: choose fewer"
    ):
        package.build_shards(few, tmp_path / "few", 9)


@pytest.mark.slow
def test_a_script_needs_no_guard(source: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import rag\nprint(rag.build_shards({str(source)!r}, {str(tmp_path / 'out')!r}, 2))\n")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path()}
    )
    assert (done.stdout, done.stderr) == (f"{tmp_path / 'out' / 'shards.toml'}\n", "")


def path() -> str:
    return os.pathsep.join([str(ROOT), str(ROOT / "eval")])


def test_the_command_builds_and_says_how_to_search(source: Path, tmp_path: Path, rag: Command) -> None:
    build = ("index", "build", source, "--to", tmp_path / "shards", "--shards", 2)
    done = rag(*build)
    assert done.returncode == 0, done.stderr
    retriever = tmp_path / "shards" / "shards.toml"
    assert (
        done.stderr.splitlines()[-1]
        == f"2 shards in {retriever.parent}; search them as one with --retriever {retriever}"
    )
    found = rag("search", "number 077", "--retriever", retriever, "-k", 1)
    assert "077#0" in found.stdout
    one_line_error(rag(*build, "--shard", "1/2"), "--shards or --shard, not both")
    one_line_error(rag("index", "build", "--to", tmp_path / "x", "--retriever", "static", "--shards", 2), "for SOURCES")
    one_line_error(
        rag("index", "build", source, "--to", tmp_path / "x", "--processes", 2), "--processes is for --shards"
    )


def test_an_engine_embeds_for_the_shards(source: Path, tmp_path: Path, rag: Command) -> None:
    build = ("index", "build", source, "--shards", 2, "--retriever", "static")
    for name, options in (("alone", ()), ("engine", ("--engine", "local"))):
        done = rag(*build, "--to", tmp_path / name, *options)
        assert done.returncode == 0, done.stderr
    alone, engine = ([p.read_bytes() for p in sorted((tmp_path / n).rglob("*.npy"))] for n in ("alone", "engine"))
    assert alone == engine
    assert alone
    to = ("--to", tmp_path / "x")
    one_line_error(rag(*build, *to, "--engine", "local", "--workers", 2), "engine 'local' has no workers")
    one_line_error(rag(*build, *to, "--engine", "nothing"), "'nothing'; there are: local, ray")
    one_line_error(rag(*build, *to, "--workers", 2), "address and workers are for an engine")
    one_line_error(rag(*build[:-2], *to, "--engine", "local"), "--engine is for the encoders")


# --- builds that end early --------------------------------------------------------------------------------------


def test_a_shard_that_stops_for_the_error_of_another_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Script(Job):
        def commands(self) -> Iterator[list[str]]:
            yield [self.folder.name]

    package_folder = tmp_path / "rag"
    package_folder.mkdir()
    (package_folder / "__init__.py").touch()
    (package_folder / "__main__.py").write_text(
        f"""import pathlib, sys, time
ready = pathlib.Path({str(tmp_path / "ready")!r})
if sys.argv[-1] == "bad":
    while not ready.exists():
        time.sleep(0.01)
    sys.exit("error: no such encoder")
print("reads", file=sys.stderr, flush=True)
ready.touch()
time.sleep(60)
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    scripts = [Script([], Shard(n, 2), tmp_path / name, ShardOptions()) for n, name in enumerate(("good", "bad"), 1)]
    lines: list[str] = []
    with pytest.raises(IndexingError, match="bad: no such encoder"):
        list(run(scripts, 2, lines.append))
    assert set(lines) <= {"good: reads"}  # and not the traceback of the interrupt


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def children(process: int) -> list[int]:
    found = (
        line.split() for task in Path(f"/proc/{process}/task").iterdir() for line in [(task / "children").read_text()]
    )
    return [int(child) for line in found for child in line]


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("how", ["Ctrl-C", "a shard is killed", "the builder is killed"])
def test_a_build_that_ends_early_leaves_nothing_and_goes_on(how: str, tmp_path: Path, rag: Command) -> None:
    source = tmp_path / "numbers.jsonl"
    source.write_text(
        "".join(
            json.dumps({"docid": f"{n}#0", "title": "", "text": f"The number {n} is odd."}) + "\n"
            for n in range(60_000)
        )
    )
    build = ("index", "build", source, "--to", tmp_path / "shards", "--shards", 2, "--processes", 2)
    started = subprocess.Popen(
        [sys.executable, "-m", "rag", *map(str, build)], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path()},
    )  # fmt: skip
    until(lambda: len(list(tmp_path.glob("shards/*/.rag-build-*/bm25"))) == 2)
    (first, second) = children(started.pid)
    killed = first if how == "a shard is killed" else started.pid
    os.kill(killed, signal.SIGINT if how == "Ctrl-C" else signal.SIGKILL)
    _, said = started.communicate(timeout=60)
    until(lambda: gone(first) and gone(second))
    assert "Traceback" not in said
    if how == "Ctrl-C":
        assert said.splitlines()[-1] == "stopped; run the same command again to resume"
        assert list(tmp_path.glob("shards/*/.rag-build-*")) == []
    elif how == "a shard is killed":
        assert said.splitlines()[-1].endswith(
            ".index: its process was killed by signal 9; run the command again to resume"
        )
    done = rag(*build)
    assert done.returncode == 0, done.stderr
    shards = sorted(tmp_path.glob("shards/*.index"))
    assert sum(package.open_index(folder).manifest["passages"] for folder in shards) == 60_000
    assert len(list(tmp_path.glob("shards/*/.rag-build-*"))) == 2
