"""The settings of a study: `study.toml`, which people edit."""

import math
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast

from autoais.base.io.jsonl import dumps, write_atomic
from rag.annotate.items import unstorable
from rag.annotate.schemes import scheme_of
from rag.base.errors import UsageError, UserError, check_type

Choice = Literal["off", "optional", "required"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a study; the comments of `study.toml` say what each does. Raises `UsageError`."""

    title: str = "Annotation study"
    scheme: str = "ais"
    annotators: int = 5
    seed: int = 0
    lease_minutes: float = 60
    reasons: Choice = "optional"
    evidence: Choice = "optional"
    highlight: bool = False
    fast_seconds: float = 1.5
    gold_share: float = 0.1
    pass_mark: float = 0.8
    training_attempts: int = 3
    block_below: float = 0
    block_after: int = 5
    guidelines: str = ""
    database: str = ""

    def __post_init__(self) -> None:
        for setting in fields(self):
            _check(setting.name, getattr(self, setting.name))
        if not self.scheme.endswith(".toml"):  # a file of the folder, which `open_study` reads
            scheme_of(self.scheme)
        if self.database and not self.database.startswith(("postgresql://", "postgres://")):
            raise UsageError(f"database should be empty or a URL such as {_URL}, found {self.database!r:.60}")


_URL = "postgresql://user@host/name"
_RANGES: dict[str, tuple[float, float]] = {
    "annotators": (1, 99),
    "lease_minutes": (0.01, 60 * 24 * 365),
    "fast_seconds": (0, 3600),
    "gold_share": (0, 0.5),
    "pass_mark": (0, 1),
    "training_attempts": (1, 100),
    "block_below": (0, 1),
    "block_after": (1, 10_000),
}
_INTEGERS = ("annotators", "seed", "training_attempts", "block_after")
_CHOICES = {"reasons": ("off", "optional", "required"), "evidence": ("off", "optional", "required")}
_COMMENTS = {
    "title": "What annotators see at the top of each page.",
    "scheme": "One of `rag annotate schemes`, or scheme.toml beside this file. Fixed by `rag annotate init`.",
    "annotators": "People per item. An even number can tie, and so can an odd one after flags; an admin decides ties.",
    "seed": "The order of the items and the places of gold items follow from it.",
    "lease_minutes": "An item that someone opened goes to another person after so many minutes without a verdict.",
    "reasons": "Written justifications of verdicts: off, optional or required.",
    "evidence": "Selecting the evidence for a positive verdict in the source: off, optional or required.",
    "highlight": "Highlight what is likeliest to support in the source. Leave it off for unbiased labels.",
    "fast_seconds": "A verdict in less time is marked as too fast for the admin; 0 marks none.",
    "gold_share": "Share of gold items among the items that a person gets, while there are any.",
    "pass_mark": "Share of training items that must be right before the study begins for a person.",
    "training_attempts": "Attempts at the training round; a person who fails all of them is blocked.",
    "block_below": "Block a person who has a smaller share of gold items right; 0 blocks nobody.",
    "block_after": "Gold items that a person must have done before `block_below` applies.",
    "guidelines": "Markdown file, beside this one, that replaces the guidelines; empty keeps ours.",
    "database": "postgresql://user@host/name; empty is study.db beside this file. Passwords belong in ~/.pgpass.",
}


def _check(name: str, value: object) -> None:
    if name in _RANGES or name == "seed":
        is_integer = name in _INTEGERS
        check_type(name, value, "an integer" if is_integer else "a number", *((int,) if is_integer else (int, float)))
        low, high = _RANGES.get(name, (-math.inf, math.inf))
        if not low <= cast("float", value) <= high:  # also NaN
            raise UsageError(f"{name} should be from {low} to {high}, found {value}")
    elif name == "highlight":
        check_type(name, value, "true or false", bool)
    else:
        check_type(name, value, "a string", str)
        text = cast("str", value)
        if name in _CHOICES and text not in _CHOICES[name]:
            raise UsageError(f"{name} should be one of {', '.join(_CHOICES[name])}, found {text!r:.60}")
        if wrong := unstorable(text):
            raise UsageError(f"{name} holds {wrong}")


def settings_of(values: dict[str, Any]) -> Settings:
    """Return settings from keys and values; raises `UsageError` for an unknown key or a value that cannot be used."""
    names = [setting.name for setting in fields(Settings)]
    if unknown := sorted(values.keys() - set(names)):
        raise UsageError(f"unknown key {unknown[0][:60]!r}; there are: {', '.join(names)}")
    return Settings(**values)


def read_settings(path: Path) -> Settings:
    """Read `study.toml`; raises `UserError` that names the file and the key."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as settings: {error}") from error
    try:
        return settings_of(values)
    except UsageError as error:
        raise UserError(f"{path}: {error}") from error


def write_settings(path: Path, settings: Settings) -> None:
    """Write `study.toml`, with a comment for each key."""
    lines = []
    for setting in fields(settings):
        # A JSON string, number or boolean is also one of TOML.
        lines += [f"# {_COMMENTS[setting.name]}", f"{setting.name} = {dumps(getattr(settings, setting.name))}", ""]
    write_atomic(path, lines[:-1])
