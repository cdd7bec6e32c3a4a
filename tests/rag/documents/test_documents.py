import gzip
import json
import os
import random
import zlib
from pathlib import Path

import pytest

from rag.base.errors import FormatError, IndexingError
from rag.base.types import Passage
from rag.documents import load_document, read_document
from rag.documents import navigation as nav
from rag.documents.corpus import Corpus

LONG = "This paragraph has more than twelve words, so that it stands as a passage by itself."


def read(tmp_path: Path, name: str, content: str | bytes) -> list[Passage]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_document(path, name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Adults 8\nChildren 4\nDogs free", ["Adults 8", "Children 4", "Dogs free"]),
        (
            "09:00 Tea\n09:30 " + "A long talk of the miller " * 3,
            ["09:00 Tea", "09:30 " + "A long talk of the miller " * 3],
        ),
        ("It is\nred.", ["It is red."]),
    ],
)
def test_lines_of_markdown_that_stand_apart(tmp_path: Path, text: str, expected: list[str]) -> None:
    (passage,) = read(tmp_path, "r.md", text)
    assert passage.text.split("\n\n") == [line.strip() for line in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run git clone <url> and rocket --name <your-name>.", "Run git clone <url> and rocket --name <your-name>."),
        ("Enter 'trade A <emote>' to *accept*.", "Enter 'trade A <emote>' to accept."),
        ('Add <server port="80"> before </config>.', 'Add <server port="80"> before </config>.'),
        ("<command>\nruns *it*.", "<command> runs it."),
        ("<your_own_file>", "<your_own_file>"),
        ("- <id>\n", "- <id>"),
        ("cp <source> <path>/<title>, then *stop*.", "cp <source> <path>/<title>, then stop."),
        (
            "Press <kbd>Ctrl</kbd>+C<br>or <ME@example.org> &lt;x&gt; <!-- no -->now.",
            "Press Ctrl+C or ME@example.org <x> now.",
        ),
        ("<Tabs>\n\nWith *npm* <Icon name='x'/> and <my-key>K</my-key>.\n\n</Tabs>", "With npm and K."),
        ("<div>\n\nIn a box.\n\n</div>", "In a box."),
    ],
)
def test_a_placeholder_of_markdown_is_no_tag(tmp_path: Path, text: str, expected: str) -> None:
    (passage,) = read(tmp_path, "r.md", text)
    assert passage.text == expected


def test_markdown_keeps_title_and_headings_and_drops_markup(tmp_path: Path) -> None:
    text = (
        f"---\nlayout: x\n---\n# Rivers\n\n{LONG}\n\n## Poland\n\n"
        f"### Long ones\n\n**{LONG}** {LONG} <br> `code`\n\n## Other\n\n{LONG} {LONG}"
    )
    first, second, third = read(tmp_path, "r.md", text)
    assert first == Passage("r.md#1", "Rivers", LONG)
    assert (second.section, second.text) == ("Poland, Long ones", f"{LONG} {LONG} code")
    assert third.section == "Other"


def test_a_list_of_the_headings_below_is_left_out(tmp_path: Path) -> None:
    names = ["Rivers", "Lakes", "Seas", "Springs"]
    sections = "\n\n".join(f"## {number}. {name}\n\n{LONG}" for number, name in enumerate(names, 1))
    for listed, left_out in (
        (names, True),
        ([*names, "Wells"], True),
        (names[:3], False),
        (["Wells", *names[:2]], False),
    ):
        contents = "\n".join(f"* {name}" for name in listed)
        path = tmp_path / "waters.md"
        path.write_text(f"# Waters\n\n{LONG}\n\n{contents}\n\n{sections}")
        document = load_document(path, "waters.md")
        assert ("- Lakes" in document.passages[0].text) != left_out
        assert document.dropped[nav.CONTENTS] == left_out * len(listed)
    path.write_text(f"# Waters\n\n{sections}\n\n## Read on\n\n{LONG}\n\n{contents}")  # below them, it says more
    assert not load_document(path, "waters.md").dropped


