"""Draws docs/images/page-*.png, the pages of `rag serve` over the handbook, and measures weight and first paint.

python -m scripts.make_page_screenshots [--out docs/images] [--measure]
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, Response

import rag
from rag.serve import Service, create_app
from scripts.browser import chromium, save, serving

_COLOURS = 128
_QUESTION = "What is post-hoc attribution?"
_TEXT = (
    "Citation recall is the share of statements that their citations fully support [1]. The verifiability study was "
    "published in 2021 [2]. It audited search engines with 1,450 queries [2]. Its authors live in Berlin."
)
_SOURCES = (
    "[1] Citation recall is the share of statements that are fully supported by the citations attached to them, taken "
    "together.\n[2] The verifiability study was published in 2023. It audited four generative search engines with "
    "1,450 queries."
)
_TIMES = 10  # pages opened to measure


def shots(browser: Browser, address: str) -> dict[str, Callable[[], Page]]:
    """Return how to reach what each picture shows."""

    def open_page(path: str) -> Page:
        context = browser.new_context(
            color_scheme="light",
            viewport={"width": 1200, "height": 760},
            device_scale_factor=1,
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(address + path)
        return page

    def open_answer() -> Page:
        page = open_page(f"/?{urlencode({'q': _QUESTION})}")
        page.locator(".summary .verdict").first.wait_for()
        return page

    def open_check() -> Page:
        page = open_page("/check")
        page.locator("#text").fill(_TEXT)
        page.locator("input[value=sources]").check()
        page.locator("#sources").fill(_SOURCES)
        page.locator("#question").press("Enter")
        page.locator("#result .verdict").first.wait_for()
        return page

    def open_comparison() -> Page:
        page = open_page(f"/compare?{urlencode({'q': 'What is citation precision?'})}")
        page.locator(".turn:nth-child(2) .summary .verdict").first.wait_for()
        page.locator(".turn:nth-child(1) .summary .verdict").first.wait_for()
        return page

    return {
        "page-answer": open_answer,
        "page-check": open_check,
        "page-compare": open_comparison,
    }


def measure(browser: Browser, address: str) -> Iterator[str]:
    """Yield the weight of the pages (bytes received, nothing cached) and the time to their first paint."""
    for path in ("/", f"/?{urlencode({'q': _QUESTION, 'whole': 1})}", "/check", "/compare"):
        paints, weights = zip(*(_measure_paint(browser, address + path) for _ in range(_TIMES)), strict=True)
        paint = f"first paint after {statistics.median(paints):.0f} ms (median of {_TIMES}, at most {max(paints):.0f})"
        yield f"{path}: {max(weights):,} bytes, {paint}"


def _measure_paint(browser: Browser, url: str) -> tuple[float, int]:
    """The milliseconds to the first paint of a page, and the bytes received."""
    page = browser.new_context().new_page()
    replies: list[Response] = []

    def note(reply: Response) -> None:
        replies.append(reply)

    page.on("response", note)
    page.goto(url, wait_until="networkidle")
    paint = float(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    weight = sum(len(reply.body()) for reply in replies)
    page.context.close()
    return paint, weight


def main() -> None:
    """Serve the handbook, open its pages, and draw or measure them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs/images", help="folder")
    parser.add_argument("--measure", action="store_true", help="print weight and first paint instead")
    options = parser.parse_args()
    service = Service({"handbook": rag.open_index()}, ["reader", "extractive"])
    service.warm()
    with serving(create_app(service)) as address, chromium() as browser:
        if options.measure:
            for line in measure(browser, address):
                print(line)
        else:
            for name, reach in shots(browser, address).items():
                save(reach(), options.out / f"{name}.png", _COLOURS)


if __name__ == "__main__":
    main()
