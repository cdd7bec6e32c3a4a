import time
from collections import Counter

import pytest

from rag.base.types import Passage
from rag.documents import navigation as nav
from rag.documents.blocks import Kind
from rag.documents.main_content import html_blocks
from rag.documents.split import passages

LONG = "This paragraph has more than twelve words, so that it stands as a passage by itself."


def read(page: str, dropped: Counter[str] | None = None, name: str = "page.html") -> list[Passage]:
    title, blocks = html_blocks(page, Counter() if dropped is None else dropped, name)
    return list(passages(blocks, name, title))


def texts(page: str) -> list[str]:
    """The blocks of a page, in order."""
    return [block.text for block in html_blocks(page, Counter())[1] if block.kind is not Kind.HEADING]


def test_text_stands_under_its_headings_without_scripts_and_menus() -> None:
    page = f"""<html><head><title>Site</title><script>alert(1)</script></head><body><nav>Menu</nav>
      <h1>Rivers</h1>Loose text &amp; more of it, enough words to stand as one passage here.<p>{LONG}
      <h2>Poland</h2><div><p>{LONG} <b>Bold</b>ly {LONG}</p></div><footer>Imprint</footer></body></html>"""
    first, second = read(page)
    assert (first.title, first.section) == ("Rivers", "")
    assert (second.title, second.section, second.text) == ("Rivers", "Poland", f"{LONG} Boldly {LONG}")
    assert first.text == f"Loose text & more of it, enough words to stand as one passage here.\n\n{LONG}"


@pytest.mark.parametrize(
    ("page", "blocks"),
    [
        ("<ul><li>Dogs travel <b>free</b><li><p>Bicycles</p></ul>", ["- Dogs travel free", "- Bicycles"]),
        (
            "<ul><li><input type=checkbox disabled checked> One<li><div class='checkbox checkbox-off'></div> Two"
            "<li data-inline-task-id=1>Three<li><input type=checkbox>Four</ul>",
            ["- [x] One", "- [ ] Two", "- [ ] Three", "- [ ] Four"],
        ),
        ("<p><span class='selected-value a'>a</span><span class='selected-value b'>b</span></p>", ["a b"]),
        ("<ol start=3><li>Push<ul><li>hard</ul><li>Pull</ol>", ["3. Push", "  - hard", "4. Pull"]),
        ("<ul><li>- Own dash<li>-v<li>• Own dot</ul>", ["- Own dash", "- -v", "- Own dot"]),
        ("<ul><li><p>One.</p><p>More.</p></ul>", ["- One.", "More."]),
        ("<dl><dt>Card<dd><p>A paper.<p>With a name.</dl>", ["Card: A paper.", "With a name."]),
        ("<dl><dt>-f<dt>--force:<dd>Does it.</dl>", ["-f, --force: Does it."]),
        ("<dl><dt>f(x)</dt><dd></dd></dl><p>It runs.</p>", ["f(x)", "It runs."]),
        ("<dl><dt>f(x)</dt><dd><pre>f(1)</pre></dd></dl>", ["f(x):", "    f(1)"]),
        (
            "<table><tr><th>Class<th>Price</tr><tr><td>First<td>90 <i>euros</i></tr></table>",
            ["Class: First | Price: 90 euros"],
        ),
        ("<table><tr><td>a<td>b<tr><td>c<td></table>", ["a | b", "c"]),
        ("<table><tr><th>Syntax:<td>Alias URL<tr><th>Status<td>Base</table>", ["Syntax: Alias URL", "Status: Base"]),
        (
            "<table><tr><th>A<th>B<tr><td rowspan=2>x<td>1<tr><td>2</table>",
            ["A: x | B: 1", "A: x | B: 2"],
        ),
        ("<table><caption>Prices</caption><tr><td>a<td>1<tr><td>b<td>2</table>", ["Prices:", "a | 1", "b | 2"]),
        ("<table><tr><td>One</td></tr><tr><td><p>Two</p></td></tr></table>", ["One", "Two"]),
        (
            '<div class="jp-InputPrompt">In&nbsp;[1]:</div><pre>f(1)</pre>'
            '<div class="prompt output_prompt">Out[1]:</div><pre>2</pre>'
            '<div class="nbinput"><div class="prompt highlight-none">[2]:</div><pre>g(1)</pre></div>',
            ["    f(1)", "    2", "    g(1)"],
        ),
        (
            '<p>It is old<a class="footnote-reference brackets" href="#f1">[1]</a>.</p><aside class="footnote" id="f1">'
            '<span class="label">[1]</span><span class="backrefs">(<a href="#a">1</a>,<a href="#b">2</a>)</span>'
            "<p>As stones are.</p></aside>",
            ["It is old.", "As stones are."],
        ),
        ('<p>It is old<a name="DOCF1" href="#FOOT1"><sup>1</sup></a>.', ["It is old."]),
        (
            '<p>See the <a href="a.html#FOOTER">footer</a><a class="footnote-reference" href="#1">[1]</a>.',
            ["See the footer."],
        ),
        ('<table class="menu"><tr><td>Soup<td>4 euros</table><p>It is.', ["Soup | 4 euros", "It is."]),
        ("<p>Run:<pre>\n$ make\n\n  <b>all</b>\n</pre>", ["Run:", "    $ make\n    \n      all"]),
        ("<pre>one<br>two</pre>", ["    one\n    two"]),
        (
            "<pre><code class='language-yaml'>" + "about: what is known of the boat\n" * 6 + "</code></pre>",
            ["\n".join(["    about: what is known of the boat"] * 6)],
        ),
        (
            '<div class="fragment"><div class="line">int x;</div><div class="line">int y;</div></div>',
            ["    int x;\n    int y;"],
        ),
        (
            "<p>One <ins>long</ins> line<br>of <img src='x'> words <del>that</del><s>go</s> stay.",
            ["One long line of words stay."],
        ),
        ("<p>The <acronym>W3C</acronym> is <ul><li>a\n body</ul>", ["The W3C is", "- a body"]),
        ('<div class="note"><h3>Note</h3><p>Mind the gap.</p></div>', ["Note: Mind the gap."]),
        ('<p class="admonition-title">Warning</p><p>Hot.</p>', ["Warning: Hot."]),
        ("<table><tr><th>Tip</th></tr><tr><td><p>Sit down.</p></td></tr></table>", ["Tip: Sit down."]),
        ("<figure><figcaption>A dog</figcaption></figure><p>It barks.", ["It barks."]),
        ("<li>alone</li>", ["- alone"]),
        ("<p><code>word</code></p>", ["word"]),
        ("<dl><dt>-f<dd><div>New in version 3.1.</div><p>Does it.</dl>", ["-f (New in version 3.1): Does it."]),
        ("<h2>(5)</h2><p>A note.", ["A note."]),
        ("<p>f(x)<a class=viewcode-link href=s>[source]</a>", ["f(x)"]),
        ("<details><summary>Why</summary>Because.</details>", ["Why: Because."]),
    ],
)
def test_blocks_look_as_agreed(page: str, blocks: list[str]) -> None:
    assert texts(page) == blocks


