"""Score cited answers of any system. Does not depend on `rag`.

    import autoais

    report = autoais.score("answers.jsonl")
    print(report.metrics["autoais"].value)

Importing `autoais` loads no submodule; each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoais.answers import CitedAnswer
    from autoais.api import (
        Conversion,
        Metric,
        Report,
        RunReport,
        agreement,
        ais_report,
        calibrate_judge,
        compare,
        convert,
        convert_ratings,
        evaluate_judge,
        evaluate_run,
        read_answers,
        read_questions,
        score,
    )
    from autoais.errors import CitationError, FormatError, UsageError, UserError
    from autoais.judges import open_judge
    from autoais.types import (
        Attribution,
        Citation,
        CitedSentence,
        Judge,
        Judgement,
        Passage,
        Question,
        Span,
        Support,
        Unresolved,
        Verdict,
    )

    __version__: str

_WHERE = {
    "autoais.answers": ["CitedAnswer"],
    "autoais.api": [
        "Conversion",
        "Metric",
        "Report",
        "RunReport",
        "agreement",
        "ais_report",
        "calibrate_judge",
        "compare",
        "convert",
        "convert_ratings",
        "evaluate_judge",
        "evaluate_run",
        "read_answers",
        "read_questions",
        "score",
    ],
    "autoais.errors": ["CitationError", "FormatError", "UsageError", "UserError"],
    "autoais.judges": ["open_judge"],
    "autoais.types": [
        "Attribution",
        "Citation",
        "CitedSentence",
        "Judge",
        "Judgement",
        "Passage",
        "Question",
        "Span",
        "Support",
        "Unresolved",
        "Verdict",
    ],
}
_MODULE = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "Attribution",
    "Citation",
    "CitationError",
    "CitedAnswer",
    "CitedSentence",
    "Conversion",
    "FormatError",
    "Judge",
    "Judgement",
    "Metric",
    "Passage",
    "Question",
    "Report",
    "RunReport",
    "Span",
    "Support",
    "Unresolved",
    "UsageError",
    "UserError",
    "Verdict",
    "__version__",
    "agreement",
    "ais_report",
    "calibrate_judge",
    "compare",
    "convert",
    "convert_ratings",
    "evaluate_judge",
    "evaluate_run",
    "open_judge",
    "read_answers",
    "read_questions",
    "score",
]


if not TYPE_CHECKING:  # so that type checkers see names that are not there

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("attributed-rag")
        if name in _MODULE:
            return getattr(import_module(_MODULE[name]), name)
        raise AttributeError(f"module 'autoais' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
