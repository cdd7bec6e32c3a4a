"""Names to objects: imported when asked for, added by a program, listed in errors."""

import importlib.metadata
import sys

import pytest

from autoais.base.errors import UsageError, UserError
from autoais.base.registry import Registry


def numbers() -> Registry[int]:
    return Registry("autoais.no-such-group", "number", {"one": 1, "digits": "sys:float_info"})


def test_what_is_built_in_is_imported_when_asked_for_and_can_be_replaced() -> None:
    known: Registry[object] = Registry("autoais.no-such-group", "number", {"one": 1, "info": "sys:float_info"})
    assert (known["one"], known["info"]) == (1, sys.float_info)
    known.register("two", 2)
    known.register("one", 11)
    assert list(known) == ["one", "info", "two"]
    assert dict(known.items()) == {"one": 11, "info": sys.float_info, "two": 2}
    assert ("two" in known, "three" in known, len(known)) == (True, False, 3)


def test_what_is_registered_has_a_name_and_the_right_kind() -> None:
    known: Registry[object] = Registry("autoais.no-such-group", "number", {}, kind=("an integer", int))
    known.register("two", 2)
    for name in ("", None):
        with pytest.raises(UsageError, match="the name of a number should be a string that is not empty, found"):
            known.register(name, 3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="number 'three' should be an integer, found str"):
        known.register("three", "three")


def test_an_unknown_name_is_told_with_those_there_are() -> None:
    with pytest.raises(UserError, match="no number called 'three'; there are: one, digits"):
        _ = numbers()["three"]


def test_installed_packages_are_looked_through_once_and_only_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = importlib.metadata.entry_points

    def counted(*, group: str) -> importlib.metadata.EntryPoints:
        asked.append(group)
        return real(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", counted)
    known = numbers()
    assert known["one"] == 1
    assert "one" in known
    assert asked == []
    for _ in range(3):
        assert "three" not in known
        assert list(known) == ["one", "digits"]
    assert asked == ["autoais.no-such-group"]
