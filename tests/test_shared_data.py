"""The readers on the real files, where they are at hand; people who clone the project do not have them."""

from itertools import islice
from pathlib import Path

import pytest

from autoais.base.io.jsonl import read_objects
from autoais.formats.questions import read_questions
from rag.bench.benchmark import LabelSet, list_benchmarks, list_label_sets, read_benchmark
from rag.bench.questions import questions_of
from rag.documents.corpus import Corpus, sniff

# Sets that nobody ships: those who have fetched them into the folder of the data test them too.
FETCHED = ("acl-verbatim", "alce-asqa", "alce-eli5", "alce-qampari", "hagrid", "nomiracl")


@pytest.mark.parametrize(
    ("file", "rows"),
    [
        ("nq/nq_pool_dev.jsonl", 2000),
        ("nq/NQ-open.dev.jsonl", 3610),
        ("nq/NQ-open.efficientqa.dev.1.1.jsonl", 1800),
        ("miracl/dev_pool.jsonl", 300),
        ("clapnq/dev.jsonl", 400),
        ("topics/topics.miracl-v1.0-en-dev.tsv", 799),
        ("topics/topics.dpr.nq.dev.txt", 8757),
        ("topics/topics.dpr.trivia.dev.txt", 8837),
        ("topics/topics.dpr.squad.test.txt", 10570),
    ],
)
def test_every_question_file_is_read_whole(shared_data: Path, file: str, rows: int) -> None:
    questions = list(read_questions(shared_data / file))
    assert len(questions) == rows
    if "topics.miracl" not in file and "miracl/" not in file and "clapnq" not in file:
        assert all(question.answers for question in questions)


def test_the_pool_is_sniffed_and_read(shared_data: Path) -> None:
    pool = shared_data / "wiki/passages.jsonl.zst"
    assert sniff(pool) == "miracl"
    passages = [passage for _, passage in islice(Corpus([pool]).read(), 1000)]
    assert len({passage.id for passage in passages}) == 1000


@pytest.mark.parametrize("name", [one.name for one in list_benchmarks()])
def test_the_data_of_every_benchmark_is_the_one_it_means(shared_data: Path, name: str) -> None:
    benchmark = read_benchmark(name)
    if name in FETCHED and not benchmark.questions.path(shared_data, benchmark.home).is_file():
        pytest.skip(f"{name} has not been fetched")
    asked = questions_of(benchmark, shared_data)
    assert benchmark.count in (None, len(asked))
    for corpus in benchmark.corpora.values():
        if corpus.sha256 is not None:  # folders of documents are fetched by those who want them
            assert corpus.check(shared_data, benchmark.home).is_file()
    if name == "open-nq":
        assert sum(not one.question.gold for one in asked) == 1610
    if name in ("nomiracl-pool", "clapnq-pool"):
        assert sum(not one.answerable for one in asked) == {"nomiracl-pool": 147, "clapnq-pool": 201}[name]


@pytest.mark.parametrize("labels", list_label_sets(), ids=lambda one: one.name)
def test_the_labels_of_every_set_for_judges_are_those_it_means(shared_data: Path, labels: LabelSet) -> None:
    rows = [row for file in labels.files for _, row in read_objects(file.check(shared_data, labels.home))]
    counted = [row for row in rows if labels.only is None or row["dataset"] in labels.only]
    assert len(counted) == labels.count
    assert not [row for row in counted if row.get("split", "").endswith("-automatic")]  # labels by people only
