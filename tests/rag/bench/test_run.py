"""A run goes from questions to metrics in files; killed at any moment, it ends with the same ones."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from autoais.base.io.jsonl import dumps, read_objects
from autoais.base.io.locks import file_lock
from autoais.base.io.provenance import sha256_file
from rag.answer.answer_files import answer_file
from rag.answer.systems import open_system
from rag.api import build_index
from rag.base import resources
from rag.base.errors import FormatError, RagError, UsageError, UserError
from rag.bench import open_run, read_items, run_benchmark, write_report
from rag.bench.folder import STAGES, BenchRun
from rag.bench.results import read_run
from rag.commands.display_bench import show_run
from rag.index.open import open_index
from rag.index.parts import read_data_configs
from tests.chat_server import run_chat_server
from tests.conftest import Command, one_line_error, write_corpus
from tests.rag.bench.timeless import timeless

ROOT = Path(__file__).parents[3]
QUESTIONS: list[dict[str, Any]] = [
    {"id": "1", "question": "What is the capital of Poland?", "answers": ["Warsaw"], "gold": ["b#1"], "kind": "fact"},
    {"id": "2", "question": "When was Curie born in Warsaw?", "answers": ["1867"], "gold": ["a#2"], "kind": "date"},
    {"id": "3", "question": "How long is the Vistula river?", "answers": ["2,000 miles"], "gold": ["b#2"]},
    {"id": "4", "question": "Who sings at the opera of Gdansk?", "answerable": False},
    {"id": "5", "question": "the", "answers": ["a word"], "gold": ["c#1"]},
]
QUICK = {"systems": ["extractive"], "judge": "lexical"}


def write_benchmark(
    folder: Path, rows: Sequence[Mapping[str, Any]], extra: str = 'right = "answer_in_text"', corpus: str | None = None
) -> Path:
    """A benchmark over the shelf in `folder/data`, and its TOML."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    write_corpus(data / "shelf.jsonl")
    (data / "questions.jsonl").write_text("".join(dumps(row) + "\n" for row in rows), "utf-8")
    searched = f'[corpus]\nfile = "shelf.jsonl"\nsha256 = "{sha256_file(data / "shelf.jsonl")}"'
    (folder / "towns.toml").write_text(
        'name = "towns"\nversion = 1\ndescription = "Towns"\nlicence = "ours"\nclosed_pool = true\n'
        f'{extra}\n[questions]\nfile = "questions.jsonl"\ncount = {len(rows)}\n'
        f'sha256 = "{sha256_file(data / "questions.jsonl")}"\n{searched if corpus is None else corpus}\n',
        "utf-8",
    )
    return folder / "towns.toml"


Towns = Callable[..., BenchRun]


@pytest.fixture
def towns(tmp_path: Path) -> Towns:
    """Runs the benchmark of towns into a folder of that name."""
    benchmark = write_benchmark(tmp_path, QUESTIONS, 'right = "answer_in_text"\nk = 3')

    def run(out: str = "RUN", **options: Any) -> BenchRun:  # noqa: ANN401
        return run_benchmark(benchmark, tmp_path / out, tmp_path / "data", **(QUICK | options))

    return run


def ways(run: BenchRun, label: str = "extractive") -> dict[str, str]:
    return {item.id: item.way for item in run.items(label)}


def test_every_question_goes_one_way(towns: Towns, tmp_path: Path) -> None:
    run = towns()
    assert ways(run) == {
        "1": "right_attributed", "2": "right_attributed", "3": "wrong_attributed", "4": "refused_right",
        "5": "refused_wrong",
    }  # fmt: skip
    metrics = run.metrics("extractive")
    assert (metrics["n"], metrics["benchmark"], metrics["closed_pool"]) == (5, "towns.v1", True)
    assert sum(way["count"] for way in metrics["ways"].values()) == 5
    assert sum(way["share"] for way in metrics["ways"].values()) == pytest.approx(1)
    assert metrics["metrics"]["right"]["value"] == 0.5  # of the four that can be answered
    assert metrics["metrics"]["answerable_refused"]["value"] == 0.25
    assert metrics["metrics"]["unanswerable_refused"]["value"] == 1
    assert metrics["metrics"]["attributed_answers"]["value"] == 1
    assert metrics["metrics"]["em"] == {"value": None, "reason": "the system gives no short answers"}
    assert metrics["latency"]["n"] == 5
    first = run.items("extractive")[0]
    assert (first.kind, first.first_gold, first.answer_hit, first.em) == ("fact", 1, 1, None)
    assert set(first.passages) >= set(first.cites)
    assert {file for stage in run.record["stages"].values() for file in stage} == {
        "retrieval/bm25@3.jsonl", "extractive/answers.jsonl", "extractive/judgements.jsonl", "extractive/score.json",
        "extractive/items.jsonl", "extractive/metrics.json",
    }  # fmt: skip
    assert open_run(tmp_path / "RUN").record == run.record


