"""The application in a real browser: by keyboard, without JavaScript, on a phone, with the server away, for axe."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("itsdangerous")
pytest.importorskip("jinja2")
pytest.importorskip("python_multipart")
pytest.importorskip("sqlalchemy")

import uvicorn

from rag.annotate.app import create_app
from rag.annotate.items import Item, Source, Turn
from rag.annotate.schemes import SCHEMES
from rag.annotate.study import Study
from rag.annotate.types import Entry
from tests.rag.annotate.test_app import EVIL, TRAINING, evil_item
from tests.rag.annotate.web_study import (
    ANSWER,
    BRIDGE,
    CAPTION,
    CITATION,
    PASSAGE,
    SENTENCE,
    SUMMARY,
    make_study,
    ratings,
    several,
)
from tests.rag.browser import NEEDS_CHROMIUM, PHONE, Page, check, expect

pytestmark = NEEDS_CHROMIUM


SHOWN = 600  # milliseconds; the server takes no answer that comes sooner than half a second


class Server:
    """The application of a study, on a port of its own that it keeps when it is stopped and started again."""

    def __init__(self, study: Study) -> None:
        self.study = study
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        config = uvicorn.Config(create_app(self.study), port=self.port, log_level="error", access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            self._thread.join(0.02)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def link(self, name: str, role: Any = "annotator") -> str:  # noqa: ANN401
        return f"http://127.0.0.1:{self.port}/in/{self.study.invite(name, role)}"


@dataclass
class Browser:
    """Signs people in, each in a browser of their own, and notes what the console says."""

    chromium: Any
    said: list[str]

    def open(self, link: str, **options: Any) -> Page:  # noqa: ANN401
        page = self.chromium.new_context(**{"viewport": {"width": 1280, "height": 800}} | options).new_page()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.goto(link)
        page.wait_for_url(re.compile(r"/(admin)?$"))
        if options.get("java_script_enabled", True):
            wait(page)
        return page


@pytest.fixture
def browser(chromium: Any) -> Iterator[Browser]:  # noqa: ANN401
    found = Browser(chromium, [])
    yield found
    for context in chromium.contexts:
        context.close()
    assert found.said == []  # no error, and nothing that the Content-Security-Policy stopped


Serve = Callable[[Study], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def start(study: Study) -> Server:
        servers.append(Server(study))
        return servers[-1]

    yield start
    for one in servers:
        one.stop()


def wait(page: Page) -> None:
    """Wait until the page takes an answer: its question was shown for half a second."""
    expect(page.locator("#view")).to_have_attribute("data-ready", "yes")


def press(page: Page, key: str) -> None:
    """Press a key, and wait until the server has it and the next question takes an answer."""
    item = page.locator("#press input[name=press]").get_attribute("value")
    page.keyboard.press(key)
    expect(page.locator(f"#press input[value='{item}']")).to_have_count(0)
    expect(page.locator("#status")).to_contain_text("Saved")
    wait(page)


def intercept_presses(page: Page, handler: Callable[[Any], None]) -> None:
    """Let ``handler`` decide what becomes of each press; Chromium is sure of it only in a page loaded afterwards."""
    page.route("**/press", handler)
    page.reload()
    wait(page)


# --- by keyboard ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "items"),
    [
        ("ais", [ANSWER, SUMMARY, CAPTION]),
        ("ais-direct", [ANSWER]),
        ("ais-likert", [ANSWER]),
        ("ais-sentences", [SENTENCE]),
        ("hagrid", [SENTENCE]),
        ("liu", [SENTENCE, CITATION]),
        ("trec", [CITATION]),
    ],
)
def test_a_study_by_keyboard_with_at_most_two_presses_an_item(
    browser: Browser, serve: Serve, tmp_path: Path, scheme: str, items: list[Item]
) -> None:
    study = make_study(tmp_path, *items, scheme=scheme)
    page = browser.open(serve(study).link("ada"))
    questions = {question.name: question for question in SCHEMES[scheme].questions}
    presses: dict[str, int] = {}
    while page.locator("#press").count():
        item = page.locator("#press input[name=item]").get_attribute("value")
        option = questions[page.locator("#press input[name=question]").get_attribute("value")].options[0]
        shown = page.locator(f".verdicts button[value='{option.value}'] kbd")
        assert shown.inner_text() == option.key
        press(page, option.key)
        presses[item] = presses.get(item, 0) + 1
    assert len(presses) == len(items)
    assert max(presses.values()) <= 2
    assert "Thank you" in page.inner_text("h1")
    rows = ratings(study, tmp_path)
    assert len(rows) == sum(presses.values())
    assert all(0 < row["seconds"] < 60 for row in rows)


# What comes so many milliseconds after the next question: the second click or key of a double one, or a form sent.
SECOND = {
    "key": """() => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "y", bubbles: true }))""",
    "pointer": """() => document.querySelector(".verdicts button").click()""",
    "form": """() => document.getElementById("press").requestSubmit(document.querySelector(".verdicts button"))""",
    "flag": """() => document.querySelector("#flags form button").click()""",
    "undo": """() => document.querySelector("#undo button").click()""",
}


@pytest.mark.parametrize("second", SECOND)
def test_a_double_click_does_not_answer_the_next_question(
    browser: Browser, serve: Serve, tmp_path: Path, second: str
) -> None:
    study = make_study(tmp_path)
    page = browser.open(serve(study).link("ada"))
    page.evaluate(f"""() => new MutationObserver((_, watching) => {{
        watching.disconnect();
        for (const wait of [0, 40, 120, 250, 400]) setTimeout({SECOND[second]}, wait);
    }}).observe(document.getElementById("view"), {{ childList: true }})""")
    page.keyboard.press("y")
    expect(page.locator("#question")).to_contain_text("fully supported")
    wait(page)
    assert [row["question"] for row in ratings(study, tmp_path)] == ["interpretable"]
    expect(page.locator("#question")).to_contain_text("fully supported")
    press(page, "y")
    assert [row["question"] for row in ratings(study, tmp_path)] == ["attributable", "interpretable"]


def test_a_double_click_of_the_mouse_answers_once(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path)
    page = browser.open(serve(study).link("ada"))
    for _ in range(3):
        page.locator(".verdicts button").first.dblclick(delay=20)
        expect(page.locator("#status")).to_contain_text("Saved")
        wait(page)
    assert len(ratings(study, tmp_path)) == 3


def test_a_question_takes_no_answer_before_its_source_was_in_view(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    item = replace(ANSWER, turns=tuple(Turn("user", f"What about bridge {n}?") for n in range(40)))
    study = make_study(tmp_path, item)
    page = browser.open(serve(study).link("ada"), viewport={"width": 390, "height": 380})  # too low for a dock
    page.keyboard.press("y")
    expect(page.locator("#question")).to_contain_text("fully supported")
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(800)
    page.keyboard.press("y")
    expect(page.locator("#status")).to_contain_text("Look at the source first")
    page.locator(".sources").scroll_into_view_if_needed()
    wait(page)
    press(page, "y")
    assert len(ratings(study, tmp_path)) == 2


def test_undo_flag_reason_guidelines_and_keys_by_keyboard(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path)
    page = browser.open(serve(study).link("ada"))
    page.keyboard.press("g")
    expect(page.locator("#guide h1")).to_have_text("Guidelines")
    page.keyboard.press("y")  # no verdict while they are open
    page.keyboard.press("g")
    expect(page.locator("#guide")).not_to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("Escape")
    expect(page.locator("#guide")).not_to_be_visible()
    page.keyboard.press("?")
    expect(page.locator("#menu .panel")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#menu .panel")).not_to_be_visible()
    press(page, "y")
    press(page, "u")
    page.keyboard.press("r")
    page.keyboard.type("nothing here is clear")  # y, n, g, u and x among the letters
    page.keyboard.press("Escape")
    press(page, "n")
    first = page.locator("#press input[name=item]").get_attribute("value")
    page.keyboard.press("x")
    expect(page.locator("#flags .panel")).to_be_visible()
    key = page.locator("#flags button[value=malformed] kbd").inner_text()
    press(page, key)
    assert page.locator("#press input[name=item]").get_attribute("value") != first
    rows = ratings(study, tmp_path)
    assert {(row["question"], row["value"], row["reason"], row["revised"]) for row in rows} == {
        ("interpretable", "no", "nothing here is clear", True),
        ("flag", "malformed", "", False),
    }


def test_training_by_keyboard(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    page = browser.open(serve(make_study(tmp_path, training=TRAINING, pass_mark=1.0)).link("ada"))
    for key in ("y", "y", "y", "n"):
        press_of = page.locator("#press input[name=press]").get_attribute("value")
        page.keyboard.press(key)
        expect(page.locator("#question")).to_contain_text("Right.")
        wait(page)
        page.keyboard.press("Enter")
        expect(page.locator("#press input[name=press]")).not_to_have_attribute("value", press_of or "")
        wait(page)
    expect(page.locator(".where")).to_have_text("0 done, 3 left")


def test_a_break_does_not_count_and_the_key_that_ends_it_answers_nothing(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    study = make_study(tmp_path)
    page = browser.open(serve(study).link("ada"))
    page.keyboard.press("z")
    expect(page.locator("#paused")).to_be_visible()
    page.keyboard.press("y")  # nothing is answered in a break
    page.wait_for_timeout(3000)
    page.keyboard.press("z")
    expect(page.locator("#paused")).not_to_be_visible()
    page.keyboard.press("y")
    wait(page)
    assert ratings(study, tmp_path) == []
    press(page, "n")
    (row,) = ratings(study, tmp_path)
    assert 0.5 <= row["seconds"] < 3
    page.locator("button.pause").first.click()
    page.keyboard.press("Escape")
    expect(page.locator("#paused")).not_to_be_visible()


def test_a_past_item_is_revised_by_keyboard_and_axe_finds_nothing(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    study = make_study(tmp_path)
    page = browser.open(serve(study).link("ada"), bypass_csp=True)
    page.keyboard.press("w")
    page.keyboard.type("Which bridge? yes, no")
    page.keyboard.press("Escape")
    press(page, "n")
    page.keyboard.press("h")
    page.wait_for_url(re.compile("/past$"))
    check(page)
    page.locator("article a").click()
    wait(page)
    check(page)
    page.keyboard.press("y")
    expect(page.locator("#question")).to_contain_text("fully supported")
    page.wait_for_url(re.compile(r"\d/$"))
    wait(page)
    press(page, "y")
    assert {(row["question"], row["value"]) for row in ratings(study, tmp_path)} == {
        ("interpretable", "yes"),
        ("attributable", "yes"),
    }
    assert study.past("ada")[0].comment == "Which bridge? yes, no"
    server = serve(study)
    boss = browser.open(server.link("boss", "admin"), bypass_csp=True)
    for path in ("/admin/verdicts", "/admin/item?id=q1", "/admin/item?id=q1-1"):
        boss.goto(f"http://127.0.0.1:{server.port}{path}")
        check(boss)


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_a_missing_reason_is_asked_for(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path, reasons="required")
    page = browser.open(serve(study).link("ada"))
    page.keyboard.press("n")
    expect(page.locator("#status")).to_contain_text("Write a reason first")
    page.keyboard.type("It goes round in a circle.")
    page.keyboard.press("Escape")
    press(page, "n")
    assert [row["reason"] for row in ratings(study, tmp_path)] == ["It goes round in a circle."]


LETTERS = (
    "A \U0001f600 cafe\u0301 \U0001d504\U0001d505 中文 \U0001f469\u200d\U0001f52c one. "
    "Two & <three>\r\nfour \u0645\u0631\u062d\u0628\u0627 five."
)


@pytest.fixture
def letters(tmp_path: Path) -> Study:
    return make_study(tmp_path, replace(ANSWER, sources=(Source("p:1", LETTERS),)), evidence="required")


def test_sentences_are_chosen_with_arrows_and_enter(
    browser: Browser, serve: Serve, letters: Study, tmp_path: Path
) -> None:
    page = browser.open(serve(letters).link("ada"))
    press(page, "y")
    page.keyboard.press("y")
    expect(page.locator("#status")).to_contain_text("Choose the sentences that support it first")
    for key in ("ArrowDown", "ArrowDown", "Enter", "ArrowUp", "Enter", "Enter"):
        page.keyboard.press(key)
    press_key = page.locator("#press input[name=press]").get_attribute("value")
    page.keyboard.press("y")
    expect(page.locator(f"#press input[value='{press_key}']")).to_have_count(0)
    (row,) = [one for one in ratings(letters, tmp_path) if one["question"] == "attributable"]
    (span,) = row["evidence"]
    assert LETTERS[span["start"] : span["end"]].startswith("Two & <three>")
    assert span["passage"] == "p:1"


SELECT = """([start, end]) => {
  // UTF-16 offsets in the text of the passage; sets the selection as a person would
  const walker = document.createTreeWalker(document.querySelector(".passage"), NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let at = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (at <= start && start <= at + node.length) range.setStart(node, start - at);
    if (at <= end && end <= at + node.length) { range.setEnd(node, end - at); break; }
    at += node.length;
  }
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}"""


def test_selected_text_is_stored_with_offsets_in_characters(
    browser: Browser, serve: Serve, letters: Study, tmp_path: Path
) -> None:
    page = browser.open(serve(letters).link("ada"))
    press(page, "y")
    assert page.locator(".passage").evaluate("one => one.textContent") == LETTERS
    wanted = [
        "\U0001f600",
        "cafe\u0301",
        "\U0001d505 中文 \U0001f469\u200d\U0001f52c",
        "one. Two & <three>\r\nfour",
        "\u0645\u0631\u062d\u0628\u0627",
        "five.",
    ]
    for text in wanted:
        start = len(LETTERS[: LETTERS.index(text)].encode("utf-16-le")) // 2
        end = start + len(text.encode("utf-16-le")) // 2
        page.evaluate(SELECT, [start, end])
        page.locator("#choose").click()
    assert page.locator("#chosen li").count() == len(wanted)
    page.evaluate(SELECT, [0, 1])
    page.locator("#choose").click()
    page.locator("#chosen button").last.click()  # and not chosen after all
    press_key = page.locator("#press input[name=press]").get_attribute("value")
    page.keyboard.press("y")
    expect(page.locator(f"#press input[value='{press_key}']")).to_have_count(0)
    (row,) = [one for one in ratings(letters, tmp_path) if one["question"] == "attributable"]
    assert {LETTERS[one["start"] : one["end"]] for one in row["evidence"]} == set(wanted)


def test_text_is_chosen_by_dragging_the_mouse_and_a_sentence_by_a_click(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    study = make_study(tmp_path)
    page = browser.open(serve(study).link("ada"))
    press(page, "y")
    box = """text => {
      const sentences = [...document.querySelectorAll(".passage label")];
      const node = sentences.find((one) => one.textContent.includes(text)).lastChild;
      const range = document.createRange();
      range.setStart(node, node.data.indexOf(text));
      range.setEnd(node, node.data.indexOf(text) + text.length);
      const { left, right, top, bottom } = range.getBoundingClientRect();
      return [left + 0.5, right - 0.5, (top + bottom) / 2];
    }"""
    left, right, middle = page.evaluate(box, "ferry crossed")
    page.mouse.move(left, middle)
    page.mouse.down()
    page.mouse.move(right, middle, steps=5)
    page.mouse.up()
    expect(page.locator("#chosen li")).to_have_count(1)
    assert page.locator("input[name=evidence]:checked").count() == 0
    page.locator("label.sentence", has_text="three arches").click()
    press(page, "y")
    (row,) = [one for one in ratings(study, tmp_path) if one["question"] == "attributable"]
    assert sorted(BRIDGE[one["start"] : one["end"]] for one in row["evidence"]) == [
        "It has three arches of brick.",
        "ferry crossed",
    ]


# --- when something is amiss ------------------------------------------------------------------------------------------


def test_a_press_is_kept_while_the_server_is_away_and_recorded_once(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    study = make_study(tmp_path)
    server = serve(study)
    page = browser.open(server.link("ada"))
    server.stop()
    page.keyboard.press("y")
    expect(page.locator("#status")).to_contain_text("Not saved yet")
    page.keyboard.press("n")  # nothing else is taken meanwhile
    server.start()
    expect(page.locator("#status")).to_contain_text("Saved: Yes", timeout=20_000)
    expect(page.locator("#question")).to_contain_text("fully supported")
    assert [(row["question"], row["value"]) for row in ratings(study, tmp_path)] == [("interpretable", "yes")]
    assert all("ERR_CONNECTION_REFUSED" in line for line in browser.said)
    browser.said.clear()


def test_a_press_whose_answer_is_lost_is_recorded_once(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path)
    page = browser.open(serve(study).link("ada"))
    lost: list[str] = []

    def lose(route: Any) -> None:  # noqa: ANN401
        if lost:
            route.continue_()
            return
        lost.append(route.fetch().text())  # the server has it; the browser never hears
        route.abort()

    intercept_presses(page, lose)
    page.keyboard.press("y")
    expect(page.locator("#status")).to_contain_text("Saved: Yes", timeout=20_000)
    assert len(lost) == 1
    assert len(ratings(study, tmp_path)) == 1
    browser.said.clear()


def test_a_press_that_was_not_sent_is_sent_after_a_reload(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path)
    page = browser.open(serve(study).link("ada"))
    page.on("dialog", lambda dialog: dialog.accept())
    intercept_presses(page, lambda route: route.abort())
    page.keyboard.press("y")
    expect(page.locator("#status")).to_contain_text("Not saved yet")
    page.unroute("**/press")
    page.reload()
    expect(page.locator("#status")).to_contain_text("Saved: Yes")
    assert len(ratings(study, tmp_path)) == 1
    browser.said.clear()


def test_a_press_after_a_revoked_link_is_sent_after_the_new_one(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path)
    server = serve(study)
    page = browser.open(server.link("ada"))
    study.revoke("ada")
    page.keyboard.press("y")
    expect(page.locator("main")).to_contain_text("link is not valid")
    page.goto(server.link("bob"))
    expect(page.locator("#question")).to_contain_text("interpretable")
    wait(page)
    assert ratings(study, tmp_path) == []  # it is ada's press, not bob's
    page.goto(server.link("ada"))
    expect(page.locator("#status")).to_contain_text("Saved: Yes")
    assert [(row["annotator"], row["value"]) for row in ratings(study, tmp_path)] == [("ada", "yes")]
    assert all("401" in line for line in browser.said)
    browser.said.clear()


def test_a_press_with_the_form_of_an_ended_session_is_kept_and_sent_after_a_reload(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    study = make_study(tmp_path)
    server = serve(study)
    older = browser.open(server.link("ada"))
    newer = older.context.new_page()
    newer.goto(server.link("ada"))  # the other tab has the new session now, and a form of the one before
    expect(newer.locator("#question")).to_contain_text("interpretable")
    older.keyboard.press("n")
    expect(older.locator("main")).to_contain_text("reload the page")
    older.reload()
    expect(older.locator("#status")).to_contain_text("Saved: No")
    assert [row["value"] for row in ratings(study, tmp_path)] == ["no"]
    assert all("403" in line for line in browser.said)
    browser.said.clear()


def test_the_older_tab_is_told_and_shows_what_is_asked_now(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path)
    older = browser.open(serve(study).link("ada"))
    newer = older.context.new_page()
    newer.goto(older.url)
    wait(newer)
    press(newer, "y")
    older.keyboard.press("n")
    expect(older.locator("[role=alert]")).to_contain_text("is not asked now")
    expect(older.locator("#status")).to_contain_text("Not saved: ")
    expect(older.locator("#status")).to_contain_text("is not asked now")
    expect(older.locator("#question")).to_contain_text("fully supported")
    assert [(row["question"], row["value"]) for row in ratings(study, tmp_path)] == [("interpretable", "yes")]
    assert all("409" in line for line in browser.said)
    browser.said.clear()


@pytest.mark.parametrize("kind", ["qa", "table"])
def test_hostile_texts_do_nothing(browser: Browser, serve: Serve, tmp_path: Path, kind: str) -> None:
    study = make_study(tmp_path, evil_item(kind), highlight=True, guidelines="ours.md")
    (study.folder / "ours.md").write_text(EVIL, "utf-8")
    page = browser.open(serve(study).link("ada"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.keyboard.press("g")
    expect(page.locator("#guide")).to_be_visible()
    page.keyboard.press("Escape")
    press(page, "y")
    press(page, "y")
    assert page.evaluate("window.broken") is None
    assert all(url.startswith("http://127.0.0.1:") for url in asked)


def test_everything_works_without_javascript(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path, evidence="required")
    page = browser.open(serve(study).link("ada"), java_script_enabled=False)
    page.wait_for_timeout(SHOWN)
    page.locator("button[value=yes]").click()
    page.locator("label.sentence", has_text="three arches").click()
    page.locator("#reasons summary").click()
    page.locator("#reason").fill("Counted.")
    page.locator("#reasons summary").click()
    page.wait_for_timeout(SHOWN)
    page.locator("button[value=yes]").click()
    page.locator("#flags summary").click()
    page.wait_for_timeout(SHOWN)
    page.locator("#flags button[value=malformed]").click()
    page.locator("#undo button").click()
    page.locator("#guidelines").click()
    assert page.locator("h1").first.inner_text() == "Guidelines"
    rows = {(row["question"], row["value"]): row for row in ratings(study, tmp_path)}
    (span,) = rows["attributable", "yes"]["evidence"]
    assert BRIDGE[span["start"] : span["end"]] == "It has three arches of brick."
    assert rows["attributable", "yes"]["reason"] == "Counted."
    assert ("flag", "malformed") not in rows


# --- on a phone, and for everybody ------------------------------------------------------------------------------------

LONG = " ".join(f"Sentence {n} of a long source says that the bridge is old." for n in range(80))


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_a_whole_item_is_on_the_screen_of_a_phone(browser: Browser, serve: Serve, tmp_path: Path, scheme: str) -> None:
    unit = SCHEMES[scheme].units[-1]
    item = {"answer": ANSWER, "sentence": SENTENCE, "citation": CITATION, "passage": PASSAGE}[unit]
    item = replace(item, sources=(Source("p1", LONG, "A long source"),), turns=())
    page = browser.open(serve(make_study(tmp_path, item, scheme=scheme)).link("ada"), viewport=PHONE, has_touch=True)
    while page.locator("#press").count():
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
        for one in page.locator(
            ".dock button:visible, .dock summary:visible, #question, .answer, .top a:visible"
        ).all():
            box = one.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= PHONE["width"]
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= PHONE["height"]
        assert page.evaluate("(one => one.scrollHeight <= one.clientHeight + 1)(document.querySelector('.context'))")
        source = page.locator(".sources")
        if source.count():
            assert source.bounding_box()["height"] >= 160
            assert source.evaluate("one => one.scrollHeight > one.clientHeight")
        page.locator(f".verdicts button{':not([data-evidence])' if unit == 'passage' else ''}").first.tap()
        expect(page.locator("#status")).to_contain_text("Saved")
        page.wait_for_timeout(50)
        for one in page.locator(".tools > * .button:visible, .tools form button:visible").all():
            assert one.bounding_box()["x"] + one.bounding_box()["width"] <= page.locator("#status").bounding_box()["x"]


@pytest.mark.parametrize(("scheme", "viewport"), [("light", None), ("dark", PHONE)])
def test_axe_finds_nothing(
    browser: Browser, serve: Serve, tmp_path: Path, scheme: str, viewport: dict[str, int] | None
) -> None:
    study = make_study(tmp_path, *several(ANSWER, 2), replace(CAPTION, id="t9"), highlight=True, training=TRAINING[:1])
    server = serve(study)
    options = {"color_scheme": scheme, "bypass_csp": True} | ({"viewport": viewport} if viewport else {})
    page = browser.open(server.link("ada"), **options)
    check(page)
    for _ in range(2):
        page.keyboard.press("y")
        expect(page.locator("#next")).to_be_visible()
        wait(page)
        check(page)
        page.keyboard.press("Enter")
        expect(page.locator("#press")).to_be_visible()
        wait(page)
    while page.locator("#press").count():
        press(page, "y")
        check(page)
        if page.locator(".sources").count():
            for key in ("ArrowDown", "Enter", "x", "Escape", "r", "Escape", "?"):
                page.keyboard.press(key)
                if key not in ("Escape", "ArrowDown"):
                    check(page)
            page.keyboard.press("Escape")
            press(page, "y")
    page.goto(page.url + "guidelines")
    check(page)
    study.block("ada", "Too fast.")
    page.goto(f"http://127.0.0.1:{server.port}/")
    check(page)
    boss = browser.open(server.link("boss", "admin"), **options)
    check(boss)
    boss.goto(boss.url + "/audit")
    check(boss)
    boss.goto(f"http://127.0.0.1:{server.port}/admin/ties")
    check(boss)
    boss.goto(f"http://127.0.0.1:{server.port}/admin")
    boss.locator("#id").fill("eve")
    boss.locator(".row button").click()
    boss.locator("#link").wait_for()
    check(boss)


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, PHONE], ids=["desk", "phone"])
def test_a_tie_is_decided_by_keyboard_and_axe_finds_nothing(
    browser: Browser, serve: Serve, tmp_path: Path, viewport: dict[str, int]
) -> None:
    study = make_study(tmp_path, CITATION, scheme="trec")
    for name, value in {"ada": "full", "bob": "none", "eve": "partial"}.items():
        study.invite(name)
        work = study.next(name)
        assert work
        study.verdict(
            name, work.item.id, Entry("support", value, press=work.press, reason=f"The reason for {value}. " * 20)
        )
    server = serve(study)
    boss = browser.open(server.link("boss", "admin"), viewport=viewport, bypass_csp=True)
    boss.goto(f"http://127.0.0.1:{server.port}/admin/ties")
    expect(boss.locator(".vote")).to_have_count(3)
    wait(boss)
    check(boss)
    for one in boss.locator(".verdicts button").all():
        assert one.bounding_box()["y"] + one.bounding_box()["height"] <= viewport["height"]
    boss.keyboard.press("p")
    expect(boss.locator("main")).to_contain_text("no tie to decide")
    assert study.ties() == []