@pytest.mark.parametrize(
    "part",
    [
        '<div class="navheader"><table><tr><td>Prev</td><td>Up</td><td>Next</td></tr></table></div>',
        '<p><a href="a.html">Prev</a> | <a href="b.html">Up</a> | <a href="c.html">Next</a></p>',
        '<p>Next: <a href="n.html">Lions</a>, Up: <a href="u.html">Cats</a> &nbsp; [<a href="i">Index</a>]</p>',
        '<div id="path"><a href="/">Home</a> &gt; <a href="/m">Manual</a> &gt; <a href="/m/i">Modules</a></div>',
        '<ul><li><a href="#a">One</a></li><li><a href="#b">Two</a></li></ul>',
        '<p>Topics covered here:</p><ul><li><a href="#a">One</a></li><li><a href="#b">Two</a></li></ul>',
        '<div class="toc"><p>Contents</p><dl><dt><a href="a.html">One</a></dt></dl></div>',
        '<div class="sphinxsidebar" role="navigation"><h3>Quick search</h3></div>',
        '<ul><li><a href="a">A</a></li><li><a href="b">B</a></li><li><a href="c">C</a></li></ul>',
        "<p>Copyright © 2020 The Authors. All rights reserved.</p>",
        '<p><b>Table of contents</b></p><ul><li><a href="#a">One way</a><li><a href="#b">Another one</a></ul>',
        "<p>Here is a list of all documented files with brief descriptions:</p><ul><li>a.h: A.<li>b.h: B.</ul>",
        "<div>Expand/Collapse all Chapters</div>",
        '<table class="indextable genindextable"><tr><td><dl><dt><a href="a.html">bus</a></dt></dl></td></tr></table>',
        '<div class="list-of-equations"><p>List of Equations</p><dl><dt><a href="a.html">One</a></dt></dl></div>',
        "<p>This is the complete list of members for <a href=bus.html>Bus</a>, including all inherited members.</p>"
        "<table><tr><td>seats() const</td><td>Bus</td></tr></table>",
        "<div class=directory><div class=levels>[detail level 12]</div><table class=directory><tr><td>"
        "<a class=el href=a>Bus</a><td>What goes on roads</table></div>",
        "<ul><li>bell() : <a class=el href=a#1>Bus</a><li>boot : <a class=el href=b#1>Car</a>, "
        "<a class=el href=c#1>Bus</a><li>brake : <a class=el href=a#2>Bus</a>"
        "<li>door() : <a class=el href=a#3>Bus</a></ul>",
        "<table><tr><td>[<a href=a>&lt;</a>]<td>[<a href=b>&gt;</a>]<td>[<a href=c>Up</a>]</table>",
        '<p><a href="a.html">Lion</a> | <a href="b.html">Lynx</a></p>',
        '<div><a href="#text">Jump to content</a><a href="#foot">Jump to page navigation: next page</a></div>',
        '<p>Navigation <a href="a.html">←</a><a href="b.html">→</a></p>',
        '<p>All parts of the manual:</p><div class="toc"><ul><li><a href="a.html">One</a></li></ul></div>',
    ],
)
def test_navigation_and_contents_are_dropped_and_counted(part: str) -> None:
    dropped: Counter[str] = Counter()
    assert [passage.text for passage in read(f"<h1>T</h1>{part}<h2>S</h2><p>{LONG}</p>{part}", dropped)] == [LONG]
    assert dropped.total() == 2


def test_links_that_a_sentence_announces_stay() -> None:
    page = '<p>Two backends are there:</p><ul><li><a href="a.html">Postfix</a><li><a href="b.html">Exim</a></ul>'
    assert texts(page) == ["Two backends are there:", "- Postfix", "- Exim"]


def test_a_list_of_links_to_other_sites_is_text() -> None:
    def page(*addresses: str) -> str:
        items = "".join(f'<li><a href="{address}">Plan {n} of the insurer</a>' for n, address in enumerate(addresses))
        return f"<h1>Benefits</h1><h2>Health</h2><ul>{items}</ul><h2>Rest</h2><p>{LONG}</p>"

    plans = ["- Plan 0 of the insurer", "- Plan 1 of the insurer"]
    assert texts(page("https://a.example/1", "https://a.example/2")) == [*plans, LONG]
    assert texts(page("plan-1.html", "plan-2.html")) == [LONG]
    assert texts(page("https://a.example/1", "//[b")) == [LONG]
    assert len(texts(page(*(f"https://a.example/{n}" for n in range(6))))) == 1
    assert len(texts(page(*(f"https://{n}.example/" for n in range(6))))) == 7


