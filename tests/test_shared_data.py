"""The readers on the real files, where they are at hand; people who clone the project do not have them."""

from itertools import islice
from pathlib import Path

import pytest

from autoais.questions import read_questions
from rag.benchmarks import read_benchmark
from rag.corpus.reader import Corpus, sniff
from rag.errors import RagError
from rag.resources import names


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


@pytest.mark.parametrize("name", [name for name in names("benchmarks", ".toml") if name != "handbook"])
def test_the_data_of_every_benchmark_is_the_one_it_means(shared_data: Path, name: str) -> None:
    benchmark = read_benchmark(name)
    assert benchmark.questions.check(shared_data).is_file()
    assert benchmark.corpus.check(shared_data).is_file()


def test_a_benchmark_refuses_missing_and_other_data(tmp_path: Path) -> None:
    questions = read_benchmark("open-nq-pool").questions
    with pytest.raises(RagError, match="is missing"):
        questions.check(tmp_path)
    (tmp_path / "nq").mkdir()
    (tmp_path / questions.file).write_text("other")
    with pytest.raises(RagError, match="is another version"):
        questions.check(tmp_path)
    with pytest.raises(RagError, match="no benchmark called 'nope'; there are: handbook, open-nq-pool"):
        read_benchmark("nope")
