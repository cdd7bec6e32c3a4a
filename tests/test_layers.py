"""The packages as they lean on one another: no circles, and nothing of the floor knows what stands on it."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import autoais
import rag

ROOT = Path(__file__).parents[1]


def modules() -> dict[str, Path]:
    """All modules of both packages by name."""
    found = {}
    for package, base in (("rag", ROOT), ("autoais", ROOT / "eval")):
        for path in (base / package).rglob("*.py"):
            parts = path.relative_to(base).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """What a module imports when it is imported, and for its types; not what functions import when they run."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If | ast.Try):
            yield from imports([*statement.body, *statement.orelse])


def graph() -> dict[str, set[str]]:
    known = modules()
    found: dict[str, set[str]] = {}
    for name, path in known.items():
        needed = found.setdefault(name, set())
        for statement in imports(ast.parse(path.read_text("utf-8")).body):
            if isinstance(statement, ast.Import):
                needed.update(alias.name for alias in statement.names)
            elif statement.module:
                inner = [f"{statement.module}.{alias.name}" for alias in statement.names]
                needed.update(one if one in known else statement.module for one in inner)
        needed.intersection_update(known)
        needed.discard(name)
    return found


def test_no_module_imports_itself_by_a_detour() -> None:
    # The packages name what they export for type checkers, and import it on first use.
    without_doors = {name: needed for name, needed in graph().items() if name not in ("rag", "autoais")}
    order = list(TopologicalSorter(without_doors).static_order())  # raises CycleError, which names the circle
    assert len(order) >= len(without_doors)


def test_importing_the_packages_imports_nothing_else() -> None:
    code = (
        "import sys; before = set(sys.modules); import rag, autoais\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names)), sorted(n for n in sys.modules if n.startswith('rag.')))"
    )
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['autoais', 'rag'] []"


def test_no_module_is_called_as_a_public_name() -> None:
    # Importing `autoais.compare` would put the module in the place of the function `compare`.
    for package in (rag, autoais):
        names = set(package.__all__)
        assert not names & {name.split(".")[1] for name in modules() if name.startswith(f"{package.__name__}.")}
