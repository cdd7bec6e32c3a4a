"""A language model that says what a test wrote down for it, in turn, the last again and again."""

from collections.abc import Iterator, Sequence

from rag.llms import Completion, Message, ModelError


class Says:
    """Each text is a reply, an error is raised; `asked` keeps the prompts."""

    name = "says"
    context = 4096

    def __init__(self, *replies: str | ModelError) -> None:
        self._replies = list(replies)
        self.asked: list[str] = []

    def count(self, messages: Sequence[Message]) -> int:
        return sum(len(message.content.split()) for message in messages)

    def complete(self, messages: Sequence[Message], max_tokens: int) -> Completion:
        self.asked.append(messages[-1].content)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, ModelError):
            raise reply
        return Completion(reply, False, self.count(messages), len(reply.split()))

    def stream(self, messages: Sequence[Message], max_tokens: int) -> Iterator[str | Completion]:
        completion = self.complete(messages, max_tokens)
        yield completion.text
        yield completion
