"""A recipe (`indexes/<name>.toml`) says how a retriever searches; a new meaning gets a new name."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag.errors import RagError
from rag.resources import folder, names

FIELDS = frozenset(["contents", "title"])  # title, section and text; title and section


@dataclass(frozen=True, slots=True)
class Recipe:
    """Name (with version), engine, BM25 parameters and the weight of each field."""

    name: str
    engine: str
    k1: float
    b: float
    weights: Mapping[str, float]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Recipe":
        """From TOML or a manifest; `KeyError`, `TypeError` or `ValueError` if it is not one."""
        weights = {str(field): float(weight) for field, weight in record["weights"].items()}
        if not weights or not weights.keys() <= FIELDS or not all(0 < w < math.inf for w in weights.values()):
            raise ValueError(f"weights of {', '.join(sorted(FIELDS))} should be above 0, found {weights}")
        return cls(str(record["name"]), str(record["engine"]), float(record["k1"]), float(record["b"]), weights)

    def record(self) -> dict[str, Any]:
        """As the manifest keeps it."""
        return {"name": self.name, "engine": self.engine, "k1": self.k1, "b": self.b, "weights": dict(self.weights)}


def read_recipe(name: str) -> Recipe:
    """The shipped recipe of that name; `RagError` lists the names there are."""
    known = names("indexes", ".toml")
    if name not in known:
        raise RagError(f"no recipe called {name!r}; there are: {', '.join(known)}")
    return Recipe.of(tomllib.loads(folder("indexes").joinpath(f"{name}.toml").read_text("utf-8")))
