"""Names of a package that are imported on first use."""

from collections.abc import Callable, Mapping
from importlib import import_module


def on_first_use(package: str, sources: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package; `sources` maps each of its modules to the names in it."""
    modules = {name: module for module, names in sources.items() for name in names.split()}

    def get(name: str) -> object:
        if name in modules:
            return getattr(import_module(modules[name]), name)
        if name == "__version__":
            from importlib.metadata import version

            return version("attributed-rag")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
