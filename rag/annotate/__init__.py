"""Studies in which people judge cited answers.

    from rag.annotate import create_study, open_study

    study = create_study("study", answers="answers.jsonl")
    token = study.invite("ada")

Needs the packages of the extra `annotate`; each name is imported on first use.
"""

from typing import TYPE_CHECKING

from autoais.base.exports import on_first_use

if TYPE_CHECKING:
    from rag.annotate.add import add_items
    from rag.annotate.create import create_study, open_study
    from rag.annotate.items import Item, items_of, read_items
    from rag.annotate.settings import Settings
    from rag.annotate.study import Study
    from rag.annotate.types import Entry, Evidence

_EXPORTS = {
    "rag.annotate.add": "add_items",
    "rag.annotate.create": "create_study open_study",
    "rag.annotate.items": "Item items_of read_items",
    "rag.annotate.settings": "Settings",
    "rag.annotate.study": "Study",
    "rag.annotate.types": "Entry Evidence",
}

__all__ = [
    "Entry",
    "Evidence",
    "Item",
    "Settings",
    "Study",
    "add_items",
    "create_study",
    "items_of",
    "open_study",
    "read_items",
]

if not TYPE_CHECKING:  # else type checkers would accept any name
    __getattr__ = on_first_use(__name__, _EXPORTS)
