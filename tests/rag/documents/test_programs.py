"""Formats that pandoc and asciidoctor convert, and their limits."""

import gzip
import re
from pathlib import Path

import pytest

from rag.base.errors import FormatError
from rag.documents import Document, load_document, read_document
from rag.documents import navigation as nav
from rag.documents.converters import pandoc, programs
from rag.documents.converters.docbook import replace_entities
from rag.documents.corpus import Corpus
from rag.documents.limits import run_program
from rag.documents.page_names import page_name
from tests.rag.documents.test_formats import _ODF, packed, table_of

needs_pandoc = pytest.mark.skipif(programs.find_program("pandoc") is None, reason="needs pandoc (the extra formats)")
needs_asciidoctor = pytest.mark.skipif(programs.find_program("asciidoctor") is None, reason="needs asciidoctor")

LONG = "This paragraph has more than twelve words, so that it stands as a passage by itself."


def load(tmp_path: Path, name: str, content: str | bytes) -> Document:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_document(path, name)


def blocks(document: Document) -> list[str]:
    return [block for passage in document.passages for block in passage.text.split("\n\n")]


# --- manual pages ------------------------------------------------------------------------------------------------

MAN = r"""'\" t
.\" A comment
.TH LS 1 "June 2026"
.if n \{\
.ad l
.\}
.SH NAME
ls \- list directory contents
.SH "OPTIONS OF IT"
The program \fBls\fP(1) lists files\(emall of them; see
.BR dir (1),
or
.IR "the manual" .
.TP
\fB\-a\fR, \fB\-\-all\fR
do not ignore
entries.
.IP
Not even hidden ones.
.IP \(bu 2
a bullet
.PP
For example:
.nf
  ls -a

  ls \e
.fi
.TS
tab(|);
l l.
\fBName\fP|Size
a|1
.TE
.de XX
lost
..
"""

MDOC = r""".Dd June 1, 2026
.Dt SSH 1
.Os
.Sh NAME
.Nm ssh
.Nd a remote login client
.Sh SYNOPSIS
.Nm ssh
.Op Fl 46A
.Op Fl B Ar bind_interface
.Nm
.Fl V
.Sh DESCRIPTION
.Nm
(see
.Xr scp 1 )
logs in.
.Bl -tag -width Ds
.It Fl 4
Forces
.Nm
to use IPv4
.Pq only .
.It Fl V , -version
Displays it:
.Bd -literal
ssh -V
.Ed
.El
.Bl -enum
.It
first
.It
second
.El
"""


@needs_pandoc
def test_a_manual_page(tmp_path: Path) -> None:
    document = load(tmp_path, "ls.1", MAN)
    assert document.title == "ls(1)"
    assert blocks(document) == [
        "Name: ls - list directory contents",
        "Options of it: The program ls(1) lists files—all of them; see dir(1), or the manual.",
        "-a, --all: do not ignore entries.",
        "Not even hidden ones.",
        "- a bullet",
        "For example:",
        "    ls -a\n    \n    ls \\",
        "Name: a | Size: 1",
    ]


@needs_pandoc
def test_a_manual_page_in_mdoc(tmp_path: Path) -> None:
    document = load(tmp_path, "ssh.1", MDOC)
    assert document.title == "ssh(1)"
    assert blocks(document) == [
        "Name: ssh — a remote login client",
        "Synopsis: ssh [-46A] [-B bind_interface] ssh -V",
        "Description: ssh (see scp(1)) logs in.",
        "-4: Forces ssh to use IPv4 (only).",
        "-V, --version: Displays it:",
        "    ssh -V",
        "1. first",
        "2. second",
    ]


@needs_pandoc
def test_links_as_asciidoctor_writes_them_in_manual_pages(tmp_path: Path) -> None:
    page = """.TH TRAM 1
.SH HELP
Every rider may write to
.MTO "riders@tram.example" "\\fBthe riders\\fP" ","
or read
.URL "https://tram.example/faq" "" "."
"""
    (passage,) = load(tmp_path, "tram.1", page).passages
    assert (
        passage.text == "Every rider may write to the riders <riders@tram.example>, or read https://tram.example/faq."
    )


