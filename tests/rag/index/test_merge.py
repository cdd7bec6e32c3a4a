"""Several indexes become one that answers like an index built of everything, and it is complete or not there."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag as library
from rag.base.errors import IndexingError, UsageError
from rag.base.types import Hit
from rag.documents.corpus import Corpus
from rag.documents.sources import Shard
from rag.index import rebuild
from rag.index.build import build
from rag.index.files import read_files
from rag.index.folder import leftovers
from rag.index.manifest import is_shard
from rag.index.open import open_index
from rag.index.parts import read_data_configs
from rag.index.verify import verify
from rag.retrieval import dense
from rag.testing import check_retriever
from tests.conftest import Command, one_line_error, write_corpus
from tests.rag.index.test_update import build_of, contents, same_index, write

ROOT = Path(__file__).parents[3]
THINGS = ("mill", "bridge", "clock", "ferry", "tower", "well", "barn")
QUERIES = ["mill", "bridge clock", "tower well barn", "mill mill ferry"]


def rows_of(numbers: Sequence[int], seed: int = 5) -> list[tuple[str, str, str]]:
    """Passages of pages of three, some without a title, many of which tie."""
    found = []
    for number in numbers:
        draw = random.Random(seed + number)
        title, text = (" ".join(draw.choices(THINGS, weights=range(1, 8), k=draw.randint(1, n))) for n in (2, 9))
        found.append((f"{number // 3:02}#{number % 3}", title if number % 4 else "", text))
    return found


def built(folder: Path, name: str, numbers: Sequence[int], retrievers: Sequence[str] = ()) -> Path:
    """An index of a corpus file of these passages."""
    source = write_corpus(folder / f"{name}.jsonl", rows_of(numbers))
    library.build_index(source, folder / f"{name}.index", retrievers=retrievers)
    return folder / f"{name}.index"


def hits(index: Path, retriever: str = "bm25", k: int = 100) -> list[list[Hit]]:
    return library.open_retriever(retriever, index).search(QUERIES, k)


def assert_same(merged: Path, whole: Path) -> None:
    """The same passages, scores and order."""
    assert verify(merged) == []
    assert contents(open_index(merged)) == contents(open_index(whole))
    for name in ("passages", "untitled", "skipped", "sources", "format", "dead"):
        assert open_index(merged).manifest[name] == open_index(whole).manifest[name], name
    for k in (1, 3, 10, 100):
        assert hits(merged, k=k) == hits(whole, k=k)


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two indexes with static vectors, and of one of both corpora at once."""
    made = tmp_path_factory.mktemp("towns")
    built(made, "a", range(30), ["static"])
    built(made, "b", range(30, 50), ["static"])
    library.build_index([made / "a.jsonl", made / "b.jsonl"], made / "whole.index", retrievers=["static"])
    return made


@pytest.fixture
def merged(towns: Path, tmp_path: Path) -> Path:
    library.merge_indexes([towns / "a.index", towns / "b.index"], tmp_path / "merged.index")
    return tmp_path / "merged.index"


# --- the same as built of everything ---------------------------------------------------------------------------


