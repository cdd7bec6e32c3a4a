"""The pages in a real browser: by keyboard, on a phone, and for axe."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")
pytest.importorskip("jinja2")
pytest.importorskip("mcp")
pytest.importorskip("prometheus_client")

import rag
from rag.answer.llms import ModelError
from rag.serve.app import create_app
from rag.serve.service import Service
from rag.testing import ScriptedModel
from scripts.browser import serving
from tests.rag.browser import NEEDS_CHROMIUM, PHONE, Page, check, expect
from tests.rag.documents.pdfs import Print, make_pdf
from tests.rag.serve.served import SlowQuoter, make_index, model_system, other_index, slow_system
from tests.rag.serve.test_pages import EVIL

pytestmark = NEEDS_CHROMIUM
Open = Callable[..., Page]

QUESTION = "When did the Aller bridge open?"
SOURCES = "[1] The Aller bridge opened in 1931.\n[2] It has three arches of brick."
PASTED = "The Aller bridge opened in 1932 [1]. It has three arches of brick [2]. The mayor wept."


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("town")
    corpus = folder / "evil.jsonl"
    corpus.write_text(json.dumps({"_id": "e<b>#1", "title": "<i>Evil", "text": EVIL}) + "\n", "utf-8")
    evil = rag.build_index(corpus, folder / "evil.index", format="beir")
    service = Service({"town": make_index(folder), "evil": evil}, ["reader", "extractive"])
    service.warm()
    return service


@pytest.fixture(scope="module")
def address(served: Service) -> Iterator[str]:
    with serving(create_app(served, uploads=("town",))) as found:
        yield found


@pytest.fixture
def slow_page(browse: Open, tmp_path: Path) -> Iterator[tuple[Page, SlowQuoter, Service]]:
    """A page on which an answer grows when the test lets it, the quoter that writes it, and the service."""
    quoter = slow_system()
    service = Service({"town": make_index(tmp_path)}, ["slow"])
    service.judge_model.support("It is.", ["It is."])  # loads it
    with serving(create_app(service)) as url:
        yield browse(url=url), quoter, service
        for _ in range(9):  # of a test that failed
            quoter.go_on()
    service.close()


@pytest.fixture
def browse(chromium: Any, address: str) -> Iterator[Open]:  # noqa: ANN401
    said: list[str] = []

    def open_page(path: str = "/", *, url: str = address, expected: str = "no message", **options: object) -> Page:
        page = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}} | options).new_page()
        page.on(
            "console",
            lambda message: said.extend([message.text] * (not message.text.startswith(expected))),
        )
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: said.extend([request.url] * (not request.url.startswith(url))))
        page.goto(url + path)
        return page

    yield open_page
    for context in chromium.contexts:
        context.close()
    assert said == []  # no error, nothing that the Content-Security-Policy stopped, no request to another host


def ask(page: Page, question: str) -> None:
    """Ask by keyboard, and wait for the verdicts."""
    number = page.locator(".turn").count()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type(question)
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(number + 1)
    expect(page.locator(".turn").last.locator(".summary .verdict").first).to_be_visible()


def test_ask_and_follow_a_citation_by_keyboard(browse: Open, address: str) -> None:
    page = browse(permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("Escape")
    ask(page, QUESTION)
    turn = page.locator(".turn")
    expect(turn.locator(".sentence .words").first).to_have_text("The Aller bridge opened in 1931.")
    expect(turn.locator(".short")).to_have_text("1931")
    expect(turn.locator(".summary")).to_have_text("All sentences are word for word from their sources.")
    expect(turn.locator(".passage.shown")).to_have_count(1)  # beside the answer without asking
    page.keyboard.press("n")
    cite = turn.locator("a.cite").first
    expect(cite).to_be_focused()
    page.keyboard.press("Enter")
    passage = turn.locator(".passage.shown")
    expect(passage.locator(".page")).to_be_focused()
    expect(passage.locator("mark:not(.other)").first).to_contain_text("1931")
    expect(passage.locator(".beside").first).to_contain_text("repaired in 1987")  # what stands after it
    page.keyboard.press("Escape")
    expect(cite).to_be_focused()
    page.keyboard.press("c")
    expect(page.locator("#status")).to_have_text("Copied with footnotes.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("1931\n\nThe Aller bridge opened in 1931. [1]")
    assert "\n\n[1] The Aller bridge, History, bridge.md: “" in copied
    turn.locator(".copies summary").click()
    turn.get_by_role("button", name="Markdown").click()
    assert "[^1]: [The Aller bridge" in page.evaluate("navigator.clipboard.readText()")


def test_two_indexes_are_asked_as_one_and_the_thread_remembers_them(browse: Open) -> None:
    page = browse()
    page.get_by_label("Index").select_option("town+evil")
    expect(page.locator(".hero")).to_contain_text("of town and evil.")
    ask(page, QUESTION)
    expect(page.locator(".turn .cite").first).to_have_attribute("href", re.compile(r"^/p/town/bridge\.md%23\d"))
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.get_by_label("Index")).to_have_value("town+evil")


def asked(service: Service) -> list[str]:
    """The questions that the service answers from now on."""
    questions: list[str] = []
    service.watch(lambda reply: questions.append(reply.question))
    return questions


FORGET_CHECKS = """async () => {  // as if the page had been left before the verdicts came
    const script = document.querySelector("script[src*='/page.js']").src;
    const store = await import(script.replace(/page.js.*/, "store.js"));
    const turns = await store.loadTurns(location.pathname.slice(3));
    for (const turn of turns) await store.saveTurn({...turn, checks: undefined});
}"""


def test_a_thread_is_there_again_after_reload_back_and_forward(browse: Open, served: Service) -> None:
    page = browse()
    ask(page, QUESTION)
    ask(page, "and how many arches has it?")
    thread, questions = page.url, asked(served)
    assert "/t/" in thread
    expect(page.locator(".turn .summary .verdict")).to_have_count(2)
    page.wait_for_load_state("networkidle")
    before = page.locator(".answer").all_inner_texts()

    def check_thread() -> None:
        expect(page.locator(".turn .summary .verdict")).to_have_count(2)
        assert page.url == thread
        page.wait_for_load_state("networkidle")
        assert page.locator(".answer").all_inner_texts() == before
        expect(page.locator("h2.question")).to_have_text([QUESTION, "and how many arches has it?"])

    page.reload()
    check_thread()
    page.evaluate(FORGET_CHECKS)
    page.reload()
    check_thread()
    page.locator(".passage.shown").first.get_by_role("link", name="Open as a page").click()
    expect(page.locator("#passage")).to_be_visible()
    page.go_back()
    check_thread()
    page.go_back()
    expect(page.locator(".hero")).to_be_visible()
    page.go_forward()
    check_thread()
    assert questions == []
    ask(page, "who repaired it?")
    assert "Aller" in questions[0]  # a follow-up of what is there again


def test_threads_are_renamed_found_saved_and_deleted_by_keyboard(browse: Open) -> None:
    page = browse()
    ask(page, QUESTION)
    page.locator("#thread-menu summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#new-title")).to_be_focused()
    page.keyboard.type("<b>Bridges</b>")
    page.keyboard.press("Enter")
    expect(page.locator(".thread-title")).to_have_text("<b>Bridges</b>")
    page.reload()
    expect(page).to_have_title("<b>Bridges</b> · attributed-rag")
    with page.expect_download() as waiting:
        page.locator("#thread-menu summary").click()
        page.get_by_role("button", name="Save as a page to share").click()
    assert waiting.value.suggested_filename == "b-bridges-b.html"
    assert "<mark>The Aller bridge opened in 1931.</mark>" in Path(waiting.value.path()).read_text("utf-8")
    expect(page.locator("#sidebar #past a[aria-current=page]")).to_contain_text("<b>Bridges</b>")
    page.keyboard.press("h")
    expect(page.locator("#find-thread")).to_be_focused()
    for text, count in (("nothing", 0), ("aller bridges", 1), ("1931", 1)):  # of the question, and of the answer
        page.locator("#find-thread").fill(text)
        expect(page.locator("#past a")).to_have_count(count)
    page.set_viewport_size(PHONE)
    expect(page.locator("#sidebar")).to_be_hidden()
    page.locator("#open-history").press("Enter")
    expect(page.locator("#history")).to_be_visible()
    page.locator("#history #past summary").press("Enter")
    page.locator("#past").get_by_role("button", name="Delete").press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".hero")).to_be_visible()  # it was the one shown
    page.locator("#open-history").press("Enter")
    expect(page.locator("#past")).to_have_text("No questions yet.")


def answer_with(reply: dict[str, Any] | None, route: Any) -> None:  # noqa: ANN401
    """Answer a request of the page; None loses the connection."""
    if reply is None:
        route.abort()
    else:
        route.fulfill(**reply)


def test_a_failed_question_stays_in_the_box(browse: Open, address: str) -> None:
    page = browse(expected="Failed to load resource")
    ask(page, QUESTION)
    box, failure = page.locator("#q"), page.locator(".failure")
    box.fill("how many arches has it?")
    for reply, message in (
        ({"status": 503, "json": {"message": "Too many wait."}}, "Too many wait."),
        ({"body": 'event: failed\ndata: {"message": "It fell."}\n\n'}, "It fell."),
        (None, "The connection to the server was lost."),
    ):
        page.unroute(f"{address}/ask")
        page.route(f"{address}/ask", partial(answer_with, reply))
        if failure.count():
            failure.get_by_role("button", name="Retry").click()
        else:
            box.press("Enter")
        expect(failure.get_by_role("alert")).to_have_text(message)
        expect(box).to_have_value("how many arches has it?")
        expect(page.locator(".turn")).to_have_count(2)
    page.reload()
    expect(failure).to_contain_text("no answer yet")
    page.unroute(f"{address}/ask")
    failure.get_by_role("button", name="Retry").click()
    expect(page.locator(".turn").last).to_contain_text("three arches")
    expect(page.locator(".turn")).to_have_count(2)
    expect(failure).to_have_count(0)
    expect(box).to_have_value("")


def test_the_box_grows_and_stays_where_it_is(slow_page: tuple[Page, SlowQuoter, Service]) -> None:
    page, quoter, _ = slow_page
    box = page.locator("#q")
    low = box.bounding_box()["height"]
    page.keyboard.type("Aller bridge")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("repaired")
    expect(box).to_have_value("Aller bridge\nrepaired")
    assert box.bounding_box()["height"] > low
    page.keyboard.press("Enter")
    expect(page.locator(".turn .writing")).to_have_count(1)
    assert box.bounding_box()["height"] == low
    places = [box.bounding_box()]
    for number in (1, 2, 3):
        quoter.go_on()
        expect(page.locator(".turn .sentence")).to_have_count(number)
        places.append(box.bounding_box())
    quoter.go_on()
    expect(page.locator(".summary .verdict").first).to_be_visible()
    assert all(place == places[0] for place in [*places, box.bounding_box()])
    assert page.evaluate("scrollY") == 0


def test_an_answer_that_grows_shows_its_citations_and_passages(
    slow_page: tuple[Page, SlowQuoter, Service], tmp_path: Path
) -> None:
    page, quoter, service = slow_page
    page.locator("#q").fill("Aller bridge repaired")
    page.keyboard.press("Enter")
    turn = page.locator(".turn")
    cites, panels, shown = (turn.locator(css) for css in (".sentence a.cite", ".passage", ".passage.shown"))
    expect(turn.locator(".writing")).to_have_count(1)
    quoter.go_on()
    expect(cites).to_have_text(["1"])
    expect(panels).to_have_count(1)  # only what is cited so far
    first = turn.locator(".sentence .words").first.text_content()
    expect(shown.locator("mark")).to_have_text([first])  # beside the sentence, while the answer grows
    cites.first.focus()
    service.replace("town", other_index(tmp_path / "other"))
    quoter.go_on()
    expect(cites).to_have_text(["1", "2"])
    expect(panels).to_have_count(2)
    quoter.go_on()
    expect(cites).to_have_text(["1", "2", "1"])
    expect(cites.first).to_be_focused()
    expect(shown.locator("mark:not(.other)")).to_have_text([first])
    expect(shown.locator("mark")).to_have_count(2)  # the last sentence cites another part of it
    expect(turn.locator(".meta")).to_have_count(0)
    quoter.go_on()
    expect(turn.locator(".meta")).to_have_count(1)
    expect(turn.locator(".summary .verdict").first).to_be_visible()
    expect(turn.locator(".writing")).to_have_count(0)
    expect(cites.first).to_be_focused()
    expect(cites).to_have_text(["1", "2", "1"])
    expect(panels).to_have_count(2)
    cites.nth(1).click()
    expect(shown.locator("mark")).to_have_text([turn.locator(".sentence .words").nth(1).text_content()])
    beside = " ".join(turn.locator(".beside").all_text_contents())
    assert beside
    assert "another index" not in beside


def test_a_growing_answer_is_stopped_with_what_it_has(slow_page: tuple[Page, SlowQuoter, Service]) -> None:
    page, quoter, _ = slow_page
    page.locator("#q").fill("Aller bridge repaired")
    page.keyboard.press("Enter")
    quoter.go_on()
    expect(page.locator(".turn a.cite")).to_have_text(["1"])
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".turn .warning")).to_have_text("Stopped.")
    expect(page.locator(".turn a.cite")).to_have_text(["1"])
    expect(page.locator(".turn .passage.shown mark")).to_have_count(1)
    expect(page.locator(".turn .writing")).to_have_count(0)


def test_a_model_that_failed_is_asked_again_and_contradicted(browse: Open, tmp_path: Path) -> None:
    says = "The Aller bridge opened in 1931 [1]. The Aller bridge has two arches of red brick [1]."
    model_system(ScriptedModel(ModelError("http://10.0.0.7: out of memory"), says))
    service = Service({"town": make_index(tmp_path)}, ["model"])
    service.judge_model.support("It is.", ["It is."])  # loads it
    with serving(create_app(service)) as url:
        page = browse(url=url)
        page.locator("#q").fill("How many arches has the Aller bridge?")
        page.keyboard.press("Enter")
        expect(page.locator(".turn .warning")).to_have_text("The language model did not answer.")
        expect(page.locator("#q")).to_have_value("How many arches has the Aller bridge?")
        page.get_by_role("button", name="Retry").click()
        judged = page.locator(".turn .sentence .judged")
        expect(judged).to_have_text(["✓ supported", "✗ contradicted"], timeout=20_000)
        expect(page.locator(".turn")).to_have_count(1)
        expect(page.locator("#q")).to_have_value("")
        expect(page.locator(".note").first).to_contain_text("The source says three, not two: “It has three arches")
        page.locator(".sentence a.cite").nth(1).click()
        expect(page.locator(".passage.shown mark:not(.other) strong")).to_have_text(["three"])
    service.close()


def test_an_answer_is_exported(browse: Open) -> None:
    page = browse(f"/?q={QUESTION}&index=town")
    page.locator(".actions .menu summary").last.click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="BibTeX").click()
    assert waiting.value.suggested_filename == "when-did-the-aller-bridge-open.bib"
    assert "@misc{" in Path(waiting.value.path()).read_text("utf-8")


def test_a_pasted_text_is_checked_by_keyboard(browse: Open) -> None:
    page = browse("/check")
    page.keyboard.press("/")
    page.keyboard.insert_text(PASTED)
    page.keyboard.press("Tab")
    if not page.locator("input[value=index]").evaluate("one => one === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#sources")).to_be_visible()
    page.locator("#sources").fill(SOURCES)
    page.locator("#question").press("Enter")
    judged = page.locator("#result .sentence .judged")
    expect(judged).to_have_text(["✗ contradicted", "✓ supported", "○ not supported"])
    expect(page.locator("#result u").first).to_have_text("1932")
    page.keyboard.press("n")
    expect(page.locator("#result .passage.shown")).to_contain_text("opened in 1931")


def test_two_systems_are_compared(browse: Open) -> None:
    page = browse("/compare")
    page.locator("#q").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator(".sides .summary .verdict")).to_have_count(2)
    expect(page.locator(".sides h2")).to_have_text(["reader@town", "extractive@town"])
    expect(page.locator(".sides .passage.shown")).to_have_count(2)


def test_hostile_passages_stay_text(browse: Open) -> None:
    page = browse("/?index=evil&system=extractive&q=When did the <img src=x onerror=alert(5)> bridge of Evil open?")
    expect(page.locator(".summary .verdict").first).to_be_visible()
    page.locator("a.cite").first.click()
    expect(page.locator(".passage.shown .here")).to_contain_text("<script>alert(1)</script>")
    assert page.locator("main img, main script").count() == 0
    page.locator(".passage.shown").get_by_role("link", name="Open as a page").click()
    expect(page.locator("#passage")).to_contain_text("[Click](javascript:alert(3))")


def test_without_javascript_a_form_gives_the_whole_answer(browse: Open) -> None:
    page = browse(java_script_enabled=False)
    page.locator("#q").fill(QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".summary")).to_have_text("All sentences are word for word from their sources.")
    expect(page.locator(".passage").first).to_be_visible()


# --- for everybody ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "viewport"), [("light", None), ("dark", None), ("light", PHONE), ("dark", PHONE)])
def test_axe_finds_nothing(browse: Open, scheme: str, viewport: dict[str, int] | None, address: str) -> None:
    options = {"color_scheme": scheme, "bypass_csp": True, "reduced_motion": "reduce"}
    page = browse(**options | ({"viewport": viewport} if viewport else {}))
    check(page)
    page.locator("#q").fill("What is the Aller bridge and who repaired it in 1987?")
    page.keyboard.press("Enter")
    expect(page.locator(".summary .verdict").first).to_be_visible()
    page.locator("a.cite").first.click()
    check(page)
    page.keyboard.press("Escape")
    for opened in ("#open-keys", "#open-history"):
        page.locator(opened).click()
        check(page)
        page.keyboard.press("Escape")
    page.goto(f"{address}/check")
    page.locator("#text").fill(PASTED)
    page.locator("input[value=sources]").check()
    page.locator("#sources").fill(SOURCES)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#result .verdict").first).to_be_visible()
    check(page)
    if scheme == "light":
        for path in ("/p/town/bridge.md%231?mark=4-10", "/documents", f"/compare?q={QUESTION}&whole=1"):
            page.goto(address + path)
            check(page)


def test_on_a_phone_the_passage_comes_up_and_goes(browse: Open) -> None:
    page = browse(f"/?q={QUESTION}&index=town", viewport=PHONE, has_touch=True)
    expect(page.locator(".summary .verdict").first).to_be_visible()
    expect(page.locator(".passage.open")).to_have_count(0)
    expect(page.locator(".judged").first).to_be_hidden()  # a quotation has no verdict, and no gap in its place
    cite = page.locator("a.cite").first
    cite.tap()
    passage = page.locator(".passage.open")
    expect(passage.locator("mark").first).to_be_in_viewport()
    passage.get_by_role("button", name="Back").tap()
    expect(passage).to_have_count(0)
    expect(cite).to_be_focused()


def test_tabs_and_box_fit_a_narrow_phone(browse: Open, address: str) -> None:
    page = browse(viewport={"width": 360, "height": 740}, has_touch=True)
    for path in ("/", "/check", "/compare", "/documents"):
        page.goto(address + path)
        tops = [tab.bounding_box() for tab in page.locator(".bar nav a").all()]
        assert len({(box["y"], box["height"]) for box in tops}) == 1
        assert max(box["height"] for box in tops) < 50  # one line
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto(address)
    page.locator("#q").fill(QUESTION)
    page.locator("#q").press("Enter")
    expect(page.locator(".summary .verdict").first).to_be_visible()
    assert page.locator("#ask").bounding_box()["height"] < 150
    page.locator("#thread-menu summary").tap()
    expect(page.locator("#thread-menu button").first).to_be_in_viewport(ratio=1)


def test_right_to_left_text_is_laid_out_as_such(browse: Open, tmp_path: Path) -> None:
    text = "הגשר על נהר האלר נפתח בשנת 1931. יש לו שלוש קשתות של לבנים אדומות."
    corpus = tmp_path / "he.jsonl"
    corpus.write_text(json.dumps({"_id": "he#1", "title": "הגשר", "text": text}) + "\n", "utf-8")
    service = Service({"he": rag.build_index(corpus, tmp_path / "he.index", format="beir")}, ["extractive"])
    with serving(create_app(service)) as url:
        page = browse(url=url)
        page.locator("#q").fill("מתי נפתח הגשר על נהר האלר?")
        page.keyboard.press("Enter")
        expect(page.locator(".summary .verdict").first).to_be_visible()
        for css in ("h2.question", ".sentence", ".here"):
            assert page.locator(css).first.evaluate("node => getComputedStyle(node).direction") == "rtl"
        words, cite = (page.locator(css).first.bounding_box() for css in (".sentence .words", ".sentence .cite"))
        assert cite["x"] + cite["width"] <= words["x"] + 1  # it follows the sentence, on its left


def test_a_citation_opens_the_original_at_its_words(browse: Open, tmp_path: Path) -> None:
    lines = [
        "The old ferry crosses the river twice a day.",
        "The bridge of Harnholm opened in 1931.",
        "It is of brick.",
    ]
    pages = [[], [Print(line, 500 - 30 * number, 80, 14) for number, line in enumerate(lines)]]
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "harnholm.pdf").write_bytes(make_pdf(pages))
    mill = "<script>document.title = 'evil'</script><p>The mill was built by Jonas Pell. It grinds rye."
    (docs / "mill.html").write_text(f"<title>Mill</title>{'<p>The river is cold in winter.' * 99}{mill}", "utf-8")
    service = Service({"town": rag.build_index(docs, tmp_path / "town.index")}, ["extractive"])
    with serving(create_app(service)) as url:
        page = browse("/?q=When did the bridge of Harnholm open?", url=url)
        page.locator(".sentence a.cite").first.click()
        panel = page.locator(".passage.shown")
        panel.get_by_text("Show in the PDF").click()
        expect(panel.locator(".pdf img")).to_have_js_property("naturalWidth", 1400)
        check(page)
        panel.get_by_role("link", name="Open as a page").click()
        expect(page.locator(".original figcaption")).to_have_text("Page 2 of 2")
        expect(page.locator(".original rect")).to_be_in_viewport()
        sheet, box = page.locator(".original image").bounding_box(), page.locator(".original rect").bounding_box()
        scale = sheet["width"] / 600  # pixels of a point
        left, top = (box["x"] - sheet["x"]) / scale, (box["y"] - sheet["y"]) / scale
        assert left == pytest.approx(80, abs=3)
        assert top == pytest.approx(800 - 470 - 11, abs=3)  # capitals of 14 points are 10 high
        assert top + box["height"] / scale == pytest.approx(800 - 470 + 4, abs=3)
        assert box["width"] / scale == pytest.approx(240, rel=0.1)
        check(page)
        page = browse("/?q=Who built the mill?", url=url, expected="Blocked script execution in")
        page.locator(".sentence a.cite").first.click()
        page.locator(".passage.shown footer").get_by_role("link", name="mill.html").click()
        page.wait_for_function("scrollY > 800")  # at the words, which are after many others
        assert "/view/town/mill.html" in page.url
        assert page.title() == "Mill"
    service.close()