def test_items_and_metrics_are_those_of_autoais(towns: Towns, tmp_path: Path, autoais: Command) -> None:
    """The same answers, judged by the command, give the same judgements and metrics."""
    run = towns(systems=["reader"])
    folder = tmp_path / "RUN"
    out, report = tmp_path / "judgements.jsonl", tmp_path / "report.json"
    answers, questions = folder / "reader" / "answers.jsonl", folder / "questions.jsonl"
    asked = ["--questions", questions, "--judge", "lexical", "--metrics", "all", "--out", out, "--report", report]
    done = autoais("score", answers, *asked)
    assert done.returncode == 0, done.stderr
    assert (folder / "reader" / "judgements.jsonl").read_text() == out.read_text()
    scored = json.loads(report.read_text())["metrics"]
    assert {name: run.metrics("reader")["metrics"][name] for name in scored} == scored
    items = [item for item in run.items("reader") if item.references]
    assert scored["em"]["value"] == sum(item.em or 0 for item in items) / len(items)
    assert scored["answer_recall"]["value"] == sum(bool(item.answer_recall) for item in items) / len(items)


def test_answers_are_those_of_the_system(towns: Towns, tmp_path: Path) -> None:
    """Hits that are searched once and shared change no answer."""
    towns(systems=["reader", "extractive", "extractive,retriever=shortlist", "extractive,k=2"])
    run = open_run(tmp_path / "RUN")
    assert run.labels == ["reader", "extractive", "extractive-shortlist", "extractive-k2"]
    assert set(run.record["stages"]["retrieve"]) == {
        "retrieval/default@3.jsonl", "retrieval/shortlist@3.jsonl", "retrieval/bm25@3.jsonl", "retrieval/bm25@2.jsonl",
    }  # fmt: skip
    index = open_index(tmp_path / "RUN" / "index")
    for label, name, k, retriever in (("reader", "reader", 3, None), ("extractive-k2", "extractive", 2, None),
                                   ("extractive-shortlist", "extractive", 3, "shortlist")):  # fmt: skip
        system = open_system(name, index, k=k, retriever=retriever)
        assert run.record["systems"][label] == system.name
        answer_file(tmp_path / "RUN" / "questions.jsonl", tmp_path / f"{label}.jsonl", system, index)
        ours, theirs = (
            [row | {"seconds": 0, "index": ""} for _, row in read_objects(path)]
            for path in (tmp_path / "RUN" / label / "answers.jsonl", tmp_path / f"{label}.jsonl")
        )
        assert ours == theirs


# --- resuming ------------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from rag.bench import run_benchmark

left = int(sys.argv[4])

def event(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

replace = Path.replace
Path.replace = lambda self, other: (event(), replace(self, other), event())
run_benchmark(sys.argv[1], sys.argv[2], sys.argv[3], systems=["extractive", "extractive,k=2"], judge="lexical",
              index=Path(sys.argv[3]) / "index", resume=Path(sys.argv[2], "run.json").exists(), progress=event)
"""


def killed(benchmark: Path, out: Path, data: Path, event: int) -> int:
    """Run until that many events (rows, and files put in place) have happened; the exit code."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'eval'}"}
    arguments = [sys.executable, "-c", KILLED, str(benchmark), str(out), str(data), str(event)]
    return subprocess.run(arguments, env=environment, check=False).returncode


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_files(tmp_path: Path) -> None:
    benchmark = write_benchmark(tmp_path, QUESTIONS, 'right = "answer_in_text"\nk = 3')
    data = tmp_path / "data"
    assert killed(benchmark, tmp_path / "whole", data, 0) == 0
    deaths = 0
    for event in (1, 2, 3, 9, 5, 8, 4, 11, 3, 7, 6, 10, 2, 0):
        deaths += killed(benchmark, tmp_path / "killed", data, event) == -signal.SIGKILL
    assert deaths >= 10
    assert timeless(tmp_path / "killed") == timeless(tmp_path / "whole")


@pytest.mark.parametrize("event", [4, 13, 25])
def test_a_killed_run_ends_with_the_same_files(tmp_path: Path, event: int) -> None:
    benchmark = write_benchmark(tmp_path, QUESTIONS[:3], 'right = "answer_in_text"\nk = 3')
    data = tmp_path / "data"
    systems = {"systems": ["extractive", "extractive,k=2"], "judge": "lexical", "index": data / "index"}
    run_benchmark(benchmark, tmp_path / "whole", data, **systems)  # type: ignore[arg-type]
    assert killed(benchmark, tmp_path / "killed", data, event) == -signal.SIGKILL
    run_benchmark(benchmark, tmp_path / "killed", data, index=data / "index", resume=True)
    assert timeless(tmp_path / "killed") == timeless(tmp_path / "whole")


def test_an_index_of_other_passages_is_refused(tmp_path: Path) -> None:
    def benchmark(checksum: str) -> Path:
        shelf = write_corpus(tmp_path / "data" / "shelf.jsonl")
        corpus = f'[corpus]\nfile = "shelf.jsonl"\nsha256 = "{sha256_file(shelf)}"\nindex = "{checksum}"'
        return write_benchmark(tmp_path, QUESTIONS, corpus=corpus)

    (tmp_path / "data").mkdir()
    index = build_index(write_corpus(tmp_path / "data" / "shelf.jsonl"), tmp_path / "shelf.index")
    options: dict[str, Any] = {"index": tmp_path / "shelf.index", "systems": ["extractive"], "judge": "lexical"}
    run_benchmark(benchmark(index.manifest["checksum"]), tmp_path / "A", tmp_path / "data", **options)
    with pytest.raises(RagError, match=r"shelf\.index: an index of other passages than shelf\.jsonl of towns"):
        run_benchmark(benchmark("sha256:0"), tmp_path / "B", tmp_path / "data", **options)


