"""Small real objects that the tests share; the real pool only where it is at hand."""

import gc
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

from tests.chat_server import ChatServer, run_chat_server
from tests.commands import Command as Command
from tests.commands import Result, as_process, in_process

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

T = TypeVar("T")

# A shell that starts the tests in the background lets their processes ignore SIGINT; some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test is timed: a busy machine would fail it. `make long-tests` draws more examples.
settings.register_profile("few", deadline=None, max_examples=50)
settings.register_profile("many", deadline=None, max_examples=1000)
settings.load_profile("few")

# What a person has set for `rag` must not change what the tests see.
os.environ["RAG_CONFIG"] = os.devnull
os.environ["COLUMNS"] = "120"
for variable in ("RAG_INDEX", "RAG_SYSTEM"):
    os.environ.pop(variable, None)


def pytest_collection_finish() -> None:
    """Keep what was imported out of all later searches for garbage: with torch, each takes 0.1 s and more."""
    gc.freeze()


SHELF = [
    ("a#1", "Marie Curie", "Marie Curie won the Nobel Prize in Physics in 1903. She shared it with her husband."),
    ("a#2", "Marie Curie", "Curie was born in Warsaw in 1867. She moved to Paris in 1891."),
    ("b#1", "Warsaw", "Warsaw is the capital of Poland. It lies on the Vistula river."),
    ("b#2", "Vistula", "The Vistula is the longest river of Poland. It is 1,047 kilometres long."),
    ("c#1", "", "Rowing clubs on the river hold a regatta every spring."),
    ("d#1", "東京", "東京 is the Japanese name of Tokyo, the capital of Japan."),
]


def write_corpus(path: Path, rows: list[tuple[str, str, str]] = SHELF) -> Path:
    """A MIRACL jsonl file of (docid, title, text)."""
    lines = (json.dumps({"docid": i, "title": t, "text": x}, ensure_ascii=False) for i, t, x in rows)
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "shelf.jsonl")


@pytest.fixture
def shelf(tmp_path: Path, corpus: Path) -> Path:
    """An index of the shelf."""
    from rag.documents.corpus import Corpus
    from rag.index.build import build

    build(Corpus([corpus]), tmp_path / "shelf.index")
    return tmp_path / "shelf.index"


@pytest.fixture
def corpus_questions(tmp_path: Path) -> Path:
    """Four questions about the corpus, with answers and gold passages."""
    rows = (
        {"id": "1", "question": "longest river of Poland", "answers": ["1,047 kilometres"], "gold": ["b#2"]},
        {"id": "2", "question": "the", "answers": ["nothing"], "gold": ["a#1"]},
        {"id": "3", "question": "capital of Japan", "answers": ["Tokyo"], "gold": ["d#1"]},
        {"id": "4", "question": "Curie in Paris", "answers": ["1891"], "gold": ["a#1"]},
    )
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def rag() -> Command:
    """Runs `rag` in this process; keywords are environment variables, for most of which it starts one of its own."""
    return in_process("rag")


@pytest.fixture
def autoais() -> Command:
    """Runs `autoais` likewise."""
    return in_process("autoais")


@pytest.fixture
def rag_process() -> Command:
    """Runs `rag` as people run it, in a process of its own."""
    return as_process("rag")


@pytest.fixture
def autoais_process() -> Command:
    """Runs `autoais` likewise."""
    return as_process("autoais")


def present(value: T | None) -> T:
    """The value, which has to be there."""
    assert value is not None
    return value


def one_line_error(result: Result, *words: str) -> None:
    """Assert what every bad input must give: exit code 2 and one line that names the thing."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("needs about")]
    assert result.returncode == 2, result
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


@pytest.fixture
def shared_data() -> Path:
    """The real data beside the checkout; people who clone the project do not have it."""
    data = Path(os.environ.get("RAG_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not data.is_dir():
        pytest.skip(f"needs the real data in {data} (set RAG_DATA)")
    return data


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    """A server with OpenAI's chat completions, which a test scripts."""
    with run_chat_server() as chat_server:
        yield chat_server


@pytest.fixture(scope="module")
def cluster() -> "Iterator[Cluster]":
    """Two Ray nodes on this machine, with a CPU each."""
    pytest.importorskip("ray", reason="needs Ray")
    from ray.cluster_utils import Cluster

    from autoais.base.engines.ray import without_dashboard

    checks = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_failure_threshold": 3,
    }
    with without_dashboard():
        two_nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": checks})
    two_nodes.add_node(num_cpus=1)
    two_nodes.wait_for_nodes()
    yield two_nodes
    two_nodes.shutdown()