@needs_pandoc
def test_names_of_other_manual_pages_are_left_out_and_counted(tmp_path: Path) -> None:
    page = """.TH BUS 1
.SH DESCRIPTION
A bus has seats, doors and a driver who knows the way through all the streets of the town.
.PP
.BR tram (1)
.SH SEE ALSO
.BR tram (1),
.BR train (3x)
and
.BR boat (7).
.PP
The book of all roads, which every driver has.
.SH AUTHOR
Ann Arlen wrote this page for the people of the town, who asked her for it every week of a long year.
"""
    found = load(tmp_path, "bus.1", page)
    assert blocks(found) == [
        "Description: A bus has seats, doors and a driver who knows the way through all the streets of the town.",
        "tram(1)",
        "See also: The book of all roads, which every driver has.",
        "Author: Ann Arlen wrote this page for the people of the town, who asked her for it every week of a long year.",
    ]
    assert found.dropped == {nav.NAVIGATION: 1}
    page = "<h1>bus(1)</h1><p>A bus has seats.</p><h2>See also</h2><p><i>tram</i>(1), <i>boat</i>(7)</p><p>The map.</p>"
    assert blocks(load(tmp_path, "bus.html", page)) == ["A bus has seats.", "See also: The map."]


@needs_pandoc
def test_a_line_before_what_is_indented_is_its_term(tmp_path: Path) -> None:
    page = """.TH BUS.CONF 5
.SH DIRECTIVES
.sp
\\fBstop\\fP \\fIplace\\fP [\\fIoption\\fP]...
.RS 4
Names a place where the bus stops.
.sp
It knows one option:
.sp
\\fBwait\\fP \\fIminutes\\fP
.RS 4
How long it waits there.
.RE
.RE
.PP
Each line has one directive.
.RS
This one is no term.
.RE
.PP
As an example:
.RS
.nf
stop Harbour
.fi
.RE
"""
    (passage,) = load(tmp_path, "bus.conf.5", page).passages
    assert passage.text.split("\n\n") == [
        "stop place [option]...: Names a place where the bus stops.",
        "It knows one option:",
        "wait minutes: How long it waits there.",
        "Each line has one directive.",
        "This one is no term.",
        "As an example:",
        "    stop Harbour",
    ]


@needs_pandoc
def test_terms_and_items_as_docbook_writes_them_in_manual_pages(tmp_path: Path) -> None:
    page = r""".TH FERRY.CONF 5
.SH "PARAMETERS"
.PP
Every line sets one of them\&.

deck count (G)
.PP
.RS 4
How many decks are open\&.
.sp
Default:
\fIdeck count = 2\fR
.RE

bell (S)
.PP
.RS 4
Which signals it gives:
.sp
.RS 4
.ie n \{\
\h'-04'\(bu\h'+03'\c
.\}
.el \{\
.sp -1
.IP \(bu 2.3
.\}
\fIlong\fR
before it leaves
.RE
.RE
.SS "LOAD <CARS> [CREW]"
.PP
Drives them on board\&.
"""
    assert blocks(load(tmp_path, "ferry.conf.5", page)) == [
        "Every line sets one of them.",
        "deck count (G): How many decks are open.",
        "Default: deck count = 2",
        "bell (S): Which signals it gives:",
        "- long before it leaves",
        "Drives them on board.",
    ]


@needs_pandoc
def test_manual_pages_are_known_by_their_beginning(tmp_path: Path) -> None:
    (tmp_path / "ls.1.gz").write_bytes(gzip.compress(MAN.encode()))
    (tmp_path / "lib.so.1").write_bytes(b"\x7fELF\0\1")
    (tmp_path / "app.log.1").write_text("Started.\n")
    (tmp_path / "broken.1.gz").write_bytes(b"nonsense")
    (tmp_path / "dir.1").write_text(".so man1/ls.1\n")
    corpus = Corpus([tmp_path])
    assert {passage.id.partition("#")[0] for _, passage in corpus.read()} == {"ls.1.gz"}
    assert (corpus.report.bad, corpus.report.dropped[nav.REDIRECT]) == (0, 1)
    with pytest.raises(FormatError, match="not a manual page"):
        read_document(tmp_path / "app.log.1", "app.log.1")


