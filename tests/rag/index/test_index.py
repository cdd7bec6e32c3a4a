import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag.api import add_retriever, build_index, open_system
from rag.base.errors import FormatError, IndexingError, QuestionError, RagError, UsageError
from rag.base.resources import names
from rag.base.types import Passage
from rag.documents.corpus import Corpus
from rag.index.build import build
from rag.index.manifest import FORMAT_VERSION
from rag.index.open import open_index
from rag.index.parts import read_data_configs
from rag.index.retriever_config import walk_configs
from rag.retrieval import open_retriever
from rag.testing import check_retriever
from tests.conftest import SHELF, Command, one_line_error, write_corpus

ROOT = Path(__file__).parents[3]


HERE = {
    "bm25", "bm25-rerank", "default", "default-llm", "fused", "hybrid", "hybrid-reranked", "minilm-shipped",
    "reference", "reranked", "shortlist", "static",
}  # fmt: skip
ELSEWHERE = {
    "lucene": "test_lucene.py, which needs a JVM",
    "minilm": "test_dense.py, with an encoder of the test's own",
    **dict.fromkeys(
        ("lancedb", "milvus", "opensearch", "pgvector", "qdrant"), "test_databases.py, which needs their clients"
    ),
}


def test_no_retriever_that_ships_is_without_a_test() -> None:
    assert sorted(names("indexes", ".toml")) == sorted(HERE | ELSEWHERE.keys())


@pytest.mark.parametrize("name", [*sorted(HERE), "bm25-rerank+reference"])
def test_every_retriever_keeps_the_contract(name: str, shelf: Path) -> None:
    if "reference" in name:
        pytest.importorskip("rank_bm25", reason="needs the extra 'reference'")
    queries = ["river of Poland", "Nobel Prize", "東京", "capital"]
    lexical = all(part not in ("static", "minilm-shipped") for part, _ in walk_configs(name))
    if not lexical:
        add_retriever(shelf, name)
    check_retriever(open_retriever(name, open_index(shelf)), queries, lexical=lexical)


def test_an_extra_that_is_missing_is_one_line_that_says_what_to_install(rag: Command, tmp_path: Path) -> None:
    (tmp_path / "rank_bm25.py").write_text("raise ImportError")  # hides the real one, where it is installed
    result = rag("search", "river", "--retriever", "reference", PYTHONPATH=f"{tmp_path}:{ROOT}:{ROOT / 'eval'}")
    one_line_error(result, 'pip install -e ".[reference]"')
    one_line_error(rag("search", "river", "--retriever", "nope"), "bm25, bm25-rerank, default, default-llm, fused, ")


def test_the_reference_refuses_a_large_index(shelf: Path) -> None:
    pytest.importorskip("rank_bm25", reason="needs the extra 'reference'")
    from rag.index.retriever_config import read_config
    from rag.retrieval.reference import Reference

    with pytest.raises(IndexingError, match="at most 200,000 passages, the index has 1,148,001: use 'bm25'"):
        Reference(open_index(shelf).store, 1_148_001, read_config("reference"))