def test_another_corpus_goes_by_name_or_path(tmp_path: Path) -> None:
    benchmark = write_benchmark(tmp_path, QUESTIONS)
    with benchmark.open("a") as lines:
        lines.write('\n[other_corpora]\nsmall = "other/small.jsonl"\n')
    data, options = tmp_path / "data", {"systems": ["extractive"], "judge": "lexical"}
    with pytest.raises(RagError, match=r"small\.jsonl is missing: the corpus 'small' of towns\.v1 belongs there"):
        run_benchmark(benchmark, tmp_path / "A", data, corpus="small", **options)  # type: ignore[arg-type]
    (data / "other").mkdir()
    write_corpus(data / "other" / "small.jsonl", [("only", "", "The mill in Arlen was built in 1802.")])
    run = run_benchmark(benchmark, tmp_path / "B", data, corpus="small", **options)  # type: ignore[arg-type]
    assert run.record["indexes"][""]["passages"] == 1
    assert run.record["data"]["corpus"][""]["path"] == "small.jsonl"
    with pytest.raises(RagError, match="large: no such file or folder; name a corpus, or one of: small"):
        run_benchmark(benchmark, tmp_path / "C", data, corpus="large", **options)  # type: ignore[arg-type]


def test_a_part_that_the_index_lacks_is_added(towns: Towns, tmp_path: Path) -> None:
    towns()
    index = tmp_path / "RUN" / "index"
    assert not read_data_configs(open_index(index))
    run = towns("OTHER", systems=["extractive,retriever=static"], index=index)
    assert [part.name for part in read_data_configs(open_index(index))] == ["static.v1"]
    assert "static" in str(run.metrics("extractive-static")["system"])


def test_an_oracle_reads_the_gold_passages(towns: Towns, tmp_path: Path) -> None:
    run = towns(systems=["first-passage,retriever=gold", "first-passage"])
    oracle, searched = run.labels
    gold = {one.question.id: one.question.gold for one in run.questions()}
    assert {item.id: item.ranking for item in run.items(oracle)} == gold
    assert {item.id for item in run.items(oracle) if item.right} == {"1", "2"}  # the reference of 3 is wrong
    assert any(item.ranking != gold[item.id] for item in run.items(searched))
    other = write_corpus(tmp_path / "other.jsonl")  # whose passages are not the ones that people read
    with pytest.raises(RagError, match="the questions have no gold passages"):
        towns("OTHER", systems=["first-passage,retriever=gold"], corpus=other)


def test_questions_asked_at_once_give_the_same_run(towns: Towns, tmp_path: Path) -> None:
    systems = ["extractive", "first-passage"]
    towns("A", systems=systems)
    towns("B", systems=systems, concurrency=3)
    assert timeless(tmp_path / "A") == timeless(tmp_path / "B")
    with pytest.raises(UserError, match="concurrency should be auto or a number from 1"):
        towns("C", concurrency=0)


def test_a_model_server_that_is_asked_as_much_as_it_bears_gives_the_same_run(
    towns: Towns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_chat_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.script({"say": "Warsaw is the capital of Poland [1]."}))
        one = towns("A", systems=["openai:tiny,retriever=bm25", "extractive"], concurrency=1)
        many = towns("B", systems=["openai:tiny,retriever=bm25", "extractive"])
    assert timeless(tmp_path / "A") == timeless(tmp_path / "B")
    for run in (one, many):
        (served,) = run.request_totals.values()  # the other system asks no server
        assert (served.requests, served.retries) == (3, 0)


def test_a_run_is_written_by_one_process(towns: Towns, tmp_path: Path) -> None:
    (tmp_path / "RUN").mkdir()
    with (
        file_lock(tmp_path / "RUN" / ".lock", UserError("free")),
        pytest.raises(RagError, match="another process is using it; wait for it"),
    ):
        towns()
    towns()


def test_an_existing_run_is_not_overwritten(towns: Towns, tmp_path: Path) -> None:
    towns()
    with pytest.raises(RagError, match=r"holds a run: resume it \(--resume\)"):
        towns()
    with pytest.raises(RagError, match="cannot be continued: it was started with other judge, limit"):
        towns(resume=True, judge="minilm", limit=2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(RagError, match=r"is not empty \(it holds thesis.tex\)"):
        towns("mine")


def test_a_finished_run_does_nothing_again(towns: Towns, tmp_path: Path) -> None:
    towns()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "RUN" / "extractive").iterdir()}
    towns(resume=True, systems=(), judge=None)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "RUN" / "extractive").iterdir()} == before


def test_a_run_goes_on_with_more_or_fewer_systems(towns: Towns, tmp_path: Path) -> None:
    towns("whole", systems=["extractive", "reader"])
    towns(systems=["extractive", "first-passage"])
    answers = tmp_path / "RUN" / "extractive" / "answers.jsonl"
    before = answers.stat().st_mtime_ns
    with pytest.raises(RagError, match=r"with other systems; resuming \(--resume\) adds and drops them"):
        towns(stage="answer", systems=["reader"])
    run = towns(resume=True, systems=["reader", "extractive"])
    assert run.labels == ["reader", "extractive"]
    assert answers.stat().st_mtime_ns == before
    assert [one.label for one in read_run(tmp_path / "RUN").systems] == run.labels
    assert ways(run, "reader") == ways(open_run(tmp_path / "whole"), "reader")
    assert (tmp_path / "RUN" / "first-passage" / "answers.jsonl").exists()
    towns(stage="judge", judge="minilm", systems=())
    again = towns(resume=True, systems=["first-passage"], judge=None)
    assert again.labels == ["first-passage"]
    assert again.metrics("first-passage")["judge"] == again.metrics("first-passage")["provenance"]["judge"]["name"]
    assert "minilm" in again.metrics("first-passage")["judge"]
    assert len(again.record["reruns"]) == 3


