"""TREC AutoJudge (package `autojudge-base`): our judges on its leaderboards, and its reports as our answers.

Shapes: trec-auto-judge/auto-judge-base, `LeaderboardJudgeProtocol`, `NuggetCreatorProtocol`, `QrelsCreatorProtocol`,
`report.Report`, `leaderboard.Leaderboard`. A workflow names the judge:
`judge_class: autoais.integrations.autojudge.CitationJudge`, or `NuggetJudge`, which also makes nugget banks and qrels.
Its qrels are files that `autoais.evaluate_run` reads; runs of TREC RAG are read and written by `autoais convert`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autojudge_base import Leaderboard, LeaderboardBuilder, LeaderboardSpec, MeasureSpec, QrelRow, Qrels, Report
from autojudge_base.nugget_data import NuggetizerNuggetBank, NuggetizerNuggetBanks

import autoais
from autoais.assessors.assessments import Assessment
from autoais.assessors.assessor import Assessor
from autoais.assessors.candidates import Candidates, of_answer
from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.models.chat import ChatClient
from autoais.base.terminal import note
from autoais.base.types import Citation, CitedSentence, Judge, Passage, Unresolved
from autoais.formats.base import Notes
from autoais.formats.convert import join_passages, missing_texts
from autoais.formats.nuggetizer import NuggetBank, bank_of
from autoais.judges import DEFAULT
from autoais.metrics.nuggets import NUGGET_SCORES

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
        topics = _topics(rag_topics)
        judge_instance = autoais.open_judge(judge) if isinstance(judge, str) else judge
        reports = {run: autoais.score(_with_texts(run, answers, corpus), judge=judge_instance, metrics=("alce", "trec"))
                 for run, answers in _by_run(rag_responses, topics).items()}  # fmt: skip
        return leaderboard(reports, list(topics))


class NuggetJudge:
    """Makes nugget banks and qrels by a language model, and judges reports by their nuggets.

    It follows `NuggetCreatorProtocol`, `QrelsCreatorProtocol` and `LeaderboardJudgeProtocol`. The passages of a topic
    are the documents of all reports on it, by the best rank that a report gives them; their texts come from the
    reports, else from `corpus`, a file in a corpus format. The model is that of `llm_config`, with its `base_url` and
    `api_key`, if it has them. Settings of all three methods: `cache`, a file that keeps the model's replies. What
    failed is noted on standard error. Each method raises `UserError` for settings that it does not know, and for cited
    documents without a text.
    """

    nugget_banks_type = NuggetizerNuggetBanks

    def create_nuggets(
        self,
        rag_responses: Iterable[Report] | None,
        rag_topics: Sequence[Any],
        llm_config: object,
        nugget_banks: NuggetizerNuggetBanks | None = None,
        corpus: str | None = None,
        *,
        depth: int | None = None,
        max_nuggets: int = 30,
        cache: str | None = None,
        **kwargs: object,
    ) -> NuggetizerNuggetBanks:
        """Create the nuggets of all topics from the passages (`autoais.create_nuggets`).

        `nugget_banks` are nuggets to begin with; a topic without a passage keeps its own.
        """
        _check_settings(kwargs, "depth", "max_nuggets", "cache")
        pools = _pools(rag_responses, _topics(rag_topics), corpus)
        start = {} if nugget_banks is None else _banks_of(nugget_banks)
        result = autoais.create_nuggets(
            pools, _open_model(llm_config), depth=depth, max_nuggets=max_nuggets, start=start, cache=cache
        )
        _note_failures(result)
        return NuggetizerNuggetBanks.from_banks_list(
            [NuggetizerNuggetBank.model_validate({"full_query": None, **row}) for row in result.rows]
        )

    def create_qrels(
        self,
        rag_responses: Iterable[Report] | None,
        rag_topics: Sequence[Any],
        llm_config: object,
        nugget_banks: object = None,
        corpus: str | None = None,
        *,
        depth: int | None = None,
        cache: str | None = None,
        **kwargs: object,
    ) -> Qrels:
        """Grade the passages of all topics from 0 to 3 (`autoais.label_relevance`); nuggets are not used.

        A grade that failed is in no row.
        """
        _check_settings(kwargs, "depth", "cache")
        pools = _pools(rag_responses, _topics(rag_topics), corpus)
        result = autoais.label_relevance(pools, _open_model(llm_config), depth=depth, cache=cache)
        _note_failures(result)
        rows = [
            QrelRow(topic_id=topic, doc_id=key, grade=grade)
            for topic, grades in result.qrels.items()
            for key, grade in grades.items()
        ]
        return Qrels(rows=rows)

    def judge(
        self,
        rag_responses: Iterable[Report],
        rag_topics: Sequence[Any],
        llm_config: object,
        nugget_banks: NuggetizerNuggetBanks | None = None,
        qrels: object = None,
        corpus: str | None = None,
        *,
        cache: str | None = None,
        **kwargs: object,
    ) -> Leaderboard:
        """Return a leaderboard with nuggetizer's scores (`autoais.assign_nuggets`); qrels and corpus are not used.

        A topic that a run does not answer scores 0. Raises `UserError` without nuggets.
        """
        _check_settings(kwargs, "cache")
        if nugget_banks is None:
            raise UserError("the nugget judge needs nuggets: set create_nuggets, or name a file of nuggets")
        topics = _topics(rag_topics)
        answers = [answer for run in _by_run(rag_responses, topics).values() for answer in run]
        banks = [bank for bank in _banks_of(nugget_banks).values() if bank.topic in topics]
        result = autoais.assign_nuggets(answers, banks, _open_model(llm_config), cache=cache)
        _note_failures(result)
        builder = LeaderboardBuilder(LeaderboardSpec(tuple(MeasureSpec(name) for name in NUGGET_SCORES)))
        for run in autoais.score_nuggets(result)["runs"]:
            for topic, scores in run["per_topic"].items():
                builder.add(run_id=run["run"], topic_id=topic, values=scores)
        return builder.build(expected_topic_ids=list(topics))


def _topics(rag_topics: Sequence[Any]) -> dict[str, str]:
    return {str(topic.request_id): topic.title for topic in rag_topics}


def _by_run(rag_responses: Iterable[Report], topics: Mapping[str, str]) -> dict[str, list[CitedAnswer]]:
    """Return the reports on these topics as answers, by run."""
    runs: dict[str, list[CitedAnswer]] = {}
    for report in rag_responses:
        answer = from_report(report, topics)
        if answer.id in topics:
            runs.setdefault(report.metadata.run_id, []).append(answer)
    return runs


def _pools(rag_responses: Iterable[Report] | None, topics: Mapping[str, str], corpus: str | None) -> list[Candidates]:
    """Return each topic with the documents of all reports on it, by their best rank in a report, then by id."""
    if rag_responses is None:
        raise UserError("passages come from the reports; set nugget_depends_on_responses")
    ranks: dict[str, dict[str, int]] = {topic: {} for topic in topics}
    passages: dict[str, Passage] = {}
    for run, answers in _by_run(rag_responses, topics).items():
        for answer in _with_texts(run, answers, corpus):
            for rank, passage in enumerate(of_answer(answer).passages):
                if passage.text.strip():
                    passages.setdefault(passage.id, passage)
                    ranks[answer.id][passage.id] = min(rank, ranks[answer.id].get(passage.id, rank))
    return [
        Candidates(topic, query, tuple(passages[key] for key in sorted(ranks[topic], key=lambda k: (of_topic[k], k))))
        for topic, query in topics.items()
        for of_topic in [ranks[topic]]
    ]


def _banks_of(nugget_banks: object) -> dict[str, NuggetBank]:
    """Return nuggetizer's banks of AutoJudge as ours; raises `UserError` for those of another kind."""
    if not isinstance(nugget_banks, NuggetizerNuggetBanks):
        raise UserError(f"nuggets of the kind {type(nugget_banks).__name__}; these should be NuggetizerNuggetBanks")
    rows = (bank.model_dump(exclude_none=True) for bank in nugget_banks.banks.values())
    banks = (bank_of(row, f"topic {row['qid']!r:.60}") for row in rows)
    return {bank.topic: bank for bank in banks}


def _open_model(llm_config: object) -> Assessor:
    values = {name: getattr(llm_config, name, None) for name in ("model", "base_url", "api_key")}
    if not isinstance(values["model"], str):
        raise UserError("the configuration of the language model names no model")
    return Assessor(values["model"], client=ChatClient(values["base_url"], values["api_key"], timeout=120.0))


def _check_settings(settings: Mapping[str, object], *names: str) -> None:
    if unknown := sorted(settings.keys() - _RUNNERS):
        raise UserError(f"the nugget judge has no setting {unknown[0]!r}; there are: {', '.join(names)}")


def _note_failures(result: Assessment) -> None:
    for failure in result.record["failures"]:
        note(f"warning: {failure['id']}: {failure['reason']}")


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
