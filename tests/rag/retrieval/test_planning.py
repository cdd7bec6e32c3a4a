"""`rag plan`: a sample is measured, and what grows with the passages grows."""

import json
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

import rag
from rag.base.errors import FormatError, RagError, UsageError
from rag.documents.corpus import Corpus
from rag.index.parts import read_data_configs
from rag.retrieval import planning, vector_index
from rag.retrieval.planning import plan
from rag.retrieval.vector_index import KINDS, choose_settings, estimate_seconds
from tests.conftest import Command, one_line_error, write_corpus

WORDS = "river lamp kettle bridge tower ferry mill clock salt barn well harbour".split()


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    rows = [(f"{n:04}", "", f"The {WORDS[n % 12]} of {WORDS[n % 11]} number {n:04}.") for n in range(1000)]
    return write_corpus(tmp_path / "towns.jsonl", rows)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def test_a_corpus_that_is_read_whole_is_as_large_as_it_is(towns: Path, elsewhere: Path) -> None:
    found = rag.plan_index(towns, retrievers=["static"])
    assert (found.passages, found.sampled) == (1000, 1000)
    assert [step.name for step in found.steps] == ["bm25", "static.v1"]
    assert list(elsewhere.iterdir()) == []
    index = rag.build_index(towns, towns.parent / "towns.index", retrievers=["static"])
    assert index.build is not None
    part = sum(path.stat().st_size for path in (index.build / "parts" / "static.v1").iterdir())
    built = sum(path.stat().st_size for path in index.build.rglob("*") if path.is_file())
    assert found.disk == pytest.approx(built, rel=0.25)
    assert found.steps[1].disk == pytest.approx(part, rel=0.1)
    assert found.seconds > 0


