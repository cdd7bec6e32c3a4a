"""Passages in the files that they were read from; other files are never given out."""

import gzip
import json
import os
import shutil
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

import rag
from rag.base.errors import NotFoundError, UsageError
from rag.base.types import Citation
from rag.index.files import FILES
from rag.index.index import Index
from rag.index.manifest import MANIFEST
from rag.index.originals import Originals, text_fragment
from tests.local_server import LocalServer, Quiet
from tests.rag.documents.pdfs import Print, make_pdf

FIRST, SECOND = "The old ferry crosses the river.", "A new bridge follows the harbour."
PDF = make_pdf([[Print("Nothing of note.", 700)], [Print(FIRST, 700), Print(SECOND, 660)]])
SECRET = b"# Secret\n\nThe vault of Harnholm opens with the number 4711.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a PDF and a text, beside a file that is not in it."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "ferry.pdf").write_bytes(PDF)
    (docs / "notes.md").write_text("# Notes\n\nThe mayor wept.\n", "utf-8")
    (tmp_path / "secret.md").write_bytes(SECRET)
    return docs


@pytest.fixture
def index(folder: Path) -> Index:
    return rag.build_index(folder, folder.parent / "docs.index")


def span_of(text: str, part: str) -> tuple[int, int]:
    return text.index(part), text.index(part) + len(part)


def passage_of(index: Index, name: str) -> rag.Passage:
    passage = index.store.get(f"{name}#1")
    assert passage is not None
    return passage


def test_a_citation_is_located_on_the_page_of_its_words(index: Index, folder: Path) -> None:
    passage = passage_of(index, "ferry.pdf")
    assert passage.page == 1  # where it begins
    start, end = span_of(passage.text, SECOND)
    original = rag.locate(Citation(passage.id, start, end, SECOND), index)
    (page,) = original.pages
    assert (original.name, original.page_count, original.note, original.url) == ("ferry.pdf", 2, "", "")
    assert (page.number, page.width, page.height) == (2, 600, 800)
    ((left, top, right, bottom),) = page.boxes
    assert 0.08 < left < 50 / 600 < right < 0.5
    assert 130 / 800 < top < bottom < 145 / 800  # the line stands 660 points above the bottom
    assert [len(page.boxes) for page in rag.locate(passage, folder.parent / "docs.index").pages] == [1, 2]
    assert rag.locate(passage.id, index, [(start, end)]) == original


def test_an_index_without_page_numbers_finds_the_page(index: Index) -> None:
    passage = rag.Passage("ferry.pdf#1", "ferry", f"{FIRST}\n\n{SECOND}")
    (page,) = Originals(index).locate(passage).pages
    assert (page.number, len(page.boxes)) == (2, 2)


def test_words_that_are_not_found_show_the_page_and_say_so(index: Index) -> None:
    passage = passage_of(index, "ferry.pdf")
    lost = rag.Passage(passage.id, "", "Nobody has ever heard of these words.", page=2)
    original = Originals(index).locate(lost)
    assert [(page.number, page.boxes) for page in original.pages] == [(2, ())]
    assert original.note == "the words were not found on the page, which shows where the passage begins"
    part = rag.Passage(passage.id, "", f"{FIRST} Nobody has heard.", page=2)
    assert Originals(index).locate(part).note == "some of the words were not found on the page"


def test_a_packed_pdf_is_located_too(tmp_path: Path) -> None:
    (tmp_path / "ferry.pdf.gz").write_bytes(gzip.compress(PDF))
    index = rag.build_index(tmp_path / "ferry.pdf.gz", tmp_path / "one.index")
    assert [page.number for page in rag.locate("ferry.pdf.gz#1", index).pages] == [1, 2]


def test_other_documents_have_no_pages(index: Index) -> None:
    original = rag.locate("notes.md#1", index)
    assert (original.name, original.pages, original.page_count) == ("notes.md", (), 0)


@pytest.mark.parametrize(
    ("passage", "message"),
    [("ferry.pdf#9", "the index has no passage 'ferry.pdf#9'"), ("../secret.md#1", "the index has no passage")],
)
def test_a_passage_that_is_not_there_has_no_original(index: Index, passage: str, message: str) -> None:
    with pytest.raises(NotFoundError, match=message):
        rag.locate(passage, index)
    with pytest.raises(NotFoundError, match="does not know the file of passage"):
        Originals(index).file_of(passage.replace("ferry", "other"))
    with pytest.raises(UsageError, match="passage should be an id"):
        rag.locate(3, index)  # type: ignore[arg-type]


def test_passages_of_a_corpus_have_no_original(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"_id": "corpus.jsonl#1", "title": "", "text": FIRST}) + "\n", "utf-8")
    index = rag.build_index(corpus, tmp_path / "corpus.index", format="beir")
    with pytest.raises(NotFoundError, match="the index does not know the file of passage 'corpus"):
        rag.locate("corpus.jsonl#1", index)
    with pytest.raises(NotFoundError, match="does not know the file"):  # it ships without its files
        rag.locate(rag.search("citation")[0].passage)


