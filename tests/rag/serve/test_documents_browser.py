"""The tab Documents in a real browser: by keyboard, by dropping, without JavaScript, on a phone, and for axe."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")
pytest.importorskip("jinja2")
pytest.importorskip("mcp")
pytest.importorskip("prometheus_client")

from rag.api import add_to_index
from rag.serve.app import create_app
from rag.serve.keys import Keys
from rag.serve.service import Service
from scripts.browser import serving
from tests.rag.browser import NEEDS_CHROMIUM, PHONE, Page, check, expect
from tests.rag.serve.served import make_index

pytestmark = NEEDS_CHROMIUM
Open = Callable[..., Page]

MILL = "# The mill\n\nThe mill of Oldenby was built by Karl Lind in 1820.\n"
# Playwright cannot drop files: this makes the events of the browser. It runs in the page's isolated world.
DROP = """([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  for (const kind of ["dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def browse(chromium: Any, tmp_path: Path) -> Iterator[Open]:  # noqa: ANN401
    """Open the page of an index of two documents."""
    said: list[str] = []
    service = Service({"town": make_index(tmp_path)})
    with serving(create_app(service, uploads=("town",))) as url:

        def open_page(path: str = "/documents", **options: object) -> Page:
            page = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}} | options).new_page()
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.goto(url + path)
            return page

        yield open_page
        for context in chromium.contexts:
            context.close()
    assert said == []


def test_documents_are_added_replaced_and_deleted_by_keyboard(browse: Open, tmp_path: Path) -> None:
    (tmp_path / "mill.md").write_text(MILL, "utf-8")
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.7")
    page = browse()
    expect(page.locator(".count")).to_have_text("2 documents, 4 passages")
    page.locator("#files").set_input_files([tmp_path / "mill.md", tmp_path / "bad.pdf"])
    page.locator("#files").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#changes [data-state=done]")).to_contain_text("mill.md", timeout=30_000)
    expect(page.locator("#changes [data-state=failed]")).to_contain_text("✗ not added bad.pdf", timeout=30_000)
    expect(page.locator(".count")).to_have_text("3 documents, 5 passages")  # without loading the page again
    expect(page.locator("#sending li")).to_have_count(0)
    (tmp_path / "mill.md").write_text(MILL.replace("1820", "1840"), "utf-8")
    page.locator(".change summary").focus()
    page.keyboard.press("Enter")
    page.get_by_label("New version").set_input_files(tmp_path / "mill.md")
    page.get_by_role("button", name="Replace").press("Enter")
    expect(page.locator(".change summary")).to_be_focused()
    expect(page.locator("#changes [data-state=done]").first).to_contain_text("✓ replaced", timeout=30_000)
    page.goto(page.url.replace("/documents", "/?q=Who built the mill of Oldenby, and when?&index=town"))
    expect(page.locator(".turn")).to_contain_text("1840")
    page.go_back()
    page.locator(".change summary").press("Enter")
    page.get_by_role("button", name="Delete mill.md").press("Enter")
    expect(page.locator(".count")).to_have_text("2 documents, 4 passages", timeout=30_000)
    expect(page.locator("#library-title")).to_be_focused()  # as what had the focus is gone


def test_a_dropped_file_shows_its_progress_and_is_cancelled(browse: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        begun.set()
        may_go_on.wait(60)
        return add_to_index(*arguments, **options)

    monkeypatch.setattr("rag.serve.uploads.add_to_index", slowly)
    page = browse()
    page.evaluate(DROP, ["mill.md", MILL])
    expect(page.locator("#changes [data-state=running]")).to_contain_text("mill.md")
    assert begun.wait(30)
    expect(page.locator("#changes progress")).to_be_visible()
    page.get_by_role("button", name="Cancel mill.md").click()
    may_go_on.set()
    expect(page.locator("#changes [data-state=cancelled]")).to_contain_text("mill.md", timeout=30_000)
    expect(page.locator(".count")).to_have_text("2 documents, 4 passages")


def test_a_file_that_is_being_sent_shows_its_progress_and_is_cancelled(browse: Open, tmp_path: Path) -> None:
    (tmp_path / "large.md").write_text(MILL * 200_000, "utf-8")
    (tmp_path / "mill.md").write_text(MILL, "utf-8")
    page = browse()
    network = page.context.new_cdp_session(page)
    conditions = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 1_000_000}
    network.send("Network.emulateNetworkConditions", conditions)
    page.locator("#files").set_input_files([tmp_path / "large.md", tmp_path / "mill.md"])
    page.get_by_role("button", name="Add to town").click()
    expect(page.locator("#sending li")).to_have_count(2)
    expect(page.locator("#sending li").nth(1)).to_contain_text("waiting")
    page.get_by_role("button", name="Cancel large.md").click()
    expect(page.locator("#sending")).to_contain_text("not sent: cancelled")
    expect(page.locator("#changes [data-state=done]")).to_contain_text("mill.md", timeout=30_000)  # the next one
    expect(page.locator("#changes li")).to_have_count(1)


def test_without_javascript_and_on_a_phone(browse: Open, tmp_path: Path) -> None:
    (tmp_path / "mill.md").write_text(MILL, "utf-8")
    page = browse(java_script_enabled=False, viewport=PHONE)
    page.locator("#files").set_input_files(tmp_path / "mill.md")
    page.get_by_role("button", name="Add to town").click()
    expect(page.locator("#changes [data-state=done]")).to_contain_text("✓ added mill.md", timeout=30_000)
    expect(page.locator(".count")).to_have_text("3 documents, 5 passages")
    page.locator("#q").fill("mill")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".library > li")).to_have_count(1)
    page.locator(".change summary").click()
    page.get_by_role("button", name="Delete mill.md").click()
    expect(page.locator("#changes [data-state=done]").first).to_contain_text("✓ deleted mill.md", timeout=30_000)
    expect(page.locator(".count")).to_have_text("2 documents, 4 passages")


def test_forms_of_our_own_pages_are_not_taken_for_those_of_other_sites(chromium: Any, tmp_path: Path) -> None:  # noqa: ANN401
    service = Service({"town": make_index(tmp_path)})
    with serving(create_app(service, keys=Keys(["s3cret-key-of-20-or-more"]))) as url:
        page = chromium.new_page()
        page.goto(url)
        page.locator("input[name=key]").fill("s3cret-key-of-20-or-more")
        page.keyboard.press("Enter")
        expect(page.locator("#q")).to_be_visible()
        page.context.close()


@pytest.mark.parametrize("viewport", [None, PHONE])
def test_axe_finds_nothing(browse: Open, tmp_path: Path, viewport: dict[str, int] | None) -> None:
    (tmp_path / "mill.md").write_text(MILL, "utf-8")
    page = browse(bypass_csp=True, color_scheme="dark", **({"viewport": viewport} if viewport else {}))
    page.locator("#files").set_input_files(tmp_path / "mill.md")
    page.get_by_role("button", name="Add to town").click()
    expect(page.locator("#changes [data-state=done]")).to_be_visible(timeout=30_000)
    page.locator(".change summary").click()
    check(page)
