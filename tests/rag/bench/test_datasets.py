"""Public data sets: the table that ships, and downloads from a real server on this machine."""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.jsonl import dumps
from rag.base.download import unpack
from rag.base.errors import RagError, UsageError
from rag.bench import fetch_dataset, list_benchmarks, list_datasets, read_benchmark
from rag.bench.benchmark import list_label_sets
from rag.bench.corpora import corpus_files
from tests.conftest import Command, one_line_error
from tests.rag.bench.data_server import DataServer as Server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("RAG_OFFLINE", raising=False)
    monkeypatch.setattr("rag.base.download._FIRST_WAIT", 0.001)
    with Server() as server:
        server.bodies["/a.jsonl"] = os.urandom(300_000)
        yield server


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# --- the table ------------------------------------------------------------------------------------------------------


def test_every_benchmark_of_the_table_exists_and_reads_a_file_of_its_data_set() -> None:
    benchmarks = {
        one.name: [
            *(file.file for file in one.files),
            *([one.texts.path] if one.texts else []),
            *(corpus.path for corpus in one.corpora.values()),
            *one.other_corpora.values(),
        ]
        for one in list_benchmarks()
    }
    benchmarks |= {labels.name: [file.file for file in labels.files] for labels in list_label_sets()}
    for dataset in list_datasets():
        paths = {path for file in dataset.files for path in (file.to, str(Path(file.to).parent))}
        paths |= {path for benchmark in benchmarks.values() for path in benchmark for file in dataset.files
                  if file.unpack and Path(path).is_relative_to(file.path(""))}  # fmt: skip
        for name in dataset.benchmarks:
            assert paths & set(benchmarks[name]), (dataset.name, name)


def test_what_benchmarks_and_data_sets_say_of_a_file_is_the_same() -> None:
    checksums = {file.to: file.remote.checksum for dataset in list_datasets() for file in dataset.files}
    benchmark_files = (file for benchmark in list_benchmarks() for file in benchmark.files)
    for holder in (*benchmark_files, *(file for labels in list_label_sets() for file in labels.files)):
        if holder.file in checksums and holder.sha256 is not None:
            assert checksums[holder.file] == f"sha256:{holder.sha256}", holder.file


def test_every_row_has_a_source_and_says_what_nobody_tried(rag: Command) -> None:
    datasets = list_datasets()
    assert len({file.to for one in datasets for file in one.files}) == sum(len(one.files) for one in datasets)
    assert all(one.source.startswith("https://") for one in datasets)
    assert all(file.remote.checksum for one in datasets for file in one.files if file.is_read)
    text = rag("data", "list").stdout
    assert "hagrid: 2 files, size unknown, no checksum, address never tried" in text
    assert "nq-open: 1 file, 0.4 MB\n" in text
    assert "needs an account: log in at https://huggingface.co" in text
    rows = json.loads(rag("data", "list", "--json").stdout)
    assert [row["name"] for row in rows] == [one.name for one in datasets]


def test_files_at_hand_are_those_of_the_table(shared_data: Path) -> None:
    for dataset in list_datasets():
        if all(file.is_read for file in dataset.files) and not dataset.missing(shared_data) and dataset.files:
            assert fetch_dataset(dataset, shared_data) == [file.path(shared_data) for file in dataset.files]


# --- downloads ------------------------------------------------------------------------------------------------------


def test_a_download_that_breaks_off_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    table = server.table(tmp_path, **{"a.jsonl": {}})
    server.cuts = [100_000, 0, 0, 0, 0]
    with pytest.raises(RagError, match=r"after 100,000 of 300,000 bytes; the same command continues from there"):
        fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
    assert names(tmp_path / "d") == ["made/.a.jsonl.lock", "made/a.jsonl.part"]
    (path,) = fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
    assert path.read_bytes() == server.bodies["/a.jsonl"]
    assert server.requests[-1] == ("/a.jsonl", "bytes=100000-")
    before = len(server.requests)
    assert fetch_dataset("made", tmp_path / "d", table=table) == [path]  # there: no network is needed
    assert len(server.requests) == before
    assert names(tmp_path / "d") == ["made/a.jsonl"]


