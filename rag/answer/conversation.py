"""A conversation: follow-up questions to one system."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag.answer.generators.follow_up import make_standalone, read_history
from rag.answer.system import System
from rag.base.errors import check_list, check_type
from rag.base.types import Answer, Question, Turn

if TYPE_CHECKING:
    from rag.answer.llms import LanguageModel

__all__ = ["Conversation", "Turn", "read_history"]


class Conversation:
    """Asks a system and remembers the turns, so that it understands "when was she born?".

    `model` names a language model that rewrites follow-ups as standalone questions (`rag.answer.llms.open_model`); by
    default, rules rewrite them (`rag.answer.generators.follow_up`).
    """

    def __init__(self, system: System, turns: Sequence[Turn] = (), model: str | None = None) -> None:
        check_type("system", system, "an open system (rag.open_system)", System)
        check_list("turns", turns, "a list of Turns")
        self.system, self.turns = system, list(turns)
        for turn in self.turns:
            check_type("turn", turn, "a Turn (question, answer)", Turn)
        if model is not None:
            check_type("model", model, "the name of a language model", str)
        self._model_name, self._asked = model, len(self.turns)
        self._model: LanguageModel | None = None

    def make_standalone(self, question: str) -> str:
        """Rewrite the question so that it can be understood without the earlier turns."""
        check_type("question", question, "a string", str)
        if self.turns and self._model_name is not None and self._model is None:
            from rag.answer.llms import open_model

            self._model = open_model(self._model_name)
        return make_standalone(question, self.turns, self._model)

    def ask(self, question: str) -> Answer:
        """Answer a question, which may be a follow-up; the ids of questions are q1, q2, ..."""
        answer = self.system.ask(self._question(question))
        self.remember(question, answer)
        return answer

    def stream(self, question: str) -> Iterator[Answer]:
        """Yield the answer so far while it is written (`System.stream`); last, the answer."""
        answer = None
        for answer in self.system.stream(self._question(question)):
            yield answer
        if answer is not None:
            self.remember(question, answer)

    def _question(self, question: str) -> Question:
        standalone_question = self.make_standalone(question)
        self._asked += 1
        return Question(f"q{self._asked}", standalone_question)

    def remember(self, question: str, answer: Answer) -> None:
        """Add a turn, unless the system abstained."""
        if not answer.abstained:
            self.turns.append(Turn(question, answer.headline or answer.text))
