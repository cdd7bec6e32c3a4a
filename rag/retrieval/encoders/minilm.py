"""`minilm`: all-MiniLM-L6-v2 in int8, without a further package: it is the trunk of the judge that ships with rag."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from typing import TYPE_CHECKING

from autoais.base.io.provenance import sha256_files
from autoais.base.models.onnx import cores, open_session
from autoais.base.models.pairs import MAX_CLAIM, PairEncoder
from autoais.judges.minilm import MODEL_FOLDER
from rag.base.errors import RagError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

    Vectors = NDArray[np.float32]

RULES = 1  # version of the encoding; increase it with every change that affects vectors
_MAX_CHARACTERS = 100_000  # characters; 126 word pieces are shorter, and a text takes 200 times its size in memory
# The network's value for the mean vector of the evidence, which it compares with that of the claim.
_MEAN = "/network/Div_4_output_0"


class MiniLM:
    """Encodes each text separately, up to `threads` in parallel: the first 126 word pieces, mean pooled, length 1.

    A core encodes some 70 passages of 100 words a second. Raises `RagError` for a model: there is only this one.
    """

    def __init__(self, model: str = "", *, threads: int | None = None) -> None:
        if model:
            raise RagError(f"the encoder 'minilm' takes no model, found {model!r}; onnx:<folder> opens your own")
        self.threads = threads or cores()

    @cached_property
    def name(self) -> str:
        """`minilm@<8 hex of the SHA-256 of rules, network and tokenizer>/<word pieces>`."""
        files = (MODEL_FOLDER / name for name in ("model.onnx", "tokenizer.json"))
        return f"minilm@{sha256_files(files, str(RULES))[:8]}/{MAX_CLAIM - 2}"

    @cached_property
    def dimension(self) -> int:
        """The dimension of the vectors, 384."""
        return len(self._one("a"))

    def queries(self, texts: Sequence[str]) -> "Vectors":
        """Encode queries as passages, (texts, 384); one without letters and digits has the zero vector."""
        vectors = self.passages(texts)
        vectors[[not any(map(str.isalnum, text)) for text in texts]] = 0
        return vectors

    def passages(self, texts: Sequence[str]) -> "Vectors":
        """Encode passages, (texts, 384)."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        _encoder(), _session()  # load them before the threads start
        with ThreadPoolExecutor(self.threads) as pool:
            return np.stack(list(pool.map(self._one, texts)))

    def _one(self, text: str) -> "Vectors":
        import numpy as np

        ids, types = _encoder().plain("", text[:_MAX_CHARACTERS])
        (mean,) = _session().run([_MEAN], {"ids": np.array([ids]), "types": np.array([types])})
        vector: Vectors = mean.reshape(-1)
        return vector / max(float(np.linalg.norm(vector)), 1e-12)


# One process loads the model once, however many indexes it opens.
@cache
def _encoder() -> PairEncoder:
    return PairEncoder.from_file(MODEL_FOLDER / "tokenizer.json")


@cache
def _session() -> "InferenceSession":
    return open_session(MODEL_FOLDER / "model.onnx", RagError, only=_MEAN)
