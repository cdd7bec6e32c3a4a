"""Engines: where models run. `local` is this process; the workers of `ray` are processes of a Ray cluster.

A model that an engine holds is made by its workers, from a callable that is sent to them: it names the model, as a
folder or a file at the same place on every machine.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from autoais.base.errors import UserError
from autoais.base.registry import Registry

In = TypeVar("In")
Out = TypeVar("Out")


class Engine(Protocol):
    """Applies functions to items. A model stays open between calls, so that `map` can be called for every batch."""

    @property
    def workers(self) -> int:
        """The number of items that run at once."""
        ...

    def map(self, make: Callable[[], Callable[[In], Out]], items: Iterable[In]) -> Iterator[Out]:
        """Yield the result of each item, in order; items are pulled when they are needed.

        `make` is called once in each worker and returns the function for the items. It can be pickled. A `make` that
        equals the one before finds the model open; another one takes its place, so only one is in use at a time.
        Raises what `make` and its function raise.
        """
        ...

    def close(self) -> None:
        """Close the model and leave the cluster."""
        ...


class LocalEngine:
    """The engine of this process: one item after the other. Other engines give the same results in the same order."""

    workers = 1

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        for option, value in (("address", address), ("workers", workers)):
            if value is not None:
                raise UserError(f"engine 'local' has no {option}, found {value!r}; the engine 'ray' has")
        self._open: tuple[object, Callable[[Any], Any]] | None = None

    def map(self, make: Callable[[], Callable[[In], Out]], items: Iterable[In]) -> Iterator[Out]:
        """Yield the result of each item."""
        if self._open is None or self._open[0] != make:
            self._open = None
            self._open = make, make()
        return map(self._open[1], items)

    def close(self) -> None:
        """Close the model."""
        self._open = None


# An entry is called with the address of a cluster and the number of workers, either of which may be None.
ENGINES: Registry[Callable[[str | None, int | None], Engine]] = Registry(
    "autoais.engines", "engine", {"local": LocalEngine, "ray": "autoais.base.engines.ray:RayEngine"}
)


def open_engine(name: str, address: str | None = None, workers: int | None = None) -> Engine:
    """Open `local` or `ray`; close it after use (`contextlib.closing`).

    Raises `UserError` for an unknown name, an option that the engine does not have, and a cluster that does not answer.
    """
    if workers is not None and workers < 1:
        raise UserError(f"workers must be at least 1, not {workers}")
    return ENGINES[name](address, workers)