def test_front_matter_can_name_the_title(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "r.md", f"---\ntitle: 'Rivers: long ones'\n---\n{LONG}")
    assert (passage.title, passage.text) == ("Rivers: long ones", LONG)
    (passage,) = read(tmp_path, "r.md", f'+++\ntitle = "Rivers: long ones"\ndraft = false\n+++\n{LONG}')
    assert (passage.title, passage.text) == ("Rivers: long ones", LONG)


def test_text_without_headings_takes_its_name_for_title(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "notes.txt", f"{LONG}\r\n\r\n{LONG}\n{LONG}")
    assert (passage.id, passage.title) == ("notes.txt#1", "notes")
    assert passage.text == f"{LONG}\n\n{LONG} {LONG}"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("NEWS.gz", "NEWS"),
        ("v1.2.txt", "v1.2"),
        ("v1.2.md.gz", "v1.2"),
        ("README.Debian", "README.Debian"),
        ("A 3a2b3c4d5e6f708192a3b4c5d6e7f809.txt", "A"),
    ],
)
def test_a_title_from_a_file_name_has_no_suffix(tmp_path: Path, name: str, title: str) -> None:
    (passage,) = read(tmp_path, name, gzip.compress(LONG.encode()) if name.endswith(".gz") else LONG)
    assert passage.title == title


def test_headings_of_the_top_rank_are_sections_unless_there_is_one(tmp_path: Path) -> None:
    news = f"Summer 2024\n===========\n{LONG} {LONG}\n\nBuses\n-----\n{LONG} {LONG}\n\nWinter 2023\n===========\n{LONG}"
    assert [(one.title, one.section) for one in read(tmp_path, "NEWS", news)] == [
        ("NEWS", "Summer 2024"),
        ("NEWS", "Summer 2024, Buses"),
        ("NEWS", "Winter 2023"),
    ]
    guide = f"======\nRivers\n======\n{LONG} {LONG}\n\nOder\n====\n{LONG} {LONG}\n\nBug\n===\n{LONG} {LONG}"
    assert [(one.title, one.section) for one in read(tmp_path, "guide.txt", guide)] == [
        ("Rivers", ""),
        ("Rivers", "Oder"),
        ("Rivers", "Bug"),
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.txt", ""),
        ("e.txt", " \n\n\t"),
        ("e.md", ""),
        ("e.md", "---\na: b\n---\n"),
        ("e.md", "<div></div>"),
        ("e.md", "# Only a heading"),
        ("e.html", ""),
        ("e.html", "<title>T</title><script>x</script><div> </div>"),
    ],
)
def test_a_document_without_text_has_no_passages(tmp_path: Path, name: str, content: str) -> None:
    assert read(tmp_path, name, content) == []


def test_emphasis_leaves_no_space_before_a_stop(tmp_path: Path) -> None:
    (passage,) = read(
        tmp_path, "e.md", "# T\n\nThis is *good* stuff, really **good**. It is `fast`, *cheap*; (see _a_)\nhere."
    )
    assert passage.text == "This is good stuff, really good. It is fast, cheap; (see a) here."


def test_utf16_with_a_mark_is_read(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "w.txt", LONG.encode("utf-16"))
    assert passage.text == LONG


@pytest.mark.parametrize("name", ["README", "FAQ.gz", "README.Debian", "readme.maildir", "install"])
def test_texts_with_well_known_names_need_no_suffix(tmp_path: Path, name: str) -> None:
    data = LONG.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (tmp_path / "program").write_bytes(b"\x7fELF\0\1")
    (tmp_path / "README.png").write_bytes(b"\x89PNG\0")
    (passage,) = (passage for _, passage in Corpus([tmp_path]).read())
    assert (passage.id, passage.text) == (f"{name}#1", LONG)


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "n.key").write_text(LONG)
    with pytest.raises(FormatError, match=r"n\.key: not a known type of document"):
        list(Corpus([tmp_path / "n.key"], "documents").read())
    with pytest.raises(IndexingError, match=r"holds no documents \(\.1, .*\), only 1 \.key$"):
        list(Corpus([tmp_path]).read())


def test_html_may_nest_deeper_than_python_recurses(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "deep.html", "<div>" * 20_000 + LONG + "</div>" * 20_000)
    assert passage.text == LONG