@given(of=st.lists(st.integers(0, 2), min_size=24, max_size=24).filter(lambda of: len(set(of)) > 1))
@settings(max_examples=4)
def test_however_passages_are_split_the_merged_index_is_that_of_all(of: list[int]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        parts = [built(folder, str(n), [i for i, part in enumerate(of) if part == n]) for n in sorted(set(of))]
        merged = library.merge_indexes([str(part) for part in parts], str(folder / "merged.index"))
        library.build_index([part.with_suffix(".jsonl") for part in parts], folder / "whole.index")
        assert_same(folder / "merged.index", folder / "whole.index")
        assert merged.manifest["checksum"] == open_index(folder / "whole.index").manifest["checksum"]


def test_a_merged_index_keeps_the_contract_and_the_vectors(towns: Path, merged: Path) -> None:
    assert_same(merged, towns / "whole.index")
    for retriever in ("bm25", "static"):
        check_retriever(library.open_retriever(retriever, merged), QUERIES, lexical=retriever == "bm25")
    assert hits(merged, "static") == hits(towns / "whole.index", "static")


def test_what_an_update_removed_is_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = built(tmp_path, "one", range(20)), built(tmp_path, "two", range(20, 40))
    monkeypatch.setattr(rebuild, "EXACT", 0)
    monkeypatch.setattr(rebuild, "_DEAD_SHARE", 1)
    monkeypatch.setattr(rebuild, "_FRESH_SHARE", 1)
    write_corpus(tmp_path / "one.jsonl", rows_of([*range(4), *range(12, 20), *range(50, 54)]))
    library.update_index(one)
    assert open_index(one).manifest["dead"] > 0
    library.merge_indexes([two, one], tmp_path / "merged.index")
    library.build_index([tmp_path / "two.jsonl", tmp_path / "one.jsonl"], tmp_path / "whole.index")
    assert_same(tmp_path / "merged.index", tmp_path / "whole.index")


# --- an index like any other -----------------------------------------------------------------------------------


def test_the_command_merges_documents_and_they_are_updated(tmp_path: Path, rag: Command) -> None:
    for folder, names in (("x", "abc"), ("y", "de")):
        for name in names:
            write(tmp_path / folder, f"{name}.md", f"The river {name} runs north of the town.", f"A lamp of {name}.")
        build(Corpus([tmp_path / folder]), tmp_path / f"{folder}.index")
    home = tmp_path / "both.index"
    done = rag("index", "merge", tmp_path / "x.index", tmp_path / "y.index", "--to", home)
    assert done.returncode == 0, done.stderr
    needs, said = done.stderr.splitlines()
    assert needs.startswith("needs about ")
    assert needs.endswith(" MB of memory")
    assert said == f"10 passages of 2 indexes in {home}"
    for name in "xy":
        shutil.rmtree(tmp_path / f"{name}.index")
    assert rag("index", "verify", home).stderr == f"{home} is whole\n"
    assert rag("index", "list", tmp_path).stdout.startswith(f"{home}: 10 passages of x, y, ")
    assert rag("index", "show", home).stdout.splitlines() == [f"{name}.md: 2 passages" for name in "abcde"]
    assert "A lamp of d" in rag("index", "show", home, "d.md").stdout
    assert rag("index", "update", home).stderr == "5 unchanged\n"

    write(tmp_path / "x", "a.md", "A kettle.")
    write(tmp_path / "y", "new.md", "A kettle again.")
    (tmp_path / "y/e.md").unlink()
    assert rag("index", "update", home).stderr == "1 changed, 1 new, 1 deleted, 3 unchanged\n"
    write(tmp_path / "z", "z.md", "A kettle as well.")
    assert rag("index", "add", home, tmp_path / "z").stderr == "1 new, 5 unchanged\n"
    assert rag("index", "remove", home, tmp_path / "x").stderr == "3 deleted, 3 unchanged\n"
    assert sorted(hit.passage.id for hit in library.search("kettle", home)) == ["new.md#1", "z/z.md#1"]
    assert verify(home) == []


def test_an_index_is_replaced_once_the_merged_one_is_complete(towns: Path, tmp_path: Path, rag: Command) -> None:
    home, names = built(tmp_path, "old", range(60, 70)), [towns / "a.index", towns / "b.index"]
    before = open_index(home)
    one_line_error(rag("index", "merge", *names, "--to", home), "already exists", "--replace")
    assert rag("index", "merge", *names, "--to", home, "--replace").returncode == 0
    assert_same(home, towns / "whole.index")
    assert len(contents(before)) == 10  # whoever has it open keeps reading it
    del before
    library.update_index(home)
    assert leftovers(home) == 0


# --- parts -----------------------------------------------------------------------------------------------------


def test_vectors_are_copied_and_never_computed(towns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.retrieval.dense.open_encoder", None)
    monkeypatch.setattr(dense, "PER_FILE", 7)  # several files
    said: list[str] = []
    told: set[tuple[str, int, int]] = set()
    home = tmp_path / "merged.index"
    library.merge_indexes(
        [towns / "a.index", towns / "b.index"], home, log=said.append, progress=lambda *step: told.add(step)
    )
    assert said[1:] == [f"50 passages of 2 indexes in {home}", f"static.v1 is in {home}"]
    assert {("comparing ids", 50, 50), ("merging", 50, 50), ("static.v1 copied", 50, 50)} <= told
    assert len(list(home.glob(".rag-build-*/parts/static.v1/vectors-*.npy"))) == 8
    monkeypatch.undo()
    assert hits(home, "static") == hits(towns / "whole.index", "static")


def changed(folder: Path, copy: Path, old: str, new: str) -> Path:
    """A copy of an index in which the record of its part says something else."""
    shutil.copytree(folder, copy)
    (part,) = copy.glob(".rag-build-*/parts/*/part.json")
    assert old in part.read_text()
    part.write_text(part.read_text().replace(old, new))
    return copy


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"encoder": "static@', '"encoder": "another@', "the indexes have vectors of different encoders"),
        ('"kind": "dense"', '"kind": "lucene"', "its configuration is not the same in all indexes"),
        ('"shard": 50000', '"shard": 10', "holds float16 of"),
        ("", "", "b.index has no such data"),
    ],
)
def test_a_part_that_cannot_be_copied_is_left_out_and_named(
    old: str, new: str, why: str, towns: Path, tmp_path: Path
) -> None:
    other = changed(towns / "b.index", tmp_path / "b.index", old, new)
    if not old:
        shutil.rmtree(next(other.glob(".rag-build-*/parts")))
    said: list[str] = []
    home = tmp_path / "merged.index"
    index = library.merge_indexes([towns / "a.index", other], home, log=said.append)
    assert said[-1].startswith("static.v1 was left out (")
    assert why in said[-1]
    assert said[-1].endswith(f"): rag index build --to {home} --retriever NAME adds it")
    assert read_data_configs(index) == []
    library.add_retriever(home, "static")
    assert hits(home, "static") == hits(towns / "whole.index", "static")


