"""API keys, and how many requests a key or a client may send."""

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rag.base.errors import UsageError
from rag.web.security import signature

ENVIRONMENT = "RAG_SERVER_KEY"
_MIN_LENGTH, _MAX_LENGTH = 20, 500  # a key of 20 characters cannot be guessed over a network
_MAX_CLIENTS = 10_000


class Keys:
    """Keys of callers. Each is compared with all keys in constant time, so that timing reveals nothing.

    A browser that signed in with a key sends a cookie that is derived from it, not the key.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        unique_keys = list(dict.fromkeys(keys))
        for number, key in enumerate(unique_keys, 1):
            if not _MIN_LENGTH <= len(key) <= _MAX_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
                raise UsageError(
                    f"key {number}: a key should be {_MIN_LENGTH} to {_MAX_LENGTH} letters, digits or signs"
                )
        self._keys = [_digest(key) for key in unique_keys]
        self._cookies = [_digest(self.cookie(key)) for key in unique_keys]

    def __len__(self) -> int:
        return len(self._keys)

    def caller(self, key: str) -> str | None:
        """Return the name of a caller for counts (`key 1`), None for a wrong key."""
        return _find_caller(self._keys, key)

    def caller_of_cookie(self, cookie: str) -> str | None:
        """Return the name of a caller by the cookie of a browser, None for a wrong one."""
        return _find_caller(self._cookies, cookie)

    @staticmethod
    def cookie(key: str) -> str:
        """Return the cookie of a browser that signs in with the key."""
        return signature(key, "rag serve")


def read_keys(path: Path | None) -> Keys:
    """Return the keys of a file, one a line (`#` begins a comment), and of RAG_SERVER_KEY; messages name no key."""
    all_keys = [key] if (key := os.environ.get(ENVIRONMENT, "").strip()) else []
    if path is not None:
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise UsageError(f"{path}: the keys cannot be read: {reason}") from None
        keys = [line for raw in lines if (line := raw.strip()) and not line.startswith("#")]
        if not keys:
            raise UsageError(f"{path}: there are no keys; write one per line")
        try:
            Keys(keys)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
        all_keys += keys
    return Keys(all_keys)


class RequestLimiter:
    """At most `limit` requests in a minute for each caller, in bursts of up to as many. For one event loop."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._left: dict[str, tuple[float, float]] = {}  # requests left, and when they were counted

    def wait(self, caller: str) -> int:
        """Count a request; return how many seconds the caller must wait instead, 0 if it may go on."""
        now = self._clock()
        allowance, last_time = self._left.pop(caller, (float(self._limit), now))
        allowance = min(self._limit, allowance + (now - last_time) * self._limit / 60)
        self._left[caller] = (
            allowance - 1 if allowance >= 1 else allowance,
            now,
        )  # at the end: the latest caller is forgotten last
        while len(self._left) > _MAX_CLIENTS:
            del self._left[next(iter(self._left))]
        return 0 if allowance >= 1 else int((1 - allowance) * 60 / self._limit) + 1


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _find_caller(digests: list[bytes], text: str) -> str | None:
    text_digest, name = _digest(text), None
    for number, digest in enumerate(digests, 1):
        if hmac.compare_digest(digest, text_digest):
            name = f"key {number}"
    return name