# --- LaTeX ---------------------------------------------------------------------------------------------------------

PAPER = r"""\documentclass[a4paper]{article}
\usepackage{hyperref} % links
\newcommand{\sys}{\textsc{Mill}Works\xspace}
\newcommand{\R}{\mathbb{R}}
\newcommand{\cmd}[1]{\texttt{#1}}
\newtheorem{thm}{Theorem}[section]
\title[Short]{The Old Mill\thanks{Grant 5} \\ of Arlen}
\author{Ed Moss\\Univ. of Arlen \and Nora Finch}
\date{\today}
\begin{document}
\maketitle
\begin{abstract}
We study ``\sys'' with \cmd{ls -l}.
\end{abstract}
\section{Wheels \& more}\label{sec:a}
\sys{} is old---very old, see Section~\ref{sec:a} and \citep[p.~3]{a,b}\footnote{A note.}. % a comment
Nearly 100\% of
% a line of its own
the wheels turn.
\subsection*{Tables}
\begin{table}[htb]
\centering
\begin{tabular}{|l|c|r|}
\hline
Name & \multicolumn{2}{c|}{Size} \\ \hline
a & 1 & 2\\[2pt]
b & 3 & 4\\ \hline
\end{tabular}
\caption{Sizes of mills\label{tab:x}}
\end{table}
\begin{lstlisting}[language=C,caption={The code}]
int x = 1; % 5
  \run{}
\end{lstlisting}
\begin{thm}[Moss] Mills \textbf{turn}.
\end{thm}
\begin{figure}\includegraphics[width=3cm]{x.png}\caption{A mill.}\end{figure}
\begin{tikzpicture}\draw (0,0) -- (1,1);\end{tikzpicture}
\input{chapter}
\begin{thebibliography}{9}
\bibitem{a} Moss, E. \emph{Mills}. 1990.
\end{thebibliography}
\end{document}
This is not shown.
"""


@needs_pandoc
def test_a_paper(tmp_path: Path) -> None:
    document = load(tmp_path, "mill.tex", PAPER)
    assert document.title == "The Old Mill of Arlen"
    assert document.dropped["footnote"] == 2
    assert {passage.section for passage in document.passages} == {"", "Wheels & more, Tables"}
    assert blocks(document) == [
        "Author: Ed Moss Univ. of Arlen, Nora Finch",
        "Abstract:",
        "We study “MillWorks” with ls -l.",
        "Wheels & more: MillWorks is old—very old, see Section 1 and . Nearly 100% of the wheels turn.",
        "Sizes of mills:",
        "Name: a | Size: 1 | Size: 2",
        "Name: b | Size: 3 | Size: 4",
        "    int x = 1; % 5\n      \\run{}",
        "Theorem 1 (Moss). Mills turn.",
        "9 Moss, E. Mills. 1990.",
    ]


LINES = [
    (r"caf\'{e}, na\"\i ve, Stra\ss e, \v{C}apek, \aa ngstr\"om", ["café, naïve, Straße, Čapek, ångström"]),
    (r"$x^{2} \leq 3$, \(\alpha_{ij}\) and $\frac{a}{b}$", [r"x^2 ≤ 3, α_(ij) and $\frac{a}{b}$"]),
    (r"It costs \$5 \verb|a_b%c| \textbackslash x {\bf bold}", ["It costs $5 a_b%c \\x bold"]),
    (r"\begin{description} \item [-f] reads it \end{description}", ["-f: reads it"]),
    (r"\verb|\end{document}| ends it.\par More.", [r"\end{document} ends it.", "More."]),
]


@needs_pandoc
@pytest.mark.parametrize(("text", "expected"), LINES)
def test_lines_of_latex(tmp_path: Path, text: str, expected: list[str]) -> None:
    document = load(tmp_path, "a.tex", f"\\begin{{document}}\n{text}\n\\end{{document}}")
    assert blocks(document) == expected


