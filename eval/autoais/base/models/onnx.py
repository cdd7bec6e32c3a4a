"""ONNX networks and their tokenizers, on the CPU with one thread per run."""

import os
from collections.abc import Iterator
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
    path: Path, error: type[UserError] = UserError, way_out: str = "", *, only: str = ""
) -> "InferenceSession":
    """The network in a file; raises `error`, with `way_out` appended, if the file cannot be loaded.

    Each run uses one thread: texts run in parallel, and floating-point sums do not depend on the number of cores.
    With `only`, the network is cut down to what that value inside it is computed from; the value is its one output.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        model = _cut(path.read_bytes(), only) if only else str(path)
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as fault:
        raise error(f"{path}: not a usable ONNX model ({first_line(fault)}){way_out}") from fault


# Numbers of fields in onnx.proto.
_GRAPH = 7
_NODE, _OUTPUT = 1, 12  # of a graph
_NODE_INPUT, _NODE_OUTPUT = 1, 2
_NAME = 1  # of an output


def _cut(model: bytes, output: str) -> bytes:
    """A model without the nodes that an output does not need: onnxruntime runs all nodes, whatever it is asked for.

    Nodes are in the order in which they run, as ONNX demands.
    """
    nodes, other_parts, pieces = [], [], []
    for number, content, piece in _fields(model):
        if number != _GRAPH:
            pieces.append(piece)
            continue
        for number_in_graph, node, part in _fields(content):
            if number_in_graph == _NODE:
                nodes.append((node, part))
            elif number_in_graph != _OUTPUT:
                other_parts.append(part)
    needed_names, needed_nodes = {output.encode()}, []
    for node, part in reversed(nodes):
        values = [(number, bytes(name)) for number, name, _ in _fields(node)]
        if any(number == _NODE_OUTPUT and name in needed_names for number, name in values):
            needed_names |= {name for number, name in values if number == _NODE_INPUT}
            needed_nodes.append(part)
    graph = b"".join([*reversed(needed_nodes), *other_parts, _field(_OUTPUT, _field(_NAME, output.encode()))])
    return b"".join([*pieces, _field(_GRAPH, graph)])


def _fields(message: bytes | memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yield (number, content, whole field) of a message of protobuf; raises `ValueError` if it is damaged."""
    view, position = memoryview(message), 0
    while position < len(view):
        start = position
        key, position = _varint(view, position)
        length = {1: 8, 5: 4}.get(key & 7, 0)
        if key & 7 in (0, 2):
            number, position = _varint(view, position)
            length = number if key & 7 == 2 else 0
        elif not length:
            raise ValueError(f"field of type {key & 7}")
        if length > len(view) - position:
            raise ValueError("it ends inside a field")
        yield key >> 3, view[position : position + length], view[start : position + length]
        position += length


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    """A number of seven bits a byte, and the position after it."""
    number = shift = 0
    while True:
        if position == len(view) or shift > 63:
            raise ValueError("it ends inside a number")
        byte = view[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position


def _field(number: int, content: bytes) -> bytes:
    """A field with a length before its content."""
    head, length = bytearray([number << 3 | 2]), len(content)
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + content


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
