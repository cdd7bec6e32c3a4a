"""Engines: where models run. `local` is this process; the workers of `ray` are processes of a Ray cluster.

A model that an engine holds is made by its workers, from a callable that is sent to them: it names the model, as a
folder or a file at the same place on every machine.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from autoais.errors import UserError
from autoais.registry import Registry

In = TypeVar("In")
Out = TypeVar("Out")


class Engine(Protocol):
    """Applies functions to items. Models stay open until `close`, so that `map` can be called for every batch."""

    @property
    def workers(self) -> int:
        """How many items are worked on at once."""
        ...

    def map(self, make: Callable[[], Callable[[In], Out]], items: Iterable[In]) -> Iterator[Out]:
        """Yield the result of each item, in order; items are pulled when they are needed.

        `make` is called once in each worker and returns the function for the items. It can be pickled, and a `make`
        that equals an earlier one finds the model open. Raises what `make` and its function raise.
        """
        ...

    def close(self) -> None:
        """Close the models and leave the cluster."""
        ...


class LocalEngine:
    """This process, one item after the other: the order and the results that other engines are held to."""

    workers = 1

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        for option, value in (("address", address), ("workers", workers)):
            if value is not None:
                raise UserError(f"engine 'local' has no {option}, found {value!r}; --engine ray has")
        self._open: list[tuple[object, Callable[[Any], Any]]] = []

    def map(self, make: Callable[[], Callable[[In], Out]], items: Iterable[In]) -> Iterator[Out]:
        """Yield the result of each item."""
        work = next((work for made_by, work in self._open if made_by == make), None)
        if work is None:
            work = make()
            self._open.append((make, work))
        return map(work, items)

    def close(self) -> None:
        """Close the models."""
        self._open.clear()


# An entry is called with the address of a cluster and the number of workers, either of which may be None.
ENGINES: Registry[Callable[[str | None, int | None], Engine]] = Registry(
    "autoais.engines", "engine", {"local": LocalEngine, "ray": "autoais.engines.ray:RayEngine"}
)


def open_engine(name: str, address: str | None = None, workers: int | None = None) -> Engine:
    """Open `local` or `ray`; close it after use (`contextlib.closing`).

    Raises `UserError` for an unknown name, an option that the engine does not have, and a cluster that does not answer.
    """
    if workers is not None and workers < 1:
        raise UserError(f"workers must be at least 1, not {workers}")
    return ENGINES[name](address, workers)
