"""Documents that people add: what is kept, what is told, and names that are never paths."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi")
pytest.importorskip("jinja2")
pytest.importorskip("mcp")
pytest.importorskip("prometheus_client")
pytest.importorskip("python_multipart")

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient

import rag
from rag.base.errors import IndexingError, UsageError
from rag.serve.app import create_app
from rag.serve.service import Service
from rag.serve.uploads import Documents, Upload, safe_name
from tests.rag.serve.served import make_index

TOWER = b"# The tower of Harnholm\n\nThe tower of Harnholm is 31 metres high. It was lit in 1887.\n"
Files = list[tuple[str, tuple[str, bytes]]]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    found = Service({"town": make_index(tmp_path)})
    yield found
    found.close()


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(create_app(service, uploads=("town",)), base_url="http://localhost") as found:
        yield found


def token(client: TestClient) -> str:
    found = HTMLParser(client.get("/documents").text).css_first("input[name=csrf]")
    assert found is not None
    return str(found.attributes["value"])


def send(client: TestClient, *files: tuple[str, bytes], **headers: str) -> Any:  # noqa: ANN401  (httpx's, by one name or another)
    listed: Files = [("files", one) for one in files]
    data = {"csrf": token(client)}
    return client.post("/documents/town", data=data, files=listed, headers=headers, follow_redirects=False)


def report(client: TestClient) -> str:
    """What is told of an upload once it is done."""
    for _ in range(600):
        told = client.get("/documents/town/progress").json()
        if not told["running"]:
            return " ".join(HTMLParser(told["html"]).text().split())
        time.sleep(0.05)
    raise AssertionError(told)


def test_documents_are_added_and_then_answered_from(client: TestClient, service: Service, tmp_path: Path) -> None:
    before = service.indexes["town"]
    assert send(client, ("tower.md", TOWER)).status_code == 303
    assert "Done: 1 of 1 file added." in report(client)
    assert service.indexes["town"] is not before
    assert "31 metres" in service.ask("How high is the tower of Harnholm?").answer.text
    assert "1931" in service.ask("When did the Aller bridge open?").answer.text
    assert [one.name for one in (tmp_path / "town.index.uploads").iterdir()] == ["tower.md"]
    # A second upload updates the same source; a file that is there already is told.
    send(client, ("copy.md", TOWER), ("mill.md", TOWER.replace(b"tower", b"mill").replace(b"31", b"12")))
    told = report(client)
    assert "copy.md already there" in told
    assert "1 of 2 files added" in told
    assert "12 metres" in service.ask("How high is the mill of Harnholm?").answer.text
    assert rag.verify_index(tmp_path / "town.index") == []


def test_after_a_fault_a_file_can_be_sent_again(
    client: TestClient, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    with monkeypatch.context() as patched:
        patched.setattr("rag.serve.uploads.add_to_index", broken)
        with pytest.raises(RuntimeError):
            add(service, tmp_path)
    assert list((tmp_path / "town.index.uploads").iterdir()) == []
    upload = add(service, tmp_path)
    assert upload.files == [("tower.md", True, "1 passage")]
    assert "31 metres" in service.ask("How high is the tower of Harnholm?").answer.text


def add(service: Service, folder: Path) -> Upload:
    (folder / "sent").write_bytes(TOWER)
    documents = Documents(service, "town")
    upload = documents.begin()
    documents.add(upload, [("tower.md", folder / "sent")])
    return upload


def test_what_only_the_operator_can_mend_is_logged(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise IndexingError(f"{tmp_path}: cannot be written: No space left on device")

    monkeypatch.setattr("rag.serve.uploads.add_to_index", full)
    upload = add(service, tmp_path)
    assert upload.problem == "Nothing was added: the server cannot change the index now; its log says why."
    assert f"{tmp_path}: cannot be written" in caplog.text


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(service: Service, tmp_path: Path) -> None:
    (tmp_path / "town.index.uploads").write_bytes(b"")  # no folder, so that root cannot write there either
    with pytest.raises(UsageError, match=r"town\.index\.uploads: documents cannot be added, as it cannot be written"):
        create_app(service, uploads=("town",))


def test_what_cannot_be_read_is_told_file_by_file(client: TestClient, service: Service) -> None:
    before = service.indexes["town"]
    send(client, ("a.exe", b"MZ"), ("broken.pdf", b"%PDF-1.7 nothing"), ("empty.txt", b""), ("<b>.md", b" "))
    told = report(client)
    assert "Done: 0 of 4 files added." in told
    assert "a.exe not a document" in told
    assert "broken.pdf" in told
    assert "/tmp" not in told
    assert service.indexes["town"] is before


def test_a_forged_form_adds_nothing(client: TestClient, service: Service) -> None:
    files: Files = [("files", ("tower.md", TOWER))]
    right = token(client)
    for csrf in ("", "x", right[:-1]):
        assert client.post("/documents/town", data={"csrf": csrf}, files=files).status_code == 403
    client.cookies.clear()
    assert client.post("/documents/town", data={"csrf": right}, files=files).status_code == 403
    headers = {"Origin": "https://evil.example"}
    assert send(client, ("tower.md", TOWER), **headers).status_code == 403
    assert len(list(service.indexes["town"].store.scan())) == 4


def test_limits_and_names_of_indexes(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.post("/documents/nope", data={"csrf": token(client)}).status_code == 404
    assert client.post("/documents/town", data={"csrf": token(client)}).status_code == 400
    assert send(client, *[(f"{n}.md", b"a") for n in range(101)]).status_code == 400
    monkeypatch.setattr("rag.serve.uploads.MAX_BYTES", 100)
    assert send(client, ("tower.md", TOWER * 3)).status_code == 413


def test_one_upload_at_a_time(client: TestClient, service: Service) -> None:
    documents = Documents(service, "town")
    upload = documents.begin()
    with pytest.raises(UsageError, match="try again when that is done"):
        documents.begin()
    upload.running = False
    documents.begin()


def test_indexes_that_take_no_documents_are_refused() -> None:
    service = Service({"handbook": rag.open_index()})
    for name, told in (("handbook", "is not a folder"), ("nope", "no index called")):
        with pytest.raises(UsageError, match=told):
            create_app(service, uploads=(name,))
    with TestClient(create_app(service), base_url="http://localhost") as client:
        assert client.get("/documents").status_code == 404
        assert 'href="/documents"' not in client.get("/").text


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("tower.md", "tower.md"),
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\docs\\My file (2).PDF", "My-file-2.pdf"),
        (".htaccess.txt", "htaccess.txt"),
        ("..md", "document.md"),
        ("Brücke.txt.gz", "Brücke.txt.gz"),
        ("a\x00b\n.txt", "a-b.txt"),
        ("x" * 300 + ".md", "x" * 80 + ".md"),
        ("a.exe", None),
        ("", None),
    ],
)
def test_a_file_is_stored_under_a_name_made_of_its_letters(given: str, stored: str | None) -> None:
    assert safe_name(given) == stored


@given(st.text(max_size=60), st.sampled_from(["", ".md", ".PDF", ".txt.gz", "/.md", "\\x.html"]))
def test_no_name_is_a_path(name: str, suffix: str) -> None:
    found = safe_name(name + suffix)
    if found is not None:
        assert Path(found).name == found
        assert not found.startswith((".", "-"))
        assert len(found) < 120
