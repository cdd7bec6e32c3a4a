"""`st:<name or folder>`: a SentenceTransformer with its own prompts, pooling and length, on a GPU if there is one."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.errors import first_line
from rag.errors import RagError, missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_GPU_BATCH = 64
_MODEL_FILES = (".bin", ".json", ".model", ".safetensors", ".txt")


def encoder(model: str) -> "SentenceEncoder":
    """By name on the Hugging Face hub, or by folder."""
    return SentenceEncoder(model)


class SentenceEncoder:
    """Encodes queries one at a time, so that no other query changes a result.

    Passages too on a CPU; on a GPU in batches of 64, whose padding can change a vector in its last digits. Vectors
    have length 1, but for models that say that their similarity is the dot product. Code that comes with a model is
    not run. Raises `RagError` where sentence-transformers is not installed or the model cannot be opened.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.folder = Path(model).expanduser()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise missing_extra(f"the encoder st:{model}", "dense") from None
        from autoais.judges.hf import quiet

        local = self.folder.is_dir()
        if local and not (self.folder / "config.json").is_file() and not (self.folder / "modules.json").is_file():
            raise RagError(f"st:{model}: the folder has neither config.json nor modules.json; it is no model")
        try:
            with quiet(local=local):
                self._model: Any = SentenceTransformer(str(self.folder) if local else model)
        except Exception as error:
            raise RagError(f"st:{model}: cannot be opened as a SentenceTransformer ({first_line(error)})") from error
        self._normalize = self._model.similarity_fn_name != "dot"

    @cached_property
    def name(self) -> str:
        """`st:<model>@<8 hex>/<tokens>`, as `named`."""
        return f"st:{named(self.model, self._model)}/{self._model.max_seq_length}"

    @cached_property
    def dimension(self) -> int:
        """Of the vectors."""
        return len(self.queries(["a"])[0])

    def queries(self, texts: Sequence[str]) -> "Vectors":
        """(texts, dimension), float32."""
        return self._encode(texts, ("query",), 1)

    def passages(self, texts: Sequence[str]) -> "Vectors":
        """(texts, dimension), float32."""
        batch = 1 if self._model.device.type == "cpu" else _GPU_BATCH
        return self._encode(texts, ("document", "passage", "corpus"), batch)

    def _encode(self, texts: Sequence[str], prompts: Sequence[str], batch: int) -> "Vectors":
        import numpy as np

        from autoais.judges.encoding import readable

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        name = next((name for name in prompts if self._model.prompts.get(name)), None)
        # Newer models may read queries and passages with different layers, which these methods know about.
        method = getattr(self._model, f"encode_{prompts[0]}", self._model.encode)
        found = method(
            [readable(text) for text in texts],
            prompt_name=name,  # None: the model's default prompt, where it has one
            batch_size=batch,
            show_progress_bar=False,
            normalize_embeddings=self._normalize,
        )
        return np.asarray(found, np.float32)


def named(model: str, loaded: Any) -> str:  # noqa: ANN401
    """`<model>@<8 hex>`: of a folder's files (SHA-256), of the hub's commit, or of the weights where there is none.

    `model` is what `loaded`, a SentenceTransformer or CrossEncoder, was opened by.
    """
    short = model.rstrip("/").rsplit("/", 1)[-1].replace(" ", "_")
    folder, digest = Path(model).expanduser(), hashlib.sha256()
    configs = (getattr(module, "config", None) for module in loaded.modules())
    commit = next((found for config in configs if (found := getattr(config, "_commit_hash", None))), None)
    if folder.is_dir():
        for path in sorted(folder.rglob("*")):
            if path.suffix in _MODEL_FILES:
                digest.update(f"{path.relative_to(folder)}\0".encode())
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    elif commit is not None:
        return f"{short}@{commit[:8]}"
    else:
        digest.update(repr(sorted(getattr(loaded, "prompts", {}).items())).encode())
        for name, weights in sorted(loaded.state_dict().items()):
            digest.update(f"{name}\0".encode() + weights.detach().cpu().double().numpy().tobytes())
    return f"{short}@{digest.hexdigest()[:8]}"
