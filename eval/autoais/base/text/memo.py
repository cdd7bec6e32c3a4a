"""A cache of results of functions of one text: a passage comes again with each claim that cites it."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

_Result = TypeVar("_Result")
_TEXTS = 4096
_MAX_CHARACTERS = 2_000  # characters; whole pages would take too much memory


def memoize(function: Callable[[str], _Result]) -> Callable[[str], _Result]:
    """Return the function with a cache of its results for the latest texts, unless they are long."""
    cached = lru_cache(maxsize=_TEXTS)(function)

    @wraps(function)
    def call(text: str) -> _Result:
        return cached(text) if len(text) <= _MAX_CHARACTERS else function(text)

    return call
