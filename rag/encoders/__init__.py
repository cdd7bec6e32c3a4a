"""Encoders: texts to vectors. The module of a kind is imported only when one is opened."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from autoais.registry import Registry
from rag.errors import RagError
from rag.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


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
        "onnx": "rag.encoders.onnx:OnnxEncoder",
        "st": "rag.encoders.sentence:SentenceEncoder",
        "static": "rag.encoders.static:Static",
    },
    RagError,
)


def open_encoder(name: str) -> Encoder:
    """Open `static[:<folder>]`, `onnx:<folder or package>` or `st:<name or folder>`; others raise `RagError`."""
    kind, _, model = name.partition(":")
    return ENCODERS[kind](model)


def passage_text(passage: Passage) -> str:
    """The text of a passage for encoders: headings and text."""
    return f"{passage.headings} {passage.text}".strip()
