"""Org, AsciiDoc, Rich Text Format, subtitles, mailboxes, saved pages and address books."""

import gzip
from pathlib import Path

import pytest

from rag.base.errors import FormatError
from rag.documents import Document, load_document
from rag.documents import navigation as nav
from rag.documents.corpus import Corpus

LONG = "This paragraph has more than twelve words, so that it stands as a passage by itself."


def load(tmp_path: Path, name: str, text: str) -> Document:
    (tmp_path / name).write_text(text)
    return load_document(tmp_path / name, name)


def blocks(document: Document) -> list[str]:
    return [block for passage in document.passages for block in passage.text.split("\n\n")]


# --- Org --------------------------------------------------------------------------------------------------------


ORG = r"""#+TITLE: The *mill* notes
#+AUTHOR: Ed Moss
#+STARTUP: overview
#+MACRO: kbd @@html:<kbd>$1</kbd>@@
#+MACRO: named the $1 mill
It is /old/, =code_x=, ~a=b~, *bold_word* and {{{named(grey)}}}, see [[https://example.org][the site]] and
[[file:a.org]]. Press {{{kbd(C-x b)}}} in /usr/local/bin on <2024-05-06 Mon 10:00>.[fn:1] [[file:mill.png]]

* TODO [#A] Buy flour                                   :shop:work:
SCHEDULED: <2024-05-06 Mon> DEADLINE: <2024-05-09 Thu>
:PROPERTIES:
:ID: 1
:END:
* DONE Sell bread
* Recipes
** Bread
- Flour
  - white, in
    two bags
- [X] Water
1. Mix
2. Bake
   #+begin_src sh
   bake --now
   ,* all
   #+end_src
- Crust :: The outside
  of bread.
| Name | Size |
|------+------|
| <l>  | <4>  |
| a_b  | 1    |
#+TBLFM: $2=1

: fixed
: more

# a comment
#+begin_note
Mind it.
#+end_note
#+begin_quote
They turn.
#+end_quote
Date: 2024
Place: Here
* Footnotes
[fn:1] A note.
"""


def test_notes_of_org(tmp_path: Path) -> None:
    found = load(tmp_path, "notes.org", ORG)
    first, second = found.passages
    assert found.dropped["footnote"] == 1
    assert (first.title, first.section) == ("The mill notes", "")
    assert first.text.split("\n\n") == [
        "Author: Ed Moss",
        "It is old, code_x, a=b, bold_word and the grey mill, see the site and a.org. Press C-x b in /usr/local/bin on "
        "2024-05-06 Mon 10:00.",
        "Buy flour (TODO): Scheduled: 2024-05-06 Mon. Deadline: 2024-05-09 Thu",
        "Sell bread (DONE)",
    ]
    assert second.section == "Recipes, Bread"
    assert second.text.split("\n\n") == [
        "- Flour",
        "  - white, in two bags",
        "- [X] Water",
        "1. Mix",
        "2. Bake",
        "    bake --now\n    * all",
        "Crust: The outside of bread.",
        "Name: a_b | Size: 1",
        "    fixed\n    more",
        "Note: Mind it.",
        "They turn.",
        "Date: 2024",
        "Place: Here",
    ]


def test_files_of_other_kinds_with_such_names_are_counted(tmp_path: Path) -> None:
    (tmp_path / "example.org").write_text("server {\n    listen 80;\n}\n")
    (tmp_path / "genes.vcf").write_text("##fileformat=VCFv4.2\n#CHROM\tPOS\n1\t2\n")
    (tmp_path / "notes.org").write_text(LONG)
    (tmp_path / "tasks.org").write_text("* Buy flour\n")
    corpus = Corpus([tmp_path])
    assert {passage.title for _, passage in corpus.read()} == {"notes", "tasks"}
    assert corpus.report.unread == {".org": 1, ".vcf": 1}


def test_the_title_of_org_without_one(tmp_path: Path) -> None:
    (one,) = load(tmp_path, "a.org", f"* Mills\n{LONG}\n** Wheels\n{LONG}\n").passages
    assert (one.title, one.text.split("\n\n")[1]) == ("Mills", f"Wheels: {LONG}")
    (first, *_) = load(tmp_path, "b.org", f"* Mills\n{LONG}\n* Wheels\n{LONG}\n").passages
    assert first.title == "b"


