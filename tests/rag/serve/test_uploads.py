"""Documents that people add: what is kept, what is told, and names that are never paths."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
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
from rag.api import add_to_index
from rag.base.errors import IndexingError, UsageError
from rag.index.files import read_files, write_files
from rag.serve.app import create_app
from rag.serve.service import Service
from rag.serve.uploads import Change, Documents, State, safe_name
from tests.rag.serve.served import BRIDGE, OVENS, make_index, running

TOWER = b"# The tower of Harnholm\n\nThe tower of Harnholm is 31 metres high. It was lit in 1887.\n"
MILL = TOWER.replace(b"tower", b"mill").replace(b"31", b"12")
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


def send(client: TestClient, *files: tuple[str, bytes], replace: str = "", **headers: str) -> Any:  # noqa: ANN401  (httpx's, by one name or another)
    listed: Files = [("files", one) for one in files]
    data = {"csrf": token(client)} | ({"replace": replace} if replace else {})
    return client.post("/documents/town", data=data, files=listed, headers=headers, follow_redirects=False)


def delete(client: TestClient, name: str) -> Any:  # noqa: ANN401
    data = {"csrf": token(client), "document": name}
    return client.post("/documents/town/delete", data=data, follow_redirects=False)


def text_of(html: str) -> str:
    return " ".join(HTMLParser(html).text().split())


def report(client: TestClient) -> str:
    """What is told of the latest changes once they are done."""
    for _ in range(600):
        told = client.get("/documents/town/progress").json()
        if not told["running"]:
            return text_of(told["html"])
        time.sleep(0.05)
    raise AssertionError(told)


def listed(client: TestClient, **parameters: str) -> str:
    """The list of documents as the page shows it."""
    found = HTMLParser(client.get("/documents", params=parameters).text).css_first("#library")
    assert found is not None
    return " ".join(found.text().split())


def stored(folder: Path) -> list[str]:
    """The names of the files in the folder of uploads."""
    return sorted(path.name for path in (folder / "town.index.uploads").iterdir() if not path.name.startswith("."))


def add(documents: Documents, name: str, text: bytes, target: str = "") -> Change:
    """Add a document, and return the change once it has ended."""
    path = documents.new_file(name)
    path.write_bytes(text)
    change = Change(name, path, target)
    documents.submit([change])
    change.finished.result(timeout=60)
    return change


def test_documents_are_added_and_then_answered_from(client: TestClient, service: Service, tmp_path: Path) -> None:
    before = service.indexes["town"]
    assert send(client, ("tower.md", TOWER)).status_code == 303
    assert "✓ added tower.md 1 passage" in report(client)
    assert service.indexes["town"] is not before
    assert "31 metres" in service.ask("How high is the tower of Harnholm?").answer.text
    assert "1931" in service.ask("When did the Aller bridge open?").answer.text
    assert stored(tmp_path) == ["tower.md"]
    assert "3 documents, 5 passages" in listed(client)
    # A second upload updates the same source; a file that is there already is told.
    send(client, ("copy.md", TOWER), ("mill.md", MILL), ("bridge.md", BRIDGE.encode()))
    told = report(client)
    assert "✗ not added copy.md already there, as tower.md" in told
    assert "✗ not added bridge.md already there, as bridge.md" in told
    assert "✓ added mill.md" in told
    assert "12 metres" in service.ask("How high is the mill of Harnholm?").answer.text
    assert rag.verify_index(tmp_path / "town.index") == []


def test_a_document_is_replaced_and_deleted(client: TestClient, service: Service, tmp_path: Path) -> None:
    send(client, ("tower.md", TOWER), ("mill.md", MILL))
    report(client)
    assert send(client, ("new version.md", TOWER.replace(b"31", b"44")), replace="tower.md").status_code == 303
    assert "✓ replaced new version.md 1 passage" in report(client)
    assert stored(tmp_path) == ["mill.md", "tower.md"]
    assert "44 metres" in service.ask("How high is the tower of Harnholm?").answer.text
    assert delete(client, "tower.md").status_code == 303
    assert "✓ deleted tower.md" in report(client)
    assert stored(tmp_path) == ["mill.md"]
    assert "3 documents, 5 passages" in listed(client)
    delete(client, "mill.md")  # the last one that was added: the index goes on without the folder
    assert "✓ deleted mill.md" in report(client)
    assert "2 documents, 4 passages" in listed(client)
    send(client, ("mill.md", MILL))
    assert "✓ added mill.md" in report(client)
    assert "3 documents, 5 passages" in listed(client)
    assert rag.verify_index(tmp_path / "town.index") == []


def test_only_what_was_added_can_be_replaced_and_deleted(client: TestClient, tmp_path: Path) -> None:
    send(client, ("tower.md", TOWER))
    report(client)
    for name in ("bridge.md", "../documents/bridge.md", "town.index.uploads/tower.md", "", ".lock"):
        assert delete(client, name).status_code == 404
        if name:
            assert send(client, ("tower.md", MILL), replace=name).status_code == 404
    assert send(client, ("tower.md", MILL), ("mill.md", MILL), replace="tower.md").status_code == 400
    send(client, ("tower.txt", MILL), replace="tower.md")
    assert "not a .md file" in report(client)
    assert stored(tmp_path) == ["tower.md"]
    assert (tmp_path / "documents" / "bridge.md").exists()


def test_the_last_text_of_an_index_stays(tmp_path: Path) -> None:
    service = Service({"town": make_index(tmp_path)})
    with TestClient(create_app(service, uploads=("town",)), base_url="http://localhost") as client:
        send(client, ("tower.md", TOWER))
        report(client)
        rag.remove_from_index(tmp_path / "town.index", tmp_path / "documents")
        service.reopen()
        delete(client, "tower.md")
        assert "✗ not deleted tower.md an index needs a document with text" in report(client)
        assert stored(tmp_path) == ["tower.md"]


def test_only_the_owner_can_read_what_was_added(client: TestClient, tmp_path: Path) -> None:
    send(client, ("tower.md", TOWER))
    report(client)
    folder = tmp_path / "town.index.uploads"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "tower.md").stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


def test_after_a_fault_a_file_can_be_sent_again(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    documents = Documents(service, "town")
    with monkeypatch.context() as patched:
        patched.setattr("rag.serve.uploads.add_to_index", broken)
        change = add(documents, "tower.md", TOWER)
    assert change.state is State.FAILED
    assert change.message == "the server cannot change the index now; its log says why"
    assert "secret" in caplog.text
    assert stored(tmp_path) == []
    change = add(documents, "tower.md", TOWER)
    assert (change.state, change.message) == (State.DONE, "1 passage")
    assert "31 metres" in service.ask("How high is the tower of Harnholm?").answer.text


def test_a_replacement_that_fails_leaves_the_old_document(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise IndexingError(f"{tmp_path}: cannot be written: No space left on device")

    documents = Documents(service, "town")
    add(documents, "tower.md", TOWER)
    add(documents, "mill.md", MILL)
    monkeypatch.setattr("rag.serve.uploads.update_index", full)
    assert add(documents, "tower.md", TOWER + b"More.\n", "tower.md").state is State.FAILED
    change = Change("mill.md", None, "mill.md")
    documents.submit([change])
    assert change.finished.result(timeout=60) is State.FAILED
    assert {name: (documents.uploads / name).read_bytes() for name in stored(tmp_path)} == {
        "tower.md": TOWER,
        "mill.md": MILL,
    }


KILLED = """
import os, sys, rag.serve.uploads as uploads
from pathlib import Path
from rag.api import open_index
from rag.serve.service import Service
folder, name, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
documents = uploads.Documents(Service({"town": open_index(folder / "town.index")}), "town")
def die(*_, **__): os._exit(9)
uploads.add_to_index = uploads.update_index = uploads.remove_from_index = die
path = None
if kind != "delete":
    path = documents.new_file(name)
    path.write_bytes(sys.stdin.buffer.read())
