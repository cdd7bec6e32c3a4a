"""`autoais train` where its packages are not installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import one_line_error


@pytest.mark.parametrize("package", ["torch", "onnx"])
def test_a_missing_package_is_one_line_before_anything_is_done(tmp_path: Path, package: str) -> None:
    code = f"""
import importlib.util
import sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == {package!r} else found(name) or "there"
sys.path.insert(0, {str(Path(__file__).parents[3] / "eval")!r})
sys.argv = ["autoais", "train", "r.toml", "--data", ".", "--out", "model"]
from autoais.commands.main import main
main()
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    one_line_error(result, f'training needs {package}: pip install -e ".[train]"')
    assert not any(tmp_path.iterdir())
