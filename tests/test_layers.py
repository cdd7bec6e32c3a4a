"""Imports: the packages load nothing before it is used. The order of the rooms is checked by import-linter."""

import subprocess
import sys
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
