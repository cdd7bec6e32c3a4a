"""`rag serve`: one process that answers questions over indexes, for people (pages) and for programs (APIs).

    from rag.serve import serve_indexes

    serve_indexes({"handbook": rag.open_index()})

`Service` is the core without any web, `create_app` puts HTTP around it. Needs the packages of
`pip install "attributed-rag[serve]"`; each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag.serve.app import create_app, serve_indexes
    from rag.serve.service import Asked, Limits, Service

_WHERE = {
    "Asked": "rag.serve.service",
    "Limits": "rag.serve.service",
    "Service": "rag.serve.service",
    "create_app": "rag.serve.app",
    "serve_indexes": "rag.serve.app",
}

__all__ = ["Asked", "Limits", "Service", "create_app", "serve_indexes"]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'rag.serve' has no attribute {name!r}")
    try:
        return getattr(import_module(_WHERE[name]), name)
    except ModuleNotFoundError as error:
        from rag.errors import missing_extra

        raise missing_extra("rag serve", "serve") from error
