"""The options of a system: one table of names, types, help and ranges.

The command line, system specs and servers read it; `tests/rag/answer/test_options.py` checks that the signatures of
Python have every option.
"""

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

from rag.base.errors import RagError, UsageError, check_type


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its name, the type of its value, what it does, and the range of a number or the choices of a text.

    `over_http`: a request to a server may set it; the others are the server's own.
    """

    name: str
    type: type
    help: str
    minimum: float | None = None
    maximum: float | None = None
    over_http: bool = False
    choices: tuple[str, ...] = ()


OPTIONS = {
    option.name: option
    for option in (
        Option("retriever", str, "Retriever, as for `rag search` (default: the system's own).", over_http=True),
        Option(
            "k", int, "Number of passages to retrieve and read (default: the system's own).", minimum=1, over_http=True
        ),
        Option(
            "min_confidence",
            float,
            "Abstain below this confidence (0-1; default: the system's own).",
            minimum=0,
            maximum=1,
            over_http=True,
        ),
        Option(
            "answer",
            str,
            "How a language model answers: `free` text with markers, `point` at sources first, or `quote` them only.",
            choices=("free", "point", "quote"),
        ),
        Option(
            "words",
            int,
            "Words of sources shown to a model that points or quotes (default: 150; for a model server: 400).",
            minimum=20,
        ),
        Option(
            "rounds",
            int,
            "Searches for a question: a language model may ask for further ones (1-5; default: 1).",
            minimum=1,
            maximum=5,
        ),
        Option("prompt", str, "Prompt for a language model: a name or a .txt file."),
        Option("context", int, "Context of a language model in tokens (default: 4096).", minimum=256),
        Option("temperature", float, "Temperature of a language model (default: 0).", minimum=0, maximum=2),
        Option("seed", int, "Seed for a temperature above 0 (default: 0)."),
        Option(
            "revise", str, "Unsupported sentences of a model: `drop`, or a model that rewrites them (default: keep)."
        ),
        Option("repair", bool, "Move, add and remove citations of a model as the judge finds them supported."),
    )
}
"""All options by name; `tests/rag/answer/test_options.py` checks that every interface has them."""


@dataclass(frozen=True, slots=True)
class Options:
    """The values of `OPTIONS` besides retriever and k; None means the system's default.

    `answer` is how a language model answers (`OPTIONS["answer"].choices`): `free` by default. `words` is how many words
    of sources it is shown with `point` and `quote`. With `rounds` above 1 it may ask for further searches
    (`rag.answer.rounds`).
    `revise` is what becomes of sentences that no passage supports: `drop`, or the name of a model that rewrites them
    (`rag.answer.attribution.revise`). `repair` moves, adds and removes citations of a language model
    (`rag.answer.attribution.repair`); without it they stay, and each sentence is checked
    (`rag.answer.attribution.check`).
    """

    min_confidence: float | None = None
    prompt: str | None = None
    context: int | None = None
    temperature: float | None = None
    seed: int | None = None
    revise: str | None = None
    answer: str | None = None
    repair: bool | None = None
    words: int | None = None
    rounds: int | None = None

    def non_defaults(self) -> dict[str, Any]:
        """The options that are not None."""
        return {option.name: value for option in fields(self) if (value := getattr(self, option.name)) is not None}


def check_values(options: Options) -> None:
    """Raise `RagError` for a value that is not among the choices of its option, or out of its range.

    Raises `UsageError` for one that is no number where a number belongs.
    """
    for name, value in options.non_defaults().items():
        option = OPTIONS[name]
        if option.choices and value not in option.choices:
            raise RagError(f"{name} should be one of {', '.join(option.choices)}, found {value!r}")
        if option.minimum is None:
            continue
        _check_number(name, value, option.type)
        if not option.minimum <= value <= (math.inf if option.maximum is None else option.maximum):
            least = f"{option.minimum:g}"
            bounds = f"at least {least}" if option.maximum is None else f"between {least} and {option.maximum:g}"
            raise RagError(f"{name} should be {bounds}, found {value}")


def _check_number(name: str, value: object, kind: type) -> None:
    expected, number = ("an int", Integral) if kind is int else ("a number", Real)
    if isinstance(value, bool):
        raise UsageError(f"{name} should be {expected}, found {value}")
    check_type(name, value, expected, number)
