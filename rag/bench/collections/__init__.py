"""Collections of cited answers for people to judge, as HAGRID is (Kamalloo et al. 2023).

    from rag.bench.collections import build_collection, report_collection

    built = build_collection("COLLECTION", "questions.jsonl", systems=["reader"])
    built.manifest["statistics"]["all"]
    report_collection("COLLECTION")

Each name is imported on first use.
"""

from typing import TYPE_CHECKING

from autoais.base.exports import on_first_use

if TYPE_CHECKING:
    from rag.bench.collections.build import Plan, build_collection
    from rag.bench.collections.folder import Collection, open_collection, pack_collection
    from rag.bench.collections.importing import import_collection
    from rag.bench.collections.report import CollectionReport, report_collection

_MODULES = {
    "rag.bench.collections.build": "Plan build_collection",
    "rag.bench.collections.folder": "Collection open_collection pack_collection",
    "rag.bench.collections.importing": "import_collection",
    "rag.bench.collections.report": "CollectionReport report_collection",
}

__all__ = [
    "Collection",
    "CollectionReport",
    "Plan",
    "build_collection",
    "import_collection",
    "open_collection",
    "pack_collection",
    "report_collection",
]

if not TYPE_CHECKING:  # so that type checkers see names that are not there
    __getattr__ = on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
