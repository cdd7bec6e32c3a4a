"""`Assessor`: a language model that is asked with our prompts, and whose replies count only once they are parsed."""

import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from autoais.base.errors import UserError
from autoais.base.models.chat import ChatClient, NoReply, Reply, Request, estimated_tokens
from autoais.base.models.replies import ReplyCache
from autoais.base.models.thoughts import without_thoughts
from autoais.base.progress import Progress, no_progress
from autoais.judges.prompts import read_prompt

T = TypeVar("T")

_ROUNDS = 4  # requests per connection in a batch; with fewer, many connections would wait for the slowest one
_QUOTED_TOKENS = 500  # of a reply that could not be read, in the message that asks again
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_FENCE = re.compile(r"```(?:json)?(.*)```", re.DOTALL)


class ReplyError(Exception):
    """A reply that cannot be used; the message says why, for the model and for the record."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason, in one line, why the model gave nothing that can be used."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A shipped prompt of `prompts/assessor`: a message with placeholders, and the SHA-256 of the file."""

    name: str
    message: str
    sha256: str

    @classmethod
    def read(cls, name: str) -> "Prompt":
        """The prompt of that name; raises `UserError` with the known names if there is none."""
        data = read_prompt(name, "assessor")
        return cls(name, data.decode("utf-8"), hashlib.sha256(data).hexdigest())

    def fill(self, **values: str | int) -> str:
        """The message with its placeholders replaced; `{mark}` is a string that none of the texts can guess."""
        content = "\0".join(map(str, values.values())).encode("utf-8", "surrogatepass")
        texts = {"mark": hashlib.sha256(content).hexdigest()[:8]} | {name: str(value) for name, value in values.items()}
        return _PLACEHOLDER.sub(lambda match: texts.get(match[1], match[0]), self.message)


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """A message, the JSON Schema of its reply, and `read`, which parses a reply or raises `ReplyError`."""

    message: str
    schema: Mapping[str, Any]
    read: Callable[[str], T]


Work = Generator[Sequence[Ask[Any]], Sequence[Any], T]
"""A piece of work: it yields what it asks, is sent a result or a `Failure` for each, and returns its result."""


