"""Access to the server: keys, browser sessions and rate limits."""

from collections.abc import Collection
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rag.serve.http import error_response, wants_page
from rag.serve.keys import Keys, RequestLimiter
from rag.web.pages import Pages
from rag.web.security import FailureLimiter, client_of

_OPEN = ("/healthz", "/readyz", "/openapi.json", "/sign-in")
_STATIC = "/static/"
_FILES = "/v1/documents/"  # has its own limit
_READING = ("GET", "HEAD", "OPTIONS")
_MONTH = 30 * 24 * 3600
_NO_KEY = "the key is missing or wrong; send a header Authorization: Bearer KEY"


class SignIn:
    """Identifies callers by their key, or by the cookie of a browser that signed in with one."""

    def __init__(self, keys: Keys, base_url: str | None) -> None:
        self.keys = keys
        self._secure = bool(base_url and base_url.startswith("https:"))
        self._cookie = "__Host-rag-session" if self._secure else "rag-session"
        self._guesses = FailureLimiter()
        self._pages = Pages("rag.web")

    def routes(self) -> list[Route]:
        """Return the routes of the page where people sign in and out."""
        return [
            Route("/sign-in", self.page, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        ]

    def caller(self, request: Request) -> str | None:
        """Return the name of the caller for counts; None without a right key."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.keys.caller(key.strip())
        return self.keys.caller_of_cookie(request.cookies.get(self._cookie, ""))

    def refuse(self, request: Request) -> Response:
        """Return the response to a missing or wrong key: the same message for both."""
        is_page = request.method == "GET" and wants_page(request)
        has_credentials = "authorization" in request.headers or self._cookie in request.cookies
        if (has_credentials or not is_page) and (wait := self._wait(request)):
            return _too_many(request, wait, "wrong keys")
        if is_page:
            path = request.scope.get("raw_path", b"/").decode("ascii", "replace").partition("?")[0]
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/sign-in?next={quote(f'{path}{query}', safe='')}", 303)
        return error_response(request, 401, "AuthenticationError", _NO_KEY, {"WWW-Authenticate": "Bearer"})

    async def page(self, request: Request) -> Response:
        """Show a field for the key."""
        return self._form(_local(request.query_params.get("next", "/")))

    async def sign_in(self, request: Request) -> Response:
        """Set the cookie, and redirect to the page of the link."""
        form = await request.form(max_files=0, max_fields=5)
        key, target = form.get("key", ""), _local(str(form.get("next", "/")))
        if not isinstance(key, str) or self.keys.caller(key.strip()) is None:
            if wait := self._wait(request):
                return _too_many(request, wait, "wrong keys")
            return self._form(target, "The key is wrong.", 401)
        response = RedirectResponse(target, 303)
        # Lax, not strict: links to passages are opened from other sites, and reading one changes nothing.
        response.set_cookie(
            self._cookie,
            self.keys.cookie(key.strip()),
            max_age=_MONTH,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        """Forget the session in this browser."""
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response

    def _form(self, target: str, message: str = "", status: int = 200) -> Response:
        return self._pages.page("web/sign_in.html.j2", {"next": target, "message": message}, status=status)

    def _wait(self, request: Request) -> int:
        """Count a wrong key; return how many seconds the client must wait, 0 if it may try again."""
        client = client_of(request)
        wait = self._guesses.wait(client)
        if not wait:
            self._guesses.count_failure(client)
        return wait


class Gate:
    """Refuses requests without a key, if keys are needed, and requests above the rate limit."""

    def __init__(
        self, app: ASGIApp, sign_in: SignIn, rate: int | None, origins: Collection[str], max_body: int
    ) -> None:
        self._app, self._sign_in, self._max_body = app, sign_in, max_body
        self._rate = RequestLimiter(rate) if rate else None
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] == "http" and (refusal := self._refuse(Request(scope))) is not None:
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        path = request.scope["path"]  # not that of `request.url`, which begins with what the Host header says
        if request.method not in _READING and self._foreign(request):
            return error_response(request, 403, "HTTPError", "a page of another site may not do this")
        if path in _OPEN or path.startswith(_STATIC):
            return None
        caller = self._sign_in.caller(request) if self._sign_in.keys else client_of(request)
        if caller is None:
            return self._sign_in.refuse(request)
        if self._rate is not None and (wait := self._rate.wait(caller)):
            return _too_many(request, wait, "requests")
        length = request.headers.get("content-length", "")
        is_small = path.startswith("/v1/") and not path.startswith(_FILES)
        if is_small and length.isdecimal() and int(length[:20]) > self._max_body:
            return error_response(request, 413, "UsageError", f"the request has more than {self._max_body:,} bytes")
        return None

    def _foreign(self, request: Request) -> bool:
        """Whether a page of another site sent the request. Browsers say so; other programs send no Origin."""
        origin = request.headers.get("origin")
        if origin is None or origin in self._origins or "*" in self._origins:
            return False
        return origin.partition("://")[2].lower() != request.headers.get("host", "").lower()


def _too_many(request: Request, wait: int, items: str) -> Response:
    message = f"too many {items}; try again in {wait} seconds"
    return error_response(request, 429, "BusyError", message, {"Retry-After": str(wait)})


def _local(path: str) -> str:
    """Return a path of this server: a link to the sign-in page must not lead to another site."""
    fine = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if fine and len(path) < 2_000 else "/"
