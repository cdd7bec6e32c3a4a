"""A language model that says what a test wrote down for it; it counts a word as a token."""

from collections.abc import Callable, Iterator, Sequence

from rag.llms import Completion, Message, ModelError, cut_at, in_pieces


class Script:
    """Says the texts in turn, the last again and again; an error among them is raised. `asked` keeps the prompts.

    A text of more than `max_tokens` words is cut there. As a stream it comes in pieces of `piece` characters, and an
    error after the first of them.
    """

    def __init__(self, *says: str | ModelError, context: int = 4096, piece: int = 3) -> None:
        self._says = list(says)
        self._piece = piece
        self.context = context
        self.name = "script"
        self.asked: list[str] = []

    def count(self, messages: Sequence[Message]) -> int:
        return sum(len(message.content.split()) for message in messages)

    def complete(self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = ()) -> Completion:
        return cut_at(self._write(messages, max_tokens, lambda _: None), stop)

    def stream(
        self, messages: Sequence[Message], max_tokens: int, stop: Sequence[str] = ()
    ) -> Iterator[str | Completion]:
        return in_pieces(lambda tell: self._write(messages, max_tokens, tell), stop)

    def _write(self, messages: Sequence[Message], max_tokens: int, tell: Callable[[str], None]) -> Completion:
        self.asked.append(messages[-1].content)
        said = self._says.pop(0) if len(self._says) > 1 else self._says[0]
        if isinstance(said, ModelError):
            tell("Half a ")
            raise said
        words = said.split(" ")
        text = " ".join(words[:max_tokens])
        for start in range(0, len(text), self._piece):
            tell(text[start : start + self._piece])
        return Completion(text, len(words) > max_tokens, self.count(messages), len(text.split()))
