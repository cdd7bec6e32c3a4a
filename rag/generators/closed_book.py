"""A model that answers from memory: the baseline without attribution, and what post-hoc attribution begins with."""

from collections.abc import Iterable, Iterator

from rag.generators.labelled import ask, failed, fields, spoken
from rag.llms import LanguageModel, ModelError
from rag.prompts import plain
from rag.types import Answer, Question

_PROMPT = "closed-book.v1"
_MOST = 200  # tokens of a reply


class ClosedBook:
    """Asks for a sentence and a short answer; nothing is searched for, shown or cited."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = f"closed-book({model.name},{_PROMPT})"

    def answer(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer a question, in order; one that the model gives nothing to has failed and says why."""
        for question in questions:
            try:
                completion = ask(self._model, _PROMPT, _MOST, question=plain(question.text))
            except ModelError as error:
                yield failed(question, self.name, str(error))
                continue
            yield spoken(question, completion, fields(completion.text, ("answer", "short")), self.name)