def test_a_part_of_another_kind_is_left_out_and_named(towns: Path, tmp_path: Path) -> None:
    parts = [
        changed(towns / f"{name}.index", tmp_path / f"{name}.index", '"kind": "dense"', '"kind": "lucene"')
        for name in "ab"
    ]
    said: list[str] = []
    library.merge_indexes(parts, tmp_path / "merged.index", log=said.append)
    assert said[-1].startswith("static.v1 was left out (data of kind lucene are built anew): rag index build --to ")


def test_an_index_of_vectors_is_built_of_the_copied_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss", reason="needs the extra 'dense'")
    monkeypatch.setattr(dense, "SMALL", 0)  # so few passages are searched exactly otherwise
    retriever = tmp_path / "lists.toml"
    retriever.write_text('name = "lists.v1"\nkind = "dense"\nencoder = "static"\nindex = "hnsw"\n')
    parts = [built(tmp_path, name, some, [str(retriever)]) for name, some in (("a", range(20)), ("b", range(20, 50)))]
    home, said = tmp_path / "merged.index", list[str]()
    library.merge_indexes(parts, home, log=said.append)
    assert said[-1] == (
        "lists.v1 was left out (its vectors are copied, their index is built anew): "
        f"rag index build --to {home} --retriever NAME adds it"
    )
    monkeypatch.setattr(dense, "_encode_batch", None)  # nothing is encoded
    library.add_retriever(home, str(retriever))
    monkeypatch.undo()
    library.build_index([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "whole.index", retrievers=["static"])
    assert hits(home, str(retriever), 5) == hits(tmp_path / "whole.index", "static", 5)


# --- shards ----------------------------------------------------------------------------------------------------


def shards_of(source: Path, to: Path, of: int, retrievers: Sequence[str] = ()) -> list[Path]:
    folders = [to / f"{number}-of-{of}.index" for number in range(1, of + 1)]
    for number, folder in enumerate(folders, 1):
        library.build_index(source, folder, shard=f"{number}/{of}", retrievers=retrievers)
    return folders


def test_all_shards_of_a_corpus_are_the_index_of_the_whole(tmp_path: Path) -> None:
    source = write_corpus(tmp_path / "towns.jsonl", rows_of(range(60)))
    with source.open("a") as file:
        file.write("broken\n")
    library.build_index(source, tmp_path / "whole.index", skip_bad=True, retrievers=["static"])
    shards = [tmp_path / f"{number}.index" for number in (1, 2, 3)]
    for number, folder in enumerate(shards, 1):
        library.build_index(source, folder, shard=f"{number}/3", skip_bad=True, retrievers=["static"])
    merged = library.merge_indexes([shards[2], shards[0], shards[1]], tmp_path / "merged.index")
    assert_same(tmp_path / "merged.index", tmp_path / "whole.index")
    assert hits(tmp_path / "merged.index", "static") == hits(tmp_path / "whole.index", "static")
    assert not is_shard(merged.manifest)
    assert merged.manifest["roots"] == open_index(tmp_path / "whole.index").manifest["roots"]
    assert [
        (record.name, record.passages, record.bad) for record in read_files(build_of(tmp_path / "merged.index"))
    ] == [("towns.jsonl", 60, 1)]
    again = library.merge_indexes(shards, tmp_path / "again.index")
    assert again.manifest["checksum"] == merged.manifest["checksum"]

    write_corpus(source, rows_of(range(0, 80, 2)))
    assert library.update_index(tmp_path / "merged.index").changed == ("towns.jsonl",)
    library.update_index(tmp_path / "whole.index")
    assert_same(tmp_path / "merged.index", tmp_path / "whole.index")


def test_shards_of_documents_are_as_one_index_also_if_files_repeat_others(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for name in "abcdefgh":
        write(docs, f"{name}.md", f"The river {name} runs north of the town.", f"A lamp of {name}.")
    first = next(name for name in "abcdefgh" if Shard(1, 2).holds(f"{name}.md"))
    second = next(f"z{n}.md" for n in range(100) if Shard(2, 2).holds(f"z{n}.md"))
    shutil.copy(docs / f"{first}.md", docs / second)
    (tmp_path / "alone.md").write_text("# Alone\n\nThis kettle stands alone in the tower of the town.\n")
    sources = [docs, tmp_path / "alone.md"]
    for number in (1, 2):
        library.build_index(sources, tmp_path / f"{number}.index", shard=f"{number}/2", retrievers=["static"])
    shards = [tmp_path / "1.index", tmp_path / "2.index"]
    assert sum(open_index(shard).manifest["passages"] for shard in shards) == 19  # the copy too
    library.merge_indexes(shards, tmp_path / "merged.index")
    library.build_index(sources, tmp_path / "whole.index", retrievers=["static"])
    same_index(tmp_path / "merged.index", tmp_path / "whole.index")
    ours, theirs = (
        library.search("a lamp", tmp_path / f"{one}.index", retriever="static") for one in ("merged", "whole")
    )
    assert ours == theirs
    (docs / f"{first}.md").unlink()  # the copy comes in for it
    for name in ("merged", "whole"):
        library.update_index(tmp_path / f"{name}.index")
    same_index(tmp_path / "merged.index", tmp_path / "whole.index")


def test_shards_that_moved_are_merged_and_the_source_is_found_again(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    source = write_corpus(tmp_path / "here" / "towns.jsonl", rows_of(range(20)))
    first, second = shards_of(source, tmp_path / "here", 2)
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    shutil.copytree(second, tmp_path / "elsewhere/deep/second.index")
    (tmp_path / "here").rename(tmp_path / "there")
    home = tmp_path / "there/merged.index"
    library.merge_indexes([tmp_path / "there" / first.name, tmp_path / "elsewhere/deep/second.index"], home)
    write_corpus(tmp_path / "there/towns.jsonl", rows_of(range(25)))
    assert library.update_index(home).changed == ("towns.jsonl",)
    assert open_index(home).manifest["passages"] == 25


# --- what is refused -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes that do not fit together."""
    folder = tmp_path_factory.mktemp("zoo")
    built(folder, "one", range(10))
    built(folder, "two", range(10, 20))
    built(folder, "same", [12, *range(20, 30)])
    library.build_index(folder / "one.jsonl", folder / "again.index")
    source = write_corpus(folder / "towns.jsonl", rows_of(range(40, 80)))
    for shard in ("1/3", "2/3", "1/2", "2/2"):
        library.build_index(source, folder / f"{shard.replace('/', '-of-')}.index", shard=shard)
    shutil.copytree(folder / "2-of-3.index", folder / "copy.index")
    other = write_corpus(folder / "other.jsonl", rows_of(range(40, 80)))
    library.build_index(other, folder / "other-2-of-2.index", shard="2/2")
    (folder / "later").mkdir()
    write_corpus(folder / "later" / "towns.jsonl", rows_of(range(41, 80)))
    library.build_index(folder / "later" / "towns.jsonl", folder / "later-2-of-2.index", shard="2/2")
    for name, key, value in (("newer", "format_version", 9), ("unknown", "roots", None)):
        shutil.copytree(folder / "two.index", folder / f"{name}.index")
        path = folder / f"{name}.index" / "manifest.json"
        manifest = json.loads(path.read_text()) | {key: value}
        path.write_text(json.dumps({name: value for name, value in manifest.items() if value is not None}))
    (folder / "lucene.index").mkdir()
    (folder / "lucene.index" / "segments_1").write_bytes(b"")
    return folder


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["one"], ["two or more indexes, found 1"]),
        (["one", "two", "one"], ["one.index is named twice"]),
        (["one", "two", "merged/../two"], ["two.index is named twice"]),
        (["one", "nothing"], ["no index at", "nothing.index"]),
        (["one", "newer"], ["newer.index is an index of format 9", "upgrade attributed-rag"]),
        (["one", "unknown"], ["unknown.index does not know its sources", "rag index build --replace"]),
        (["one", "two", "same"], ["two.index and", "same.index both have a passage '04#0'", "build one index"]),
        (["one", "again"], ["one.index has the source", "one.jsonl", "again.index", "build one index"]),
        (["1-of-3", "2-of-3"], ["3/3 of the shards is missing: name all 3"]),
        (["2-of-3"] * 2, ["is named twice"]),
        (["1-of-3", "2-of-3", "copy"], ["2-of-3.index and", "copy.index are both shard 2/3"]),
        (["1-of-3", "two"], ["1-of-3.index is shard 1/3 and", "two.index is no shard: merge all 3 shards first"]),
        (["one", "1-of-3"], ["1-of-3.index is shard 1/3 and", "one.index is no shard"]),
        (["1-of-2", "2-of-3"], ["(shard 1/2)", "(shard 2/3) were not built from the same", "shards of one build"]),
        (["1-of-2", "other-2-of-2"], ["were not built from the same sources"]),
        (["1-of-2", "later-2-of-2"], ["different versions of towns.jsonl", "rag index update"]),
    ],
)
def test_indexes_that_do_not_fit_are_refused_in_one_line_and_nothing_is_written(
    names: list[str], words: list[str], zoo: Path, tmp_path: Path, rag: Command
) -> None:
    (zoo / "merged").mkdir(exist_ok=True)
    folders = [zoo / f"{name}.index" for name in names]
    one_line_error(rag("index", "merge", *folders, "--to", tmp_path / "merged.index"), *words)
    assert list(tmp_path.iterdir()) == []


