"""What all tests of integrations share."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what other packages leave open, so that its warnings come in the test that used them."""
    yield
    gc.collect()