def test_a_markdown_text_may_begin_with_a_rule_and_link_its_title(tmp_path: Path) -> None:
    text = " ".join([LONG] * 3)
    rivers, lakes = read(tmp_path, "a.md", f"---\n\n# [Rivers](https://a.org/)\n\n{text}\n\n---\n\n## Lakes\n\n{text}")
    assert (rivers.title, rivers.text, lakes.section) == ("Rivers", text, "Lakes")


def test_all_members_of_a_gzip_file_are_read(tmp_path: Path) -> None:
    (passage,) = read(tmp_path, "a.txt.gz", gzip.compress(LONG.encode()) + gzip.compress(b" It ends."))
    assert passage.text == f"{LONG} It ends."


def test_what_one_text_defines_is_not_known_to_the_next(tmp_path: Path) -> None:
    text = f"{LONG} See :mod:`the shed <x.y>`."
    (alone,) = read(tmp_path, "a.rst", text)
    read(tmp_path, "b.rst", f".. role:: mod\n\n{LONG}")
    (again,) = read(tmp_path, "a.rst", text)
    assert alone.text == again.text == f"{LONG} See the shed."


@pytest.mark.parametrize(
    "sentence",
    [
        "Last modified files are listed first by the command that lists files.",
        "Generated by the tool, the file holds one line a user, and nothing else.",
        "Built with care, the dam has held back the river for more than a century.",
    ],
)
def test_sentences_that_begin_like_notices_stay(tmp_path: Path, sentence: str) -> None:
    (passage,) = read(tmp_path, "a.html", f"<p>{sentence}<p>{LONG}<p>Last updated on Monday.<p>Generated by Tool 2.")
    assert passage.text == f"{sentence}\n\n{LONG}"


def test_html_that_nests_without_end_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "deep.html").write_text("<ul><li>" * 2_000_000 + LONG)
    (tmp_path / "flat.html").write_text("<p>one<br><b>two</b>" * 30_000)
    corpus = Corpus([tmp_path])
    assert {passage.id.partition("#")[0] for _, passage in corpus.read()} == {"flat.html"}
    assert corpus.report.reasons == [f"{tmp_path / 'deep.html'}: its elements are nested more than 20,000 deep"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (
            "a.txt",
            "Zażółć gęślą jaźń, mówił do nas dziadek, gdy był już bardzo zmęczony całą tą sprawą.".encode("cp1250"),
        ),
        ("a.txt", ("café of André. " + "The house stands. " * 200).encode("cp1252")),
        ("a.txt", "Der Bär läuft über die Straße, während fünf Hühner öfter schön gähnen.".encode("cp1252")),
        ("a.html", b"<meta charset=iso-8859-2><p>" + "Zażółć gęślą jaźń.".encode("iso-8859-2")),
        ("a.html", b'<?xml version="1.0" encoding="koi8-r"?><p>' + "Привет".encode("koi8-r")),
        ("a.html", b"<meta charset=nonsense><p>" + "Die Straße nach Köln führt über fünf Brücken.".encode("latin-1")),
        ("a.md", "Naïve – „so“".encode("utf-16")),
        ("a.txt", "Fünf Brücken. ".encode() * 200 + b"\xff"),
    ],
)
def test_text_of_any_encoding_is_read(tmp_path: Path, name: str, data: bytes) -> None:
    text = read(tmp_path, name, data)[0].text
    assert any(word in text for word in ("gęślą", "Bär", "Привет", "Straße", "„so“", "Fünf Brücken", "café of André"))


def test_binary_data_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"x\.txt: not a text"):
        read(tmp_path, "x.txt", b"\x7fELF\0\0\0\0\0\0\1\2" * 20)
    with pytest.raises(FormatError, match=r"key\.txt: not a text"):
        read(tmp_path, "key.txt", random.Random(1).randbytes(5000))
    with pytest.raises(FormatError, match=r"z\.txt: not a text"):
        read(tmp_path, "z.txt", zlib.compress(random.Random(2).randbytes(200).hex().encode() * 9, 9))
    (note,) = read(tmp_path, "note.md", b"# Note\n\nThe red\0 door is open.\n")  # a stray one is none
    assert "door is open" in note.text


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(100 << 30)  # 100 GiB of holes
    with pytest.raises(FormatError, match=r"large\.txt: 102,?400 MiB; a document may have at most 64 MiB"):
        read_document(path, "large.txt")


