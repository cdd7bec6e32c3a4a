"""Draws docs/images/annotate-*.png: the pages of an annotation study of our own writing, in headless Chromium.

python -m scripts.make_annotation_screenshots [--out docs/images]
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page

from rag.annotate import Settings, Study, create_study, open_study
from rag.annotate.app import create_app
from rag.annotate.items import Item, Source
from rag.annotate.types import Entry
from scripts.browser import chromium, save, serving
from scripts.simulate_study import chance

_COLOURS = 48
_READY = "#view[data-ready=yes]"  # the question takes an answer
_DESK, _PHONE = {"width": 1200, "height": 720}, {"width": 390, "height": 844}

_LIGHTHOUSE = (
    "The lighthouse of Harnholm stands on the northern tip of the island. It was lit for the first time in 1887. "
    "Its tower is 31 metres high and is built of red brick. Until 1964 a keeper and his family lived in the house "
    "beside it. Since then the light has been switched on and off by a timer. The house is now a museum, which is "
    "open from May to September."
)
_FERRY = (
    "A ferry connects Harnholm with the mainland. It takes forty minutes and runs six times a day in summer, twice a "
    "day in winter. Cars are not allowed on the island."
)
_ANSWERS = {
    "How high is the lighthouse of Harnholm?": "The tower of the lighthouse, built of red brick, is 31 metres high.",
    "When was the lighthouse lit for the first time?": "It was lit for the first time in 1887, by gas.",
    "Can one visit the house of the keeper?": "Yes: it is a museum, and it is open from May to September.",
    "How often does the ferry run in winter?": "In winter the ferry runs twice a day.",
    "May cars go to Harnholm?": "Cars may go to the island outside the season.",
}


def make_study(folder: Path) -> Study:
    """Make the example, in which five people have judged all answers but the last."""
    items = [
        Item(
            f"q{n}",
            answer,
            answer=f"q{n}",
            query=question,
            sources=(
                Source("harnholm#1", _LIGHTHOUSE, "Harnholm", "Lighthouse"),
                Source("harnholm#2", _FERRY, "Harnholm", "Travel"),
            ),
        )
        for n, (question, answer) in enumerate(_ANSWERS.items())
    ]
    study = create_study(
        folder, items=items, settings=Settings(title="Harnholm (example)", annotators=5, highlight=True)
    )
    for n in range(1, 6):
        name = f"example-{n}"
        study.invite(name)
        while (work := study.next(name)) is not None and work.done_count < len(items) - 1:
            wrong = "gas" in work.item.text or "outside" in work.item.text
            yes = work.question.name == "interpretable" or wrong == (chance(n, work.item.text) < 0.1)
            seconds = 5 + 20 * chance(n, work.item.text, work.question.name)
            value = "yes" if yes else "no"
            study.verdict(name, work.item.id, Entry(work.question.name, value, press=work.press, seconds=seconds))
        study.revoke(name)  # gives the last item back
        study.invite(name)
    return study


def shots(browser: Browser, address: str, study: Study) -> dict[str, Callable[[], Page]]:
    """Return how to reach what each picture shows."""
    links = {name: f"{address}/in/{study.invite(name)}" for name in ("ada", "bob", "eve", "kim")}
    boss = f"{address}/in/{study.invite('boss', 'admin')}"

    def open_page(link: str, scheme: str, viewport: dict[str, int]) -> Page:
        context = browser.new_context(color_scheme=scheme, viewport=viewport, device_scale_factor=1)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(link)
        page.wait_for_function("!location.pathname.startsWith('/in/')")
        page.wait_for_selector(_READY)
        return page

    def answer_first(page: Page) -> Page:
        page.keyboard.press("y")
        page.locator(".sources").wait_for()
        page.wait_for_selector(_READY)
        return page

    def choose_evidence(page: Page) -> Page:
        answer_first(page)
        for key in (*["ArrowDown"] * 6, "Enter"):
            page.keyboard.press(key)
        return page

    def guide(page: Page) -> Page:
        page.keyboard.press("g")
        page.locator("#guide h1").wait_for()
        return page

    return {
        "annotate-admin": lambda: open_page(boss, "light", {"width": 1200, "height": 800}),
        "annotate-first": lambda: open_page(links["ada"], "light", _DESK),
        "annotate-second": lambda: choose_evidence(open_page(links["ada"], "light", _DESK)),
        "annotate-phone": lambda: answer_first(open_page(links["eve"], "light", _PHONE)),
        "annotate-guidelines": lambda: guide(open_page(links["kim"], "light", _DESK)),
    }


def main() -> None:
    """Make the study, open its pages and draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs/images", help="folder")
    images: Path = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        make_study(Path(folder) / "study").close()
        study = open_study(Path(folder) / "study")
        with serving(create_app(open_study(study.folder))) as address, chromium() as browser:
            for name, reach in shots(browser, address, study).items():
                save(reach(), images / f"{name}.png", _COLOURS)


if __name__ == "__main__":
    main()
