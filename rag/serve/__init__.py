"""`rag serve`: one process that answers questions over indexes, for people (pages) and for programs (APIs).

    from rag.serve import serve_indexes

    serve_indexes({"handbook": rag.open_index()})

`Service` is the core without any web, `create_app` puts HTTP around it. Needs the packages of
the extra `serve`; each name is imported on first use.
"""

from typing import TYPE_CHECKING

from autoais.base.exports import on_first_use

if TYPE_CHECKING:
    from rag.serve.app import create_app, serve_indexes
    from rag.serve.service import Limits, Reply, Service

_EXPORTS = {
    "rag.serve.app": "create_app serve_indexes",
    "rag.serve.service": "Limits Reply Service",
}

__all__ = ["Limits", "Reply", "Service", "create_app", "serve_indexes"]

_get = on_first_use(__name__, _EXPORTS)


def __getattr__(name: str) -> object:
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        from rag.base.errors import missing_extra

        raise missing_extra("rag serve", "serve") from error