def test_a_fallback_is_the_first_retriever_whose_data_the_index_has(
    shelf: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert open_retriever("default", open_index(shelf)).name == open_retriever("shortlist", open_index(shelf)).name
    add_retriever(shelf, "hybrid")
    assert open_retriever("default", open_index(shelf)).name == open_retriever("hybrid", open_index(shelf)).name
    vectors = next(shelf.glob("*/parts/minilm-shipped.v1/*.npy"))
    vectors.write_bytes(vectors.read_bytes() + b"x")
    assert open_retriever("default", open_index(shelf)).name == open_retriever("shortlist", open_index(shelf)).name
    assert f"rag index build --to {shelf} --retriever hybrid" in caplog.text
    add_retriever(shelf, "hybrid")
    assert open_retriever("default", open_index(shelf)).name == open_retriever("hybrid", open_index(shelf)).name
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "m"\nkind = "fallback"\nchoices = []')
    with pytest.raises(RagError, match=r"needs one or more retrievers in 'choices', found \[\]"):
        open_retriever(str(mine), open_index(shelf))
    mine.write_text(f'name = "m"\nkind = "fallback"\nchoices = ["bm25", {str(mine)!r}]')
    with pytest.raises(RagError, match="is based on itself"):
        open_retriever(str(mine), open_index(shelf))


def test_a_new_index_of_documents_gets_vectors(
    tmp_path: Path, corpus: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "rivers.md").write_text("# Rivers\n\nThe Vistula is the longest river of Poland.")
    index = build_index(docs, tmp_path / "docs.index")
    assert [retriever.name for retriever in read_data_configs(index)] == ["minilm-shipped.v1"]
    assert "minilm-shipped.v1" in open_system("reader", index).name
    assert read_data_configs(build_index(docs, tmp_path / "plain.index", retrievers=["bm25"])) == []
    assert read_data_configs(build_index(corpus, tmp_path / "corpus.index")) == []
    assert read_data_configs(build_index(docs, tmp_path / "shard.index", shard="1/1")) == []
    monkeypatch.setattr("rag.index.manifest.FEW_PASSAGES", 0)
    assert read_data_configs(build_index(docs, tmp_path / "large.index")) == []
    monkeypatch.undo()
    built = rag("index", "build", docs, "--to", tmp_path / "cli.index")
    assert "minilm-shipped was added to" in built.stderr
    assert "minilm" not in rag("index", "build", docs, "--to", tmp_path / "bare.index", "--retriever", "bm25").stderr


def test_the_handbook_is_searched_without_any_set_up() -> None:
    index = open_index(None)
    assert index.manifest["passages"] >= 60
    check_retriever(index.bm25, ["What is citation precision?", "AIS"])
    assert index.bm25.search(["What is citation precision?"], 1)[0][0].passage.title == "Citation metrics"


def test_ties_go_by_id_even_where_they_run_past_k(tmp_path: Path) -> None:
    rows = [(f"{n:03d}", "", "the same words") for n in reversed(range(200))]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    (hits,) = open_index(tmp_path / "t.index").bm25.search(["words"], 5)
    assert [hit.passage.id for hit in hits] == ["000", "001", "002", "003", "004"]


def test_headings_count_and_a_passage_without_them_does_not_lose(tmp_path: Path) -> None:
    text = "It was built in that year by the same people and stands to this day with its tower."
    rows = [("titled", "Tower", text), ("untitled", "", text), ("other", "Bridge", text)]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    (hits,) = open_index(tmp_path / "t.index").bm25.search(["tower"], 3)
    assert [hit.passage.id for hit in hits] == ["titled", "untitled", "other"]
    scores = {hit.passage.id: hit.score for hit in hits}
    # one word shorter than "other", and its text counts for the title it does not have: 1 + 0.2 times
    assert scores["untitled"] == pytest.approx(1.2 * scores["other"], rel=0.05)
    assert scores["untitled"] > 1.15 * scores["other"]


def test_an_index_is_self_contained_and_can_be_moved(shelf: Path, corpus: Path, tmp_path: Path) -> None:
    corpus.unlink()
    moved = shelf.rename(tmp_path / "moved place")
    index = open_index(moved)
    passage = index.store.get("b#2")
    assert passage is not None
    assert passage.title == "Vistula"
    assert index.store.get("nope") is None
    assert [p.id for p in index.store.scan()] == [row[0] for row in SHELF]


def test_the_manifest_says_what_is_inside(shelf: Path) -> None:
    manifest = open_index(shelf).manifest
    assert manifest["passages"] == len(SHELF)
    assert manifest["untitled"] == 1
    assert manifest["format"] == "miracl"
    assert manifest["recipe"]["k1"] == 1.2
    assert manifest["recipe"]["b"] == 0.75
    assert manifest["checksum"].startswith("sha256:")


def test_same_passages_same_checksum_other_passages_another(shelf: Path, tmp_path: Path) -> None:
    again = build(Corpus([write_corpus(tmp_path / "again.jsonl")]), tmp_path / "again.index")
    other = build(Corpus([write_corpus(tmp_path / "o.jsonl", SHELF[:-1])]), tmp_path / "o.index")
    assert again["checksum"] == open_index(shelf).manifest["checksum"] != other["checksum"]


def test_headings_of_a_passages_own_are_kept_searched_and_in_the_checksum(tmp_path: Path) -> None:
    path, home = tmp_path / "c.jsonl", tmp_path / "c.index"
    path.write_text('{"id": "1", "contents": "« Hank Pym » « Ant-Man, Powers » He shrinks."}\n', "utf-8")
    checksum = build(Corpus([path]), home)["checksum"]
    index, own = open_index(home), Passage("1", "Hank Pym", "He shrinks.", "Ant-Man, Powers", "Ant-Man, Powers")
    assert index.store.get("1") == index.store.rows([0])[0] == next(iter(index.store.scan())) == own
    assert index.bm25.search(["ant"], 1)[0][0].passage == own
    row = {"docid": "1", "title": "Hank Pym", "section": "Ant-Man, Powers", "text": "He shrinks."}
    path.write_text(json.dumps(row) + "\n")
    assert build(Corpus([path]), home, replace=True)["checksum"] != checksum
    (hits,) = open_index(home).bm25.search(["ant"], 1)
    assert hits[0].passage.headings == "Hank Pym, Ant-Man, Powers"


def test_duplicate_ids_are_an_error_with_line_or_are_counted(tmp_path: Path) -> None:
    rows = [*SHELF, ("a#1", "x", "Second of its name."), ("e#1", "x", "After it.")]
    path = write_corpus(tmp_path / "d.jsonl", rows)
    with pytest.raises(FormatError, match=r"d\.jsonl:7: id 'a#1' occurs twice"):
        build(Corpus([path]), tmp_path / "d.index")
    assert not (tmp_path / "d.index" / "manifest.json").exists()
    corpus = Corpus([path], skip_bad=True)
    manifest = build(corpus, tmp_path / "d.index")
    assert (manifest["passages"], manifest["skipped"]) == (len(SHELF) + 1, 1)
    index = open_index(tmp_path / "d.index")
    assert [hit.passage.id for hit in index.bm25.search(["after"], 5)[0]] == ["e#1"]


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"docid": "1", "title": "", "text": "half \\ud83d"}\n')
    with pytest.raises(FormatError, match=r"s\.jsonl:1: passage '1' contains a lone surrogate"):
        build(Corpus([path]), tmp_path / "s.index")


