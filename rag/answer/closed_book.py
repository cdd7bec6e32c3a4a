"""A model that answers from memory: the baseline without attribution, and the first step of post-hoc attribution."""

from rag.answer.llms import LanguageModel
from rag.answer.llms.labelled_replies import ask_about
from rag.answer.llms.prompts import Prompt
from rag.answer.system import System
from rag.base.types import Answer, Question

_PROMPT = "closed-book.v1"
_MAX_TOKENS = 200  # tokens of a reply


class ClosedBook(System):
    """Asks a model for a sentence and a short answer, without search, passages or citations."""

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._prompt = model, Prompt.read(_PROMPT)

    @property
    def name(self) -> str:
        """Model and prompt."""
        return f"closed-book({self._model.name},{self._prompt.id})"

    def respond(self, question: Question) -> Answer:
        """The model's answer; if the model fails, a failed answer with the reason."""
        return ask_about(self._model, self._prompt, _MAX_TOKENS, ("answer", "short"), question, self.name)[0]