def test_a_pdf_that_is_none_is_named_or_counted(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"x\.pdf: the PDF cannot be read"):
        read(tmp_path, "x.pdf", b"%PDF-1.4 nonsense")
    (tmp_path / "good.txt").write_text(LONG)
    corpus = Corpus([tmp_path], skip_bad=True)
    assert [p.id for _, p in corpus.read()] == ["good.txt#1"]
    assert corpus.report.bad == 1


def test_a_folder_is_read_in_order_of_paths_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", ".git/x.txt", "a/pic.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(LONG)
    assert [p.id for _, p in Corpus([tmp_path]).read()] == ["a/z.md#1", "b.txt#1"]


def test_one_bad_file_never_stops_a_folder_unless_strict(tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"nonsense")
    (tmp_path / "bad.docx").write_bytes(b"nonsense")
    (tmp_path / "good.md").write_text(LONG)
    (tmp_path / "large.txt").touch()
    os.truncate(tmp_path / "large.txt", 65 << 20)
    corpus = Corpus([tmp_path])
    assert [p.id for _, p in corpus.read()] == ["good.md#1"]
    assert corpus.report.bad == len(corpus.report.reasons) == 3
    assert corpus.report.bytes_read == corpus.bytes_total
    with pytest.raises(FormatError, match=r"bad\.docx: broken"):
        list(Corpus([tmp_path], strict=True).read())


def test_a_corpus_of_which_nothing_can_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"nonsense")
    with pytest.raises(FormatError, match=r"bad\.pdf: the PDF cannot be read"):
        list(Corpus([tmp_path / "bad.pdf"]).read())


