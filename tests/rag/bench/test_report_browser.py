"""The page of a report in a real browser, where Chromium is installed: drawn, used by keyboard, never broken out of.

The first test needs only Chromium. The others also need the Python package `playwright` (and one `axe-core-python`).
"""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rag.bench.items import Item, read_items
from rag.bench.report import write_report
from scripts.browser import CHROMIUM
from tests.rag.bench.folders import edit, make_run

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: chromium)")]

N = 120  # three pages
Page = Any  # playwright's, where it is installed


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("towns") / "run", n=N, human=True)


@pytest.fixture(scope="module")
def address(run_folder: Path) -> str:
    return write_report(run_folder).page.as_uri()


@pytest.fixture(scope="module")
def items(run_folder: Path) -> list[tuple[Item, Item]]:
    both = (read_items(run_folder / label / "items.jsonl") for label in ("reader", "extractive"))
    return list(zip(*both, strict=True))


def test_chromium_draws_hostile_questions_as_text(address: str, items: list[tuple[Item, Item]]) -> None:
    assert CHROMIUM
    opened = "&".join(f"open={quote(one.id)}" for one, _ in items[:11] if "\ud800" not in one.id)
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"]
    drawn = subprocess.run(
        [*command, f"{address}#{opened}"], capture_output=True, text=True, timeout=120, check=True, encoding="utf-8"
    ).stdout
    assert drawn.count('class="detail"') == 10
    body = drawn[: drawn.index('<script type="text/plain" id="data"')]
    assert "&lt;script&gt;window.broken = 1&lt;/script&gt;" in body
    assert not re.search(r"<(script|img src=.?x)", body)
    assert "javascript:" not in "".join(re.findall(r'href="[^"]*"', body))
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", body)
    assert "\U0001f600" in body  # astral characters are whole


@pytest.fixture(scope="module")
def browser_page(address: str) -> Iterator[Page]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        browser.close()


def visit(page: Page, url: str) -> None:
    """Open the page anew, and wait for its table, which is unpacked after the page has loaded."""
    page.goto("about:blank")
    page.goto(url)
    page.locator("#count:not(:empty)").wait_for()


@pytest.fixture
def page(browser_page: Page, address: str) -> Iterator[Page]:
    said: list[str] = []
    browser_page.on("console", lambda message: said.append(message.text))
    browser_page.on("pageerror", lambda error: said.append(str(error)))
    visit(browser_page, address)
    yield browser_page
    assert said == []
    assert browser_page.evaluate("window.broken") is None


def shown(page: Page) -> int:
    found = re.match(r"([\d,]+)", page.locator("#count").inner_text())
    assert found
    return int(found[1].replace(",", ""))


def counted(page: Page, n: int) -> None:
    """Wait until so many questions are shown: a search waits for the next letter."""
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(page.locator("#count")).to_have_text(re.compile(f"^{n} of"))


def test_no_request_leaves_the_page(browser_page: Page, address: str) -> None:
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    visit(browser_page, f"{address}#open=q0")
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []


def test_a_phone_shows_the_leaderboard_first(browser_page: Page, tmp_path: Path) -> None:
    make = partial(make_run, n=60, benchmark="open-nq-pool", hostile=False)
    ours = make(tmp_path / "ours", systems=["reader", "extractive"])
    theirs = make(tmp_path / "theirs", systems=["asqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42"])
    edit(next(theirs.glob("*/metrics.json")), predictions={"missing": {"count": 0}})
    url = write_report(ours, theirs, output_folder=tmp_path / "out").page.as_uri()
    context = browser_page.context.browser.new_context(viewport={"width": 390, "height": 844})
    phone = context.new_page()
    phone.goto(url)
    rows = phone.locator("table.board tbody tr")
    assert rows.count() == 3
    for place in range(3):
        box = rows.nth(place).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 844  # without scrolling
    assert rows.first.locator("td").first.is_visible()
    assert not rows.first.locator("td.more").first.is_visible()
    assert phone.locator(".published").bounding_box()["y"] > rows.last.bounding_box()["y"]
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def test_filters_show_the_right_questions(page: Page, items: list[tuple[Item, Item]]) -> None:
    assert shown(page) == N
    assert page.locator("button.open").count() == 50
    page.locator("input[value=wrong_attributed]").check()
    assert shown(page) == sum("wrong_attributed" in (a.way, b.way) for a, b in items)
    page.locator("#system").select_option("extractive")
    assert shown(page) == sum(b.way == "wrong_attributed" for _, b in items)
    page.locator("#clear").click()
    page.locator("#differs").check()
    assert shown(page) == sum(a.way != b.way for a, b in items)
    page.locator("#clear").click()
    page.locator("#winner").select_option("reader")
    page.locator("#loser").select_option("extractive")
    good = ("right_attributed", "refused_right")
    assert shown(page) == sum(a.way in good and b.way not in good for a, b in items)
    page.locator("#clear").click()
    page.locator("#q").fill("BRIDGE OF BEXLEY (1)")
    counted(page, 1)
    page.locator("#q").fill("no such words")
    page.locator("#none").wait_for()
    assert shown(page) == 0


