"""Fixtures of tests of pages and reports."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Playwright's browser."""
    from scripts import browser

    with browser.chromium() as started:
        yield started


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures that show nothing, for tests of the rest of a report: drawing takes seconds."""
    from rag.bench.plots import Figure

    monkeypatch.setattr(Figure, "svg", lambda figure, *, dark=False: "<svg/>\n")
    monkeypatch.setattr(Figure, "png", lambda figure: b"")
