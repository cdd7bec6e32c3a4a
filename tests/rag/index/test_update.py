"""An index one lives with: after any changes it answers like one built anew, and a kill at any moment loses nothing."""

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag as library
from rag.base.errors import FormatError, IndexingError, UserError
from rag.base.types import Passage
from rag.documents.corpus import Corpus
from rag.documents.sources import SourceFile
from rag.index import rebuild as updating
from rag.index.build import build
from rag.index.files import read_files
from rag.index.folder import leftovers
from rag.index.index import Index
from rag.index.open import open_index
from rag.index.rebuild import Changes
from rag.index.update import add, remove, update
from rag.index.verify import verify
from rag.retrieval import carry_parts
from tests.conftest import SHELF, Command, one_line_error, write_corpus

ROOT = Path(__file__).parents[3]
QUERIES = ["river", "lamp kettle", "north tower", "the town has a kettle"]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of documents: three at the top, one below."""
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    for name in ("a", "b", "c", "deep/d"):
        write(folder, f"{name}.md", f"The river {name} runs north of the town.", f"A lamp of {name}.")
    return folder


@pytest.fixture
def home(docs: Path) -> Path:
    """An index of it."""
    build(Corpus([docs]), docs.parent / "docs.index")
    return docs.parent / "docs.index"


def write(folder: Path, name: str, *paragraphs: str) -> Path:
    """A Markdown file with a section for each paragraph, so that each is a passage of its own."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    sections = (f"## Part {number}\n\n{words(paragraph)}\n" for number, paragraph in enumerate(paragraphs))
    path.write_text(f"# {Path(name).stem}\n\n" + "\n".join(sections), "utf-8")
    return path


def words(text: str) -> str:
    """The text with other words after it, always the same, so that it is long enough to be a passage by itself."""
    draw = random.Random(text)
    return f"{text} {' '.join(f'so{draw.randrange(3000)}' for _ in range(75))}."


def contents(index: Index) -> dict[str, Any]:
    return {passage.id: passage for passage in index.store.scan()}


def ids(folder: Path, query: str, k: int = 10) -> list[str]:
    return [hit.passage.id for hit in open_index(folder).bm25.search([query], k)[0]]


def same_index(updated: Path, fresh: Path, *, scores: bool = True) -> None:
    """Assert that an updated index is whole and answers like one that was built anew."""
    assert verify(updated) == []
    one, other = open_index(updated), open_index(fresh)
    assert contents(one) == contents(other)
    for name in ("passages", "untitled", "checksum", "skipped", "sources", "format"):
        assert one.manifest[name] == other.manifest[name], name
    ours, theirs = (
        [
            (r.source, r.name, r.within, r.passages, r.checksum, r.stamp.sha256, r.twin, r.repeats)
            for r in read_files(build_of(folder))
        ]
        for folder in (updated, fresh)
    )
    assert ours == theirs
    for query in QUERIES:
        hits, expected = (index.bm25.search([query], 1000)[0] for index in (one, other))
        assert {hit.passage.id for hit in hits} == {hit.passage.id for hit in expected}
        if scores:
            assert [hit.passage for hit in hits] == [hit.passage for hit in expected]
            assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], rel=1e-5)


def build_of(folder: Path) -> Path:
    found = open_index(folder).build
    assert found is not None
    return found


# --- what an update does ---------------------------------------------------------------------------------------


def test_an_update_reads_what_changed_and_says_so(docs: Path, home: Path, rag: Command) -> None:
    assert rag("index", "update", home).stderr == "4 unchanged\n"
    write(docs, "a.md", "The kettle stands in the town.")
    write(docs, "new/e.md", "A kettle again.")
    (docs / "b.md").unlink()
    result = rag("index", "update", home)
    assert (result.returncode, result.stderr) == (0, "1 changed, 1 new, 1 deleted, 2 unchanged\n")
    assert sorted(ids(home, "kettle")) == ["a.md#1", "new/e.md#1"]
    assert len(list(home.glob(".rag-build-*"))) == 1
    build(Corpus([docs]), docs.parent / "fresh.index")
    same_index(home, docs.parent / "fresh.index")


