"""The web application of a study: `create_app(open_study("study"))`.

Annotators sign in by a personal link and see one question at a time; what a question hides is not in the page.
"""

import hashlib
import secrets
import time
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from rag.annotate.guidelines import guidelines_html
from rag.annotate.highlight import content_words, pieces, segments
from rag.annotate.items import Item
from rag.annotate.schemes import KINDS, Question, flags_for
from rag.annotate.study import Annotator, Evidence, Feedback, Study, Work
from rag.errors import LinkError, PressError, StudyError
from rag.web.pages import Pages, shown
from rag.web.security import RateLimit, allowed_hosts, csrf_token, is_csrf_token, middleware, signature

_MAX_BODY = 1 << 18
_MAX_REASON = 5_000  # characters
_MAX_EVIDENCE = 200  # spans of one verdict
_GUESSES, _GUESS_SECONDS = 20, 60.0  # failed sign-ins of one client, and for how long they count
_RETRY = {"Retry-After": "2"}
_WEEK = 7 * 24 * 3600


def create_app(study: Study, base_url: str | None = None) -> Starlette:
    """Return the application of a study.

    `base_url` is the address that people use, such as `https://study.example.org`: links begin with it, its host is
    accepted besides loopback names, and with https the cookie is sent over https only. Raises `UserError` if it is no
    such address.
    """
    from rag.annotate.admin import admin_routes

    site = Site(study, base_url)
    return Starlette(
        routes=[
            Route("/", site.work),
            Route("/in/{token}", site.sign_in),
            Route("/out", site.sign_out, methods=["POST"]),
            Route("/press", site.press, methods=["POST"]),
            Route("/flag", site.flag, methods=["POST"]),
            Route("/undo", site.undo, methods=["POST"]),
            Route("/guidelines", site.guidelines),
            Route("/healthz", site.health),
            Route("/static/{name:path}", site.pages.static),
            *admin_routes(site),
        ],
        middleware=middleware(allowed_hosts(base_url), max_body=_MAX_BODY),
        exception_handlers={
            HTTPException: site.on_http_error,
            LinkError: site.on_link_error,
            PressError: site.on_press_error,
            StudyError: site.on_study_error,
            Exception: site.on_error,
        },
    )


