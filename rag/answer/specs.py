"""Systems with options in one text, as benchmarks, collections and servers name them: `reader,recipe=best,k=16`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from rag.answer.systems import Options, SystemKind, checked_kind, system_kind
from rag.base.errors import RagError

_TYPES: dict[str, type] = {
    "recipe": str, "k": int, "min_confidence": float, "prompt": str, "context": int, "temperature": float, "seed": int,
    "revise": str,
}  # fmt: skip
_WANTED = {int: "an integer", float: "a number"}
_LONGEST = 60  # characters of a label


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """A system by name, with the options of `rag.open_system`."""

    name: str
    recipe: str | None = None
    k: int | None = None
    options: Options = field(default_factory=Options)

    @classmethod
    def parse(cls, text: str) -> "SystemSpec":
        """Read `name[,option=value...]`; raises `RagError` for an unknown system, or option of it."""
        name, *given = text.split(",")
        values: dict[str, Any] = {}
        for one in given:
            key, equals, value = one.partition("=")
            if key not in _TYPES or not equals or not value:
                raise RagError(
                    f"system {text!r}: unknown option {one!r}; options: {', '.join(f'{name}=' for name in _TYPES)}"
                )
            try:
                values[key] = _TYPES[key](value)
            except ValueError:
                raise RagError(f"system {text!r}: {key} should be {_WANTED[_TYPES[key]]}, found {value!r}") from None
        recipe, k = values.pop("recipe", None), values.pop("k", None)
        spec = cls(name, recipe, k, Options(**values))
        if k is not None and k < 1:
            raise RagError(f"system {text!r}: k must be at least 1")
        checked_kind(name, spec.options)
        return spec

    def __str__(self) -> str:
        given = {"recipe": self.recipe, "k": self.k} | self.options.chosen()
        return ",".join([self.name, *(f"{key}={value}" for key, value in given.items() if value is not None)])

    @property
    def kind(self) -> SystemKind:
        """The system's entry in the registry."""
        return system_kind(self.name)

    @property
    def label(self) -> str:
        """A short name: the kind, the file or name of the model, and the options."""
        kind, *models = self.name.split(":")
        model = re.sub(r"\.gguf$", "", PurePath(models[-1]).name) if models else ""
        given = {"recipe": self.recipe, "k": self.k} | self.options.chosen()
        parts = [kind, *models[:-1], model, *(_option(key, value) for key, value in given.items() if value is not None)]
        return safe("-".join(filter(None, parts))).replace("@", "-")  # a label names a folder of the run


def _option(key: str, value: object) -> str:
    return PurePath(str(value)).stem if key == "recipe" else f"{key}{value}"


def safe(name: str) -> str:
    """Return a name that is safe as that of a file: other characters than letters, digits and `.@+_-` become a dash."""
    cleaned = re.sub(r"[^A-Za-z0-9.@+_-]+", "-", name).strip("-.")[:_LONGEST]
    return cleaned or "system"


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return the names, those that repeat with a number; names that differ in case only are the same."""
    seen = {name.casefold() for name in taken}
    found = []
    for name in names:
        made, number = name, 1
        while made.casefold() in seen:
            number += 1
            made = f"{name}-{number}"
        seen.add(made.casefold())
        found.append(made)
    return found