def test_links_that_lead_out_of_the_folder_are_counted_and_not_followed(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    for folder in (home, other):
        folder.mkdir()
        (folder / "a.md").write_text(f"{folder.name}: {LONG}")
    (home / "out").symlink_to(other)
    (home / "file.md").symlink_to(other / "a.md")
    (home / "loop").symlink_to(home)
    (home / "gone.md").symlink_to(home / "nowhere.md")
    (home / "in.md").symlink_to(home / "a.md")
    corpus = Corpus([home])
    assert [p.id for _, p in corpus.read()] == ["a.md#1", "in.md#1"]
    assert (corpus.report.links, corpus.report.passed) == (2, {"link to nowhere": 1})
    (home.parent / "link").symlink_to(other)
    assert [p.text for _, p in Corpus([tmp_path / "link"]).read()] == [f"other: {LONG}"]


def test_every_file_that_is_not_read_is_counted(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_templates").mkdir()
    for name in (
        "a.md",
        "_static/fonts.html",
        "_templates/class.rst",
        "copyright",
        "changelog.gz",
        "a.py.gz",
        "b.py",
        "B.PY",
        "x.1",
        ".git",
    ):
        (tmp_path / name).write_text("rivers: 3\n" if name == "x.1" else LONG)
    (tmp_path / "style.css").symlink_to("/nowhere.css")
    corpus = Corpus([tmp_path], exclude=["b.*"])
    assert [passage.id for _, passage in corpus.read()] == ["a.md#1"]
    assert corpus.report.unread == {"without a suffix": 1, ".gz": 1, ".py.gz": 1, ".py": 1, ".1": 1}
    assert corpus.report.examples[".gz"] == ["changelog.gz"]
    assert corpus.report.passed == {
        "item hidden by a dot": 1,
        "folder called _static": 1,
        "folder called _templates": 1,
        "link to nowhere": 1,
        "file outside of --include and --exclude": 1,
    }


def test_an_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "docs.tar.gz").write_bytes(b"\x1f\x8b\0")
    with pytest.raises(FormatError, match=r"docs\.tar\.gz is an archive: unpack it and name the folder"):
        [*Corpus([tmp_path / "docs.tar.gz"]).read()]


def test_what_tools_note_of_a_package_is_not_read(tmp_path: Path) -> None:
    needs = "# what the mill needs\nstone>=2  # by the keeper\nflour[fine]==1.0 ; wind > 3\nsacks\n-r more.txt\n"
    unread = {"mill.egg-info/notes.txt": LONG, "PKG-INFO": LONG, "robots.txt": LONG, "test-requirements.txt": needs}
    for name, text in {**unread, "mill/notes.txt": LONG, "requirements.txt": LONG}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    corpus = Corpus([tmp_path])
    assert [passage.id for _, passage in corpus.read()] == ["mill/notes.txt#1", "requirements.txt#1"]
    assert corpus.report.passed == {"folder called mill.egg-info": 1}
    assert corpus.report.unread == {"without a suffix": 1, ".txt": 2}


COMMENTS = "# The keeper of the mill says when it may be open to all.\nopen = 9\n" * 20


def test_texts_without_a_suffix_are_read_and_other_such_files_are_not(tmp_path: Path) -> None:
    texts = ("LICENSE", "GPL-3", "Apache-2.0", "MPL-1.1", "MINUTES.gz", "poster.12")
    others = {
        "run": f"#!/bin/sh\n{LONG}",
        "Makefile": f"all: mill\n\tcc -o mill $(FILES)\n# {LONG}\n" * 3,
        "settings": COMMENTS,
        "words": "mill\nriver\nlake\n" * 40,
        "records": json.dumps({"id": "1", "text": LONG}),
        "places": "Krakow\t50.06\t19.94\n" * 9,
        "image": f"\0\1{LONG}",
        "empty": "",
        "changelog": LONG,
        "copyright.gz": LONG,
        "page.1": f".PP\n{LONG}\n" * 5,
    }
    for name, content in {**dict.fromkeys(texts, f"{LONG}\n\n- {LONG}\n"), **others}.items():
        data = content.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    corpus = Corpus([tmp_path])
    assert {passage.id.partition("#")[0] for _, passage in corpus.read()} | {*corpus.report.duplicates} == {*texts}
    assert corpus.report.unread.total() == len(others)


def test_a_link_to_a_text_without_a_suffix_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "secret").write_text(f"{LONG}\n")
    (tmp_path / "home" / "a.md").write_text("The mill is old.")
    (tmp_path / "home" / "LICENSE").symlink_to(tmp_path / "secret")
    corpus = Corpus([tmp_path / "home"])
    assert [passage.id for _, passage in corpus.read()] == ["a.md#1"]
    assert corpus.report.unread == {"without a suffix": 1}