# --- AsciiDoc -----------------------------------------------------------------------------------------------------


ASCIIDOC = r"""// A comment
= The *Mill* Manual
Ed Moss <ed@example.org>
v1.2, 2024-05-06
:toc:
:product: Arlen Mill
:home: https://example.org[the {product}]

See {home}, <<load>>, <<_wheels,below>>, xref:other.adoc[], xref:a.adoc#b[there] and link:a.html[a page^].
It is *bold_word*, _old_, `code_x`, `+a*b*c+`, #marked#, **un**usual, x^2^, {unknown} and \*plain*. C++ is {cpp}.
Press kbd:[Ctrl+T], menu:File[Save > As], btn:[OK].footnote:[A note.] "`So`" it ((turns))(((wheel))).

ifdef::env-github[]
Not here.
endif::[]
ifndef::env-github[]
But here.
endif::[]

[[load]]
== How to load it

[WARNING]
====
Do not run.

* Walk
====

.To load it:
. Open
+
[source,ruby]
----
load 1 # <1>
----
. Fill
** flour
** water
. Close

image::mill.png[A mill]

Wheels
------

Upper::
Top:: It turns
  slowly.
Lower::
+
--
It stands.
--

.Sizes
[cols="1,2",options="header"]
|===
|Name |Size in
metres
|a_b
|`1`

2+|both
.2+|span |3
|4
|===

|===
|A |B

|1 |2
|===

,===
x,"y, z"
,===

TIP: Oil it.

 left as
   it is

include::chapter.adoc[]

'''
++++
<hr>
++++
"""