class Assessor:
    """A chat model on any OpenAI-compatible server (as the judge `llm:<model>`), at temperature 0 and seed 0.

    `budget` is the maximum number of tokens of a prompt, estimated as one per three bytes; nothing is truncated, and a
    text that leaves no room is a failure. A reply has at most `max_tokens` tokens. A reply that cannot be read is asked
    for once more, with what is wrong with it; after that it is a failure. `concurrency` requests run at once, each with
    a `timeout` in seconds and up to `retries` retries; a `client` has its own settings instead.
    `cache` keeps the replies that were read; what it holds is not asked again.
    """

    def __init__(
        self,
        model: str,
        *,
        budget: int = 8000,
        max_tokens: int = 2048,
        concurrency: int = 8,
        timeout: float = 120.0,
        retries: int = 5,
        client: ChatClient | None = None,
        cache: ReplyCache | None = None,
    ) -> None:
        if not model.strip():
            raise UserError("the model has no name; name a model of the server, such as gpt-4o-mini")
        if budget < 1 or max_tokens < 1:
            raise UserError(f"assessor with budget {budget} and max_tokens {max_tokens}: both must be at least 1")
        self.model = model
        self.budget = budget
        self.max_tokens = max_tokens
        self.client = client or ChatClient(concurrency=concurrency, timeout=timeout, retries=retries)
        self.cache = cache

    @property
    def name(self) -> str:
        """`<model>@<server>/<budget>+<max_tokens>`."""
        return f"{self.model}@{self.client.endpoint}/{self.budget}+{self.max_tokens}"

    def fits(self, message: str) -> bool:
        """Whether a message is within the budget."""
        return estimated_tokens(message) <= self.budget

    def work(self, items: Iterable[Work[T]], step: str, total: int, progress: Progress = no_progress) -> list[T]:
        """Do pieces of work, some of them at once, and return their results in order.

        `progress` is called with `step`, the number of pieces that are done, and `total`. Raises `UserError` as
        `ChatClient.answer_async`, and for a cache that cannot be written.
        """
        waiting = enumerate(items)
        results: dict[int, T] = {}
        active: dict[int, tuple[Work[T], Sequence[Ask[Any]]]] = {}
        progress(step, 0, total)
        while True:
            for number, item in islice(waiting, _ROUNDS * self.client.concurrency - len(active)):
                _resume(number, item, None, active, results)
            if not active:
                break
            replies = iter(self.ask([ask for _, asks in active.values() for ask in asks]))
            for number, (item, asks) in list(active.items()):
                _resume(number, item, list(islice(replies, len(asks))), active, results)
            progress(step, len(results), total)
        return [results[number] for number in sorted(results)]

    def ask(self, asks: Sequence[Ask[T]]) -> list[T | Failure]:
        """Return what was read of the reply to each, or why nothing was."""
        results: dict[int, T | Failure] = {}
        requests: dict[int, Request] = {}
        for number, ask in enumerate(asks):
            if not self.fits(ask.message):
                size = estimated_tokens(ask.message)
                results[number] = Failure(f"the prompt takes {size:,} tokens of a budget of {self.budget:,}")
                continue
            requests[number] = self._request(ask, (("user", ask.message),))
            if (result := self._cached(ask, requests[number])) is not None:
                results[number] = result
        first = {number: request for number, request in requests.items() if number not in results}
        again: dict[int, Request] = {}
        for number, reply, fault in self._send(asks, first, requests, results):
            complaint = f"That reply cannot be used: {fault}. Reply again, in the form that was asked for."
            quoted = reply.text[: 3 * _QUOTED_TOKENS]
            messages = (*first[number].messages, ("assistant", quoted or "(nothing)"), ("user", complaint))
            again[number] = self._request(asks[number], messages)
        for number, reply, fault in self._send(asks, again, requests, results):
            results[number] = Failure(f"{fault}; the reply: {self.client.excerpt(reply.text)!r}")
        return [results[number] for number in range(len(asks))]

    def _send(
        self,
        asks: Sequence[Ask[T]],
        requests: Mapping[int, Request],
        keys: Mapping[int, Request],
        results: dict[int, T | Failure],
    ) -> list[tuple[int, Reply, str]]:
        """Ask the server; add what could be read to `results`, and return the other replies, each with its fault.

        A reply is cached under the first request of its ask.
        """
        faults: list[tuple[int, Reply, str]] = []
        good_replies: list[tuple[Request, str]] = []
        replies = self.client.answer(list(requests.values()))
        for number, reply in zip(requests, replies, strict=True):
            if isinstance(reply, NoReply):
                results[number] = Failure(reply.reason)
                continue
            try:
                results[number] = asks[number].read(without_thoughts(reply.text))
            except ReplyError as error:
                faults.append((number, reply, f"{error}{f' (stopped at {self.max_tokens} tokens)' * reply.cut}"))
            else:
                good_replies.append((keys[number], reply.text))
        if self.cache is not None:
            self.cache.put(self.client.endpoint, good_replies)
        return faults

    def _cached(self, ask: Ask[T], request: Request) -> T | None:
        text = None if self.cache is None else self.cache.get(self.client.endpoint, request)
        try:
            return None if text is None else ask.read(without_thoughts(text))
        except ReplyError:  # of an older version, or changed by hand
            return None

    def _request(self, ask: Ask[Any], messages: tuple[tuple[str, str], ...]) -> Request:
        return Request(self.model, messages, self.max_tokens, schema=ask.schema)

    def record(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """Return what provenance says of the model: name, prompts, and what its server said; call it after the work."""
        usage = self.client.usage
        return {
            "name": self.name,
            "prompts": [{"name": prompt.name, "sha256": prompt.sha256} for prompt in prompts],
            "served": sorted(self.client.served),
            "refused": sorted(self.client.refused),
            "usage": {
                "requests": usage.requests,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
            },
        }


def _resume(
    number: int,
    item: Work[T],
    replies: Sequence[Any] | None,
    active: dict[int, tuple[Work[T], Sequence[Ask[Any]]]],
    results: dict[int, T],
) -> None:
    """Go on with a piece of work: it asks more, or is done."""
    try:
        active[number] = (item, next(item) if replies is None else item.send(replies))
    except StopIteration as stop:
        active.pop(number, None)
        results[number] = stop.value


def object_schema(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with one field."""
    return {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}


def read_field(reply: str, name: str) -> Any:  # noqa: ANN401  (JSON)
    """Return a field of the JSON object that a reply is, bare or in a code fence; raises `ReplyError`."""
    text = reply.strip()
    if fence := _FENCE.fullmatch(text):
        text = fence[1]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ReplyError("it is not a JSON object") from None
    if not isinstance(value, dict) or name not in value:
        raise ReplyError(f"it is not a JSON object with the field {name!r}")
    return value[name]


def read_labels(reply: str, labels: Sequence[str], count: int) -> list[str]:
    """Return the labels of a reply, in lower case; raises `ReplyError` unless all are known and there are `count`."""
    value = read_field(reply, "labels")
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        raise ReplyError("'labels' is not a list of strings")
    given_labels = [label.strip().lower() for label in value]
    for label in given_labels:
        if label not in labels:
            raise ReplyError(f"{label[:40]!r} is not one of the labels {', '.join(labels)}")
    if len(given_labels) != count:
        raise ReplyError(f"it has {len(given_labels)} labels, and {count} were asked for")
    return given_labels


def numbered(texts: Iterable[str]) -> str:
    """Return texts on lines of their own, numbered from 1."""
    return "\n".join(f"[{number}] {' '.join(text.split())}" for number, text in enumerate(texts, 1))
