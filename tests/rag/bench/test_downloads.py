"""`--download`: from an empty folder and a server with made small copies of data sets to a report."""

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoais.base.io.jsonl import dumps
from rag.base.errors import RagError, UsageError
from rag.base.resources import folder as resource_folder
from rag.bench import plan_download, rank_judges, run_benchmark
from tests.conftest import SHELF, Command, one_line_error
from tests.rag.bench.data_server import DataServer

QUESTIONS = [("Which is the longest river of Poland?", "Vistula"), ("Where was Marie Curie born?", "Warsaw")]
NQ, DPR = "nq/NQ-open.dev.jsonl", "dpr/psgs_w100.tsv.gz"
SYSTEMS = ("--system", "reader", "--system", "first-passage", "--judge", "lexical")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataServer]:
    """The data folder is the test's own."""
    monkeypatch.delenv("RAG_OFFLINE", raising=False)
    monkeypatch.setenv("RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("rag.base.download._FIRST_WAIT", 0.001)
    with DataServer() as server:
        yield server


@pytest.fixture
def table(server: DataServer, tmp_path: Path) -> Path:
    questions = (dumps({"question": question, "answer": [answer]}) for question, answer in QUESTIONS)
    passages = [(title, text) for _, title, text in SHELF] + [("Noise", os.urandom(64).hex()) for _ in range(1000)]
    rows = ["id\ttext\ttitle", *(f'{number}\t"{text}"\t{title}' for number, (title, text) in enumerate(passages, 1))]
    bodies = {NQ: "".join(f"{line}\n" for line in questions).encode(), DPR: gzip.compress("\n".join(rows).encode())}
    return server.shipped_table(tmp_path, bodies)


@pytest.fixture
def open_nq(tmp_path: Path) -> Path:
    """Open-NQ as it ships, but for the checksums and the number of its questions."""
    text = Path(str(resource_folder("benchmarks"))).joinpath("open-nq.toml").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith(("sha256", "count", "index")))
    path = tmp_path / "open-nq.toml"
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_open_nq_is_one_command_from_nothing_to_a_table(
    server: DataServer, table: Path, open_nq: Path, tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("bench", "run", open_nq, "--corpus", "dpr", "--download", "--table", table, *SYSTEMS)
    run = rag(*command, "--out", tmp_path / "RUN")
    assert run.returncode == 0, run.stderr
    assert [line.split()[0] for line in run.stdout.splitlines()[-2:]] == ["reader", "first-passage"]
    data = tmp_path / "cache/data"
    assert f"2 files to {data}: " in run.stderr
    assert "dpr-wikipedia: CC BY-NC 4.0 (repository), text of Wikipedia; https://github.com/" in run.stderr
    assert f"then an index in {tmp_path / 'RUN/index'}: about " in run.stderr
    assert "(an estimate)" in run.stderr
    assert sorted(path for path, _ in server.requests) == [f"/{DPR}", f"/{NQ}"]
    assert rag("bench", "report", tmp_path / "RUN", "--format", "md").returncode == 0
    # All of it is there now: no question is asked, and no connection needed.
    monkeypatch.setenv("RAG_OFFLINE", "1")
    again = rag(*command, "--out", tmp_path / "RUN2", "--index", tmp_path / "RUN/index")
    assert again.returncode == 0, again.stderr
    assert "files to" not in again.stderr
    assert len(server.requests) == 2
    one_line_error(rag(*command, "--out", tmp_path / "RUN"), "RUN holds a run: resume it (--resume)")
    other = ("--download" if word == "--corpus" else word for word in command if word != "dpr")
    one_line_error(
        rag(*other, "--out", tmp_path / "X"), "no data set has nq/nq_pool_dev.jsonl", "(--corpus): attributed-qa"
    )


def test_a_killed_run_goes_on_with_its_download(
    server: DataServer, table: Path, open_nq: Path, tmp_path: Path, rag: Command
) -> None:
    words = ("bench", "run", open_nq, "--corpus", "dpr", "--download", "--table", table, *SYSTEMS, "--out")
    command = [sys.executable, "-m", "rag", *map(str, words), str(tmp_path / "RUN")]
    server.cuts, server.pause = [50_000], 600.0  # a part of the first file, then nothing
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 120
        while not (parts := list((tmp_path / "cache").rglob("*.part"))) or not parts[0].stat().st_size:
            assert time.monotonic() < deadline, "nothing was downloaded"
            time.sleep(0.01)
        process.kill()
    there, server.pause = parts[0].stat().st_size, 0
    assert 0 < there <= 50_000
    run = rag(*words, tmp_path / "RUN")
    assert run.returncode == 0, run.stderr
    assert [wanted for _, wanted in server.requests] == [None, f"bytes={there}-", None]


def test_what_cannot_be_downloaded_is_one_line_before_anything_is(
    server: DataServer, table: Path, open_nq: Path, tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("bench", "run", open_nq, "--table", table, "--out", tmp_path / "RUN")
    for words, reason in (
        (("--corpus", "dpr"), "--table is the table of --download"),
        (("--corpus", "dqr", "--download"), "dqr: no such file or folder; name a corpus, or one of: attributed-qa"),
        (("--corpus", "attributed-qa", "--download"), "no data set has attributed-qa/wikipedia-2021.jsonl.gz"),
        (("--corpus", "dpr", "--download", "--judge", "lexicl"), "lexicl"),
        (("--corpus", "dpr", "--download", "--system", "raeder"), "raeder"),
    ):
        result = rag(*run, *words)
        assert result.returncode == 2
        assert reason in result.stderr.splitlines()[-1]
    monkeypatch.setenv("RAG_OFFLINE", "1")
    one_line_error(rag(*run, "--corpus", "dpr", "--download"), "RAG_OFFLINE is set, unset it to download")
    assert server.requests == []
    assert not (tmp_path / "RUN").exists()


def test_gigabytes_are_asked_about_and_their_index_is_estimated(
    server: DataServer, tmp_path: Path, rag: Command
) -> None:
    plan = plan_download("open-nq", corpus="dpr")
    assert [(dataset.name, len(dataset.files)) for dataset in plan.datasets] == [("dpr-wikipedia", 1), ("nq-open", 1)]
    assert plan.missing.bytes == 4_694_932_375
    assert plan.index is not None
    assert 15e9 < plan.index.disk < 25e9
    run = rag("bench", "run", "open-nq", "--corpus", "dpr", "--download", "--out", tmp_path / "RUN")
    assert run.returncode == 1
    assert "4,695 MB; " in run.stderr
    assert "8 min at 10 MB a second" in run.stderr
    assert "Download?" in run.stderr  # nobody answers
    assert not (tmp_path / "RUN").exists()
    assert not (tmp_path / "cache").exists()


def test_python_downloads_only_the_files_that_are_needed(server: DataServer, tmp_path: Path) -> None:
    row = {
        "query_id": 1,
        "query": "What is the capital of Poland?",
        "quotes": [{"idx": 1, "docid": "1#0", "text": "Warsaw is the capital of Poland."}],
        "answers": [],
    }
    lines = (dumps(row | {"query_id": number, "query": f"{row['query']} ({number})"}) for number in range(716))
    body = "".join(f"{line}\n" for line in lines).encode()
    table = server.shipped_table(tmp_path, {"hagrid/dev.jsonl": body})
    run = run_benchmark("hagrid", tmp_path / "RUN", systems=["first-passage"], judge="lexical", limit=2, download=table)
    assert run.labels == ["first-passage"]
    assert [path for path, _ in server.requests] == ["/hagrid/dev.jsonl"]
    # The data folder is found without a word.
    run_benchmark("hagrid", tmp_path / "RUN2", systems=["first-passage"], judge="lexical", limit=2)
    server.bodies["/hagrid/dev.jsonl"] = body[::-1]
    with pytest.raises(RagError, match=r"its checksum should be sha256:.*; it is kept as .*dev\.jsonl\.wrong"):
        run_benchmark("hagrid", tmp_path / "RUN3", tmp_path / "data", limit=2, download=table)


def test_judges_are_measured_on_sets_that_are_downloaded(
    server: DataServer, tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claims(start: int) -> bytes:
        rows = (
            {
                "question": "How long is the river?",
                "claim": f"The river is {number} km long.",
                "references": [f"The river is {number % 2 or number} km long."],
                "attribution_label": "not attributable" if number % 2 else "attributable",
                "src_dataset": "ExpertQA",
                "id": str(number),
            }
            for number in range(start, start + 20)
        )
        return "".join(f"{dumps(row)}\n" for row in rows).encode()

    files = {"labels/attributionbench_dev.jsonl": claims(0), "labels/attributionbench_test500.jsonl": claims(100)}
    table = server.shipped_table(tmp_path, files)
    text = Path(str(resource_folder("benchmarks"))).joinpath("attributionbench.toml").read_text("utf-8")
    own = tmp_path / "made.toml"
    own.write_text("\n".join(line for line in text.splitlines() if not line.startswith("sha256")), "utf-8")
    run = rag("bench", "judges", "--set", own, "--judge", "lexical", "--download", "--table", table, "--timed", "0")
    assert run.returncode == 0, run.stderr
    assert "files to" in run.stderr
    monkeypatch.setenv("RAG_OFFLINE", "1")
    with pytest.raises(UsageError, match=r"attributionbench is not in .*; RAG_OFFLINE is set"):
        rank_judges([own], data=tmp_path / "elsewhere", download=table)