def change(path: Path) -> None:
    path.write_bytes(PDF.replace(b"ferry", b"boats"))


def link_to_a_copy_elsewhere(path: Path) -> None:
    path.rename(path.parents[1] / "moved.pdf")
    path.symlink_to(path.parents[1] / "moved.pdf")


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (change, "ferry.pdf has changed since it was read: rag index update reads it again"),
        (Path.unlink, "ferry.pdf is no longer where it was read"),
        (link_to_a_copy_elsewhere, "ferry.pdf is no longer where it was read"),
        (make_pipe, "ferry.pdf is no longer where it was read"),
        (make_folder, "ferry.pdf is no longer where it was read"),
    ],
)
def test_a_file_that_is_not_as_it_was_is_not_given_out(
    index: Index, folder: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(folder / "ferry.pdf")
    with pytest.raises(NotFoundError, match=message):
        rag.locate("ferry.pdf#1", index)


def test_a_file_that_is_only_moved_with_its_index_is_given_out(index: Index, folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    shutil.move(folder, there)
    shutil.move(tmp_path / "docs.index", there)
    assert Originals(rag.open_index(there / "docs.index")).file_of("ferry.pdf#1").data == PDF


@pytest.mark.parametrize("within", ["../secret.md", "/{tmp_path}/secret.md", "link.md", "sub/../../secret.md"])
def test_an_index_that_names_another_file_does_not_get_it(index: Index, folder: Path, within: str) -> None:
    """Not even with the checksum of the file, which nobody knows who has not read it."""
    assert index.build is not None
    (folder / "link.md").symlink_to(folder.parent / "secret.md")
    rows = [json.loads(line) for line in (index.build / FILES).read_text("utf-8").splitlines()]
    hidden = Originals(rag.build_index(folder.parent / "secret.md", folder.parent / "secret.index"))
    for row in rows:
        row["within"] = within.format(tmp_path=str(folder.parent).strip("/"))
        row["stamp"]["sha256"] = hidden.file_of("secret.md#1").checksum
    (index.build / FILES).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.raises(NotFoundError):
        Originals(index).file_of("notes.md#1")


def test_an_index_that_names_another_folder_does_not_get_its_files(index: Index, folder: Path) -> None:
    assert index.build is not None
    home = index.build.parent
    (folder.parent / "other").mkdir()
    (folder.parent / "other" / "notes.md").write_bytes(SECRET)
    manifest = json.loads((home / MANIFEST).read_text("utf-8"))
    manifest["roots"][0] |= {"path": "../other", "absolute": str(folder.parent / "other")}
    with pytest.raises(NotFoundError, match=r"notes\.md has changed"):
        Originals(Index(index.name, index.build, manifest, index.store, index.postings)).file_of("notes.md#1")


class Site(Quiet, BaseHTTPRequestHandler):
    """Serves a page and a PDF."""

    def do_GET(self) -> None:
        body = (
            PDF if self.path == "/ferry.pdf" else b"<title>Notes</title><p>The mayor wept, as well-known, in 1931.</p>"
        )
        self.send_response(200 if self.path in ("/notes", "/ferry.pdf") else 404)
        self.send_header("Content-Type", "application/pdf" if self.path == "/ferry.pdf" else "text/html")
        self.end_headers()
        self.wfile.write(body)


def test_the_address_of_a_web_page_leads_to_the_words(tmp_path: Path) -> None:
    with LocalServer(Site) as server:
        addresses = [f"{server.url}/notes", f"{server.url}/ferry.pdf"]
        index = rag.build_index(addresses, tmp_path / "web.index", allow_network=True)
    location = {passage.title: rag.locate(passage, index) for passage in index.store.scan()}
    assert location["Notes"].url == f"{addresses[0]}#:~:text=The%20mayor%20wept%2C%20as%20well%2Dknown%2C%20in%201931."
    pdf = next(original for title, original in location.items() if title != "Notes")
    assert (pdf.url, [page.number for page in pdf.pages]) == (f"{addresses[1]}#page=1", [1, 2])


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("", ""),
        ("  ", ""),
        ("- Bring a map & rope.", "#:~:text=Bring%20a%20map%20%26%20rope."),
        ("one two three four five six\n\nseven eight", "#:~:text=one%20two%20three%20four%20five,seven%20eight"),
        ("Town: Verden | Bridges: 3", "#:~:text=Verden"),
        (" ".join("abcdefghijklm"), "#:~:text=a%20b%20c%20d%20e,i%20j%20k%20l%20m"),
    ],
)
def test_a_link_to_a_text_has_its_first_and_last_words(text: str, fragment: str) -> None:
    assert text_fragment(text, [(0, len(text))]) == fragment
