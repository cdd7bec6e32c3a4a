"""`autoais` as a scorer where people already evaluate: inspect_ai, DeepEval, ragas, promptfoo and TREC AutoJudge.

Each module needs the package that it is named after, and only that module imports it. All of them score one answer with
`SampleScorer`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from autoais.api import score
from autoais.base.answers import CitedAnswer
from autoais.base.errors import UsageError, UserError, check_type
from autoais.base.types import NOT_APPLICABLE, Judge, Passage
from autoais.formats.contexts import context_answer
from autoais.judges import DEFAULT, open_judge

Uncited = Literal["error", "zero", "contexts"]
"""What an answer without a citation is worth: an error, a score of 0, or a judgement against all contexts."""

_FAMILIES = {"citation": "alce", "hagrid": "hagrid", "liu": "liu", "trec": "trec"}
METRICS = (
    "autoais", "sentences", "citation_recall", "citation_precision", "citation_f1", "hagrid", "hagrid_sentences",
    "liu_recall", "liu_precision", "liu_f1", "trec_recall", "trec_precision",
)  # fmt: skip
"""Metrics of one answer that need no reference; `autoais.metrics.scoring.Summary` defines them."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The score of an answer, 0 to 1, and a line per sentence: what it cites and whether that supports it."""

    score: float
    reason: str


class SampleScorer:
    """Scores one answer at a time: how far the contexts that it cites support it.

    `judge` is a name (`autoais.open_judge`) or an open judge. `metric` is one of `METRICS`; `autoais` is 1 if every
    sentence is attributable, else 0, and `sentences` is the share of attributable sentences. Markers in an answer count
    from 1: `[1]` is the first context. Raises `UserError` for an unknown judge, metric or `uncited`.
    """

    def __init__(self, judge: str | Judge = DEFAULT, metric: str = "autoais", uncited: Uncited = "error") -> None:
        check_type("judge", judge, "a name such as 'minilm' or an open judge", str, Judge)
        if metric not in METRICS:
            raise UserError(f"no metric of one answer called {metric!r}; there are: {', '.join(METRICS)}")
        if uncited not in get_args(Uncited):
            raise UserError(f"uncited should be one of {', '.join(get_args(Uncited))}, found {uncited!r}")
        self.judge = open_judge(judge) if isinstance(judge, str) else judge
        self.metric, self.uncited = metric, uncited

    def __call__(self, question: str, output: str | None, contexts: Sequence[object] | None) -> Scored:
        """Score an answer.

        `contexts` are texts, `autoais.Passage`s, or dicts with `text` and perhaps `id` and `title`. Raises `UserError`
        for missing contexts (an empty list scores 0 if `uncited` is zero), a value of another type, a judge that
        decides nothing, and, unless `uncited` says otherwise, an answer that is empty or cites nothing.
        """
        check_type("the question", question, "a string", str)
        check_type("the answer", output, "a string", str, type(None))
        passages = {} if contexts is None else _passages(contexts)
        if contexts is None or (not passages and self.uncited != "zero"):
            raise UserError("the sample has no contexts; give the passages that the answer cites, [1] first")
        answer = context_answer("sample", question, output, passages)
        if not answer.sentences or answer.whole_context or not _cites(answer):
            problem = "cites nothing" if answer.sentences else "is empty"
            if self.uncited == "error":
                raise UserError(
                    f"the answer {problem}: {(output or '')[:60]!r}; markers such as [1] are citations; "
                    f"uncited='zero' scores such answers 0, uncited='contexts' judges them against all contexts"
                )
            if self.uncited == "zero" or not answer.sentences:
                return Scored(0.0, f"the answer {problem}")
        family = _FAMILIES.get(self.metric.partition("_")[0], "none")
        # Without its output, the answer is not judged a second time as ALCE's script parses it.
        report = score([replace(answer, output=None)], judge=self.judge, metrics=family)
        metric = report.metrics[self.metric]
        if metric.value is None:
            raise UserError(f"{self.metric} has no value: {metric.reason}")
        return Scored(metric.value, explain(answer, report.judgements))


def explain(answer: CitedAnswer, judgements: Sequence[Mapping[str, Any]]) -> str:
    """Return a line per sentence of an answer that names the sentence, its passages and the words that support it."""
    return "\n".join(_line(answer, row) for row in judgements if row["verdict"] != NOT_APPLICABLE)


def _line(answer: CitedAnswer, row: Mapping[str, Any]) -> str:
    if not row["cites"]:
        return f"not supported: {row['text']!r} ({row['reason'] or 'nothing was cited'})"
    numbers = {key: number for number, key in enumerate(answer.passages, 1)}
    citations = ", ".join(
        f"[{numbers[key]}]" + ("" if key == _key(numbers[key]) else f" {key}") for key in row["cites"]
    )
    verdict = {"attributable": "supported", "undecided": "undecided"}.get(
        row["verdict"], "partly supported" if row["verdict"].startswith("partially") else "not supported"
    )
    quotes = [answer.passages[span["passage"]].evidence[span["start"] : span["end"]] for span in row["evidence"]]
    return f"{verdict} by {citations}: {row['text']!r}" + (
        f"; the passage says {quotes[0]!r}" if quotes else f" ({row['reason']})" if row["reason"] else ""
    )


def _cites(answer: CitedAnswer) -> bool:
    return bool(answer.unresolved or any(sentence.cites for sentence in answer.sentences))


def _key(number: int) -> str:
    return f"doc {number}"


def _passages(contexts: object) -> dict[str, Passage]:
    if isinstance(contexts, str | Mapping):
        raise UsageError(f"contexts should be a list of texts, found one {type(contexts).__name__}; put it in a list")
    check_type("contexts", contexts, "a list of texts", Sequence)
    passages: dict[str, Passage] = {}
    for number, context in enumerate(contexts, 1):  # type: ignore[arg-type, var-annotated]
        passage = _passage(context, number)
        if passage.id in passages:
            raise UserError(f"context {number} has the id {passage.id!r} of another context")
        passages[passage.id] = passage
    return passages


def _passage(context: object, number: int) -> Passage:
    if isinstance(context, Passage):
        return context
    row = {"text": context} if isinstance(context, str) else context
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str):
        expectation = "a text, a Passage or a dict with 'text'"
        raise UsageError(f"context {number} should be {expectation}, found {type(context).__name__}")
    context_id = row.get("id")
    return Passage(
        _key(number) if context_id in (None, "") else str(context_id), str(row.get("title") or ""), row["text"]
    )
