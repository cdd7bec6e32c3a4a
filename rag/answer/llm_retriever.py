"""LLM-as-retriever (Bohnet et al. 2022): the model answers and names a page, which is then looked up."""

from collections.abc import Sequence
from dataclasses import replace

from autoais.base.text.claims import is_applicable
from autoais.base.types import Judge
from rag.answer.attribution.attributor import Attributor
from rag.answer.attribution.titles import Titles
from rag.answer.instructions import warn_of_instructions
from rag.answer.llms import LanguageModel
from rag.answer.llms.labelled_replies import ask_about
from rag.answer.llms.prompts import Prompt
from rag.answer.system import System
from rag.base.errors import QuestionError
from rag.base.types import Answer, Hit, Question, Unresolved
from rag.retrieval import Retriever

_PROMPT = "llm-retriever.v1"
_LABELS = ("answer", "short", "page", "search")
_MAX_TOKENS = 250  # tokens of a reply
_MAX_POINTER_LENGTH = 300  # characters of a page's name or of a query


class ModelAsRetriever(System):
    """Resolves the page (`rag.answer.attribution.titles`) or query that the model names, and cites supporting passages.

    If the pointer does not resolve, or its passages support no sentence, nothing is cited and the pointer is kept in
    `Answer.unresolved`: `unknown-page` (no similar title), `nothing-found` (no hits for the query), `unsupported`, or
    `no-pointer` (the model named neither).
    """

    def __init__(self, model: LanguageModel, titles: Titles, retriever: Retriever, judge: Judge, k: int) -> None:
        self._model, self._titles, self._retriever, self._k = model, titles, retriever, k
        self._prompt, self._attributor = Prompt.read(_PROMPT), Attributor(judge)

    @property
    def name(self) -> str:
        """Model, prompt, retriever and judge."""
        parts = (self._model.name, self._prompt.id, f"{self._retriever.name}@{self._k}", self._attributor.name)
        return f"llm-retriever({','.join(parts)})"

    def respond(self, question: Question) -> Answer:
        """The model's answer with citations; if the model fails, a failed answer with the reason."""
        answer, reply = ask_about(self._model, self._prompt, _MAX_TOKENS, _LABELS, question, self.name)
        if not answer.sentences:
            return answer
        return self._add_citations(
            answer, reply.get("page", "")[:_MAX_POINTER_LENGTH], reply.get("search", "")[:_MAX_POINTER_LENGTH]
        )

    def _add_citations(self, answer: Answer, page: str, query: str) -> Answer:
        hits, reason = self._resolve_pointer(answer, page, query)
        answer = replace(answer, hits=tuple(hits), trace={**answer.trace, "page": page, "search": query})
        passages = [hit.passage for hit in hits]
        sentences = []
        for sentence in answer.sentences:
            claim = sentence.text
            claims = is_applicable(claim, answer.short_answer)
            support = self._attributor.support(claim, passages, answer.question.text) if claims else None
            sentences.append(replace(sentence, citations=(support.citation("cited"),) if support else ()))
        if hits and not any(sentence.citations for sentence in sentences):
            reason = "unsupported"
        unresolved = (*answer.unresolved, Unresolved(page or query, reason)) if reason else answer.unresolved
        return warn_of_instructions(replace(answer, sentences=tuple(sentences), unresolved=unresolved))

    def _resolve_pointer(self, answer: Answer, page: str, query: str) -> tuple[Sequence[Hit], str | None]:
        """The passages of the pointer, or the reason why there are none."""
        if page:
            hits = self._titles.resolve(page, f"{answer.question.text} {answer.text}", self._k)
            return hits, None if hits else "unknown-page"
        if not query:
            return [], "no-pointer"
        try:
            hits = self._retriever.search([query], self._k)[0]
        except QuestionError:
            hits = []
        return hits, None if hits else "nothing-found"
