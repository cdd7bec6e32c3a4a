"""Language models: messages in, text out. Each kind has a module, imported only when one is opened."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from rag.errors import RagError


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

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Completion:
        """The reply; `ModelError` where there is none."""
        ...

    def stream(self, messages: Sequence[Message], max_tokens: int) -> Iterator[str | Completion]:
        """The reply in pieces as they come, then the `Completion`, whose text is the pieces joined."""
        ...
