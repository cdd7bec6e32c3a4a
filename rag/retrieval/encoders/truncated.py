"""The first numbers of the vectors of another encoder: `truncated:128,static`.

Vectors take less memory and disk, and find less. Models trained for it lose little (Matryoshka representation learning,
Kusupati et al. 2022); others lose more (`eval/results/truncated.json`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag.base.errors import RagError
from rag.retrieval.encoders.kinds import open_here

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Truncated:
    """Keeps the first numbers of each vector, and its length. Raises `RagError` for more numbers than there are."""

    def __init__(self, model: str) -> None:
        size, _, name = model.partition(",")
        if not (size.isascii() and size.isdecimal() and len(size) < 8 and int(size) and name):
            raise RagError(f"encoder 'truncated:{model}': should be a number and an encoder: truncated:128,static")
        self._encoder, self._size = open_here(name), int(size)
        if self._size > self._encoder.dimension:
            raise RagError(f"encoder 'truncated:{model}': {name} has {self._encoder.dimension} dimensions")

    @property
    def name(self) -> str:
        """The name of the whole encoder and the number of dimensions."""
        return f"truncated:{self._size}({self._encoder.name})"

    @property
    def dimension(self) -> int:
        """The number of dimensions that are kept."""
        return self._size

    def queries(self, texts: Sequence[str]) -> "Vectors":
        """Encode queries."""
        return self._cut(self._encoder.queries(texts))

    def passages(self, texts: Sequence[str]) -> "Vectors":
        """Encode passages."""
        return self._cut(self._encoder.passages(texts))

    def _cut(self, vectors: "Vectors") -> "Vectors":
        import numpy as np

        prefix = vectors[:, : self._size]
        lengths, shorter = (np.linalg.norm(part, axis=1, keepdims=True) for part in (vectors, prefix))
        scaled: Vectors = (prefix * (lengths / np.maximum(shorter, 1e-30))).astype(np.float32)
        return scaled
