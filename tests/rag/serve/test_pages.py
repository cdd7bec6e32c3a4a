"""The pages as HTML: what is shown, what is refused, and hostile texts as text."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("jinja2")
pytest.importorskip("mcp")
pytest.importorskip("prometheus_client")

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient

import rag
from rag.answer.llms import ModelError
from rag.serve.app import create_app
from rag.serve.examples import example_questions
from rag.serve.service import Limits, Service
from rag.testing import ScriptedModel
from tests.conftest import present
from tests.rag.serve.served import make_index, model_system, other_index, slow_system

QUESTION = "When did the Aller bridge open?"
EVIL = (
    "The <script>alert(1)</script> bridge of Evil opened in 1931 <img src=x onerror=alert(2)>. "
    "[Click](javascript:alert(3)) the \x1b[31mred\u202eder\U000e0041 text of Evil {{ 7*7 }}."
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("town")
    rows = [
        {"_id": "evil/../#1?x=<b>", "title": "Evil </title><script>alert(4)</script>", "text": EVIL},
        {"_id": "evil#3", "title": "May <b>otters</b> swim upstream?", "text": "No, the weir is too high for otters."},
        {"_id": "evil#2", "title": "Other", "text": "Nothing of note stands here."},
    ]
    corpus = folder / "evil.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    evil = rag.build_index(corpus, folder / "evil.index", format="beir")
    found = Service({"town": make_index(folder), "evil": evil}, ["reader", "extractive"], limits=Limits(text=5_000))
    yield found
    found.close()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(create_app(service), base_url="http://localhost", raise_server_exceptions=False) as found:
        yield found


def page(client: TestClient, path: str, status: int = 200, **params: str) -> HTMLParser:
    reply = client.get(path, params=params or None, headers={"Accept": "text/html"})
    assert reply.status_code == status, reply.text
    assert reply.headers["Content-Type"].startswith("text/html")
    return HTMLParser(reply.text)


def events(client: TestClient, **question: object) -> list[tuple[str, dict[str, Any]]]:
    reply = client.post("/ask", json=question)
    assert reply.status_code == 200, reply.text
    found = []
    for block in reply.text.strip().split("\n\n"):
        name, data = block.split("\n", 1)
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def texts(tree: HTMLParser, css: str) -> list[str]:
    return [" ".join(one.text().split()) for one in tree.css(css)]


def test_a_quoted_no_is_shown_with_the_heading_that_it_answers(client: TestClient) -> None:
    tree = page(client, "/", q="May otters swim upstream?", index="evil", system="extractive", whole="1")
    assert texts(tree, ".answer .about") == ["About “May <b>otters</b> swim upstream?”:"]
    assert texts(tree, ".said .words")[0].startswith("No,")


def test_an_answer_comes_as_events_with_its_passages_and_then_its_verdicts(client: TestClient) -> None:
    found = events(client, question=QUESTION, index="town", system="reader", place="t3")
    names = [name for name, _ in found]
    assert names == ["answer", "verdicts"]
    answer = found[-2][1]
    shown = HTMLParser(answer["html"])
    assert texts(shown, ".reading > .short") == ["1931"]
    assert (
        present(shown.css_first(".copied[data-form=text]"))
        .text()
        .startswith("1931\n\nThe Aller bridge opened in 1931. [1]")
    )
    assert "The Aller bridge opened in 1931." in texts(shown, ".sentence .words")
    cite = present(shown.css_first(".sentence a.cite"))
    panel = present(shown.css_first(f"#{cite.attributes['data-panel']}"))
    assert str(panel.attributes["id"]).startswith("t3-")
    assert "1931" in panel.css("mark")[0].text()
    assert str(cite.attributes["href"]).startswith("/p/town/bridge.md%231?mark=")
    assert answer["turn"]["question"] == QUESTION
    verdicts = HTMLParser(found[-1][1]["html"])
    assert texts(verdicts, "[data-sentence] .verdict") == []  # no tick for what is quoted
    assert texts(verdicts, "[data-part=summary] .verdict")[0].endswith("word for word from their sources.")


def test_an_answer_grows_with_its_passages_from_the_index_that_it_was_asked_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, other = make_index(tmp_path), other_index(tmp_path / "other")
    quoter = slow_system()
    service = Service({"town": old}, ["slow"])
    monkeypatch.setattr(quoter, "wait", lambda: service.replace("town", other))  # before the first sentence, and others
    with TestClient(create_app(service), base_url="http://localhost") as client:
        found = events(client, question="Aller bridge repaired")
        exported = client.get("/export/json", params={"q": "Aller bridge repaired"}).json()
    service.close()
    drafts = [HTMLParser(data["html"]) for name, data in found if name == "draft" and data["html"]]
    assert [texts(draft, "a.cite") for draft in drafts] == [["1"], ["1", "2"], ["1", "2", "1"]]
    assert [len(draft.css(".passage")) for draft in drafts] == [1, 2, 2]
    names = [name for name, data in found if data.get("html") != ""]
    assert names == ["draft", "draft", "draft", "answer", "verdicts"]
    answer = HTMLParser(found[-2][1]["html"])
    assert texts(answer, ".sentence .text") == texts(drafts[-1], ".sentence .text")
    assert [one.attributes["href"] for one in answer.css(".sentence a.cite")] == [
        one.attributes["href"] for one in drafts[-1].css(".sentence a.cite")
    ]
    assert texts(answer, ".passage .page") == texts(drafts[-1], ".passage .page")
    assert texts(answer, ".beside")
    assert "another index" not in "".join(data.get("html", "") for _, data in found)
    assert "another index" in json.dumps(exported)  # asked again: a file is of the index of now


def test_a_follow_up_is_asked_in_its_thread(client: TestClient) -> None:
    history = [{"question": "When was the Aller bridge repaired?", "answer": "The bridge was repaired in 1987."}]
    found = dict(events(client, question="who was its engineer?", history=history))
    assert "Searched for: " in HTMLParser(found["answer"]["html"]).text()
    assert "Aller" in found["answer"]["permalink"]


def test_what_is_not_answered_is_said_plainly_with_the_nearest_passages(client: TestClient) -> None:
    found = events(client, question="How many moons has Jupiter?", index="town")
    assert found[-1][0] == "answer"
    answer = found[-1][1]
    shown = HTMLParser(answer["html"])
    assert answer["turn"] is None
    assert "Not answered by these sources" in texts(shown, ".none")[0]
    assert shown.css(".nearest li")
    assert "minimum" not in shown.text()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not json", 400),
        (b"[]", 400),
        (b'{"question": 3}', 400),
        (b'{"question": " "}', 400),
        (b'{"question": "x", "index": "nope"}', 404),
        (b'{"question": "x", "history": 3}', 400),
        (b'{"question": "x", "history": [3]}', 400),
        (b"[" * 100_000, 400),
        (b'{"question": "\\ud800"}', 200),
    ],
)
def test_a_bad_question_is_told_in_one_line(client: TestClient, body: bytes, status: int) -> None:
    reply = client.post("/ask", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == status
    if status != 200:
        assert reply.json()["message"].endswith(".")


def test_no_form_of_another_site_can_ask(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert client.post("/ask", content=b"{}", headers={"Content-Type": kind}).status_code == 415
    reply = client.post("/ask", json={"question": QUESTION}, headers={"Origin": "https://evil.example"})
    assert reply.status_code == 403


def test_a_question_that_cannot_be_searched_is_told(client: TestClient) -> None:
    (found,) = events(client, question="?!")
    assert found[0] == "unsearched"


def test_without_the_script_a_link_gives_the_whole_answer(client: TestClient) -> None:
    first = page(client, "/", q=QUESTION, index="town")
    link = present(first.css_first("noscript a"))
    whole = page(client, str(link.attributes["href"]))
    assert "The Aller bridge opened in 1931." in texts(whole, ".words")
    assert texts(whole, ".sentence .verdict") == []
    assert texts(whole, ".summary") == ["All sentences are word for word from their sources."]
    assert client.get(str(link.attributes["href"])).text.count("no language model") == 1
    names = [str(one.attributes["name"]) for one in whole.css("#ask input, #ask select, #ask textarea")]
    assert {"q", "index", "system"} <= set(names)


def test_a_link_to_a_passage_marks_its_spans(client: TestClient) -> None:
    shown = page(client, "/p/town/bridge.md%231", mark="4-9,0-3,8-10")
    assert texts(shown, "mark") == ["The", "Aller"]
    assert shown.css("a[rel=next]")
    assert not shown.css("a[rel=prev]")


@pytest.mark.parametrize(
    "mark", ["", "x", "5-1", "-3", "0-99999999", "1-2;3", "1-2,", "0-1" + ",0-1" * 200, "٣-٤", "1" * 5_000]
)
def test_marks_are_hostile_until_read(client: TestClient, mark: str) -> None:
    shown = page(client, "/p/town/bridge.md%231", mark=mark)
    assert len(shown.css("mark")) <= 1


@pytest.mark.parametrize(
    "path",
    ["/p/town/nope", "/p/nope/x", "/p/town/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/p/town/%00", "/p/town/%ff%fe",
     "/?q=x&index=nope", "/?q=x&system=../x", "/compare?q=x&a=nope", "/export/exe?q=x"],
)  # fmt: skip
def test_what_is_not_there_is_an_error_page(client: TestClient, path: str) -> None:
    reply = client.get(path, headers={"Accept": "text/html"})
    assert reply.status_code == 404
    assert 'role="alert"' in reply.text


def test_a_question_that_is_too_long_is_an_error_page(client: TestClient) -> None:
    assert client.get("/", params={"q": "x" * 3_000, "whole": "1"}).status_code == 400


def hostile(html: str) -> None:
    """Fails unless the HTML shows all that was hostile as text."""
    tree = HTMLParser(html)
    assert [one for one in tree.css("script") if not str(one.attributes.get("src", "")).startswith("/static/")] == []
    assert tree.css("img[onerror], style, iframe, object, embed, base, meta[http-equiv]") == []
    for one in tree.css("*"):
        assert not [name for name in one.attributes if name.startswith("on") or name == "style"]
    for link in tree.css("a[href], form[action]"):
        assert str(link.attributes.get("href") or link.attributes.get("action")).startswith(("/", "#", "https://"))
    assert not set("\x1b\u202e\U000e0041") & set(html)


def test_hostile_passages_and_questions_are_shown_as_text(client: TestClient) -> None:
    question = "When did the bridge of Evil <script>alert(9)</script>\u202e open?"
    for reply in (
        client.get("/", params={"q": question, "index": "evil"}),
        client.get("/", params={"q": question, "index": "evil", "whole": "1"}),
        client.get("/compare", params={"q": question, "a": "extractive@evil", "b": "reader@evil", "whole": "1"}),
        client.get("/p/evil/evil%2F..%2F%231%3Fx%3D%3Cb%3E", params={"mark": "4-40"}),
        client.post("/check", data={"text": EVIL, "against": "index", "index": "evil"}),
        client.post("/check", data={"text": f"{EVIL} [1]", "against": "sources", "sources": f"[1] {EVIL}"}),
        client.post("/check", data={"text": EVIL, "against": "index", "index": "<script>alert(1)</script>"}),
        client.get("/p/evil/<script>alert(1)</script>"),
    ):
        assert "alert(" in reply.text
        hostile(reply.text)
    found = dict(events(client, question=question, index="evil", place='"><script>'))
    hostile(found["answer"]["html"])
    assert 'data-place="t1"' in found["answer"]["html"]
    shown = present(HTMLParser(client.get("/p/evil/evil%2F..%2F%231%3Fx%3D%3Cb%3E").text).css_first("#passage"))
    assert shown.text() == EVIL.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd").replace("\U000e0041", "\ufffd")


def test_nothing_is_inline_and_nothing_is_from_another_host(client: TestClient) -> None:
    weight = 0
    reply = client.get("/", params={"q": QUESTION, "whole": "1"})
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    tree = HTMLParser(reply.text)
    nodes = tree.css("link[href], script, img")
    addresses = [str(node.attributes.get("href") or node.attributes.get("src")) for node in nodes]
    for address in addresses:  # grows, as modules import others
        assert address.startswith("/static/")
        static = client.get(address)
        assert "immutable" in static.headers["Cache-Control"]
        weight += len(static.content)
        names = re.findall(r'^import .*"\./(.*)";$', static.text, re.MULTILINE)
        addresses += [module for name in names if (module := f"/static/serve/{name}") not in addresses]
    assert sum("/dom.js?v=" in address for address in addresses) == 1  # each module has one address
    assert weight + len(reply.content) < 200_000


# --- check, compare, export -------------------------------------------------------------------------------------------


def test_a_pasted_text_is_checked_against_an_index(client: TestClient) -> None:
    text = "The bridge has three arches of red brick [4]. The engineer was Queen Victoria. Do you like it?"
    reply = client.post("/check", data={"text": text, "against": "index", "index": "town"})
    tree = HTMLParser(reply.text)
    assert texts(tree, ".sentence .judged") == ["✓ supported", "○ not supported", "– nothing to check"]
    assert "Queen Victoria" in " ".join(texts(tree, ".sentence u"))
    assert texts(tree, ".sentence .note")[0].startswith(
        "No passage of the index supports it. Closest: “The engineer of the repair was Ida Brandt.”"
    )
    assert [one.text() for one in tree.css("#text")] == [text]


def test_a_false_claim_is_shown_beside_the_passage_that_says_otherwise(client: TestClient) -> None:
    text = "The Aller bridge has two arches of red brick."
    tree = HTMLParser(client.post("/check", data={"text": text, "against": "index", "index": "town"}).text)
    assert texts(tree, ".sentence .judged") == ["✗ contradicted"]
    assert texts(tree, ".sentence u") == ["two"]
    (note,) = texts(tree, ".sentence .note")
    assert note.startswith("The source says three, not two: “It has three arches of red brick.”")
    assert texts(tree, ".sentence .note ins") == ["three"]
    panel = present(tree.css_first(".sentence .note a.cite")).attributes["data-panel"]
    assert texts(tree, f"#{panel} mark") == ["It has three arches of red brick."]
    assert texts(tree, f"#{panel} mark strong") == ["three"]


def test_what_a_model_contradicts_is_shown_beside_what_it_cites(tmp_path: Path) -> None:
    says = "The Aller bridge opened in 1931 [1]. The Aller bridge has two arches of red brick [1]. It is very famous."
    model_system(ScriptedModel(says))
    service = Service({"town": make_index(tmp_path)}, ["model"])
    with TestClient(create_app(service), base_url="http://localhost") as client:
        found = events(client, question="How many arches has the Aller bridge?")
        exports = {
            name: client.get(f"/export/{name}", params={"q": "How many arches has the Aller bridge?"}).text
            for name in ("markdown", "html")
        }
        row = client.post(
            "/v1/ask", json={"question": "How many arches has the Aller bridge?", "verdicts": True}
        ).json()
    service.close()
    answer, verdicts = HTMLParser(found[-2][1]["html"]), HTMLParser(found[-1][1]["html"])
    assert texts(answer, ".sentence a.cite") == ["1", "1"]  # the citation stays
    assert texts(verdicts, "[data-part=verdict]") == ["✓ supported", "✗ contradicted", "○ not supported"]
    assert texts(verdicts, "[data-part=words] u") == ["two", "famous"]
    note = texts(verdicts, "[data-part=note]")[1]
    assert note.startswith("The source says three, not two: “It has three arches of red brick.”")
    assert texts(verdicts, "[data-part=note] ins") == ["three"]
    panel = present(verdicts.css_first("[data-part=note] a.cite")).attributes["data-panel"]
    marked = present(verdicts.css_first(f"[data-panel={panel}] .here"))  # replaces that of the answer
    assert "three" in [one.text() for one in marked.css("mark strong")]
    assert "It has three arches of red brick." in [one.text() for one in marked.css("mark[data-for~='1']")]
    assert present(answer.css_first(f"#{panel}")).css(".here")
    check = row["verdicts"][1]
    assert (check["verdict"], check["numbers"]) == ("contradicted", ["three", "two"])
    assert check["contradiction"]["quote"] == "It has three arches of red brick."
    assert "“The Aller bridge has **two** arches of red brick.”" in exports["markdown"]
    assert "The source says three, not two: “It has **three** arches of red brick.”" in exports["markdown"]
    tree = HTMLParser(exports["html"])
    assert texts(tree, ".check mark") == ["two", "three", "famous"]
    assert "The source says three, not two" in texts(tree, ".check")[0]


def test_a_model_that_does_not_answer_leaves_the_question_and_a_way_to_ask_again(tmp_path: Path) -> None:
    model_system(ScriptedModel(ModelError("http://10.0.0.7: no key sk-secret")))
    service = Service({"town": make_index(tmp_path)}, ["model", "reader"])
    with TestClient(create_app(service), base_url="http://localhost") as client:
        tree = page(client, "/", 502, q=QUESTION, system="model", whole="1")
        assert texts(tree, "[role=alert]") == ["The language model did not answer. Retry"]
        assert "whole=1" in str(present(tree.css_first("[role=alert] a")).attributes["href"])
        assert present(tree.css_first("#q")).text() == QUESTION
        assert tree.css(".none") == []
        sides = page(client, "/compare", q=QUESTION, a="model@town", b="reader@town", whole="1")
        assert texts(sides, ".sides [role=alert]") == ["The language model did not answer. Retry"]
        assert texts(sides, ".sides h2") == ["model", "reader"]  # there is one index
        assert texts(sides, ".sides .short") == ["1931"]
        assert client.get("/export/markdown", params={"q": QUESTION, "system": "model"}).status_code == 502
    service.close()


def test_the_page_has_no_numbers_of_models(client: TestClient) -> None:
    text = "The engineer was Queen Victoria. The Aller bridge was opened in 1931."
    checked = client.post("/check", data={"text": text, "against": "index", "index": "town"}).text
    refused = dict(events(client, question="How many moons has Jupiter?", index="town"))["answer"]["html"]
    for html in (checked, refused):
        assert "probability" not in html
        assert "minimum" not in html
        assert not re.search(r"\b0\.\d\d(?! s\b)", HTMLParser(html).text())


def test_the_sentence_with_the_short_answer_stands_out(client: TestClient) -> None:
    shown = HTMLParser(dict(events(client, question=QUESTION, index="town", system="reader"))["answer"]["html"])
    main = [one.text() for one in shown.css(".sentence:not(.aside) .words")]
    assert len(shown.css(".sentence")) > 1
    assert len(main) == 1
    assert "1931" in main[0]


def test_a_quotation_that_is_not_verbatim_has_the_nearest_text_and_its_place(client: TestClient) -> None:
    text = (
        'He says "the bridge opened in 1913" [1]. He says "the bridge opened in 1931" [2]. '
        'He says "the bridge opened in a ferry runs by night" [1]. He writes "nothing <b>like it</b> is here" [1].'
    )
    sources = "[1] He said the bridge opened in 1931.\n[2] The river and a ferry runs by night."
    tree = HTMLParser(client.post("/check", data={"text": text, "against": "sources", "sources": sources}).text)
    assert texts(tree, ".quote") == [
        "Misquoted. The nearest text: “the bridge opened in 1913 1931”1",
        "Quoted from a source that is not cited: “the bridge opened in 1931”1",
        "Stitched together from parts that stand apart: “the bridge opened in a ferry runs by night”12",
        "Misquoted. No source has “nothing <b>like it</b> is here”.",
    ]
    assert (texts(tree, ".quote del"), texts(tree, ".quote ins")) == (["1913"], ["1931"])
    assert [link.attributes["href"] for link in tree.css(".quote a")] == ["#c-p1", "#c-p1", "#c-p1", "#c-p2"]
    assert "the bridge opened in 1913" in " ".join(texts(tree, ".sentence u"))
    assert tree.css_first(".quote b") is None


def test_a_pasted_text_is_checked_against_pasted_sources(client: TestClient) -> None:
    sources = "[1] The Aller bridge opened in 1931.\n[2] It has three arches."
    given = {"text": "The Aller bridge opened in 1932 [1].", "against": "sources", "sources": sources}
    tree = HTMLParser(client.post("/check", data=given).text)
    assert texts(tree, ".sentence .judged") == ["✗ contradicted"]
    assert texts(tree, ".sentence u") == ["1932"]
    assert texts(tree, "#c-p1 mark") == ["The Aller bridge opened in 1931."]


def test_items_of_a_list_have_bullets(client: TestClient) -> None:
    text = "- The Aller bridge opened in 1931.\n- It has three arches."
    form = {"text": text, "against": "sources", "sources": text}
    tree = HTMLParser(client.post("/check", data=form).text)
    assert texts(tree, "#result .lead") == ["•", "•"]
    assert texts(tree, "#result .words") == ["The Aller bridge opened in 1931.", "It has three arches."]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"text": " "},
        {"text": "A.", "against": "sources"},
        {"text": "x" * 6_000},
        {"text": "A.", "index": "nope"},
        {"text": "A.", "against": "sources", "sources": "[1] a\n[1] b"},
        {"text": "One is. " * 200},
    ],
)
def test_what_cannot_be_checked_is_told_beside_the_form(client: TestClient, given: dict[str, str]) -> None:
    reply = client.post("/check", data=given)
    assert reply.status_code in (400, 404)
    tree = HTMLParser(reply.text)
    assert tree.css_first("#result [role=alert]") is not None
    assert [one.text().strip() for one in tree.css("#text")] == [given.get("text", "").strip()]


def test_two_systems_stand_side_by_side_with_what_they_took(client: TestClient) -> None:
    tree = page(client, "/compare", q=QUESTION, a="reader@town", b="extractive@town", whole="1")
    assert texts(tree, ".sides h2") == ["reader@town", "extractive@town"]
    metas = texts(tree, ".sides .meta")
    assert len(metas) == 2
    assert all("read" in one and " s " in one for one in metas)
    ids = [one.attributes["id"] for one in tree.css("[id]")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("markdown", f"# {QUESTION}\n\n**1931**\n\nThe Aller bridge opened in 1931[^1]."),
        ("html", f'<h1 dir="auto">{QUESTION}</h1>\n<p dir="auto"><strong class="short">1931</strong>'),
        ("html", "<mark>"),
        ("json", '"urls"'),
        ("bibtex", "@misc{"),
        ("csl", '"title"'),
    ],
)
def test_an_answer_is_exported(client: TestClient, name: str, holds: str) -> None:
    reply = client.get(f"/export/{name}", params={"q": QUESTION, "index": "town", "system": "reader"})
    assert reply.status_code == 200
    assert holds in reply.text
    assert "http://localhost/p/town/bridge.md%231" in reply.text
    assert 'attachment; filename="when-did-the-aller-bridge-open' in reply.headers["Content-Disposition"]


def test_an_export_of_nothing_is_refused(client: TestClient) -> None:
    assert client.get("/export/json").status_code == 400


# --- examples ---------------------------------------------------------------------------------------------------------


def test_examples_are_questions_that_the_index_answers(client: TestClient) -> None:
    handbook = rag.open_index()
    system = rag.open_system("reader", handbook)
    found = example_questions(handbook, system.ask)
    assert len(found) == 4
    assert found == example_questions(handbook, system.ask)
    for question in found:
        assert not system.ask(question).abstained


def test_examples_that_are_found_late_come_later(client: TestClient) -> None:
    reply = client.get("/examples", params={"index": "town", "system": "reader"})
    assert reply.status_code == 200
    assert [set(example) for example in reply.json()["examples"]] == [{"question", "href"}] * len(
        reply.json()["examples"]
    )
    assert client.get("/examples", params={"index": "nope"}).status_code == 404


def test_an_example_asks_for_something_that_has_a_name(tmp_path: Path) -> None:
    text = "# {}\n\n{} It is written about a mill that stands beside the river Aller since 1820 and grinds rye.\n"
    for name, sentence in (("same", "The same process is an API."), ("mill", "The Lindmill of Oldenby is a mill.")):
        (tmp_path / f"{name}.md").write_text(text.format(sentence.split(" is ")[0], sentence), "utf-8")
    index = rag.build_index(tmp_path, tmp_path / "x.index")
    assert example_questions(index, rag.open_system("reader", index).ask) == ["What is the Lindmill of Oldenby?"]


def test_an_index_that_defines_nothing_has_no_examples(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Go home now. It is a day.", "utf-8")
    index = rag.build_index(tmp_path / "a.txt", tmp_path / "a.index")
    assert example_questions(index, rag.open_system("reader", index).ask) == []