class Site:
    """The pages of a study, and what they share: who asks, forms, errors."""

    def __init__(self, study: Study, base_url: str | None) -> None:
        self.study = study
        self.pages = Pages("rag.web", "rag.annotate")
        self._base_url = base_url.rstrip("/") if base_url else None
        self._secure = bool(base_url and base_url.startswith("https:"))
        # A cookie knows no port: two studies on one host have cookies of two names.
        name = f"study-{hashlib.sha256(str(study.folder.resolve()).encode()).hexdigest()[:12]}"
        self._cookie = f"__Host-{name}" if self._secure else name
        self._guesses = RateLimit(_GUESSES, _GUESS_SECONDS)

    # --- who asks ---------------------------------------------------------------------------------------------------

    def session(self, request: Request) -> str:
        """Return the session, which is the token of the person's link; empty if there is none."""
        return request.cookies.get(self._cookie, "")

    async def person(self, request: Request) -> Annotator:
        """Return who asks. Raises `HTTPException` 401, or `LinkError`."""
        session = self.session(request)
        if not session:
            raise HTTPException(401, "You are not signed in: open your personal link.")
        return await self._signed_in(request, session)

    async def _signed_in(self, request: Request, token: str) -> Annotator:
        try:
            return await run_in_threadpool(self.study.sign_in, token)
        except LinkError:
            self._guesses.failed(_client(request))
            raise

    async def admin(self, request: Request) -> Annotator:
        """Return the admin who asks; raises `HTTPException` 403 for others."""
        found = await self.person(request)
        if found.role != "admin":
            raise HTTPException(403, "This page is for admins of the study.")
        return found

    async def form(self, request: Request) -> FormData:
        """Return the form of a request, once its token shows that a page of this session sent it."""
        found = await request.form(max_files=0, max_fields=_MAX_EVIDENCE + 50)
        if not is_csrf_token(self.session(request), field(found, "csrf")):
            raise HTTPException(403, "The form is not from a page of this session: reload the page and try again.")
        return found

    def link(self, request: Request, token: str) -> str:
        """Return the personal link with that token."""
        return f"{self._base_url or f'{request.url.scheme}://{request.url.netloc}'}/in/{quote(token, safe='')}"

    def page(self, request: Request, template: str, *, status: int = 200, **values: object) -> Response:
        """Return a page with what all pages of the study have."""
        session = self.session(request)
        shared = {"settings": self.study.settings, "csrf": csrf_token(session) if session else ""}
        return self.pages.page(f"annotate/{template}", shared | values, status=status)

    # --- signing in and out -----------------------------------------------------------------------------------------

    async def sign_in(self, request: Request) -> Response:
        """Set the cookie of a personal link, and go on to the work page."""
        token = request.path_params["token"]
        request.scope["path"] = "/in/..."  # what a server's log of requests shows
        client = _client(request)
        if wait := self._guesses.wait(client):
            raise HTTPException(429, f"Too many wrong links: try again in {wait} seconds.", {"Retry-After": str(wait)})
        await self._signed_in(request, token)
        # Not a redirect: a browser that comes from another site's link would not send a strict cookie along with it.
        response = self.page(request, "welcome.html.j2")
        response.headers["Refresh"] = "0; url=/"
        response.set_cookie(
            self._cookie, token, max_age=26 * _WEEK, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        """Forget the session in this browser."""
        await self.form(request)
        response = self.page(request, "out.html.j2")
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return response

    # --- work -------------------------------------------------------------------------------------------------------

    async def work(self, request: Request) -> Response:
        """Show what the person does now."""
        person = await self.person(request)
        if person.role == "admin":
            return RedirectResponse("/admin", 303)
        return await self._now(request, person)

    async def _now(self, request: Request, person: Annotator, *, notice: str = "", status: int = 200) -> Response:
        if person.blocked is not None:
            return self.page(request, "blocked.html.j2", status=status, reason=person.blocked)
        work = await run_in_threadpool(self.study.next, person.id)
        if work is None:
            now = await run_in_threadpool(self.study.annotator, person.id)  # the last item may have blocked them
            if now.blocked is not None:
                return self.page(request, "blocked.html.j2", status=status, reason=now.blocked)
            undo = await run_in_threadpool(self.study.can_undo, person.id)
            press = secrets.token_urlsafe(16)
            return self.page(request, "thanks.html.j2", status=status, press=press, can_undo=undo, notice=notice)
        return self.page(
            request,
            "work.html.j2",
            status=status,
            notice=notice,
            served=served_at(self.session(request), work.item.id, work.question.name),
            **work_view(self.study, work),
        )

    async def press(self, request: Request) -> Response:
        """Record a verdict; answer with what comes next, in training with feedback."""
        person, form = await self.person(request), await self.form(request)
        item, question = field(form, "item"), field(form, "question")
        seconds = bounded(field(form, "seconds"), field(form, "served"), self.session(request), item, question)
        before = await run_in_threadpool(self.study.next, person.id) if field(form, "phase") == "training" else None
        feedback = await run_in_threadpool(
            self.study.verdict,
            person.id,
            item,
            question,
            field(form, "value"),
            press=field(form, "press"),
            evidence=evidence_of(form),
            reason=reason_of(form),
            seconds=seconds,
        )
        if feedback is not None:
            return self._feedback(request, feedback, before if before and before.item.id == item else None, form)
        return await self._after(request, person)

    def _feedback(self, request: Request, feedback: Feedback, work: Work | None, form: FormData) -> Response:
        """Show what was right; the item is not shown again if the answer got lost and the press came twice."""
        if work is None:
            return self.page(
                request, "feedback.html.j2", feedback=feedback, given="", expected=feedback.expected, work=None
            )
        labels = {option.value: option.label_for(work.item.kind) for option in work.question.options}
        return self.page(
            request,
            "feedback.html.j2",
            feedback=feedback,
            given=labels.get(field(form, "value"), ""),
            expected=labels.get(feedback.expected, feedback.expected),
            **work_view(self.study, work),
        )

    async def flag(self, request: Request) -> Response:
        """Take the item out of the person's queue."""
        person, form = await self.person(request), await self.form(request)
        await run_in_threadpool(
            self.study.flag, person.id, field(form, "item"), field(form, "value"), press=field(form, "press")
        )
        return await self._after(request, person)

    async def undo(self, request: Request) -> Response:
        """Take back the person's last press."""
        person, form = await self.person(request), await self.form(request)
        await run_in_threadpool(self.study.undo, person.id, press=field(form, "press"))
        return await self._after(request, person)

    async def _after(self, request: Request, person: Annotator) -> Response:
        # The page's own script takes the next page at once; a browser without it is redirected, so that it can reload.
        if request.headers.get("X-Requested-With") == "fetch":
            return await self._now(request, person)
        return RedirectResponse("/", 303)

    async def guidelines(self, request: Request) -> Response:
        """Show the guidelines of the study."""
        await self.person(request)
        kinds = [kind for kind in KINDS if kind == request.query_params.get("kind")] or KINDS
        text = await run_in_threadpool(guidelines_html, self.study, kinds)
        return self.page(request, "guidelines.html.j2", text=text)

    async def health(self, request: Request) -> Response:
        """Say whether the study's database can be reached, for who watches the server."""
        await run_in_threadpool(self.study.ready)
        return PlainTextResponse("ok\n")

    # --- errors -----------------------------------------------------------------------------------------------------

    async def on_http_error(self, request: Request, error: Exception) -> Response:
        """Show an error of a request."""
        assert isinstance(error, HTTPException)
        message = {404: "There is no such page.", 405: "This page cannot be used so."}.get(
            error.status_code, error.detail
        )
        return self.pages.error(error.status_code, message, error.headers)

    async def on_link_error(self, request: Request, error: Exception) -> Response:
        """Say that the person is not signed in: one message, whatever is wrong with the link."""
        return self.pages.error(401, _sentence(error))

    async def on_press_error(self, request: Request, error: Exception) -> Response:
        """Say why a press was not recorded, beside what the person does now."""
        person = await self.person(request)
        if person.role == "admin":
            return self.pages.error(409, _sentence(error))
        return await self._now(request, person, notice=_sentence(error), status=409)

    async def on_study_error(self, request: Request, error: Exception) -> Response:
        """Say that the database cannot be reached; the page's script tries again."""
        return self.pages.error(503, _sentence(error), _RETRY)

    async def on_error(self, request: Request, error: Exception) -> Response:
        """Say that there is a fault, and nothing about it; the server's log has it."""
        return self.pages.error(500, "The server has a fault; nothing was recorded by this press.")


def field(form: FormData, name: str) -> str:
    """Return a text of a form, empty if it is not there."""
    found = form.get(name, "")
    return found if isinstance(found, str) else ""


def reason_of(form: FormData) -> str:
    """Return the written reason of a form."""
    return shown(field(form, "reason").replace("\r\n", "\n")).strip()[:_MAX_REASON]


def evidence_of(form: FormData) -> tuple[Evidence, ...]:
    """Return the spans `start:end:passage` of a form, each once, in order. Raises `PressError`."""
    found = []
    for value in map(str, form.getlist("evidence")):
        start, _, rest = value.partition(":")
        end, _, passage = rest.partition(":")
        if not (start.isdecimal() and end.isdecimal() and len(value) < 1_000 and start.isascii() and end.isascii()):
            raise PressError("The evidence is not a span of a source: choose it again.")
        found.append(Evidence(passage, int(start), int(end)))
    if len(found) > _MAX_EVIDENCE:
        raise PressError(f"That is more evidence than the {_MAX_EVIDENCE} spans that a verdict can have.")
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.passage, one.start, one.end)))


