"""Studies in which people judge cited answers.

    from rag.annotate import create_study, open_study

    study = create_study("study", answers="answers.jsonl")
    token = study.invite("ada")

Needs the packages of `pip install "attributed-rag[annotate]"`; each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag.annotate.create import create_study, open_study
    from rag.annotate.items import Item, items_of, read_items
    from rag.annotate.settings import Settings
    from rag.annotate.study import Study

_WHERE = {
    "create_study": "rag.annotate.create",
    "open_study": "rag.annotate.create",
    "Item": "rag.annotate.items",
    "items_of": "rag.annotate.items",
    "read_items": "rag.annotate.items",
    "Settings": "rag.annotate.settings",
    "Study": "rag.annotate.study",
}

__all__ = ["Item", "Settings", "Study", "create_study", "items_of", "open_study", "read_items"]


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'rag.annotate' has no attribute {name!r}")
