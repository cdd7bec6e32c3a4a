"""Static embeddings: a text's vector is the mean of its word pieces' vectors. Thousands of passages per second."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from autoais.base.errors import first_line
from autoais.base.io.paths import user_path
from autoais.base.io.provenance import sha256_files
from autoais.base.models.onnx import open_tokenizer
from autoais.base.models.pairs import readable
from rag.base.errors import RagError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


SHIPPED = Path(__file__).parents[2] / "data" / "static"


class Static:
    """The embeddings in a folder written by `rag train` (default: those that ship with rag).

    `table.npz` holds `rows` (word pieces, dimension) int8 and `scale` (word pieces, 1) float32; rows include the
    weights of word pieces. A text without a known word piece has the zero vector. Raises `RagError` if a file is
    missing or invalid.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = user_path(folder) if folder else SHIPPED
        for name in ("table.npz", "tokenizer.json"):
            if not (self.folder / name).is_file():
                raise RagError(f"{self.folder}: {name} is missing; name a folder written by `rag train`")

    @cached_property
    def name(self) -> str:
        """`static@<8 hex of the SHA-256 of table and tokenizer>`."""
        files = (self.folder / name for name in ("table.npz", "tokenizer.json"))
        return f"static@{sha256_files(files)[:8]}"

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        return open_tokenizer(self.folder / "tokenizer.json", RagError)

    @cached_property
    def _table(self) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """The rows and their scales; only the rows that a text needs are made floats."""
        try:
            with np.load(self.folder / "table.npz", allow_pickle=False) as arrays:
                rows: NDArray[np.int8] = arrays["rows"]
                scale: NDArray[np.float32] = arrays["scale"].astype(np.float32)
        except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
            raise RagError(f"{self.folder}: table.npz cannot be read ({first_line(error)})") from error
        fits = rows.ndim == 2 and rows.dtype == np.int8 and scale.shape == (len(rows), 1)
        if not fits or len(rows) < self._tokenizer.get_vocab_size() or not np.isfinite(scale).all():
            raise RagError(f"{self.folder}: table.npz is not a table of this tokenizer's word pieces")
        return rows, scale

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        rows, _ = self._table
        return int(rows.shape[1])

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode queries, (texts, dimension) float32, with norm 1, or 0 for texts without a known word piece."""
        # Fast, as it finds no offsets.
        encoded = self._tokenizer.encode_batch_fast([readable(text) for text in texts], add_special_tokens=False)
        rows, scale = self._table
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, encoding in enumerate(encoded):
            if encoding.ids:
                vectors[row] = (rows[encoding.ids].astype(np.float32) * scale[encoding.ids]).mean(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1.0)
        return vectors

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode passages in the same way as queries."""
        return self.queries(texts)