def test_what_announces_contents_goes_with_them_unless_it_says_more() -> None:
    contents = '<div class="toctree-wrapper"><ul><li><a href="a.html">Bus</a><li><a href="b.html">Tram</a></ul></div>'
    assert texts(f"<p>{LONG}</p><p>These chapters follow:</p>{contents}") == [LONG]
    assert texts(f"<p>{LONG} {LONG} These chapters follow:</p>{contents}") == [
        f"{LONG} {LONG} These chapters follow:",
    ]


def test_links_to_the_page_before_are_no_last_row_of_a_text() -> None:
    dropped = Counter[str]()
    bar = '<table><tr><td><a href="a.html">[Prev] Seats</a><td><a href="i.html">[Index]</a><td>&nbsp;</table>'
    (passage,) = read(f"<h1>Buses</h1><p>{LONG}</p>{bar}", dropped)
    assert passage.text == LONG
    assert dropped == {nav.CONTENTS: 1}
    kept = '<table><tr><td><a href="a.html">Seats</a><td><a href="i.html">Doors</a></table>'
    assert texts(f"<p>{LONG}</p>{kept}") == [LONG, "Seats | Doors"]


def test_a_list_of_names_with_other_words_is_no_index() -> None:
    page = "".join(
        f"<li>option {name} : <a class=el href=a#{name}>{name}</a> sets how wide it is"
        for name in ("Ann", "Bea", "Tom", "Zoe")
    )
    assert len(texts(f"<ul>{page}</ul>")) == 4


@pytest.mark.parametrize("banner", ["", "<p>Please answer our survey.</p>"])
def test_the_title_of_a_page_of_doxygen_stands_below_its_links(banner: str) -> None:
    dropped = Counter[str]()
    page = f"""<title>Buses 1.2: Bus Class Reference</title>{banner}<div class="header">
      <div class="summary"><a href="#pub-types">Public Types</a> | <a href="bus-members.html">List of all members</a>
      </div><div class="headertitle"><div class="title">Bus Class Reference<span class="mlabels"><span class="mlabel">
      abstract</span></span><div class="ingroups"><a href="a.html">Road</a> &raquo; <a href="b.html">Town</a></div>
      </div></div></div><div class="contents"><p>{LONG}</p></div>"""
    (passage,) = read(page, dropped)
    assert (passage.title, passage.section, passage.text) == ("Bus Class Reference", "", LONG)
    assert +dropped == {nav.NAVIGATION: 3 if banner else 2}


@pytest.mark.parametrize(
    ("head", "body", "title", "section"),
    [
        ("Rivers", "<h1>1. Introduction</h1>", "Rivers", "Introduction"),
        (
            "add_definitions — CMake 3.25 Documentation",
            "<h1>add_definitions<a class=headerlink href='#x'>¶</a></h1>",
            "add_definitions",
            "",
        ),
        ("mod_alias - Apache HTTP Server", "<h1>Apache Module mod_alias</h1>", "mod_alias", ""),
        ("4.4. Crop", "<h3>4.4. Crop</h3>", "Crop", ""),
        ("Site", "<h1>Rivers</h1>", "Rivers", ""),
        ("", "<h1>Rivers</h1>", "Rivers", ""),
        ("Rivers FAQ", "<h2>Question 5.7. Why wide?</h2>", "Rivers FAQ", "Why wide?"),
        ("Chapter 26 - Transports", "<h2>Chapter 26 - Transports</h2><h3>2. Files</h3>", "Transports", "Files"),
        ("", "<h1>Rivers</h1><h2>Poland</h2><h3>Poland</h3>", "Rivers", "Poland"),
        ("Page", "<h1><a href='http://example.org'>The Site</a></h1><h2>Cats</h2>", "Page", "Cats"),
        ("7 Days in June", "<p>", "7 Days in June", ""),
        ("Loops (GNU Octave (version 7))", '<h2 class="chapter">24 While Loops</h2>', "Loops", "While Loops"),
        ("Changes", "<h2>2.1.0 (May 2, 2024)</h2>", "Changes", "2.1.0 (May 2, 2024)"),
        ("Rivers 2.1", "<h2>2.0 Unreleased</h2>", "Rivers 2.1", "2.0 Unreleased"),
        ("3.10 or later", "<h2>2.1 Beta rivers</h2>", "3.10 or later", "Beta rivers"),
        ("11. “Windows” Menu", "<h2>11. “Windows” Menu</h2>", "“Windows” Menu", ""),
        (
            "Ways of Going-Slowly (Buses 2.1)",
            "<h3>3.3 Ways of Going—Slowly</h3>",
            "Ways of Going-Slowly",
            "Ways of Going—Slowly",
        ),
        ("2d Maps (Buses 2.1)", "<h3>4.8.5 2d Maps</h3>", "2d Maps", "4.8.5 2d Maps"),
        ("C++ (Buses 2.1)", "<h2>C</h2>", "C++", "C"),
    ],
)
def test_titles_and_sections_have_no_numbers_marks_and_repeats(head: str, body: str, title: str, section: str) -> None:
    (passage,) = read(f"<title>{head}</title>{body}<p>{LONG}</p>")
    assert (passage.title, passage.section) == (title, section)


def test_a_page_called_introduction_takes_the_title_of_the_page_above() -> None:
    page = f'<title>Introduction</title><link rel="up" title="1. The Manual"><h2>1.1. Introduction</h2><p>{LONG}'
    (passage,) = read(page)
    assert (passage.title, passage.section) == ("The Manual", "Introduction")