def test_a_folder_may_change_while_it_is_read(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.md").write_text(LONG)
    corpus = Corpus([tmp_path])
    stream = corpus.read()
    assert next(stream)[1].id == "a.md#1"
    (tmp_path / "b.md").unlink()
    (tmp_path / "c.md").write_text("Another text.")
    (tmp_path / "d.md").write_text(LONG)
    assert [p.text for _, p in stream] == ["Another text."]
    assert corpus.report.bad == 1
    assert "b.md: cannot be read: No such file" in corpus.report.reasons[0]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<nav>Home</nav><p>{LONG}<div class=toc>Contents</div>")
    corpus = Corpus([tmp_path])
    assert len(list(corpus.read())) == 1
    assert corpus.report.dropped == {nav.NAVIGATION: 1, nav.CONTENTS: 1}


@pytest.mark.parametrize("name", ["2023", "502", "2025-05-19", "2.0 (2024-03-01)", "[4.2.1] - 2025-05-19", "§ 4"])
def test_years_codes_dates_and_versions_are_headings(tmp_path: Path, name: str) -> None:
    text = "It was said in the hall that all of the doors stay shut until the end of the next summer. " * 3
    for file, content in (
        ("a.md", f"# Report\n\n## {name}\n\n{text}\n\n## Rest\n\n{text}"),
        ("a.html", f"<h1>Report</h1><h2>{name}</h2><p>{text}</p><h2>Rest</h2><p>{text}</p>"),
        ("a.rst", f"Report\n======\n\n{name}\n-------------------\n\n{text}\n\nRest\n----\n\n{text}\n"),
    ):
        assert [found.headings for found in read(tmp_path, file, content)] == [f"Report, {name}", "Report, Rest"]


def test_short_sections_keep_their_years_in_front(tmp_path: Path) -> None:
    [found] = read(tmp_path, "a.md", "# Revenue\n\n## 2023\n\nIt was 41 million.\n\n## 2024\n\nIt was 47 million.\n")
    assert found.text == "2023: It was 41 million.\n\n2024: It was 47 million."


@pytest.mark.parametrize("number", ["1.", "12", "—"])
def test_a_running_number_is_no_heading(tmp_path: Path, number: str) -> None:
    [found] = read(tmp_path, "a.html", f"<h1>Report</h1><h2>{number}</h2><p>All of the doors stay shut.</p>")
    assert found.headings == "Report"


@pytest.mark.parametrize(
    "text",
    [
        "Café machine\n\nThe café machine on floor 2 must be descaled every 14 days. The key lies with Müller.",
        "Contact\n\nThe resumé must be sent to José Núñez in Málaga before Friday.",
        "Menu\n\nThe café opens at 8. Crème brûlée costs 6 euros.",
        "Expense “limits”\n\nThe limit for lunch is £15 – or €18 in Dublin. It’s paid by Zoë’s team.",
        "Le café est fermé à Noël. Les employés reçoivent une prime d'été élevée. Où est la clé ?",
        "Los empleados tienen 23 días al año. La petición se envía antes. ¿Quién la aprueba? El señor Muñoz.",
        "A reunião será na sexta-feira às 10 horas. O João não poderá participar. As férias são de 22 dias úteis.",
        "Alla anställda har 25 dagar semester per år. Frågor besvaras av Åsa Öberg.",
        "Der Umzug nach München findet im März statt. Die Gebühren übernimmt die Firma. Grüße, Jörg",
        "Kaikki työntekijät saavat viisi viikkoa lomaa. Pyydä lisää tietoja päälliköltä.",
        "Perché l'ufficio è chiuso? Lunedì è festa, così la società resterà chiusa fino a martedì.",
        "Allir starfsmenn fá þrjátíu daga orlof á ári. Það er greitt í maí og júní ef þeir óska þess.",
        "The tank holds 12 m³ at 20 °C, ± 2 °C; see Jürgen’s table × 3.",
    ],
)
def test_short_texts_of_western_europe_are_read_as_windows_writes_them(tmp_path: Path, text: str) -> None:
    assert "\n\n".join(found.text for found in read(tmp_path, "a.txt", text.encode("cp1252"))).endswith(text[-30:])


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (
            "cp1250",
            "Wszyscy pracownicy mają dwadzieścia sześć dni urlopu w każdym roku. Wniosek należy złożyć dwa tygodnie "
            "wcześniej, a kierownik musi go zatwierdzić. Później można przenieść najwyżej pięć dni na następny rok.",
        ),
        (
            "iso8859-2",
            "Wszyscy pracownicy mają dwadzieścia sześć dni urlopu w każdym roku. Później można przenieść pięć dni.",
        ),
        (
            "cp1250",
            "Všichni zaměstnanci mají pět týdnů dovolené za rok. Žádost musí být podána čtrnáct dní předem a schvaluje "
            "ji přímý nadřízený. Nevyčerpané dny lze převést do příštího roku, nejvýše však pět dnů.",
        ),
        (
            "cp1250",
            "Minden dolgozónak évente huszonöt nap szabadság jár. A kérelmet két héttel előbb kell benyújtani, és a "
            "vezető hagyja jóvá. A megmaradt napokból legfeljebb ötöt lehet a következő évre átvinni, ha szükséges.",
        ),
        (
            "cp1251",
            "Все сотрудники имеют двадцать восемь дней отпуска в год. Заявление подаётся за две недели, и его "
            "утверждает руководитель отдела. Остаток можно перенести на следующий год.",
        ),
        (
            "koi8-r",
            "Все сотрудники имеют двадцать восемь дней отпуска в год. Заявление подаётся за две недели, и его "
            "утверждает руководитель отдела. Остаток можно перенести на следующий год.",
        ),
        (
            "cp1253",
            "Όλοι οι εργαζόμενοι έχουν είκοσι πέντε ημέρες άδεια κάθε χρόνο. Η αίτηση υποβάλλεται δύο εβδομάδες "
            "νωρίτερα και εγκρίνεται από τον προϊστάμενο. Το υπόλοιπο μεταφέρεται στο επόμενο έτος.",
        ),
        (
            "cp1254",
            "Bütün çalışanların yılda yirmi beş gün izin hakkı vardır. Başvuru iki hafta önce yapılır ve müdür "
            "tarafından onaylanır. Kullanılmayan günlerin en çok beşi gelecek yıla aktarılabilir, değil mi?",
        ),
        (
            "cp1257",
            "Visi darbuotojai turi dvidešimt penkias atostogų dienas per metus. Prašymas pateikiamas prieš dvi "
            "savaites, jį tvirtina vadovas. Likusias dienas galima perkelti į kitus metus, bet ne daugiau kaip už "
            "dešimtį.",
        ),
        (
            "shift_jis",
            "すべての社員は一年に二十日の休暇を取ることができます。申請は二週間前までに提出し、上司の承認を"
            "受けなければなりません。残った日数は翌年に繰り越すことができます。",
        ),
        (
            "gb18030",
            "所有员工每年都有二十天的假期。申请必须提前两周提交,并由经理批准。剩余的天数可以转到下一年,"
            "但最多不能超过五天。如果有问题,请联系人事部门。",
        ),
        (
            "big5",
            "所有員工每年都有二十天的假期。申請必須提前兩週提交,並由經理批准。剩餘的天數可以轉到下一年,"
            "但最多不能超過五天。如果有問題,請聯絡人事部門。",
        ),
        (
            "euc-kr",
            "모든 직원은 일 년에 이십 일의 휴가를 쓸 수 있습니다. 신청은 이 주 전에 제출해야 하며 부서장의 승인을 "
            "받아야 합니다. 남은 날은 다음 해로 넘길 수 있습니다.",
        ),
    ],
)
def test_a_paragraph_of_other_languages_is_read_in_its_own_encoding(tmp_path: Path, encoding: str, text: str) -> None:
    assert read(tmp_path, "a.txt", text.encode(encoding))[0].text == text


