import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from selectolax.lexbor import LexborHTMLParser

from rag.answer.export.escaping import inert, one_line, visible
from rag.answer.export.html import to_html
from rag.answer.export.markdown import to_markdown, with_footnotes, with_links
from rag.answer.export.openai import response_annotations
from rag.answer.export.rendering import short_answer_line, with_markers
from rag.answer.export.sources import Link, abstention_notice, list_sources, merge_spans
from rag.base.types import Answer, Hit, Passage, Question
from tests.rag.answer.export.answers import ABSTAINED, BRIDGE, HOSTILE, answers, build, cite, link

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(markdown: str) -> LexborHTMLParser:
    """What a program that shows Markdown makes of it."""
    return LexborHTMLParser(f"<body>{GITHUB.render(markdown)}</body>")


def joined(text: str) -> str:
    """The characters without white space: Markdown shows one space for many."""
    return "".join(text.split())


def first_line(answer: Answer) -> str:
    """The short answer, as a part of what is shown."""
    return short_answer_line(answer) or ""


def tags(page: LexborHTMLParser) -> set[str]:
    return {str(node.tag) for node in page.css("body *")}


def test_footnotes_have_title_page_address_and_quotes() -> None:
    assert to_markdown(BRIDGE, link) == (
        "# Who built the bridge?\n\n"
        "Nora Finch built it in 1911[^1]. The river is long[^2][^1]. It may rain.\n"
        "\n[^1]: [Arlen, History](http://127.0.0.1:8000/p/shelf/town%231?mark=0-19,20-48), page 3: "
        "“Arlen has a bridge.” … “Nora Finch built it in 1911.”\n"
        "\n[^2]: [The river \\[Lune\\]](http://127.0.0.1:8000/p/shelf/river%231?mark=0-18): “The river is long.”\n"
    )


def test_links_have_a_list_of_sources_and_places_that_point_at_them() -> None:
    rendered = with_links(BRIDGE, link)
    river, town = (
        f"(http://127.0.0.1:8000/p/shelf/{end})" for end in ("river%231?mark=0-18", "town%231?mark=0-19,20-48")
    )
    built, bridge = town.replace("0-19,", ""), town.replace(",20-48", "")
    assert rendered.text == (
        f"Nora Finch built it in 1911 [[1]]{built}. The river is long [[2]]{river}[[1]]{bridge}. It may rain.\n\n"
        f"Sources:\n\n1. [Arlen, History]{town}, page 3\n2. [The river \\[Lune\\]]{river}"
    )
    assert [rendered.text[one.start : one.end] for one in rendered.places] == [
        f"[[1]]{built}", f"[[2]]{river}", f"[[1]]{bridge}"
    ]  # fmt: skip
    assert to_markdown(BRIDGE, link, "links") == f"# Who built the bridge?\n\n{rendered.text}\n"


def test_footnotes_have_places_and_what_each_sentence_cites() -> None:
    rendered = with_footnotes(BRIDGE, link)
    assert to_markdown(BRIDGE, link) == f"# Who built the bridge?\n\n{rendered.text}\n"
    assert [(rendered.text[one.start : one.end], one.quotes) for one in rendered.places] == [
        ("[^1]", ["Nora Finch built it in 1911."]),
        ("[^2]", ["The river is long."]),
        ("[^1]", ["Arlen has a bridge."]),
    ]
    assert with_footnotes(BRIDGE, link, sources=False).text == rendered.text.partition("\n\n[^1]: ")[0]


@given(st.text(max_size=20))
def test_a_file_begins_with_the_question(question: str) -> None:
    answer = replace(BRIDGE, question=Question("q1", question))
    for style in ("footnotes", "links"):
        page = shown(to_markdown(answer, link, style))
        heading = "".join(node.text() for node in page.css("h1"))
        assert joined(heading) == joined(one_line(question))
        assert len(page.css("h1")) == bool(one_line(question))


