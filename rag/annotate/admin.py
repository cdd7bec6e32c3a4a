"""The admin's pages of a study: progress, people, audits, ties and the export."""

import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from rag.annotate.items import unstorable
from rag.annotate.past_pages import minute, page_number
from rag.annotate.redact import redact
from rag.annotate.site import Site, field, reason_of
from rag.annotate.types import Role
from rag.annotate.work import item_view
from rag.base.errors import UsageError

_PER_PAGE = 100
_FILTERS = ("annotator", "question", "value", "item")
_ROLES: dict[str, Role] = {"annotator": "annotator", "admin": "admin"}


class AdminPages:
    """The pages of an admin."""

    def __init__(self, site: Site) -> None:
        self._site, self._study = site, site.study

    async def progress(self, request: Request) -> Response:
        """Show the progress of the study and of each person."""
        person = await self._site.admin(request)
        progress = await run_in_threadpool(self._study.progress)
        ordinal = [question.name for question in self._study.scheme.questions if question.is_ordinal]
        return self._site.page(request, "admin.html.j2", progress=progress, ordinal=ordinal, me=person.id)

    async def invite(self, request: Request) -> Response:
        """Invite a person, or replace a person's link, and show the link; it is shown only once."""
        await self._site.admin(request)
        form = await self._site.form(request)
        id, role = field(form, "id").strip(), _ROLES.get(field(form, "role"))  # noqa: A001
        if role is None:
            raise HTTPException(400, "The role should be annotator or admin.")
        try:
            token = await run_in_threadpool(self._study.invite, id, role, new=field(form, "new") == "yes")
        except UsageError as error:
            raise HTTPException(400, str(error)) from error
        return self._site.page(request, "invited.html.j2", id=id, link=self._site.link(request, token))

    async def revoke(self, request: Request) -> Response:
        """Revoke a person's link at once."""
        await self._site.admin(request)
        form = await self._site.form(request)
        return await self._change_person(self._study.revoke, field(form, "id"))

    async def block(self, request: Request) -> Response:
        """Block a person, who gets no more items."""
        await self._site.admin(request)
        form = await self._site.form(request)
        reason = reason_of(form)[:500] or "an admin of the study has ended your part in it."
        return await self._change_person(self._study.block, field(form, "id"), reason)

    async def unblock(self, request: Request) -> Response:
        """Unblock a person."""
        await self._site.admin(request)
        form = await self._site.form(request)
        return await self._change_person(self._study.unblock, field(form, "id"))

    async def _change_person(self, change: Callable[..., None], *values: str) -> Response:
        try:
            await run_in_threadpool(change, *values)
        except UsageError as error:
            raise HTTPException(400, str(error)) from error
        return RedirectResponse("/admin", 303)

    async def verdicts(self, request: Request) -> Response:
        """List single verdicts, the last one first; the query of the address filters them."""
        await self._site.admin(request)
        filters = {name: request.query_params.get(name, "")[:1000] for name in _FILTERS}
        fast, number = request.query_params.get("fast") == "yes", page_number(request)
        if any(map(unstorable, filters.values())):
            raise HTTPException(400, "A filter holds what no verdict has.")
        records = await run_in_threadpool(
            lambda: self._study.verdicts(**filters, fast=fast, start=number * _PER_PAGE, limit=_PER_PAGE + 1)
        )
        address = urlencode({name: text for name, text in filters.items() if text} | ({"fast": "yes"} if fast else {}))
        return self._site.page(
            request,
            "verdicts.html.j2",
            records=records[:_PER_PAGE],
            more=len(records) > _PER_PAGE,
            number=number,
            filters=filters,
            fast=fast,
            address=address,
            questions=[*dict.fromkeys(question.name for question in self._study.scheme.questions), "flag"],
            minute=minute,
        )

    async def item(self, request: Request) -> Response:
        """Show an item with all that people said about it, and what the judge says once they have finished it."""
        await self._site.admin(request)
        id = request.query_params.get("id", "")  # noqa: A001
        if unstorable(id):
            raise HTTPException(404, "There is no such item.")
        try:
            inspection = await run_in_threadpool(self._study.inspect, id)
        except UsageError as error:
            raise HTTPException(404, str(error)) from error
        question = self._study.scheme.questions_of(inspection.item.unit)[-1]
        return self._site.page(
            request,
            "inspect.html.j2",
            inspection=inspection,
            minute=minute,
            texts={source.id: source.text for source in inspection.item.sources},
            **item_view(self._study, inspection.item, question),
        )

    async def audit(self, request: Request) -> Response:
        """Show an item to audit. The annotator's verdict is hidden, so that the admin answers independently."""
        person = await self._site.admin(request)
        audits = await run_in_threadpool(self._study.audit_sample, 1)
        if not audits:
            return self._site.page(request, "nothing.html.j2", title="Audit", text="There is no rating left to audit.")
        (audit,) = audits
        press = secrets.token_urlsafe(16)
        return self._site.page(
            request,
            "judge.html.j2",
            me=person.id,
            title="Audit",
            lead="Answer the question yourself. The annotator's verdict is hidden.",
            action="/admin/audit",
            hidden={"item": audit.item.id, "question": audit.question.name},
            press=press,
            shown=self._study.shown.make(person.id, audit.item.id, audit.question.name, press),
            votes=(),
            **item_view(self._study, redact(audit.item, audit.item.id, audit.question), audit.question),
        )

    async def record_audit(self, request: Request) -> Response:
        """Record the admin's verdict of an audit."""
        return await self._record_verdict(request, self._study.record_audit, "/admin/audit")

    async def ties(self, request: Request) -> Response:
        """Show a tie with the votes and the written reasons, without names."""
        person = await self._site.admin(request)
        ties = await run_in_threadpool(self._study.ties)
        if not ties:
            return self._site.page(request, "nothing.html.j2", title="Ties", text="There is no tie to decide.")
        tie, press = ties[0], secrets.token_urlsafe(16)
        labels = {option.value: option.label_for(tie.item.kind) for option in tie.question.options}
        return self._site.page(
            request,
            "judge.html.j2",
            me=person.id,
            title=f"Ties: {len(ties)} left",
            lead="People disagree about this item. Your verdict decides.",
            action="/admin/ties",
            hidden={"item": tie.item.id, "question": tie.question.name},
            press=press,
            shown=self._study.shown.make(person.id, tie.item.id, tie.question.name, press),
            votes=[(labels.get(value, value), count, tie.reasons.get(value, ())) for value, count in tie.votes.items()],
            **item_view(self._study, redact(tie.item, tie.item.id, tie.question), tie.question),
        )

    async def adjudicate(self, request: Request) -> Response:
        """Record the admin's decision of a tie."""
        return await self._record_verdict(request, self._study.adjudicate, "/admin/ties")

    async def _record_verdict(self, request: Request, record: Callable[..., None], page: str) -> Response:
        """Record the admin's verdict, and go on to the next item."""
        person, form = await self._site.admin(request), await self._site.form(request)
        await run_in_threadpool(
            record,
            person.id,
            field(form, "item"),
            field(form, "question"),
            field(form, "value"),
            press=field(form, "press"),
            reason=reason_of(form),
            shown=field(form, "shown"),
        )
        return RedirectResponse(page, 303)

    async def export(self, request: Request) -> Response:
        """Send the export of the study as a zip file."""
        await self._site.admin(request)
        await self._site.form(request)
        folder = Path(tempfile.mkdtemp(prefix="rag-annotate-"))
        try:
            archive = await run_in_threadpool(self._archive, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        remove = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
        return FileResponse(archive, filename="export.zip", media_type="application/zip", background=remove)

    def _archive(self, folder: Path) -> str:
        self._study.export(folder / "export")
        # The folder of `mkdtemp` is for its owner only, and so are the files of an export.
        return shutil.make_archive(str(folder / "export"), "zip", folder, "export")
