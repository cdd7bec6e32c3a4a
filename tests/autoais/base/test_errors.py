"""What an error says about an extra that is not installed."""

import pytest

from autoais.base import errors
from autoais.base.errors import missing_extra


def test_a_checkout_and_an_installed_wheel_name_the_command_that_works_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(missing_extra("x", "llm", "httpx")) == 'x needs httpx: pip install -e ".[llm]"'
    monkeypatch.setattr(errors, "_IN_CHECKOUT", False)
    assert str(missing_extra("x", "llm")).endswith('not installed: pip install "attributed-rag[llm]"')