@pytest.mark.parametrize(
    ("title", "named"),
    [
        ("SYNOPSIS — Buses 1.2 documentation", "Buses 1.2 documentation"),
        ("Synopsis (Buses (version 7))", "Buses (version 7)"),
        ("Synopsis", "Synopsis"),
    ],
)
def test_a_page_with_a_generic_title_and_none_above_takes_that_of_its_site(title: str, named: str) -> None:
    (one, two) = read(f"<title>{title}</title><h1>Synopsis</h1><p>{LONG} {LONG}<h1>Seats</h1><p>{LONG} {LONG}")
    assert (one.title, one.section) == (named, "" if named == title else "Synopsis")
    assert (two.title, two.section) == (named, "Seats")


def test_the_main_element_is_the_page() -> None:
    (passage,) = read(f"<div>Weather: {LONG}</div><main><h1>Rivers</h1><p>{LONG}</main><div>Ads: {LONG}</div>")
    assert passage.text == LONG


def test_pages_that_only_send_elsewhere_or_hold_frames_have_no_passages() -> None:
    dropped: Counter[str] = Counter()
    assert (
        read('<meta http-equiv="Refresh" content="0; url=b.html"><p>The page is at <a href=b.html>b</a>.', dropped)
        == []
    )
    assert read("<frameset cols='20%,80%'><frame src=a.html><frame src=b.html></frameset>", dropped) == []
    assert dropped == {nav.REDIRECT: 1, nav.FRAMES: 1}


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ('<body class="SRPage"><div id="SRIndex"><div class="SRStatus">Loading...</div></div>', nav.SEARCH),
        (f'<h1 id="search-documentation">Search</h1><p>{LONG}', nav.SEARCH),
        (f'<div role="main"><p>{LONG}<div id="mkdocs-search-results">Searching...</div></div>', nav.SEARCH),
        (
            f'<div class="title">bus.h</div><div class="contents"><p>{LONG}</p><div class="fragment">'
            '<div class="line"><a id="l00001" name="l00001"></a>int wheels;</div></div></div>',
            nav.LISTING,
        ),
    ],
)
def test_pages_that_search_or_list_source_code_have_no_passages(page: str, why: str) -> None:
    dropped: Counter[str] = Counter()
    assert read(page, dropped) == []
    assert dropped == {why: 1}


def test_a_dialogue_for_searching_beside_the_text_is_left_out_alone() -> None:
    dialogue = '<div class="modal"><div id="mkdocs-search-results"></div><p>From here you can search.</div>'
    (passage,) = read(f'<div role="main"><h1>Boats</h1><p>{LONG}</div>{dialogue}')
    assert passage.text == LONG


def test_a_manual_page_set_in_pre_is_running_text() -> None:
    lines = [
        "The postfix program controls the mail system and is run",
        "by the person who looks after the machine, not by users.",
    ]
    page = f"<pre>\n<b>DESCRIPTION</b>\n       {chr(10).join('       ' + line for line in lines * 3).strip()}\n</pre>"
    (passage,) = read(page)
    assert passage.section == "DESCRIPTION"
    assert passage.text == " ".join(lines * 3)


def test_pages_may_nest_deeper_than_python_recurses() -> None:
    for tag in ("div", "span", "ul><li", "table><tr><td", "dl><dd", "blockquote"):
        (passage,) = read(f"<{tag}>" * 5_000 + LONG)
        assert passage.text.endswith(LONG)


LINKS = "".join(f'<li><a href="{n}.html">Board {n} of the emulator</a></li>' for n in range(99))


@pytest.mark.parametrize(
    "page",
    [
        # A page of Read the Docs with little text beside its menu.
        f'<div class="wy-nav-content-wrap"><ul class="nav">{LINKS}</ul>'
        f"<div role=main><h1>The board of that name</h1><p>{LONG} It sleeps.</div></div>",
        # A section's id is its heading.
        f'<section id="languages"><h1>Languages</h1><p>{LONG} It sleeps.</section>',
        f'<div class="section" id="search"><h1>Search</h1><p>{LONG} It sleeps.</div>',
        f'<div id="content"><h1>Links</h1><ul class="toc">{LINKS}</ul><p>{LONG} It sleeps.</div>',
        # A redirect for browsers without scripts.
        f'<noscript><meta http-equiv="refresh" content="0; URL=n.html"></noscript><p>{LONG} It sleeps.</p>',
        # XHTML closes elements that HTML leaves open.
        f'<script src="a.js"/><iframe src="b"/><textarea/><p>{LONG} It sleeps.</p>',
        f'<html xmlns="http://www.w3.org/1999/xhtml"><title/><body><a href="x"/><select/><p>{LONG}<br/> It sleeps.</p>',
        # Paragraph numbers of SiSU, and words that show when the mouse is over them.
        f'<label class="ocn"><a href="#5">5</a></label><p>{LONG} It <span class="tooltip">dozes</span>sleeps.</p>',
    ],
)
def test_what_stands_around_the_text_does_not_hide_it(page: str) -> None:
    assert texts(page) == [f"{LONG} It sleeps."]


def test_a_manual_on_one_page_stands_in_its_table_of_contents() -> None:
    page = f'<div class="toctree-wrapper"><ul>{LINKS}</ul></div><div class="toctree-wrapper">{f"<p>{LONG}" * 9}</div>'
    assert texts(page) == [LONG] * 9


@pytest.mark.parametrize("row", ["[ < ] [ > ] [ << ] [Top] [Contents] [ ? ]", "<< Back to Documentation Index"])
def test_rows_of_links_to_neighbours_are_left_out(row: str) -> None:
    links = row.replace("<", "&lt;").replace(">", "&gt;")
    assert texts(f'<p><a href="i.html">{links}</a></p><p>{LONG}</p>') == [LONG]


def test_a_question_of_docbook_stands_before_its_answer() -> None:
    page = "".join(
        f"""<tr class=question><td><p><b>Q:</b></p></td><td><p>Why {n}?</p></td></tr>
        <tr class=answer><td><p><b>A:</b></p></td><td><p>{LONG} So {n}.</p></td></tr>"""
        for n in range(9)
    )
    found = read(f"<table class=qandaset>{page}</table>")
    assert len(found) > 1
    for passage in found:
        assert passage.text.startswith("Why ")
        assert "Q:" not in passage.text


