"""Language models: messages in, text out. The module of a kind is imported only when one is opened."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Literal, Protocol

from autoais.base.registry import Registry
from rag.base.errors import RagError

CONTEXT = 4096  # tokens; enough for HAGRID's prompts, and a server may cut longer prompts without notice

MODEL_FAILED = "the model failed"
"""How a trace begins to say that a model failed during a search; the model's own words follow."""

MAX_TEMPERATURE = 2.0  # the limit of servers


class ModelError(RagError):
    """A model returned nothing usable or cannot be reached; one line with the reason."""


class SchemaError(ModelError):
    """A server takes a schema, but this one is too large for it."""


class ModelUnavailableError(RagError):
    """A model that a person must make available: its server cannot be reached, or refuses the model or the key."""


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a conversation.

    The first `prefix` characters are the same for every question; an engine may keep what it computed for them.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    prefix: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """The output of a model; `cut` if it stopped at the token limit. Tokens are counted by the model.

    `alternatives` holds, for each of the first tokens of a reply to a schema, the likeliest tokens with probabilities
    (0 to 1) before the schema excludes any; empty if the engine gives none. `structure` is what the engine took to hold
    the reply to a schema: the schema, "any JSON object", or nothing.
    """

    text: str
    cut: bool
    prompt_tokens: int
    completion_tokens: int
    alternatives: tuple[Mapping[str, float], ...] = ()
    structure: Literal["json_schema", "json_object", "none"] = "none"


Schema = Mapping[str, Any]
"""A JSON Schema."""

Price = tuple[float, float]
"""The prices of a million input and a million output tokens."""


def cost(prompt_tokens: float, completion_tokens: float, price: Price) -> float:
    """The cost of tokens that a model read and wrote."""
    return (prompt_tokens * price[0] + completion_tokens * price[1]) / 1e6


def trace_of(completion: Completion) -> dict[str, Any]:
    """The entries for an answer's trace: `raw` (the output), `tokens`, and `stopped` if it was cut."""
    tokens = {"read": completion.prompt_tokens, "written": completion.completion_tokens}
    return {"raw": completion.text, "tokens": tokens} | ({"stopped": True} if completion.cut else {})


class LanguageModel(Protocol):
    """Anything that continues a conversation. The same messages and seed give the same text if the engine allows it."""

    @property
    def name(self) -> str:
        """Identifies everything that can change a reply: engine, model, revision or checksum, seed, temperature."""
        ...

    @property
    def context(self) -> int:
        """The context window in tokens, for messages and reply together."""
        ...

    def count(self, messages: Sequence[Message]) -> int:
        """The number of tokens of the messages, or an upper bound if only the server can count them."""
        ...

    def complete(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Completion:
        """The reply up to the first of the texts in `stop`, excluded; raises `ModelError` if there is no reply.

        Raises `ModelUnavailableError` if there will be none until a person acts.
        `schema` is a JSON Schema that the reply should follow. An engine may ignore it: check what comes. Raises
        `SchemaError` if a smaller one would do.
        """
        ...

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Iterator[str | Completion]:
        """Yield the reply of `complete` in pieces as they arrive, then the `Completion` with the joined text.

        A piece may be empty, so that who reads the stream can end it while the model is silent.
        """
        ...


class OpenModel(Protocol):
    """Opens a language model by the part of its name after the colon."""

    def __call__(self, model: str, *, context: int, temperature: float, seed: int) -> LanguageModel:
        """Open the model; raises `UserError` if that fails."""
        ...


LANGUAGE_MODELS: Registry[OpenModel] = Registry(
    "rag.llms",
    "language model",
    {
        "anthropic": "rag.answer.llms.anthropic:Anthropic",
        "gguf": "rag.answer.llms.gguf:Gguf",
        "hf": "rag.answer.llms.hf:Hf",
        "openai": "rag.answer.llms.openai:OpenAI",
    },
    RagError,
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPELLINGS = {"gguf": "gguf:<file>", "hf": "hf:<name or folder>"}


def open_model(name: str, *, context: int = CONTEXT, temperature: float = 0.0, seed: int = 0) -> LanguageModel:
    """Open `openai:<model>`, `anthropic:<model>`, `gguf:<file>` or `hf:<name or folder>`, with a context window of at
    most `context` tokens.

    Raises `RagError` if the kind is unknown, the file or folder holds no model, an extra is missing, or a number is out
    of range.
    """
    kind, _, model = name.partition(":")
    if not model.strip() or kind not in LANGUAGE_MODELS:
        spellings = (_SPELLINGS.get(kind_name, f"{kind_name}:<model>") for kind_name in LANGUAGE_MODELS)
        raise RagError(f"no language model called {name!r}; write {', '.join(spellings)}")
    if context < 1:
        raise RagError(f"a context of {context} tokens: must be 1 or more")
    if not 0 <= temperature <= MAX_TEMPERATURE:
        raise RagError(f"a temperature of {temperature:g}: must be from 0 to {MAX_TEMPERATURE:g}")
    return LANGUAGE_MODELS[kind](model, context=context, temperature=temperature, seed=seed)


def printable_reply(text: str) -> str:
    """A reply with spaces for control characters, and without lone surrogates, which the JSON of a server can hold."""
    return _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))


def cut_at(completion: Completion, stop: Sequence[str]) -> Completion:
    """Cut the completion before the first of the texts in `stop`, for engines that do not."""
    end = min((position for text in stop if (position := completion.text.find(text)) >= 0), default=-1)
    return completion if end < 0 else replace(completion, text=completion.text[:end], cut=False)


class _ClosedError(Exception):
    """The consumer has closed the stream."""


def in_pieces(
    write: Callable[[Callable[[str], None]], Completion], stop: Sequence[str] = ()
) -> Iterator[str | Completion]:
    """Yield the pieces that `write` passes to its callback, then the completion it returns, cut at `stop`.

    `write` runs in a thread and must pass all of its text to the callback; its exceptions are raised here. Text that
    may begin a stop text is held back. If the consumer closes the stream, the next callback stops `write`; one with an
    empty text gives it the chance.
    """
    queue: SimpleQueue[str | Completion | BaseException] = SimpleQueue()
    is_closed = threading.Event()

    def on_text(piece: str) -> None:
        if is_closed.is_set():
            raise _ClosedError
        queue.put(piece)

    def work() -> None:
        try:
            queue.put(write(on_text))
        except BaseException as error:  # noqa: BLE001  (raised below, in the caller's thread)
            queue.put(error)

    threading.Thread(target=work, daemon=True).start()
    text, shown_length = "", 0
    try:
        while isinstance(item := queue.get(), str):
            text += item
            safe = _safe(text, stop, shown_length)
            yield text[shown_length:safe]
            shown_length = safe
    finally:
        is_closed.set()
    if isinstance(item, BaseException):
        raise item
    completion = cut_at(item, stop)
    if completion.text[shown_length:]:
        yield completion.text[shown_length:]
    yield completion


def _safe(text: str, stop: Sequence[str], start: int) -> int:
    """How much of a growing text can be yielded: up to a stop text, or a possible beginning of one."""
    safe = len(text)
    for mark in stop:
        position = text.find(mark, start)
        if position < 0:
            tails = range(max(start, len(text) - len(mark) + 1), len(text))
            position = next((tail for tail in tails if mark.startswith(text[tail:])), safe)
        safe = min(safe, position)
    return safe