def test_systems_of_the_same_short_name_keep_their_files(towns: Towns, tmp_path: Path) -> None:
    paths = [tmp_path / folder / "mine.toml" for folder in ("a", "b")]
    for path, retriever in zip(paths, ("bm25", "shortlist"), strict=True):
        path.parent.mkdir()
        path.write_text(resources.folder("indexes").joinpath(f"{retriever}.toml").read_text("utf-8"), "utf-8")
    first, second = (f"extractive,retriever={path}" for path in paths)
    run = towns(systems=[first, second])
    assert run.labels == ["extractive-mine", "extractive-mine-2"]
    told = run.metrics("extractive-mine-2")["system"]
    run = towns(resume=True, systems=[second])
    assert run.labels == ["extractive-mine-2"]
    run = towns(resume=True, systems=[second, f"{first},k=2", first])
    assert run.labels == ["extractive-mine-2", "extractive-mine-k2", "extractive-mine"]
    assert run.metrics("extractive-mine-2")["system"] == told


def test_stages_run_one_by_one(towns: Towns, tmp_path: Path) -> None:
    towns("whole")
    with pytest.raises(RagError, match="holds no run yet: start with the stage retrieve"):
        towns(stage="judge")
    towns(stage="retrieve")
    with pytest.raises(
        RagError, match=r"lacks the stage answer of extractive: run that stage first \(--stage answer\)"
    ):
        towns(stage="judge")
    for stage in STAGES[1:]:
        towns(stage=stage)
    ours, theirs = timeless(tmp_path / "RUN"), timeless(tmp_path / "whole")
    assert ours == theirs


def test_a_stage_that_runs_again_drops_those_after_it(towns: Towns, tmp_path: Path) -> None:
    towns()
    towns(stage="judge", metrics="all")
    assert not (tmp_path / "RUN" / "extractive" / "metrics.json").exists()
    run = towns(stage="measure", metrics=None)
    assert "trec_recall" in run.metrics("extractive")["metrics"]
    with pytest.raises(RagError, match="started with other metrics"):
        towns(stage="measure", metrics="alce")
    with pytest.raises(RagError, match="no stage called 'think'"):
        towns(stage="think")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judge": "lexica"}, "no judge called 'lexica'"),
        ({"systems": ["extractive,min_confidence=0.2"]}, "system 'extractive' has no option 'min_confidence'"),
        ({"systems": ["reader,retriever=nope"]}, "no retriever called 'nope'"),
        ({"systems": ["reader", "openai:x,prompt=nope"]}, "no prompt called 'nope'"),
        ({"systems": ["nowhere_at_all:Mine"]}, "no module called 'nowhere_at_all'"),
        ({"human": "absent.jsonl"}, "absent.jsonl"),
        ({"predictions": ["absent.jsonl"]}, "absent.jsonl: no such file"),
    ],
)
def test_a_wrong_name_is_told_before_anything_is_done(
    towns: Towns, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        towns("NEW", **options)
    assert not (tmp_path / "NEW").exists()
    towns()
    before = timeless(tmp_path / "RUN")
    with pytest.raises(UserError, match=said):
        towns(stage="judge", **options)
    assert timeless(tmp_path / "RUN") == before


def test_citation_metrics_can_be_taken_out(towns: Towns, tmp_path: Path) -> None:
    towns()
    with pytest.raises(RagError, match="started with other metrics"):
        towns(resume=True, metrics="none")
    towns(stage="judge", metrics="none")
    run = towns(stage="measure", metrics=None)
    assert "citation_recall" not in run.metrics("extractive")["metrics"]
    assert [line.count("--stage") for line in run.record["reruns"]] == [0]  # of the Python call; measure had no result


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"systems": {"../victim": "s"}}, "'../victim' cannot be the name of a folder"),
        ({"answers": {"a/b": {"spec": "reader"}}}, "'a/b' cannot be the name of a folder"),
        ({"retrieval": {"../../hits.jsonl": {}}}, "cannot be a file of hits"),
        ({"settings": None}, "run.json: field 'settings'"),
    ],
)
def test_a_record_of_others_stays_in_its_folder(
    towns: Towns, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    towns()
    path = tmp_path / "RUN" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(FormatError, match=said):
        towns(stage="measure")


def test_a_refusal_is_undecided_where_nothing_says_what_is_right(tmp_path: Path) -> None:
    rows = [{"id": "1", "question": "the"}, {"id": "2", "question": "What is the capital of Poland?"}]
    benchmark = write_benchmark(tmp_path, rows)
    run = run_benchmark(benchmark, tmp_path / "RUN", tmp_path / "data", systems=["extractive"], judge="lexical")
    assert {item.id: (item.abstained, item.right) for item in run.items("extractive")} == {
        "1": (True, None), "2": (False, None),
    }  # fmt: skip


@pytest.mark.parametrize("what", ["truncated", "missing"])
def test_a_changed_file_is_named(towns: Towns, tmp_path: Path, what: str) -> None:
    towns()
    path = tmp_path / "RUN" / "extractive" / "answers.jsonl"
    if what == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(RagError, match=r"answers.jsonl .*; make it again with the stage answer \(--stage answer\)"):
        towns(resume=True)
    towns(stage="answer")
    towns(resume=True)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RagError, match=r"run.json: no such file"):
        open_run(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(FormatError, match=r"run\.json: field 'benchmark' is missing"):
        open_run(tmp_path)


# --- kinds of benchmarks -------------------------------------------------------------------------------------------


def test_passages_come_with_the_questions(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"query_id": "1", "question": "What is the capital of Poland?", "docids": ["c#1", "b#1"]},
        {"query_id": "2", "question": "What is the capital of Japan?", "docids": ["c#1", "a#1"], "answerable": False},
    ]
    benchmark = write_benchmark(tmp_path, rows, 'task = "given"')
    run = run_benchmark(benchmark, tmp_path / "RUN", tmp_path / "data", systems=["extractive"], judge="lexical")
    assert ways(run) == {"1": "undecided", "2": "refused_right"}  # no references: nobody can say what is right
    items = run.items("extractive")
    assert [set(item.ranking) for item in items] == [{"c#1", "b#1"}, {"c#1", "a#1"}]
    assert items[0].ranking[0] == "b#1"
    assert run.metrics("extractive")["metrics"]["right"]["reason"] == "the benchmark has no rule for right answers"


