"""Systems with options in one text, as benchmarks, collections and servers name them: `reader,retriever=bm25,k=16`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from rag.answer.options import OPTIONS, Options, check_values
from rag.answer.systems import SystemKind, check_options, system_kind
from rag.base.errors import RagError

_TYPE_DESCRIPTIONS = {int: "an integer", float: "a number", bool: "true or false"}
_MAX_LABEL_LENGTH = 60  # characters of a label


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """A system by name, with the options of `rag.open_system`."""

    name: str
    retriever: str | None = None
    k: int | None = None
    options: Options = field(default_factory=Options)

    @classmethod
    def parse(cls, text: str) -> "SystemSpec":
        """Read `name[,option=value...]`; raises `RagError` for an unknown system, or option of it."""
        name, *assignments = text.split(",")
        values: dict[str, Any] = {}
        for assignment in assignments:
            key, equals, value = assignment.partition("=")
            if key not in OPTIONS or not equals or not value:
                options = ", ".join(f"{name}=" for name in OPTIONS)
                raise RagError(f"system {text!r}: unknown option {assignment!r}; options: {options}")
            try:
                values[key] = _read(value, OPTIONS[key].type)
            except (ValueError, KeyError):
                raise RagError(
                    f"system {text!r}: {key} should be {_TYPE_DESCRIPTIONS[OPTIONS[key].type]}, found {value!r}"
                ) from None
        retriever, k = values.pop("retriever", None), values.pop("k", None)
        spec = cls(name, retriever, k, Options(**values))
        if k is not None and k < 1:
            raise RagError(f"system {text!r}: k must be at least 1")
        check_options(name, spec.options)
        try:
            check_values(spec.options)
        except RagError as error:
            raise RagError(f"system {text!r}: {error}") from None
        return spec

    def __str__(self) -> str:
        values = {"retriever": self.retriever, "k": self.k} | self.options.non_defaults()
        return ",".join([self.name, *(f"{key}={_text(value)}" for key, value in values.items() if value is not None)])

    @property
    def kind(self) -> SystemKind:
        """The system's entry in the registry."""
        return system_kind(self.name)

    @property
    def label(self) -> str:
        """A short name: the kind, the file or name of the model, and the options."""
        kind, *models = self.name.split(":")
        model = re.sub(r"\.gguf$", "", PurePath(models[-1]).name) if models else ""
        values = {"retriever": self.retriever, "k": self.k} | self.options.non_defaults()
        parts = [
            kind,
            *models[:-1],
            model,
            *(_option(key, value) for key, value in values.items() if value is not None),
        ]
        return safe_name("-".join(filter(None, parts))).replace("@", "-")  # a label names a folder of the run


def _read(text: str, kind: type) -> Any:  # noqa: ANN401  (what the option takes)
    return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _option(key: str, value: object) -> str:
    if value is True:
        return key
    return PurePath(str(value)).stem if key == "retriever" else f"{key}{_text(value)}"


def safe_name(name: str) -> str:
    """Return a name that is safe as that of a file: other characters than letters, digits and `.@+_-` become a dash."""
    file_name = re.sub(r"[^A-Za-z0-9.@+_-]+", "-", name).strip("-.")[:_MAX_LABEL_LENGTH]
    return file_name or "system"


def number_duplicates(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Return the names, those that repeat with a number; names that differ in case only are the same."""
    used_names = {name.casefold() for name in reserved}
    distinct_names = []
    for name in names:
        candidate, number = name, 1
        while candidate.casefold() in used_names:
            number += 1
            candidate = f"{name}-{number}"
        used_names.add(candidate.casefold())
        distinct_names.append(candidate)
    return distinct_names