PROGRAMS = [
    "\\ProvidesPackage{mill}\n\\newcommand{\\mill}[1]{The mill is #1 and old.}\n",
    "\\def\\a#1{b}\n\\let\\c\\d\n\\newif\\ifmill\n\\section{x}\n",
    "\\input texinfo\n@node Top\nThe mill is old and it turns all day.\n",
    "Mills turn in the wind and they are of oak, as we know.\n\\bye\n",
    "",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_files_of_commands_are_counted_and_not_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "mill.tex").write_text(text)
    with pytest.raises(FormatError, match=r"mill\.tex: not a LaTeX document"):
        load_document(tmp_path / "mill.tex", "mill.tex")
    (tmp_path / "a.md").write_text("The mill is old.\n")
    corpus = Corpus([tmp_path])
    assert [passage.text for _, passage in corpus.read()] == ["The mill is old."]
    assert corpus.report.bad == 0


# --- DocBook -------------------------------------------------------------------------------------------------------

BOOK = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "docbookx.dtd" [
  <!ENTITY boat "<application>Ferry</application>">
  <!ENTITY name "&boat; &amp; &Co;">
  <!ENTITY twice "&boat;">
  <!ENTITY harbour SYSTEM "harbour.docbook">
  <!ENTITY % more "INCLUDE">
]>
<book id="top" lang="en">
<bookinfo><title>The &twice; Handbook</title>
<author><firstname>Nora</firstname></author>
<legalnotice><para>All may read it.</para></legalnotice>
<abstract><para>It says how the boat is steered.</para></abstract>
</bookinfo>
<toc/>&underFDL;
<chapter id="going"><title>Going<indexterm><primary>going</primary></indexterm></title>
<para>The &boat; goes<footnote><para>Never on Sundays.</para></footnote> from &eacute;t&eacute; on,
&eg; in &harbour;&July;.
Press <keycombo action="simul">&Ctrl;<keycap>G</keycap></keycombo>, or choose
<menuchoice><shortcut><keycap>F2</keycap></shortcut><guimenu>Boat</guimenu> <guimenuitem>Go</guimenuitem></menuchoice>.
Read <xref linkend="fees"/>, <ulink url="http://localhost/"/> and
<citerefentry><refentrytitle>boat</refentrytitle><manvolnum>8</manvolnum></citerefentry>:
<itemizedlist><listitem><para>cars</para></listitem>
<listitem><para>bikes</para><orderedlist><listitem><para>red</para></listitem></orderedlist></listitem></itemizedlist>
but <quote>no</quote> horses; choose <guimenuitem>More...</guimenuitem>.</para>
<note><para>Mind the gap.</para></note>
<variablelist><title>Options</title>
<varlistentry><term><option>-f</option></term><term><option>--file</option></term><listitem>
<para>Reads a <replaceable>FILE</replaceable>.</para><screen>ferry -f <![CDATA[<times>]]> &lt;
  more</screen></listitem></varlistentry></variablelist>