def test_many_missing_shards_are_counted(zoo: Path, tmp_path: Path) -> None:
    source = write_corpus(tmp_path / "many.jsonl", rows_of(range(90)))
    folders = [tmp_path / f"{number}.index" for number in (1, 2)]
    for number, folder in enumerate(folders, 1):
        library.build_index(source, folder, shard=f"{number}/12")
    with pytest.raises(
        IndexingError, match=r"^3/12, 4/12, .*, 10/12 and 2 more of the shards are missing: name all 12"
    ):
        library.merge_indexes(folders, tmp_path / "merged.index")


def test_places_that_cannot_be_merged_or_written_are_refused(zoo: Path, tmp_path: Path, rag: Command) -> None:
    one, two = zoo / "one.index", zoo / "two.index"
    before = contents(open_index(one))
    for replace in ([], ["--replace"]):
        one_line_error(rag("index", "merge", one, two, "--to", one, *replace), "one of the indexes to merge")
    one_line_error(rag("index", "merge", one, "http://example.org/two", "--to", tmp_path / "x"), "is on a server")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    one_line_error(rag("index", "merge", one, two, "--to", tmp_path / "full"), "holds other files")
    one_line_error(rag("index", "merge", one, two, "--to", tmp_path / "full" / "file"), "is a file")
    with pytest.raises(UsageError, match="indexes should be a list of index folders, found one string"):
        library.merge_indexes(str(one), tmp_path / "x")
    with pytest.raises(UsageError, match="index should be an index folder"):
        library.merge_indexes([open_index(one), two], tmp_path / "x")  # type: ignore[list-item]
    with pytest.raises(UsageError, match="to should be a folder"):
        library.merge_indexes([one, two], "")
    assert contents(open_index(one)) == before
    assert not (tmp_path / "x").exists()