def test_an_item_stays_with_the_list_in_it() -> None:
    found = read("<ul>" + "".join(f"<li>option.{n}<ul><li>{LONG}</li><li>type: {n}</li></ul></li>" for n in range(9)))
    assert len(found) > 1
    assert not any(passage.text.splitlines()[-1].startswith("- option") for passage in found)


def test_a_class_of_doxygen_is_declarations_with_what_they_do() -> None:
    page = f"""
      <p>Paints walls. <a href="#details">More...</a></p>
      <div class="dynheader">Inheritance diagram for Painter:</div>
      <p><a href="painter_8h_source.html">Go to the source code of this file.</a></p>
      <table class="memberdecls">
      <tr class="heading"><td colspan="2"><h2 class="groupheader">Public Member Functions</h2></td></tr>
      <tr class="memitem:a1"><td class="memItemLeft">int&#160;</td><td><a>coats</a> () const</td></tr>
      <tr class="memdesc:a1"><td class="mdescLeft">&#160;</td><td class="mdescRight">Counts the coats.
        <a href="painter.html#a1">More...</a><br /></td></tr>
      <tr class="separator:a1"><td colspan="2">&#160;</td></tr>
      <tr class="memitem:a2"><td class="memTemplParams" colspan="2">template&lt;class T &gt; </td></tr>
      <tr class="memitem:a2"><td class="memTemplItemLeft">void&#160;</td><td><a>mix</a> (T a)</td></tr>
      <tr class="memitem:a3"><td class="memItemLeft">template_id&#160;</td><td>key ()</td></tr>
      <tr><td colspan="2"><div class="groupText">Call these from one thread.</div></td></tr>
      <tr><td class="memItemLeft">void&#160;</td><td class="memItemRight">dry ()</td></tr>
      <tr><td class="mdescLeft">&#160;</td><td class="mdescRight">Waits until dry.</td></tr>
      <tr class="inherit_header b"><td colspan="2">Public Member Functions inherited from Worker</td></tr>
      <tr class="memitem:b1 inherit b"><td class="memItemLeft">void&#160;</td><td class="memItemRight">rest ()</td></tr>
      <tr class="memdesc:b1 inherit b"><td class="mdescLeft">&#160;</td><td class="mdescRight">Sleeps.</td></tr>
      <tr class="memitem:b2 inherit b"><td class="memItemLeft">enum&#160;</td><td class="memItemRight">Way</td></tr>
      <tr class="memdesc:b2"><td class="mdescLeft">&#160;</td><td class="mdescRight">Ways to rest.</td></tr>
      <tr class="separator:b2 inherit b"><td colspan="2">&#160;</td></tr>
      </table>
      <h2 class="memtitle"><span class="permalink"><a href="#a1">&#9670;&#160;</a></span>coats()</h2>
      <div class="memproto"><div class="memtemplate">template&lt;class T&gt;</div>
        <table class="mlabels"><tr><td class="mlabels-left"><table class="memname"><tr>
        <td class="memname">int Painter::coats </td><td>(</td><td class="paramtype">int&#160;</td>
        <td class="paramname">wall, </td></tr><tr><td></td><td class="paramtype">bool </td>
        <td class="paramname">dry</td><td>)</td><td> const</td></tr></table></td>
        <td class="mlabels-right"><span class="mlabel">inline</span></td></tr></table></div>
      <p>{LONG}</p>
      <p>The documentation for this class was generated from the following file:</p><ul><li>painter.h</li></ul>"""
    dropped: Counter[str] = Counter()
    _, blocks = html_blocks(page, dropped)
    assert [block.text for block in blocks] == [
        "Paints walls.",
        "Public Member Functions",
        "int coats () const: Counts the coats.",
        "- template<class T > void mix (T a)",
        "- template_id key ()",
        "Call these from one thread.",
        "void dry (): Waits until dry.",
        "coats()",
        "    template<class T> int Painter::coats (int wall, bool dry) const [inline]",
        LONG,
    ]
    assert dropped == {nav.CONTENTS: 2, nav.BOILERPLATE: 2}


def test_marks_that_only_screens_show_are_no_part_of_a_heading() -> None:
    marks = '<span><a href="#l" aria-hidden="true">#</a> <a aria-hidden="true">TOC</a></span>'
    _, blocks = html_blocks(f"<h2>Lions{marks}</h2><p>{LONG}</p>", Counter())
    assert [block.text for block in blocks] == ["Lions", LONG]


def test_declarations_in_other_elements_than_cells_are_read_as_they_stand() -> None:
    assert texts("<div class=memproto><pre>void f(int a);</pre><p>It runs.</p></div>") == [
        "    void f(int a);",
        "It runs.",
    ]


def test_tables_of_members_in_one_another_are_read_once() -> None:
    page = "<table class=memberdecls><tr class=memitem:x><td class=memItemLeft>word<table>" * 700
    assert sum(len(block) for block in texts(page)) < 10 * len(page)


@pytest.mark.parametrize("body", ['<body class="permalink">', "<body hidden>", '<body><article class="post tooltip">'])
def test_a_page_is_not_removed_for_its_class(body: str) -> None:
    assert texts(f"<html>{body}<p>{LONG}</p>") == [LONG]


def test_a_list_of_files_ends_at_the_next_text() -> None:
    announced = "<p>The documentation for this tool was generated from the following file:</p>"
    assert texts(f"{announced}<ul><li>a.h</ul><ul><li>kept</ul>") == ["- kept"]
    assert texts(f"{announced}<p>a.h</p><h2>Options</h2><ul><li>kept</ul>") == ["a.h", "- kept"]


