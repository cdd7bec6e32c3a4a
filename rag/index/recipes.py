"""A recipe (`indexes/<name>.toml`) is a retriever: its kind, its settings, and a name that changes with its meaning."""

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag.errors import RagError
from rag.resources import folder, names

_MOST = 10**6  # of a weight: beyond it, scores leave what floats hold


def is_weight(value: object) -> bool:
    """Whether scores can be multiplied by it: a number above 0, a million at most."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MOST


@dataclass(frozen=True, slots=True)
class Recipe:
    """`kind` says which module makes the retriever (`rag.retrievers.KINDS`), which reads and checks the `settings`."""

    name: str
    kind: str
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Recipe":
        """From TOML or a manifest; `KeyError` where name or kind are missing."""
        settings = {key: value for key, value in record.items() if key not in ("name", "kind")}
        return cls(str(record["name"]), str(record["kind"]), settings)

    def record(self) -> dict[str, Any]:
        """As a manifest keeps it."""
        return {"name": self.name, "kind": self.kind, **self.settings}

    def only(self, allowed: Iterable[str]) -> None:
        """`RagError` for a setting that the kind does not know: a slip of the pen must not be passed over."""
        known = sorted(allowed)
        if unknown := sorted(set(self.settings) - set(known)):
            raise RagError(
                f"recipe {self.name}: unknown setting {unknown[0]!r} of kind {self.kind}; "
                f"there are: {', '.join(known) or 'none'}"
            )

    def setting(self, name: str, kind: type[Any], default: Any = None) -> Any:  # noqa: ANN401  (what the recipe says)
        """A setting, `default` where it is not given; `RagError` unless it is of that type (an int is a float)."""
        value = self.settings.get(name, default)
        if kind is float and type(value) is int:
            value = float(value) if abs(value) < _MOST else math.inf
        if isinstance(value, float) and not math.isfinite(value):
            raise RagError(f"recipe {self.name}: {name} should be a finite number, found {value}")
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise RagError(f"recipe {self.name}: {name} should be {kind.__name__}, found {value!r}")
        return value


def read_recipe(name: str) -> Recipe:
    """A shipped recipe by its name, one of your own by its path (`.toml`), or several fused by rank (`a+b`)."""
    if "+" in name and not _is_file(name):
        return Recipe(name, "fusion", {"of": name.split("+")})
    known = names("indexes", ".toml")
    if name in known:
        text = folder("indexes").joinpath(f"{name}.toml").read_text("utf-8")
    elif name.endswith(".toml"):
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RagError(f"{name}: cannot be read as a recipe: {error}") from error
    else:
        raise RagError(f"no recipe called {name!r}; there are: {', '.join(known)}, and a+b fuses two")
    try:
        return Recipe.of(tomllib.loads(text))
    except (ValueError, RecursionError, KeyError) as error:
        raise RagError(f"{name}: not a recipe: {error}") from error


def _is_file(name: str) -> bool:
    try:
        return name.endswith(".toml") and Path(name).is_file()
    except OSError:  # longer than a file's name can be
        return False


def made_of(name: str) -> Iterator[tuple[str, Recipe]]:
    """A recipe and those under it (`of`), each once, with the names they are read by; `RagError` for a circle."""
    seen: set[str] = set()

    def walk(name: str, above: tuple[str, ...]) -> Iterator[tuple[str, Recipe]]:
        if name in above:
            raise RagError(f"recipe {name} is made of itself: {' of '.join((*above, name))}")
        recipe = read_recipe(name)
        if name not in seen:
            seen.add(name)
            yield name, recipe
        under = recipe.settings.get("of", [])
        for other in [under] if isinstance(under, str) else under if isinstance(under, list) else []:
            if isinstance(other, str):
                yield from walk(other, (*above, name))

    return walk(name, ())
