"""Encoders: texts to vectors. Each kind has a module, imported only when one is opened."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from rag.errors import RagError

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


ENCODERS: dict[str, Callable[[str], Encoder]] = {}


def open_encoder(name: str) -> Encoder:
    """`static`, `onnx:<folder>`, `st:<name or folder>`; `RagError` lists the kinds there are."""
    kind, _, model = name.partition(":")
    try:
        return ENCODERS[kind](model)
    except KeyError:
        raise RagError(f"no encoder called {kind!r}; there are: {', '.join(ENCODERS)}") from None
