"""The pages on which annotators look at what they have judged, and revise it."""

import secrets
from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rag.annotate.schemes import flags_for
from rag.annotate.site import Site, comment_of, field
from rag.annotate.types import PastItem
from rag.annotate.work import entry_of, work_view
from rag.base.errors import PressError
from rag.web.pages import sentence

_PER_PAGE = 50


class PastPages:
    """The pages of an annotator's earlier items."""

    def __init__(self, site: Site) -> None:
        self._site, self._study = site, site.study

    async def items(self, request: Request) -> Response:
        """List the items that the person has finished or flagged, the last one first."""
        person = await self._site.person(request)
        number = page_number(request)
        past = await run_in_threadpool(self._study.past, person.id, start=number * _PER_PAGE, limit=_PER_PAGE + 1)
        return self._site.page(
            request,
            "past.html.j2",
            me=person.id,
            past=[self._view(item) for item in past[:_PER_PAGE]],
            number=number,
            more=len(past) > _PER_PAGE,
        )

    def _view(self, past: PastItem) -> dict[str, object]:
        """Return what the list shows of an item; a form about it has a press of its own."""
        kind = past.item.kind
        labels = {
            (verdict.question.name, option.value): option.label_for(kind)
            for verdict in past.verdicts
            for option in verdict.question.options
        }
        return {
            "item": past.item,
            "verdicts": [
                {
                    "name": verdict.question.name,
                    "text": verdict.question.text_for(kind),
                    "label": labels[verdict.question.name, verdict.value],
                    "time": minute(verdict.at),
                    "earlier": [(labels[verdict.question.name, value], minute(at)) for value, at in verdict.earlier],
                }
                for verdict in past.verdicts
            ],
            "flag": next((flag.label for flag in flags_for(kind) if flag.value == past.flag), past.flag),
            "comment": past.comment,
            "press": secrets.token_urlsafe(16),
        }

    async def question(self, request: Request) -> Response:
        """Show a finished item and one question about it, to answer again."""
        person = await self._site.person(request)
        item, question = request.path_params["item"], request.query_params.get("question", "")
        try:
            return await self._question_page(request, person.id, item, question)
        except PressError as error:
            raise HTTPException(404, str(error)) from error

    async def _question_page(
        self, request: Request, person: str, item: str, question: str, *, notice: str = "", status: int = 200
    ) -> Response:
        work = await run_in_threadpool(self._study.past_work, person, item, question)
        return self._site.page(
            request,
            "work.html.j2",
            status=status,
            me=person,
            notice=notice,
            revising=True,
            **work_view(self._study, work),
        )

    async def revise(self, request: Request) -> Response:
        """Replace a verdict, and go back to the list, or to the question that follows from the new verdict.

        If the new verdict is refused, the same question is shown again, with the reason.
        """
        person, form = await self._site.person(request), await self._site.form(request)
        try:
            is_finished = await run_in_threadpool(self._study.revise, person.id, field(form, "item"), entry_of(form))
        except PressError as error:
            try:
                return await self._question_page(
                    request, person.id, field(form, "item"), field(form, "question"), notice=sentence(error), status=409
                )
            except PressError:
                raise error from None
        return RedirectResponse("/past" if is_finished else "/", 303)

    async def unflag(self, request: Request) -> Response:
        """Take back a flag, and ask about the item."""
        person, form = await self._site.person(request), await self._site.form(request)
        await run_in_threadpool(self._study.take_back_flag, person.id, field(form, "item"), press=field(form, "press"))
        return RedirectResponse("/", 303)

    async def comment(self, request: Request) -> Response:
        """Record a comment on an item."""
        person, form = await self._site.person(request), await self._site.form(request)
        await run_in_threadpool(
            self._study.comment, person.id, field(form, "item"), comment_of(form), press=field(form, "press")
        )
        return RedirectResponse("/past", 303)


def page_number(request: Request) -> int:
    """Return the number of the page that is asked for, from 0."""
    number = request.query_params.get("page", "")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 7 else 0


def minute(at: float) -> str:
    """Return a time as a page shows it, to the minute."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
