"""`rag doctor`: which engines are installed and work, and how to fix the others."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

from rich.console import Console
from rich.text import Text

from autoais.base.errors import first_line, install_command
from rag.base import jvm
from rag.base.errors import RagError
from rag.documents.converters.programs import INSTALL, find_program

_NUMBER = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True)
class Check:
    """One engine: its version (None if not installed), whether it works, and advice."""

    name: str
    purpose: str
    version: str | None
    works: bool
    advice: str = ""


# Distribution, module, purpose, and the extra that installs it ("" for required dependencies).
_PACKAGES = (
    ("tantivy", "tantivy", "BM25, the default retriever", ""),
    ("rank-bm25", "rank_bm25", "the readable reference", "reference"),
    ("onnxruntime", "onnxruntime", "the judge and encoders that ship with rag", ""),
    ("tokenizers", "tokenizers", "the judge and encoders that ship with rag", ""),
    ("torch", "torch", "your own models, and training", "models"),
    ("transformers", "transformers", "your own models, and training", "models"),
    ("sentence-transformers", "sentence_transformers", "dense retrieval, reranking", "dense"),
    ("onnx", "onnx", "export of trained models", "train"),
    ("ir-measures", "ir_measures", "evaluation of runs (autoais evaluate-run)", "measures"),
    ("nltk", "nltk", "ALCE's strict metrics (autoais score), with its data punkt_tab", "alce"),
    ("httpx2", "httpx2", "web pages, and models behind a server", ""),
    ("anthropic", "anthropic", "Claude (anthropic:<model>)", "anthropic"),
    ("xllamacpp", "xllamacpp", "language models from GGUF files", "gguf"),
    ("mammoth", "mammoth", "Word files", "documents"),
    ("openpyxl", "openpyxl", "Excel files", "documents"),
    ("python-pptx", "pptx", "PowerPoint files", "documents"),
    ("fastapi", "fastapi", "the server (rag serve)", "serve"),
    ("mcp", "mcp", "MCP (rag mcp, and /mcp of the server)", "serve"),
    ("sqlalchemy", "sqlalchemy", "annotation studies (rag annotate)", "annotate"),
    ("matplotlib", "matplotlib", "reports of benchmarks (rag bench report)", "report"),
)

_PROGRAMS = (
    ("pandoc", "manual pages, LaTeX, DocBook, Org, RTF and OpenDocument texts"),
    ("asciidoctor", "AsciiDoc"),
)


def examine() -> list[Check]:
    """Check all engines from package metadata, without importing them; only Java is run."""
    checks = [_package(*row) for row in _PACKAGES]
    checks[1:1] = [_lucene()]
    names = [check.name for check in checks]
    after = names.index("python-pptx") + 1
    checks[after:after] = [_program(name, purpose) for name, purpose in _PROGRAMS]
    checks.insert(names.index("sentence-transformers") + 1, _faiss())
    return checks


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _package(name: str, module: str, purpose: str, extra: str) -> Check:
    version = _version(name)
    if version is None:
        advice = install_command(extra) if extra else f"pip install {name}"
        return Check(name, purpose, None, works=False, advice=advice)
    if find_spec(module) is None:
        return Check(
            name, purpose, version, works=False, advice=f"its files are missing: pip install --force-reinstall {name}"
        )
    return Check(name, purpose, version, works=True, advice=_device(version) if name == "torch" else "")


def _device(version: str) -> str:
    """The device torch uses, from its version (2.6.0+cpu) and nvidia-smi."""
    gpu = _gpu()
    if not gpu:
        return "on the CPU"
    if version.endswith("+cpu"):
        return f"on the CPU; there is a GPU ({gpu}): install a build of torch for CUDA to use it"
    return f"on the GPU ({gpu})"


def _gpu() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    try:
        process = subprocess.run(
            [tool, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ", ".join(line.strip() for line in process.stdout.splitlines() if line.strip())


def _faiss() -> Check:
    purpose = "dense indexes"
    cpu, gpu = _version("faiss-cpu"), _version("faiss-gpu")
    if cpu and gpu:
        advice = "faiss-cpu and faiss-gpu share one module and overwrite each other: uninstall both, then install one"
        return Check("faiss", purpose, f"{cpu}, {gpu}", works=False, advice=advice)
    check = _package("faiss-gpu" if gpu else "faiss-cpu", "faiss", purpose, "dense")
    if check.version is None and find_spec("faiss") is not None:  # from conda, under another distribution name
        return Check("faiss", purpose, "not known", works=True)
    return check


def _program(name: str, purpose: str) -> Check:
    path = find_program(name)
    if path is None:
        return Check(name, purpose, None, works=False, advice=INSTALL[name])
    try:
        process = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name, purpose, "not known", works=False, advice=first_line(error))
    return Check(
        name,
        purpose,
        version[0] if (version := _NUMBER.search(process.stdout)) else "not known",
        works=True,
        advice=path,
    )


def _lucene() -> Check:
    purpose = "BM25 by Lucene, and Anserini's indexes"
    version = None
    try:
        version = jvm.find_jar().name.removeprefix("anserini-").removesuffix("-fatjar.jar")
        if find_spec("jnius") is None:
            raise RagError(f"pyjnius is not installed: {install_command('lucene')}")
        java = jvm.find_java()
    except RagError as error:
        return Check("lucene", purpose, version, works=False, advice=str(error))
    return Check(
        "lucene", purpose, version, works=True, advice=f"Anserini {version} on Java {java.version} ({java.where})"
    )


def show(checks: Sequence[Check]) -> None:
    """Print one line per engine; colour in a terminal, plain text in a pipe."""
    console = Console(highlight=False, markup=False, emoji=False)
    names = max(len(check.name) for check in checks)
    versions = max(len(check.version or "") for check in checks)
    for check in checks:
        line = Text(f"{'works' if check.works else 'no':<6}", style="green" if check.works else "red")
        line.append(f"{check.name:<{names}}  {check.version or '':<{versions}}  ", style="default")
        line.append(check.purpose + (f": {check.advice}" if check.advice else ""), style="default")
        console.print(line, soft_wrap=True)