def test_a_killed_download_goes_on(server: Server, tmp_path: Path) -> None:
    table, data = server.table(tmp_path, **{"a.jsonl": {}}), tmp_path / "d"
    server.pause = 0.2
    command = [
        sys.executable,
        "-m",
        "rag",
        "data",
        "fetch",
        "made",
        "--data",
        data,
        "--table",
        table,
        "--allow-network",
    ]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        part, deadline = data / "made/a.jsonl.part", time.monotonic() + 60
        while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    server.pause = 0
    there = part.stat().st_size
    assert there > 0
    (path,) = fetch_dataset("made", data, table=table, allow_network=True)
    assert path.read_bytes() == server.bodies["/a.jsonl"]
    assert server.requests[-1][1] == f"bytes={there}-"


@pytest.mark.parametrize("kind", ["sha256", "md5", "git"])
def test_a_wrong_checksum_is_refused_and_the_file_kept(server: Server, tmp_path: Path, kind: str) -> None:
    digits = {"sha256": 64, "md5": 32, "git": 40}[kind]
    table = server.table(tmp_path, **{"a.jsonl": {"checksum": f"{kind}:{'0' * digits}"}})
    with pytest.raises(
        RagError, match=rf"should be {kind}:0+, found {kind}:[0-9a-f]{{{digits}}}; it is kept as .*wrong"
    ):
        fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
    kept = tmp_path / "d/made/a.jsonl.wrong"
    assert kept.read_bytes() == server.bodies["/a.jsonl"]
    body = server.bodies["/a.jsonl"]
    right = {
        "sha256": hashlib.sha256(body),
        "md5": hashlib.md5(body, usedforsecurity=False),
        "git": hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False),
    }[kind].hexdigest()
    table = server.table(tmp_path, **{"a.jsonl": {"checksum": f"{kind}:{right}"}})
    assert fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)[0].read_bytes() == body


def test_a_file_of_unknown_size_and_checksum_is_taken_whole(server: Server, tmp_path: Path) -> None:
    unknown = {"size": None, "checksum": None}
    table = server.table(tmp_path, **{"a.jsonl": dict(unknown)})
    server.cuts = [100_000]
    (path,) = fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
    assert path.read_bytes() == server.bodies["/a.jsonl"]
    assert [wanted for _, wanted in server.requests] == [None, "bytes=100000-"]
    for body, content in ((b"<!DOCTYPE html><p>Log in", "a web page"), (b"version https://git-lfs.x\n", "a Git LFS")):
        server.bodies["/b.jsonl"] = body
        table = server.table(tmp_path, **{"b.jsonl": dict(unknown)})
        with pytest.raises(RagError, match=f"the server sent {content}"):
            fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
        assert not (tmp_path / "d/made/b.jsonl").exists()


def test_a_server_that_lies_about_the_size_is_one_line(server: Server, tmp_path: Path) -> None:
    server.announced = 900_000  # and sends 300,000
    unknown = {"size": None, "checksum": None}
    with pytest.raises(RagError, match=r"after [\d,]+ bytes; the same command"):
        fetch_dataset("made", tmp_path / "d", table=server.table(tmp_path, **{"a.jsonl": unknown}), allow_network=True)
    server.announced = None
    longer = server.table(tmp_path, **{"a.jsonl": {"size": 200_000}})
    with pytest.raises(RagError, match="the server sent more than 200,000 bytes; it is kept"):
        fetch_dataset("made", tmp_path / "e", table=longer, allow_network=True)