def test_given_passages_may_bring_their_texts(tmp_path: Path) -> None:
    given = [{"id": "x", "title": "Warsaw", "text": "Warsaw is the capital of Poland. It lies on the Vistula."}]
    rows = [{"id": "1", "question": "What is the capital of Poland?", "answers": ["Warsaw"], "passages": given}]
    benchmark = write_benchmark(tmp_path, rows, 'task = "given"\nright = "answer_recall"', corpus="")
    run = run_benchmark(benchmark, tmp_path / "RUN", tmp_path / "data", systems=["extractive"], judge="lexical")
    assert ways(run) == {"1": "right_attributed"}
    unknown = write_benchmark(tmp_path, [rows[0] | {"passages": ["nowhere#1"]}], 'task = "given"')
    with pytest.raises(RagError, match="lacks 1 given passages of the questions, such as 'nowhere#1'"):
        run_benchmark(unknown, tmp_path / "other", tmp_path / "data", systems=["extractive"])


def test_a_question_is_asked_of_its_collection(tmp_path: Path) -> None:
    red_docs, blue_docs = tmp_path / "data" / "docs" / "red", tmp_path / "docs" / "blue"  # the blue ones ship
    for docs, text in ((red_docs, "The red lamp shows that the pump runs."), (blue_docs, "The blue lamp decorates.")):
        docs.mkdir(parents=True)
        (docs / "lamps.md").write_text(f"# Lamps\n\n{text} It is on the left panel.\n")
    asked = "What does the lamp show?"  # the same question of both
    rows: list[dict[str, Any]] = [
        {"id": name, "question": asked, "collection": name, "nuggets": [["pump runs"]], "answer": "It runs."}
        for name in ("red", "blue")
    ]
    corpora = '[corpora]\nred = { folder = "docs/red" }\nblue = { shipped = true, folder = "docs/blue" }'
    benchmark = write_benchmark(tmp_path, rows, 'right = "nuggets@60"', corpus=corpora)
    run = run_benchmark(benchmark, tmp_path / "RUN", tmp_path / "data", systems=["extractive"], judge="lexical")
    red, blue = run.items("extractive")
    assert red.way == "right_attributed"
    assert "pump" not in blue.answer
    assert run.metrics("extractive")["metrics"]["right@60"]["value"] == 0.5
    assert set(run.record["indexes"]) == {"red", "blue"}
    stray = write_benchmark(tmp_path, [rows[0] | {"collection": "green"}], corpus=corpora)
    with pytest.raises(
        RagError, match="question 'red' names no corpus: 'collection' should be one of red, blue, found 'green'"
    ):
        run_benchmark(stray, tmp_path / "other", tmp_path / "data")


OWN_DATA = """
name = "mine"
version = 1
description = "Mine"
licence = "ours"
right = "answer_in_text"
[questions]
file = "questions.jsonl"
{corpus}
"""


@pytest.mark.parametrize("corpus", ['[corpus]\nfolder = "docs"', '[corpora.docs]\nfolder = "docs"', "file"])
def test_a_benchmark_over_ones_own_data_needs_no_checksums(tmp_path: Path, corpus: str) -> None:
    write_benchmark(tmp_path, QUESTIONS[:2])
    data, benchmark = tmp_path / "data", tmp_path / "mine.toml"
    (data / "docs").mkdir()
    (data / "docs" / "poland.md").write_text("# Poland\n\nWarsaw is the capital of Poland.\n", "utf-8")
    searched = '[corpus]\nfile = "shelf.jsonl"' if corpus == "file" else corpus
    benchmark.write_text(OWN_DATA.format(corpus=searched), "utf-8")
    run = run_benchmark(benchmark, tmp_path / "RUN", data, systems=["extractive"], judge="lexical")
    assert ways(run)["1"] == "right_attributed"
    told = run.record
    assert (told["benchmark"]["questions"], told["benchmark"]["closed_pool"]) == (2, False)
    assert told["data"]["questions"]["sha256"] == sha256_file(data / "questions.jsonl")
    digests = [one["sha256"] for one in told["data"]["corpus"].values()]
    assert digests == [sha256_file(data / "shelf.jsonl") if corpus == "file" else None]
    with (data / "questions.jsonl").open("a") as file:
        file.write(dumps(QUESTIONS[2]) + "\n")
    with pytest.raises(RagError, match="was started with other benchmark, data"):
        run_benchmark(benchmark, tmp_path / "RUN", data, resume=True)


