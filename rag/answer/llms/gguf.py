"""`gguf:<file>`: a model in llama.cpp's format, run in this process by xllamacpp."""

import hashlib
import os
import secrets
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Any

import httpx2

from autoais.base.errors import first_line
from autoais.base.io.paths import user_path
from autoais.base.io.provenance import sha256_file
from rag.answer.llms import CONTEXT, Completion, Message, ModelError, Schema, cut_at, in_pieces
from rag.answer.llms.gbnf import schema_to_gbnf
from rag.base.errors import RagError, missing_extra

_MAGIC = b"GGUF"
_END = "\x1f"  # marks the end of a constant beginning; no prompt has it, as `plain` removes it
_COUNTING = 60.0  # seconds that counting tokens may take
_MAX_ALTERNATIVES, _TOP_TOKENS = 16, 20  # tokens of a reply to a schema with alternatives, and how many each has


class Gguf:
    """A GGUF file with its own chat template; temperature 0 and a seed by default, one reply at a time.

    `context` is limited to the model's training context. What the engine computed for the constant beginning of a
    prompt (`Message.prefix`) is kept in a temporary file, and only that: a reply never depends on earlier questions.
    The name has the first 8 digits of the file's SHA-256.
    """

    def __init__(self, model: str | Path, *, context: int = CONTEXT, temperature: float = 0.0, seed: int = 0) -> None:
        path = user_path(model)
        self._path = _check_magic(path)
        self._states = Path(tempfile.mkdtemp(prefix="rag-gguf-"))
        weakref.finalize(self, shutil.rmtree, self._states, ignore_errors=True)
        self._lock = threading.Lock()  # nothing may come between loading a state and the reply that uses it
        self._server, key = _load(path, context, self._states)
        self._http = httpx2.Client(
            base_url=self._server.listening_address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=_COUNTING,
            limits=httpx2.Limits(max_keepalive_connections=0),
            trust_env=False,  # no proxy of the environment: the server is local
        )
        self._options = {"temperature": temperature, "seed": seed}
        meta = self._ask("/v1/models")["data"][0]["meta"]
        self.context = min(context, int(meta["n_ctx"]), int(meta["n_ctx_train"]))
        self.name = f"gguf:{path.stem}@{sha256_file(path)[:8]}/{self.context}/t{temperature:g}/seed{seed}"

    def count(self, messages: Sequence[Message]) -> int:
        """The exact number of tokens of the messages in the model's chat template."""
        prompt = self._ask("/apply-template", {"messages": _turns(messages)})["prompt"]
        return len(self._ask("/tokenize", {"content": prompt, "add_special": True})["tokens"])

    def complete(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Completion:
        """The reply, which follows the schema; raises `ModelError` with llama.cpp's reason if there is none."""
        return cut_at(self._write(messages, max_tokens, stop, schema, lambda _: None), stop)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Iterator[str | Completion]:
        """Yield the reply, token by token."""
        return in_pieces(lambda on_text: self._write(messages, max_tokens, stop, schema, on_text), stop)

    def _write(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        stop: Sequence[str],
        schema: Schema | None,
        on_text: Callable[[str], None],
    ) -> Completion:
        pieces: list[str] = []
        alternatives: list[dict[str, float]] = []
        last: dict[str, Any] = {}
        errors: list[BaseException] = []

        def take(event: Any) -> bool:  # noqa: ANN401  (JSON; True stops the engine)
            try:
                for chunk in event if isinstance(event, list) else [event]:
                    last.update({key: chunk[key] for key in ("error", "usage") if chunk.get(key)})
                    for choice in chunk.get("choices") or ():
                        last["finish"] = choice.get("finish_reason") or last.get("finish")
                        if len(alternatives) < _MAX_ALTERNATIVES:
                            alternatives.extend(
                                map(_probabilities, (choice.get("logprobs") or {}).get("content") or ())
                            )
                        if piece := choice.get("delta", {}).get("content"):
                            pieces.append(piece)
                            on_text(piece)
            except BaseException as error:  # noqa: BLE001  (the engine would swallow it; raised below)
                errors.append(error)
            return bool(errors)

        body = {
            "messages": _turns(messages),
            "max_tokens": max_tokens,
            "stop": list(stop),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if schema is not None:
            body |= {"grammar": schema_to_gbnf(schema), "logprobs": True, "top_logprobs": _TOP_TOKENS}
        try:
            with self._lock:
                body["cache_prompt"] = self._load_prefix(messages)
                response = self._server.handle_chat_completions(self._options | body, take)
        except RuntimeError as error:
            raise ModelError(f"{self._path}: {first_line(error)}") from error
        if errors:
            raise errors[0]
        failure = last.get("error") or (response or {}).get("error")
        if failure or last.get("finish") is None:
            reason = failure.get("message", failure) if isinstance(failure, dict) else failure
            raise ModelError(f"{self._path}: {first_line(ModelError(reason or 'llama.cpp broke off'))}")
        usage = last.get("usage", {})
        return Completion(
            "".join(pieces),
            last["finish"] == "length",
            usage.get("prompt_tokens", 0),
            usage.get("completion_tokens", len(pieces)),
            tuple(alternatives),
            "none" if schema is None else "json_schema",
        )

    def _load_prefix(self, messages: Sequence[Message]) -> bool:
        """Put the engine into its state after the constant beginning of the messages; False if it cannot be."""
        first = messages[0]
        beginning = first.content[: first.prefix]
        if not beginning:
            return False
        file = f"{hashlib.sha256(f'{first.role} {beginning}'.encode()).hexdigest()}.state"
        try:
            if not (self._states / file).exists():
                turn = {"role": first.role, "content": beginning + _END}
                prompt, end, _ = self._ask("/apply-template", {"messages": [turn]})["prompt"].partition(_END)
                if not end:
                    return False
                result = self._server.handle_completions({"prompt": prompt, "n_predict": 0, "cache_prompt": False})
                if not isinstance(result, dict) or "error" in result:
                    return False
                self._ask("/slots/0?action=save", {"filename": file})
            self._ask("/slots/0?action=restore", {"filename": file})
        except (ModelError, RuntimeError):  # such as no room in the temporary folder
            return False
        return True

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401  (JSON)
        """Call the engine's local HTTP server, which alone counts tokens; its key is private to this process."""
        try:
            response = self._http.get(path) if body is None else self._http.post(path, json=body)
            return response.raise_for_status().json()
        except (httpx2.HTTPError, ValueError) as error:
            raise ModelError(f"{self._path}: llama.cpp did not answer {path}: {first_line(error)}") from error


def _probabilities(token: Mapping[str, Any]) -> dict[str, float]:
    return {top["token"]: exp(top["logprob"]) for top in token["top_logprobs"]}


def _turns(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _check_magic(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            first = file.read(len(_MAGIC))
    except OSError as error:
        raise RagError(f"{path}: cannot be read: {error.strerror}; name a .gguf file") from error
    if first != _MAGIC:
        raise RagError(f"{path}: not a GGUF file (begins with {first!r}); convert the model with llama.cpp's tools")
    return path


def _load(path: Path, context: int, states: Path) -> tuple[Any, str]:
    """Load the engine; returns it with the key of its local HTTP server."""
    try:
        import xllamacpp
    except ImportError:
        raise missing_extra(f"gguf:{path}", "gguf") from None
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.verbosity = -1
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    params.slot_save_path = f"{states}/"
    params.cache_ram_mib = 0
    # llama.cpp counts the machine's cores; more threads than this process may use wait for each other.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    if 0 < cores < (os.cpu_count() or 1):
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = cores
    key = secrets.token_hex(16)
    params.api_keys = [key]
    try:
        return xllamacpp.Server(params), key
    except RuntimeError as error:
        raise RagError(
            f"{path}: llama.cpp cannot load it; check that the file is complete and its architecture is supported"
        ) from error
