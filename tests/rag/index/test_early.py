"""An index that is asked before its vectors are complete."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rag as library
from rag.base.errors import IndexingError, RagError
from rag.bench.benchmark import Corpus as BenchCorpus
from rag.bench.benchmark import read_benchmark
from rag.bench.corpora import Corpora
from rag.index.open import open_index
from rag.index.parts import read_data_configs
from rag.retrieval import dense, missing_retrievers
from rag.serve.service import Service
from tests.conftest import Command, one_line_error

QUESTION = "How long is the canal of town 4?"
PART = "minilm-shipped.v1"


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nine documents of a passage each, encoded two at a time."""
    monkeypatch.setattr(dense, "_BATCH", 2)
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(9):
        (folder / f"{number}.md").write_text(
            f"# Town {number}\n\nThe canal of town {number} is {number + 3} miles long.\n"
        )
    return folder


@pytest.fixture
def home(docs: Path, tmp_path: Path) -> Path:
    """An index whose build was stopped after four vectors."""

    def stop(step: str, count: int, total: int) -> None:
        if (step, count) == ("minilm-shipped encoded", 4):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        library.build_index(docs, tmp_path / "x.index", progress=stop)
    return tmp_path / "x.index"


def part_bytes(home: Path) -> dict[str, bytes]:
    (part,) = home.glob(f".rag-build-*/parts/{PART}")
    return {path.name: path.read_bytes() for path in part.iterdir() if path.suffix == ".npy"}