def test_a_file_that_cannot_be_read_here_any_more_keeps_its_passages(
    docs: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = docs / "pages.txt"
    pages.write_text("The Zephyr is a kind of bridge over a cold river.\n")
    update(home)
    (docs / "added.md").write_text("# Added\n\nA lamp stands beside the door of the house.\n")

    def lacks_program(path: Path) -> str | None:
        return "pandoc, which is not installed" if path.name == "pages.txt" else None

    monkeypatch.setattr("rag.documents.folders.missing_program", lacks_program)
    monkeypatch.setattr("rag.index.compare.missing_program", lacks_program)
    changes = update(home)
    assert (changes.new, changes.deleted) == (("added.md",), ())
    assert library.search("Zephyr bridge", home)[0].passage.id.startswith("pages.txt")
    pages.write_text("Another text, which nobody can read here.\n")
    assert update(home).deleted == ("pages.txt",)


def test_the_vectors_of_an_update_are_told_too(docs: Path, home: Path) -> None:
    library.add_retriever(home, "static")
    told: list[tuple[str, int, int]] = []
    write(docs, "a.md", "A kettle.\n\n## Towers\n\nA tower.")
    library.update_index(home, progress=lambda *step: told.append(step))
    assert told == [("reading", 1, 1), ("static.v1 encoded", 2, 2)]


def test_from_python_an_update_takes_strings_and_tells_the_names(docs: Path, home: Path) -> None:
    told: list[tuple[str, int, int]] = []
    write(docs, "a.md", "A kettle.")
    write(docs, "e.md", "A tower.")
    changes = library.update_index(str(home), progress=lambda *step: told.append(step))
    assert changes == Changes(changed=("a.md",), new=("e.md",), unchanged=3)
    assert str(changes) == "1 changed, 1 new, 3 unchanged"
    assert told == [("reading", 1, 2), ("reading", 2, 2)]
    assert library.remove_from_index(home, "e.md").deleted == ("e.md",)
    assert library.verify_index(str(home)) == []
    with pytest.raises(
        library.UsageError, match=r"include should be a list of globs, found one string; write \['\*'\]"
    ):
        library.update_index(home, include="*")
    with pytest.raises(library.UsageError, match="source should be a path"):
        library.add_to_index(home, [5])  # type: ignore[list-item]


def test_a_file_that_was_only_touched_is_unchanged_and_one_of_the_same_size_and_time_is_not(
    docs: Path, home: Path
) -> None:
    os.utime(docs / "a.md", ns=(10**18, 10**18))
    assert str(update(home)) == "4 unchanged"
    status = (docs / "b.md").stat()
    (docs / "b.md").write_text((docs / "b.md").read_text("utf-8").replace("river", "tower"), "utf-8")
    os.utime(docs / "b.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert update(home).changed == ("b.md",)  # it was so new when it was read that its time proved nothing
    assert ids(home, "tower") == ["b.md#1"]


def test_old_files_are_not_read_to_see_that_they_are_the_same(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in docs.rglob("*.md"):
        os.utime(path, ns=(10**18, 10**18))
    build(Corpus([docs]), docs.parent / "old.index")
    monkeypatch.setattr("rag.index.files.hashlib", None)
    assert str(update(docs.parent / "old.index")) == "4 unchanged"


def test_a_file_that_changes_while_it_is_read_is_read_again(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Corpus.read_file

    def slow(self: Corpus, file: SourceFile) -> Iterator[tuple[str, Passage]]:
        yield from read(self, file)
        if file.name == "a.md":
            write(docs, "a.md", "A kettle came meanwhile.")

    with monkeypatch.context() as context:
        context.setattr(Corpus, "read_file", slow)
        build(Corpus([docs]), docs.parent / "i.index")
    assert update(docs.parent / "i.index").changed == ("a.md",)
    assert ids(docs.parent / "i.index", "kettle") == ["a.md#1"]


def test_a_vector_database_in_the_folder_of_an_index_stays_there(docs: Path, home: Path) -> None:
    vectors = home / "databases" / "qdrant" / "vectors.bin"
    vectors.parent.mkdir(parents=True)
    vectors.write_bytes(b"1")
    write(docs, "e.md", "The river e runs north of the town.")
    assert library.update_index(home)
    library.build_index(docs, home, replace=True)
    assert vectors.exists()
    assert leftovers(home) == 0


def test_passages_that_stay_keep_their_rows(docs: Path, home: Path) -> None:
    written: list[int] = []

    def spy(old: Index, new: Index, rows: Any) -> list[str]:  # noqa: ANN401
        written.extend(rows)
        return []

    library.build_index(docs, home, retrievers=["static"], replace=True)
    before = {passage.id: row for row, passage in enumerate(open_index(home).store.scan())}
    write(docs, "b.md", "The river b runs north of the town.", "A lamp, no kettle.")
    update(home, carry=spy)
    assert written == [before["b.md#2"]]
    assert before == {passage.id: row for row, passage in enumerate(open_index(home).store.scan())}


# --- sources and globs -----------------------------------------------------------------------------------------


def test_sources_are_added_and_removed(docs: Path, home: Path, tmp_path: Path, rag: Command) -> None:
    write(tmp_path / "other/docs", "a.md", "A kettle.")
    notes = write(tmp_path / "notes", "todo.md", "A kettle to mend.")
    assert rag("index", "add", home, tmp_path / "other/docs", notes).stderr == "2 new, 4 unchanged\n"
    assert sorted(ids(home, "kettle")) == ["docs/a.md#1", "notes/todo.md#1"]
    one_line_error(rag("index", "add", home, notes), "is a source of", "rag index update")
    one_line_error(rag("index", "add", home, docs / "a.md"), "is a source of", "rag index update")
    one_line_error(rag("index", "add", home, tmp_path), "is a source of")
    one_line_error(rag("index", "update", home, tmp_path / "else"), "is not a source of", "rag index add")
    assert rag("index", "remove", home, notes, tmp_path / "other/docs").stderr == "2 deleted, 4 unchanged\n"
    build(Corpus([docs]), tmp_path / "fresh.index")
    same_index(home, tmp_path / "fresh.index")


def test_two_sources_of_one_name_do_not_meet(home: Path, tmp_path: Path) -> None:
    for place in ("x", "y"):
        write(tmp_path / place / "docs", "a.md", f"A kettle of {place}.")
    add(home, [tmp_path / "x/docs"])
    add(home, [tmp_path / "y/docs"])
    assert sorted(ids(home, "kettle")) == ["docs/a.md#1", "y/docs/a.md#1"]
    build(Corpus([tmp_path / "x/docs", tmp_path / "y/docs"]), tmp_path / "both.index")
    assert sorted(ids(tmp_path / "both.index", "kettle")) == ["docs/a.md#1", "y/docs/a.md#1"]


def test_files_that_were_removed_stay_out(docs: Path, home: Path, rag: Command) -> None:
    one_line_error(rag("index", "remove", home, "nothing*.md"), "has no source or file", "rag index show")
    assert remove(home, ["deep", str(docs / "b.md")]).deleted == ("b.md", "deep/d.md")
    write(docs, "b.md", "A kettle.")
    write(docs, "deep/e.md", "A kettle.")
    assert str(update(home)) == "2 unchanged"
    assert open_index(home).manifest["roots"][0]["removed"] == ["deep", "/b.md"]
    assert str(update(home, exclude=["nothing"])) == "2 unchanged"
    assert rag("index", "update", home, "--exclude", "").stderr == "2 unchanged\n"
    one_line_error(rag("index", "add", home, docs / "b.md"), "rag index update --restore reads it")
    assert rag("index", "update", home, "--restore").stderr == "3 new, 2 unchanged\n"
    with pytest.raises(IndexingError, match="would have no passages left"):
        remove(home, [docs])
    with pytest.raises(IndexingError, match="would have no passages left"):
        remove(home, ["*.md"])


def test_a_name_with_brackets_means_this_file(docs: Path, home: Path) -> None:
    write(docs, "a[1].md", "The river has brackets.")
    write(docs, "a1.md", "The river has none.")
    update(home)
    remove(home, ["a[1].md"])
    assert "a1.md#1" in ids(home, "river")
    assert "a[1].md#1" not in ids(home, "river")
    write(docs, "b[1].md", "The river has brackets again.")
    update(home)
    remove(home, [docs / "b[1].md"])
    assert "b[1].md#1" not in ids(home, "river")


def test_globs_choose_files_and_are_remembered(docs: Path, tmp_path: Path, rag: Command) -> None:
    write(docs, "old/f.md", "A kettle.")
    (docs / "g.txt").write_text(words("A kettle in plain text."), "utf-8")
    home = tmp_path / "g.index"
    built = rag("index", "build", docs, "--to", home, "--include", "*.md", "--exclude", "old/**")
    assert built.returncode == 0, built.stderr
    assert [record.name for record in read_files(build_of(home))] == ["a.md", "b.md", "c.md", "deep/d.md"]
    write(docs, "old/h.md", "A kettle.")
    write(docs, "i.md", "A kettle.")
    assert rag("index", "update", home).stderr == "1 new, 4 unchanged\n"
    assert rag("index", "update", home, "--include", "*.txt", "--include", "i.md").stderr == (
        "1 new, 4 deleted, 1 unchanged\n"
    )
    one_line_error(rag("index", "update", home, "--include", "*.pdf"), "holds no documents", "rag index remove")
    one_line_error(rag("index", "build", docs, "--to", tmp_path / "x.index", "--include", "*.tex"), "--include")


def test_an_index_inside_its_source_never_reads_itself(docs: Path, rag: Command) -> None:
    inside, names = docs / "x.index", sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    for command in (
        ("build", docs, "--to", inside),
        ("build", docs, "--to", inside, "--replace"),
        ("build", "--to", inside, "--retriever", "static"),
        ("update", inside),
    ):
        assert rag("index", *command).returncode == 0
        assert sorted(record.name for record in read_files(build_of(inside))) == names


def test_a_source_that_is_gone_or_empty_is_not_forgotten_in_silence(docs: Path, home: Path, rag: Command) -> None:
    before = contents(open_index(home))
    docs.rename(docs.with_name("moved"))
    one_line_error(rag("index", "update", home), "does not exist", f"rag index remove {home} {docs}")
    docs.mkdir()  # where a disk was not mounted
    one_line_error(rag("index", "update", home), "holds no documents", "rag index remove")
    assert contents(open_index(home)) == before


def test_an_index_that_moved_with_its_sources_finds_them(docs: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    docs.rename(tmp_path / "there/docs")
    moved = home.rename(tmp_path / "there/docs.index")
    write(tmp_path / "there/docs", "a.md", "A kettle.")
    assert str(update(moved)) == "1 changed, 3 unchanged"
    alone = moved.rename(tmp_path / "alone.index")
    write(tmp_path / "there/docs", "a.md", "A tower.")
    assert update(alone).changed == ("a.md",)


def test_an_index_that_does_not_know_its_sources_says_how_to_go_on(home: Path, rag: Command) -> None:
    path = home / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in manifest.items() if name not in ("roots", "files")}))
    one_line_error(rag("index", "update", home), "does not know its sources", "rag index build --replace")
    one_line_error(rag("index", "show", home), "does not know its sources")
    assert ids(home, "river")  # it can still be asked
    for name in ("path", "absolute"):  # was a ValueError of the file system
        path.write_text(json.dumps(manifest | {"roots": [manifest["roots"][0] | {name: "x\0\ud800"}]}))
        with pytest.raises(IndexingError, match=f"field '{name}' is not a path"):
            library.update_index(home)
    path.write_text(json.dumps(manifest | {"roots": [{"path": 5}]}))
    one_line_error(rag("index", "update", home), "is damaged", "build the index again")
    one_line_error(rag("index", "update", home.with_name("gone.index")), "no index at")
    assert not home.with_name("gone.index").exists()


def test_an_index_that_exists_is_not_replaced_in_silence(docs: Path, home: Path, rag: Command) -> None:
    before = open_index(home).manifest
    one_line_error(rag("index", "build", docs, "--to", home), "already exists", "add", "update", "--replace")
    with pytest.raises(IndexingError, match="already exists"):
        library.build_index(docs, home)
    assert open_index(home).manifest == before
    assert rag("index", "build", docs / "deep", "--to", home, "--replace").returncode == 0
    assert open_index(home).manifest["passages"] == 2


# --- corpus files ----------------------------------------------------------------------------------------------


def test_corpus_files_are_added_and_read_again_only_when_they_changed(tmp_path: Path, shelf: Path) -> None:
    more = write_corpus(tmp_path / "more.jsonl", [("e#1", "Oder", "The Oder is a river too.")])
    assert len(add(shelf, [more]).new) == 1
    os.utime(more)
    assert str(update(shelf)) == "2 unchanged"
    write_corpus(more, [("e#1", "Oder", "The Oder is a river too."), ("f#1", "Neisse", "The Neisse joins the river.")])
    assert len(update(shelf).changed) == 1
    build(Corpus([tmp_path / "shelf.jsonl", more]), tmp_path / "fresh.index")
    assert contents(open_index(shelf)) == contents(open_index(tmp_path / "fresh.index"))
    assert open_index(shelf).manifest["checksum"] == open_index(tmp_path / "fresh.index").manifest["checksum"]


def test_an_id_that_is_taken_is_an_error_or_is_counted_and_comes_back(tmp_path: Path, shelf: Path) -> None:
    before = contents(open_index(shelf))
    more = write_corpus(tmp_path / "more.jsonl", [("a#1", "Oder", "The Oder."), ("f#1", "Neisse", "The Neisse.")])
    with pytest.raises(FormatError, match=r"more\.jsonl:1: id 'a#1' occurs twice"):
        add(shelf, [more])
    assert contents(open_index(shelf)) == before
    added = add(shelf, [more], skip_bad=True)
    assert "id 'a#1' occurs twice" in added.skipped[0]
    assert open_index(shelf).manifest["skipped"] == 1
    write_corpus(tmp_path / "shelf.jsonl", SHELF[1:])
    update(shelf)
    assert contents(open_index(shelf))["a#1"].title == "Oder"
    assert open_index(shelf).manifest["skipped"] == 0


def test_ids_may_move_between_files_that_change_together(tmp_path: Path) -> None:
    one, two = (tmp_path / name for name in ("one.jsonl", "two.jsonl"))
    write_corpus(one, SHELF[:3])
    write_corpus(two, SHELF[3:])
    build(Corpus([one, two]), tmp_path / "i.index")
    write_corpus(one, SHELF[4:])
    write_corpus(two, SHELF[:4])
    update(tmp_path / "i.index")
    build(Corpus([one, two]), tmp_path / "fresh.index")
    same_index(tmp_path / "i.index", tmp_path / "fresh.index")


# --- the same as built anew ------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    ["x/a.md", "x/a 2.md", "x/b.md", "x/sub/a 1.md", "x/sub/c.md", "x/sub.md", "y/a.md", "y/d.md", "y/e.txt"]
)  # of titles with other numbers, a passage that repeats is left out
TEXTS = st.lists(
    st.sampled_from(["river north", "lamp", "kettle kettle", "tower of the town", "north lamp"]), max_size=4
)
ROUNDS = st.lists(st.dictionaries(NAMES, st.none() | TEXTS, min_size=1), min_size=1, max_size=5)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
@given(rounds=ROUNDS)
@settings(max_examples=8)
def test_after_any_changes_an_index_is_as_one_that_was_built_anew(exact: bool, rounds: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as context:
        base = Path(folder)
        sources, home = [base / "x", base / "y"], base / "i.index"
        for source in sources:
            write(source, "always.md", "A river.", "A lamp in the north.")
            (source / "plain.txt").write_text(words("The kettle has no heading."), "utf-8")
        build(Corpus(sources), home)
        if not exact:  # the path of large indexes, in which deleted passages count in the scores for a while
            context.setattr(updating, "EXACT", 0)
            context.setattr(updating, "_DEAD_SHARE", 1e9)
            context.setattr(updating, "_FRESH_SHARE", 1e9)
        for number, changes in enumerate(rounds):
            for name, paragraphs in changes.items():
                if paragraphs is None:
                    (base / name).unlink(missing_ok=True)
                else:
                    write(base, name, *paragraphs)
            update(home)
            build(Corpus(sources), base / f"fresh-{number}.index")
            same_index(home, base / f"fresh-{number}.index", scores=exact)


@pytest.mark.slow
def test_in_a_large_index_few_deleted_passages_change_few_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, draw = tmp_path / "docs", random.Random(1)
    names = [f"{number:03}.md" for number in range(400)]
    vocabulary = [f"word{number}" for number in range(300)]

    def fill(name: str) -> None:
        write(docs, name, *(" ".join(draw.choices(vocabulary, k=12)) for _ in range(5)))

    for name in names:
        fill(name)
    home = tmp_path / "docs.index"
    build(Corpus([docs]), home)
    monkeypatch.setattr(updating, "EXACT", 0)
    for name in names[7:11]:
        fill(name)
    assert len(update(home).changed) == 4
    manifest = open_index(home).manifest
    assert manifest["dead"] > 0
    build(Corpus([docs]), tmp_path / "fresh.index")
    ours, theirs = (open_index(folder).bm25.search(vocabulary, 10) for folder in (home, tmp_path / "fresh.index"))
    for mine, expected in zip(ours, theirs, strict=True):
        assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in expected], rel=0.02)
    for name in names[20:40]:
        fill(name)
    update(home)
    assert open_index(home).manifest["dead"] == 0  # too many by now: the postings were written anew
    build(Corpus([docs]), tmp_path / "fresh.index", replace=True)
    same_index(home, tmp_path / "fresh.index")