@pytest.mark.parametrize(
    ("page", "blocks"),
    [
        ("<p>Hours<br>Monday: 9 to 5<br>Sunday: closed</p>", ["Hours", "Monday: 9 to 5", "Sunday: closed"]),
        ("<div>Adults £5<br>Children £3<br>Dogs free</div>", ["Adults £5", "Children £3", "Dogs free"]),
        ("<p>12 High Street<br>Arlen<br>AR1 2BC</p>", ["12 High Street Arlen AR1 2BC"]),
        ("<p>It is <b>bold</b><br>here.", ["It is bold here."]),
        ("<blockquote><p>Good.</p><footer>Ann Lee, 1990</footer></blockquote>", ["Good.", "Ann Lee, 1990"]),
        ("<p>One line<br>and the next.<br><br>Another.</p>", ["One line and the next.", "Another."]),
        ("<ul><li>Fees<br>Adults: 5<br>Dogs: 1</ul>", ["- Fees Adults: 5 Dogs: 1"]),
        ("<div>The bus to <st1:City>Bath</st1:City> is late.<o:p></o:p></div>", ["The bus to Bath is late."]),
        ('<span class="meta-label">Serves</span><span>4</span>', ["Serves 4"]),
        ('<span>Latte</span><span class="item-price">£3</span>', ["Latte £3"]),
        ('<div><span itemprop="street">4 Quay</span><span itemprop="town">Arlen</span></div>', ["4 Quay Arlen"]),
        ("<label>Name</label><input><label>Adult: 10</label>", ["Name Adult: 10"]),
        ("<figure><figcaption>Jane Smith, head teacher</figcaption></figure>", ["Jane Smith, head teacher"]),
        ('<button class="accordion">Where?</button><div>Here.</div>', ["Where?", "Here."]),
    ],
)
def test_lines_and_parts_that_a_page_sets_apart_stay_apart(page: str, blocks: list[str]) -> None:
    assert texts(page) == blocks


@pytest.mark.parametrize(
    ("page", "blocks"),
    [
        (
            "<table><tr><td><table><tr><td>Pot<td>£24</tr><tr><td>Post<td>£4</tr></table></table>",
            ["Pot | £24", "Post | £4"],
        ),
        ("<table><tr><td><p>review</p><td><p>a review</p></table>", ["review | a review"]),
        (
            "<table><tr><td colspan=2><h3>Men</h3></tr><tr><td>Cut<td>£18</tr><tr><td>Shave<td>£8</tr></table>",
            ["Cut | £18", "Shave | £8"],
        ),
        (
            "<table><tr><th rowspan=2>Room<th colspan=2>Night<th colspan=2>Week</tr>"
            "<tr><th>May<th>June<th>May<th>June</tr>"
            "<tr><td>A<td>5<td>6<td>30<td>40</tr></table>",
            ["Room: A | Night, May: 5 | Night, June: 6 | Week, May: 30 | Week, June: 40"],
        ),
        (
            "<table><tr><th rowspan=2>Room<th colspan=2>Price</tr>"
            "<tr><th>Night<th>Week</tr><tr><td>A<td>5<td>30</tr></table>",
            ["Room: A | Night: 5 | Week: 30"],
        ),
        (
            "<table><tr><td><b>Dish</b><td><b>Price</b></tr><tr><td colspan=2>Mains</tr><tr><td>Pie<td>9</tr></table>",
            ["Mains", "Dish: Pie | Price: 9"],
        ),
        (
            '<table><tr><th>Part<th>Free</tr><tr><td>Mail<td><img alt="Yes"></tr><tr><td>Disk<td><img alt="a"></table>',
            ["Part: Mail | Free: Yes", "Part: Disk"],
        ),
    ],
)
def test_rows_of_tables_keep_what_belongs_to_them(page: str, blocks: list[str]) -> None:
    assert texts(page) == blocks


@pytest.mark.parametrize(
    "part",
    [
        '<ul><li><a href="tel:+4412">01234 5</a><li><a href="mailto:a@x.org">a@x.org</a></ul>',
        '<ul><li><a href="1.html">Fair, 12 June, 10:00</a><li><a href="2.html">Choir, 18 June, 19:30</a></ul>',
        '<ul><li><a href="1"><h3>Pot</h3><span>£24</span></a><li><a href="2"><h3>Cup</h3><span>£3</span></a></ul>',
        '<div class="tabs"><ul><li>Weight: 1 kg<li>Height: 2 m</ul></div>',
        '<div role="tabpanel" hidden><ul><li>Weight: 1 kg</ul></div>',
        '<div class="directory"><p>Baker, 01234 1</p></div>',
        '<div class="page-header"><h2>Rates</h2></div>It costs 3.',
        "<p><a href=a>Buses / Trams</a></p><p>They go.",
        '<ul class="toc"><li>A bus, which goes on roads.<li>A tram, on the <a href="#r">rails</a> of the town.</ul>',
        "<p>Jump to contents by the key J.",
        "<p>Hosted by the Rotary Club on Friday at 19:00.</p>",
        "<dl><dt>Seat<dd><a href=a>Arlen</a><dt>Head<dd><a href=b>Tom</a><dt>Chair<dd><a href=c>Ann</a>"
        "<dt>Aide<dd><a href=d>Cy</a></dl>",
    ],
)
def test_what_only_looks_like_navigation_stays(part: str) -> None:
    dropped: Counter[str] = Counter()
    assert read(f"<h1>Club</h1>{part}", dropped)
    assert not dropped


def test_a_heading_that_is_a_button_stays() -> None:
    page = "<h1>Questions</h1><h2><button>Are dogs allowed?</button></h2>No.<h2>Prices<button>Copy</button></h2>None."
    headings = [block.text for block in html_blocks(page, Counter())[1] if block.kind is Kind.HEADING]
    assert headings[-2:] == ["Are dogs allowed?", "Prices"]


