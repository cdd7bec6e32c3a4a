import random
import re
from collections import Counter
from pathlib import Path
from time import perf_counter

import pytest

from rag.base.errors import FormatError
from rag.documents import load_document
from rag.documents import navigation as nav
from rag.documents.converters.docbook import DEEPEST, docbook_blocks
from rag.documents.corpus import Corpus
from rag.documents.page_names import page_name

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

OTHERS = """<article><para>Read <xref linkend="p1"/>, <xref linkend="p2"/>, <xref linkend="p3"/>,
<xref linkend="p4" endterm="none"/>, <xref linkend="p1" endterm="t"/> and <xref linkend="p5"/>.</para>
<para id="p1">One.</para><para id="p2" xreflabel="two">Two.</para>
<note id="p3"><info><title>Three</title></info><para>It floats.</para></note>
<note id="p4"><title>Four</title><para>It sinks.</para></note><para>A <phrase id="t">boat</phrase>.</para>
<glosslist><glossentry id="p5"><glossterm>Boat Line</glossterm><acronym>BL</acronym><abbrev>b.l.</abbrev>
<glossdef><para>It owns boats.</para><glossseealso>Pier</glossseealso><glossseealso otherterm="p5"/></glossdef>
</glossentry></glosslist>
<bibliolist><biblioentry><author><firstname>Nora</firstname><surname>Lee</surname></author>
<biblioset><title>The <emphasis>B</emphasis>oat</title><subtitle>A life</subtitle></biblioset>
<pubdate>1999</pubdate></biblioentry>
<bibliomixed>Lee, N. <title>Ropes</title>. <quote>Good</quote><footnote><para>No.</para></footnote>.</bibliomixed>
</bibliolist>
<blockquote><attribution><personname><firstname>Nora</firstname><surname>Lee</surname></personname></attribution>
<para>Boats float.</para></blockquote>
<mediaobject><imageobject/><textobject><para>A boat that lies at the old pier on the other side of the water,
with its ropes cast off.</para></textobject><textobject><phrase>boat</phrase></textobject>
<textobject><screen>-o-</screen></textobject></mediaobject>
<cmdsynopsis><group><arg>x<arg>y</arg></arg><arg choice="plain">f[1]</arg><arg rep="repeat">z</arg></group>
</cmdsynopsis>
</article>
"""


def shown(text: str) -> tuple[str, list[str], Counter[str]]:
    dropped: Counter[str] = Counter()
    title, blocks = docbook_blocks(text.encode(), "b.docbook", "b.docbook", dropped)
    return title, [f"{'#' * block.level} {block.text}" if block.level else block.text for block in blocks], +dropped


def test_a_book() -> None:
    title, blocks, dropped = shown(BOOK)
    assert title == "The Ferry Handbook"
    assert dropped == {"footnote": 1, nav.CONTENTS: 2, nav.FIGURE: 2}
    assert blocks == [
        "It says how the boat is steered.",
        "## Going",
        "The Ferry goes from été on, e.g. in July. Press Ctrl+G, or choose Boat -> Go (F2). "
        "Read Fees, http://localhost/ and boat(8):",
        "- cars",
        "- bikes",
        "  1. red",
        "but “no” horses; choose More....",
        "Note: Mind the gap.",
        "Options:",
        "-f, --file: Reads a FILE.",
        "    ferry -f <times> <\n      more",
        "1. Cast off",
        "First.",
        "2. Then steer.",
        "### Fees",
        "What it costs:",
        "Who: Cars | Once: 5 | Always: 9",
        "Who: Cars | Once: none | Always: none",
        "#### Free rides",
        "There are none.",
        "## Questions",
        "### Does it sink?",
        "It does not.",
        "## Commands",
        "### ferry(1)",
        "#### Name",
        "ferry - cross the water",
        "#### Synopsis",
        "    ferry [-f | -g] {pier}...",
        "#### Description",
        "It goes.",
        "## Words",
        "Pier: Where it stops.",
        "Quay: See Pier.",
    ]


def test_other_elements() -> None:
    _, blocks, dropped = shown(OTHERS)
    assert dropped == {"footnote": 1, nav.FIGURE: 2}
    assert blocks == [
        "Read p1, two, Three, Four, boat and Boat Line.",
        "One.",
        "Two.",
        "Three: It floats.",
        "Four: It sinks.",
        "A boat.",
        "Boat Line, BL, b.l.: It owns boats.",
        "See also Pier.",
        "See also Boat Line.",
        "Nora Lee, The Boat, A life, 1999",
        "Lee, N. Ropes. “Good”.",
        "Nora Lee:",
        "Boats float.",
        "A boat that lies at the old pier on the other side of the water, with its ropes cast off.",
        "    [x [y] | f[1] | z...]",
    ]


