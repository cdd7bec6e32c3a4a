"""Answers in which every sentence cites its source.

    import rag

    index = rag.build_index("docs/", to="docs.index")
    answer = rag.ask("What is citation precision?", index)
    print(answer)

Importing `rag` loads nothing else; each name is imported on first use.
"""

from typing import TYPE_CHECKING

from autoais.base.exports import on_first_use

if TYPE_CHECKING:
    from rag.answer.conversation import Conversation
    from rag.answer.from_markers import parse_answer
    from rag.answer.system import System
    from rag.answer.systems import SystemKind
    from rag.api import (
        SystemOptions,
        add_retriever,
        add_to_index,
        ask,
        attribute,
        build_index,
        build_shards,
        import_index,
        list_documents,
        locate,
        merge_indexes,
        open_index,
        open_retriever,
        open_system,
        plan_index,
        remove_from_index,
        search,
        update_index,
        verify_index,
        verify_quotes,
    )
    from rag.base.errors import (
        AuthenticationError,
        BusyError,
        CitationError,
        FormatError,
        IndexingError,
        ModelFailureError,
        NotFoundError,
        QuestionError,
        RagError,
        TimeLimitError,
        UsageError,
        UserError,
    )
    from rag.base.types import Answer, Citation, CitedSentence, Hit, Passage, Question, Turn, Unresolved
    from rag.index.index import Index
    from rag.index.listing import IndexedDocument
    from rag.index.originals import Original, OriginalPage
    from rag.index.rebuild import Changes
    from rag.retrieval import Retriever, RetrieverKind
    from rag.retrieval.planning import Plan

    __version__: str

_WHERE = {
    "rag.api": "SystemOptions add_retriever add_to_index ask attribute build_index build_shards import_index "
    "list_documents locate merge_indexes open_index open_retriever open_system plan_index remove_from_index search "
    "update_index verify_index verify_quotes",
    "rag.answer.conversation": "Conversation",
    "rag.base.errors": "AuthenticationError BusyError CitationError FormatError IndexingError ModelFailureError "
    "NotFoundError QuestionError RagError TimeLimitError UsageError UserError",
    "rag.index.index": "Index",
    "rag.index.listing": "IndexedDocument",
    "rag.index.originals": "Original OriginalPage",
    "rag.index.rebuild": "Changes",
    "rag.answer.from_markers": "parse_answer",
    "rag.retrieval.planning": "Plan",
    "rag.retrieval": "Retriever RetrieverKind",
    "rag.answer.system": "System",
    "rag.answer.systems": "SystemKind",
    "rag.base.types": "Answer Citation CitedSentence Hit Passage Question Turn Unresolved",
}

__all__ = [
    "Answer",
    "AuthenticationError",
    "BusyError",
    "Changes",
    "Citation",
    "CitationError",
    "CitedSentence",
    "Conversation",
    "FormatError",
    "Hit",
    "Index",
    "IndexedDocument",
    "IndexingError",
    "ModelFailureError",
    "NotFoundError",
    "Original",
    "OriginalPage",
    "Passage",
    "Plan",
    "Question",
    "QuestionError",
    "RagError",
    "Retriever",
    "RetrieverKind",
    "System",
    "SystemKind",
    "SystemOptions",
    "TimeLimitError",
    "Turn",
    "Unresolved",
    "UsageError",
    "UserError",
    "__version__",
    "add_retriever",
    "add_to_index",
    "ask",
    "attribute",
    "build_index",
    "build_shards",
    "import_index",
    "list_documents",
    "locate",
    "merge_indexes",
    "open_index",
    "open_retriever",
    "open_system",
    "parse_answer",
    "plan_index",
    "remove_from_index",
    "search",
    "update_index",
    "verify_index",
    "verify_quotes",
]

if not TYPE_CHECKING:  # so that type checkers see names that are not there
    __getattr__ = on_first_use(__name__, _WHERE)


def __dir__() -> list[str]:
    return __all__