def test_a_heading_may_have_many_buttons() -> None:
    start = time.process_time()
    read(f"<h2>Prices{'<button>Copy the link</button>' * 20_000}</h2>None.")
    assert time.process_time() - start < 20


def test_a_paragraph_in_bold_print_stays_with_what_it_stands_above() -> None:
    page = "".join(f"<p><strong>Part {number}</strong></p><p>{LONG} {LONG} {LONG}</p>" for number in range(12))
    said = [passage.text for passage in read(page)]
    assert len(said) > 2
    assert all(text.startswith("Part") and text.endswith("itself.") for text in said)


def test_of_words_that_a_script_chooses_from_the_last_is_kept() -> None:
    keys = "<span><span hidden>Command</span><span hidden>Ctrl</span></span>"
    assert texts(f"<p>Press {keys}+C.</p><p>Wait <span>here<span hidden>there</span></span>.</p>") == [
        "Press Ctrl+C.",
        "Wait here.",
    ]


def test_labels_of_empty_contents_are_left_out() -> None:
    dropped = Counter[str]()
    page = f"""<aside><label>Contents</label><div></div></aside><aside>Index 🔎</aside><h1>Cows</h1><p>{LONG}</p>
      <p>See also</p><p>Ask <a href="a.html">Ann</a> too.</p><p>They eat grass.</p>"""
    (passage,) = read(page, dropped)
    assert passage.text.split("\n\n") == [LONG, "See also: Ask Ann too.", "They eat grass."]
    assert dropped == {nav.NAVIGATION: 2}


def test_marks_of_notes_are_no_digits_of_a_year() -> None:
    page = """<html xmlns:epub="http://www.idpf.org/2007/ops"><p>Built in 1834.<sup><a href="#n1">1</a></sup>
      It<a href="notes.xhtml#n2"><sup>[b]</sup></a> is 9 m<sup>2</sup> large.<a epub:type="noteref" href="#n3">*</a></p>
      <aside id="n1" epub:type="footnote"><p>1 Letters.</p></aside>"""
    assert texts(page) == ["Built in 1834. It is 9 m² large."]


def test_a_table_with_names_of_columns_may_have_long_cells() -> None:
    head, cell = "<tr><th>Key</th><th>Meaning</th></tr>", f"<p>{LONG * 4}</p><p>Down</p>"
    rows = f"<tr><td>A</td><td>Up</td></tr><tr><td>B</td><td>{cell}</td></tr>"
    assert texts(f"<table>{head}{rows}</table>") == ["Key: A | Meaning: Up", f"Key: B | Meaning: {LONG * 4} Down"]


def test_long_runs_of_paragraphs_that_are_links_are_navigation() -> None:
    links = "".join(
        f'<p><a href="{name}.html">About {name}</a></p>' for name in ("cats", "dogs", "cows", "hens", "bees")
    )
    dropped = Counter[str]()
    (passage,) = read(f"<h1>Animals</h1><p>{LONG}</p>{links}<p>The end.</p>", dropped)
    assert passage.text == f"{LONG}\n\nThe end."
    assert dropped == {nav.NAVIGATION: 5}
    assert len(texts(f"<p>Pages that help:</p>{links}")) == 6


def test_the_label_of_a_tab_stands_above_what_it_shows() -> None:
    page = """<p>Set the port:</p><div role="tablist"><button role="tab" id="a"><code>Bash</code></button>
      <button role="tab" aria-controls="fish">Fish</button><div role="tab" id="c">Linux</div></div>
      <div role="tabpanel" aria-labelledby="a"><pre>export PORT=1</pre></div>
      <div role="tabpanel" id="fish"><p>Say:</p><pre>set -x PORT 1</pre></div>
      <section role="tabpanel" aria-labelledby="c"><p>Run it.</p></section>
      <div role="tabpanel" aria-labelledby="x"><p>Nobody names this.</p></div>"""
    assert texts(page) == [
        "Set the port:",
        "Bash:",
        "    export PORT=1",
        "Fish: Say:",
        "    set -x PORT 1",
        "Linux: Run it.",
        "Nobody names this.",
    ]
    asked = """<div role="tab" id="q"><h3>Are dogs allowed?</h3></div>
      <div role="tabpanel" aria-labelledby="q"><p>No.</p></div>"""
    assert [block.text for block in html_blocks(asked, Counter())[1]] == ["Are dogs allowed?", "No."]


def test_a_heading_may_be_a_link_to_itself() -> None:
    page = '<h1>Mills</h1><h2><a class="permalink" href="#wheels">Wheels</a></h2><p>They turn.</p>'
    page += '<h2>Stones<a class="permalink" href="#stones">#</a></h2><p>They grind.</p>'
    page += '<a class="permalink" href="#sacks"><h2>Sacks</h2></a><p>They hold flour.</p>'
    _, blocks = html_blocks(page, Counter())
    assert [block.text for block in blocks if block.level] == ["Wheels", "Stones", "Sacks"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("10<sup>9</sup> stars, 2<sup>16</sup>, 10<sup>−4</sup>, 3 km<sup>2</sup>", "10⁹ stars, 2¹⁶, 10⁻⁴, 3 km²"),
        ("2<sup>n - 1</sup>, 10<sup>x</sup>, <i>e</i><sup>t</sup>, 10<sup>1.5</sup>", "2^(n - 1), 10^x, e^t, 10^(1.5)"),
        ("It ran.<sup>3</sup> A mill<sup>4</sup> in 1834<sup>5,6</sup>", "It ran.³ A mill⁴ in 1834⁵,⁶"),
        ("1<sup>st</sup>, 7<sup>a</sup>, Arlen<sup>TM</sup>, mill<sup>[7]</sup>", "1st, 7a, ArlenTM, mill[7]"),
        ("H<sub>2</sub>O, V<sub>max</sub>, log<sub>2</sub>8, 101<sub>2</sub>", "H2O, Vmax, log₂8, 101₂"),
        ("5<sup>1</sup>/<sub>2</sub> pints, X<sub>n-k</sub>", "5¹/₂ pints, X_(n-k)"),
        ("<math><msup><mn>10</mn><mn>6</mn></msup></math>", "10⁶"),
        ("<math><mfrac><mn>1</mn><mn>2</mn></mfrac><msub><mi>x</mi><mi>i</mi></msub></math>", "1/2x_i"),
    ],
)
def test_exponents_are_no_digits_of_the_number_before(page: str, text: str) -> None:
    assert texts(f"<p>{page}</p>") == [text]