def test_a_question_of_several_corpora_has_to_name_one(tmp_path: Path) -> None:
    benchmark = write_benchmark(tmp_path, QUESTIONS[:1], corpus='[corpora.a]\nfolder = "a"\n[corpora.b]\nfolder = "b"')
    with pytest.raises(RagError, match="'1' names no corpus: 'collection' should be one of a, b, found None"):
        run_benchmark(benchmark, tmp_path / "RUN", tmp_path / "data", systems=["extractive"], judge="lexical")


def test_another_version_of_a_file_names_the_setting(towns: Towns, tmp_path: Path) -> None:
    file = tmp_path / "data" / "questions.jsonl"
    file.write_text(file.read_text("utf-8") + "\n", "utf-8")
    said = f"is another version: its sha256 is {sha256_file(file)}, the setting sha256 of the benchmark is .* leave out"
    with pytest.raises(RagError, match=said):
        towns()


def test_retrieval_is_measured_over_the_questions_that_can_be_answered(tmp_path: Path) -> None:
    # CLAPnq names the passages that people looked at for questions without an answer too
    rows = [row | {"gold": ["b#1"]} for row in QUESTIONS[:2]] + [QUESTIONS[3] | {"gold": ["b#1"]}]
    benchmark = write_benchmark(tmp_path, rows, 'right = "answer_in_text"')
    run = run_benchmark(benchmark, tmp_path / "RUN", tmp_path / "data", systems=["extractive"], judge="lexical")
    assert run.metrics("extractive")["metrics"]["Success@1"]["n"] == 2
    assert run.items("extractive")[2].gold == ()
    assert run.record["benchmark"]["without_gold"] == 0


