"""An answer as the page shows it, and as a browser stores it to show it again without asking.

What a browser stores is read as hostile: the row must be an answer that fits its passages (`rag.base.rows`), and the
checks must be of its sentences. Only then are the templates filled, which escape every text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response

from autoais.base.io.jsonl import dumps
from autoais.base.types import Judge
from rag.answer.attribution.check import SentenceCheck, check_answer
from rag.answer.export import FORMATS, ThreadTurn, export_answer
from rag.answer.export.markdown import with_footnotes
from rag.answer.llms import Price, cost
from rag.base.errors import NotFoundError, UsageError, UserError
from rag.base.rows import read_answer, write_answer
from rag.base.terminal import pluralize
from rag.base.types import Answer, Citation
from rag.serve.feedback import FeedbackFile
from rag.serve.links import answer_urls, links_to
from rag.serve.passages import PassageContext
from rag.serve.service import Reply, Service
from rag.serve.site import Site
from rag.serve.views import AnswerView, Look, view_answer

EXPORTS = {"markdown": "Markdown", "html": "HTML", "json": "JSON", "bibtex": "BibTeX", "csl": "CSL-JSON"}
"""The formats of one answer, and their labels."""

_PLACE = re.compile(r"[a-z][a-z0-9]{0,11}")
_MAX_SHORT_LENGTH = 2_000  # characters of an answer that a follow-up is asked with
_CHECKS: TypeAdapter[list[SentenceCheck]] = TypeAdapter(list[SentenceCheck])


@dataclass(frozen=True, slots=True)
class AnsweredTurn:
    """A question as it was asked, and its answer; `answer.question` is the one that was searched for.

    `system` and `index` are the names of the server. `look` finds passages with their neighbours; `checks` are those of
    the sentences, once they are known.
    """

    question: str
    answer: Answer
    system: str
    index: str
    seconds: float
    look: Look
    checks: Sequence[SentenceCheck] | None = None

    @classmethod
    def of(cls, reply: Reply, question: str) -> "AnsweredTurn":
        """Return the turn of a reply to a question."""
        return cls(question, reply.answer, reply.system, reply.index, reply.seconds, reply.passages.find)

    @property
    def permalink(self) -> str:
        """The address that asks the question again."""
        return f"/?{self.parameters}"

    @property
    def parameters(self) -> str:
        """Question, index and system of an address."""
        return urlencode({"q": self.answer.question.text, "index": self.index, "system": self.system})

    @property
    def history(self) -> dict[str, str] | None:
        """The turn as a follow-up is asked with it; None without an answer."""
        if self.answer.abstained or not self.answer.sentences:
            return None
        short_answer = self.answer.headline or self.answer.sentences[0].text
        return {"question": self.answer.question.text, "answer": short_answer[:_MAX_SHORT_LENGTH]}

    def with_checks(self, judge: Judge) -> "AnsweredTurn":
        """Return it with the judge's check of each sentence; an abstention stays without."""
        if self.answer.abstained or not self.answer.sentences:
            return self
        return replace(self, checks=check_answer(self.answer, judge, nearest=True))

    def view(self, id_prefix: str) -> AnswerView:
        """Return what the page shows of it."""
        return view_answer(
            self.answer, id_prefix=id_prefix, link=links_to("", self.index), look=self.look, checks=self.checks
        )

    def for_export(self, base: str) -> ThreadTurn:
        """Return it as a turn of an exported thread, with links that begin with `base`."""
        verdicts = tuple(check.verdict for check in self.checks or ())
        return ThreadTurn(self.question, self.answer, verdicts, self.index, links_to(base, self.index))


# --- stored by a browser ----------------------------------------------------------------------------------------------


class _TurnRecord(BaseModel):
    question: str
    system: str
    row: dict[str, Any]
    checks: list[SentenceCheck] | None = None


class _Place(BaseModel):
    """What a row has for the page: where the answer comes from, and how long it took."""

    index: str
    seconds: float = 0.0


def write_turn(turn: AnsweredTurn, feedback: FeedbackFile | None = None) -> dict[str, Any]:
    """Return a turn as JSON that a browser stores, signed if it can be rated; `write_checks` has the rest."""
    row = write_answer(turn.answer, turn.index, turn.seconds)
    record = {"question": turn.question, "system": turn.system, "row": row}
    return record if feedback is None else record | {"signature": feedback.sign(row)}


def write_checks(checks: Sequence[SentenceCheck]) -> Any:  # noqa: ANN401  (JSON)
    """Return the checks as JSON, the field `checks` of a stored turn."""
    return _CHECKS.dump_python(list(checks), mode="json")


def read_place(value: object) -> str:
    """Return how the ids of a turn's HTML begin: the field `place`, if it can be a part of ids."""
    place = value.get("place") if isinstance(value, dict) else None
    return place if isinstance(place, str) and _PLACE.fullmatch(place) else "t1"


def read_turn(value: object, service: Service) -> AnsweredTurn:
    """Return a stored turn; raises `UsageError` for one that does not fit, or contradicts itself.

    The neighbours of passages are looked up in the index as it is now, if it still has these passages.
    """
    try:
        record = _TurnRecord.model_validate(value)
        place = _Place.model_validate(record.row)
        answer = read_answer(record.row)
    except (UserError, ValueError, OverflowError) as error:
        raise UsageError("the stored answer does not fit this version of rag") from error
    if record.checks is not None:
        _check_places(record.checks, answer)
    look = _look_in(service, place.index, answer)
    return AnsweredTurn(record.question, answer, record.system, place.index, place.seconds, look, record.checks)


