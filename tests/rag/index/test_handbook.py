"""The index of the handbook: built once in the cache folder, and in memory where that cannot be."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoais.base.io.locks import file_lock
from rag.base.errors import UserError
from rag.index import handbook
from rag.index.folder import LOCK
from rag.index.index import Index
from rag.index.open import open_index

ROOT = Path(__file__).parents[3]
QUERY = "citation precision"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in the cache, which is not there yet."""
    monkeypatch.setenv("RAG_CACHE", str(tmp_path / "cache" / "rag"))
    assert handbook.cache_folder().is_relative_to(tmp_path)
    return handbook.cache_folder()


@pytest.fixture(scope="module")
def hits() -> list[str]:
    """What a search of the pages finds."""
    return ids(handbook.index_in_memory(handbook.list_pages()))


def ids(index: Index) -> list[str]:
    return [hit.passage.id for hit in index.bm25.search([QUERY], 10)[0]]


def test_the_index_is_built_once_and_again_when_a_page_changes(
    folder: Path, hits: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = open_index(None)
    assert (first.name, first.build, ids(first)) == ("handbook", None, hits)
    (build,) = folder.glob(".rag-build-*")
    with monkeypatch.context() as patch:
        patch.setattr(handbook, "build_handbook", None)
        assert open_index(None).manifest == first.manifest
    pages = tmp_path / "pages" / "guide"
    pages.mkdir(parents=True)
    (pages / "mill.md").write_text("# Mill\n\nThe citation precision of the mill.\n", "utf-8")
    monkeypatch.setattr(handbook, "shipped_folder", lambda kind: pages.parent)
    changed = open_index(None)
    assert ids(changed) == ["guide/mill.md#1"]
    assert ids(first) == hits  # whoever has the old one open keeps reading it
    assert [path.name for path in folder.glob(".rag-build-*") if path == build] == [build.name]


def damage(folder: Path) -> None:
    (path,) = folder.glob(".rag-build-*/passages.sqlite")
    path.write_bytes(path.read_bytes()[:5000])


def half_build(folder: Path) -> None:
    """What a build that is killed leaves."""
    (folder / "manifest.json").unlink()


def no_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format_version": 2')


@pytest.mark.parametrize("harm", [damage, half_build, no_manifest])
def test_an_index_that_is_damaged_is_built_again(folder: Path, hits: list[str], harm: object) -> None:
    open_index(None)
    assert callable(harm)
    harm(folder)
    assert ids(open_index(None)) == hits
    fingerprint = handbook.compute_fingerprint(handbook.list_pages())
    assert open_index(folder).manifest[handbook.FINGERPRINT] == fingerprint


@pytest.fixture
def unwritable(folder: Path) -> Iterator[Path]:
    """A file where the folder of the cache should be: a mode would not stop root."""
    folder.parent.parent.mkdir(parents=True)
    folder.parent.write_text("")
    yield folder
    assert folder.parent.is_file()


def test_a_cache_that_cannot_be_written_is_done_without(unwritable: Path, hits: list[str]) -> None:
    assert ids(open_index(None)) == hits
    assert not unwritable.exists()


def test_while_another_process_builds_the_index_is_in_memory(folder: Path, hits: list[str]) -> None:
    folder.mkdir(parents=True)
    with file_lock(folder / LOCK, UserError("busy")):
        assert ids(open_index(None)) == hits
    assert not (folder / "manifest.json").exists()
    assert ids(open_index(None)) == hits
    assert (folder / "manifest.json").exists()


def test_two_processes_at_once_both_find_the_passages(folder: Path, hits: list[str]) -> None:
    code = (
        f"from rag.index.open import open_index; print(open_index(None).bm25.search([{QUERY!r}], 1)[0][0].passage.id)"
    )
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in processes] == [hits[0]] * 3
    assert (folder / "manifest.json").exists()


def test_an_index_in_the_wheel_is_used_unless_it_cannot_be_opened(
    folder: Path, hits: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shipped = tmp_path / "shipped"
    handbook.build_handbook(shipped, handbook.list_pages())
    monkeypatch.setattr(handbook, "find_shipped_index", lambda: shipped)
    assert ids(open_index(None)) == hits
    assert not folder.exists()
    shutil.rmtree(next(shipped.glob(".rag-build-*/bm25")))
    assert ids(open_index(None)) == hits
    assert folder.exists()
