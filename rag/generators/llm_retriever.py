"""The model as the retriever (Bohnet et al. 2022; spec A1): it answers and names the page, which is then looked up."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from autoais.text.claims import applicable
from autoais.types import Judge
from rag.attribution.attributor import Attributor
from rag.attribution.titles import Titles
from rag.errors import QuestionError
from rag.generators.labelled import ask_each
from rag.llms import LanguageModel
from rag.llms.prompts import Prompt
from rag.retrievers import Retriever
from rag.types import Answer, Hit, Question, Unresolved

_PROMPT = "llm-retriever.v1"
_LABELS = ("answer", "short", "page", "search")
_MOST = 250  # tokens of a reply
_LONGEST = 300  # characters of a page's name or of a query


class ModelAsRetriever:
    """Resolves the page (`rag.attribution.titles`) or query that the model names, and cites what supports the answer.

    Where it does not resolve, or where nothing there supports any sentence, nothing is cited and the pointer stays in
    `Answer.unresolved`: `unknown-page` (no title is like it), `nothing-found` (by the query), `unsupported`, or
    `no-pointer` (it named none).
    """

    def __init__(self, model: LanguageModel, titles: Titles, retriever: Retriever, judge: Judge, k: int) -> None:
        self._model, self._titles, self._retriever, self._k = model, titles, retriever, k
        self._prompt, self._attributor = Prompt.read(_PROMPT), Attributor(judge)
        self.name = f"llm-retriever({model.name},{self._prompt.id},{retriever.name}@{k},{self._attributor.name})"

    def answer(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer a question, in order; one that the model gives nothing to has failed and says why."""
        for said, reply in ask_each(self._model, self._prompt, _MOST, _LABELS, questions, self.name):
            if said.sentences:
                said = self._pointed(said, reply.get("page", "")[:_LONGEST], reply.get("search", "")[:_LONGEST])
            yield said

    def _pointed(self, answer: Answer, page: str, query: str) -> Answer:
        hits, reason = self._resolved(answer, page, query)
        answer = replace(answer, hits=tuple(hits), trace={**answer.trace, "page": page, "search": query})
        passages = [hit.passage for hit in hits]
        sentences = []
        for sentence in answer.sentences:
            claim = answer.text[sentence.start : sentence.end]
            claims = applicable(claim, answer.short_answer)
            support = self._attributor.support(claim, passages, answer.question.text) if claims else None
            sentences.append(replace(sentence, citations=(support.citation("cited"),) if support else ()))
        if hits and not any(sentence.citations for sentence in sentences):
            reason = "unsupported"
        unresolved = (*answer.unresolved, Unresolved(page or query, reason)) if reason else answer.unresolved
        return replace(answer, sentences=tuple(sentences), unresolved=unresolved)

    def _resolved(self, answer: Answer, page: str, query: str) -> tuple[Sequence[Hit], str | None]:
        """The passages that are meant, or why there are none."""
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
