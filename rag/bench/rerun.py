"""Runs reproductions: each command in an empty folder, without a shell, and its output beside the expected values."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import autoais
from autoais.base.io.jsonl import read_objects
from autoais.base.io.provenance import provenance
from rag.base.errors import RagError, UserError
from rag.bench.reproductions import Expected, Reproduction, Step, list_reproductions, read_reproduction
from rag.bench.tables import inside

_ROOT = Path(__file__).parents[2]
_DATA = "data"  # the folder of a run that holds the data
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Value:
    """A value found (None: there is none) beside the one expected.

    `step` is the number of the command, from 1; `place` is where the value stands in its output. `status` is ok,
    differs, failed (a command did) or skipped.
    """

    step: int
    place: str
    expected: Expected
    found: Any = None
    difference: float | None = None
    status: str = "differs"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Reproduced:
    """The values of a reproduction; `skip_reason` is the reason if nothing was run."""

    reproduction: Reproduction
    values: tuple[Value, ...]
    skip_reason: str | None = None

    @property
    def ok(self) -> bool:
        """Whether no value differs and no command failed."""
        return all(value.status in ("ok", "skipped") for value in self.values)


def reproduce(
    *names: str | Path,
    data: str | Path | None = None,
    quick: bool = False,
    progress: Callable[[str], None] | None = None,
    on_result: Callable[[Reproduced], None] | None = None,
) -> list[Reproduced]:
    """Run reproductions by name or `.toml` file (default: all); with `quick`, only those that take seconds.

    `data` is the folder of the data; what needs files that are not there, or have another checksum, is skipped.
    `progress` is called with each command before it is run, `on_result` with each reproduction after it. Raises
    `RagError` for an unknown name and for a file that is not a reproduction, before anything is run.
    """
    folder = None if data is None else Path(data)
    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder} is not a folder; name the folder of the data")
    reproductions = [read_reproduction(name) for name in names] if names else list_reproductions()
    results = []
    for reproduction in reproductions:
        if reproduction.quick or not quick:
            results.append(_reproduce(reproduction, folder, progress))
            if on_result is not None:
                on_result(results[-1])
    return results


def results_record(results: Sequence[Reproduced]) -> dict[str, Any]:
    """Return results as JSON, with their provenance."""
    rows = []
    for result in results:
        reproduction = result.reproduction
        data = [{"file": data_file.file.file, "sha256": data_file.file.sha256} for data_file in reproduction.data]
        commands = [step.line for step in reproduction.steps]
        rows.append(
            {
                "name": reproduction.name,
                "reproduces": reproduction.reproduces,
                "ok": result.ok,
                "skipped": result.skip_reason,
            }
            | {"commands": commands, "data": data, "values": [asdict(value) for value in result.values]}
        )
    return {
        "counts": counts(results),
        "reproductions": rows,
        "provenance": provenance({result.reproduction.name: result.reproduction.path for result in results}),
    }


def counts(results: Sequence[Reproduced]) -> dict[str, int]:
    """Count values by status."""
    statuses = [value.status for result in results for value in result.values]
    return {status: statuses.count(status) for status in ("ok", "differs", "failed", "skipped")}


def _reproduce(reproduction: Reproduction, data: Path | None, progress: Callable[[str], None] | None) -> Reproduced:
    reason = _lacks(reproduction, data)
    if reason is not None:
        skipped_values = tuple(
            Value(number, "/".join(keys), expected, status="skipped", reason=reason)
            for number, step in enumerate(reproduction.steps, 1)
            for keys, expected in step.expected.items()
        )
        return Reproduced(reproduction, skipped_values, reason)
    values: list[Value] = []
    failure: str | None = None
    with TemporaryDirectory(prefix="rag-reproduce-") as name:
        work = Path(name)
        try:
            _lay_out(reproduction, data or work, work)
        except (OSError, UserError) as error:
            failure = str(error)
        for number, step in enumerate(reproduction.steps, 1):
            output: Any = None
            if failure is None:
                if progress is not None:
                    progress(f"{reproduction.name}: {step.line}")
                try:
                    output = _output(step, work)
                except (OSError, ValueError, UserError) as error:
                    failure = f"{step.line[:60]}: {error}"
            for keys, expected in step.expected.items():
                value = Value(number, "/".join(keys), expected, status="failed", reason=failure)
                values.append(value if failure else _compare(value, _find(output, keys), step.tolerance))
    return Reproduced(reproduction, tuple(values))


def _lacks(reproduction: Reproduction, data: Path | None) -> str | None:
    """Why a reproduction cannot be run here, or None."""
    if any(step.command[0] == "python" for step in reproduction.steps) and not (_ROOT / "scripts" / "bench").is_dir():
        return "its scripts are in a checkout of the project, not in an installed package"
    if missing := [name for name in reproduction.packages if find_spec(name) is None]:
        return f"needs the Python package {missing[0]}, which is not installed"
    for data_file in reproduction.data:
        if data is None:
            return f"needs {data_file.file.file} ({data_file.source}): name the folder of the data (--data)"
        try:
            data_file.file.check(data, reproduction.path.parent)
        except RagError as error:
            return f"{error} ({data_file.source})"
    return None


def _lay_out(reproduction: Reproduction, data: Path, work: Path) -> None:
    """Copy the data and the inputs into the folder of a run: what a command writes there touches no original."""
    files = {f"{_DATA}/{data_file.file.file}": data / data_file.file.file for data_file in reproduction.data}
    files |= {name: inside(reproduction.path.parent, name, links=False) for name in reproduction.inputs}
    for name, source in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, work / name)


def _output(step: Step, work: Path) -> Any:  # noqa: ANN401  (JSON)
    """Run a command in the folder; return its output: JSON, objects of a .jsonl or .csv, or lines of a .txt."""
    program = step.command[2:] if step.command[0] == "python" else step.command
    # -P: a file that an earlier command wrote into the folder is never imported.
    argv = [sys.executable, "-P", "-m", *program]
    process = subprocess.run(
        argv, cwd=work, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if process.returncode:
        error_lines = process.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UserError(f"exit code {process.returncode}, {error_lines[-1] if error_lines else 'without a message'}")
    if not step.expected:
        return None
    if step.output is None:
        return json.loads(process.stdout)
    path = inside(work, step.output, links=False)
    if path.suffix == ".jsonl":
        return [row for _, row in read_objects(path)]
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            return list(csv.DictReader(file))
        return file.read().splitlines() if path.suffix == ".txt" else json.load(file)


def _environment() -> dict[str, str]:
    """This process's environment, with the same packages, without a person's settings, and offline."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("RAG_")}
    python_path = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
    # No relative paths: they would name the folder of the run.
    roots = [_ROOT, Path(autoais.__file__).parents[1], *map(Path, python_path)]
    path = os.pathsep.join(str(root.resolve()) for root in roots)
    own_variables = {"PYTHONPATH": path, "RAG_CONFIG": os.devnull, "RAG_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    return variables | own_variables


def _compare(value: Value, actual: object, tolerance: float) -> Value:
    expected, difference = value.expected, None
    if actual is _MISSING:
        return replace(value, status="differs", reason="not in the output")
    is_same = type(actual) is type(expected) and actual == expected
    if not isinstance(actual, bool) and isinstance(actual, int | float) and type(expected) in (int, float):
        difference = round(actual - float(expected), 12)  # 0.8255 is within 0.0005 of 0.826, whatever the bits say
        is_same = abs(difference) <= tolerance
    return replace(value, found=actual, difference=difference, status="ok" if is_same else "differs")


def _find(value: Any, keys: Sequence[str]) -> Any:  # noqa: ANN401  (JSON)
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key, _MISSING)
        elif isinstance(value, list):
            name, equals, expected_value = key.partition("=")
            rows = [row for row in value if isinstance(row, dict) and equals and str(row.get(name)) == expected_value]
            if len(rows) == 1:
                (value,) = rows
            else:
                value = value[int(key)] if key.isdecimal() and int(key) < len(value) else _MISSING
        else:
            return _MISSING
    return value
