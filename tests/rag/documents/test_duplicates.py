import gzip
from collections import Counter
from pathlib import Path

import pytest

from rag.base.types import Passage
from rag.documents import Document
from rag.documents import navigation as nav
from rag.documents.converters.programs import find_program
from rag.documents.corpus import Corpus
from rag.documents.duplicates import likeness, pack_sketch, sketch_of, unpack_sketch
from rag.documents.report import describe_left_out, describe_loss, describe_losses

WORDS = [f"word{n}" for n in range(400)]
TEXT = " ".join(WORDS)


def corpus(folder: Path, **files: str) -> Corpus:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Corpus([folder])


def read(found: Corpus) -> list[str]:
    """The names of the files that have passages."""
    return list(dict.fromkeys(passage.id.partition("#")[0] for _, passage in found.read()))


def document(text: str) -> Document:
    return Document("", [Passage("1", text=text)])


def html(text: str) -> str:
    return f"<title>T</title><p>{text}</p>"


def test_copies_are_read_once_and_named(tmp_path: Path) -> None:
    found = corpus(tmp_path, a_DOT_txt=TEXT, b_DOT_txt=TEXT, c__a_DOT_txt=TEXT + " and more", d_DOT_txt=TEXT[::-1])
    assert read(found) == ["a.txt", "d.txt"]
    assert found.report.duplicates == {"b.txt": "a.txt", "c/a.txt": "a.txt"}


def test_of_two_formats_the_better_is_read_wherever_it_stands(tmp_path: Path) -> None:
    shorter = " ".join(WORDS[:330])
    found = corpus(tmp_path, a_DOT_rst=shorter, b__a_DOT_txt=shorter, h__a_DOT_html=html(TEXT), z_DOT_html=html("Z"))
    assert read(found) == ["h/a.html", "z.html"]
    assert found.report.duplicates == {"a.rst": "h/a.html", "b/a.txt": "h/a.html"}


def test_the_source_of_a_manual_is_its_twin(tmp_path: Path) -> None:
    found = corpus(tmp_path, a_DOT_adoc=f"= Mills\n\n{TEXT}", a_DOT_html=html(TEXT), a_DOT_org=TEXT)
    assert read(found) == ["a.html"]


@pytest.mark.skipif(find_program("pandoc") is None, reason="needs pandoc (the extra formats)")
def test_the_source_of_a_paper_is_read_instead_of_its_text(tmp_path: Path) -> None:
    found = corpus(tmp_path, a_DOT_tex=f"\\begin{{document}}\n{TEXT}\n\\end{{document}}", a_DOT_txt=TEXT)
    assert read(found) == ["a.tex"]


def test_files_of_one_name_that_say_different_things_are_both_read(tmp_path: Path) -> None:
    found = corpus(tmp_path, a_DOT_txt=TEXT[::-1], a_DOT_html=html(TEXT), v2__a_DOT_html=html(" ".join(WORDS[60:])))
    assert read(found) == ["a.html", "a.txt", "v2/a.html"]


def test_the_source_of_a_page_is_not_even_read(tmp_path: Path) -> None:
    found = corpus(
        tmp_path, _sources__b__a_DOT_rst_DOT_txt="\0" * 100, b__a_DOT_html=html(TEXT), _sources__c_DOT_txt=TEXT[::-1]
    )
    assert read(found) == ["_sources/c.txt", "b/a.html"]
    assert found.report.duplicates == {"_sources/b/a.rst.txt": "b/a.html"}
    assert found.report.bad == 0


def test_short_files_are_left_alone(tmp_path: Path) -> None:
    assert read(corpus(tmp_path, a_DOT_txt="The same words.", b_DOT_txt="The same words.")) == ["a.txt", "b.txt"]


@pytest.mark.parametrize(("shared", "expected"), [(400, 1.0), (360, 0.81), (200, 0.33), (0, 0.0)])
def test_likeness_is_the_share_of_common_shingles(shared: int, expected: float) -> None:
    others = [f"other{n}" for n in range(400 - shared)]
    one, other = (sketch_of(document(" ".join(words))) for words in (WORDS, WORDS[:shared] + others))
    assert likeness(one, other) == pytest.approx(expected, abs=0.12)
    assert likeness(unpack_sketch(pack_sketch(one)), one) == 1


def test_a_sketch_is_the_same_everywhere_and_empty_texts_have_none() -> None:
    fox = document("The quick brown fox jumps over the lazy dog.")
    assert pack_sketch(sketch_of(fox)) == "AAAAAP9BzxP2eitkE1c8bokFsY9cyseh"
    assert likeness(sketch_of(document("")), sketch_of(document(""))) == 0
    with pytest.raises(ValueError, match="not a sketch"):
        unpack_sketch("?")


