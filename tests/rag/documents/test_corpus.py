import csv
import gzip
import json
from pathlib import Path

import pytest
import zstandard

from rag.base.errors import FormatError, IndexingError, UserError
from rag.base.types import Passage
from rag.documents.corpus import Corpus, sniff

ROWS = {
    "miracl": '{"docid": "12#3", "title": "T", "text": "Body."}',
    "beir": '{"_id": "12#3", "title": "T", "text": "Body.", "metadata": {}}',
    "pyserini": '{"id": "12#3", "contents": "Body."}',
    "aqa": '{"id": "12#3", "contents": "« T » « T, S » Body."}',
    "dpr": "12#3\tBody.\tT",
}
EXPECTED = {"pyserini": Passage("12#3", "", "Body."), "aqa": Passage("12#3", "T", "Body.", "S")}


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def passages(path: Path) -> list[Passage]:
    return [passage for _, passage in Corpus([path]).read()]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_every_format_is_sniffed_and_read_packed_or_not(tmp_path: Path, name: str, packing: str) -> None:
    path = tmp_path / f"corpus{packing}"
    data = (ROWS[name] + "\n").encode()
    packed = {"": data, ".gz": gzip.compress(data), ".zst": zstandard.ZstdCompressor().compress(data)}
    path.write_bytes(packed[packing])
    assert sniff(path) == name
    assert passages(path) == [EXPECTED.get(name, Passage("12#3", "T", "Body."))]


def test_a_file_whose_first_lines_are_broken_is_known_by_those_after_them(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", "not json\n{}\n" + ROWS["beir"] + "\n")
    assert sniff(path) == "beir"
    with pytest.raises(FormatError, match=r"c\.jsonl:1: not JSON"):
        passages(path)
    assert len([*Corpus([path], skip_bad=True).read()]) == 1


def test_headings_without_the_title_stay_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", '{"id": "1", "contents": "« Hank Pym » « Ant-Man, Powers » He shrinks."}\n')
    (passage,) = passages(path)
    assert passage == Passage("1", "Hank Pym", "He shrinks.", "Ant-Man, Powers", "Ant-Man, Powers")
    assert passage.evidence == "Ant-Man, Powers. He shrinks."


def test_dpr_header_is_no_passage_and_quotes_are_csv(tmp_path: Path) -> None:
    path = tmp_path / "psgs_w100.tsv"
    path.write_text('id\ttext\ttitle\n1\t"He said ""yes"""\t"Aaron"\n')
    assert passages(path) == [Passage("1", "Aaron", 'He said "yes"')]


def test_a_long_cell_of_dpr_is_read(tmp_path: Path) -> None:
    csv.field_size_limit(131_072)  # Python's own, whatever was read before
    path = tmp_path / "psgs_w100.tsv"
    path.write_text(f"id\ttext\ttitle\n1\t{'x ' * 70_000}\tAaron\n")
    assert [passage.title for passage in passages(path)] == ["Aaron"]


def test_zst_of_two_frames_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl.zst"
    pack = zstandard.ZstdCompressor().compress
    row = '{"docid": "%d", "title": "", "text": "x"}\n'
    path.write_bytes(pack((row % 1).encode()) + pack((row % 2).encode()))
    assert [p.id for p in passages(path)] == ["1", "2"]


@pytest.mark.parametrize("suffix", [".zst", ".gz"])
def test_a_packed_file_that_breaks_off_is_an_error_even_when_skipping(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"cut.jsonl{suffix}"
    data = "".join(ROWS["miracl"].replace("12#3", str(n)) + "\n" for n in range(20_000)).encode()
    packed = zstandard.ZstdCompressor().compress(data) if suffix == ".zst" else gzip.compress(data)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(FormatError, match=r"cut\.jsonl\.\w+:\d+: the compressed file is broken or cut off"):
        list(Corpus([path], "miracl", skip_bad=True).read())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"docid": "2", "title": "T"}', "field 'text' is missing"),
        (b'{"docid": "2", "title": "T", "text": 5}', "field 'text' should be a string"),
        (b'{"docid": true, "title": "T", "text": "x"}', "field 'docid' should be a string"),
        (b'{"docid": "2", "title": "T", "text": " "}', "passage '2' has no text"),
        (b'{"docid": "", "title": "T", "text": "x"}', "field 'docid' is empty"),
        (b'{"docid": "2", "title": "T", "text": "caf\xe9"}', "not UTF-8 at byte"),
        (b'{"docid": "2", "title"', "not JSON"),
        (b"[1]", "expected a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_line_names_file_line_and_field_or_is_counted(tmp_path: Path, line: bytes, says: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(ROWS["miracl"].encode() + b"\n" + line + b"\n" + ROWS["miracl"].replace("12#3", "z").encode())
    with pytest.raises(FormatError, match=r"c\.jsonl:2: ") as caught:
        passages(path)
    assert says in str(caught.value)
    corpus = Corpus([path], skip_bad=True)
    assert [p.id for _, p in corpus.read()] == ["12#3", "z"]
    assert corpus.report.bad == 1
    assert says in corpus.report.reasons[0]


def test_unknown_formats_and_sources_are_named(tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    odd.write_text(json.dumps({"what": 1}))
    with pytest.raises(
        FormatError, match=r"odd\.jsonl:1: not a corpus format known here; there are: miracl, msmarco-v2\.1, beir, aqa"
    ):
        sniff(odd)
    with pytest.raises(FormatError, match=r"void\.jsonl is empty"):
        sniff(write(tmp_path / "void.jsonl", "\n \n"))
    with pytest.raises(UserError, match=r"no corpus format called 'nope'; there are: miracl, .*, documents"):
        Corpus([odd], "nope")
    with pytest.raises(IndexingError, match="does not exist"):
        Corpus([tmp_path / "gone"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(IndexingError, match="holds no documents"):
        sniff(tmp_path / "empty")


def test_a_small_file_that_unpacks_to_much_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b" " * (300 << 20)))
    with pytest.raises(FormatError, match=r"bomb\.jsonl\.zst:1: unpacks to more than 1,000 times its size"):
        list(Corpus([path], "miracl").read())


def test_a_file_whose_name_is_not_utf8_is_read_under_an_escaped_name(tmp_path: Path) -> None:
    (tmp_path / "caf\udce9.txt").write_text("The cafe opens at ten every day.\n")
    (tmp_path / "naïve.txt").write_text("The pool opens at nine every day.\n")
    corpus = Corpus([tmp_path])
    assert [passage.id for _, passage in corpus.read()] == ["caf\\xe9.txt#1", "naïve.txt#1"]
    assert corpus.report.escaped == ["caf\\xe9.txt"]
