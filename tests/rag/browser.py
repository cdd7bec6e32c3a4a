"""What tests of pages share: screens, and the check of axe; they are skipped where Playwright is missing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright import sync_api as playwright

from scripts.browser import CHROMIUM

Page = Any  # playwright's

NEEDS_CHROMIUM = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: chromium)"),
]
PHONE = {"width": 390, "height": 844}
expect: Callable[..., Any] = playwright.expect
playwright.expect.set_options(timeout=30_000)  # ms: three parts of the tests share two cores


def check(page: Page) -> None:
    """Run axe, and see that nothing is wider than the screen."""
    if not page.evaluate("'axe' in window"):
        axe = Path(pytest.importorskip("axe_core_python").__file__ or "").parent / "axe.min.js"
        page.evaluate(axe.read_text("utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert found == [], json.dumps([(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
