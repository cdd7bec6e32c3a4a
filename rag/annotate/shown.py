"""Which question a person was shown, and when: a signed token that the form sends back with the answer."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass

from rag.annotate.links import Links
from rag.base.errors import PressError

MIN_SHOWN = 0.5
"""Seconds that a question is shown before an answer to it is taken: the second click of a double click comes sooner."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a token says: the question, and the seconds since then; None if a clock was set back."""

    question: str
    seconds: float | None


class ShownTokens:
    """Makes and reads the tokens of one study. A token is for one person, item, question and press."""

    def __init__(self, links: Links, clock: Callable[[], float]) -> None:
        self._links, self._clock = links, clock

    def make(self, person: str, item: str, question: str, press: str) -> str:
        """Return the token of a question that is shown now, whose form sends the id `press`."""
        milliseconds = str(int(1000 * self._clock()))  # never later than now
        return f"{milliseconds}.{question}.{self._links.sign('shown', person, item, question, press, milliseconds)}"

    def check(self, token: str, person: str, item: str, press: str) -> Shown:
        """Return what the token says. Raises `PressError` if it is for something else, or from too short ago."""
        milliseconds, _, rest = token.partition(".")
        question, _, token_signature = rest.rpartition(".")
        signature = self._links.sign("shown", person, item, question, press, milliseconds)
        if not hmac.compare_digest(token_signature.encode("utf-8", "replace"), signature.encode()):
            raise PressError("the answer does not belong to the question that was shown; answer again")
        age = self._clock() - int(milliseconds) / 1000
        if 0 <= age < MIN_SHOWN:
            raise PressError("the answer came less than half a second after the question was shown; answer again")
        return Shown(question, age if age >= 0 else None)


def limit_seconds(seconds: float | None, age: float | None) -> float | None:
    """Return the seconds that a browser measured, at most those since the question was shown; None if unknown."""
    if age is None or seconds is None:
        return age
    return min(seconds, age) if seconds >= 0 else None  # a NaN is not >= 0
