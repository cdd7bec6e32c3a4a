"""Score cited answers of any system. Does not depend on `rag`.

    import autoais

    report = autoais.score("answers.jsonl")
    print(report.metrics["autoais"].value)

Importing `autoais` loads nothing else; each name is imported on first use.
"""

from typing import TYPE_CHECKING

from autoais.base.exports import on_first_use

if TYPE_CHECKING:
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
        evaluate_spans,
        read_answers,
        read_questions,
        score,
    )
    from autoais.assessors.assessments import (
        Assessment,
        assign_nuggets,
        create_nuggets,
        label_relevance,
        score_nuggets,
    )
    from autoais.assessors.assessor import Assessor
    from autoais.assessors.candidates import Candidates
    from autoais.base.answers import CitedAnswer
    from autoais.base.errors import CitationError, FormatError, UsageError, UserError
    from autoais.base.types import (
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
    from autoais.judges import open_judge
    from autoais.metrics.quotes import QuoteCheck, QuoteStatus, check_quotes

    __version__: str

_WHERE = {
    "autoais.base.answers": "CitedAnswer",
    "autoais.api": "Conversion Metric Report RunReport agreement ais_report calibrate_judge compare convert "
    "convert_ratings evaluate_judge evaluate_run evaluate_spans read_answers read_questions score",
    "autoais.assessors.assessments": "Assessment assign_nuggets create_nuggets label_relevance score_nuggets",
    "autoais.assessors.assessor": "Assessor",
    "autoais.assessors.candidates": "Candidates",
    "autoais.base.errors": "CitationError FormatError UsageError UserError",
    "autoais.judges": "open_judge",
    "autoais.metrics.quotes": "QuoteCheck QuoteStatus check_quotes",
    "autoais.base.types": "Attribution Citation CitedSentence Judge Judgement Passage Question Span Support Unresolved "
    "Verdict",
}

__all__ = [
    "Assessment",
    "Assessor",
    "Attribution",
    "Candidates",
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
    "QuoteCheck",
    "QuoteStatus",
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
    "assign_nuggets",
    "calibrate_judge",
    "check_quotes",
    "compare",
    "convert",
    "convert_ratings",
    "create_nuggets",
    "evaluate_judge",
    "evaluate_run",
    "evaluate_spans",
    "label_relevance",
    "open_judge",
    "read_answers",
    "read_questions",
    "score",
    "score_nuggets",
]

if not TYPE_CHECKING:  # so that type checkers see names that are not there
    __getattr__ = on_first_use(__name__, _WHERE)


def __dir__() -> list[str]:
    return __all__
