"""A benchmark (`eval/benchmarks/<name>.toml`): questions and corpus by path and checksum; no data is included."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoais.io.provenance import sha256_file
from rag.errors import RagError
from rag.resources import folder, names


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of a benchmark: its path relative to the data folder, and its SHA-256."""

    file: str
    sha256: str

    def check(self, data: Path) -> Path:
        """The path of the file; raises `RagError` if it is missing or has another checksum."""
        path = data / self.file
        if not path.is_file():
            raise RagError(f"{path} is missing; name the folder of the data")
        found = sha256_file(path)
        if found != self.sha256:
            raise RagError(f"{path} is another version: sha256 {found[:12]}..., expected {self.sha256[:12]}...")
        return path


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Questions, corpus and depth of a benchmark; every report of a result must state `closed_pool`."""

    name: str
    version: int
    description: str
    closed_pool: bool
    licence: str
    questions: DataFile
    corpus: DataFile
    format: str
    k: int


def read_benchmark(name: str) -> Benchmark:
    """Read a benchmark that ships with the package; raises `RagError` for an unknown name."""
    known = names("benchmarks", ".toml")
    if name not in known:
        raise RagError(f"no benchmark called {name!r}; there are: {', '.join(known)}")
    table = tomllib.loads(folder("benchmarks").joinpath(f"{name}.toml").read_text("utf-8"))
    return Benchmark(
        name=table["name"],
        version=table["version"],
        description=table["description"],
        closed_pool=table["closed_pool"],
        licence=table["licence"],
        questions=_file(table["questions"]),
        corpus=_file(table["corpus"]),
        format=table["corpus"]["format"],
        k=table["k"],
    )


def _file(table: Mapping[str, Any]) -> DataFile:
    return DataFile(table["file"], table["sha256"])