def test_long_entities_are_shown() -> None:
    text = "It says how the boat is steered, and by whom. " * 10
    entities = (
        f'<!ENTITY long "<para>{text}&inner;</para>"><!ENTITY inner "The end."><!ENTITY endless "{"a" * 20_000}">'
    )
    _, blocks, _ = shown(f"<!DOCTYPE a [{entities}]><article><para>&long;</para><para>&endless;</para></article>")
    assert blocks == [f"{text}The end.", "a" * 10_000]


def test_a_chapter_in_a_file_of_its_own() -> None:
    title, blocks, _ = shown(
        '<!-- ours --><chapter id="a"><title>Boats &amp; Co</title><para>One &boat;.</para></chapter>'
    )
    assert (title, blocks) == ("Boats & Co", ["One boat."])
    title, blocks, _ = shown(
        "<sect1><title>One</title><para>a1</para></sect1>\n<sect1><title>Two</title><para>b2</para></sect1>"
    )
    assert (title, blocks) == ("", ["## One", "a1", "## Two", "b2"])


def test_docbook_5_and_manual_pages() -> None:
    text = '<d:article xmlns:d="http://docbook.org/ns/docbook" version="5.0"><d:info><d:title>Boats</d:title></d:info>'
    title, blocks, _ = shown(f"{text}<d:para>They <d:emphasis>float</d:emphasis>.</d:para></d:article>")
    assert (title, blocks) == ("Boats", ["They float."])
    names = "<refname>a</refname><refname>b</refname><refpurpose>do it</refpurpose>"
    assert shown(f"<refentry><refnamediv>{names}</refnamediv></refentry>")[:2] == ("a", ["## Name", "a, b - do it"])


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


def test_entities_are_not_expanded_and_no_other_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("The secret word.")
    laughs = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12))
    text = f"""<!DOCTYPE article SYSTEM "{tmp_path}/secret.txt" [<!ENTITY a "ha">{laughs}
<!ENTITY s SYSTEM "{tmp_path}/secret.txt"><!ENTITY % p SYSTEM "{tmp_path}/secret.txt"> %p;]>
<article xmlns:xi="http://www.w3.org/2001/XInclude"><para role="&m;">One &a; &s; &m; two.</para>
<xi:include href="{tmp_path}/secret.txt" parse="text"/></article>"""
    start = perf_counter()
    _, blocks, _ = shown(text)
    assert perf_counter() - start < 1
    assert len(blocks) == 1
    assert blocks[0].startswith("One ha ")
    assert len(blocks[0]) < 300
    assert "secret" not in blocks[0]


def test_many_entities_do_not_make_much_text() -> None:
    text = f'<!DOCTYPE a [<!ENTITY a "{"ha" * 100}">]><article><para>{"&a; " * 100_000}</para></article>'
    _, blocks, _ = shown(text)
    assert sum(map(len, blocks)) < 2_000_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "broken XML: no element found"),
        ("text", "broken XML: syntax error"),
        ("<article><para>", "broken XML: mismatched tag"),
        ("<article>\n\n<para></article>", "broken XML: mismatched tag: line 3"),
        ("<!DOCTYPE a [<!ENTITY", "broken XML"),
        ("<para>" * (DEEPEST + 1) + "</para>" * (DEEPEST + 1), "nested more than 100 deep"),
        ("<a></fragment><b></a>", "broken XML"),
    ],
)
def test_broken_documents_are_named(text: str, says: str) -> None:
    with pytest.raises(FormatError, match=rf"^b\.docbook: .*{says}"):
        shown(text)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_cut_out_of_a_document_is_read_or_named(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        start, end = sorted(rng.sample(range(len(BOOK)), 2))
        try:
            shown(rng.choice([BOOK[:end], BOOK[:start] + BOOK[end:], BOOK[start:]]))
        except FormatError as error:
            assert "\n" not in str(error)  # noqa: PT017
    tags = re.findall(r"<([a-z]\w*)", BOOK + OTHERS)
    for _ in range(200):
        names = [rng.choice(tags) for _ in range(rng.randrange(1, 12))]
        nested = "".join(f"<{name}>a " for name in names) + "".join(f"</{name}> b" for name in reversed(names))
        shown(nested)


def test_xml_of_a_site_is_a_feed_or_a_map() -> None:
    assert page_name("http://localhost/feed.xml", "application/rss+xml") is None
    assert page_name("http://localhost/boats.docbook", "application/octet-stream") == "boats.docbook"
    assert page_name("http://localhost/boats", "application/docbook+xml") == "boats.docbook"
