"""Downloads from a real server on this machine that can break off, ignore ranges or serve something else."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from autoais.base.network import is_offline
from rag.base.errors import RagError
from rag.index.download import Prebuilt, fetch, find_prebuilt, read_table
from tests.conftest import Command, one_line_error
from tests.local_server import LocalServer, Quiet


class Server(LocalServer):
    """Serves `body` at every path; `cuts` says after how many bytes the next answers break off."""

    body = b""
    ranges = True
    status = 200

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.cuts: list[int] = []
        self.asked: list[str | None] = []

    def item(self, **changes: Any) -> Prebuilt:  # noqa: ANN401
        facts: dict[str, Any] = {
            "name": "small",
            "url": f"{self.url}/index.tar.gz",
            "checksum": f"sha256:{hashlib.sha256(self.body).hexdigest()}",
            "size": len(self.body),
        }
        return Prebuilt(**facts | changes)


class _Handler(Quiet, BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        body, status, start = self.server.body, self.server.status, 0
        if asked and self.server.ranges:
            start, status = int(asked.removeprefix("bytes=").removesuffix("-")), 206
            if start >= len(body):
                status, body = 416, b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) - start if body else 0))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        cut = self.server.cuts.pop(0) if self.server.cuts else len(body)
        self.wfile.write(body[start:][:cut])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """With an archive of 300 kB that holds something like a Lucene index; the cache is the test's own."""
    monkeypatch.setenv("RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RAG_OFFLINE", raising=False)
    monkeypatch.setattr("rag.base.download._FIRST_WAIT", 0.001)
    with Server() as server:
        server.body = packed({"index-2021/segments_1": b"one", "index-2021/_0.fdt": os.urandom(300_000)})
        yield server


def packed(members: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return whole.getvalue()


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "indexes").iterdir() if path.suffix != ".lock")


def test_an_index_is_downloaded_once_and_then_lies_in_the_cache(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int, int]] = []
    home = fetch(server.item(), lambda *step: told.append(step))
    assert home == tmp_path / "cache" / "indexes" / "small"
    assert (home / "segments_1").read_bytes() == b"one"
    assert left(tmp_path) == ["small"]
    assert told[-1] == ("downloading small.archive", len(server.body), len(server.body))
    monkeypatch.setenv("RAG_OFFLINE", "1")
    assert fetch(server.item()) == home
    assert len(server.asked) == 1


def test_a_connection_that_breaks_off_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    server.cuts = [100_000, 1, 50_000]
    assert (fetch(server.item()) / "segments_1").exists()
    assert server.asked == [None, "bytes=100000-", "bytes=100001-", "bytes=150001-"]


def test_what_a_stopped_download_left_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    server.cuts = [100_000, 0, 0, 0, 0]
    with pytest.raises(RagError, match=r"broke off after 100,000 of .* the same command continues from there"):
        fetch(server.item())
    assert left(tmp_path) == ["small.archive.part"]
    assert fetch(server.item()).is_dir()
    assert server.asked[-1] == "bytes=100000-"


def test_a_server_that_ignores_ranges_starts_again(server: Server) -> None:
    server.ranges = False
    server.cuts = [100_000, 200_000]
    assert fetch(server.item()).is_dir()
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]


def test_a_server_that_breaks_off_for_ever_is_given_up(server: Server) -> None:
    server.ranges = False
    server.cuts = [100_000] * 20
    with pytest.raises(RagError, match="broke off after 100,000"):
        fetch(server.item())
    assert len(server.asked) == 5


def test_a_file_with_a_wrong_checksum_is_kept_under_another_name(server: Server, tmp_path: Path) -> None:
    wrong = server.item(checksum="md5:" + "0" * 32)
    with pytest.raises(RagError, match=f"should be md5:{'0' * 32}, found md5:.*; it is kept as .*small.archive.wrong"):
        fetch(wrong)
    assert left(tmp_path) == ["small.archive.wrong"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [(10, r"the server sent [\d,]+ bytes of [\d,]+;"), (-10, r"the server sent more than [\d,]+ bytes")],
)
def test_a_file_of_another_size_is_not_taken(server: Server, tmp_path: Path, more: int, reason: str) -> None:
    with pytest.raises(RagError, match=reason):
        fetch(server.item(size=len(server.body) + more))
    assert left(tmp_path) == ["small.archive.wrong"]


