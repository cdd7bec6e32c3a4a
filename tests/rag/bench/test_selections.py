"""A part of a corpus is the same from whatever files it is taken, and every result says how much was searched."""

import gzip
import json
import random
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from autoais.base.engines import LocalEngine
from autoais.base.io.jsonl import dumps, read_objects
from rag.base.errors import FormatError, RagError, UsageError, UserError
from rag.bench import open_run, report_table, run_benchmark
from rag.bench.folder import BenchRun
from rag.bench.report import report_schema, write_report
from rag.bench.selections import Selection, parse_count, read_ids, write_selection
from tests.conftest import Command, one_line_error, write_corpus

QUICK: dict[str, Any] = {"systems": ["first-passage"], "judge": "lexical"}
RIVERS = [
    (f"r#{number}", f"River {number}", f"The river number {number} flows for {10 * number} miles to the sea.")
    for number in range(400)
]


def in_parts(folder: Path, rows: Sequence[tuple[str, str, str]], parts: int) -> list[Path]:
    """The rows, shuffled, in compressed files."""
    folder.mkdir()
    shuffled = list(rows)
    random.Random(parts).shuffle(shuffled)
    files = []
    for part in range(parts):
        plain = write_corpus(folder / f"docs-{part}.jsonl", shuffled[part::parts])
        packed = plain.with_suffix(".jsonl.gz")
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
        files.append(packed)
    return files


def digits(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]


def ids_of(path: Path) -> list[str]:
    return [row["docid"] for _, row in read_objects(path)]


def write_benchmark(folder: Path, corpus: str, *, ids: str = "", gold: str = "", right: str = "gold_cited") -> Path:
    """A benchmark of three questions about rivers, with topics and qrels as TREC has them."""
    (folder / "topics.tsv").write_text("".join(f"{n}\tHow long is river number {n}?\n" for n in (7, 8, 9, 10)))
    (folder / "qrels.tsv").write_text(gold or "7 0 r#7 1\n7 0 r#70 0\n8 0 r#8 1\n8 0 r#88 1\n9 0 r#9 2\n10 0 r#10 1\n")
    (folder / "questions.txt").write_text("7\n8\n9\n")
    (folder / "rivers.toml").write_text(
        'name = "rivers"\nversion = 1\ndescription = "Rivers"\nlicence = "ours"\n'
        f'closed_pool = true\nk = 3\nright = "{right}"\n'
        '[questions]\nfile = "topics.tsv"\ncount = 3\n[questions.ids]\nfile = "questions.txt"\n'
        f'[gold]\nfile = "qrels.tsv"\nsha256 = "unknown"\n[corpus]\n{corpus}\nformat = "miracl"\n{ids}',
        "utf-8",
    )
    return folder / "rivers.toml"


def listed(folder: Path, rows: Sequence[tuple[str, str, str]]) -> str:
    """The table of a list of these passages."""
    (folder / "ids.tsv").write_text("".join(f"{key}\t{digits(text)}\n" for key, _, text in rows))
    return f'[corpus.ids]\nfile = "ids.tsv"\nsha256 = "{sha256((folder / "ids.tsv").read_bytes()).hexdigest()}"\n'


# --- the file of a selection --------------------------------------------------------------------------------------


