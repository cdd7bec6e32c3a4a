"""What the pages of a study share: sessions, forms, links and errors."""

import hashlib
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from rag.annotate.guidelines import guidelines_html, record_guidelines
from rag.annotate.schemes import KINDS
from rag.annotate.study import Study
from rag.annotate.types import MAX_EVIDENCE, Annotator
from rag.answer.export.escaping import visible
from rag.base.errors import LinkError
from rag.web.pages import Pages, sentence
from rag.web.security import FailureLimiter, client_of, csrf_token, is_csrf_token

_MAX_REASON = 5_000  # characters
_RETRY = {"Retry-After": "2"}
_WEEK = 7 * 24 * 3600


class Site:
    """A study and its pages; those of annotators are in `work`, those of admins in `admin`."""

    def __init__(self, study: Study, base_url: str | None) -> None:
        self.study = study
        self.pages = Pages("rag.web", "rag.annotate")
        self._base_url = base_url.rstrip("/") if base_url else None
        self._secure = bool(base_url and base_url.startswith("https:"))
        # A cookie knows no port: two studies on one host have cookies of two names.
        name = f"study-{hashlib.sha256(str(study.folder.resolve()).encode()).hexdigest()[:12]}"
        self._cookie = f"__Host-{name}" if self._secure else name
        self.guesses = FailureLimiter()

    # --- sessions ---------------------------------------------------------------------------------------------------

    def session(self, request: Request) -> str:
        """Return the session, which is the token of the person's link; empty if there is none."""
        return request.cookies.get(self._cookie, "")

    async def person(self, request: Request) -> Annotator:
        """Return the person of the session. Raises `HTTPException` 401, or `LinkError`."""
        session = self.session(request)
        if not session:
            raise HTTPException(401, "You are not signed in: open your personal link.")
        return await self._find_person(request, session)

    async def _find_person(self, request: Request, token: str) -> Annotator:
        try:
            return await run_in_threadpool(self.study.sign_in, token)
        except LinkError:
            self.guesses.count_failure(client_of(request))
            raise

    async def admin(self, request: Request) -> Annotator:
        """Return the person of the session, if they are an admin; raises `HTTPException` 403 for others."""
        person = await self.person(request)
        if person.role != "admin":
            raise HTTPException(403, "This page is for admins of the study.")
        return person

    async def form(self, request: Request) -> FormData:
        """Return the form of a request. Raises `HTTPException` 403 unless a page of this session sent it."""
        form = await request.form(max_files=0, max_fields=MAX_EVIDENCE + 50)
        if not is_csrf_token(self.session(request), field(form, "csrf")):
            raise HTTPException(403, "The form is not from a page of this session: reload the page and try again.")
        return form

    def link(self, request: Request, token: str) -> str:
        """Return the personal link with that token."""
        return f"{self._base_url or f'{request.url.scheme}://{request.url.netloc}'}/in/{quote(token, safe='')}"

    def page(self, request: Request, template: str, *, status: int = 200, **values: object) -> Response:
        """Return a page; the template gets the values that all pages of the study need."""
        session = self.session(request)
        common = {
            "settings": self.study.settings,
            "asks_words": any(question.words_for for question in self.study.scheme.questions),
            "csrf": csrf_token(session) if session else "",
            "me": "",
        }
        return self.pages.page(f"annotate/{template}", common | values, status=status)

    # --- signing in and out -----------------------------------------------------------------------------------------

    async def sign_in(self, request: Request) -> Response:
        """Set the cookie of a personal link, and go on to the work page."""
        token = request.path_params["token"]
        request.scope["path"] = "/in/..."  # what a server's log of requests shows
        # Only wrong links wait: many people may share an address, and each of their right links has to work.
        wait = self.guesses.wait(client_of(request))
        try:
            await self._find_person(request, token)
        except LinkError:
            if not wait:
                raise
            message = f"Too many wrong links: try again in {wait} seconds."
            raise HTTPException(429, message, {"Retry-After": str(wait)}) from None
        return self.enter(request, token)

    def enter(self, request: Request, token: str) -> Response:
        """Set the cookie of a person's token, and go on to the work page."""
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
        response = self.page(
            request, "out.html.j2", text="You are signed out on this device. To go on, open your personal link."
        )
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="strict")
        return response

    # --- what everybody may read --------------------------------------------------------------------------------------

    async def guidelines(self, request: Request) -> Response:
        """Show the guidelines of the study."""
        await self.person(request)
        kinds = [kind for kind in KINDS if kind == request.query_params.get("kind")] or KINDS
        text = await run_in_threadpool(guidelines_html, self.study, kinds)
        await run_in_threadpool(record_guidelines, self.study)
        return self.page(request, "guidelines.html.j2", text=text)

    async def health(self, request: Request) -> Response:
        """Answer ok if the study's database can be reached, for health checks."""
        await run_in_threadpool(self.study.ready)
        return PlainTextResponse("ok\n")

    # --- errors -----------------------------------------------------------------------------------------------------

    async def on_http_error(self, request: Request, error: Exception) -> Response:
        """Show an error of a request."""
        assert isinstance(error, HTTPException)
        message = {404: "There is no such page.", 405: "This page does not take such a request."}.get(
            error.status_code, error.detail
        )
        return self.pages.error(error.status_code, message, error.headers)

    def on_other_host(self, request: Request, name: str) -> Response:
        """Refuse another host name, and name the option that allows it: JSON for programs, a page for browsers."""
        message = (
            f"this server does not answer to the name {name!r}; rag annotate serve --base-url http://NAME allows it"
        )
        if "text/html" in request.headers.get("accept", ""):
            return self.pages.error(400, sentence(message))
        return JSONResponse({"error": {"type": "HTTPError", "message": message}}, 400)

    async def on_link_error(self, request: Request, error: Exception) -> Response:
        """Say that the person is not signed in: one message, whatever is wrong with the link."""
        return self.pages.error(401, sentence(error))

    async def on_study_error(self, request: Request, error: Exception) -> Response:
        """Say that the database cannot be reached; the page's script tries again."""
        return self.pages.error(503, sentence(error), _RETRY)

    async def on_error(self, request: Request, error: Exception) -> Response:
        """Say that the server failed, without details; its log has them."""
        return self.pages.error(500, "The server failed; nothing was recorded.")


def field(form: FormData, name: str) -> str:
    """Return a text of a form; empty if it is missing."""
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def reason_of(form: FormData) -> str:
    """Return the written reason of a form."""
    return _written(form, "reason")


def comment_of(form: FormData) -> str:
    """Return the comment of a form on its item."""
    return _written(form, "comment")


def _written(form: FormData, name: str) -> str:
    return visible(field(form, name).replace("\r\n", "\n")).strip()[:_MAX_REASON]
