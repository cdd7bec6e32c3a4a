"""Configurations of retrievers (`indexes/<name>.toml`): the kind, settings and versioned name of each."""

import math
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoais.base.io.paths import is_file
from rag.base.errors import RagError, check_type
from rag.base.resources import folder, names

_MAX_WEIGHT = 10**6  # largest weight, so that scores cannot overflow


def is_weight(value: object) -> bool:
    """Whether a value is a valid weight: a number above 0 and at most a million."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MAX_WEIGHT


@dataclass(frozen=True, slots=True)
class RetrieverConfig:
    """A retriever's name, kind (`rag.retrieval.RETRIEVERS`) and settings, which the kind reads and checks.

    `home` is the folder of its file, if it was read from one of yours.
    """

    name: str
    kind: str
    settings: Mapping[str, Any]
    home: Path | None = field(default=None, compare=False)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "RetrieverConfig":
        """From TOML or a manifest; raises `KeyError` if name or kind is missing."""
        settings = {key: value for key, value in record.items() if key not in ("name", "kind")}
        return cls(str(record["name"]), str(record["kind"]), settings)

    def record(self) -> dict[str, Any]:
        """The dict for a manifest."""
        return {"name": self.name, "kind": self.kind, **self.settings}

    def check_settings(self, names: Iterable[str]) -> None:
        """Raise `RagError` for an unknown setting, so that a typo is not ignored."""
        setting_names = sorted(names)
        if unknown := sorted(set(self.settings) - set(setting_names)):
            raise RagError(
                f"retriever {self.name}: unknown setting {unknown[0]!r} of kind {self.kind}; "
                f"there are: {', '.join(setting_names) or 'none'}"
            )

    def setting(self, name: str, kind: type[Any], default: Any = None) -> Any:  # noqa: ANN401  (of type `kind`)
        """A setting, or `default`; raises `RagError` if it has another type than `kind` (an int is a float)."""
        value = self.settings.get(name, default)
        if kind is float and type(value) is int:
            value = float(value) if abs(value) < _MAX_WEIGHT else math.inf
        if isinstance(value, float) and not math.isfinite(value):
            raise RagError(f"retriever {self.name}: {name} should be a finite number, found {value}")
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise RagError(f"retriever {self.name}: {name} should be {kind.__name__}, found {value!r}")
        return value


_WITH_SETTINGS = frozenset({"database", "dense", "fallback", "fusion", "remote", "rerank", "shards"})
"""Kinds of ours that cannot be opened by their name alone, as they need settings."""


def read_config(name: str, kinds: Container[str] = ()) -> RetrieverConfig:
    """Read the configuration of a retriever that ships with rag by name, your own by path (`.toml`), or `a+b`.

    `a+b` fuses two by rank, and `remote:URL` is a server that searches (`rag.retrieval.remote`). A name in `kinds`
    without a configuration is that kind of retriever without settings. Raises `RagError` otherwise.
    """
    if "+" in name and not (name.endswith(".toml") and is_file(name)):
        return RetrieverConfig(name, "fusion", {"retrievers": name.split("+")})
    kind, _, url = name.partition(":")
    if kind == "remote" and url:
        return RetrieverConfig(name, kind, {"url": url})
    shipped_names = names("indexes", ".toml")
    if name in shipped_names:
        return _parse_config(name, folder("indexes").joinpath(f"{name}.toml").read_text("utf-8"))
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise RagError(f"{name}: cannot be read as the configuration of a retriever: {error}") from error
        return _parse_config(name, text, Path(name).parent)
    if name in kinds:
        return RetrieverConfig(name, name, {})
    kind_names = kinds if isinstance(kinds, Iterable) else ()
    plain_kinds = [
        kind_name for kind_name in kind_names if kind_name not in shipped_names and kind_name not in _WITH_SETTINGS
    ]
    hint = "a+b, which fuses two, and remote:URL, a server"
    raise RagError(f"no retriever called {name!r}; there are: {', '.join([*shipped_names, *plain_kinds])}, {hint}")


def _parse_config(name: str, text: str, home: Path | None = None) -> RetrieverConfig:
    try:
        return replace(RetrieverConfig.of(tomllib.loads(text)), home=home)
    except KeyError as error:
        raise RagError(f"{name}: not the configuration of a retriever: field {error} is missing") from error
    except (ValueError, RecursionError) as error:
        raise RagError(f"{name}: not the configuration of a retriever: {error}") from error


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def walk_configs(name: str, kinds: Container[str] = ()) -> Iterator[tuple[str, RetrieverConfig]]:
    """Yield a configuration and those it is based on (`base`, `retrievers`), each once, with its name for
    `read_config`.

    `kinds` as for `read_config`. Raises `RagError` for a cycle.
    """
    check_type("retriever", name, "a name or a .toml file", str)
    checked_names: set[str] = set()

    def walk(name: str, parents: tuple[str, ...], names: set[str]) -> Iterator[tuple[str, RetrieverConfig]]:
        if name in parents:
            raise RagError(f"retriever {name} is based on itself: {' of '.join((*parents, name))}")
        config = read_config(name, kinds)
        if name not in names:
            names.add(name)
            yield name, config
        settings = config.settings
        for other in _names(settings.get("choices")):  # it is not based on all of them, but may not choose itself
            if other in parents or other not in checked_names:
                list(walk(other, (*parents, name), set()))
                checked_names.add(other)
        for other in [*_names([settings.get("base")]), *_names(settings.get("retrievers"))]:
            yield from walk(other, (*parents, name), names)

    return walk(name, (), set())