@pytest.mark.parametrize(
    ("body", "settings", "fault"),
    [
        (b"<html>Log in", {}, "the server sent a web page"),
        (b"short", {}, "the server sent 5 bytes of 4,000"),
        (b"", {"size": None, "checksum": None}, "the server sent 0 bytes"),
        (b"x" * 4001, {"checksum": None}, "the server sent more than 4,000 bytes"),
    ],
)
def test_what_is_not_as_announced_is_kept_and_named(
    server: Server, tmp_path: Path, body: bytes, settings: dict[str, Any], fault: str
) -> None:
    server.bodies["/b.jsonl"] = body
    table = server.table(tmp_path, **{"b.jsonl": {"size": 4000} | settings})
    with pytest.raises(RagError, match=f"/b.jsonl: {fault}; it is kept as .*b.jsonl.wrong, the same command fetches"):
        fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
    assert names(tmp_path / "d") == ["made/.b.jsonl.lock", "made/b.jsonl.wrong"]


def test_a_moved_address_is_followed_or_named(server: Server, tmp_path: Path) -> None:
    table = server.table(tmp_path, **{"a.jsonl": {"url": f"{server.url}/moved/a.jsonl"}})
    assert fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)[0].is_file()
    table = server.table(tmp_path, **{"a.jsonl": {"url": f"{server.url}/gone.jsonl"}})
    with pytest.raises(RagError, match=r"gone\.jsonl: the server returned 404 Not Found; it may have moved"):
        fetch_dataset("made", tmp_path / "e", table=table, allow_network=True)


def test_archives_become_folders_and_nothing_is_written_outside(server: Server, tmp_path: Path) -> None:
    tar, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        info = tarfile.TarInfo("data/questions.json")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"[]"))
    with zipfile.ZipFile(zipped, "w") as opened:
        opened.writestr("ratings.csv", "a,b\n")
        opened.writestr("../outside.csv", "x\n")
    evil = io.BytesIO()
    with tarfile.open(fileobj=evil, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../outside"), io.BytesIO(b""))
    server.bodies |= {"/q.tar": tar.getvalue(), "/r.zip": zipped.getvalue(), "/e.tar": evil.getvalue(), "/n.zip": b"no"}
    unpack = {"unpack": True}
    table = server.table(tmp_path, **{"q.tar": dict(unpack), "r.zip": dict(unpack)})
    paths = fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
    assert [path.name for path in paths] == ["q", "r"]
    assert names(tmp_path / "d") == ["made/q/questions.json", "made/r/outside.csv", "made/r/ratings.csv"]
    assert fetch_dataset("made", tmp_path / "d", table=table) == paths
    for name in ("e.tar", "n.zip"):
        table = server.table(tmp_path, **{name: dict(unpack)})
        with pytest.raises(RagError, match=f"{name} cannot be unpacked: .*; it is kept as .*{name}.wrong"):
            fetch_dataset("made", tmp_path / "e", table=table, allow_network=True)
    assert not list(tmp_path.rglob("outside"))


def broken_archives() -> Iterator[tuple[str, bytes]]:
    data = os.urandom(50_000)

    def tar(mode: str, body: bytes, **settings: Any) -> bytes:  # noqa: ANN401
        file, info = io.BytesIO(), tarfile.TarInfo("a")
        info.size = len(body)
        for name, value in settings.items():
            setattr(info, name, value)
        with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
            archive.addfile(info, io.BytesIO(body))
        return file.getvalue()

    def zipped(method: int, **files: bytes) -> bytearray:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, body in files.items():
                archive.writestr(name, body)
        return bytearray(file.getvalue())

    gz = bytearray(tar("w:gz", data))
    gz[25_000] ^= 255
    lzma = zipped(zipfile.ZIP_LZMA, a=data)
    lzma[25_000] ^= 255
    locked = zipped(zipfile.ZIP_STORED, a=b"x")
    locked[6] = locked[locked.find(b"PK\1\2") + 8] = 1
    yield "changed.tgz", bytes(gz)
    yield "lzma.zip", bytes(lzma)
    yield "locked.zip", bytes(locked)
    yield "empty.zip", bytes(zipped(zipfile.ZIP_STORED))
    yield "empty.tar", bytes(10_240)
    yield "no.tar", b"no"
    yield "nul.tar", tar("w", b"x", pax_headers={"path": "a\0b"})
    yield "late.tar", tar("w", b"x", pax_headers={"mtime": "9" * 30})
    yield "link.tar", tar("w", b"", type=tarfile.SYMTYPE, linkname=".")


@pytest.mark.parametrize(("name", "body"), [pytest.param(*row, id=row[0]) for row in broken_archives()])
def test_a_broken_or_hostile_archive_is_one_line(tmp_path: Path, name: str, body: bytes) -> None:
    (tmp_path / name).write_bytes(body)
    with pytest.raises(RagError, match=rf"^{name} cannot be unpacked: [^\n]*[^:]; it is kept as .*{name}\.wrong$"):
        unpack(tmp_path / name, tmp_path / "to")
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.wrong"]


def test_an_archive_of_ones_own_is_checked_before_it_is_unpacked(server: Server, tmp_path: Path) -> None:
    own = tmp_path / "d/made/q.zip"
    own.parent.mkdir(parents=True)
    with zipfile.ZipFile(own, "w") as archive:
        archive.writestr("a", "mine")
    server.bodies["/q.zip"] = b"another"
    table = server.table(tmp_path, **{"q.zip": {"unpack": True}})
    with pytest.raises(RagError, match=r"q\.zip is another file"):
        fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
    assert names(tmp_path / "d") == ["made/q.zip"]


def test_what_is_there_stays_and_another_file_is_named(server: Server, tmp_path: Path) -> None:
    mine = tmp_path / "d/made/a.jsonl"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    for settings, fault in (({"size": None}, "its checksum should be sha256:"), ({"checksum": None}, "300,000 bytes")):
        table = server.table(tmp_path, **{"a.jsonl": settings})
        with pytest.raises(RagError, match=rf"a\.jsonl is another file: .*{fault}.*; move it away"):
            fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
        assert mine.read_bytes() == b"mine"
    mine.unlink()
    mine.mkdir()
    with pytest.raises(RagError, match="it is a folder; move it away"):
        fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)