def test_an_index_whose_files_do_not_account_for_its_passages_is_refused(zoo: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(zoo / "two.index", tmp_path / "damaged.index")
    path = build_of(damaged) / "files.jsonl"
    text = path.read_text().replace('"passages": 10', '"passages": 12')
    manifest = json.loads((damaged / "manifest.json").read_text())
    (damaged / "manifest.json").write_text(json.dumps({**manifest, "files": {}}))  # older ones lack it
    path.write_text(text)
    with pytest.raises(IndexingError, match="the passages of an index do not match its files: rag index verify"):
        library.merge_indexes([zoo / "one.index", damaged], tmp_path / "merged.index")
    assert "counts 12 passages" in verify(damaged)[0]
    assert not (tmp_path / "merged.index").exists()


def test_a_lucene_index_is_to_be_imported_first(zoo: Path, tmp_path: Path) -> None:
    from rag.index.index import Index
    from rag.index.merge import Member

    def opened(folder: Path) -> Index:
        return Index("l", None, {}, open_index(zoo / "one.index").store, None, folder)

    with pytest.MonkeyPatch.context() as context:  # so that no Java is needed
        context.setattr("rag.index.merge.open_index", opened)
        with pytest.raises(IndexingError, match=r"lucene\.index is a Lucene index: .* rag index import"):
            Member.open(zoo / "lucene.index")


# --- merging that ends early -----------------------------------------------------------------------------------


@pytest.mark.parametrize("there", [False, True])
def test_ctrl_c_leaves_what_was_there(there: bool, zoo: Path, tmp_path: Path) -> None:
    home, said = tmp_path / "merged.index", list[str]()
    if there:
        shutil.copytree(zoo / "same.index", home)
    before = sorted(path.name for path in tmp_path.rglob("*"))

    def stop(step: str, done: int, total: int) -> None:
        if step == "merging":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.merge_indexes(
            [zoo / "one.index", zoo / "two.index"], home, replace=there, progress=stop, log=said.append
        )
    assert sorted(path.name for path in tmp_path.rglob("*") if path.name != ".rag-lock") == [
        name for name in before if name != ".rag-lock"
    ]
    assert said[-1] == (
        f"stopped; {home} is whole, as before or with the new build" if there else f"stopped; {home} is not there"
    )


KILLED = """
import os, signal, sys
from rag.index import build, merge

def kill(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

setattr({module}, {name!r}, kill)
sys.argv[0] = "rag"
from rag.commands.main import main
main()
"""


@pytest.mark.parametrize(
    ("module", "name", "complete"),
    [("merge.BM25Writer", "finish", False), ("merge", "write_manifest", False), ("build", "_share", True)],
)
def test_a_kill_leaves_a_complete_index_or_none(
    module: str, name: str, complete: bool, towns: Path, tmp_path: Path, rag: Command
) -> None:
    home, command = tmp_path / "merged.index", ["index", "merge", towns / "a.index", towns / "b.index"]
    process = subprocess.run(
        [sys.executable, "-c", KILLED.format(module=module, name=name), *map(str, command), "--to", str(home)],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"},
        capture_output=True,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert verify(towns / "a.index") == []
    if complete:
        assert_same(home, towns / "whole.index")
        return
    with pytest.raises(IndexingError, match="is half-built"):
        open_index(home)
    done = rag(*command, "--to", home)
    assert done.returncode == 0, done.stderr
    assert_same(home, towns / "whole.index")
    assert len(list(home.glob(".rag-build-*"))) == 1


def test_a_target_that_is_written_by_another_process_is_refused(zoo: Path, tmp_path: Path, rag: Command) -> None:
    home = tmp_path / "merged.index"
    seen: list[Callable[..., Any]] = []

    def second(step: str, done: int, total: int) -> None:
        if step == "merging":
            seen.append(second)
            one_line_error(
                rag("index", "merge", zoo / "one.index", zoo / "same.index", "--to", home),
                "another build is running in it",
            )

    library.merge_indexes([zoo / "one.index", zoo / "two.index"], home, progress=second)
    assert seen
    assert verify(home) == []
