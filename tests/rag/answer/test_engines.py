"""Answering, embedding and benchmarks on an engine: the files are those of one process, also when nodes are lost."""

import json
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rag
from autoais.base.engines import LocalEngine, open_engine
from autoais.base.io.jsonl import read_objects
from rag.answer.answer_files import answer_file
from rag.answer.engine_system import EngineSystem, OpenSystem
from rag.answer.options import Options
from rag.answer.systems import open_system
from rag.api import add_retriever
from rag.base.errors import RagError, UsageError
from rag.bench import run_benchmark
from rag.index.open import open_index
from rag.retrieval.encoders import encoding_on, open_encoder
from rag.retrieval.encoders.engine import EngineEncoder, OpenEncoder
from rag.testing import check_encoder
from tests.commands import stop
from tests.conftest import Command, one_line_error
from tests.rag.bench.test_run import QUESTIONS, write_benchmark

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

ROWS = 2500  # passages, and so some batches of an encoder
THINGS = ("mill", "bridge", "clock", "ferry", "tower", "well", "barn")


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, its index, and questions, of which one cannot be searched."""
    folder = tmp_path_factory.mktemp("towns")
    rows = [
        {
            "docid": f"{n:04}",
            "title": f"Town {n % 60}",
            "text": f"The {THINGS[n % 7]} of Aller {n} sells salt for {n * n % 97}.",
        }
        for n in range(ROWS)
    ]
    asked = [{"id": str(n), "question": f"What does the {THINGS[n % 7]} of Aller {n} sell?"} for n in range(200)]
    asked[7]["question"] = "the"
    for name, listed in (("towns", rows), ("questions", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in listed), "utf-8")
    rag.build_index(folder / "towns.jsonl", folder / "towns.index")
    return folder


def system_of(towns: Path, checksum: str | None = None, expected: str | None = None) -> OpenSystem:
    """What opens the system `extractive` in a worker."""
    index = open_index(towns / "towns.index")
    name = open_system("extractive", index).name
    own = index.manifest["checksum"]
    return OpenSystem(
        towns / "towns.index", "extractive", Options(), 3, None, checksum or own, expected or name.replace("@10", "@3")
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, without the time that each took."""
    return [{key: value for key, value in row.items() if key != "seconds"} for _, row in read_objects(path)]


@pytest.fixture(scope="module")
def answers(towns: Path) -> list[dict[str, Any]]:
    """The answers of one process."""
    index = open_index(towns / "towns.index")
    answer_file(towns / "questions.jsonl", towns / "answers.jsonl", open_system("extractive", index, k=3), index)
    return rows_of(towns / "answers.jsonl")


# --- this process ----------------------------------------------------------------------------------------------------


def test_a_system_over_an_engine_writes_the_same_rows(towns: Path, answers: list[Any], tmp_path: Path) -> None:
    system = EngineSystem(system_of(towns), LocalEngine())
    answer_file(towns / "questions.jsonl", tmp_path / "a.jsonl", system, open_index(towns / "towns.index"))
    assert rows_of(tmp_path / "a.jsonl") == answers
    assert answers[7]["abstained"]
    assert system.ask("What does the mill of Aller 14 sell?").text == answers[14]["answer"]


def test_a_worker_with_another_index_or_system_is_refused(towns: Path) -> None:
    with pytest.raises(RagError, match=r"index 'towns.index' has other passages \(sha256:.*copy that index"):
        system_of(towns, checksum="sha256:0000")()
    with pytest.raises(RagError, match=r"the system is bm25.* here, another where the run was started"):
        system_of(towns, expected="another")()


def test_an_encoder_over_an_engine_is_that_encoder() -> None:
    encoder = open_encoder("static")
    over = EngineEncoder(encoder, "static", LocalEngine())
    check_encoder(over)
    texts = [f"The {THINGS[n % 7]} of Aller {n}" for n in range(1100)]
    assert over.passages(texts).tobytes() == encoder.passages(texts).tobytes()
    with pytest.raises(RagError, match=r"encoder 'static' is static@.* here, st:other where the run was started"):
        OpenEncoder("static", "st:other")()


def test_a_part_built_on_an_engine_has_the_same_bytes(towns: Path, tmp_path: Path) -> None:
    found = {}
    for name in ("local", "engine"):
        rag.build_index(towns / "towns.jsonl", tmp_path / name)
        with encoding_on(LocalEngine() if name == "engine" else None):
            assert isinstance(open_encoder("static"), EngineEncoder) == (name == "engine")
            add_retriever(tmp_path / name, "static")
        found[name] = [path.read_bytes() for path in sorted((tmp_path / name).rglob("*.npy"))]
    assert found["local"] == found["engine"]
    assert found["local"]


