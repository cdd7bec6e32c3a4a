"""Downloads from a real server whose files change, which is busy, or wants a login; see also test_datasets.py."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.base.download import RemoteFile, download
from rag.base.errors import RagError
from tests.rag.bench.data_server import DataServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[DataServer]:
    monkeypatch.setattr("rag.base.download._FIRST_WAIT", 0.001)
    monkeypatch.setattr("rag.base.download._MAX_WAIT", 0.01)
    with DataServer() as server:
        server.bodies["/a"] = os.urandom(300_000)
        yield server


@pytest.mark.parametrize("ignores_if_range", [False, True])
def test_a_file_that_changed_at_the_server_is_begun_again(
    server: DataServer, tmp_path: Path, ignores_if_range: bool
) -> None:
    file, to = RemoteFile(f"{server.url}/a"), tmp_path / "a"
    server.tag, server.ignores_if_range = '"1"', ignores_if_range
    server.cuts = [100_000, 0, 0, 0, 0]
    with pytest.raises(RagError, match="broke off after 100,000 bytes"):
        download(file, to)
    server.tag, server.bodies["/a"] = '"2"', os.urandom(300_000)
    download(file, to)
    assert to.read_bytes() == server.bodies["/a"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_that_did_not_change_goes_on(server: DataServer, tmp_path: Path) -> None:
    server.tag = '"1"'
    server.cuts = [100_000]
    download(RemoteFile(f"{server.url}/a"), tmp_path / "a")
    assert [wanted for _, wanted in server.requests] == [None, "bytes=100000-"]
    assert (tmp_path / "a").read_bytes() == server.bodies["/a"]


def test_a_busy_server_is_asked_again_a_few_times(server: DataServer, tmp_path: Path) -> None:
    steps: list[str] = []
    server.statuses = [503, 429, 502]
    download(RemoteFile(f"{server.url}/a"), tmp_path / "a", lambda step, count, total: steps.append(step))
    assert (tmp_path / "a").read_bytes() == server.bodies["/a"]
    assert steps[0] == "downloading a (the server returned 503 Service Unavailable; waiting 0 s)"
    server.statuses = [503] * 9
    with pytest.raises(RagError, match=r"/a: the server returned 503 Service Unavailable; nothing was downloaded, try"):
        download(RemoteFile(f"{server.url}/a"), tmp_path / "b")
    assert len(server.statuses) == 5


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_file_says_where_to_log_in(server: DataServer, tmp_path: Path, status: int) -> None:
    server.statuses = [status]
    with pytest.raises(
        RagError, match=rf"returned {status} .*log in with a browser at https://x\.org and save the file"
    ):
        download(RemoteFile(f"{server.url}/a", page="https://x.org"), tmp_path / "a")
    assert len(server.requests) == 1


def test_more_than_the_disk_holds_is_refused_before_it_is_written(server: DataServer, tmp_path: Path) -> None:
    server.announced = 10**15
    with pytest.raises(RagError, match=r"a takes 1,000,000,000,000,000 bytes, [\d,]+ are free"):
        download(RemoteFile(f"{server.url}/a"), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