def test_without_hard_links_files_are_copied(docs: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError("no hard links here")

    monkeypatch.setattr(os, "link", refused)
    write(docs, "e.md", "A kettle.")  # one more file needs no deletion, so the postings are changed, not written anew
    monkeypatch.setattr(updating, "_FRESH_SHARE", 1)
    update(home)
    build(Corpus([docs]), docs.parent / "fresh.index")
    same_index(home, docs.parent / "fresh.index")


# --- parts -----------------------------------------------------------------------------------------------------


def test_parts_follow_an_update_and_only_new_rows_are_encoded(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "i.index"
    library.build_index(docs, home, retrievers=["static"])
    write(docs, "a.md", "A kettle on the tower.")
    write(docs, "deep/z.md", "Another lamp in the north.")
    (docs / "b.md").unlink()
    encoded: list[str] = []
    static = type(library.open_retriever("static", home)._encoder)  # type: ignore[attr-defined]
    passages = static.passages

    def spy(self: Any, texts: list[str]) -> Any:  # noqa: ANN401
        encoded.extend(texts)
        return passages(self, texts)

    with monkeypatch.context() as context:
        context.setattr(static, "passages", spy)
        assert library.update_index(home).left_out == ()
    assert sum("kettle" in text for text in encoded) == 1
    assert not any("river c" in text for text in encoded)
    library.build_index(docs, tmp_path / "fresh.index", retrievers=["static"])
    for query in QUERIES:
        ours, theirs = (
            library.search(query, folder, retriever="static") for folder in (home, tmp_path / "fresh.index")
        )
        assert ours == theirs
    assert library.verify_index(home) == []


def test_a_part_that_cannot_follow_is_left_out_and_named(docs: Path, tmp_path: Path, rag: Command) -> None:
    home = tmp_path / "i.index"
    library.build_index(docs, home, retrievers=["static"])
    (part,) = home.glob(".rag-build-*/parts/*/part.json")
    part.write_text(part.read_text().replace('"encoder": "static', '"encoder": "another'))
    write(docs, "a.md", "A kettle.")
    result = rag("index", "update", home)
    assert result.stderr == (
        f"static.v1 was left out: rag index build --to {home} --retriever NAME adds it again\n1 changed, 3 unchanged\n"
    )
    one_line_error(
        rag("search", "kettle", "--index", home, "--retriever", "static"),
        "has no data of 'static.v1' yet",
    )
    assert rag("index", "build", "--to", home, "--retriever", "static").returncode == 0
    assert rag("search", "kettle", "--index", home, "--retriever", "static").returncode == 0
    assert verify(home) == []


def test_a_part_is_not_added_to_an_index_that_is_being_updated_or_was(docs: Path, home: Path) -> None:
    from rag.index.retriever_config import read_config
    from rag.retrieval import dense

    stale = open_index(home)
    write(docs, "a.md", "A kettle.")

    def meanwhile(*_: object) -> None:
        with pytest.raises(IndexingError, match="is being built or updated by another process"):
            dense.add(stale, read_config("static"), None, lambda done, what: None)

    update(home, progress=meanwhile)
    with pytest.raises(IndexingError, match="was updated since it was opened"):
        dense.add(stale, read_config("static"), None, lambda done, what: None)


# --- several at once, kills, full disks --------------------------------------------------------------------------


def test_two_updates_at_once_are_one_line_for_the_second(docs: Path, home: Path, rag: Command) -> None:
    write(docs, "a.md", "A kettle.")
    seen = []

    def second(*_: object) -> None:
        seen.append(1)
        one_line_error(rag("index", "update", home), "another build is running in it")
        one_line_error(rag("index", "remove", home, "b.md"), "another build is running in it")
        one_line_error(rag("index", "build", docs, "--to", home, "--replace"), "another build is running in it")

    assert update(home, progress=second).changed == ("a.md",)
    assert seen


def test_whoever_has_the_index_open_keeps_reading_it(docs: Path, home: Path) -> None:
    opened = open_index(home)
    before = contents(opened)
    for number in range(3):
        write(docs, "a.md", f"A kettle for the {number}th time.")
        update(home)
        assert contents(opened) == before
        assert opened.store.get("a.md#1") == before["a.md#1"]
        assert [hit.passage for hit in opened.bm25.search(["river"], 1)[0]]
        assert not opened.bm25.search(["kettle"], 1)[0]
    assert len(list(home.glob(".rag-build-*"))) == 2  # the one that is open, and the newest
    assert leftovers(home) > 0
    del opened
    write(docs, "a.md", "A tower.")
    update(home)
    assert len(list(home.glob(".rag-build-*"))) == 1
    assert leftovers(home) == 0


def test_an_index_that_is_replaced_while_it_is_opened_is_opened_all_the_same(
    docs: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag.index.manifest import read_manifest as real

    times: list[int] = []

    def late(folder: Path) -> dict[str, Any]:
        manifest = real(folder)
        if not times:
            times.append(1)
            write(docs, "a.md", "A kettle.")
            update(home)
        return manifest

    monkeypatch.setattr("rag.index.open.read_manifest", late)
    assert open_index(home).bm25.search(["kettle"], 1)[0]


@pytest.mark.slow
def test_kills_at_any_moment_leave_the_old_index_or_the_new_one(tmp_path: Path) -> None:
    docs, home, draw = tmp_path / "docs", tmp_path / "docs.index", random.Random(7)
    for number in range(150):
        write(docs, f"{number:03}.md", f"The river of {number}.", f"A lamp of {number}.")
    library.build_index(docs, home, retrievers=["static"])
    before, killed, longest = contents(open_index(home)), 0, 0.0
    for turn in range(9):
        for number in draw.sample(range(150), 5):
            write(docs, f"{number:03}.md", f"The kettle of {number} in turn {turn}.", f"A lamp of {number}.")
        fresh = tmp_path / f"fresh-{turn}.index"
        build(Corpus([docs]), fresh)
        after = contents(open_index(fresh))
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", "from rag.commands.main import main; main()", "index", "update", str(home)],
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"},
            stderr=subprocess.DEVNULL,
        )
        if turn:
            # Half of the kills fall into the moments in which a build folder is there.
            while turn % 2 and len(list(home.glob(".rag-build-*"))) < 2 and process.poll() is None:
                time.sleep(0.001)
            time.sleep(draw.uniform(0, 0.4 * longest if turn % 2 else longest))
            process.send_signal(signal.SIGKILL)
        process.wait(60)
        if not turn:
            longest = time.monotonic() - started
        killed += process.returncode == -signal.SIGKILL
        assert verify(home) == []
        found = contents(open_index(home))
        assert found in (before, after)
        assert library.search("river", home, retriever="static", k=3)
        before = found
        shutil.rmtree(fresh)
    assert killed >= 3
    update(home, carry=carry_parts)
    assert leftovers(home) == 0
    assert len(list(home.glob(".rag-build-*"))) == 1
    assert contents(open_index(home)) == after


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_keeps_the_old_index(small_disk: Path, docs: Path, rag: Command) -> None:
    home = small_disk / "i.index"
    library.build_index(docs, home, retrievers=["static"])
    before = contents(open_index(home))
    draw = random.Random(3)
    for size in (200, 400, 600, 1200):  # thousands of words: the disk is full at one step or another
        write(
            docs,
            "large.md",
            *(" ".join(f"w{draw.randrange(10**9)}" for _ in range(500)) for _ in range(2 * size // 10)),
        )
        result = rag("index", "update", home)
        if result.returncode:
            one_line_error(result, "cannot be written")
            assert contents(open_index(home)) == before
        before = contents(open_index(home))
        assert verify(home) == []
        assert len(list(home.glob(".rag-build-*"))) == 1
    assert result.returncode == 2


def test_what_a_kill_left_is_told_and_swept_before_room_is_needed(small_disk: Path, docs: Path, rag: Command) -> None:
    home = small_disk / "i.index"
    build(Corpus([docs]), home)
    dead = home / ".rag-build-dead"
    dead.mkdir()
    (dead / "passages.sqlite").write_bytes(b"x" * 3_000_000)
    assert json.loads(rag("index", "info", home).stdout)["leftover_bytes"] == 3_000_000
    draw = random.Random(3)
    write(docs, "large.md", *(" ".join(f"w{draw.randrange(10**9)}" for _ in range(500)) for _ in range(40)))
    assert rag("index", "update", home).returncode == 0
    assert not dead.exists()
    dead.mkdir()
    (dead / "passages.sqlite").write_bytes(b"x" * 2_500_000)
    assert rag("index", "build", docs, "--to", home, "--replace", "--retriever", "bm25").returncode == 0
    assert not dead.exists()
    assert json.loads(rag("index", "info", home).stdout)["leftover_bytes"] == 0


def test_nothing_is_swept_beside_a_damaged_manifest(docs: Path, home: Path) -> None:
    whole = (home / "manifest.json").read_bytes()
    (home / "manifest.json").write_text("{")
    with pytest.raises(FormatError):
        build(Corpus([docs], "miracl"), home, replace=True)
    (home / "manifest.json").write_bytes(whole)
    assert ids(home, "river")


def test_a_file_that_cannot_be_read_is_named_and_counted(docs: Path, home: Path, rag: Command) -> None:
    write(docs, "a.md", "A kettle.")
    (docs / "bad.pdf").write_bytes(b"%PDF-1.4 no more")
    result = rag("index", "update", home)
    assert result.returncode == 0
    assert "1 changed, 1 new" in result.stderr
    assert "bad.pdf" in result.stderr
    assert ids(home, "kettle") == ["a.md#1"]
    assert rag("index", "update", home).stderr == "5 unchanged\n"  # it is not read again until it changes
    assert "bad.pdf: 0 passages, 1 skipped" in rag("index", "show", home).stdout


def test_a_document_that_is_too_large_is_never_read(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (docs / "large.txt").open("wb") as file:
        file.truncate(65 << 20)
    monkeypatch.setattr("rag.index.files.sha256_file", None)
    home = docs.parent / "large.index"
    corpus = Corpus([docs])
    build(corpus, home)
    assert corpus.report.reasons == [f"{docs / 'large.txt'}: 65 MiB; a document may have at most 64 MiB"]
    os.utime(docs / "large.txt")
    assert str(update(home)) == "5 unchanged"


def test_a_file_that_repeats_another_one_comes_and_goes_with_it(docs: Path, home: Path, rag: Command) -> None:
    shutil.copy(docs / "b.md", docs / "z.md")
    assert rag("index", "update", home).stderr == "1 new, 4 unchanged\n"
    assert "z.md: 0 passages, repeats b.md" in rag("index", "show", home).stdout
    assert "no passage of z.md is in" in rag("index", "show", home, "z.md").stderr
    assert "sketch" not in rag("index", "show", home, "--json").stdout
    assert rag("index", "update", home).stderr == "5 unchanged\n"
    shutil.copy(docs / "b.md", docs / "a0.md")  # before b.md, which now repeats it
    assert rag("index", "update", home).stderr == "1 changed, 1 new, 4 unchanged\n"
    build(Corpus([docs]), docs.parent / "fresh.index")
    same_index(home, docs.parent / "fresh.index")
    (docs / "a0.md").unlink()
    assert update(home) == Changes(changed=("b.md",), deleted=("a0.md",), unchanged=4)
    (docs / "b.md").unlink()
    assert update(home) == Changes(changed=("z.md",), deleted=("b.md",), unchanged=3)
    assert remove(home, ["z.md"]).deleted == ("z.md",)
    build(Corpus([docs], exclude=["z.md"]), docs.parent / "fresh.index", replace=True)
    same_index(home, docs.parent / "fresh.index")


def test_a_passage_that_other_files_hold_comes_and_goes_with_them(docs: Path, home: Path, rag: Command) -> None:
    for number in (1, 2, 3):
        write(docs, f"day {number}.md", f"The tower of day {number}.", "The kettle is for all.")
    assert rag("index", "update", home).stderr == "3 new, 4 unchanged\n"
    assert ids(home, "kettle") == ["day 1.md#2"]
    assert "day 2.md: 1 passage, 1 more in other files" in rag("index", "show", home).stdout
    write(docs, "day 1.md", "The tower of day 1.")
    assert update(home) == Changes(changed=("day 1.md", "day 2.md"), unchanged=5)
    assert ids(home, "kettle") == ["day 2.md#2"]
    write(docs, "day 0.md", "The kettle.", "The kettle is for all.")
    assert update(home) == Changes(changed=("day 2.md",), new=("day 0.md",), unchanged=6)
    build(Corpus([docs]), docs.parent / "fresh.index")
    same_index(home, docs.parent / "fresh.index")


def test_the_source_of_a_page_comes_in_when_the_page_goes(docs: Path, home: Path) -> None:
    (docs / "_sources").mkdir()
    (docs / "page.html").write_text(f"<title>Page</title><p>{words('A kettle.')}</p>", "utf-8")
    (docs / "_sources/page.md.txt").write_text(words("A kettle as it was written."), "utf-8")
    assert len(update(home).new) == 2
    assert ids(home, "kettle") == ["page.html#1"]
    build(Corpus([docs]), docs.parent / "fresh.index")
    same_index(home, docs.parent / "fresh.index")
    (docs / "page.html").unlink()
    update(docs.parent / "fresh.index")
    update(home)
    assert ids(home, "kettle") == ids(docs.parent / "fresh.index", "kettle") == ["_sources/page.md.txt#1"]


# --- looking at indexes ----------------------------------------------------------------------------------------


def test_indexes_are_listed(
    docs: Path, home: Path, tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    library.build_index(docs / "deep", "indexes/deep.index", retrievers=["static"])
    (tmp_path / "half.index" / ".rag-build-x").mkdir(parents=True)
    lines = rag("index", "list").stdout.splitlines()
    assert [re.sub(r"\d+ kB", "SIZE", line) for line in lines] == [
        "docs.index: 8 passages of docs, SIZE",
        "half.index: the index at half.index is half-built (no manifest.json): build it again",
        "indexes/deep.index: 2 passages of deep, with static.v1, SIZE",
    ]
    listed = json.loads(rag("index", "list", docs, "--json").stdout)
    assert [one["path"] for one in listed] == ["indexes/deep.index"]
    result = rag("index", "list", docs, RAG_INDEX=str(home))
    assert result.stdout.startswith(f"{home}: 8 passages")
    shutil.rmtree("indexes")
    empty = rag("index", "list", docs)
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "no index in" in empty.stderr


def test_the_files_of_an_index_and_the_passages_of_a_file_are_shown(docs: Path, home: Path, rag: Command) -> None:
    result = rag("index", "show", home)
    assert result.stdout.splitlines() == [f"{name}.md: 2 passages" for name in ("a", "b", "c", "deep/d")]
    assert result.stderr == "4 files, 8 passages\n"
    write(docs, "b.md", *(f"Kettle {number}." for number in range(12)))
    update(home)
    rows = [json.loads(line) for line in rag("index", "show", home, docs / "b.md", "--json").stdout.splitlines()]
    assert [row["id"] for row in rows] == [f"b.md#{number}" for number in range(1, 13)]
    assert "1. deep" not in rag("index", "show", home, "b.md").stdout
    assert "The river deep/d runs" in rag("index", "show", home, "deep/d.md").stdout
    assert [json.loads(rag("index", "show", home, rows[0]["id"], "--json").stdout)] == rows[:1]
    one_line_error(rag("index", "show", home, "nope.md"), "has no file 'nope.md'", "lists its files")
    first = json.loads(rag("index", "show", home, "--json").stdout.splitlines()[0])
    assert (first["name"], first["passages"], len(first["stamp"]["sha256"])) == ("a.md", 2, 64)


@pytest.mark.parametrize("change", ["update", "build"])
def test_a_disk_that_is_full_once_the_manifest_is_in_place_loses_nothing(
    docs: Path, home: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    before, real = build_of(home).name, os.fsync
    write(docs, "new.md", "The lighthouse is new.")

    def full(descriptor: int) -> None:
        if json.loads((home / "manifest.json").read_text())["build"] != before:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        update(home) if change == "update" else library.build_index(docs, home, replace=True)
    monkeypatch.undo()
    assert build_of(home).name != before
    assert library.search("lighthouse", open_index(home))[0].passage.id == "new.md#1"
    assert verify(home) == []


def test_a_damaged_file_is_found(docs: Path, tmp_path: Path, rag: Command) -> None:
    home = tmp_path / "i.index"
    library.build_index(docs, home, retrievers=["static"])
    result = rag("index", "verify", home)
    assert (result.returncode, result.stderr) == (0, f"{home} is whole\n")
    files = [path for path in build_of(home).rglob("*") if path.is_file() and not path.name.startswith(".")]
    checked = [path for path in files if path.name != "part.json"]
    assert len(checked) >= 10
    for path in checked:
        whole = path.read_bytes()
        if not whole:
            continue
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 4
        path.write_bytes(flipped)
        failed = rag("index", "verify", home)
        assert failed.returncode == 2, path
        assert path.name in failed.stderr
        assert failed.stderr.splitlines()[-1].startswith("error: ")
        assert "--replace" in failed.stderr.splitlines()[-1]
        path.write_bytes(whole[:-1])
        assert rag("index", "verify", home).returncode == 2
        if "parts" not in path.parts:
            one_line_error(rag("search", "river", "--index", home), path.name, "build the index again")
        path.write_bytes(whole)
    assert rag("index", "verify", home).returncode == 0


def test_passages_that_were_rewritten_are_found(home: Path, rag: Command) -> None:
    import sqlite3

    path = build_of(home) / "passages.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE passage SET text = ? WHERE row = 1", (b"\xff\x00",))
    result = rag("index", "verify", home)
    assert result.returncode == 2
    assert "has 1 rows with a value that is not text" in result.stderr
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM passage WHERE row = 7")
    assert "has 7 rows up to 6, not 8" in rag("index", "verify", home).stderr