<procedure><step><title>Cast off</title><para>First.</para></step><step><para>Then steer.</para></step></procedure>
<figure><title>A boat</title>
<mediaobject><imageobject/><textobject><phrase>boat</phrase></textobject></mediaobject></figure>
<sect1 id="fees"><title>Fees</title>
<table><title>What it costs</title><tgroup cols="3"><colspec colname="a"/><colspec colname="b"/><colspec colname="c"/>
<thead><row><entry>Who</entry><entry>Once</entry><entry>Always</entry></row></thead>
<tbody><row><entry morerows="1"><para>Cars</para></entry><entry>5</entry><entry>9</entry></row>
<row><entry namest="b" nameend="c">none</entry></row></tbody></tgroup></table>
<sect2><title>Free rides</title><para>There are none.</para></sect2></sect1>
</chapter>
<chapter><title>Questions</title><qandaset><qandaentry><question><para>Does it sink?</para></question>
<answer><para>It does not.</para></answer></qandaentry></qandaset></chapter>
<reference><title>Commands</title>
<refentry><refmeta><refentrytitle>ferry</refentrytitle><manvolnum>1</manvolnum></refmeta>
<refnamediv><refname>ferry</refname><refpurpose>cross the water</refpurpose></refnamediv>
<refsynopsisdiv><cmdsynopsis><command>ferry</command>
<group choice="opt"><arg choice="plain">-f</arg><arg>-g</arg></group>
<arg choice="req" rep="repeat"><replaceable>pier</replaceable></arg></cmdsynopsis></refsynopsisdiv>
<refsect1><title>Description</title><para>It goes.</para></refsect1></refentry></reference>
<glossary><title>Words</title><glossentry><glossterm>Pier</glossterm><glossdef><para>Where it stops.</para></glossdef>
</glossentry><glossentry><glossterm>Quay</glossterm><glosssee otherterm="top">Pier</glosssee></glossentry></glossary>
<index/>
</book>
"""


@needs_pandoc
def test_a_book_of_docbook(tmp_path: Path) -> None:
    document = load(tmp_path, "b.docbook", BOOK)
    assert document.title == "The Ferry Handbook"
    assert document.dropped["footnote"] == 1
    for text in (
        "It says how the boat is steered.",
        "- bikes",
        "  1. red",
        "    ferry -f <times> <\n      more",
        "Who: Cars | Once: 5 | Always: 9",
        "Free rides: There are none.",
    ):
        assert text in blocks(document)
    (going,) = (text for text in blocks(document) if text.startswith("Going: "))
    assert going.startswith("Going: The Ferry goes from été on, e.g. in harbour")


@needs_pandoc
def test_xml_is_known_by_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(BOOK)
    (tmp_path / "b.xml").write_text(
        '<article xmlns="http://docbook.org/ns/docbook"><para>Boats float on water.</para></article>'
    )
    (tmp_path / "c.xml").write_text("<section><title>Boats</title><para>They float on water.</para></section>")
    (tmp_path / "books.xml").write_text("<book><title>Boats</title><price>5</price></book>")
    (tmp_path / "feed.xml").write_text("<rss><channel><title>Boats</title></channel></rss>")
    corpus = Corpus([tmp_path])
    assert {passage.id.partition("#")[0] for _, passage in corpus.read()} == {"a.xml", "b.xml", "c.xml"}
    with pytest.raises(FormatError, match=r"feed\.xml: not a DocBook document"):
        load_document(tmp_path / "feed.xml", "feed.xml")


@needs_pandoc
def test_docbook_reads_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("The secret word.")
    text = f"""<!DOCTYPE article SYSTEM "{tmp_path}/secret.txt" [<!ENTITY a "ha">
<!ENTITY s SYSTEM "{tmp_path}/secret.txt"><!ENTITY % p SYSTEM "{tmp_path}/secret.txt"> %p;]>
<article xmlns:xi="http://www.w3.org/2001/XInclude"><para>One &a; &s; two.</para>
<xi:include href="{tmp_path}/secret.txt" parse="text"/></article>"""
    assert "secret" not in " ".join(blocks(load(tmp_path, "a.docbook", text)))


def test_entities_of_docbook_do_not_grow() -> None:
    laughs = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12))
    assert len(replace_entities(f'<!DOCTYPE a [<!ENTITY a "ha">{laughs}]><a>&m;</a>')) < 300
    many = f'<!DOCTYPE a [<!ENTITY a "{"ha" * 100}">]><a>{"&a; " * 100_000}</a>'
    assert len(replace_entities(many)) < 2_000_000
    assert replace_entities("<a>&eacute; &amp; &mine; &eg;</a>") == "<a>é &amp; mine e.g.</a>"


def test_xml_of_a_site_is_a_feed_or_a_map() -> None:
    assert page_name("http://localhost/feed.xml", "application/rss+xml") is None
    assert page_name("http://localhost/boats.docbook", "application/octet-stream") == "boats.docbook"
    assert page_name("http://localhost/boats", "application/docbook+xml") == "boats.docbook"


# --- Org, Rich Text Format and OpenDocument --------------------------------------------------------------------------

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


@needs_pandoc
def test_notes_of_org(tmp_path: Path) -> None:
    document = load(tmp_path, "notes.org", ORG)
    assert (document.title, document.dropped["footnote"]) == ("The mill notes", 1)
    first, second = document.passages
    assert first.text.split("\n\n") == [
        "Author: Ed Moss",
        "It is old, code_x, a=b, bold_word and the grey mill, see the site and file:a.org. Press C-x b in /usr/local/"
        "bin on <2024-05-06 Mon 10:00>.",
        "TODO [#A] Buy flour: DEADLINE: <2024-05-09 Thu> SCHEDULED: <2024-05-06 Mon>",
        "DONE Sell bread",
    ]
    assert second.section == "Recipes, Bread"
    assert second.text.split("\n\n") == [
        "- Flour",
        "  - white, in two bags",
        "- [x] Water",
        "1. Mix",
        "2. Bake",
        "    bake --now\n    * all",
        "Crust: The outside of bread.",
        "Name: a_b | Size: 1",
        "    fixed\n    more",
        "Note: Mind it.",
        "They turn.",
        "Date: 2024 Place: Here",
    ]


@needs_pandoc
def test_files_of_other_kinds_with_such_names_are_counted(tmp_path: Path) -> None:
    (tmp_path / "example.org").write_text("server {\n    listen 80;\n}\n")
    (tmp_path / "notes.org").write_text(LONG)
    (tmp_path / "tasks.org").write_text("* Buy flour\n")
    corpus = Corpus([tmp_path])
    assert {passage.title for _, passage in corpus.read()} == {"notes", "tasks"}
    assert corpus.report.unread == {".org": 1}


RTF = r"""{\rtf1\ansi\deff0{\fonttbl{\f0 Arial;}}{\info{\title The Mill}}
\pard It is \'e9l\'e9gant, \u8364?5 and \b old\b0 .{\footnote A note.}\par
\trowd\cellx100\cellx200\pard\intbl Name\cell Size\cell\row
\trowd\cellx100\cellx200\pard\intbl mill\cell 5\cell\row
\pard The end.\par}"""


@needs_pandoc
def test_rich_text(tmp_path: Path) -> None:
    document = load(tmp_path, "mill.rtf", RTF)
    assert (document.title, document.dropped["footnote"]) == ("The Mill", 1)
    assert blocks(document) == ["It is élégant, €5 and old.", "Name: mill | Size: 5", "The end."]
    with pytest.raises(FormatError, match=r"a\.rtf: not Rich Text Format"):
        load(tmp_path, "a.rtf", LONG)


def opendocument(body: str, styles: str = "") -> bytes:
    styles += '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
    body = f"<office:body><office:text>{body}</office:text></office:body>"
    content = f"<office:automatic-styles>{styles}</office:automatic-styles>{body}"
    empty = f"<office:document-styles {_ODF}/>"
    files: dict[str, str | bytes] = {
        "content.xml": f"<office:document-content {_ODF}>{content}</office:document-content>",
        "styles.xml": empty,
    }
    return packed(files)


@needs_pandoc
def test_an_opendocument_text(tmp_path: Path) -> None:
    styles = '<text:list-style style:name="L1"><text:list-level-style-bullet text:level="1"/></text:list-style>'
    body = (
        '<text:h text:outline-level="1">Rivers</text:h><text:h text:outline-level="2">Poland</text:h>'
        "<text:p>There<text:s/>are:</text:p>"
        '<text:list text:style-name="L1"><text:list-item><text:p>long ones</text:p></text:list-item></text:list>'
        f"{table_of([['Name', 'Size'], ['Vistula', '1047']])}"
    )
    (passage,) = load(tmp_path, "r.odt", opendocument(body, styles)).passages
    assert (passage.title, passage.section) == ("Rivers", "Poland")
    assert passage.text == "There are:\n\n- long ones\n\nName: Vistula | Size: 1047"


def test_opendocument_texts_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"r\.odt: encrypted: save it without a password"):
        load(tmp_path, "r.odt", packed({"META-INF/manifest.xml": "<a><encryption-data/></a>"}))
    with pytest.raises(FormatError, match=r"r\.odt: broken"):
        load(tmp_path, "r.odt", b"PK")


# --- AsciiDoc --------------------------------------------------------------------------------------------------------

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


@needs_asciidoctor
def test_a_manual_of_asciidoc(tmp_path: Path) -> None:
    document = load(tmp_path, "mill.adoc", ASCIIDOC)
    assert document.dropped == {"footnote": 1, "included file": 1}
    assert document.title == "The Mill Manual"
    assert blocks(document) == [
        "See the Arlen Mill, How to load it, below, other.html, there and a page. It is bold_word, old, code_x, a*b*c, "
        "marked, unusual, x², {unknown} and *plain*. C++ is C++. Press Ctrl+T, File Save As, OK. “So” it turns.",
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
        "Lower: It stands.",
        "Sizes:",
        "Name: a_b | Size in metres: 1",
        "both",
        "Name: span | Size in metres: 3",
        "Name: span | Size in metres: 4",
        "A: 1 | B: 2",
        "x | y, z",
        "Tip: Oil it.",
        "    left as\n      it is",
    ]


# --- programs and limits ---------------------------------------------------------------------------------------------


def test_a_missing_program_is_named_with_the_way_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.documents.find_program", lambda _: None)
    monkeypatch.setattr(pandoc, "find_program", lambda _: None)
    install = re.escape('pip install -e ".[formats]"')
    (tmp_path / "ls.1").write_text(MAN)
    with pytest.raises(FormatError, match=rf"ls\.1: only pandoc reads it: {install}"):
        read_document(tmp_path / "ls.1", "ls.1")
    with pytest.raises(FormatError, match=rf"ls\.1: reading it needs pandoc \({install}\)"):
        list(Corpus([tmp_path / "ls.1"]).read())
    (tmp_path / "a.md").write_text(LONG)
    (tmp_path / "MPL.1").write_text(f"{LONG}\n" * 5)
    (tmp_path / "a.adoc").write_text(LONG)
    corpus = Corpus([tmp_path])
    assert {passage.id for _, passage in corpus.read()} == {"MPL.1#1", "a.md#1"}
    assert corpus.report.passed == {
        'file for pandoc (pip install -e ".[formats]")': 1,
        "file for asciidoctor (apt install asciidoctor)": 1,
    }


def test_a_program_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_program(["/bin/cat"], b"The mill.", "a") == "The mill."
    with pytest.raises(FormatError, match=r"^a: sh cannot read it: no$"):
        run_program(["/bin/sh", "-c", "echo no >&2; exit 3"], b"", "a")
    monkeypatch.setattr("rag.documents.limits.SECONDS", 1)
    # The processor may be busy with other work, so either limit may be the first.
    with pytest.raises(FormatError, match=r"^a: sh (?:was stopped: it needs more|takes longer) than"):
        run_program(["/bin/sh", "-c", "while :; do :; done"], b"", "a")
    with pytest.raises(FormatError, match=r"^a: sleep takes longer than 2 seconds"):
        run_program(["/bin/sleep", "9"], b"", "a")
    monkeypatch.setattr("rag.documents.limits.MAX_OUTPUT", 1 << 20)
    with pytest.raises(FormatError, match=r"^a: head "):
        run_program(["/usr/bin/head", "-c", "9000000", "/dev/zero"], b"", "a")


@needs_pandoc
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tex", "\\documentclass{a}\\begin{document}\\newcommand{\\a}{\\a\\a\\a}" + "\\a " * 20_000),
        ("a.1", ".TH A 1\n.ds A word word\n" + ".ds A \\*A\\*A\n" * 60 + ".SH NAME\nmill \\- an old \\*A mill\n"),
        ("a.org", "* a\n" + "[[a =b *c {{{d(" * 2_000),
        ("a.rtf", "{\\rtf1 " + "{" * 9_000),
    ],
)
def test_documents_without_end_are_read_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setattr("rag.documents.limits.SECONDS", 3)
    try:
        assert sum(len(passage.text) for passage in load(tmp_path, name, text).passages) < 60 * len(text)
    except FormatError as error:
        assert str(error).startswith(str(tmp_path / name))  # noqa: PT017  (either is right)


@needs_pandoc
def test_latex_reads_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text("The secret word.")
    text = f"\\begin{{document}}\n{LONG}\n\\input{{{tmp_path}/secret}}\n\\end{{document}}"
    assert blocks(load(tmp_path, "a.tex", text)) == [LONG]
