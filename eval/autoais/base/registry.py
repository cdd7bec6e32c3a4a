"""Registries that map names to retrievers, judges, formats and the like; each object is imported on first use.

Every extensible kind has one in its package: `JUDGES` in `autoais.judges`, `FORMATS` in `autoais.formats`,
`RETRIEVERS` in `rag.retrieval` and so on. A package adds to it with an entry point in the registry's group
(`[project.entry-points."autoais.judges"]`), a program with `register`.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from autoais.base.errors import UsageError, UserError, check_type, first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """The objects of one kind, by name.

    `built_in` maps names to objects or to import paths (`module:attribute`). `group` is the entry point group of
    installed packages; it is read only for a name that is not built in, or to list all names. `label` names the kind
    in error messages; `error` is the class of the errors. `kind` is the type of the objects, in words and for
    `isinstance`, if `register` is to check it.
    """

    def __init__(
        self,
        group: str,
        label: str,
        built_in: Mapping[str, T | str],
        error: type[UserError] = UserError,
        kind: tuple[str, type] | None = None,
    ) -> None:
        self.group, self.label, self._kind = group, label, kind
        self._known: dict[str, T | str] = dict(built_in)
        self._error = error
        self._entries: dict[str, EntryPoint] | None = None

    def register(self, name: str, value: T) -> None:
        """Add an object for this process; it replaces one of the same name. Raises `UsageError` for another kind."""
        if not isinstance(name, str) or not name.strip():
            raise UsageError(f"the name of a {self.label} should be a string that is not empty, found {name!r:.60}")
        if self._kind is not None:
            check_type(f"{self.label} {name!r}", value, *self._kind)
        self._known[name] = value

    def __getitem__(self, name: str) -> T:
        """Return the object of that name; raises the registry's error, which lists the known names."""
        if name in self._known:
            target = self._known[name]
            if not isinstance(target, str):
                return target
            module, _, attribute = target.partition(":")
            item: T = getattr(import_module(module), attribute)
            self._known[name] = item
            return item
        entry = self._read_entry_points().get(name)
        if entry is None:
            raise self._error(f"no {self.label} called {name!r}; there are: {', '.join(self)}")
        try:
            item = cast("T", entry.load())
        except Exception as error:  # a third-party package may raise anything
            package = entry.dist.name if entry.dist else entry.value
            raise self._error(f"{self.label} {name!r} of {package} cannot be loaded: {first_line(error)}") from error
        self._known[name] = item
        return item

    def peek(self, name: str) -> T | None:
        """Return the object of that name if nothing has to be imported for it, else None."""
        target = self._known.get(name)
        return None if isinstance(target, str) else target

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._read_entry_points()

    def __iter__(self) -> Iterator[str]:
        """Iterate over all names, the built-in ones first."""
        return iter(dict.fromkeys([*self._known, *sorted(self._read_entry_points())]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def items(self) -> Iterator[tuple[str, T]]:
        """Iterate over all names and objects; imports every object."""
        return ((name, self[name]) for name in self)

    def _read_entry_points(self) -> "dict[str, EntryPoint]":
        if self._entries is None:  # read once: it scans all installed packages
            from importlib.metadata import entry_points  # a slow import that `rag --help` does not need

            self._entries = {entry.name: entry for entry in entry_points(group=self.group)}
        return self._entries
