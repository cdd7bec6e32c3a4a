"""Keys and rates: what is accepted, what a message never shows, and how many requests pass."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.base.errors import UsageError
from rag.serve.keys import Keys, RequestLimiter, read_keys

GOOD = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=20, max_size=40)


@given(st.lists(GOOD, min_size=1, max_size=5, unique=True), st.text())
def test_a_key_is_itself_and_nothing_else(given_keys: list[str], other: str) -> None:
    keys = Keys(given_keys)
    assert [keys.caller(key) for key in given_keys] == [f"key {n}" for n in range(1, len(keys) + 1)]
    assert [keys.caller_of_cookie(Keys.cookie(key)) for key in given_keys] == [keys.caller(key) for key in given_keys]
    for key in (other, given_keys[0][:-1], f"{given_keys[0]} ", f"{given_keys[0]}x", ""):
        if key not in given_keys:
            assert keys.caller(key) is None
            assert keys.caller_of_cookie(key) is None
    assert all(keys.caller_of_cookie(key) is None and keys.caller(Keys.cookie(key)) is None for key in given_keys)


def test_without_keys_nobody_is_known() -> None:
    assert not Keys()
    assert Keys().caller("") is None


def test_keys_come_from_a_file_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SERVER_KEY", raising=False)
    assert len(read_keys(None)) == 0
    (tmp_path / "keys").write_text(f"# ada\n{'a' * 20}\n\n  {'b' * 20}  \n{'a' * 20}\n", "utf-8")
    assert len(read_keys(tmp_path / "keys")) == 2
    monkeypatch.setenv("RAG_SERVER_KEY", "c" * 20)
    assert read_keys(tmp_path / "keys").caller("c" * 20)
    assert read_keys(None).caller("c" * 20)


@pytest.mark.parametrize("text", ["", "# nothing\n", "short\n", "x" * 30 + "\nwith a space in it, long\n"])
def test_a_file_without_good_keys_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys").write_text(text, "utf-8")
    with pytest.raises(UsageError, match="keys") as caught:
        read_keys(tmp_path / "keys")
    assert "short" not in str(caught.value)
    assert "space" not in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"\xff" * 30)
    for path in (tmp_path / "keys", tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="cannot be read"):
            read_keys(path)


@given(st.integers(1, 100), st.lists(st.floats(0, 30), max_size=60))
def test_no_more_pass_than_a_burst_and_the_rate(limit: int, pauses: list[float]) -> None:
    now = 0.0
    rate = RequestLimiter(limit, lambda: now)
    passed = 0
    for pause in pauses:
        now += pause
        wait = rate.wait("ada")
        assert rate.wait("bob") == 0 or limit < len(pauses)  # others have their own
        passed += wait == 0
        assert passed <= limit + now * limit / 60 + 1e-6
        if wait:
            now += wait
            assert rate.wait("ada") == 0  # the time that is told is enough
            passed += 1


def test_callers_are_forgotten_in_turn() -> None:
    rate = RequestLimiter(1, lambda: 0.0)
    assert rate.wait("first") == 0
    for number in range(10_000):
        rate.wait(str(number))
    assert rate.wait("9999") > 0
    assert rate.wait("first") == 0  # forgotten, as ten thousand others came later
