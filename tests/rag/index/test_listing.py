"""The files of an index as a list: what was read of each, and what was left out."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

import rag
from rag.base.errors import IndexingError

TEXT = "The mill of Oldenby was built by Karl Lind in 1820. It has two wheels and a roof of slate.\n"


def test_each_file_is_listed_with_what_was_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "mill.md").write_text(f"# The mill\n\n{TEXT}", "utf-8")
    (folder / "copy.md").write_text(f"# The mill\n\n{TEXT}", "utf-8")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7")
    (folder / "empty.txt").write_bytes(b"")
    os.utime(folder / "mill.md", (1_000_000_000, 1_000_000_000))
    index = rag.build_index(folder, tmp_path / "town.index")
    found = {document.name: document for document in rag.list_documents(index)}
    assert list(found) == ["broken.pdf", "copy.md", "empty.txt", "mill.md"]
    mill = found["mill.md"]
    assert mill.path == folder / "mill.md"
    assert mill.size == mill.path.stat().st_size
    assert mill.modified == datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
    assert [found[name].passages for name in found] == [0, 1, 0, 0]
    assert mill.left_out == "1 passage is in other documents"
    assert found["broken.pdf"].left_out == "could not be read"
    assert found["empty.txt"].left_out == "no text"
    assert found["copy.md"].left_out == ""
    mill.path.unlink()
    assert rag.list_documents(tmp_path / "town.index")[3].modified == mill.modified  # as it was read


def test_lines_of_a_corpus_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    corpus = tmp_path / "towns.jsonl"
    corpus.write_text('{"_id": "1", "text": "Arlen lies on the river."}\n{"_id": 2}\n', "utf-8")
    index = rag.build_index(corpus, tmp_path / "town.index", format="beir", skip_bad=True)
    (document,) = rag.list_documents(index)
    assert (document.name, document.passages, document.left_out) == ("towns.jsonl", 1, "1 line could not be read")


def test_an_index_that_does_not_know_its_files_says_so() -> None:
    with pytest.raises(IndexingError, match="does not know its files: rag index build"):
        rag.list_documents()
