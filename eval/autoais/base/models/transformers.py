"""Loading of transformers models and tokenizers from a folder or the Hugging Face hub, without code of the model."""

import hashlib
import json
import logging
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoais.base.errors import UserError, first_line
from autoais.base.io.paths import user_path

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_WEIGHTS_AND_CONFIG = (".bin", ".jinja", ".json", ".model", ".safetensors", ".txt")
_DOTTED_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_CLASS_KEYS = re.compile(r"type|types|class_ref|\w*(class|activation_fn|activation_function)")
_KNOWN_CLASSES = ("sentence_transformers.", "torch.nn.", "transformers.")
_MAX_CONFIG_BYTES = 16 << 20
_SMALL_FILES = ["*.jinja", "*.json", "*.model", "*.txt"]


def load_network(
    loader: Any,  # noqa: ANN401  (a class of transformers)
    name: str,
    folder: Path,
    commit: str | None,
) -> tuple[Any, list[str], bool]:
    """The network in evaluation mode, the names of its missing weights, and whether it is in bfloat16 (on a GPU).

    `name`, `folder` and `commit` come from `model_files`. Raises `UserError` for pickled weights that hold more than
    tensors; exceptions of transformers are passed on.
    """
    import torch

    half = torch.cuda.is_available()
    try:
        network, info = loader.from_pretrained(
            name if commit else folder,
            revision=commit,
            dtype=torch.bfloat16 if half else torch.float32,
            device_map="auto" if half else None,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except pickle.UnpicklingError as error:
        raise UserError(
            f"{name}: its weights are a pickle that holds more than tensors, which could run code; use .safetensors"
        ) from error
    return network.eval(), sorted(info["missing_keys"]), half


def model_files(model: str) -> tuple[str, Path, str | None]:
    """Name without revision, the folder with config and tokenizer files, and the commit if it came from the hub.

    Raises `UserError` if neither a folder nor a model of that name exists.
    """
    folder = user_path(model)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UserError(f"{model}: no config.json in this folder; give the folder of a saved model")
        check_classes(folder)
        return model, folder, None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    name, _, revision = model.partition("@")
    try:
        snapshot = Path(snapshot_download(name, revision=revision or None, allow_patterns=_SMALL_FILES))
    except HFValidationError as error:
        raise UserError(f"{model}: no such folder, and not a valid model name on the Hugging Face hub") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise UserError(
            f"{model}: no such folder, and no such model on the Hugging Face hub ({first_line(error)}); "
            "without network access, download it elsewhere and give its folder"
        ) from error
    return name, snapshot, snapshot.name


def check_classes(folder: Path) -> None:
    """Raise `UserError` if the configuration of a model names a class outside the known libraries.

    sentence-transformers imports the classes that `modules.json` and the configurations of modules name, from the
    folder of the model too, even without `trust_remote_code` (5.0.0). `auto_map` is left out, as transformers uses it
    only with `trust_remote_code`.
    """
    # `transformers.Evil` could be a class of `transformers.py` in the folder.
    modules = {path.stem for path in folder.rglob("*.py")}
    for path in sorted(folder.rglob("*.json")):
        if path.name != "modules.json" and "config" not in path.name:
            continue
        try:
            if path.stat().st_size > _MAX_CONFIG_BYTES:
                raise UserError(f"{path}: more than {_MAX_CONFIG_BYTES >> 20} MiB, too long for a configuration")
            config = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{path}: cannot be read as JSON: {first_line(error)}") from error
        for name in _classes(config):
            if name.partition(".")[0] in modules or not name.startswith(_KNOWN_CLASSES):
                raise UserError(
                    f"{path}: names the class {name[:100]!r}, which is not part of sentence-transformers, transformers "
                    "or torch.nn; code of a model is never run"
                )


def _classes(value: Any) -> Iterator[str]:  # noqa: ANN401  (JSON)
    """The class paths among the values of a configuration."""
    waiting = [("", value)]
    while waiting:
        key, node = waiting.pop()
        if isinstance(node, list):
            waiting += [(key, item) for item in node]
        elif isinstance(node, dict):
            # The names below `types` are those of routes, and their values classes.
            waiting += [(key if key == "types" else name, item) for name, item in node.items() if name != "auto_map"]
        elif isinstance(node, str) and _CLASS_KEYS.fullmatch(key) and _DOTTED_NAME.fullmatch(node):
            yield node


def load_tokenizer(model: str, folder: Path) -> "PreTrainedTokenizerBase":
    """The tokenizer in the folder, without a length limit; raises `UserError` if it is missing.

    Transformers returns an empty tokenizer if the folder has no tokenizer files.
    """
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        ids = tokenizer("0 1", add_special_tokens=False)["input_ids"]
    except (ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"{model}: its tokenizer cannot be loaded: {first_line(error)}") from error
    if tokenizer.unk_token_id in ids or not ids:
        raise UserError(f"{model}: has no tokenizer; save it to the same folder (tokenizer.save_pretrained)")
    tokenizer.model_max_length = int(1e30)  # callers keep the limit; counting tokens should not warn
    return tokenizer


def plain_text(tokenizer: "PreTrainedTokenizerBase") -> Callable[[str], str]:
    """A function that returns a text without lone surrogates, and with the tokenizer's special tokens broken up."""
    special = re.compile("|".join(map(re.escape, tokenizer.all_special_tokens)) or r"(?!)")

    def plain(text: str) -> str:
        text = text.encode("utf-8", "replace").decode("utf-8")
        return special.sub(lambda mark: f"{mark[0][:1]} {mark[0][1:]}", text)

    return plain


def local_revision(folder: Path) -> str:
    """`local-` and 8 hex digits of a SHA-256 over names and contents of the weights, config and tokenizer files."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in _WEIGHTS_AND_CONFIG:
            with path.open("rb") as file:
                digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return f"local-{digest.hexdigest()[:8]}"


@contextmanager
def quiet_logging(local: bool) -> Iterator[None]:
    """Silence the log while loading, since failures raise one-line errors; downloads keep their progress bar."""
    import transformers.utils.logging

    chatter: Any = transformers.utils.logging  # only partly annotated
    hub = logging.getLogger("huggingface_hub")
    verbosity, level, bars = chatter.get_verbosity(), hub.level, chatter.is_progress_bar_enabled()
    chatter.set_verbosity_error()
    hub.setLevel(logging.CRITICAL)
    if local:
        chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(verbosity)
        hub.setLevel(level)
        if bars:
            chatter.enable_progress_bar()