def test_exponents_in_headings_and_cells() -> None:
    _, (title, line) = html_blocks("<h2>10<sup>6</sup> bees</h2><table><tr><td>2<sup>3</sup><br>g<td>b", Counter())
    assert (title.text, line.text) == ("10⁶ bees", "2³ g | b")


@pytest.mark.parametrize(
    "hidden",
    [
        "<p style='Display : none'>Secret",
        "<p style='color:red;visibility: hidden'>Secret",
        "<p style='font-size:0px'>Secret",
        "<p aria-hidden=true>Secret",
        "<div hidden>Secret</div>",
        "<div class=modal aria-hidden=true><h3>Secret</h3></div>",
        "<div role=dialog><p>Secret</div>",
        "<button aria-expanded=false aria-controls=m>Open a big menu</button><div id=m class=menu hidden>Secret</div>",
    ],
)
def test_what_a_page_hides_is_no_text(hidden: str) -> None:
    dropped: Counter[str] = Counter()
    _, blocks = html_blocks(f"<p>Open at 9.</p>{hidden}", dropped)
    assert [block.text for block in blocks] == ["Open at 9."]
    assert dropped[nav.HIDDEN] == 1


@pytest.mark.parametrize(
    "shown",
    [
        "<div hidden=until-found><p>Answer</p></div>",
        "<h3><button aria-expanded=false aria-controls=a>How?</button></h3><div id=a hidden>Answer</div>",
        "<div id=a role=region aria-hidden=true>Answer</div>",
        "<div class=faq-answer style='display:none'>Answer</div>",
        "<div style='font-size:0'><span class=big>Answer</span></div>",
        "<div style='visibility: hidden; animation-name: none'>Answer</div>",
        "<div id=app aria-hidden=true><h1>Page</h1><p>Answer</p></div>",
        "<span style='display:none'><math><mi>Answer</mi></math></span>",
    ],
)
def test_what_a_click_or_a_script_shows_is_text(shown: str) -> None:
    assert texts(f"<p>Open at 9.</p>{shown}") == ["Open at 9.", "Answer"]


def test_a_question_that_is_a_button_stands_before_its_answer() -> None:
    page = "<button aria-expanded=false aria-controls=a>Is it safe?</button><div id=a hidden><p>It is.</p></div>"
    assert texts(page) == ["Is it safe?: It is."]
    assert texts(page.replace("Is it safe?", "More")) == ["It is."]


@pytest.mark.parametrize(
    "part",
    [
        "<div id=cookie-banner><p>We use cookies.</p></div>",
        "<div id=onetrust-consent-sdk><div role=region><p>We use cookies.</p></div></div>",
        "<section class=gdpr-notice><p>We use cookies.</p></section>",
        "<div class=share>Share on Facebook Share on X</div>",
        "<div class=social-buttons><span>Tweet</span> <span>Pin it</span></div>",
    ],
)
def test_banners_and_buttons_for_sharing_are_left_out_and_counted(part: str) -> None:
    dropped: Counter[str] = Counter()
    _, blocks = html_blocks(f"<p>Cats sleep.</p>{part}", dropped)
    assert [block.text for block in blocks] == ["Cats sleep."]
    assert dropped.total() == 1


@pytest.mark.parametrize(
    "part",
    [
        "<section id=cookie-banner><p>Show a cookie banner.</p></section>",
        "<div class=share>Shares fell by 3%.</div>",
        "<div class=market-share>Share of wind: 20%. It grew.</div>",
    ],
)
def test_what_is_said_about_cookies_and_shares_stays(part: str) -> None:
    assert len(texts(part)) == 1


@pytest.mark.parametrize(
    ("page", "marks"),
    [
        ("<ol><li value=7>x<li>x<li value=x>x</ol>", ["7.", "8.", "9."]),
        ("<ol type=a start=26><li>x<li>x</ol>", ["z.", "aa."]),
        ("<ol reversed><li>x<li>x</ol>", ["2.", "1."]),
        ("<ol class='upperroman simple' start=8><li>x<li>x</ol>", ["VIII.", "IX."]),
        ("<ol style='list-style-type: lower-roman'><li>x<li>x</ol>", ["i.", "ii."]),
        ("<ol type=A start=0><li>x<li>x</ol>", ["0.", "A."]),
        ("<ol start=-1><li>x<li>x</ol>", ["-1.", "0."]),
    ],
)
def test_items_have_the_numbers_and_letters_that_the_page_shows(page: str, marks: list[str]) -> None:
    assert texts(page) == [f"{mark} x" for mark in marks]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>Book: <input type=checkbox checked> Sauna <input type=checkbox> Pool", "Book: [x] Sauna [ ] Pool"),
        ("<p><label><input type=radio checked>Red</label> <label><input type=radio>Blue</label>", "[x] Red [ ] Blue"),
        ("<p>Book: <input type=checkbox> Sauna", "Book: Sauna"),
        ("<div><input type=radio checked id=t><label for=t>Linux</label></div>", "Linux"),
    ],
)
def test_a_form_that_is_filled_in_says_what_was_chosen(page: str, text: str) -> None:
    assert texts(page) == [text]
