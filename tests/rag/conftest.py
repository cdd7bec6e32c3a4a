"""Fixtures of tests of pages."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Playwright's browser."""
    from scripts import browser

    with browser.chromium() as started:
        yield started
