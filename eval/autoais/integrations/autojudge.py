"""TREC AutoJudge (package `autojudge-base`): our judges on its leaderboards, and its reports as our answers.

Shapes: trec-auto-judge/auto-judge-base, `LeaderboardJudgeProtocol`, `report.Report`, `leaderboard.Leaderboard`. A
workflow names the judge: `judge_class: autoais.integrations.autojudge.CitationJudge`. Its qrels are files that
`autoais.evaluate_run` reads; runs of TREC RAG are read and written by `autoais convert`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autojudge_base import Leaderboard, LeaderboardBuilder, LeaderboardSpec, MeasureSpec, Report

import autoais
from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.types import Citation, CitedSentence, Judge, Passage, Unresolved
from autoais.formats.base import Notes
from autoais.formats.convert import join_passages, missing_texts
from autoais.judges import DEFAULT

MEASURES = {
    "autoais": "Every sentence is attributable to the passages that it cites (0 or 1).",
    "citation_recall": "ALCE's citation recall, normalised.",
    "citation_precision": "ALCE's citation precision, normalised.",
    "trec_recall_averaged": "TREC RAG's weighted recall, of each sentence's first citation.",
    "trec_precision_averaged": "TREC RAG's weighted precision, of each sentence's first citation.",
}
"""The measures of a leaderboard; their means over topics are the values of `autoais.score`."""


_RUNNERS = {"outdir", "filebase"}  # settings that AutoJudge's runner adds by itself


class CitationJudge:
    """Judges reports by how far the documents that they cite support them (`LeaderboardJudgeProtocol`)."""

    def judge(
        self,
        rag_responses: Iterable[Report],
        rag_topics: Sequence[Any],
        llm_config: object,
        nugget_banks: object = None,
        qrels: object = None,
        corpus: str | None = None,
        judge: str | Judge = DEFAULT,
        **kwargs: object,
    ) -> Leaderboard:
        """Return a leaderboard with `MEASURES`; a topic that a run does not answer scores 0.

        The texts of cited documents come from the reports, else from `corpus`, a file in a corpus format. `judge` is a
        setting of the workflow; the language model of `llm_config` is not asked (`judge="llm:..."` asks one), nor are
        nuggets and qrels used. Raises `UserError` for cited documents without a text and for settings that it does not
        know.
        """
        if unknown := sorted(kwargs.keys() - _RUNNERS):
            raise UserError(f"the citation judge has no setting {unknown[0]!r}; there is: judge")
        topics = {str(topic.request_id): topic.title for topic in rag_topics}
        judge_instance = autoais.open_judge(judge) if isinstance(judge, str) else judge
        runs: dict[str, list[CitedAnswer]] = {}
        for report in rag_responses:
            answer = from_report(report, topics)
            if answer.id in topics:
                runs.setdefault(report.metadata.run_id, []).append(answer)
        reports = {run: autoais.score(_with_texts(run, answers, corpus), judge=judge_instance, metrics=("alce", "trec"))
                 for run, answers in runs.items()}  # fmt: skip
        return leaderboard(reports, list(topics))


def from_report(report: Report, topics: Mapping[str, str] | None = None) -> CitedAnswer:
    """Return a report as an answer; `topics` holds the texts of the topics by id, else the report's narrative is taken.

    A citation of a document that is not among the references of a report that cites by number is unresolved.
    """
    documents = report.documents or {}
    keys_of_sentences = [sentence.citations for sentence in report.get_sentences_with_citations()]
    order = dict.fromkeys([*(report.references or ()), *(key for keys in keys_of_sentences for key in keys or ())])
    texts = {key: documents[key] for key in order if key in documents}
    bad = [
        Unresolved(str(number), "out-of-range", position)
        for position, sentence in enumerate(report.responses)
        for number in sentence.citations or ()
        if isinstance(number, int) and not 0 <= number < len(report.references or ())
    ]
    key = str(report.metadata.topic_id)
    return CitedAnswer(
        id=key,
        question=(topics or {}).get(key) or report.metadata.narrative or "",
        sentences=tuple(
            CitedSentence(
                sentence.text, tuple(Citation(key_of_citation) for key_of_citation in dict.fromkeys(keys or ()))
            )
            for sentence, keys in zip(report.responses, keys_of_sentences, strict=True)
        ),
        passages={
            document: Passage(document, texts[document].title or "", texts[document].text)
            if document in texts
            else Passage(document)
            for document in order
        },
        ranking=tuple(order),
        unresolved_markers=tuple(bad),
        extra={"system": report.metadata.run_id},
    )


def _with_texts(run: str, answers: Sequence[CitedAnswer], corpus: str | None) -> list[CitedAnswer]:
    cited_keys = {key for answer in answers for sentence in answer.sentences for key in sentence.cites}
    if missing_texts(answers) & cited_keys:
        if corpus is None:
            missing = min(missing_texts(answers) & cited_keys)
            raise UserError(
                f"run {run!r} cites {missing!r}, whose text it does not hold; give a corpus file (--corpus)"
            )
        return list(join_passages(lambda: answers, [Path(corpus)], Notes()))
    return list(answers)


def leaderboard(reports: Mapping[str, autoais.Report], topics: Sequence[str] | None = None) -> Leaderboard:
    """Return the leaderboard of reports by run, for `Leaderboard.write`; `topics` missing from a run score 0.

    The reports are of `autoais.score` with `metrics=("alce", "trec")`; an undecided sentence counts as not
    attributable.
    """
    measures = tuple(MeasureSpec(name, description=description) for name, description in MEASURES.items())
    builder = LeaderboardBuilder(LeaderboardSpec(measures))
    for run, report in reports.items():
        for row in report.judgements:
            if "scores" in row:
                values = {name: _value(row["scores"], name) for name in MEASURES}
                builder.add(run_id=run, topic_id=row["id"], values=values)
    return builder.build(expected_topic_ids=topics)


def _value(scores: Mapping[str, Any], name: str) -> float:
    if name not in scores:
        raise UserError(f"the report has no {name}; score with metrics=('alce', 'trec')")
    total, n = scores[name]
    return total / n if n else 0.0


def values(board: Leaderboard, measure: str) -> dict[str, float]:
    """Return the value over all topics by run; raises `UserError` for a measure that the leaderboard does not have."""
    if measure not in board.measures:
        raise UserError(f"the leaderboard has no measure {measure!r}; there are: {', '.join(board.measures)}")
    rows = (entry for entry in board.entries if entry.topic_id == board.all_topic_id)
    return {entry.run_id: float(entry.values[measure]) for entry in rows if measure in entry.values}
