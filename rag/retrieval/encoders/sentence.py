"""`st:<name or folder>`: a SentenceTransformer with its own prompts, pooling and length, on a GPU if available."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autoais.base.errors import first_line
from autoais.base.io.paths import user_path
from rag.base.errors import RagError, missing_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_GPU_BATCH = 64
_MODEL_FILES = (".bin", ".json", ".model", ".safetensors", ".txt")


class SentenceEncoder:
    """Encodes queries one at a time, so that a vector does not depend on the other queries.

    On a CPU, passages too; on a GPU, passages in batches of 64, whose padding can change the last digits of a vector.
    Vectors have norm 1, except for models whose similarity is the dot product. Remote code of a model is not run.
    Raises `RagError` if sentence-transformers is not installed or the model cannot be opened.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.folder = user_path(model)
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise missing_extra(f"the encoder st:{model}", "dense") from None
        from autoais.base.models.transformers import check_classes, quiet_logging

        local = self.folder.is_dir()
        if local and not (self.folder / "config.json").is_file() and not (self.folder / "modules.json").is_file():
            raise RagError(f"st:{model}: no config.json or modules.json in this folder; name the folder of a model")
        if local:
            check_classes(self.folder)
        try:
            with quiet_logging(local=local):
                self._model: Any = SentenceTransformer(str(self.folder) if local else model, trust_remote_code=False)
        except Exception as error:
            raise RagError(f"st:{model}: cannot be opened as a SentenceTransformer ({first_line(error)})") from error
        self._normalize = self._model.similarity_fn_name != "dot"

    @cached_property
    def name(self) -> str:
        """`st:<model>@<8 hex>/<tokens>`, see `model_name`."""
        return f"st:{model_name(self.model, self._model)}/{self._model.max_seq_length}"

    @cached_property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return len(self.queries(["a"])[0])

    def queries(self, texts: Sequence[str]) -> "Vectors":
        """Encode queries, (texts, dimension) float32."""
        return self._encode(texts, ("query",), 1)

    def passages(self, texts: Sequence[str]) -> "Vectors":
        """Encode passages, (texts, dimension) float32."""
        batch = 1 if self._model.device.type == "cpu" else _GPU_BATCH
        return self._encode(texts, ("document", "passage", "corpus"), batch)

    def _encode(self, texts: Sequence[str], prompts: Sequence[str], batch: int) -> "Vectors":
        import numpy as np

        from autoais.base.models.pairs import readable

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        name = next((name for name in prompts if self._model.prompts.get(name)), None)
        # Newer models may have different layers for queries and passages, which these methods select.
        method = getattr(self._model, f"encode_{prompts[0]}", self._model.encode)
        vectors = method(
            [readable(text) for text in texts],
            prompt_name=name,  # None: the model's default prompt, if any
            batch_size=batch,
            show_progress_bar=False,
            normalize_embeddings=self._normalize,
        )
        return np.asarray(vectors, np.float32)


def model_name(model: str, loaded_model: Any) -> str:  # noqa: ANN401
    """`<model>@<8 hex>`, from the SHA-256 of a folder's files, the hub's commit, or else the SHA-256 of the weights.

    `model` is the name or folder of `loaded_model`, a SentenceTransformer or CrossEncoder.
    """
    short = model.rstrip("/").rsplit("/", 1)[-1].replace(" ", "_")
    folder, digest = user_path(model), hashlib.sha256()
    configs = (getattr(module, "config", None) for module in loaded_model.modules())
    commit = next((commit_hash for config in configs if (commit_hash := getattr(config, "_commit_hash", None))), None)
    if folder.is_dir():
        for path in sorted(folder.rglob("*")):
            if path.suffix in _MODEL_FILES:
                digest.update(f"{path.relative_to(folder)}\0".encode())
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    elif commit is not None:
        return f"{short}@{commit[:8]}"
    else:
        digest.update(repr(sorted(getattr(loaded_model, "prompts", {}).items())).encode())
        for name, weights in sorted(loaded_model.state_dict().items()):
            digest.update(f"{name}\0".encode() + weights.detach().cpu().double().numpy().tobytes())
    return f"{short}@{digest.hexdigest()[:8]}"
