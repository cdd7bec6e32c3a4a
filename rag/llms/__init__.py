"""Language models: messages in, text out. Each kind has a module, imported only when one is opened."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any, Literal, Protocol

from rag.errors import RagError

CONTEXT = 4096  # tokens; HAGRID's prompts fit them, and a server may cut a longer prompt without a word

MOST_TEMPERATURE = 2.0  # what servers take


class ModelError(RagError):
    """A model gave nothing that can be used, or cannot be reached; one line with the reason."""


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote; `cut` where it was stopped at the most tokens it may write. Tokens as the model counts."""

    text: str
    cut: bool
    prompt_tokens: int
    completion_tokens: int


def traced(completion: Completion) -> dict[str, Any]:
    """What an answer's trace keeps: `raw` (what was written), `tokens`, and `stopped` where it was cut."""
    tokens = {"read": completion.prompt_tokens, "written": completion.completion_tokens}
    return {"raw": completion.text, "tokens": tokens} | ({"stopped": True} if completion.cut else {})


class LanguageModel(Protocol):
    """Anything that continues a conversation. The same messages and seed give the same text where the engine can."""

    @property
    def name(self) -> str:
        """Says all that changes a reply: engine, model and its revision or checksum, seed and temperature."""
        ...

    @property
    def context(self) -> int:
        """How many tokens messages and reply may take together."""
        ...

    def count(self, messages: Sequence[Message]) -> int:
        """How many tokens the messages take; an upper bound where only the server knows."""
        ...

    def complete(self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = ()) -> Completion:
        """The reply, up to the first of the texts in `stop`, which is left out; `ModelError` where there is none."""
        ...

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = ()
    ) -> Iterator[str | Completion]:
        """The reply of `complete` in pieces as they come, then the `Completion`, whose text is the pieces joined."""
        ...


# Kind -> module, which has `model(name, context, temperature, seed) -> LanguageModel`.
MODELS: Mapping[str, str] = MappingProxyType(
    {"gguf": "rag.llms.gguf", "hf": "rag.llms.hf", "openai": "rag.llms.openai"},
)
_THOUGHTS = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_WRITTEN = {"gguf": "gguf:<file>", "hf": "hf:<name or folder>", "openai": "openai:<model>"}


def open_model(name: str, *, context: int = CONTEXT, temperature: float = 0.0, seed: int = 0) -> LanguageModel:
    """The model `openai:<model>`, `gguf:<file>` or `hf:<name or folder>`, with at most `context` tokens.

    `RagError` where there is no such kind, the file or folder is not one, an extra is missing, or a number is none
    that can be used.
    """
    kind, _, model = name.partition(":")
    if kind not in MODELS or not model.strip():
        raise RagError(f"no language model called {name!r}; write {', '.join(_WRITTEN.values())}")
    if context < 1:
        raise RagError(f"a context of {context} tokens: must be 1 or more")
    if not 0 <= temperature <= MOST_TEMPERATURE:
        raise RagError(f"a temperature of {temperature:g}: must be from 0 to {MOST_TEMPERATURE:g}")
    opened: LanguageModel = import_module(MODELS[kind]).model(model, context, temperature, seed)
    return opened


def without_thoughts(text: str) -> str:
    """A reply without the thoughts that a model writes before it, between `<think>` and `</think>`."""
    return _THOUGHTS.sub("", text, count=1)


def cut_at(completion: Completion, stop: Sequence[str]) -> Completion:
    """The completion up to the first of the texts in `stop`: not every engine keeps to them."""
    end = min((at for text in stop if (at := completion.text.find(text)) >= 0), default=-1)
    return completion if end < 0 else replace(completion, text=completion.text[:end], cut=False)


class _ClosedError(Exception):
    """Nobody reads on."""


def in_pieces(
    write: Callable[[Callable[[str], None]], Completion], stop: Sequence[str] = ()
) -> Iterator[str | Completion]:
    """What `write` tells, as it comes, and in the end what it returns, cut at `stop`.

    `write` runs in a thread and must tell all of its text; what it raises is raised here. What may turn out to be the
    beginning of a stop is held back. When nobody reads on, its next word ends it.
    """
    told: SimpleQueue[str | Completion | BaseException] = SimpleQueue()
    closed = threading.Event()

    def tell(piece: str) -> None:
        if closed.is_set():
            raise _ClosedError
        told.put(piece)

    def work() -> None:
        try:
            told.put(write(tell))
        except BaseException as error:  # noqa: BLE001  (raised below, in the thread of who asked)
            told.put(error)

    threading.Thread(target=work, daemon=True).start()
    text, shown = "", 0
    try:
        while isinstance(item := told.get(), str):
            text += item
            safe = _safe(text, stop, shown)
            if safe > shown:
                yield text[shown:safe]
                shown = safe
    finally:
        closed.set()
    if isinstance(item, BaseException):
        raise item
    whole = cut_at(item, stop)
    if whole.text[shown:]:
        yield whole.text[shown:]
    yield whole


def _safe(text: str, stop: Sequence[str], start: int) -> int:
    """How much of a text can be shown while it grows: up to a stop, or to what may be the beginning of one."""
    safe = len(text)
    for mark in stop:
        at = text.find(mark, start)
        if at < 0:
            tails = range(max(start, len(text) - len(mark) + 1), len(text))
            at = next((tail for tail in tails if mark.startswith(text[tail:])), safe)
        safe = min(safe, at)
    return safe
