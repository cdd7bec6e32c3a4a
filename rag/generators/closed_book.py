"""A model that answers from memory: the baseline without attribution, and what post-hoc attribution begins with."""

from collections.abc import Iterable, Iterator

from rag.generators.labelled import ask_each
from rag.llms import LanguageModel
from rag.llms.prompts import Prompt
from rag.types import Answer, Question

_PROMPT = "closed-book.v1"
_MOST = 200  # tokens of a reply


class ClosedBook:
    """Asks for a sentence and a short answer; nothing is searched for, shown or cited."""

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._prompt = model, Prompt.read(_PROMPT)
        self.name = f"closed-book({model.name},{self._prompt.id})"

    def answer(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer a question, in order; one that the model gives nothing to has failed and says why."""
        for answer, _ in ask_each(self._model, self._prompt, _MOST, ("answer", "short"), questions, self.name):
            yield answer
