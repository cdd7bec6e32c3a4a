"""Marking words in a real browser: by keyboard, by mouse, and without JavaScript."""

from pathlib import Path

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


def test_words_are_marked_without_javascript(browser: Browser, serve: Serve, tmp_path: Path) -> None:
    study = make_study(tmp_path, PASSAGE, scheme="words")
    page = browser.open(serve(study).link("ada"), java_script_enabled=False)
    page.locator(".sentence").nth(1).click()
    page.wait_for_timeout(SHOWN)
    page.locator(".verdicts button").first.click()
    page.wait_for_selector("h1:has-text('Thank')")
    assert marked(study, tmp_path) == [["It has three arches of brick."]]
