"""Defaults of the commands: the default system, the user's config file, and the folder of the input history."""

import os
import tomllib
from pathlib import Path
from typing import Any

from autoais.base.errors import reason_of
from autoais.base.io.paths import user_path
from rag.base.errors import RagError

DEFAULT_SYSTEM, DEFAULT_JUDGE = "reader", "minilm"
_APP = "attributed-rag"
_KEYS = ("index", "system")
_COMMANDS = {"ask": ("system",), "answer": _KEYS, "search": ("index",), "attribute": ("index",)}


def config_file() -> Path:
    """The path of the config file: RAG_CONFIG, or `config.toml` in the user's config folder."""
    if path := os.environ.get("RAG_CONFIG"):
        return Path(path)
    from platformdirs import user_config_path

    return user_config_path(_APP) / "config.toml"


def state_folder() -> Path:
    """The folder of the input history."""
    from platformdirs import user_state_path

    return user_state_path(_APP)


def read_config() -> dict[str, Any]:
    """The user's defaults: `index` and `system`; empty without a config file.

    Raises `RagError` if RAG_CONFIG names no file, the file is not TOML or has an unknown key, or a value has the wrong
    type.
    """
    path = config_file()
    if not path.exists() and not os.environ.get("RAG_CONFIG"):
        return {}
    try:
        config = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RagError(f"{path}: cannot be read as a config file: {reason_of(error)}") from error
    if unknown := sorted(config.keys() - set(_KEYS)):
        raise RagError(f"{path}: unknown key {unknown[0]!r}; there are: {', '.join(_KEYS)}")
    for key, value in config.items():
        if not isinstance(value, str):
            raise RagError(f"{path}: {key} should be a string, found {value!r:.60}")
    if "index" in config:
        config["index"] = str(user_path(config["index"]))
    return config


def default_of(key: str) -> str | None:
    """The default `index` or `system`: RAG_INDEX or RAG_SYSTEM, or else that of the config file."""
    return os.environ.get(f"RAG_{key.upper()}") or read_config().get(key)


def command_defaults() -> dict[str, Any]:
    """The config file's defaults per command, as a click default map; environment and options take precedence."""
    config = read_config()
    return {command: {key: config[key] for key in keys if key in config} for command, keys in _COMMANDS.items()}
