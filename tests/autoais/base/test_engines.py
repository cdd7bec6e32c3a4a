"""Engines: what models do is the same in this process and on a Ray cluster, also when a part of the cluster is lost."""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from autoais import open_judge
from autoais.base.engines import LocalEngine, open_engine
from autoais.base.engines.ray import _computing
from autoais.base.errors import FormatError, UserError
from autoais.base.io.provenance import versions
from autoais.base.models.onnx import cores
from autoais.base.types import Attribution
from autoais.judges.engine import EngineJudge, OpenJudge
from autoais.testing import check_judge
from tests.conftest import Command, one_line_error

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

PAIRS = [
    Attribution(f"The mill of Aller {n} sells salt.", (f"Aller {n % 7} has a mill. It sells salt.",)) for n in range(99)
]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Forty answers of two sentences, each with a citation."""
    rows = [
        {
            "id": str(n),
            "question": f"What does Aller {n} sell?",
            "answer": f"The mill of Aller {n} sells salt. It has {n % 3} towers.",
            "sentences": [
                {"text": f"The mill of Aller {n} sells salt.", "citations": [{"passage": "a"}]},
                {"text": f"It has {n % 3} towers.", "citations": [{"passage": "b"}]},
            ],
            "passages": [
                {"id": "a", "title": f"Aller {n}", "text": f"Aller {n} has a mill, which sells salt."},
                {"id": "b", "title": "Towers", "text": f"A mill in Aller {n} has {n % 2} towers."},
            ],
        }
        for n in range(40)
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@dataclass(frozen=True)
class Slow:
    """Makes a function that takes a moment, and fails for one number."""

    seconds: float = 0.0
    fails: int = -1

    def __call__(self) -> Callable[[int], tuple[int, str]]:
        def work(number: int) -> tuple[int, str]:
            import ray

            time.sleep(self.seconds)
            if number == self.fails:
                raise FormatError(f"towns.jsonl:{number}: no text")
            return number * number, ray.get_runtime_context().get_node_id()

        return work


@dataclass(frozen=True)
class Ends:
    """Makes a function that ends its process for one number."""

    def __call__(self) -> Callable[[int], int]:
        return lambda number: os._exit(3) if number == 20 else number


@dataclass(frozen=True)
class Numbered:
    """Makes a function that says which of its kind it is."""

    name: str
    made: list[str]

    def __call__(self) -> Callable[[int], str]:
        self.made.append(self.name)
        return lambda number: f"{self.name}{number}"


def noted(numbers: Iterable[int], pulled: list[int]) -> Iterator[int]:
    """Yield the numbers; note those that were pulled."""
    for number in numbers:
        pulled.append(number)
        yield number


# --- this process ----------------------------------------------------------------------------------------------------


def test_local_results_are_in_order_and_items_are_pulled_when_needed() -> None:
    made: list[str] = []
    pulled: list[int] = []
    with closing(LocalEngine()) as engine:
        results = engine.map(Numbered("a", made), noted(range(5), pulled))
        assert (next(results), next(results), pulled) == ("a0", "a1", [0, 1])
        assert list(engine.map(Numbered("a", made), [7])) == ["a7"]
        assert list(engine.map(Numbered("b", made), [7])) == ["b7"]
    assert made == ["a", "b"]  # once each


@pytest.mark.parametrize(
    ("name", "address", "workers", "says"),
    [
        ("dask", None, None, "no engine called 'dask'; there are: local, ray"),
        ("local", "auto", None, "engine 'local' has no address, found 'auto'"),
        ("local", None, 2, "engine 'local' has no workers, found 2"),
        ("ray", None, 0, "workers must be at least 1, not 0"),
    ],
)
def test_what_is_no_engine_is_refused(name: str, address: str | None, workers: int | None, says: str) -> None:
    with pytest.raises(UserError, match=says):
        open_engine(name, address, workers)


def test_without_ray_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    # The engine sets a variable by which a cluster would ask for a token.
    with patch.dict(os.environ), pytest.raises(UserError, match=r'the engine ray needs .*pip install -e "\.\[ray\]"'):
        open_engine("ray")


def test_a_judge_over_an_engine_is_that_judge() -> None:
    judge = open_judge("lexical", threshold=0.7)
    over = EngineJudge(judge, "lexical", {"threshold": 0.7}, LocalEngine())
    check_judge(over)
    assert over.name == judge.name
    assert over.judge(PAIRS) == judge.judge(PAIRS)


def test_a_worker_with_another_model_is_refused() -> None:
    with pytest.raises(UserError, match=r"judge 'lexical' is lexical.* here, minilm@1 where the run was started"):
        OpenJudge("lexical", {}, "minilm@1")()


def test_a_judge_that_asks_a_server_has_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with pytest.raises(UserError, match="asks a server"):
        EngineJudge(open_judge("llm:m"), "llm:m", {}, LocalEngine())


def test_a_worker_keeps_to_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cores() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    assert cores() >= 1


def test_the_options_of_an_engine_need_one(autoais: Command, answers: Path) -> None:
    one_line_error(autoais("score", str(answers), "--workers", "2"), "--engine ray")


# --- a cluster -------------------------------------------------------------------------------------------------------

on_ray = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.mark.slow
@on_ray
def test_an_error_comes_back_after_what_was_before_it(cluster: "Cluster") -> None:
    pulled: list[int] = []
    with closing(open_engine("ray", cluster.address)) as engine:
        assert engine.workers == 2
        results = engine.map(Slow(fails=30), noted(range(1000), pulled))
        found: list[int] = []
        with pytest.raises(FormatError, match=r"^towns.jsonl:30: no text$"):
            found.extend(square for square, _ in results)
    assert found == [n * n for n in range(30)]
    assert len(pulled) < 50


@pytest.mark.slow
@on_ray
def test_a_cluster_judges_as_this_process_does(
    cluster: "Cluster", autoais: Command, answers: Path, tmp_path: Path
) -> None:
    local = autoais("score", str(answers), "--out", str(tmp_path / "local.jsonl"))
    on_cluster = autoais(
        "score", str(answers), "--out", str(tmp_path / "ray.jsonl"), "--engine", "ray", "--address", cluster.address
    )
    assert (on_cluster.returncode, on_cluster.stdout) == (0, local.stdout), on_cluster.stderr
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()


def test_workers_need_the_same_versions_of_what_computes_in_any_build() -> None:
    found = {"python": "3.11.7", "torch": "2.13.0+cpu", "numpy": "2.4.6", "pyserini": "1.6.0"}
    assert _computing(found) == {"python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"}


@pytest.mark.slow
@on_ray
@pytest.mark.parametrize("package", ["attributed-rag", "numpy", "python"])
def test_a_worker_with_another_version_is_named(
    cluster: "Cluster", monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr("autoais.base.engines.ray.versions", lambda: versions() | {package: "99.0"})
    says = rf"^node \S+ has {package} \S+, this machine 99\.0; install {package} 99\.0 on both"
    with closing(open_engine("ray", cluster.address)) as engine, pytest.raises(UserError, match=says):
        list(engine.map(Slow(), [1]))


@pytest.mark.slow
@on_ray
def test_nobody_answers(autoais: Command, answers: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray")
    before = time.monotonic()
    result = autoais("score", str(answers), "--engine", "ray", "--address", "127.0.0.1:1")
    one_line_error(result, "127.0.0.1:1", "ray start --head")
    assert time.monotonic() - before < 30


@pytest.mark.slow
@on_ray
def test_another_server_answers() -> None:
    pytest.importorskip("ray", reason="needs Ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=lambda: server.accept()[0].sendall(b"220 mail.example.org\r\n"), daemon=True).start()
        with pytest.raises(UserError, match=r"no Ray cluster at \S+: another server answers there; start one"):
            open_engine("ray", f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.slow
@on_ray
def test_an_item_that_ends_its_workers_ends_the_run(cluster: "Cluster") -> None:
    with closing(open_engine("ray", cluster.address)) as engine:
        results = engine.map(Ends(), range(100))
        assert next(results) == 0
        with pytest.raises(UserError, match=r"4 workers were lost over the same item .*fewer workers"):
            list(results)


@pytest.mark.slow
@on_ray
def test_a_lost_node_loses_and_doubles_nothing(cluster: "Cluster", capsys: pytest.CaptureFixture[str]) -> None:
    # The last one: it takes a node away, and the cluster ends with one.
    (node,) = cluster.worker_nodes
    found: list[int] = []
    lost: list[int] = []
    nodes = set()

    def numbers() -> Iterator[int]:
        while len(found) < 2000 and not (lost and len(found) > lost[0] + 60):
            yield next(counted)

    counted = count()
    with closing(open_engine("ray", cluster.address)) as engine:
        for square, where in engine.map(Slow(seconds=0.03), numbers()):
            found.append(square)
            nodes.add(where)
            if len(nodes) == 2 and not lost:
                cluster.remove_node(node, allow_graceful=False)
                lost.append(len(found))
    assert lost
    assert found == [n * n for n in range(len(found))]
    told = capsys.readouterr()
    assert (told.out, told.err.count("a worker was lost")) == ("", 1)