def test_a_manual_of_asciidoc(tmp_path: Path) -> None:
    found = load(tmp_path, "mill.adoc", ASCIIDOC)
    assert found.dropped == {"footnote": 1, "included file": 1}
    assert {passage.title for passage in found.passages} == {"The Mill Manual"}
    assert blocks(found) == [
        "Author: Ed Moss <ed@example.org>",
        "Version: v1.2, 2024-05-06",
        "See the Arlen Mill, How to load it, below, other, there and a page. It is bold_word, old, code_x, a*b*c, "
        "marked, unusual, x2, {unknown} and *plain*. C++ is C++. Press Ctrl+T, File > Save > As, OK. “So” it turns.",
        "But here.",
        "How to load it:",
        "Warning: Do not run.",
        "- Walk",
        "To load it:",
        "1. Open",
        "    load 1",
        "2. Fill",
        "  - flour",
        "  - water",
        "3. Close",
        "Wheels:",
        "Upper, Top: It turns slowly.",
        "Lower:",
        "It stands.",
        "Sizes",
        "Name: a_b | Size in metres: 1",
        "Name: both",
        "Name: span | Size in metres: 3",
        "Name: span | Size in metres: 4",
        "A: 1 | B: 2",
        "x | y, z",
        "Tip: Oil it.",
        "    left as\n      it is",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mills\n=====\n\nThey turn.", ["They turn."]),
        ("They turn\n- and stop\n* so.", ["They turn - and stop * so."]),
        ("----\ncode without an end", ["    code without an end"]),
        ("[source]\nx = 1\ny = 2\n\nText.", ["    x = 1\n    y = 2", "Text."]),
        ("Text.\n\nifdef::a[]\nNo.\nendif::[]\n:a:\nifdef::a[Yes.]", ["Text.", "Yes."]),
        ("a:: one\nb::: two\nc:: three", ["a: one", "  - b: two", "c: three"]),
        (
            "a::\n  one\n\n    It goes on here,\n    with it.\n\n    (See `x`)\n\n    run it\n    run all\n\nEnd.",
            ["a: one", "It goes on here, with it.", "(See x)", "    run it\n    run all", "End."],
        ),
        ("- *a* (b)::\n  one\n- *\\*c*\\*", ["- a (b): one", "- *c*"]),
        ("- a `'` in `'b'`\n\n    ----\n    run\n    ----", ["- a ' in 'b'", "    run"]),
        ("4. four\n5. five", ["4. four", "5. five"]),
        ("A |===| b. Use std::vector, a_b_c, 2*3*4 and `a|b`.", ["A |===| b. Use std::vector, a_b_c, 2*3*4 and a|b."]),
    ],
)
def test_lines_of_asciidoc(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert blocks(load(tmp_path, "a.asciidoc", text)) == expected


# --- Rich Text Format ---------------------------------------------------------------------------------------------


RTF = r"""{\rtf1\ansi\ansicpg1252\deff0\uc1{\fonttbl{\f0\fcharset0 Arial;}
{\f2\fcharset238 Arial;}{\f3\fcharset128 Mincho;}}
{\colortbl;\red0;}{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\s5 Title;}{\s6 toc 1;}{\s7 Source Code;}}
{\info{\title Old}{\author Ed}}{\header Page \chpgn}{\*\generator Writer;}
\pard\plain\s5 The Mill\par
\pard\plain\s6 Wheels\tab 3\par
{\field{\*\fldinst TOC \\o}{\fldrslt Wheels 3\par}}
\pard\plain\s1 Its wheels\par
\pard\plain It is \'e9l\'e9gant, \u8364?5 and \b old\b0 . {\v hidden}A{\footnote A note.} {\field{\*\fldinst HYPERLINK
"http://example.org"}{\fldrslt link}} \{x\} {\f2 \'b3\'f3d\'9f} {\f3 \'93\'fa\'96\'7b}\emdash so \u-10179?\u-8704?.\par
\pard {\listtext\'B7\tab}Cars\par
\pard{\listtext o\tab}\ilvl1 Red\par
\pard{\f4\u-3913\'b7\tab}Blue\par
\pard{\pntext 1.\tab}Mix\par
{\pntext b)\tab}Bake\par
\pard\b Of their sizes\b0\par
\pard They are in this table.\par
\trowd\trhdr\cellx100\cellx200\pard\intbl Name\cell Size\cell\row
\trowd\cellx200\pard\intbl Old ones\cell\row
\trowd\clvmgf\cellx100\cellx200\pard\intbl mill\cell 5\cell\row
\trowd\clvmrg\cellx100\cellx200\pard\intbl\cell 6\par more\cell\row
\pard\s7 x = 1\par
\s7   y = 2\par
\pard{\pict\bin5 {{{{{00ff}The end.\par}
{\rtf1 after it}"""


def test_rich_text(tmp_path: Path) -> None:
    found = load(tmp_path, "mill.rtf", RTF)
    assert found.dropped == {"footnote": 1, nav.CONTENTS: 2}
    (passage,) = found.passages
    assert (passage.title, passage.section) == ("The Mill", "Its wheels")
    assert passage.text.split("\n\n") == [
        "It is élégant, €5 and old. A link {x} łódź 日本—so 😀.",
        "- Cars",
        "  - Red",
        "- Blue",
        "1. Mix",
        "- b) Bake",
        "Of their sizes",
        "They are in this table.",
        "Old ones",
        "Name: mill | Size: 5",
        "Name: mill | Size: 6 more",
        "    x = 1\n    y = 2",
        "The end.",
    ]


@pytest.mark.parametrize(
    ("text", "message"), [(LONG, "not Rich Text Format"), (r"{\rtf1 " + "{" * 9000, "its groups are nested more than")]
)
def test_rich_text_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=rf"a\.rtf: {message}"):
        load(tmp_path, "a.rtf", text)


# --- Subtitles ----------------------------------------------------------------------------------------------------


SPOKEN = f"""1
00:00:05,000 --> 00:00:07,500
<i>{LONG}</i>
{LONG}

2
0:01:05 --> 0:01:09
- {{\\an8}}Who is it?
- Ed.
3
00:01:10,000 --> 00:01:12,000
[Music]
Come in &amp; sit

4
00:01:12,000 --> 00:01:14,000
with us, as there is a lot to be told about the mill.
"""


def test_subtitles(tmp_path: Path) -> None:
    first, second = load(tmp_path, "a.srt", SPOKEN).passages
    assert (first.title, first.section, first.text) == ("a", "0:00:05", f"{LONG} {LONG}")
    assert second.section == "0:01:05"
    assert second.text.split("\n\n") == [
        "Who is it?",
        "Ed. Come in & sit with us, as there is a lot to be told about the mill.",
    ]