@pytest.mark.parametrize(
    ("text", "title", "section"),
    [
        (f"TRAVEL POLICY\n\n1. General\n\n{LONG} {LONG}\n\n2. Hotels\n\n{LONG}", "TRAVEL POLICY", "General"),
        (f"TRAVEL POLICY\n\nVersion 3\n\n1 General\n\n{LONG} {LONG}", "TRAVEL POLICY", ""),
        (f"AGREEMENT\n\nbetween two\n\nARTICLE 1 - FEES\n\n{LONG}", "AGREEMENT", ""),
        (f"Changes\n=======\n\n5.1\n===\n\n{LONG} {LONG}\n\n5.0\n===\n\n{LONG} {LONG}", "Changes", "5.1"),
        (f"Café machine\n\n{LONG}", "Café machine", ""),
        (f"Is it red?\n\n{LONG}", "Is it red?", ""),
        (f"It is red.\n\n{LONG}", "a", ""),
        (f"Dear all,\n\n{LONG}", "a", ""),
        (f"Date: May\n\n{LONG}", "a", ""),
        (f"6 October 2025\n\n{LONG}", "a", ""),
        (f"INTRODUCTION\n\n{LONG}", "a", "INTRODUCTION"),
        (f"BUSES\n\n{LONG} {LONG}\n\nTRAMS\n\n{LONG} {LONG}", "a", "BUSES"),
    ],
)
def test_a_first_line_above_all_is_the_title_of_a_text(tmp_path: Path, text: str, title: str, section: str) -> None:
    found = read(tmp_path, "a.txt", text)[0]
    assert (found.title, found.section) == (title, section)


def test_a_heading_of_a_text_that_nothing_stands_under_stays(tmp_path: Path) -> None:
    [found] = read(tmp_path, "a.txt", f"Buses\n=====\n\n{LONG}\n\nCANCELLED\n\nLATE\n\n{LONG}")
    assert "CANCELLED" in found.text
    assert "LATE" in found.text