def test_nothing_is_downloaded_without_leave(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rag: Command
) -> None:
    table = server.table(tmp_path, **{"a.jsonl": {}})
    with pytest.raises(UsageError, match="--allow-network"):
        fetch_dataset("made", tmp_path / "d", table=table)
    monkeypatch.setenv("RAG_OFFLINE", "1")
    with pytest.raises(UsageError, match="RAG_OFFLINE is set"):
        fetch_dataset("made", tmp_path / "d", table=table, allow_network=True)
    assert server.requests == []
    with pytest.raises(RagError, match="llm-aggrefact needs an account: log in at"):
        fetch_dataset("llm-aggrefact", tmp_path / "d", allow_network=True)
    one_line_error(rag("data", "fetch", "nq", "--data", tmp_path), "no data set called 'nq'; did you mean")


def test_the_command_says_what_it_takes_and_asks_before_gigabytes(
    server: Server, tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAG_OFFLINE", raising=False)
    table = server.table(tmp_path, **{"a.jsonl": {}})
    run = rag("data", "fetch", "made", "--data", tmp_path / "d", "--table", table, "--allow-network")
    assert run.stdout == f"{tmp_path / 'd/made/a.jsonl'}\n"
    assert "1 file to" in run.stderr
    assert "0.3 MB;" in run.stderr
    assert "made: ours; https://example.org" in run.stderr
    table = server.table(tmp_path, **{"a.jsonl": {"size": 10**12}})
    run = rag("data", "fetch", "made", "--data", tmp_path / "e", "--table", table, "--allow-network")
    assert run.returncode != 0
    assert "Download?" in run.stderr  # nobody answers
    run = rag("data", "fetch", "made", "--data", tmp_path / "e", "--table", table, "--allow-network", "--yes")
    assert run.returncode == 2
    assert "made: a.jsonl takes 1,000,000,000,000 bytes" in run.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"to": "../x"}, "'to' should be a relative path that stays in its folder"),
        ({"url": "ftp://x"}, "'url' should be an address that starts with https://"),
        ({"size": 0}, "'size' should be from 1 to"),
        ({"checksum": "sha1:0"}, "'checksum' should be md5:..., sha256:... or git:..."),
        ({"sise": 3}, "unknown setting 'sise'"),
        ({"to": "made", "unpack": True}, "'to' should be the name of an archive, with .zip, .tar, .tgz at its end"),
        ({"to": ".zip", "unpack": True}, "'to' should be the name of an archive"),
    ],
)
def test_a_table_that_is_nearly_right_is_refused(
    server: Server, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    table = server.table(tmp_path, **{"a.jsonl": change})
    with pytest.raises(RagError) as error:
        list_datasets(table)
    assert reason in str(error.value)


def test_a_table_of_windows_is_read_and_a_strange_one_refused(server: Server, tmp_path: Path) -> None:
    table = server.table(tmp_path, **{"a.jsonl": {}})
    table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes())
    assert [dataset.name for dataset in list_datasets(table)] == ["made"]
    with pytest.raises(RagError, match=r"/dev/zero: not a table of data sets: it is longer than"):
        list_datasets("/dev/zero")
    server.bodies["/b.jsonl"] = b"x"
    table = server.table(tmp_path, **{"a.jsonl": {"to": "x"}, "b.jsonl": {"to": "x"}})
    with pytest.raises(RagError, match=r"\[made\]: two files have the same place"):
        list_datasets(table)