def test_subtitles_of_the_web(tmp_path: Path) -> None:
    text = f"""WEBVTT - Mills

STYLE
::cue {{ color: red }}

NOTE 00:00 is the begin

intro
01:05.000 --> 01:09.000 align:start
<v Ann>{LONG}</v>

01:09.000 --> 01:12.000
<c>rolling</c><00:00:01.000> words

01:12.000 --> 01:14.000
rolling words
go on
"""
    (passage,) = load(tmp_path, "a.vtt", text).passages
    assert (passage.section, passage.text) == ("0:01:05", f"Ann: {LONG} rolling words go on")
    with pytest.raises(FormatError, match=r"b\.vtt: not subtitles"):
        load(tmp_path, "b.vtt", "WEBVTT\n\nThe mill.")


# --- Mailboxes, saved pages and address books -----------------------------------------------------------------------


MAILBOX = f"""From ed@example.org Mon May  6 10:00:00 2024
From: Ed <ed@example.org>
Subject: Flour
Date: Mon, 06 May 2024 10:00:00 +0000

{LONG}

From here on we buy more.
>From him too.

From ann at example.org  Tue May  7 10:00:00 2024
From: ann at example.org (Ann)
Subject: Re: Flour

> {LONG}

We need two bags of it.

From nobody Tue May  7 10:00:00 2024
X-Broken: 1

"""


@pytest.mark.parametrize("name", ["a.mbox", "2024-May.txt", "2024-May.txt.gz"])
def test_a_mailbox(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(MAILBOX.encode()) if name.endswith(".gz") else MAILBOX.encode())
    found = load_document(path, name)
    first, second = found.passages
    assert found.dropped == {"broken message": 1}
    assert (first.title, first.section) == (name.partition(".")[0], "Flour")
    assert first.text.split("\n\n") == [
        "From: Ed <ed@example.org>",
        "Date: Mon, 06 May 2024 10:00:00 +0000",
        LONG,
        "From here on we buy more.",
        "From him too.",
    ]
    assert second.section == "Re: Flour"
    assert second.text.split("\n\n")[1:] == [f"> {LONG}", "We need two bags of it."]


def test_no_mailbox(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a\.mbox: not a mailbox"):
        load(tmp_path, "a.mbox", LONG)
    assert load(tmp_path, "a.txt", f"From Monday on 2024\n{LONG}").passages[0].text.startswith("From Monday on")


def test_a_page_that_a_browser_saved(tmp_path: Path) -> None:
    page = f"<title>Mill</title><nav>Home</nav><p>{LONG}</p>"
    text = f"""From: <Saved by a browser>
Subject: Mill
MIME-Version: 1.0
Content-Type: multipart/related; boundary="b"; type="text/html"

--b
Content-Type: text/css

body {{}}
--b
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

{page}=E2=82=AC 5
--b--
"""
    (passage,) = load(tmp_path, "a.mhtml", text).passages
    assert (passage.title, passage.text) == ("Mill", f"{LONG}\n\n€ 5")
    with pytest.raises(FormatError, match=r"b\.mht: not a saved page"):
        load(tmp_path, "b.mht", LONG)


CONTACTS = r"""BEGIN:VCARD
VERSION:3.0
FN:Edward Moss
ORG:Arlen Mill\, Ltd;Sales
TEL;TYPE=WORK,VOICE:+44 123
item1.TEL;type=CELL:tel:+44 456
ADR;TYPE=home:;;1 Mill Lane;Arlen;;AB1;UK
NOTE:Likes
  cake\nand tea
PHOTO;ENCODING=b:AAA=
END:VCARD
BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;=
J=C3=B6rg;;;
BDAY:1980-05-06
END:VCARD
"""


def test_an_address_book(tmp_path: Path) -> None:
    found = load(tmp_path, "a.vcf", CONTACTS)
    assert found.dropped == {"picture of a person": 1}
    assert blocks(found) == [
        "Name: Edward Moss | Organisation: Arlen Mill, Ltd, Sales | Phone: +44 123 (work), +44 456 (cell) | "
        "Address: 1 Mill Lane, Arlen, AB1, UK (home) | Note: Likes cake and tea",
        "Name: Jörg Müller | Birthday: 1980-05-06",
    ]
    with pytest.raises(FormatError, match=r"b\.vcf: not an address book"):
        load(tmp_path, "b.vcf", LONG)