def test_an_index_is_asked_while_its_vectors_are_made(
    docs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "x.index"
    lines: list[str] = []
    answers: list[Any] = []

    def ask(step: str, count: int, total: int) -> None:
        if step == "minilm-shipped encoded" and not answers:
            lines.append("vectors")
            answers.append(library.ask(QUESTION, home))

    library.build_index(docs, home, progress=ask, log=lines.append)
    ready = lines.index(f"{home} can be asked from now; vectors for 9 passages follow")
    assert lines[ready - 1] == f"9 passages in {home}, 0 skipped"
    assert lines.index("vectors") > ready
    assert "7 miles" in answers[0].text
    (warning,) = caplog.messages
    assert warning.startswith(
        "x.index has not all of its vectors yet; answers get better with them: wait for the build"
    )
    assert warning.endswith(f"run rag index build --to {home} --retriever hybrid")
    caplog.clear()
    assert "7 miles" in library.ask(QUESTION, home).text
    assert not caplog.messages


def test_the_same_build_goes_on_with_the_vectors(home: Path, docs: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.index"
    library.build_index(docs, whole)
    manifest = (home / "manifest.json").read_bytes()
    counts: list[int] = []
    lines: list[str] = []
    index = library.build_index(docs, home, progress=lambda step, count, total: counts.append(count), log=lines.append)
    assert counts == [4, 6, 8, 9]
    assert (
        lines[0]
        == f"{home} has its passages, and only vectors are made; rag index update reads files that have changed"
    )
    assert (home / "manifest.json").read_bytes() == manifest
    assert PART in library.open_retriever("default", index).name
    assert part_bytes(home) == part_bytes(whole)
    with pytest.raises(IndexingError, match="already exists: rag index add or update changes it"):
        library.build_index(docs, home)


@pytest.mark.parametrize(
    "options", [{"exclude": ["3.md"]}, {"strict": True}, {"retrievers": ["static"]}, {"shard": "1/2"}]
)
def test_another_build_does_not_go_on_with_it(home: Path, docs: Path, options: dict[str, Any]) -> None:
    with pytest.raises(IndexingError, match=r"x\.index already exists, and was built with other options; its vectors"):
        library.build_index(docs, home, **options)
    library.build_index(docs, home, replace=True, **options)
    assert not missing_retrievers(open_index(home))


def test_add_retriever_completes_it_whatever_it_was_built_of(home: Path) -> None:
    assert missing_retrievers(open_index(home)) == ["hybrid"]
    library.add_retriever(home, "hybrid")
    assert missing_retrievers(open_index(home)) == []


def test_a_killed_build_answers_and_a_second_one_says_who_builds(
    docs: Path, tmp_path: Path, rag: Command, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "x.index"
    slow = (
        "import sys, time, rag; rag.build_index(sys.argv[1], sys.argv[2], progress=lambda step, *_: "
        "time.sleep(60 * ('encoded' in step)))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", slow, docs, home], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ) as process:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size for path in home.glob(".rag-build-*/parts/*/*.part")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        one_line = rag("index", "build", docs, "--to", home).stderr.splitlines()[-1]
        assert one_line == (
            f"error: another process is adding {PART!r} to x.index; wait for it (process {process.pid})"
        )
        one_line_error(
            rag("index", "update", home), f"another build is running in it; wait for it (process {process.pid})"
        )
        process.send_signal(signal.SIGKILL)
    assert "7 miles" in rag("ask", QUESTION, "--index", home).stdout
    assert caplog.text.count("x.index has not all of its vectors yet") == 1
    assert rag("index", "build", docs, "--to", home).returncode == 0
    caplog.clear()
    assert "7 miles" in rag("ask", QUESTION, "--index", home).stdout
    assert not caplog.messages


def test_an_update_says_that_it_leaves_the_vectors_out(home: Path, docs: Path) -> None:
    (docs / "10.md").write_text("# Town 10\n\nThe canal of town 10 is dry.\n")
    assert library.update_index(home).left_out == (PART,)
    assert missing_retrievers(open_index(home)) == ["hybrid"]
    library.build_index(docs, home)
    assert [config.name for config in read_data_configs(open_index(home))] == [PART]
    assert library.update_index(home).left_out == ()


def test_a_merge_of_indexes_without_their_vectors_asks_for_them(home: Path, docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    lines: list[str] = []
    other.mkdir()
    (other / "ferry.md").write_text("# Ferry\n\nNora Finch runs the ferry.\n")
    library.build_index(other, tmp_path / "o.index")
    one = library.merge_indexes([home, tmp_path / "o.index"], tmp_path / "m.index", log=lines.append)
    assert missing_retrievers(one) == ["hybrid"]
    assert f"{PART} was left out (x.index has no such data)" in lines[-1]
    library.build_index(other, tmp_path / "p.index", retrievers=["bm25"])
    assert missing_retrievers(library.merge_indexes([home, tmp_path / "p.index"], tmp_path / "n.index")) == []


def test_a_benchmark_completes_it_or_refuses(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = read_benchmark("open-nq-pool")
    monkeypatch.setitem(benchmark.corpora, "", BenchCorpus("docs", None, None))
    with pytest.raises(RagError, match=r"x\.index has not all of its vectors yet: wait for the build"):
        Corpora(benchmark, None, home, None, build=False).open("")
    assert not missing_retrievers(Corpora(benchmark, None, home, None).open(""))


def test_a_server_opens_it_again_when_it_is_complete(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    service = Service({"town": open_index(home)}, ["reader"])
    try:
        service.warm()
        assert caplog.text.count("has not all of its vectors yet") == 1
        assert service.reopen() == []
        library.add_retriever(home, "hybrid")
        assert service.reopen() == ["town"]
        assert PART in service.system("reader", "town").name
        assert service.reopen() == []
    finally:
        service.close()


@pytest.mark.parametrize(
    ("retrievers", "check"),
    [
        (["gone.toml", "nope", "\n"], lambda home: missing_retrievers(open_index(home)) == []),
        (["static"], lambda home: missing_retrievers(open_index(home)) == ["static"]),
        (None, lambda home: missing_retrievers(open_index(home)) == []),
    ],
)
def test_what_a_manifest_asks_for_need_not_be_there(
    home: Path, retrievers: object, check: Callable[[Path], bool]
) -> None:
    manifest = json.loads((home / "manifest.json").read_text())
    (home / "manifest.json").write_text(json.dumps(manifest | {"retrievers": retrievers}))
    assert check(home)


def test_a_manifest_whose_retrievers_are_no_names_is_damaged(home: Path) -> None:
    manifest = json.loads((home / "manifest.json").read_text())
    (home / "manifest.json").write_text(json.dumps(manifest | {"retrievers": [7]}))
    with pytest.raises(IndexingError, match="'retrievers' should be a list of strings"):
        open_index(home)
