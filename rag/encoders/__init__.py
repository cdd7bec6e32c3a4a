"""Encoders: texts to vectors. Each kind has a module, imported only when one is opened."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from rag.errors import RagError
from rag.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Makes vectors whose inner product says how alike two texts are."""

    @property
    def name(self) -> str:
        """Says all that changes a vector: the model, its checksum or revision, prefixes, pooling, length."""
        ...

    @property
    def dimension(self) -> int:
        """Of the vectors."""
        ...

    def queries(self, texts: Sequence[str]) -> "Vectors":
        """(texts, dimension), float32; each text by itself, whatever else is encoded with it."""
        ...

    def passages(self, texts: Sequence[str]) -> "Vectors":
        """The same for passages: headings and text."""
        ...


# Kind of encoder -> module. It has `encoder(model)`, which is given what stands behind the colon of the name.
ENCODERS = {
    "onnx": "rag.encoders.onnx",
    "st": "rag.encoders.sentence",
    "static": "rag.encoders.static",
}


def open_encoder(name: str) -> Encoder:
    """`static[:<folder>]`, `onnx:<folder or package>`, `st:<name or folder>`; `RagError` lists the kinds there are."""
    kind, _, model = name.partition(":")
    if kind not in ENCODERS:
        raise RagError(f"no encoder called {kind!r}; there are: {', '.join(ENCODERS)}")
    opened: Encoder = import_module(ENCODERS[kind]).encoder(model)
    return opened


def passage_text(passage: Passage) -> str:
    """What every encoder is given of a passage."""
    return f"{passage.headings} {passage.text}".strip()