def test_a_sample_is_of_ids_and_not_of_files_or_their_order(tmp_path: Path) -> None:
    selection = Selection({"r#1": "", "r#399": "", "r#nowhere": ""}, 50)
    outputs = []
    for parts in (1, 3):
        out = tmp_path / f"{parts}.jsonl"
        facts = write_selection(in_parts(tmp_path / f"parts-{parts}", RIVERS, parts), "miracl", selection, out)
        assert (facts["passages"], facts["of"], facts["listed"], facts["missing"]) == (50, 400, 3, 1)
        assert facts["examples"] == {"missing": "r#nowhere"}
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    ids = ids_of(tmp_path / "1.jsonl")
    assert len(set(ids)) == 50
    assert set(ids[:2]) == {"r#1", "r#399"}
    others = sorted((key for key, _, _ in RIVERS if key not in ids[:2]), key=lambda key: sha256(key.encode()).digest())
    assert ids[2:] == others[:48]
    row = next(row for _, row in read_objects(tmp_path / "1.jsonl") if row["docid"] == "r#1")
    assert row == {"docid": "r#1", "title": "River 1", "text": RIVERS[1][2]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.jsonl", "3.jsonl", "parts-1", "parts-3"]


def test_a_draw_drops_what_it_no_longer_needs(tmp_path: Path) -> None:
    """The corpus has many times the passages that are held at once."""
    rows = [(f"p#{number}", "", f"Passage {number}.") for number in range(5000)]
    source = write_corpus(tmp_path / "many.jsonl", rows)
    facts = write_selection([source], None, Selection({"p#4999": ""}, 20), tmp_path / "out.jsonl")
    assert (facts["passages"], facts["of"]) == (20, 5000)
    others = sorted((key for key, _, _ in rows[:-1]), key=lambda key: sha256(key.encode()).digest())
    assert ids_of(tmp_path / "out.jsonl") == ["p#4999", *others[:19]]


def test_a_larger_sample_holds_a_smaller_one_and_at_most_the_corpus(tmp_path: Path) -> None:
    source = write_corpus(tmp_path / "rivers.jsonl", RIVERS)
    small, large, whole = ({*ids_of(sample(source, size))} for size in (10, 100, 5000))
    assert small < large < whole
    assert len(whole) == 400


def sample(source: Path, size: int) -> Path:
    target = source.with_name(f"{size}.jsonl")
    write_selection([source], "miracl", Selection({}, size), target)
    return target


def test_a_corpus_without_any_listed_passage_is_another_one(tmp_path: Path) -> None:
    source = write_corpus(tmp_path / "rivers.jsonl", RIVERS)
    with pytest.raises(RagError, match="holds none of the 1 listed passages"):
        write_selection([source], "miracl", Selection({"x": ""}), tmp_path / "out.jsonl")
    source.write_text(source.read_text() + "{broken\n")
    with pytest.raises(FormatError, match=r"rivers\.jsonl:401"):
        write_selection([source], "miracl", Selection({}, 10), tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(("text", "count"), [("500k", 500_000), ("2M", 2_000_000), ("1000", 1000), (" 3K ", 3000)])
def test_numbers_of_passages(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "0", "-5", "1.5M", "500kk", "1e6", "many", "٥", "9" * 40])
def test_what_is_no_number_of_passages(text: str) -> None:
    with pytest.raises(UsageError, match="is no number of passages; write it as 500k"):
        parse_count(text)


# --- lists of ids -------------------------------------------------------------------------------------------------


def test_a_list_of_ids(tmp_path: Path) -> None:
    path = tmp_path / "ids.tsv"
    path.write_bytes("\ufeff12#0\t0123abcd\r\nid with spaces\n東京".encode())
    assert read_ids(path) == {"12#0": "0123abcd", "id with spaces": "", "東京": ""}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "holds no ids"),
        (b"a\n\nb\n", ":2: expected an id of 1 to 400 printable characters, found ''"),
        (b"a\nb\na\n", ":3: id 'a' occurs twice"),
        (b"a\t12\n", ":1: expected 8 to 64 hexadecimal digits after the tab, found '12'"),
        (b"a\t0123abcd\tmore\n", ":1: expected 8 to 64 hexadecimal digits"),
        (b"a\x1b[31m\n", ":1: expected an id"),
        (b"x" * 401, ":1: expected an id"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
    ],
)
def test_a_hostile_list_is_one_line(tmp_path: Path, content: bytes, error: str) -> None:
    path = tmp_path / "ids.tsv"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_ids(path)
    assert error in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


# --- a benchmark over a list --------------------------------------------------------------------------------------


def test_a_list_makes_the_same_corpus_of_parts_and_of_one_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    in_parts(data / "parts", RIVERS, 3)
    write_corpus(data / "others.jsonl", [("z#1", "Lake", "A lake."), *RIVERS[:60]])
    (tmp_path / "data" / "topics.tsv").write_text("")
    benchmark = write_benchmark(data, 'folder = "parts"', ids=listed(data, RIVERS[:50]))
    whole = run_benchmark(benchmark, tmp_path / "A", data, **QUICK)
    other = run_benchmark(benchmark, tmp_path / "B", data, corpus=data / "others.jsonl", **QUICK)
    checksums = [run.record["indexes"][""]["checksum"] for run in (whole, other)]
    assert checksums[0] == checksums[1]
    selections = [run.record["indexes"][""]["selection"] for run in (whole, other)]
    assert [(one["passages"], one["of"], one["missing"], one["changed"]) for one in selections] == [
        (50, 400, 0, 0),
        (50, 61, 0, 0),
    ]
    for run in (whole, other):
        assert run.record["benchmark"]["closed_pool"] is True
        assert run.metrics("first-passage")["sample"] is None  # it is all of the benchmark's corpus
        golds = {item.id: item.gold for item in run.items("first-passage")}
        assert golds == {"7": ("r#7",), "8": ("r#8",), "9": ("r#9",)}  # r#88 is not in the list, r#70 not relevant
        assert run.metrics("first-passage")["metrics"]["right"]["value"] == 1
    assert ids_of(tmp_path / "A/index/ids.jsonl") == ids_of(tmp_path / "B/index/ids.jsonl")


