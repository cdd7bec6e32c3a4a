"""The pages of people who come from crowd services: joining, consent, questions about the person, and the end."""

import secrets
from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rag.annotate.crowd import PREVIEW, Crowd, Status
from rag.annotate.guidelines import markdown_html
from rag.annotate.site import Site, field
from rag.annotate.types import Annotator, Work
from rag.base.errors import PressError, UsageError
from rag.web.pages import sentence
from rag.web.security import client_of


class CrowdPages:
    """What surrounds the items of a study with a `crowd.toml`."""

    def __init__(self, site: Site) -> None:
        self._site, self._study = site, site.study
        self._crowd = Crowd(site.study)

    async def join(self, request: Request) -> Response:
        """Sign in a participant by the parameters of a service's link."""
        key, parameters = request.path_params["key"], dict(request.query_params)
        request.scope["path"], request.scope["query_string"] = "/join/...", b""  # what a server's log shows
        client = client_of(request)
        if not self._crowd.is_key(key):
            self._site.guesses.count_failure(client)
            raise HTTPException(404)
        if parameters.get("assignmentId") == PREVIEW:
            return self._site.page(request, "out.html.j2", text="Accept the task first, then open the study from it.")
        try:
            token = await run_in_threadpool(self._crowd.join, parameters)
        except UsageError as error:
            raise HTTPException(400, sentence(error)) from error
        return self._site.enter(request, token)

    async def before_items(
        self, request: Request, person: Annotator, *, notice: str = "", status: int = 200
    ) -> Response | None:
        """Return the page that comes before the items of a person, or in their place; None if it is their turn."""
        if not self._crowd.exists:
            return None
        state = await run_in_threadpool(self._crowd.status, person.id)
        if person.block_reason is not None:
            return self._blocked(request, person, state)
        if state.must_consent:
            text = markdown_html(self._crowd.settings.consent)
            values = {"text": text, "sha256": self._crowd.consent_sha256, "notice": notice}
            return self._site.page(request, "consent.html.j2", status=status, **values)
        if state.questions:
            questions = self._crowd.settings.questions
            return self._site.page(request, "about_you.html.j2", status=status, questions=questions, notice=notice)
        if state.has_done_all:
            await run_in_threadpool(self._crowd.end, person.id)
            return await self._completed(request, person, notice, status)
        return None

    def _blocked(self, request: Request, person: Annotator, state: Status) -> Response | None:
        url = self._crowd.settings.screen_out_url
        if not (state.is_participant and url):
            return None
        return self._site.page(request, "screened_out.html.j2", reason=person.block_reason, url=url)

    async def limit(self, person: Annotator, work: Work) -> Work:
        """Return the work with the number of items that are left for a participant."""
        limit = self._crowd.settings.items
        if not limit or work.phase == "training":
            return work
        if not (await run_in_threadpool(self._crowd.status, person.id)).is_participant:
            return work
        return replace(work, left_count=min(work.left_count, limit - work.done_count))

    async def after_items(self, request: Request, person: Annotator, *, notice: str, status: int) -> Response | None:
        """Return the last page of a participant for whom nothing is left; None for others."""
        state = await run_in_threadpool(self._crowd.status, person.id)
        return await self._completed(request, person, notice, status) if state.is_participant else None

    async def _completed(self, request: Request, person: Annotator, notice: str, status: int) -> Response:
        values = {
            "url": self._crowd.settings.completion_url,
            "code": self._crowd.code(person.id),
            "can_undo": await run_in_threadpool(self._study.can_undo, person.id),
            "press": secrets.token_urlsafe(16),
            "notice": notice,
        }
        return self._site.page(request, "completed.html.j2", status=status, me=person.id, **values)

    async def accept(self, request: Request) -> Response:
        """Record the consent of a person, or end here for a person who does not give it."""
        person, form = await self._site.person(request), await self._site.form(request)
        if field(form, "choice") != "accept":
            text = "You do not take part. You can close this page, and return the task."
            return self._site.page(request, "out.html.j2", text=text)
        if field(form, "agree") != "yes":
            raise PressError("tick the box if you agree")
        await run_in_threadpool(self._crowd.accept, person.id, field(form, "sha256"))
        return RedirectResponse("/", 303)

    async def answer(self, request: Request) -> Response:
        """Record what a person says of themselves."""
        person, form = await self._site.person(request), await self._site.form(request)
        names = [question.name for question in self._crowd.settings.questions]
        answers = {name: field(form, f"about-{name}") for name in names}
        await run_in_threadpool(self._crowd.answer, person.id, answers)
        return RedirectResponse("/", 303)