def test_a_plan_of_documents_has_the_vectors_that_their_index_gets(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Kettle\n\nThe kettle boils in the kitchen at seven.\n", "utf-8")
    names = [step.name for step in rag.plan_index(tmp_path / "docs").steps]
    assert names == ["bm25", "minilm-shipped.v1"]
    index = rag.build_index(tmp_path / "docs", tmp_path / "docs.index")
    assert [retriever.name for retriever in read_data_configs(index)] == names[1:]
    assert [step.name for step in rag.plan_index(tmp_path / "docs", passages=50_000).steps] == ["bm25"]
    assert [step.name for step in rag.plan_index(tmp_path / "docs", retrievers=["bm25"]).steps] == ["bm25"]


def test_more_passages_take_more(towns: Path) -> None:
    few, many = (plan(Corpus([towns]), passages=n, retrievers=["static"], memory=2**30) for n in (1_000, 1_000_000))
    assert many.sampled == 1000
    for one, other in zip(few.steps, many.steps, strict=True):
        assert other.disk == pytest.approx(1000 * one.disk, rel=0.2)  # two samples, whose segments differ a little
    assert many.steps[1].resident == pytest.approx(1000 * few.steps[1].resident, rel=0.01)
    assert many.resident == sum(step.resident for step in many.steps)
    assert many.memory == max(step.memory for step in many.steps)
    assert many.seconds > few.seconds


def test_what_is_done_once_does_not_grow(towns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of 1,000 passages the first 64 take 9 seconds, and all of them 10.
    clock = iter([0.0, 10.0, 0.0, 9.0])
    monkeypatch.setattr(planning, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    (step,) = plan(Corpus([towns]), passages=1_000_000, retrievers=[]).steps
    assert step.seconds == pytest.approx(10 + 999_000 * 1 / 936)
    assert step.why == "the sample is small: it took 10.00 s, its first part alone 9.00 s; the time for more is a guess"


def test_more_passages_take_longer_whatever_a_busy_machine_says(towns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 10.0, 0.0, 11.0])  # the first 64 of 1,000 take longer than all
    monkeypatch.setattr(planning, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    (step,) = plan(Corpus([towns]), passages=1_000_000, retrievers=[]).steps
    assert step.seconds == pytest.approx(10 + 999_000 * 0.001)


def test_a_sample_that_is_too_small_to_tell_the_time_is_named(
    tmp_path: Path, rag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count()  # on a busy machine the first part may take less than half of the time of all
    monkeypatch.setattr(planning, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    source = write_corpus(tmp_path / "few.jsonl", [(str(n), "", f"The {WORDS[n]}.") for n in range(12)])
    one = write_corpus(tmp_path / "one.jsonl", [("1", "", "The lamp.")])
    for path in (source, one):
        for step in plan(Corpus([path]), passages=33_000_000, retrievers=["static"]).steps:
            assert step.why.partition("the sample is small: it took ")[1], step
        assert not any("small" in step.why for step in plan(Corpus([path]), retrievers=["static"]).steps)
    done = rag("plan", str(source), "--passages", "33M")
    assert done.stdout.splitlines()[-1].startswith("bm25: the sample is small: it took ")
    (step,) = json.loads(rag("plan", str(source), "--passages", "33M", "--json").stdout)["steps"]
    assert step["why"].startswith("the sample is small: it took ")


def test_a_sample_of_many_passages_tells_the_time(tmp_path: Path) -> None:
    rows = [(f"{n:05}", "", f"The {WORDS[n % 12]} of {WORDS[n % 11]} number {n:05}. " * 20) for n in range(20_000)]
    (step,) = plan(Corpus([write_corpus(tmp_path / "many.jsonl", rows)]), passages=10**6, retrievers=[]).steps
    assert step.why == ""


def test_the_size_of_a_corpus_is_estimated_from_what_was_read(tmp_path: Path) -> None:
    rows = [(f"{n:05}", "", f"The {WORDS[n % 12]} of {WORDS[n % 11]} number {n:05}.") for n in range(20_000)]
    found = plan(Corpus([write_corpus(tmp_path / "towns.jsonl", rows)]), sample=5_000)
    assert found.sampled == 5_000
    assert found.passages == pytest.approx(20_000, rel=0.2)  # it is read in blocks


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_time_of_an_index_grows_with_its_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def second(work: Callable[[], object]) -> float:
        work()
        return 1.0

    monkeypatch.setattr(vector_index, "_measure", second)
    monkeypatch.setattr(vector_index, "_MAX_SAMPLE", 4_000)
    if kind == "flat":
        assert estimate_seconds(kind, 10**9, 32, {}) == 0
        return
    pytest.importorskip("faiss", reason="needs the extra 'dense'")
    few, many = (estimate_seconds(kind, n, 32, choose_settings(kind, n, 32, {})) for n in (10**5, 10**7))
    assert 0 < few < many


def test_the_command_prints_a_table_or_json(towns: Path, rag: Command) -> None:
    done = rag("plan", str(towns), "--passages", "2M", "--retriever", "static", "--price", "0.5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2,000,000 passages; 1,000 measured on ")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:5]] == ["step", "bm25", "static.v1", "in"]
    assert " at 0.5 an hour" in done.stdout.splitlines()[-1]
    found = json.loads(rag("plan", str(towns), "--json").stdout)
    assert (found["passages"], len(found["steps"])) == (1000, 1)
    assert found["disk"] == found["steps"][0]["disk"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sample", "10"], "the sample should be at least 128 passages, found 10"),
        (["--passages", "0"], "'0' is not a size or number; write passages as 33M"),
        (["--passages", "many"], "'many' is not a size or number; write passages as 33M"),
        (["--retriever", "nothing"], "no retriever called 'nothing'"),
    ],
)
def test_what_cannot_be_planned(towns: Path, rag: Command, options: list[str], message: str) -> None:
    one_line_error(rag("plan", str(towns), *options), message)


def test_a_url_is_not_planned_for(rag: Command) -> None:
    one_line_error(rag("plan", "https://example.org/"), "cannot plan for https://example.org/: save its pages")


def test_a_limit_that_cannot_be_kept_is_told(towns: Path) -> None:
    with pytest.raises(RagError, match=r"its flat index keeps 16,113\.3 MiB in memory, above the 1,024\.0 MiB given"):
        plan(Corpus([towns]), passages=33_000_000, retrievers=["static"], memory=2**30)


def test_a_broken_corpus_is_told(tmp_path: Path) -> None:
    source = tmp_path / "broken.jsonl"
    source.write_text('{"docid": "1", "title": "", "text": "A lamp."}\n{"docid": 2}\n', "utf-8")
    with pytest.raises(FormatError, match=r"broken\.jsonl:2"):
        plan(Corpus([source]))
    assert plan(Corpus([source], skip_bad=True)).passages == 1
    with pytest.raises(UsageError, match="passages should be at least 1, found 0"):
        plan(Corpus([source], skip_bad=True), passages=0)
    (tmp_path / "empty.jsonl").write_text("", "utf-8")
    with pytest.raises(RagError, match="no passages"):
        plan(Corpus([tmp_path / "empty.jsonl"], "miracl"))
