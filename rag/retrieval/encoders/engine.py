"""An encoder whose models are held by the workers of an engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autoais.base.engines import Engine
from rag.base.errors import RagError
from rag.retrieval.encoders.kinds import BATCH, Encoder, open_here

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_PIECES = 4  # for each worker of a call


@dataclass(frozen=True)
class OpenEncoder:
    """Opens an encoder in a worker; `expected` is the name that it has where the run was started."""

    name: str
    expected: str

    def __call__(self) -> "Callable[[Sequence[str]], Vectors]":
        """Return the method `passages`; raises `RagError` for another model, or another version of it."""
        encoder = open_here(self.name)
        if encoder.name != self.expected:
            raise RagError(
                f"encoder {self.name!r} is {encoder.name} here, {self.expected} where the run was started; "
                "put the same model on both"
            )
        return encoder.passages


class EngineEncoder:
    """Splits passages into the same batches as one process, for the workers of an engine; encodes queries itself."""

    def __init__(self, encoder: Encoder, name: str, engine: Engine) -> None:
        self._encoder, self._engine = encoder, engine
        self._make = OpenEncoder(name, encoder.name)

    @property
    def name(self) -> str:
        """The name of the encoder."""
        return self._encoder.name

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return self._encoder.dimension

    @property
    def at_once(self) -> int:
        """Passages per call for callers with many: some batches for each worker."""
        return BATCH * _PIECES * self._engine.workers

    def queries(self, texts: Sequence[str]) -> "Vectors":
        """Encode queries here: they are few."""
        return self._encoder.queries(texts)

    def passages(self, texts: Sequence[str]) -> "Vectors":
        """Encode the batches side by side."""
        import numpy as np

        if not texts:
            return self._encoder.passages(texts)
        pieces = (list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH))
        return np.concatenate(list(self._engine.map(self._make, pieces)))