def test_a_benchmark_on_an_engine_ends_with_the_same_results(tmp_path: Path) -> None:
    benchmark = write_benchmark(tmp_path, QUESTIONS, 'right = "answer_in_text"\nk = 3')
    systems = ["extractive", "extractive,retriever=gold"]
    runs = [
        run_benchmark(benchmark, tmp_path / out, tmp_path / "data", systems=systems, judge="lexical", engine=engine)
        for out, engine in (("LOCAL", None), ("ENGINE", LocalEngine()))
    ]
    for label in runs[0].labels:
        local, over = (tmp_path / out / label for out in ("LOCAL", "ENGINE"))
        assert rows_of(over / "answers.jsonl") == rows_of(local / "answers.jsonl")
        assert (over / "judgements.jsonl").read_bytes() == (local / "judgements.jsonl").read_bytes()
    with pytest.raises(UsageError, match="concurrency and engine exclude each other"):
        run_benchmark(benchmark, tmp_path / "X", tmp_path / "data", engine=LocalEngine(), concurrency=2)


def test_options_that_do_not_fit_an_engine_are_refused(rag: Command, towns: Path, tmp_path: Path) -> None:
    asked = ("answer", towns / "questions.jsonl", "--out", tmp_path / "a.jsonl")
    one_line_error(rag(*asked, "--engine", "ray", "--concurrency", "2"), "--workers")
    built = ("index", "build", towns / "towns.jsonl", "--to", tmp_path / "x.index", "--engine", "ray")
    one_line_error(rag(*built), "--retriever")
    assert not (tmp_path / "x.index").exists()


# --- a cluster -------------------------------------------------------------------------------------------------------

on_ray = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.mark.slow
@on_ray
def test_a_cluster_answers_embeds_and_benchmarks_as_this_process_does(
    cluster: "Cluster", rag: Command, towns: Path, answers: list[Any], tmp_path: Path
) -> None:
    over = ("--engine", "ray", "--address", cluster.address)
    asked = ("answer", towns / "questions.jsonl", "--index", towns / "towns.index", "--system", "extractive", "-k", "3")
    result = rag(*asked, "--out", tmp_path / "a.jsonl", *over)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert rows_of(tmp_path / "a.jsonl") == answers

    vectors = []
    for name, options in (("local", ()), ("ray", over)):
        result = rag(
            "index", "build", towns / "towns.jsonl", "--to", tmp_path / name, "--retriever", "static", *options
        )
        assert result.returncode == 0, result.stderr
        vectors.append([path.read_bytes() for path in sorted((tmp_path / name).rglob("*.npy"))])
    assert vectors[0] == vectors[1]

    sharded = []
    for name, options in (("shards", ()), ("ray-shards", over)):
        build = (
            "index",
            "build",
            towns / "towns.jsonl",
            "--to",
            tmp_path / name,
            "--retriever",
            "static",
            "--shards",
            2,
        )
        result = rag(*build, *options)
        assert result.returncode == 0, result.stderr
        sharded.append([path.read_bytes() for path in sorted((tmp_path / name).rglob("*.npy"))])
    assert sharded[0] == sharded[1]
    assert sharded[0]

    benchmark = write_benchmark(tmp_path, QUESTIONS, 'right = "answer_in_text"\nk = 3')
    for out, options in (("LOCAL", ()), ("RAY", over)):
        where = ("--data", tmp_path / "data", "--out", tmp_path / out, "--system", "extractive")
        assert rag("bench", "run", benchmark, *where, *options).returncode == 0
    local, there = (tmp_path / out / "extractive" for out in ("LOCAL", "RAY"))
    assert rows_of(there / "answers.jsonl") == rows_of(local / "answers.jsonl")
    assert (there / "judgements.jsonl").read_bytes() == (local / "judgements.jsonl").read_bytes()


@pytest.mark.slow
@on_ray
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_resumes(
    cluster: "Cluster", rag: Command, towns: Path, answers: list[Any], tmp_path: Path, sent: signal.Signals
) -> None:
    out = tmp_path / "a.jsonl"
    asked = ("answer", towns / "questions.jsonl", "--index", towns / "towns.index", "--system", "extractive", "-k", "3")
    line = (*asked, "--out", out, "--engine", "ray", "--address", cluster.address)
    stopped = stop("rag", sent, out, *line)
    assert stopped.returncode in (130, -signal.SIGKILL), stopped.stderr
    assert b"Traceback" not in stopped.stderr
    assert 0 < len(out.read_bytes().splitlines()) < len(answers)
    assert rag(*line, "--resume").returncode == 0
    assert rows_of(out) == answers


@pytest.mark.slow
@on_ray
def test_a_lost_node_loses_and_doubles_no_answer(
    cluster: "Cluster", towns: Path, answers: list[Any], tmp_path: Path
) -> None:
    # The last one: it takes a node away, and the cluster ends with one.
    import ray

    (node,) = cluster.worker_nodes

    def progress(step: str, done: int, total: int) -> None:
        while done == 1 and ray.available_resources().get("CPU"):  # until both nodes have a worker
            time.sleep(0.05)
        if done == 20:
            cluster.remove_node(node, allow_graceful=False)

    with closing(open_engine("ray", cluster.address)) as engine:
        system = EngineSystem(system_of(towns), engine)
        index = open_index(towns / "towns.index")
        answer_file(towns / "questions.jsonl", tmp_path / "a.jsonl", system, index, progress=progress)
    assert rows_of(tmp_path / "a.jsonl") == answers