@pytest.mark.parametrize(
    ("short", "share", "line"),
    [
        ("in 1911", 0.95, "in 1911"),
        (" in\n*1911* ", 1, "in *1911*"),
        ("in 1911", 0.4, None),  # the passages do not agree
        (None, 0.95, None),
        (".", 0.95, None),
        ("nora finch built it in 1911. The river is long. It may rain", 0.95, None),  # all that the text says
    ],
)
def test_a_certain_short_answer_begins_every_form(short: str | None, share: float, line: str | None) -> None:
    answer = replace(BRIDGE, short_answer=short, trace={"short_share": share})
    plain, markdown, page = with_markers(answer).text, to_markdown(answer), to_html(answer)
    if line is None:
        assert (plain, markdown) == (with_markers(BRIDGE).text, to_markdown(BRIDGE))
        assert '<strong class="short">' not in page
        return
    assert plain == f"{line}\n\n{BRIDGE}"
    markdown = markdown.removeprefix("# Who built the bridge?\n\n")
    assert markdown.startswith("**" + line.replace("*", "\\*") + "**\n\nNora Finch built it in 1911[^1].")
    assert f'<strong class="short">{line}</strong></p>\n<div' in page
    assert [one.start for one in with_markers(answer, link).places] == [
        one.start + len(line) + 2 for one in with_markers(BRIDGE, link).places
    ]


@pytest.mark.parametrize("bad", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "http:///x", None])
def test_a_source_without_an_http_address_has_no_link(bad: str | None) -> None:
    def refused(*_: object) -> str | None:
        return bad

    for written in (with_links(BRIDGE, refused).text, to_markdown(BRIDGE, refused)):
        assert "](" not in written
        assert not shown(written).css("a")


def test_an_abstention_is_a_sentence() -> None:
    says = (
        "The sources do not answer this question: nothing is near enough. "
        "The closest passage, “Arlen, History”, says: “Arlen has a bridge.”"
    )
    assert (with_links(ABSTAINED).text, to_markdown(ABSTAINED)) == (says, f"# Who sings?\n\n{says}\n")


@pytest.mark.parametrize(
    ("reason", "trace", "says"),
    [
        (
            "the retrieved passages do not seem to answer it (answerable 0.12, minimum 0.4); none has 'Peru'",
            {"candidate": "It is cold.", "passage": "river#1"},
            "The sources do not answer this question: none has 'Peru'. "
            "The closest passage, “The river [Lune]”, says: “It is cold.”",
        ),
        (
            "the retrieved passages do not seem to answer it (confidence 0.48, minimum 0.5)",
            {"candidate": "It is hot.", "passage": "river#1"},  # is not there
            "The sources do not answer this question. "
            "The closest passage, “The river [Lune]”, says: “The river is long.”",
        ),
        ("the model says that the passages do not answer", {"candidate": 3, "passage": []}, None),
        ("the retrieved passages do not seem to answer it", {"passage": "gone#1"}, None),
    ],
)
def test_an_abstention_names_the_closest_passage_without_figures(
    reason: str, trace: dict[str, object], says: str | None
) -> None:
    answer = replace(ABSTAINED, question=Question("q", "Who built the ship?"), reason=reason, trace=trace)
    notice = abstention_notice(answer)
    if says is None:  # the first hit, and its sentence with most words of the question
        assert notice.endswith("The closest passage, “Arlen, History”, says: “Nora Finch built it in 1911.”")
    else:
        assert notice == says
    for form in (with_markers(answer).text, with_links(answer).text, to_markdown(answer), to_html(answer)):
        assert not re.search(r"0\.\d|minimum", form)
        assert "The closest passage" in form
    assert abstention_notice(replace(answer, hits=(), reason="x.")) == "The sources do not answer this question: x."
    assert abstention_notice(replace(answer, failed=True, reason="x")) == "The system gave no answer: x."


