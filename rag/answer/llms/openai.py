"""`openai:<model>`: any server with OpenAI's chat completions, such as vLLM, Ollama or llama.cpp."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from autoais.base.models.chat import ChatClient, NoReply, Reply, Request, estimated_tokens
from rag.answer.llms import (
    CONTEXT,
    Completion,
    Message,
    ModelError,
    ModelUnavailableError,
    Schema,
    SchemaError,
    cut_at,
    in_pieces,
)
from rag.base.errors import UserError

_TEMPLATE_TOKENS = 8  # tokens of a chat template per message, a high estimate
_TIMEOUT = 300.0  # seconds for a whole reply: a small machine can take a minute to read a prompt


class OpenAI:
    """A model on the server at OPENAI_BASE_URL, with the key OPENAI_API_KEY; temperature 0 and a seed by default.

    The server is not asked for its context window; `context` sets it. Tokens are estimated as one per three bytes
    unless a reply reports them. A schema is sent as `response_format`; `ChatClient` says what a server that rejects it
    gets. A `client` has its own time-out and number of attempts.
    """

    def __init__(
        self,
        model: str,
        *,
        context: int = CONTEXT,
        temperature: float = 0.0,
        seed: int = 0,
        client: ChatClient | None = None,
    ) -> None:
        self.model = model
        self.context = context
        self.temperature = temperature
        self.seed = seed
        self.client = client or ChatClient(timeout=_TIMEOUT)
        self.name = f"openai:{model}@{self.client.endpoint}/{context}/t{temperature:g}/seed{seed}"

    def count(self, messages: Sequence[Message]) -> int:
        """An estimate, above the counts of common tokenizers for most languages."""
        return sum(estimated_tokens(message.content) + _TEMPLATE_TOKENS for message in messages)

    def complete(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Completion:
        """The reply; raises `ModelError` with the server's message, or `ModelUnavailableError` if the user must act.

        A `SchemaError` has the message of a server that takes schemas, but finds this one too large.
        """
        with _errors_of_models():
            (reply,) = self.client.answer([self._request(messages, max_tokens, stop, schema)])
        return cut_at(self._completion(messages, reply), stop)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = (), *, schema: Schema | None = None
    ) -> Iterator[str | Completion]:
        """Yield the reply as the server sends it; raises `ModelError` also if the stream breaks off."""
        request = self._request(messages, max_tokens, stop, schema)

        def write(on_text: Callable[[str], None]) -> Completion:
            with _errors_of_models():
                reply = self.client.stream(request, on_text)
            return self._completion(messages, reply)

        return in_pieces(write, stop)

    def _request(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str], schema: Schema | None
    ) -> Request:
        turns = tuple((message.role, message.content) for message in messages)
        return Request(self.model, turns, max_tokens, self.temperature, self.seed, schema, tuple(stop))

    def _completion(self, messages: Sequence[Message], reply: Reply | NoReply) -> Completion:
        if isinstance(reply, NoReply):
            fix = f"; try a --context below {self.context}" if reply.is_prompt_too_long else ""
            raise (SchemaError if reply.is_schema_too_large else ModelError)(
                f"openai:{self.model}: {reply.reason}{fix}"
            )
        prompt_tokens, completion_tokens = reply.prompt_tokens, reply.completion_tokens
        return Completion(
            reply.text,
            reply.cut,
            self.count(messages) if prompt_tokens is None else prompt_tokens,
            estimated_tokens(reply.text) if completion_tokens is None else completion_tokens,
            structure=reply.structure,
        )


@contextmanager
def _errors_of_models() -> Iterator[None]:
    """Raise what only a person can fix as `ModelUnavailableError`."""
    try:
        yield
    except UserError as error:
        raise ModelUnavailableError(str(error)) from None