def served_at(session: str, item: str, question: str, now: float | None = None) -> str:
    """Return when a question was served, signed, for the form to send back."""
    at = str(round(1000 * (time.time() if now is None else now)))
    return f"{at}.{signature(session, 'served', item, question, at)}"


def bounded(
    seconds: str, served: str, session: str, item: str, question: str, now: float | None = None
) -> float | None:
    """Return the seconds that a browser measured, at most those since the question was served; None if unknown."""
    at, _, signed = served.partition(".")
    try:
        measured = float(seconds) if seconds else None
        known = secrets.compare_digest(signed.encode(), signature(session, "served", item, question, at).encode())
        passed = (time.time() if now is None else now) - int(at) / 1000 if known else None
    except ValueError:
        return None
    if passed is None or passed < 0:  # not ours, or the clock was set back
        return None
    if measured is None:
        return passed
    return min(measured, passed) if measured >= 0 else None  # a NaN is not >= 0


def work_view(study: Study, work: Work) -> dict[str, Any]:
    """Return what the templates show of a person's work."""
    choosable = bool(work.question.evidence_for and study.settings.evidence != "off" and work.item.sources)
    return item_view(study, work.item, work.question, choosable=choosable) | {"work": work}


def item_view(study: Study, item: Item, question: Question, *, choosable: bool = False) -> dict[str, Any]:
    """Return what the templates show of an item and a question; `choosable` if evidence can be chosen."""
    words = content_words(item.text) if study.settings.highlight else frozenset()
    return {
        "item": item,
        "question": question,
        "options": [
            {
                "key": option.key,
                "value": option.value,
                "label": option.label_for(item.kind),
                "evidence": choosable and option.value in question.evidence_for,
            }
            for option in question.options
        ],
        "sources": [(source, segments(source.text, words)) for source in item.sources],
        "cell": lambda text: tuple(pieces(text, words)),
        "choosable": choosable,
        "flags": flags_for(item.kind),
        "heading": _heading(item),
    }


def _heading(item: Item) -> str:
    output = {"qa": "response", "summarization": "summary", "table": "caption"}[item.kind]
    return f"System {output}" if item.sentence is None else f"System {output}: judge the marked sentence"


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


def _client(request: Request) -> str:
    return request.client.host if request.client else ""