def test_a_long_closest_passage_is_cut_after_a_word() -> None:
    passage = Passage("p#1", "A\u202e title " * 20, "word " * 200)
    answer = replace(ABSTAINED, hits=(Hit(passage, 1.0), Hit(Passage("p#2", "", ""), 0.5)))
    notice = abstention_notice(answer)
    assert re.search(r"passage, “(A\ufffd title ?)+(A\ufffd)?…”, says: “(word ?)+…”$", notice)
    assert len(notice) < 350
    assert abstention_notice(replace(answer, hits=answer.hits[1:])).endswith("The closest passage is “p#2”.")


def test_markup_in_answers_titles_and_quotes_is_shown_as_text() -> None:
    passage = Passage("x", HOSTILE, f"{HOSTILE} end.")
    answer = build(f"{HOSTILE} end.", [(f"{HOSTILE} end.", [cite(passage, passage.text)])], [passage])
    for written in (with_links(answer, link).text, to_markdown(answer, link)):
        page = shown(written)
        assert tags(page) <= {"p", "a", "ol", "li", "h1"}
        assert {one.attributes["href"] for one in page.css("a")} == {"http://127.0.0.1:8000/p/shelf/x?mark=0-99"}
        assert not re.search("[\x1b\u202e\U000e0041]", written)


def test_an_address_cannot_end_its_link() -> None:
    def strange(*_: object) -> str:
        return "https://example.org/a_(b)?x=1&copy;&lt=<>\"'`\\ \n|[x](y)"

    (first, *_) = shown(with_links(BRIDGE, strange).text).css("a")
    target = "https://example.org/a_%28b%29?x=1&copy;&lt=%3C%3E%22'%60%5C%20%0A%7C[x]%28y%29"
    # The program that shows it quotes once more what it always quotes.
    assert (first.attributes["href"] or "").replace("%5B", "[").replace("%5D", "]") == target


def test_line_ends_indents_and_list_marks_are_kept() -> None:
    text = "Steps:\n- one\n- two\n\n    code()\n\n1. last"
    assert with_links(build(text, [])).text == (
        "Steps:\\\n\\- one\\\n\\- two\n\n\u00a0\u00a0\u00a0\u00a0code()\n\n1\\. last"
    )


@given(answers())
def test_links_show_the_answer_and_nothing_else(answer: Answer) -> None:
    rendered = with_links(answer, link)
    sources = list_sources(answer, link)
    body = rendered.text.rpartition("\n\nSources:\n")[0] if sources else rendered.text
    page = shown(body)
    assert joined(page.body.text() if page.body else "") == joined(first_line(answer) + visible(str(answer)))
    assert tags(page) <= {"p", "br", "a", "strong"}
    assert joined("".join(node.text() for node in page.css("strong"))) == joined(first_line(answer))
    linked = [(sentence, passage) for sentence in answer.sentences for passage in sentence.cites]
    for node, place, (sentence, passage) in zip(page.css("a"), rendered.places, linked, strict=True):
        marks = merge_spans([one.span for one in sentence.citations if one.passage == passage])
        assert (place.source.passage.id, node.attributes["href"]) == (passage, link(place.source.passage, marks))
        assert rendered.text[place.start : place.end] == f"[[{place.source.number}]]({node.attributes['href']})"
    listed = shown(rendered.text).css("body > ol > li")
    assert len(listed) == len(sources)
    for item, source in zip(listed, sources, strict=True):
        page_number = "" if source.passage.page is None else f",page{source.passage.page}"
        assert joined(item.text()) == joined(source.title) + page_number


@given(answers(), st.integers(0, 9))
def test_the_first_sentences_begin_the_text_and_the_annotations(answer: Answer, kept: int) -> None:
    sentences = answer.sentences[:kept]
    so_far = replace(answer, sentences=sentences, text=answer.text[: sentences[-1].end] if sentences else "")
    assume(first_line(so_far) == first_line(answer))
    assume(not so_far.text.endswith("_"))  # escaped unless a word goes on there, as none does after a sentence
    for whole, first in (
        (with_links(answer, link), with_links(so_far, link, sources=False)),
        (with_footnotes(answer, link), with_footnotes(so_far, link, sources=False)),
        (with_markers(answer, link), with_markers(so_far, link)),
    ):
        assert whole.text.startswith(first.text)
        annotations = response_annotations(first)
        assert response_annotations(whole)[: len(annotations)] == annotations
        assert len(annotations) == sum(len(sentence.cites) for sentence in sentences)


