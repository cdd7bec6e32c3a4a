"""Marking words in a real browser: by keyboard, by mouse, and without JavaScript."""

from pathlib import Path

from rag.annotate.types import Entry, Evidence
from tests.rag.annotate.test_browser import SHOWN, Browser, Serve, press, wait
from tests.rag.annotate.test_browser import browser as browser
from tests.rag.annotate.test_browser import serve as serve
from tests.rag.annotate.web_study import BRIDGE, PASSAGE, make_study, ratings, several
from tests.rag.browser import NEEDS_CHROMIUM, check, expect

pytestmark = NEEDS_CHROMIUM


def marked(study: object, tmp_path: Path) -> list[list[str]]:
    rows = ratings(study, tmp_path)  # type: ignore[arg-type]
    return [[BRIDGE[span["start"] : span["end"]] for span in row["evidence"]] for row in rows]


def test_words_are_marked_by_keyboard_alone(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path, *several(PASSAGE, 3), scheme="words")
    page = browser.open(serve(study).link("ada"))
    wait(page)
    page.keyboard.press("y")
    expect(page.locator("#status")).to_contain_text("Mark the words that answer first")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#chosen li")).to_have_count(1)
    assert page.locator("#chosen button").inner_text() == "“ferry crossed” ×"
    assert page.locator("input[name=evidence]:checked").count() == 0
    check(page)
    press(page, "y")
    for key in ("ArrowDown", "Enter", "ArrowDown", "ArrowLeft", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    press(page, "y")
    page.keyboard.press("n")
    expect(page.locator("#press")).to_have_count(0)
    assert sorted(marked(study, tmp_path)) == [[], ["The Aller bridge opened in 1931.", "of"], ["ferry crossed"]]


def test_words_are_marked_by_mouse(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path, PASSAGE, scheme="words")
    page = browser.open(serve(study).link("ada"))
    wait(page)
    sentence = page.locator(".sentence").nth(1)
    box = sentence.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 1, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, middle, steps=5)
    page.mouse.up()
    expect(page.locator("#chosen li")).to_have_count(1)
    page.locator(".verdicts button").first.click()
    expect(page.locator("#press")).to_have_count(0)
    assert marked(study, tmp_path) == [["It has three arches of brick."]]


def test_a_drag_marks_whole_words(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path, PASSAGE, scheme="words")
    page = browser.open(serve(study).link("ada"))
    box = page.locator(".sentence").nth(1).bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=5)
    page.mouse.up()
    assert page.locator("#chosen button").inner_text() == "“three arches” ×"


def test_words_are_marked_without_javascript(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path, PASSAGE, scheme="words")
    page = browser.open(serve(study).link("ada"), java_script_enabled=False)
    page.locator(".sentence").nth(1).click()
    page.wait_for_timeout(SHOWN)
    page.locator(".verdicts button").first.click()
    page.wait_for_selector("h1:has-text('Thank')")
    assert marked(study, tmp_path) == [["It has three arches of brick."]]


def test_marks_stay_when_the_verdict_says_that_there_are_none(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path, PASSAGE, scheme="words")
    page = browser.open(serve(study).link("ada"))
    for key in ("ArrowDown", "Enter", "n"):
        page.keyboard.press(key)
    expect(page.locator("#status")).to_contain_text("Words are marked")
    expect(page.locator(".sentence input:checked")).to_have_count(1)
    page.keyboard.press("y")
    expect(page.locator("#press")).to_have_count(0)
    assert marked(study, tmp_path) == [["The Aller bridge opened in 1931."]]


def test_marks_and_reason_are_there_when_an_item_is_looked_at_again(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    study = make_study(tmp_path, PASSAGE, scheme="words")
    server = serve(study)
    page = browser.open(server.link("ada"))
    for key in ("ArrowDown", "Enter", "ArrowDown", "ArrowRight", "ArrowRight", "Enter", "r"):
        page.keyboard.press(key)
    page.keyboard.type("Both say it.")
    page.keyboard.press("Escape")
    page.keyboard.press("y")
    expect(page.locator("#press")).to_have_count(0)
    before = marked(study, tmp_path)
    page.goto(f"http://127.0.0.1:{server.port}/past")
    page.get_by_role("link", name="Look again").click()
    wait(page)
    expect(page.locator(".sentence input:checked")).to_have_count(1)
    assert page.locator("#chosen button").inner_text() == "“has” ×"
    check(page)
    page.keyboard.press("y")
    expect(page.locator("h1")).to_have_text("Earlier items")
    assert marked(study, tmp_path) == before
    assert [row["reason"] for row in ratings(study, tmp_path)] == ["Both say it."]


def test_marks_are_kept_without_javascript_when_an_item_is_looked_at_again(
    browser: Browser, serve: Serve, tmp_path: Path
) -> None:
    study = make_study(tmp_path, PASSAGE, scheme="words")
    server = serve(study)
    study.invite("ada")
    work = study.next("ada")
    assert work is not None
    span = Evidence(work.item.sources[0].id, 4, 16)
    study.verdict("ada", work.item.id, Entry("words", "words", press="once", evidence=[span]))
    page = browser.open(server.link("ada"), java_script_enabled=False)
    page.goto(f"http://127.0.0.1:{server.port}/past")
    page.get_by_role("link", name="Look again").click()
    expect(page.locator("#chosen input:checked")).to_have_count(1)
    page.wait_for_timeout(SHOWN)
    page.locator(".verdicts button").first.click()
    page.wait_for_selector("h1:has-text('Earlier items')")
    assert marked(study, tmp_path) == [["Aller bridge"]]
