"""ONNX networks and their tokenizers, on the CPU with one thread per run."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from autoais.base.errors import UserError, first_line
from autoais.base.io.provenance import sha256_file

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer


def cores() -> int:
    """Return how many texts to read in parallel: `OMP_NUM_THREADS` (a worker's share in a cluster), or all cores."""
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(setting) if setting.isdecimal() and int(setting) else os.cpu_count() or 1


def open_session(
    path: Path, error: type[UserError] = UserError, way_out: str = "", *, also: str = ""
) -> "InferenceSession":
    """The network in a file; raises `error`, with `way_out` appended, if the file cannot be loaded.

    Each run uses one thread: texts run in parallel, and floating-point sums do not depend on the number of cores.
    `also` names a value inside the network that is one of its outputs too.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        model = path.read_bytes() + _output(also) if also else str(path)
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as fault:
        raise error(f"{path}: not a usable ONNX model ({first_line(fault)}){way_out}") from fault


def _output(name: str) -> bytes:
    """A model that has nothing but an output of that name.

    Messages of protobuf that follow each other are merged, so it adds the output to the model before it. By onnx.proto,
    the graph is field 7 of a model, an output field 12 of a graph, and its name field 1.
    """
    message = name.encode()
    for number in (1, 12, 7):
        assert len(message) < 0x80  # longer ones need a length of several bytes
        message = bytes([number << 3 | 2, len(message)]) + message
    return message


def open_tokenizer(path: Path, error: type[UserError] = UserError) -> "Tokenizer":
    """The tokenizer of a `tokenizer.json`, without truncation and padding, for reading only.

    Files with the same content share one. Raises `error` if it cannot be read.
    """
    try:
        return _tokenizer(path, sha256_file(path))
    except Exception as fault:
        raise error(f"{path}: not a tokenizer ({first_line(fault)})") from fault


# By the SHA-256 of the file: judge, reader and static vectors ship with the same tokenizer.
_tokenizers: dict[str, "Tokenizer"] = {}


def _tokenizer(path: Path, digest: str) -> "Tokenizer":
    from tokenizers import Tokenizer

    if digest in _tokenizers:
        return _tokenizers[digest]
    tokenizer = _tokenizers[digest] = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