def test_what_a_server_refuses_is_said(server: Server) -> None:
    server.status = 404
    with pytest.raises(RagError, match=r"index.tar.gz: the server returned 404 Not Found"):
        fetch(server.item())
    with pytest.raises(RagError, match=r"Connection refused; nothing was downloaded, try again later"):
        fetch(server.item(url="http://127.0.0.1:9/x"))


def test_offline_opens_no_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_OFFLINE", "1")
    with pytest.raises(RagError, match=r"small is not in .*, and this is offline: run rag index fetch small"):
        fetch(server.item())
    assert server.asked == []
    monkeypatch.setenv("RAG_OFFLINE", "0")
    assert not is_offline()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"../outside": b"x", "a/segments_1": b""}, "outside"),
        ({"/etc/outside": b"x"}, "should hold one Lucene index, found 0"),
        ({"readme": b"x"}, "should hold one Lucene index, found 0"),
        ({"a/segments_1": b"", "b/segments_1": b""}, "found 2"),
    ],
)
def test_an_archive_cannot_write_elsewhere_and_holds_one_index(
    server: Server, tmp_path: Path, members: dict[str, bytes], reason: str
) -> None:
    server.body = packed(members)
    with pytest.raises(RagError, match=f"the archive cannot be used and was removed: .*{reason}"):
        fetch(server.item())
    assert left(tmp_path) == []
    assert not list(tmp_path.rglob("outside"))


@pytest.mark.parametrize("body", [b"no archive", packed({"a/segments_1": os.urandom(5000)})[:3000]])
def test_a_broken_archive_is_one_line(server: Server, tmp_path: Path, body: bytes) -> None:
    server.body = body
    with pytest.raises(RagError, match="the archive cannot be used and was removed"):
        fetch(server.item())
    assert left(tmp_path) == []


def test_a_full_disk_keeps_what_came(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # a file that may not grow is a disk that is full
    try:
        with pytest.raises(RagError, match="cannot be written: File too large"):
            fetch(server.item())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert left(tmp_path) == ["small.archive.part"]
    assert fetch(server.item()).is_dir()
    with pytest.raises(RagError, match=r"large.archive takes 1,000,000,000,000,000,000 bytes"):
        fetch(server.item(name="large", size=10**18))


def test_the_table_that_ships_can_be_read_and_names_are_helped_with() -> None:
    table = read_table()
    assert {"miracl-v1.0-en", "wikipedia-dpr-100w"} <= set(table)
    assert find_prebuilt("miracl-v1.0-en", table).size == 17702731887
    with pytest.raises(RagError, match="no prebuilt index called 'wikipedia-dpr'; did you mean wikipedia-dpr-100w"):
        find_prebuilt("wikipedia-dpr", table)
    with pytest.raises(RagError, match="there are: enwiki-paragraphs, miracl"):
        find_prebuilt("zzz", table)


@pytest.mark.parametrize(
    "row",
    [
        'url = "file:///etc/passwd"\nchecksum = "md5:00"\nsize = 1',
        'url = "http://x/y"\nchecksum = "crc:00"\nsize = 1',
        f'url = "http://x/y"\nchecksum = "md5:{"0" * 32}"\nsize = "1"',
        "size",
    ],
)
def test_a_broken_table_is_one_line(tmp_path: Path, row: str) -> None:
    (tmp_path / "t.toml").write_text(f"[a]\n{row}\n", "utf-8")
    with pytest.raises(RagError, match=r"t.toml: cannot be read as a table of indexes"):
        read_table(tmp_path / "t.toml")


def test_the_command_prints_where_the_index_lies(server: Server, tmp_path: Path, rag: Command) -> None:
    item = server.item()
    table = tmp_path / "t.toml"
    table.write_text(f'["small"]\nurl = "{item.url}"\nchecksum = "{item.checksum}"\nsize = {item.size}\n', "utf-8")
    one_line_error(rag("index", "fetch", "smal", "--table", table), "did you mean small?")
    result = rag("index", "fetch", "small", "--table", table)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(tmp_path / "cache" / "indexes" / "small")