def test_several_headings_of_the_top_rank_are_siblings(tmp_path: Path) -> None:
    body = f"{LONG} {LONG} {LONG}"
    for name, text in (
        ("a.md", f"# Parking\n\n{body}\n\n## Bikes\n\n{body}\n\n# Badges\n\n{body}\n"),
        ("a.html", f"<h1>Parking</h1><p>{body}</p><h2>Bikes</h2><p>{body}</p><h1>Badges</h1><p>{body}</p>"),
    ):
        assert [found.headings for found in read(tmp_path, name, text)] == [
            "a, Parking",
            "a, Parking, Bikes",
            "a, Badges",
        ]
    over = read(tmp_path, "a.md", f"# Guide\n\n# Parking\n\n{body}\n\n# Badges\n\n{body}\n")
    assert [found.headings for found in over] == ["Guide, Parking", "Guide, Badges"]
    titled = read(tmp_path, "a.md", f"---\ntitle: Guide\n---\n# Parking\n\n{body}\n\n# Badges\n\n{body}\n")
    assert [found.headings for found in titled] == ["Guide, Parking", "Guide, Badges"]


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("README.md", "# Mills of Pell\n\nOld.\n\n# Wheels\n\nRound.", "Mills of Pell"),
        ("index.rst", "Mills\n=====\n\nOld.\n\nWheels\n======\n\nRound.", "Mills"),
        ("readme.md", "Hello.\n\n# Mills\n\nOld.\n\n# Wheels\n\nRound.", "readme"),
        ("README.md", "# Installation\n\nOld.\n\n# Wheels\n\nRound.", "README"),
        ("old.md", "# Mills\n\nOld.\n\n# Wheels\n\nRound.", "old"),
    ],
)
def test_a_readme_is_called_as_the_heading_that_it_begins_with(
    tmp_path: Path, name: str, text: str, title: str
) -> None:
    assert {passage.title for passage in read(tmp_path, name, text)} == {title}


def test_lines_of_markdown_that_begin_with_labels_stay_apart(tmp_path: Path) -> None:
    head = "**Date:** 8 April\n**Present:** Anna, *Ben*\n**Chair**: Anna"
    [found] = read(tmp_path, "a.md", f"# Minutes\n\n{head}\n\nRoom 1: 12 seats\nRoom 2: 8 seats\n\nIt is\nlong: yes.")
    assert found.text.split("\n\n") == [
        "Date: 8 April",
        "Present: Anna, Ben",
        "Chair: Anna",
        "Room 1: 12 seats",
        "Room 2: 8 seats",
        "It is long: yes.",
    ]
    [found] = read(tmp_path, "a.md", "It went well\ntoday.\n**Decision:** Go on\nwith it.\n**Action:** Anna asks.")
    assert found.text.split("\n\n") == ["It went well today.", "Decision: Go on with it.", "Action: Anna asks."]


def test_bold_questions_stand_before_their_answers(tmp_path: Path) -> None:
    asked = f"**How is it\nopened?**\n\nWith a key. {LONG} {LONG} {LONG}"
    told = f"**Q: Is it red?**\nA: No. {LONG} {LONG} {LONG}"
    found = read(tmp_path, "a.md", f"# FAQ\n\n{asked}\n\n{told}\n")
    assert found[0].text.startswith("How is it opened?\n\nWith a key.")
    assert "Q: Is it red?\n\nA: No." in found[-1].text


def test_a_raised_digit_inside_a_word_is_a_letter_of_another_encoding(tmp_path: Path) -> None:
    text = "Mała łąka leży za wsią, a mąka jest w młynie. Tam pracują od świtu. Całą zimę było mało wody."
    (tmp_path / "a.txt").write_bytes(text.encode("cp1250"))
    assert read_document(tmp_path / "a.txt", "a.txt")[0].text == text
    (tmp_path / "b.txt").write_bytes("The café holds 40 m³ of water¹ and 5 m³ of beer.".encode("cp1252"))
    assert "40 m³ of water¹" in read_document(tmp_path / "b.txt", "b.txt")[0].text