@given(answers())
def test_without_addresses_and_in_footnotes_the_answer_is_shown_too(answer: Answer) -> None:
    nowhere: Link | None = None
    sources = list_sources(answer)
    plain = with_links(answer, nowhere).text
    body = shown(plain.rpartition("\n\nSources:\n")[0] if sources else plain)
    assert joined(body.body.text() if body.body else "") == joined(first_line(answer) + visible(str(answer)))
    assert tags(body) <= {"p", "br", "strong"}
    # Without footnotes, a program shows their marks as text.
    noted = shown(with_footnotes(answer).text)
    pieces = "".join(visible(text) + "".join(f"[^{n}]" for n in numbers) for text, numbers in answer.pieces())
    quotes = "".join(f"[^{one.number}]:{one.title}{'' if one.passage.page is None else f', page {one.passage.page}'}:"
                     + "…".join(f"“{one_line(quote)}”" for quote in one.quotes) for one in sources)  # fmt: skip
    assert joined(noted.body.text() if noted.body else "") == joined(first_line(answer) + pieces + quotes)
    assert tags(noted) <= {"p", "br", "strong"}


# --- text of documents loads and links nothing -----------------------------------------------------------------

_ADDRESS = re.compile(r"//\w|www\.", re.IGNORECASE)
_PIECES = (
    "! [ ] ( ) : < > / a img src= http:// https:// HTTPS:// ftp:// // www. WWW. evil.example [x] [^1]: [1]: \\ ` "
    "&lt; [1] ![x](http://evil.example/?q=1) <img/src=//evil.example> <http://evil.example> <!-- -->"
).split()
_LOADING = st.lists(st.sampled_from([*_PIECES, " ", "\n", "\n\n"]), max_size=12).map("".join)


def tokens(markdown: str) -> list[Token]:
    """All parts that a program finds which shows Markdown and the HTML in it."""
    blocks = GITHUB.parse(markdown)
    return [*blocks, *(child for block in blocks for child in block.children or ())]


@given(_LOADING, st.sampled_from(["", "]"]))
def test_inert_text_has_its_words_and_nothing_that_loads(text: str, after: str) -> None:
    safe = inert(text, after=after)
    assert joined(safe) == joined(text)
    assert not {one.type for one in tokens(f"[1{after}{safe}")} & {"image", "link_open", "html_inline", "html_block"}
    assert not _ADDRESS.search(safe)
    assert inert(safe) == safe


@pytest.mark.parametrize("text", ["It is 3 < 4 [sic], isn't it!", "a[1] (b), x/y: z", "if (a) { b[0] = c; } // end"])
def test_text_without_markup_stays(text: str) -> None:
    assert inert(text) == text


@given(_LOADING, _LOADING, _LOADING)
def test_no_form_of_an_answer_loads_what_a_document_names(title: str, text: str, more: str) -> None:
    passage = Passage("x#1", title, f"{text}.{more}")
    answer = build(passage.text, [(f"{text}.", [cite(passage, f"{text}.")])], [passage])
    abstained = replace(answer, text="", sentences=(), abstained=True, reason="no")
    for one in (answer, abstained):
        for rendered in (with_markers(one, link), with_links(one, link), with_footnotes(one, link)):
            kinds = tokens(rendered.text)
            assert not {part.type for part in kinds} & {"image", "html_inline", "html_block"}
            targets = [str(part.attrs["href"]) for part in kinds if part.type == "link_open"]
            assert all(target.startswith("http://127.0.0.1:8000/p/shelf/") for target in targets)
            assert not _ADDRESS.search(rendered.text.replace("http://127.0.0.1:8000/p/shelf/", ""))
            assert all(place.quotes == [f"{text}."] for place in rendered.places)  # verbatim