target = "" if kind == "add" else name
documents.submit([uploads.Change(name, path, target)])
documents._worker.join()
"""


def kill_during(kind: str, folder: Path, name: str, text: bytes = b"") -> None:
    """Run a server that is killed after it has changed the folder, and before it changes the index."""
    command = [sys.executable, "-c", KILLED, str(folder), name, kind]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, input=text, env=environment, timeout=120, check=False).returncode == 9


def test_a_server_that_is_killed_leaves_everything_as_it_was(service: Service, tmp_path: Path) -> None:
    kill_during("add", tmp_path, "tower.md", TOWER)
    assert stored(tmp_path) == ["tower.md"]
    documents = Documents(service, "town")  # the next start
    assert stored(tmp_path) == []
    assert add(documents, "tower.md", TOWER).state is State.DONE  # not "already there"
    kill_during("replace", tmp_path, "tower.md", MILL)
    kill_during("add", tmp_path, "mill.md", MILL)
    kill_during("delete", tmp_path, "tower.md")
    documents = Documents(service, "town")
    assert stored(tmp_path) == ["tower.md"]
    assert (documents.uploads / "tower.md").read_bytes() == TOWER
    assert len(list(documents.uploads.glob(".incoming-*"))) == 1  # its own, and none of the killed


def test_a_change_is_finished_if_the_server_is_killed_after_the_index(service: Service, tmp_path: Path) -> None:
    documents = Documents(service, "town")
    add(documents, "tower.md", TOWER)
    add(documents, "mill.md", MILL)
    path = documents.new_file("tower.md")
    path.write_bytes(TOWER.replace(b"31", b"44"))
    with patch("rag.serve.uploads._Store.settle"):  # as if it was killed before
        documents.submit([Change("tower.md", path, "tower.md"), Change("mill.md", None, "mill.md")])
        while documents.running:
            time.sleep(0.01)
    documents = Documents(service, "town")
    assert stored(tmp_path) == ["tower.md"]
    assert b"44 metres" in (documents.uploads / "tower.md").read_bytes()
    assert not [path for path in documents.uploads.iterdir() if path.name in (".change.json", ".removed")]


def test_an_upload_whose_client_hangs_up_leaves_nothing(tmp_path: Path) -> None:
    make_index(tmp_path)
    head = (
        "POST /documents/town HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
        'Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\nContent-Disposition: form-data; name="files"; '
        'filename="tower.md"\r\n\r\n'
    )
    with running(tmp_path / "town.index", "--allow-uploads", "town") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as leaving:
            leaving.sendall(head.encode() + TOWER * 100)
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as leaving:
            leaving.sendall(
                b"PUT /v1/documents/tower.md HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + TOWER
            )
        time.sleep(1)
        assert stored(tmp_path) == []
        assert list((tmp_path / "town.index.uploads").glob(".incoming-*/*")) == []
        assert len(httpx.get(f"{server.url}/v1/documents").json()["documents"]) == 2


# --- waiting and cancelling ---


def test_a_change_that_waits_and_one_that_is_made_are_cancelled(
    client: TestClient, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(*arguments: Any, progress: Any, **options: Any) -> Any:  # noqa: ANN401
        begun.set()
        may_go_on.wait(20)
        return add_to_index(*arguments, progress=progress, **options)

    monkeypatch.setattr("rag.serve.uploads.add_to_index", slowly)
    before = service.indexes["town"]
    send(client, ("tower.md", TOWER), ("mill.md", MILL))
    assert begun.wait(20)
    send(client, ("ovens2.md", OVENS.replace("Lund", "Lind").encode()))
    page = client.get("/documents?follow=1").text
    assert 'http-equiv="refresh"' in page  # for a browser without the script
    forms = {" ".join(form.text().split()): form for form in HTMLParser(page).css("#changes form")}
    assert len(forms) == 3
    for name in ("tower.md", "ovens2.md"):
        fields = forms[f"Cancel {name}"].css("input")
        data = {str(field.attributes["name"]): field.attributes["value"] for field in fields}
        assert client.post("/documents/town/cancel", data=data, follow_redirects=False).status_code == 303
    assert service.indexes["town"] is before
    may_go_on.set()
    told = report(client)
    assert "– cancelled tower.md" in told
    assert "– cancelled ovens2.md" in told
    assert "✓ added mill.md" in told
    assert stored(tmp_path) == ["mill.md"]
    assert 'http-equiv="refresh"' not in client.get("/documents?follow=1").text


def test_the_end_of_the_server_cancels_what_is_being_made(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object, progress: Any, **__: object) -> None:  # noqa: ANN401
        while True:
            progress("reading", 1, 2)
            time.sleep(0.01)

    monkeypatch.setattr("rag.serve.uploads.add_to_index", endless)
    with TestClient(create_app(service, uploads=("town",)), base_url="http://localhost") as client:
        send(client, ("tower.md", TOWER))
    assert [path.name for path in (tmp_path / "town.index.uploads").iterdir()] == [".lock"]


# --- what is refused ---


def test_what_only_the_operator_can_mend_is_logged(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise IndexingError(f"{tmp_path}: cannot be written: No space left on device")

    monkeypatch.setattr("rag.serve.uploads.add_to_index", full)
    change = add(Documents(service, "town"), "tower.md", TOWER)
    assert change.message == "the server cannot change the index now; its log says why"
    assert f"{tmp_path}: cannot be written" in caplog.text


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(service: Service, tmp_path: Path) -> None:
    (tmp_path / "town.index.uploads").write_bytes(b"")  # no folder, so that root cannot write there either
    with pytest.raises(UsageError, match=r"town\.index\.uploads: documents cannot be added, as it cannot be written"):
        create_app(service, uploads=("town",))


def test_what_cannot_be_read_is_told_file_by_file(client: TestClient, service: Service) -> None:
    before = service.indexes["town"]
    send(client, ("a.exe", b"MZ"), ("broken.pdf", b"%PDF-1.7 nothing"), ("empty.txt", b""), ("<b>.md", b" "))
    told = report(client)
    assert told.count("✗ not added") == 4
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
    for path, data in (("delete", {"document": "tower.md"}), ("cancel", {"change": "x"})):
        assert client.post(f"/documents/town/{path}", data=data | {"csrf": right}).status_code == 403
    headers = {"Origin": "https://evil.example"}
    assert send(client, ("tower.md", TOWER), **headers).status_code == 403
    assert len(list(service.indexes["town"].store.scan())) == 4


def test_limits_and_names_of_indexes(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.post("/documents/nope", data={"csrf": token(client)}).status_code == 404
    assert client.post("/documents/town", data={"csrf": token(client)}).status_code == 400
    assert send(client, *[(f"{n}.md", b"a") for n in range(101)]).status_code == 400
    monkeypatch.setattr("rag.serve.document_pages.MAX_BYTES", 100)
    assert send(client, ("tower.md", TOWER * 3)).status_code == 413


def test_indexes_that_take_no_documents_are_refused() -> None:
    service = Service({"handbook": rag.open_index()})
    for name, told in (("handbook", "is not a folder"), ("nope", "no index called")):
        with pytest.raises(UsageError, match=told):
            create_app(service, uploads=(name,))
    with TestClient(create_app(service), base_url="http://localhost") as client:
        assert client.get("/documents").status_code == 404
        assert 'href="/documents"' not in client.get("/").text


# --- the list ---


def test_the_list_says_where_documents_are_and_what_was_left_out(tmp_path: Path) -> None:
    make_index(tmp_path)
    (tmp_path / "documents" / "broken.pdf").write_bytes(b"%PDF-1.7")
    rag.update_index(tmp_path / "town.index")
    service = Service({"town": rag.open_index(tmp_path / "town.index"), "handbook": rag.open_index()})
    with TestClient(create_app(service), base_url="http://localhost") as client:
        page = client.get("/documents").text
        assert 'href="/documents"' in client.get("/").text
        assert 'method="post"' not in page  # nothing can be changed
        assert 'id="add"' not in page
        rows = [" ".join(row.text(separator=" ").split()) for row in HTMLParser(page).css(".library > li")]
        date = datetime.now(UTC).date().isoformat()
        assert rows[0] == f"bridge.md in documents on the server 1 kB {date} 3 passages"
        assert rows[1].startswith("broken.pdf in documents on the server ○ left out could not be read 8 bytes")
        assert 'href="/p/town/bridge.md%231"' in page
        assert "broken.pdf" in listed(client, show="left-out")
        assert "ovens.md" not in listed(client, show="left-out")
        assert "No document matches." in listed(client, q="bridge pdf")
        assert client.get("/documents?index=handbook").status_code == 404
        assert client.get("/documents?order=evil").status_code == 400
    service.close()


def test_a_list_of_ten_thousand_documents_is_quick(client: TestClient, service: Service) -> None:
    index = service.indexes["town"]
    assert index.build is not None
    (first, *_) = read_files(index.build)
    records = [replace(first, number=number, name=f"{number}.md", within=f"{number}.md") for number in range(10_000)]
    write_files(index.build, records)
    assert "10,000 documents" in listed(client)
    start = time.perf_counter()
    for parameters in ({}, {"page": "200"}, {"q": "77"}, {"order": "newest", "page": "100"}, {"q": "no such"}):
        listed(client, **parameters)
    assert (time.perf_counter() - start) / 5 < 0.25
    assert "Page 200 of 200" in listed(client, page="999")
    assert "1 of them shown" in listed(client, q="9999")


# --- the API ---


def test_programs_add_list_replace_and_delete_documents(client: TestClient, service: Service, tmp_path: Path) -> None:
    added = client.put("/v1/documents/The tower.md", content=TOWER)
    assert added.status_code == 200, added.text
    document = added.json()["document"]
    assert (document["upload"], document["passages"], added.json()["passages"]) == ("The-tower.md", 1, 5)
    assert "31 metres" in service.ask("How high is the tower of Harnholm?").answer.text
    assert client.put("/v1/documents/The tower.md", content=TOWER).json() == added.json()  # the same again
    found = client.get("/v1/documents", params={"index": "town"}).json()
    assert (found["total"], found["checksum"]) == (3, added.json()["checksum"])
    assert [entry["upload"] for entry in found["documents"]] == [None, None, "The-tower.md"]
    assert found["documents"][0]["place"] == "documents"
    assert [entry["name"] for entry in client.get("/v1/documents?q=oven&limit=1").json()["documents"]] == ["ovens.md"]
    replaced = client.put("/v1/documents/The-tower.md", content=TOWER.replace(b"31", b"44")).json()
    assert replaced["document"]["upload"] == "The-tower.md"
    assert "44 metres" in service.ask("How high is the tower of Harnholm?").answer.text
    deleted = client.delete("/v1/documents/The-tower.md").json()
    assert (deleted["document"], deleted["passages"]) == (None, 4)
    assert client.get("/v1/documents").json()["total"] == 2
    assert stored(tmp_path) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "told"),
    [
        ("PUT", "/v1/documents/a.exe", b"MZ", 400, "'a.exe' is not a document"),
        ("PUT", "/v1/documents/broken.pdf", b"%PDF-1.7", 400, "broken.pdf: "),
        ("PUT", "/v1/documents/a.md?index=nope", b"# A", 404, "no index called 'nope' takes documents"),
        ("PUT", "/v1/documents/copy.md", BRIDGE.encode(), 400, "copy.md: already there, as bridge.md"),
        ("DELETE", "/v1/documents/bridge.md", b"", 404, "no document 'bridge.md' was added to town"),
        ("DELETE", "/v1/documents/..%2Fdocuments%2Fbridge.md", b"", 404, ""),
        ("GET", "/v1/documents?index=nope", b"", 404, "no index called 'nope'"),
        ("GET", "/v1/documents?limit=0", b"", 422, "limit should be at least 1"),
        ("GET", "/v1/documents?ordr=name", b"", 422, "no field 'ordr', did you mean 'order'?"),
    ],
)
def test_what_the_api_refuses(
    client: TestClient, tmp_path: Path, method: str, path: str, body: bytes, status: int, told: str
) -> None:
    found = client.request(method, path, content=body)
    assert (found.status_code, told in found.json()["error"]["message"]) == (status, True), found.text
    assert (stored(tmp_path), (tmp_path / "documents" / "bridge.md").exists()) == ([], True)


def test_the_api_takes_large_files_up_to_a_limit(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.put("/v1/documents/large.md", content=TOWER + b" " * (5 << 20)).status_code == 200
    monkeypatch.setattr("rag.serve.documents_api.MAX_BYTES", 100)
    assert client.put("/v1/documents/larger.md", content=MILL * 3).status_code == 413
    assert client.put("/v1/documents/larger.md", content=iter([MILL] * 3)).status_code == 413


def test_a_fault_of_the_server_is_not_the_callers(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise IndexingError("secret: cannot be written: No space left on device")

    monkeypatch.setattr("rag.serve.uploads.add_to_index", full)
    found = client.put("/v1/documents/tower.md", content=TOWER)
    assert found.status_code == 503
    assert "secret" not in found.text


def test_pages_of_other_sites_change_no_documents(service: Service) -> None:
    app = create_app(service, uploads=("town",), cors=("https://app.example.org",))
    with TestClient(app, base_url="http://localhost") as client:
        evil = {"Origin": "https://evil.example"}
        assert client.put("/v1/documents/tower.md", content=TOWER, headers=evil).status_code == 403
        asked = {"Origin": "https://app.example.org", "Access-Control-Request-Method": "PUT"}
        assert client.options("/v1/documents/tower.md", headers=asked).status_code == 400  # the browser sends no PUT


# --- names ---


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