# --- benchmarks -----------------------------------------------------------------------------------------------------


def test_a_benchmark_whose_data_is_missing_says_how_to_fetch_it(tmp_path: Path, rag: Command) -> None:
    run = rag("bench", "run", "hagrid", "--data", tmp_path, "--system", "first-passage", "--out", tmp_path / "run")
    one_line_error(run, "hagrid/dev.jsonl is missing; name the folder of the data, or fetch it: rag data fetch hagrid")


def test_a_corpus_that_was_fetched_in_part_is_refused(tmp_path: Path) -> None:
    benchmark = read_benchmark("open-nq")
    with pytest.raises(RagError, match=r"or fetch it: rag data fetch miracl-corpus --data FOLDER"):
        benchmark.other_corpus("miracl", tmp_path)
    (dataset,) = (dataset for dataset in list_datasets() if dataset.name == "miracl-corpus")
    folder = dataset.files[0].path(tmp_path).parent
    folder.mkdir(parents=True)
    for file in dataset.files[:3]:
        file.path(tmp_path).touch()
    with pytest.raises(RagError, match="63 of 66 files are missing; rag data fetch miracl-corpus --data"):
        benchmark.other_corpus("miracl", tmp_path)
    for file in dataset.files:
        file.path(tmp_path).touch()
    for name in (".docs-0.jsonl.gz.lock", "docs-0.jsonl.gz.wrong"):  # of a download that failed before
        (folder / name).touch()
    assert len(corpus_files(benchmark.other_corpus("miracl", tmp_path))) == 66


def test_a_stranger_runs_hagrid_in_two_commands(
    server: Server, tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAG_OFFLINE", raising=False)
    row = {
        "query_id": 1,
        "query": "What is the capital of Poland?",
        "quotes": [{"idx": 1, "docid": "1#0", "text": "Warsaw is the capital of Poland."}],
        "answers": [{"answer": "Warsaw [1].", "sentences": [{"text": "Warsaw [1].", "attributable": 1}]}],
    }
    lines = [dumps(row | {"query_id": number, "query": f"{row['query']} ({number})"}) for number in range(716)]
    table = server.shipped_table(
        tmp_path,
        {
            "hagrid/dev.jsonl": ("\n".join(lines) + "\n").encode(),
            "hagrid/train.jsonl": (lines[0] + "\n").encode(),
        },
    )
    fetched = rag("data", "fetch", "hagrid", "--data", tmp_path / "d", "--table", table, "--allow-network")
    assert len(fetched.stdout.splitlines()) == 2
    run = rag("bench", "run", "hagrid", "--data", tmp_path / "d", "--out", tmp_path / "run", "--limit", "5",
              "--system", "first-passage", "--judge", "lexical")  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "first-passage" in run.stdout