def test_pages_of_one_mould_with_their_own_titles_are_all_read(tmp_path: Path) -> None:
    files = {f"{name}_DOT_html": f"<title>{name}</title><p>{TEXT}</p>" for name in ("find_file", "find_path")}
    assert read(corpus(tmp_path, **files)) == ["find_file.html", "find_path.html"]


def test_another_version_is_no_twin(tmp_path: Path) -> None:
    words = [
        " ".join(f"{'old' if n % 9 == 0 and version == '2' else 'word'}{n}" for n in range(400)) for version in "23"
    ]
    found = corpus(tmp_path, **{"release-1_DOT_2_DOT_md": words[0], "release-1_DOT_3_DOT_md": words[1]})
    assert read(found) == ["release-1.2.md", "release-1.3.md"]


def test_the_source_of_a_packed_page_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "_sources").mkdir()
    (tmp_path / "_sources" / "a.rst.txt").write_text(TEXT[::-1])
    (tmp_path / "a.html.gz").write_bytes(gzip.compress(html(TEXT).encode()))
    assert read(Corpus([tmp_path])) == ["a.html.gz"]


def test_the_bytes_of_left_out_sources_are_counted(tmp_path: Path) -> None:
    found = corpus(tmp_path, a_DOT_html=html(TEXT), _sources__a_DOT_rst_DOT_txt=TEXT)
    assert read(found) == ["a.html"]
    assert found.report.bytes_read == found.bytes_total


NOTICE = f"## Notice\n\n{' '.join(WORDS[:60])}.\n"


def minutes(title: str, *names: str) -> str:
    return f"# {title}\n\n## Present\n\n{''.join(f'- {name} of the mill{chr(10)}' for name in names)}\n{NOTICE}"


def ids(found: Corpus) -> list[str]:
    return [passage.id for _, passage in found.read()]


def test_a_passage_that_stands_in_several_files_is_read_once_and_counted(tmp_path: Path) -> None:
    people = [f"Person {n} who owns the wheel number {n}" for n in range(8)]
    files = {f"{year}_DOT_md": minutes(f"Meeting of {year}", *people) for year in (2021, 2022, 2023)}
    found = corpus(tmp_path, **files, other_DOT_md=minutes("Wells", *people))
    assert ids(found) == ["2021.md#1", "2021.md#2", "2022.md#1", "2023.md#1", "other.md#1", "other.md#2"]
    assert [*describe_left_out(found.report)] == [
        "left out 2 passages that other files hold: each is indexed once, such as 2022.md#2 (2021.md)"
    ]


def test_a_short_passage_is_the_same_only_under_the_same_title(tmp_path: Path) -> None:
    found = corpus(
        tmp_path,
        a_DOT_md="# Mill 1\n\n## Fee\n\nIt is 3.\n\n## More\n\n" + TEXT,
        b_DOT_md="# Mill 2\n\n## Fee\n\nIt is 3.\n",
        c_DOT_md="# Mill 2\n\n## Fee\n\nIt is 3.\n",
    )
    assert {name.partition("#")[0] for name in ids(found)} == {"a.md", "b.md"}


def test_a_table_that_was_saved_in_two_formats_is_read_once(tmp_path: Path) -> None:
    book = pytest.importorskip("openpyxl").Workbook()
    rows = [["Mill", "Town", "Stones"], *([f"Mill {WORDS[n]}", f"Town {WORDS[n + 50]}", str(n)] for n in range(40))]
    for line in rows:
        book.active.append(line)
    book.save(tmp_path / "mills.xlsx")
    found = corpus(tmp_path, mills_DOT_csv="\n".join(map(",".join, rows)))
    assert read(found) == ["mills.xlsx"]


def test_files_of_which_parts_are_missing_are_listed_with_what_is_missing() -> None:
    losses = {f"{n}.pdf": describe_loss(Counter({"sheet that is hidden": n, nav.MARGIN: 9}), n % 2) for n in range(24)}
    assert losses["3.pdf"] == "3 sheets that are hidden"
    assert describe_loss(Counter({nav.MARGIN: 9}), 1) == ""
    lines = [*describe_losses(losses, "rag index show i")]
    assert lines[0] == "not read whole: 24 files"
    assert lines[3] == "  2.pdf   no text, 2 sheets that are hidden"
    assert lines[-1] == "  and 4 more: rag index show i"
    assert len(lines) == 22
