"""A system of a server as a `System` of this process."""

from collections.abc import Iterator
from typing import Unpack

from rag.answer.llms.labelled_replies import failed_answer
from rag.answer.system import System
from rag.base.errors import ModelFailureError
from rag.base.types import Answer, Question
from rag.retrieval.client import AskOptions, Client


class ServedSystem(System):
    """A system of a server, for code that takes a `System`.

    The name holds the address of the server; the answers name the system itself. If the server's language model fails,
    the answer is a failed one, as of a model of this process.
    """

    def __init__(self, client: Client, system: str | None = None, **options: Unpack[AskOptions]) -> None:
        self._client, self._system, self._options = client, system, options

    @property
    def name(self) -> str:
        """The system as it was asked for, and the server."""
        return f"{self._system or 'default'}@{self._client.url}"

    @property
    def streams(self) -> bool:
        """Whether the answer can arrive in pieces."""
        return True

    def respond(self, question: Question) -> Answer:
        """Ask the server."""
        try:
            return self._client.ask(question, system=self._system, **self._options)
        except ModelFailureError as error:
            return failed_answer(question, self.name, str(error))

    def stream(self, question: str | Question) -> Iterator[Answer]:
        """Yield the answer so far as the server writes it; last, the answer."""
        try:
            yield from self._client.stream(question, system=self._system, **self._options)
        except ModelFailureError as error:
            question_object = question if isinstance(question, Question) else Question("q1", question)
            yield failed_answer(question_object, self.name, str(error))
