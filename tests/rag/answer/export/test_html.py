import base64
import hashlib
import re

from hypothesis import given
from selectolax.lexbor import LexborHTMLParser, LexborNode

from rag.answer.export.escaping import one_line, visible
from rag.answer.export.html import to_html
from rag.answer.export.sources import list_sources
from rag.base.types import Answer, Passage
from tests.rag.answer.export.answers import ABSTAINED, BRIDGE, HOSTILE, answers, build, cite, link


def the(page: LexborHTMLParser | LexborNode, selector: str) -> LexborNode:
    """The only node, or the first of several."""
    node = page.css_first(selector)
    assert node is not None, selector
    return node


def test_the_page_has_question_answer_and_marked_passages() -> None:
    page = LexborHTMLParser(to_html(BRIDGE, link))
    assert the(page, "title").text() == the(page, "h1").text() == "Who built the bridge?"
    assert the(page, ".text").text() == "Nora Finch built it in 1911[1]. The river is long[2][1]. It may rain."
    assert [one.text() for one in page.css("#source-1 mark")] == ["Arlen has a bridge.", "Nora Finch built it in 1911."]
    (address,) = page.css("#source-2 a")
    assert address.attributes["href"] == "http://127.0.0.1:8000/p/shelf/river%231?mark=0-18"
    assert [one.attributes["href"] for one in page.css("sup a")] == ["#source-1", "#source-2", "#source-1"]


def test_the_page_needs_nothing_else_and_its_policy_allows_its_style() -> None:
    page = LexborHTMLParser(to_html(BRIDGE))
    assert not page.css("script, link, img, iframe, [src], [style]")
    style = the(page, "style").text()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = the(page, "meta[http-equiv]").attributes["content"]
    assert policy == f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{digest}'"


def test_an_abstention_says_so_and_has_no_sources() -> None:
    page = LexborHTMLParser(to_html(ABSTAINED))
    assert the(page, ".not-answered").text() == (
        "The sources do not answer this question: nothing is near enough. "
        "The closest passage, “Arlen, History”, says: “Arlen has a bridge.”"
    )
    assert not page.css("ol, .text")


def test_markup_is_shown_as_text() -> None:
    passage = Passage('x"><script>', HOSTILE, HOSTILE)
    answer = build(HOSTILE, [(HOSTILE, [cite(passage, HOSTILE)])], [passage], HOSTILE)

    def evil(*_: object) -> str:
        return 'https://example.org/"onmouseover="alert(1)'

    page = to_html(answer, evil)
    assert not re.search("<script|<b>|[\x1b\u202e\U000e0041]|javascript:(?!alert\\(1\\)\\))", page)
    assert not LexborHTMLParser(page).css("[onmouseover], img, script")


@given(answers())
def test_all_text_is_escaped(answer: Answer) -> None:
    page = LexborHTMLParser(to_html(answer, link))
    sources = list_sources(answer, link)
    text = "".join(visible(text) + "".join(f"[{n}]" for n in numbers) for text, numbers in answer.pieces())
    assert the(page, ".text").text() == text
    assert the(page, "h1").text() == one_line(answer.question.text)
    for source in sources:
        item = the(page, f"#source-{source.number}")
        assert the(item, "cite").text() == source.title
        assert the(item, "blockquote").text() == visible(source.passage.text)
        assert [one.text() for one in item.css("mark")] == [visible(quote) for quote in source.quotes]
        assert the(item, "a").attributes["href"] == source.url
    known = {"p", "strong", "h1", "h2", "div", "sup", "a", "ol", "li", "cite", "blockquote", "mark", "main", "footer"}
    assert {node.tag for node in page.css("body *")} <= known
    assert len(page.css("body a")) == len(sources) + sum(len(numbers) for _, numbers in answer.pieces())