def test_passages_that_are_missing_or_differ_are_counted_and_too_many_are_an_error(
    tmp_path: Path, rag: Command
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = [("r#20", "River 20", "Another text."), *RIVERS[:20], *RIVERS[22:100]]
    write_corpus(data / "rivers.jsonl", rows)
    benchmark = write_benchmark(data, 'file = "rivers.jsonl"', ids=listed(data, RIVERS[:100]))
    arguments = ("--data", data, "--system", "first-passage", "--judge", "lexical")
    done = rag("bench", "run", benchmark, "--out", tmp_path / "A", *arguments)
    assert done.returncode == 0, done.stderr
    said = "of 100 listed passages, 1 not in the corpus (such as 'r#21') and 1 with another text there (such as 'r#20')"
    assert said in done.stderr
    write_corpus(data / "rivers.jsonl", rows[:60])
    done = rag("bench", "run", benchmark, "--out", tmp_path / "B", *arguments)
    one_line_error(done, "rivers.jsonl is not the corpus of the list of ids: of 100 listed passages, 40 not in")
    assert not (tmp_path / "B/index/ids.jsonl").exists()


def test_another_list_than_the_checksum_says_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_corpus(data / "rivers.jsonl", RIVERS)
    benchmark = write_benchmark(data, 'file = "rivers.jsonl"', ids=listed(data, RIVERS[:50]))
    with (data / "ids.tsv").open("a") as file:
        file.write("r#99\n")
    with pytest.raises(RagError, match=r"ids\.tsv is another version"):
        run_benchmark(benchmark, tmp_path / "A", data, **QUICK)
    benchmark.write_text(benchmark.read_text().replace('file = "ids.tsv"', 'file = "../ids.tsv"'))
    with pytest.raises(RagError, match="'file' should be a relative path that stays in its folder"):
        run_benchmark(benchmark, tmp_path / "A", data, **QUICK)


def test_questions_that_are_listed_and_missing_are_an_error(rivers: Path) -> None:
    (rivers.parent / "questions.txt").write_text("7\n8\n77\n")
    with pytest.raises(RagError, match=r"topics\.tsv: lacks 1 of the 3 questions that are listed, such as '77'"):
        run_sample(rivers)


# --- a sample -----------------------------------------------------------------------------------------------------


@pytest.fixture
def rivers(tmp_path: Path) -> Path:
    """A benchmark whose corpus has 400 passages."""
    (tmp_path / "data").mkdir()
    write_corpus(tmp_path / "data/rivers.jsonl", RIVERS)
    return write_benchmark(tmp_path / "data", 'file = "rivers.jsonl"')


def run_sample(benchmark: Path, out: str = "RUN", size: int | None = 40, **options: Any) -> BenchRun:  # noqa: ANN401
    folder = benchmark.parents[1] / out
    return run_benchmark(benchmark, folder, benchmark.parent, corpus_sample=size, **(QUICK | options))


def test_a_sample_has_the_gold_passages_and_every_result_says_so(rivers: Path, tmp_path: Path, rag: Command) -> None:
    done = rag(
        "bench", "run", rivers, "--data", rivers.parent, "--out", tmp_path / "RUN", "--corpus-sample", "40",
        "--system", "first-passage", "--judge", "lexical",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "rivers.v1: 3 questions, a closed pool, a sample of 40 of 400 passages, judged by" in done.stdout
    run = open_run(tmp_path / "RUN")
    assert {"r#7", "r#8", "r#88", "r#9"} < set(ids_of(tmp_path / "RUN/index/sample-40.jsonl"))
    assert run.record["indexes"][""]["selection"]["passages"] == run.record["indexes"][""]["passages"] == 40
    assert run.record["data"]["corpus"][""]["sample"] == 40
    assert run.metrics("first-passage")["sample"] == {"passages": 40, "of": 400}
    assert "closed pool, sample of 40 of 400 passages, 3 questions" in report_table(tmp_path / "RUN")


@pytest.mark.usefixtures("undrawn")
def test_a_report_says_that_the_corpus_is_a_sample(rivers: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    jsonschema = pytest.importorskip("jsonschema")
    run_sample(rivers)
    page = write_report(tmp_path / "RUN").page
    assert "The corpus is a sample of 40 of 400 passages" in page.read_text("utf-8")
    report = json.loads((page.parent / "report.json").read_text())
    jsonschema.validate(report, report_schema())
    assert report["groups"][0]["sample"] == {"passages": 40, "of": 400}


def test_a_sample_of_another_corpus_has_no_gold_passages(rivers: Path, tmp_path: Path) -> None:
    other = write_corpus(tmp_path / "other.jsonl", [(f"o{key}", title, text) for key, title, text in RIVERS])
    run = run_sample(rivers, corpus=other)
    assert run.record["benchmark"]["closed_pool"] is None
    assert run.metrics("first-passage")["sample"] == {"passages": 40, "of": 400}
    assert not any(item.gold for item in run.items("first-passage"))


def test_a_list_can_be_widened_by_a_sample(rivers: Path, tmp_path: Path) -> None:
    data = rivers.parent
    benchmark = write_benchmark(data, 'file = "rivers.jsonl"', ids=listed(data, RIVERS[:20]))
    run = run_sample(benchmark)
    ids = ids_of(tmp_path / "RUN/index/sample-40.jsonl")
    assert {key for key, _, _ in RIVERS[:20]} | {"r#88"} == set(ids[:21])
    assert len(ids) == 40
    assert {item.id: item.gold for item in run.items("first-passage")}["8"] == ("r#8", "r#88")


def test_a_stopped_build_goes_on_and_a_finished_one_reads_nothing(rivers: Path, tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(step: str, done: int, total: int) -> None:
        if step == "indexing":
            raise StoppedError

    with pytest.raises(StoppedError):
        run_sample(rivers, index=tmp_path / "IDX", progress=stop)
    corpus = rivers.parent / "rivers.jsonl"
    steps: list[str] = []
    run_sample(rivers, "AGAIN", index=tmp_path / "IDX", progress=lambda step, done, total: steps.append(step))
    assert "selecting passages" not in steps
    assert "indexing" in steps
    steps.clear()
    run_sample(rivers, "THIRD", index=tmp_path / "IDX", progress=lambda step, done, total: steps.append(step))
    assert not {"selecting passages", "indexing"} & set(steps)
    fresh = run_sample(rivers, "FRESH")
    assert fresh.record["indexes"] == open_run(tmp_path / "THIRD").record["indexes"]
    write_corpus(corpus, RIVERS[:300])
    with pytest.raises(RagError, match=r"sample-40.index is of another corpus, other gold passages or another list"):
        run_sample(rivers, "FOURTH", index=tmp_path / "IDX")
    (tmp_path / "IDX/sample-40.json").unlink()  # the index of the other corpus goes with its record
    again = run_sample(rivers, "FIFTH", index=tmp_path / "IDX")
    assert again.record["indexes"] == run_sample(rivers, "SIXTH").record["indexes"] != fresh.record["indexes"]


def test_a_run_goes_on_with_the_same_sample_only(rivers: Path) -> None:
    run_sample(rivers)
    assert run_sample(rivers, resume=True).metrics("first-passage")["sample"] == {"passages": 40, "of": 400}
    for size in (None, 41):
        with pytest.raises(RagError, match="was started with other data"):
            run_sample(rivers, size=size, resume=True)


def test_an_index_of_all_passages_is_no_index_of_a_sample(rivers: Path, tmp_path: Path) -> None:
    run_sample(rivers, "ALL", size=None, index=tmp_path / "IDX")
    with pytest.raises(RagError, match="IDX is an index; name another folder"):
        run_sample(rivers, index=tmp_path / "IDX")
    run_sample(rivers, "SECOND", index=tmp_path / "PART")
    with pytest.raises(RagError, match="holds other files and is not an index"):
        run_sample(rivers, "MORE", size=None, index=tmp_path / "PART")


@pytest.mark.parametrize(
    ("size", "error"),
    [
        (3, "a sample of 3 passages is too small: it also has the 4 gold or listed"),
        (0, "corpus_sample must be at least"),
    ],
)
def test_a_sample_holds_its_gold_passages(rivers: Path, size: int, error: str) -> None:
    with pytest.raises(UserError, match=error):
        run_sample(rivers, size=size)


def test_only_files_of_passages_are_sampled(rivers: Path, tmp_path: Path, rag: Command) -> None:
    (rivers.parent / "docs").mkdir()
    (rivers.parent / "docs/a.md").write_text("# Rivers\n\nThey flow.\n")
    with pytest.raises(RagError, match="holds documents; only files of passages have ids"):
        run_sample(rivers, corpus=rivers.parent / "docs")
    with pytest.raises(RagError, match="has a corpus that ships"):
        run_benchmark("handbook", tmp_path / "H", corpus_sample=10)
    with pytest.raises(RagError, match="has no corpus of its own to sample, or several"):
        run_benchmark("everyday", tmp_path / "E", corpus_sample=10)
    done = rag("bench", "run", rivers, "--out", tmp_path / "X", "--corpus-sample", "some")
    one_line_error(done, "'some' is no number of passages; write it as 500k, 2M or 1000")


def test_workers_search_the_sample(rivers: Path, tmp_path: Path) -> None:
    run = run_sample(rivers, engine=LocalEngine())
    assert run.metrics("first-passage")["metrics"] == run_sample(rivers, "B").metrics("first-passage")["metrics"]
    assert dumps(run.record["indexes"]) == dumps(open_run(tmp_path / "B").record["indexes"])
