"""What was found in a text, kept while the text may come again: a passage is read once for each claim that cites it."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

_Found = TypeVar("_Found")
_TEXTS = 4096
_LONGEST = 2_000  # characters; whole pages would take too much memory


def keep(function: Callable[[str], _Found]) -> Callable[[str], _Found]:
    """Return the function with its results of the latest texts kept, unless these are long."""
    kept = lru_cache(maxsize=_TEXTS)(function)

    @wraps(function)
    def call(text: str) -> _Found:
        return kept(text) if len(text) <= _LONGEST else function(text)

    return call