def test_the_address_keeps_the_view(page: Page, address: str, items: list[tuple[Item, Item]]) -> None:
    page.locator("input[value=right_attributed]").check()
    page.locator("#system").select_option("reader")
    page.locator("button.open").nth(1).click()
    url = page.url
    assert "ways=right_attributed" in url
    assert "system=reader" in url
    before = shown(page)
    visit(page, url)
    assert shown(page) == before == sum(a.way == "right_attributed" for a, _ in items)
    assert page.locator("tr.detail").count() == 1
    assert page.locator("#system").input_value() == "reader"
    visit(page, f"{address}#group=9&system=%3Cscript%3E&ways=__proto__,x&page=-4&kind=none&open=__proto__")
    assert page.locator("#system").input_value() == ""
    assert shown(page) == 0  # no question is of that kind


def test_everything_works_by_keyboard(page: Page, items: list[tuple[Item, Item]]) -> None:
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.dataset.place") == "0"
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.locator("tr.detail").count() == 1
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    page.keyboard.press("o")
    assert page.locator("tr.detail").count() == 0
    page.keyboard.press("o")
    page.keyboard.press("Escape")
    assert page.locator("tr.detail").count() == 0
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.dataset.place") == "50"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.dataset.place") == "49"
    page.keyboard.press("/")
    page.keyboard.type("jokx")
    counted(page, 0)
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    assert shown(page) == N
    # The filters are reached by Tab, and changed by Space and the arrows.
    page.locator("#q").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "system"
    page.keyboard.press("ArrowDown")
    assert page.locator("#system").input_value() == "reader"
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "right_attributed":
            break
    page.keyboard.press("Space")
    assert shown(page) == sum(a.way == "right_attributed" for a, _ in items)


def test_spans_and_verdicts_are_marked(page: Page, items: list[tuple[Item, Item]]) -> None:
    unsupported = [(n, one) for n, (one, _) in enumerate(items[:50]) if one.sentences and one.sentences[-1].unsupported]
    place, item = max(unsupported, key=lambda pair: "\U0001f600" in pair[1].sentences[-1].text)
    page.locator(f"button.open[data-place='{place}']").click()
    panel = page.locator(".panel").first
    cited = {cite.passage for sentence in item.sentences for cite in sentence.citations}
    assert panel.locator(".passage").count() == len(cited)
    for mark in panel.locator("mark").all_inner_texts():
        assert re.fullmatch(r"It was built in \d{4}\.", mark)
    last = item.sentences[-1]
    (start, end), *_ = last.unsupported
    assert panel.locator("u.unsupported").count() == 1
    assert (
        len(panel.locator("u.unsupported").text_content() or "") == len(last.text[start:end].encode("utf-16-le")) // 2
    )
    words = {"not_attributable": "not supported", "contradictory": "contradicted", "undecided": "undecided"}
    assert words[last.verdict] in panel.locator(".verdict:not(.people)").last.inner_text()


def test_axe_finds_nothing(page: Page, address: str) -> None:
    axe = Path(pytest.importorskip("axe_core_python").__file__ or "").parent / "axe.min.js"
    browser = page.context.browser
    assert browser
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
        context = browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": 844},
            bypass_csp=True,  # axe itself is a script from elsewhere
        )
        other = context.new_page()
        other.goto(address)
        other.locator("button.open").first.click()
        other.evaluate(axe.read_text("utf-8"))
        found = other.evaluate("axe.run()")["violations"]
        assert found == [], json.dumps([(one["id"], one["nodes"][0]["html"]) for one in found])
        assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
        context.close()
