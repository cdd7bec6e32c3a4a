"""The web application of a study: `create_app(open_study("study"))`.

Annotators sign in with a personal link and see one question at a time. A hidden source is not sent to the browser.
"""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from rag.annotate.admin import AdminPages
from rag.annotate.crowd_pages import CrowdPages
from rag.annotate.past_pages import PastPages
from rag.annotate.site import Site
from rag.annotate.study import Study
from rag.annotate.work import WorkPages
from rag.base.errors import LinkError, PressError, StudyError
from rag.web.security import list_hosts, middleware

_MAX_BODY = 1 << 18


def create_app(study: Study, base_url: str | None = None) -> Starlette:
    """Return the application of a study.

    `base_url` is the public address, such as `https://study.example.org`: links begin with it, requests to its host are
    accepted, and with https the cookie is sent over https only. Raises `UserError` for an address of another form.
    """
    site = Site(study, base_url)
    crowd = CrowdPages(site)
    work, past, admin = WorkPages(site, crowd), PastPages(site), AdminPages(site)
    return Starlette(
        routes=[
            Route("/", work.work),
            Route("/in/{token}", site.sign_in),
            Route("/join/{key}", crowd.join),
            Route("/consent", crowd.accept, methods=["POST"]),
            Route("/about-you", crowd.answer, methods=["POST"]),
            Route("/out", site.sign_out, methods=["POST"]),
            Route("/press", work.press, methods=["POST"]),
            Route("/flag", work.flag, methods=["POST"]),
            Route("/undo", work.undo, methods=["POST"]),
            Route("/past", past.items),
            Route("/past/{item}", past.question),
            Route("/revise", past.revise, methods=["POST"]),
            Route("/unflag", past.unflag, methods=["POST"]),
            Route("/comment", past.comment, methods=["POST"]),
            Route("/guidelines", site.guidelines),
            Route("/healthz", site.health),
            Route("/static/{name:path}", site.pages.static),
            Route("/admin", admin.progress),
            Route("/admin/invite", admin.invite, methods=["POST"]),
            Route("/admin/revoke", admin.revoke, methods=["POST"]),
            Route("/admin/block", admin.block, methods=["POST"]),
            Route("/admin/unblock", admin.unblock, methods=["POST"]),
            Route("/admin/verdicts", admin.verdicts),
            Route("/admin/item", admin.item),
            Route("/admin/audit", admin.audit),
            Route("/admin/audit", admin.record_audit, methods=["POST"]),
            Route("/admin/ties", admin.ties),
            Route("/admin/ties", admin.adjudicate, methods=["POST"]),
            Route("/admin/export", admin.export, methods=["POST"]),
        ],
        middleware=middleware(list_hosts(base_url), site.on_other_host, max_body=_MAX_BODY),
        exception_handlers={
            HTTPException: site.on_http_error,
            LinkError: site.on_link_error,
            PressError: work.on_press_error,
            StudyError: site.on_study_error,
            Exception: site.on_error,
        },
    )