def test_a_folder_that_is_no_index_is_left_alone(tmp_path: Path, corpus: Path) -> None:
    home = tmp_path / "thesis"
    home.mkdir()
    (home / "chapter.tex").write_text("years of work")
    with pytest.raises(IndexingError, match="holds other files and is not an index"):
        build(Corpus([corpus]), home)
    assert (home / "chapter.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ({"format_version": 99}, f"index of format 99, this version reads {FORMAT_VERSION}: upgrade"),
        ({"format_version": 1}, f"older format 1, this version reads {FORMAT_VERSION}: build it again"),
        (f'{{"format_version": {FORMAT_VERSION}}}', "is damaged"),
        ({"build": ".rag-build-gone"}, "which is missing"),
        ({"build": ".rag-build-x/../../etc"}, "is damaged"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"format_version": Infinity}', "is damaged"),
        ("[" * 100_000, "is damaged"),
        ({"passages": -3}, "is damaged"),
        # The names below were a UnicodeEncodeError and a ValueError of the file system.
        ({"files": {"\ud800": {"bytes": 1, "sha256": ""}}}, "is damaged"),
        ({"files": {"a\0": {"bytes": 1, "sha256": ""}}}, "is damaged"),
        ({"passages": None}, "is damaged .*build the index again"),
        ({"recipe": {"name": "x", "engine": "y", "k1": 1, "b": 1, "weights": {"nope": 1}}}, "is damaged"),
        ({"recipe": {"name": "x", "engine": "y", "k1": 1, "b": 1, "weights": {"title": -1}}}, "is damaged"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_one_clear_error(shelf: Path, manifest: object, says: str) -> None:
    path = shelf / "manifest.json"
    if isinstance(manifest, str):
        path.write_text(manifest)
    else:
        assert isinstance(manifest, dict)
        path.write_text(json.dumps(json.loads(path.read_text()) | manifest))
    with pytest.raises(IndexingError, match=says):
        open_index(shelf)


def test_an_index_with_broken_files_is_one_clear_error(shelf: Path) -> None:
    (store,) = shelf.glob(".rag-build-*/passages.sqlite")
    store.write_bytes(b"no database" * 100)
    with pytest.raises(IndexingError, match="cannot be read as a passage store"):
        open_index(shelf)


def test_a_store_with_bytes_that_are_no_text_is_one_line(shelf: Path) -> None:
    # SQLite's message quotes the text, with its line ends.
    (store,) = shelf.glob(".rag-build-*/passages.sqlite")
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE passage SET text = CAST(? AS TEXT)", (b"one\n\ntwo \xff",))
    connection.close()
    with pytest.raises(IndexingError, match="cannot be read as a passage store") as caught:
        open_index(shelf)
    assert "\n" not in str(caught.value)


def test_queries_that_cannot_be_searched_for(shelf: Path) -> None:
    bm25 = open_index(shelf).bm25
    for query in ("", " \n", "the of what?", '"" : ( ) !!', "river \ud83d"):
        with pytest.raises(QuestionError):
            bm25.search([query], 3)
    with pytest.raises(QuestionError, match="100,000 characters"):
        bm25.search(["a" * 100_000], 3)
    with pytest.raises(RagError, match="k must be at least 1, not 0"):
        bm25.search(["river"], 0)
    with pytest.raises(UsageError, match=r"queries should be a list of strings, found one string; write \['river'\]"):
        bm25.search("river", 3)


def test_query_syntax_is_only_text(shelf: Path) -> None:
    bm25 = open_index(shelf).bm25
    plain = bm25.search(["river Poland"], 5)
    assert bm25.search(['(river*) "Poland~'], 5) == plain
    assert bm25.search(['"river" AND -(Poland)^ -" OR:'], 5) == bm25.search(["river Poland OR"], 5)


def test_stop_words_are_dropped_from_queries_and_kept_in_passages(shelf: Path) -> None:
    bm25 = open_index(shelf).bm25
    assert bm25.search(["which of these is a river, and where?"], 5) == bm25.search(["river"], 5)


def test_postings_that_are_damaged_are_one_clear_error(shelf: Path) -> None:
    for path in shelf.glob(".rag-build-*/bm25/*"):
        if path.suffix in (".idx", ".term"):
            data = bytearray(path.read_bytes())
            data[: len(data) // 2] = b"\xff" * (len(data) // 2)
            path.write_bytes(data)
    with pytest.raises(IndexingError, match=r"damaged|cannot be opened"):
        open_index(shelf).bm25.search(["river Poland capital"], 5)


def test_a_changed_bit_is_noticed_wherever_it_is(shelf: Path) -> None:
    rng = random.Random(5)
    (folder,) = shelf.glob(".rag-build-*")
    found = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    files = sorted(path for path in found if not path.name.startswith("."))  # hidden ones serve the writer alone
    assert len(files) > 5
    for path in files:
        whole = path.read_bytes()
        for _ in range(4):
            damaged = bytearray(whole)
            damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            with pytest.raises(IndexingError, match="is damaged"):
                open_index(shelf)
        path.write_bytes(whole)
    assert open_index(shelf).bm25.search(["river"], 3)


@pytest.mark.parametrize("value", ["x'00ff'", "7"])
def test_a_passage_of_another_type_is_one_clear_error(shelf: Path, value: str) -> None:
    (store,) = shelf.glob(".rag-build-*/passages.sqlite")
    manifest = json.loads((shelf / "manifest.json").read_text())
    del manifest["files"]  # as of an older index, so that nothing is noticed before the passages are read
    (shelf / "manifest.json").write_text(json.dumps(manifest))
    with sqlite3.connect(store) as connection:
        connection.execute(f"UPDATE passage SET title = {value}")
    connection.close()
    if value == "7":  # SQLite makes a number in a column of text a text
        assert open_index(shelf).bm25.search(["river"], 3)[0][0].passage.title == "7"
        return
    for read in (lambda index: index.bm25.search(["river"], 3), lambda index: list(index.store.scan())):
        with pytest.raises(IndexingError, match="holds a value of another type"):
            read(open_index(shelf))


def test_an_index_with_a_damaged_manifest_can_be_built_again(shelf: Path, corpus: Path) -> None:
    (shelf / "manifest.json").write_text("{")
    build(Corpus([corpus]), shelf, replace=True)
    assert open_index(shelf).manifest["passages"] == len(SHELF)
    assert len(list(shelf.glob(".rag-build-*"))) == 1


def test_folders_of_others_are_never_removed(tmp_path: Path, corpus: Path) -> None:
    kept = tmp_path / "proj" / "build-release" / "app"
    kept.parent.mkdir(parents=True)
    kept.write_text("work")
    with pytest.raises(IndexingError, match="holds other files"):
        build(Corpus([corpus]), tmp_path / "proj")
    assert kept.read_text() == "work"


def test_two_builds_in_one_folder_do_not_meet(tmp_path: Path, corpus: Path) -> None:
    def second(*_: object) -> None:
        with pytest.raises(IndexingError, match="another build is running"):
            build(Corpus([corpus]), tmp_path / "i.index")

    assert build(Corpus([corpus]), tmp_path / "i.index", second)["passages"] == len(SHELF)


# --- stopped, killed, out of disk ------------------------------------------------------------------------------


def _large(path: Path) -> Path:
    return write_corpus(path, _rows(60_000))


def _rows(n: int) -> list[tuple[str, str, str]]:
    return [(str(i), f"Title {i}", f"Some words about number {i}. " * 20) for i in range(n)]


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.slow
def test_a_build_that_is_stopped_loses_nothing_and_building_again_works(
    tmp_path: Path, shelf: Path, corpus: Path, signal_sent: signal.Signals, rag: Command
) -> None:
    large = _large(tmp_path / "large.jsonl")
    before = open_index(shelf).manifest
    root = Path(__file__).parents[3]
    builds = set(shelf.glob(".rag-build-*"))
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from rag.commands.main import main; main()",
            "index",
            "build",
            str(large),
            "--to",
            str(shelf),
            "--replace",
        ],
        env=os.environ | {"PYTHONPATH": f"{root}:{root / 'eval'}"},
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if sum(file.parents[1] not in builds for file in shelf.glob(".rag-build-*/bm25/*")) >= 8:
            break
        time.sleep(0.01)
    process.send_signal(signal_sent)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode not in (0, 1), stderr
    assert b"Traceback" not in stderr
    assert open_index(shelf).manifest == before
    assert open_index(shelf).bm25.search(["Warsaw"], 1)[0]
    write_corpus(corpus, SHELF[:5])
    result = rag("index", "build", corpus, "--to", shelf, "--replace")
    assert result.returncode == 0, result.stderr
    assert open_index(shelf).manifest["passages"] == 5
    assert len(list(shelf.glob(".rag-build-*"))) == 1


def test_a_killed_first_build_is_recognised_as_half_built(tmp_path: Path, corpus: Path, rag: Command) -> None:
    half = tmp_path / "half.index"
    (half / ".rag-build-abc" / "bm25").mkdir(parents=True)
    one_line_error(rag("ask", "river?", "--index", half), "half-built", "build it again")
    assert rag("index", "build", corpus, "--to", half).returncode == 0
    assert open_index(half).manifest["passages"] == len(SHELF)


def test_an_index_that_cannot_be_written_can_be_asked_but_not_rebuilt(
    small_disk: Path, corpus: Path, rag: Command
) -> None:
    index = small_disk / "i.index"
    build(Corpus([corpus]), index)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    result = rag("ask", "What is the capital of Poland?", "--index", index)
    assert result.returncode == 0, result.stderr
    assert "Warsaw" in result.stdout.splitlines()
    one_line_error(
        rag("index", "build", corpus, "--to", index, "--replace"), "cannot be written", "Read-only file system"
    )


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path, rag: Command) -> None:
    path = write_corpus(tmp_path / "d.jsonl", [*_rows(30_000), ("7", "", "Again.")])
    one_line_error(rag("index", "build", path, "--to", tmp_path / "new.index"), "id '7' occurs twice", "--skip-bad")
    assert not (tmp_path / "new.index").exists()


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_keeps_the_old_index(small_disk: Path, corpus: Path, rag: Command) -> None:
    index = small_disk / "i.index"
    build(Corpus([corpus]), index)
    before = open_index(index).manifest
    large = _large(small_disk.parent / "large.jsonl")
    one_line_error(rag("index", "build", large, "--to", index, "--replace"), "cannot be written")
    assert open_index(index).manifest == before
    assert open_index(index).bm25.search(["Warsaw"], 1)[0]
    assert len(list(index.glob(".rag-build-*"))) == 1
