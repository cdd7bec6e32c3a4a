"""What all pages share: the service, the templates, and how errors are shown."""

from collections.abc import Awaitable, Callable

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rag.answer.attribution.check import LABELS, SentenceVerdict
from rag.base.errors import UserError
from rag.serve.http import error_parts, retry_header
from rag.serve.service import Service
from rag.serve.views import SIGNS
from rag.web.pages import Pages, sentence

_MEANINGS = {
    SentenceVerdict.SUPPORTED: "the cited sources say all of it",
    SentenceVerdict.NOT_ENOUGH: "the cited sources do not say all of it, or nothing is cited: it may still be true",
    SentenceVerdict.CONTRADICTED: "the cited sources, or else the nearest passage, say something else",
    SentenceVerdict.UNDECIDED: "the judge cannot tell whether the sources say it",
    SentenceVerdict.NO_CLAIM: "a question or an instruction, which needs no source",
}
_SESSIONS = {"rag-session", "__Host-rag-session"}  # cookies of `rag.serve.gate`


class Site:
    """What all pages share: the service, the templates, and how errors are shown."""

    def __init__(self, service: Service, *, documents: bool = False, originals: bool = False) -> None:
        self.service = service
        self.pages = Pages("rag.web", "rag.serve")
        self.pages.define(shows_originals=originals)
        self._tabs = [("/", "Ask"), ("/check", "Check"), ("/compare", "Compare")]
        if documents:
            self._tabs.append(("/documents", "Documents"))
        self._signs = [(kind.value, sign, LABELS[kind], _MEANINGS[kind]) for kind, sign in SIGNS.items()]

    def page(self, request: Request, template: str, tab: str, *, status: int = 200, **values: object) -> Response:
        """Return a page; `tab` is the name of its tab."""
        common = {
            "tabs": self._tabs,
            "here": tab,
            "signs": self._signs,
            "judge": self.service.judge_name,
            "signed_in": bool(request.cookies.keys() & _SESSIONS),
        }
        return self.pages.page(f"serve/{template}", common | values, status=status)

    def part(self, template: str, **values: object) -> Markup:
        """Return a part of a page."""
        return Markup(self.pages.render(f"serve/{template}", values))

    def with_error_pages(
        self, endpoint: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint with its errors shown as pages."""

        async def answer(request: Request) -> Response:
            try:
                return await endpoint(request)
            except UserError as error:
                status, _, message = error_parts(error)
                return self.pages.error(status, sentence(message), retry_header(status))
            except HTTPException as error:
                return self.pages.error(error.status_code, error.detail, error.headers)

        return answer
