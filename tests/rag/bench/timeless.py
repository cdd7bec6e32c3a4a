"""Compares run folders of benchmarks without the times in them."""

import json
from pathlib import Path
from typing import Any

from autoais.base.io.jsonl import read_objects

_TIMES = {"seconds", "latency", "command", "date"}


def timeless(folder: Path) -> dict[str, object]:
    """The files of a run without the times in them, and without the checksums of the files that hold times."""
    found: dict[str, object] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        inside = path.relative_to(folder)
        if "index" in inside.parts:
            continue
        name = inside.as_posix()
        if path.suffix == ".jsonl":
            found[name] = [_strip(row) for _, row in read_objects(path)]
        elif path.suffix == ".json":
            found[name] = _strip(json.loads(path.read_text("utf-8")))
        else:
            found[name] = path.read_bytes()
    assert found, folder
    return found


def _strip(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        times = _TIMES | ({"sha256"} if value.keys() == {"rows", "sha256"} else set())
        return {key: _strip(one) for key, one in value.items() if key not in times}
    return [_strip(one) for one in value] if isinstance(value, list) else value
