"""A benchmark's TOML may come from somebody else: it is data, and names nothing outside its folders."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.base.errors import RagError, UserError
from rag.bench.benchmark import list_benchmarks, read_benchmark, read_label_set
from rag.bench.question_files import sample
from rag.bench.questions import questions_of
from rag.bench.tables import inside, is_below
from tests.conftest import Command, one_line_error

TOML = """
name = "towns"
version = 1
description = "Towns"
licence = "ours"
closed_pool = true
right = "em"

[questions]
file = "towns.jsonl"
sha256 = "{sha256}"
count = 2

[corpus]
file = "shelf.jsonl"
sha256 = "{sha256}"
"""
ZEROS = "0" * 64


def write(folder: Path, text: str = TOML.format(sha256=ZEROS)) -> Path:
    path = folder / "towns.toml"
    path.write_text(text, "utf-8")
    return path


def test_the_benchmarks_that_ship_are_listed(rag: Command) -> None:
    listed = {one.name: one for one in list_benchmarks()}
    assert listed.keys() == {
        "acl-verbatim", "alce-asqa", "alce-eli5", "alce-qampari", "clapnq-pool", "everyday", "everyday-dev", "hagrid",
        "handbook", "miracl-pool", "miracl-public", "nomiracl", "nomiracl-pool", "open-nq", "open-nq-pool",
        "own-documents", "own-documents-fresh", "own-documents-fresh-2", "own-documents-kept", "real-folders",
        "real-folders-kept",
    }  # fmt: skip
    assert not any(listed[name].needs_data for name in ("everyday", "everyday-dev", "handbook"))
    assert listed["own-documents"].needs_data
    assert len(listed["own-documents"].corpora) == 10
    printed = rag("bench", "list").stdout
    assert "open-nq-pool" in printed
    assert "3,610" in printed
    assert "nomiracl: number of questions unknown; corpus: given; task: given" in printed


def test_the_list_fits_the_terminal_and_is_whole_lines_in_a_pipe(rag: Command) -> None:
    shown = rag("bench", "list", COLUMNS="80", FORCE_COLOR="1", NO_COLOR="1").stdout
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("hagrid: 716 questions") for line in lines)
    assert any(len(line) > 100 for line in rag("bench", "list").stdout.splitlines())


@pytest.mark.parametrize(
    "name",
    [
        "everyday",
        "everyday-dev",
        "handbook",
        "own-documents",
        "own-documents-fresh",
        "own-documents-fresh-2",
        "own-documents-kept",
        "real-folders",
        "real-folders-kept",
    ],
)
def test_questions_that_ship_are_read_without_a_data_folder(name: str) -> None:
    benchmark = read_benchmark(name)
    asked = questions_of(benchmark, None)
    assert len(asked) == benchmark.count
    assert any(not one.answerable for one in asked)
    assert all(one.question.nuggets for one in asked if one.answerable)
    assert not any(one.question.answers for one in asked)


def test_a_benchmark_of_ones_own_is_read_by_path(tmp_path: Path) -> None:
    benchmark = read_benchmark(write(tmp_path))
    assert (benchmark.id, benchmark.right, benchmark.k, benchmark.task) == ("towns.v1", "em", None, "answer")


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('name = "towns"', 'name = "../towns"', "'name' should be letters, digits"),
        ('name = "towns"', "", "setting 'name' is missing"),
        ("version = 1", 'version = "1"', "'version' should be an integer"),
        ("version = 1", "version = true", "'version' should be an integer"),
        ("version = 1", "version = 0", "'version' should be from 1"),
        ("closed_pool = true", "closed_pool = 1", "'closed_pool' should be true or false"),
        ('licence = "ours"', 'licence = "a\\nb"', "'licence' should be one line"),
        ('right = "em"', 'right = "best"', "'right' should be one of em,"),
        ('right = "em"', 'run = "rm -rf /"', "unknown setting 'run'"),
        ('file = "towns.jsonl"', 'file = "/etc/passwd"', "'file' should be a relative path that stays"),
        ('file = "towns.jsonl"', 'file = "a/../../b"', "'file' should be a relative path that stays"),
        ('file = "towns.jsonl"', 'file = "C:\\\\b"', "'file' should be a relative path that stays"),
        ('file = "towns.jsonl"', "file = 3", "'file' should be a string"),
        ("count = 2", "count = -2", "'count' should be from 1"),
        ("[corpus]", "[corpora]", "'file' should be a table"),
        ("[corpus]", "corpus = 3\n[more]", "unknown setting 'more'"),
        (f'sha256 = "{ZEROS}"\ncount', 'sha256 = "zero"\ncount', "'sha256' should be 64 hexadecimal digits"),
        ('file = "shelf.jsonl"', 'file = "a"\nfolder = "b"', "either a file or a folder"),
        (
            'file = "shelf.jsonl"',
            'shipped = true\nfolder = "../secrets"',
            "'folder' should be a relative path that stays",
        ),
        ("[questions]", "[questions", "not a benchmark: "),
        ("[corpus]", "[[questions]]\nfile = 3\n[corpus]", "not a benchmark: "),
        ("count = 2", 'qrels = "a.tsv"', "'qrels' should be a table"),
        ("count = 2", 'qrels = { file = "../a.tsv" }', "'file' should be a relative path that stays"),
        ("count = 2", "passages = 0", "'passages' should be from 1"),
        ("[corpus]", '[texts]\nfile = "a.jsonl"\n[corpus]', "[texts] belongs to given passages without a corpus"),
    ],
)
def test_a_broken_benchmark_is_one_line(tmp_path: Path, rag: Command, old: str, new: str, error: str) -> None:
    text = TOML.format(sha256=ZEROS)
    assert old in text
    path = write(tmp_path, text.replace(old, new, 1))
    with pytest.raises(RagError) as caught:
        read_benchmark(path)
    assert error in str(caught.value)
    one_line_error(rag("bench", "run", path, "--out", tmp_path / "RUN"), "towns.toml")


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "big.toml").write_text("a = 1\n" * 200_000)
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for name in ("big", "deep", "bytes", "absent"):
        with pytest.raises(RagError):
            read_benchmark(tmp_path / f"{name}.toml")
    with pytest.raises(RagError, match="no benchmark called 'nope'; there are: acl-verbatim, alce-asqa"):
        read_benchmark("nope")
    with pytest.raises(RagError, match="no labelled set called 'nope'; there are: attributionbench, "):
        read_label_set("nope")


def test_a_link_beside_a_benchmark_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text('{"id": "1", "question": "Who?"}\n')
    home = tmp_path / "theirs"
    home.mkdir()
    (home / "towns.jsonl").symlink_to(tmp_path / "secret.jsonl")
    text = TOML.format(sha256=ZEROS).replace(f'sha256 = "{ZEROS}"\ncount', "shipped = true\ncount")
    with pytest.raises(RagError, match=r"'towns.jsonl' leaves"):
        questions_of(read_benchmark(write(home, text)), None)


@given(st.text(max_size=30))
def test_no_path_of_a_benchmark_leaves_its_folder(path: str) -> None:
    root = Path("/data")
    if is_below(path):
        assert (root / path).resolve().is_relative_to(root)
    else:
        with pytest.raises(RagError):
            inside(root, path)


def test_data_is_checked(tmp_path: Path) -> None:
    benchmark = read_benchmark(write(tmp_path))
    with pytest.raises(RagError, match=r"name the folder \(--data\)"):
        questions_of(benchmark, None)
    with pytest.raises(UserError, match="is not a folder"):
        questions_of(benchmark, tmp_path / "nowhere")
    with pytest.raises(RagError, match="is missing"):
        questions_of(benchmark, tmp_path)
    (tmp_path / "towns.jsonl").write_text("other")
    with pytest.raises(RagError, match="is another version"):
        questions_of(benchmark, tmp_path)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"answerable": "yes"}, "'answerable' should be true or false"),
        ({"kind": 3}, "'kind' should be a string"),
        ({"passages": 3}, "'passages' should be a list"),
        ({"passages": [3]}, "'passages' should be a list"),
        ({"passages": ["a", "a"]}, "'a' is empty or occurs twice"),
        ({"passages": [{"text": "x"}]}, "'id' is missing"),
        ({"docids": [1]}, "'docids' should be a list of strings"),
    ],
)
def test_a_broken_question_is_one_line(tmp_path: Path, row: dict[str, Any], error: str) -> None:
    from autoais.base.io.jsonl import dumps
    from rag.base.errors import FormatError
    from rag.bench.question_files import read_bench_questions

    path = tmp_path / "q.jsonl"
    path.write_text(dumps({"id": "1", "question": "Who?"} | row) + "\n")
    with pytest.raises(FormatError) as caught:
        read_bench_questions(path)
    assert str(caught.value).startswith(f"{path}:1: ")
    assert error in str(caught.value)


def test_a_sample_is_seeded_keeps_the_order_and_grows() -> None:
    asked = questions_of(read_benchmark("handbook"), None)
    small, large, other = sample(asked, 5, 0), sample(asked, 20, 0), sample(asked, 5, 1)
    ids = [one.question.id for one in asked]
    assert len(small) == 5
    assert [ids.index(one.question.id) for one in large] == sorted(ids.index(one.question.id) for one in large)
    assert {one.question.id for one in small} < {one.question.id for one in large}
    assert small != other
    assert sample(asked, None, 0) == sample(asked, 99, 0) == asked


def test_a_byte_order_mark_is_read_and_another_encoding_is_told(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_benchmark(path).name == "towns"
    path.write_bytes(TOML.format(sha256=ZEROS).replace("Towns", "Städte").encode("latin-1"))
    with pytest.raises(RagError, match=r"towns\.toml: not UTF-8 at byte 45; save the file as UTF-8") as told:
        read_benchmark(path)
    assert "\n" not in str(told.value)