@pytest.mark.usefixtures("undrawn")
def test_a_stage_that_runs_again_removes_the_report_of_before(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    benchmark = write_benchmark(tmp_path, QUESTIONS, 'right = "answer_in_text"')
    out = tmp_path / "RUN"
    run_benchmark(benchmark, out, tmp_path / "data", systems=["extractive"], judge="lexical")
    report = write_report(out).page.parent
    own = report / "figures" / "of-a-person.svg"
    own.write_text("<svg/>")
    run_benchmark(benchmark, out, tmp_path / "data", stage="measure")
    assert [path for path in report.rglob("*") if path.is_file()] == [own]


def test_what_a_corpus_cannot_answer_is_counted(tmp_path: Path, rag: Command) -> None:
    rows: list[dict[str, Any]] = [
        {key: row[key] for key in ("id", "question", "answers") if key in row} for row in QUESTIONS[:3]
    ]
    gold = tmp_path / "data" / "gold.jsonl"
    gold.parent.mkdir()
    gold.write_text(dumps({"id": "x", "question": QUESTIONS[0]["question"], "gold": ["b#1"]}) + "\n")
    digest = sha256(gold.read_bytes()).hexdigest()
    tables = f'right = "answer_in_text"\n[gold]\nfile = "gold.jsonl"\nsha256 = "{digest}"'
    benchmark = write_benchmark(tmp_path, rows, tables)
    arguments = ("--data", tmp_path / "data", "--system", "extractive", "--judge", "lexical")
    done = rag("bench", "run", benchmark, "--out", tmp_path / "RUN", *arguments)
    assert done.returncode == 0, done.stderr
    assert "2 answerable questions without a known gold passage in this corpus, counted like the others" in done.stderr
    run = open_run(tmp_path / "RUN")
    assert run.metrics("extractive")["n"] == 3
    assert run.metrics("extractive")["metrics"]["Success@1"]["n"] == 1

    other = write_corpus(tmp_path / "other.jsonl", [("z#1", "Warsaw", "Warsaw is the capital of Poland since 1596.")])
    done = rag("bench", "run", benchmark, "--out", tmp_path / "B", *arguments, "--corpus", other)
    assert done.returncode == 0, done.stderr
    elsewhere = open_run(tmp_path / "B")
    assert elsewhere.items("extractive")[0].cites == ["z#1"]
    assert elsewhere.record["benchmark"]["closed_pool"] is None
    assert not any(item.gold for item in elsewhere.items("extractive"))


def test_a_sample_is_asked(towns: Towns) -> None:
    run = towns(limit=2, seed=1)
    assert [one.question.id for one in run.questions()] == [item.id for item in run.items("extractive")]
    assert run.metrics("extractive")["n"] == 2


def test_the_handbook_is_asked_from_end_to_end(tmp_path: Path, rag: Command) -> None:
    """The benchmark that ships runs without any data folder, with the systems and the judge that ship."""
    systems = ("--system", "reader", "--system", "extractive")
    done = rag("bench", "run", "handbook", *systems, "--limit", "20", "--out", tmp_path / "RUN")
    assert done.returncode == 0, done.stderr
    heads, *rows = [re.split(" {2,}", line) for line in done.stdout.splitlines()[2:]]
    assert heads == ["system", "right", "attributed", "right and attributed", "refused"]
    assert [row[0] for row in rows] == ["reader", "extractive"]
    run = open_run(tmp_path / "RUN")
    for label in ("reader", "extractive"):
        assert len(list(read_items(tmp_path / "RUN" / label / "items.jsonl"))) == 20
        metrics = run.metrics(label)
        assert metrics["judge"].startswith("minilm@")
        answerable, unanswerable = (metrics["metrics"][name]["n"] for name in ("right@120", "unanswerable_refused"))
        assert answerable + unanswerable == 20
        assert answerable
        assert unanswerable


def test_wrong_calls_are_one_line(towns: Towns, tmp_path: Path, rag: Command) -> None:
    with pytest.raises(UsageError, match="systems should be a list, found one string"):
        run_benchmark("handbook", tmp_path / "A", systems="reader")
    for system, error in (("reeder", "no system called"), ("reader,k=x", "k should be an integer"),
                          ("reader,deep=1", "unknown option 'deep=1'"), ("reader,k=0", "k must be")):  # fmt: skip
        one_line_error(rag("bench", "run", "handbook", "--system", system, "--out", tmp_path / "A"), error)
    one_line_error(rag("bench", "run", "open-nq-pool", "--out", tmp_path / "A"), "name the folder (--data)")
    one_line_error(rag("bench", "run", "handbook", "--metrics", "best", "--out", tmp_path / "A"), "no citation metrics")
    with pytest.raises(RagError, match="has several corpora"):
        run_benchmark("own-documents", tmp_path / "A", tmp_path, corpus=tmp_path)
    assert not (tmp_path / "A").exists()


def test_a_folder_that_was_there_is_left_where_a_run_fails(tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    with pytest.raises(RagError, match=r"name the folder \(--data\)"):
        run_benchmark("open-nq-pool", tmp_path / "A")
    assert (tmp_path / "A").is_dir()


def test_the_table_says_what_each_number_is_over(towns: Towns, tmp_path: Path, rag: Command) -> None:
    run = towns(limit=None)
    answers = [json.loads(line) for line in (tmp_path / "RUN/extractive/answers.jsonl").read_text("utf-8").splitlines()]
    given = [
        answer | {"attributable": number == 0} for number, answer in enumerate(a for a in answers if a["sentences"])
    ]
    (tmp_path / "labels.jsonl").write_text("".join(dumps(answer) + "\n" for answer in given[:2]), "utf-8")
    toml, data = tmp_path / "towns.toml", tmp_path / "data"
    again = ("bench", "run", toml, "--data", data, "--stage", "measure", "--human", tmp_path / "labels.jsonl")
    done = rag(*again, "--out", tmp_path / "RUN", "--all")
    assert done.returncode == 0, done.stderr
    rows = {line[:20].strip(): re.split(" {2,}", line) for line in done.stdout.splitlines()}
    assert rows["right"][-1] == "4"
    assert rows["unanswerable_refused"][-1] == "1"
    assert rows["labelled answers"][-1] == "2"
    share = run.metrics("extractive")["ways"]["wrong_attributed"]
    low, high = share["interval95"]
    cell = f"{share['share']:.3f} [{low:.3f}, {high:.3f}]"
    assert rows["wrong attributed"] == ["wrong attributed", cell, f"{share['count']}/5"]


def test_a_line_per_system_has_the_rates_to_decide_by(towns: Towns, capsys: pytest.CaptureFixture[str]) -> None:
    run = towns(limit=None)
    metrics = run.metrics("extractive")
    show_run(run, [metrics])
    printed = capsys.readouterr()
    heads, row = [re.split(" {2,}", line) for line in printed.out.splitlines()[2:]]
    cells = dict(zip(heads, row, strict=True))
    refusals = sum(metrics["ways"][outcome]["count"] for outcome in ("refused_right", "refused_wrong"))
    assert cells["system"] == "extractive"
    assert cells["right"].startswith(f"{metrics['metrics']['right']['value']:.3f} [")
    assert cells["attributed"].startswith(f"{metrics['metrics']['autoais']['value']:.3f} [")
    assert cells["right and attributed"].startswith(f"{metrics['ways']['right_attributed']['share']:.3f} [")
    assert cells["refused"].startswith(f"{refusals / metrics['n']:.3f} [")
    assert "attributed, corrected" not in cells
    assert "--resume --all" in printed.err


def test_times_below_a_tenth_of_a_second_keep_two_digits(towns: Towns, capsys: pytest.CaptureFixture[str]) -> None:
    run = towns(limit=None)
    show_run(run, [run.metrics("extractive") | {"latency": {"n": 5, "p50": 0.00412, "p95": 1.234}}], all_metrics=True)
    rows = [re.split(" {2,}", line) for line in capsys.readouterr().out.splitlines()]
    assert [row for row in rows if row[0].startswith("seconds")] == [
        ["seconds, p50", "0.0041", "5"], ["seconds, p95", "1.23", "5"],
    ]  # fmt: skip


def test_notes_are_shown_also_of_runs_that_have_counts_by_sentence(
    towns: Towns, capsys: pytest.CaptureFixture[str]
) -> None:
    run = towns(limit=None)
    notes = {"broken_lines": {"count": 2, "text": "broken lines, skipped"}, "lines without an id, left out": 1}
    show_run(run, [run.metrics("extractive") | {"notes": notes}])
    told = capsys.readouterr().err
    assert "extractive: 2 broken lines, skipped" in told
    assert "extractive: 1 line without an id, left out" in told


@pytest.mark.usefixtures("undrawn")
def test_the_command_that_an_unfinished_run_advises_finishes_it(tmp_path: Path, rag: Command) -> None:
    out = tmp_path / "a run"
    run_benchmark("handbook", out, systems=["extractive"], judge="lexical", limit=2, stage="retrieve")
    run_benchmark("handbook", out, stage="answer")
    failed = rag("bench", "report", out)
    one_line_error(failed, "finish it with: rag bench run handbook --out ")
    command = failed.stderr.partition("finish it with: ")[2].partition(", with --data and --index as before")[0]
    done = rag(*shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    assert rag("bench", "report", out).returncode == 0


def test_full_disks_are_one_line(towns: Towns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    towns(stage="retrieve")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("autoais.base.io.journal.os.fsync", full)
    with pytest.raises(UserError, match=r"cannot be written: No space left on device"):
        towns(stage="answer")
    monkeypatch.undo()
    assert ways(towns(resume=True))


def test_the_folder_of_a_run_names_no_code_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, marker = tmp_path / "run", tmp_path / "ran"
    run_benchmark("handbook", out, systems=["extractive"], judge="lexical", limit=2)
    record = json.loads((out / "run.json").read_text("utf-8"))
    record["settings"]["judge"] = "evil:Judge"
    (out / "run.json").write_text(json.dumps(record), "utf-8")
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        RagError, match=r"its judge is 'evil:Judge', whose code would run; name it as judge \(--judge\)"
    ):
        run_benchmark("handbook", out, stage="judge")
    assert not marker.exists()


OWN = """
import rag


class Mine(rag.System):
    name = "mine.v1"

    def __init__(self, settings):
        self.retriever, self.k = settings.retriever, settings.k

    def respond(self, question):
        (hits,) = self.retriever.search([question.text], self.k)
        text = hits[0].passage.text.split(".")[0] + " [1]." if hits else ""
        return rag.parse_answer(question, text, hits, self.name)


class Broken(Mine):
    def __init__(self, settings):
        raise ValueError("no key")


class Half(rag.System):
    name = "half"


bare, number = Mine.respond, 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module in the current folder, with a system of one's own."""
    (tmp_path / "own_rag.py").write_text(OWN, "utf-8")
    monkeypatch.chdir(tmp_path)
    yield "own_rag"
    sys.modules.pop("own_rag", None)


def test_a_system_of_ones_own_is_run(towns: Towns, tmp_path: Path, rag: Command, own: str) -> None:
    run = towns(systems=["extractive", f"{own}:Mine", f"{own}:Mine,k=1,retriever=gold"])
    assert run.labels == ["extractive", "own_rag-Mine", "own_rag-Mine-gold-k1"]
    assert run.metrics("own_rag-Mine")["system"] == "mine.v1"
    assert ways(run, "own_rag-Mine")["1"] == "right_attributed"
    with pytest.raises(
        RagError, match=r"its system is 'own_rag:Mine', whose code would run; name it as a system \(--system\)"
    ):
        towns(resume=True, systems=())
    said = rag("ask", "What is the capital of Poland?", "--system", f"{own}:Mine", "--index", tmp_path / "RUN/index")
    assert "Warsaw is the capital of Poland [1]." in said.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_rag:None", "no system called|has no 'None'; it has: rag, Mine"),
        ("own_rag:number", "'own_rag:number' should be a subclass of rag.System, found int"),
        ("own_rag:Broken", "'own_rag:Broken' cannot be opened: ValueError: no key"),
        ("own_rag:Half", "'own_rag:Half' cannot be opened: TypeError: "),
        ("own_rag:Mine,seed=1", "'own_rag:Mine' has no option 'seed'"),
    ],
)
def test_a_system_of_ones_own_that_cannot_be_used_is_one_line(towns: Towns, own: str, name: str, said: str) -> None:
    assert own
    with pytest.raises(RagError, match=said):
        towns(systems=[name])


@pytest.mark.parametrize("command", ["bench run", "bench judges", "collect build", "collect import", "collect report"])
def test_options_that_repeat_show_no_types_of_python(command: str, rag: Command) -> None:
    done = rag(*command.split(), "--help")
    assert done.returncode == 0
    assert "list[" not in done.stdout


def test_gold_passages_that_the_corpus_lacks_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], towns: Towns
) -> None:
    assert "gold_not_in_corpus" not in dumps(towns("SOUND").record)
    rows = [{**row, "gold": ["b#1", "b#77", "x#1"]} for row in QUESTIONS[:3]]
    run = run_benchmark(
        write_benchmark(tmp_path, rows), tmp_path / "LACKS", tmp_path / "data", systems=["extractive"], judge="lexical"
    )
    (hits,) = run.record["retrieval"].values()
    assert hits["gold_not_in_corpus"] == {"count": 2, "examples": ["b#77", "x#1"]}
    show_run(run, [run.metrics("extractive")])
    assert "2 gold passages are not in the corpus, such as 'b#77'" in capsys.readouterr().err


def test_a_question_that_cannot_be_answered_has_no_answers(tmp_path: Path) -> None:
    benchmark = write_benchmark(tmp_path, [QUESTIONS[0], {**QUESTIONS[3], "answers": ["Anna"]}])
    with pytest.raises(FormatError, match=r"questions\.jsonl:2: field 'answerable' is false, and the question has"):
        run_benchmark(benchmark, tmp_path / "RUN", tmp_path / "data", systems=["extractive"], judge="lexical")
