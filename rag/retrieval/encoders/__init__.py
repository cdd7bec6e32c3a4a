"""Encoders: texts to vectors."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from rag.retrieval.encoders.engine import EngineEncoder
from rag.retrieval.encoders.kinds import Encoder, open_here

if TYPE_CHECKING:
    from autoais.base.engines import Engine

# Kinds of retrievers open their encoders themselves, also those of other packages.
_engine: "ContextVar[Engine | None]" = ContextVar("engine", default=None)


@contextmanager
def encoding_on(engine: "Engine | None") -> Iterator[None]:
    """Let the workers of an engine encode passages, by all encoders that are opened inside the `with` block."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def open_encoder(name: str) -> Encoder:
    """Open `minilm`, `static[:<folder>]`, `onnx:<folder or package>`, `st:<name or folder>`; else raise `RagError`."""
    encoder, engine = open_here(name), _engine.get()
    if engine is None:
        return encoder
    return EngineEncoder(encoder, name, engine)