def _check_places(checks: Sequence[SentenceCheck], answer: Answer) -> None:
    """Raise `UsageError` unless the checks are of the sentences and passages of the answer."""
    if len(checks) != len(answer.sentences):
        raise UsageError(f"there are {len(checks)} checks of {len(answer.sentences)} sentences")
    passages = {hit.passage.id: hit.passage.text for hit in answer.hits}
    for check in checks:
        if any(not quote.spans or len(quote.quote) > len(answer.text) for quote in check.quotes):
            raise UsageError("a check has a quotation that the answer lacks")
        places = [check.nearest, check.contradiction, *(place for quote in check.quotes for place in quote.sources)]
        if not all(_is_place(place, passages) for place in places if place is not None):
            raise UsageError("a check names a passage that the answer lacks")


def _is_place(citation: Citation, passages: Mapping[str, str]) -> bool:
    start, end = citation.start, citation.end
    text = passages.get(citation.passage)
    return text is not None and start is not None and end is not None and 0 <= start <= end <= len(text)


def _look_in(service: Service, index: str, answer: Answer) -> Look:
    passages = {hit.passage.id: hit.passage.text for hit in answer.hits}
    try:
        passages_now = service.passages(index)
    except UserError:  # no longer served
        return lambda _: None

    def look(identifier: str) -> PassageContext | None:
        context = passages_now.find(identifier)
        return context if context is not None and context.passage.text == passages.get(identifier) else None

    return look


# --- HTML -------------------------------------------------------------------------------------------------------------


class TurnRenderer:
    """Turns for the page. With a `price`, answers of models say their cost; with `feedback`, people can rate them."""

    def __init__(self, site: Site, price: Price | None, feedback: FeedbackFile | None = None) -> None:
        self._site, self._price, self._feedback = site, price, feedback

    def record(self, turn: AnsweredTurn) -> dict[str, Any]:
        """Return a turn as a browser stores it."""
        return write_turn(turn, self._feedback)

    def draft(self, turn: AnsweredTurn, id_prefix: str) -> Markup:
        """Return an answer that is still being written."""
        return self._site.part("draft.html.j2", view=turn.view(id_prefix), has_feedback=self._feedback is not None)

    def answer(self, turn: AnsweredTurn, id_prefix: str, base: str) -> Markup:
        """Return an answer; links of what is copied begin with `base`."""
        view = turn.view(id_prefix)
        is_same = turn.answer.question.text.strip() == turn.question.strip()
        return self._site.part(
            "turn.html.j2",
            view=view,
            meta=self._meta(turn, view),
            permalink=turn.permalink,
            links=[(name, label, f"/export/{name}?{turn.parameters}") for name, label in EXPORTS.items()],
            copies=() if view.abstained else _copies(turn, view, base),
            feedback=turn.answer.question.id if self._feedback is not None else "",
            searched="" if is_same else turn.answer.question.text,
            unanswered="Not answered by these sources",
            rest="Also read",
        )

    def verdicts(self, turn: AnsweredTurn, id_prefix: str) -> dict[str, Any]:
        """Return the checks of an answer, and the HTML that replaces parts of it when they are there."""
        html = self._site.part("verdicts.html.j2", view=turn.view(id_prefix))
        return {"html": html, "checks": write_checks(turn.checks or ())}

    def _meta(self, turn: AnsweredTurn, view: AnswerView) -> list[str]:
        """System, index, time, passages and cost of an answer."""
        parts = [turn.system, turn.index, f"{turn.seconds:.2f} s" if turn.seconds < 10 else f"{turn.seconds:.0f} s"]
        parts.append(f"{pluralize(view.passage_count, 'passage')} read")
        if view.tokens is None:
            return [*parts, "no language model"]
        input_tokens, output_tokens = view.tokens
        parts.append(f"{input_tokens:,} tokens in, {output_tokens:,} out")
        if self._price is not None:
            parts.append(f"cost {cost(input_tokens, output_tokens, self._price):.5f}")
        return parts


def _copies(turn: AnsweredTurn, view: AnswerView, base: str) -> list[tuple[str, str, str]]:
    """What the menu Copy has: name, label and text."""
    link = links_to(base, turn.index)
    bibtex = export_answer(turn.answer, "bibtex", link, container=turn.index)
    copies = [
        ("text", "Text with footnotes", view.footnotes),
        ("markdown", "Markdown with footnotes", f"{with_footnotes(turn.answer, link).text}\n"),
    ]
    return [*copies, ("bibtex", "Sources as BibTeX", bibtex)] if bibtex else copies


# --- files ------------------------------------------------------------------------------------------------------------


def check_export(name: str) -> None:
    """Raise `NotFoundError` unless it is the name of one of `EXPORTS`."""
    if name not in EXPORTS:
        raise NotFoundError(f"no format {name[:40]!r}; there are: {', '.join(EXPORTS)}")


def export_turn(turn: AnsweredTurn, name: str, base: str) -> Response:
    """Return an answer as a file in one of `EXPORTS`; its links begin with `base`."""
    check_export(name)
    if name == "json":
        row = write_answer(turn.answer, turn.index, turn.seconds)
        row["urls"] = answer_urls(base, turn.index, turn.answer)
        return file_response(dumps(row, indent=2) + "\n", turn.question, ".json", "application/json")
    today: date = datetime.now(UTC).date()
    link = links_to(base, turn.index)
    body = export_answer(turn.answer, name, link, container=turn.index, accessed=today)
    return file_response(body, turn.question, FORMATS[name].suffix, FORMATS[name].media_type)


def file_response(body: str, title: str, suffix: str, media_type: str) -> Response:
    """Return a file to save, whose name is made of a title."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "answer"
    headers = {"Content-Disposition": f'attachment; filename="{slug}{suffix}"'}
    return Response(body.encode("utf-8", "replace"), media_type=media_type, headers=headers)
