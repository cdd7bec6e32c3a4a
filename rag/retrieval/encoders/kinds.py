"""What an encoder is, and the table of kinds; the module of a kind is imported only when one is opened."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from autoais.base.registry import Registry
from rag.base.errors import RagError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

BATCH = 512  # passages encoded in one call, by whoever has many


class Encoder(Protocol):
    """Makes vectors whose inner product is the similarity of two texts."""

    @property
    def name(self) -> str:
        """Identifies everything that can change a vector: model, checksum or revision, prefixes, pooling, length."""
        ...

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        ...

    def queries(self, texts: Sequence[str]) -> "Vectors":
        """Encode queries, (texts, dimension) float32; a vector must not depend on the other texts."""
        ...

    def passages(self, texts: Sequence[str]) -> "Vectors":
        """Encode passages (headings and text), (texts, dimension) float32."""
        ...


# An entry is called with the part of the name after the colon (or "") and returns an `Encoder`.
ENCODERS: Registry[Callable[[str], Encoder]] = Registry(
    "rag.encoders",
    "encoder",
    {
        "minilm": "rag.retrieval.encoders.minilm:MiniLM",
        "onnx": "rag.retrieval.encoders.onnx:OnnxEncoder",
        "st": "rag.retrieval.encoders.sentence:SentenceEncoder",
        "static": "rag.retrieval.encoders.static:Static",
    },
    RagError,
)


def open_here(name: str) -> Encoder:
    """Open an encoder in this process, whatever `encoding_on` says."""
    kind, _, model = name.partition(":")
    return ENCODERS[kind](model)
