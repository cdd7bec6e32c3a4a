"""Scoring of cited answers: one pass, one judgement per sentence, every question of the benchmark counted."""

import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.base.answers import CitedAnswer
from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, round_floats, write_atomic
from autoais.base.markers.alce import open_splitter
from autoais.base.text.quotes import is_quoted
from autoais.base.types import NO_TEXT, Judge, Question, Support
from autoais.formats import Notes
from autoais.formats.attributed_qa import as_read_in_2023
from autoais.metrics import alce, hagrid, liu, trec
from autoais.metrics.alce_answers import AlceAnswers, check_mauve
from autoais.metrics.claims import all_yes
from autoais.metrics.human import HumanSummary
from autoais.metrics.intervals import number_of
from autoais.metrics.judged import JudgedAnswer, in_benchmark, judge_answers
from autoais.metrics.nuggets import find_nuggets
from autoais.metrics.quotes import QuoteCheck, QuoteStatus, check_quotes
from autoais.metrics.rates import Tally
from autoais.metrics.scores import CitationScores
from autoais.metrics.short_answers import exact_match, f1, has_answer

DEPTHS = (1, 5, 20, 100)
CITATION_METRICS = ("alce", "hagrid", "liu", "trec")  # they need judgements of single citations
DEFAULT_METRICS = ("alce", "hagrid")
_NEEDS = {"Success": "gold passages", "R": "gold passages", "answer_hit": "reference answers"}
_NO_CITATIONS = "no answer has citations of its own: they are judged against all their contexts"
_NO_SENTENCES = "no_sentences", "answers without sentences, not attributable (if meant: `abstained` in answers.jsonl)"
_NO_TEXT = "no_text", "cited passages without a text, not attributable (a corpus adds texts: --corpus FILE)"


def choose_metrics(names: str) -> tuple[str, ...]:
    """Return the citation metrics of a comma-separated list, `all` or `none`; raises `UserError` for other names."""
    if names in ("all", "none"):
        return CITATION_METRICS if names == "all" else ()
    metrics = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in metrics:
        if name not in CITATION_METRICS:
            raise UserError(f"no citation metrics called {name!r}; there are: {', '.join(CITATION_METRICS)}, all, none")
    return metrics


@dataclass(frozen=True, slots=True)
class Measures:
    """What is measured: citation metrics, and how they count.

    `as_2023` counts as Attributed QA's released script does: undecided is no in `autoais` and `sentences`, and `f1` of
    two texts that normalise to nothing is 0. `splitter` (`markers.alce.open_splitter`) is for ALCE's strict metrics,
    `mauve` the folder of GPT-2 large for its MAUVE. `alce_cot` is ALCE's `--cot` (`alce_answers.qampari`). `trec_all`
    counts all citations of a sentence in TREC's metrics, not only the first.
    """

    metrics: Collection[str] = DEFAULT_METRICS
    as_2023: bool = False
    splitter: str | None = None
    mauve: Path | None = None
    alce_cot: bool = False
    trec_all: bool = False


_DEFAULT = Measures()


class Summary:
    """All metrics over the benchmark's questions, as fractions; a metric without a value is null with a reason.

    - `autoais`: answers with every sentence attributable, of all questions. `sentences`: attributable sentences.
    - `citation_recall`, `citation_precision`, `citation_f1` (alce): ALCE's rules, normalised, means over questions; a
      question without an answer scores 0. With `_strict`: the values of ALCE's script, for answers whose output is
      known; it leaves out answers without sentences (`left_out`) and counts undecided as no (`undecided_as_no`), with
      no value if no claim with evidence was decided. `splitter` names what split the sentences: ALCE uses NLTK.
    - `str_em`, `str_hit`, `qampari_*`, `claims_nli`, `rougeLsum`, `mauve` (alce): `metrics.alce_answers`, for answers
      that come with ALCE's references.
    - `hagrid`, `hagrid_sentences`: every citation supports the sentence by itself. Sentences are those of the file:
      HAGRID's own, and those of `rag collect`, have uncited sentences joined to the next cited one.
    - `liu_*`, `liu_*_averaged`: pooled, and averaged over responses; sentences with the label
      `worthy: false` are left out, all others count as worth verifying.
    - `trec_precision`, `trec_recall`: the first citation of a sentence, or all with `trec_all`; full 1, partial 0.5,
      none 0. A marker that resolves to no passage comes after those that do. Pooled over all answers; `_averaged` is
      the mean over topics, as TREC summarises measures. `levels` counts all citations; binary judges never give partial
      unless told to.
    - `em`, `f1`: SQuAD's, on `short_answer`. `answer_recall`: a reference string occurs in the cited sentences.
    - `nugget_recall`: the share of a question's nuggets whose phrase the answer contains, mean over questions;
      `all_nuggets`: answers with all of them. With `_judged`: also nuggets that the judge finds supported. An undecided
      nugget is left out of `nugget_recall_judged` and a no in its `floor`; an answer without decided ones is undecided.
    - `Success@k`, `R@k` (ir_measures): gold passages in the first k; `answer_hit@k`: a reference in the first k texts.

    Citation metrics leave out answers without citations of their own, which are judged against all their contexts
    (`CitedAnswer.whole_context`); they are absent if no other answer cites anything. The report counts such answers as
    `without_citations`, if there are any.

    Every question counts, so a refusal counts as no. `refusals`, in the report where a question without an answer
    (`answerable` is false) was refused, counts those, and has `attributed_answers`: `autoais` over the answers given.

    - `verbatim_quotes`, only for answers with quotations in their sentences: those that a cited passage has word for
      word (`metrics.quotes`). The report counts each status (`quotations`).

    The report counts the sentences that a cited passage has word for word (`quoted`), and those of them that the judge
    finds not attributable: its errors, but where a passage says something else in other sentences.

    Intervals are over questions: answers to the same text are to one (`different_questions`, in the report where ids
    alone would count more, as in files of claims). Keeps a few numbers per question and no text.
    """

    def __init__(self, measures: Measures = _DEFAULT) -> None:
        self.measures = measures
        self.alce_answers = AlceAnswers(measures.splitter, measures.mauve, cot=measures.alce_cot)
        self.items = self.given = self.answered = self.unresolved = self.short_answers = self.with_references = 0
        self.not_applicable = 0  # sentences
        self.quoted = self.quoted_rejected = 0  # sentences that a cited passage has word for word
        self.quotes: list[QuoteCheck] = []  # of the last answer
        self.quotations: Counter[QuoteStatus] = Counter()
        self.verbatim_quotes = Tally("quotations")
        self.citing = self.whole_context = 0  # answers with citations of their own, and `CitedAnswer.whole_context`
        self.abstained = 0
        self.refused = self.refused_right = 0  # abstained, but not because a model failed; without an answer
        self.attributed = Tally("items")  # of the answers given
        self.cited = self.textless = 0  # claims that cite something, and those of them without any text to judge
        self.depth = 0  # of the longest list of passages
        self.alce, self.liu, self.trec = CitationScores(), CitationScores(), CitationScores()
        self.strict: alce.StrictScores | None = None
        self.trec_levels: Counter[str] = Counter()
        self.tallies: dict[str, Tally] = {}  # the other metrics, by name
        self._questions: set[int] = set()
        self._different: set[int] = set()  # questions with ids of their own may have the same text
        self._asked = 0  # number of the question of the last answer
        self._scores: dict[str, tuple[float, float]] = {}  # of the last answer

    def add(self, item: JudgedAnswer) -> dict[str, Any]:
        """Count one question of the benchmark, and return its scores, for `compare`.

        They are, by metric, the sum of the scores of its items (undecided as 0) and the number of items (`floor` is the
        ratio of their sums). `question` is the question's key (`JudgedAnswer.question_key`), `text` its text if the key
        is another, `passages` counts the passages that the answer lists, and `short_answer` says if it has one.
        """
        question, answer = item.question, item.answer
        self.items += 1
        self._questions.add(number_of(item.query))
        self.not_applicable += item.claims.count(None)
        self.cited += sum(bool(claim.claim.evidence) for claim in item.applicable_claims)
        self.textless += sum(
            bool(claim.claim.evidence) and claim.union.reason == NO_TEXT for claim in item.applicable_claims
        )
        self._asked = number_of(item.question_key)
        self._different.add(self._asked)
        self._scores = {}
        self._tally("autoais", [self._outcome(item.ais)])
        self._tally("sentences", [self._outcome(claim.union.verdict.ais) for claim in item.applicable_claims])
        self._count_quotes(item)
        self._check_quotes(item.answer)
        self._add_citations(item)
        ranking = answer.ranking if answer else ()
        if answer:
            self.given += 1
            self.answered += bool(answer.sentences)
            self.abstained += answer.abstained
            self._count_refusal(answer, question)
            if not answer.abstained:
                self.attributed.add([self._outcome(item.ais)], self._asked)
            self.unresolved += answer.unresolved
            self.short_answers += answer.short_answer is not None
            self.depth = max(self.depth, len(ranking))
        self._compare_with_references(item)
        metadata = {
            "question": item.question_key,
            **({} if item.text == item.question_key else {"text": item.text}),
            "passages": len(ranking),
            "short_answer": bool(answer and answer.short_answer is not None),
        }
        return metadata | {name: list(scores) for name, scores in self._scores.items()}

    def _compare_with_references(self, item: JudgedAnswer) -> None:
        """Compare an answer with what the benchmark expects: strings, nuggets and gold passages."""
        question, answer = item.question, item.answer
        ranking = answer.ranking if answer else ()
        if question.answers:
            self.with_references += 1
            short = (answer.short_answer if answer else None) or ""
            cited_text = " ".join(s.text for s in answer.sentences if s.cites) if answer else ""
            self._tally("em", [exact_match(short, question.answers)])
            self._tally("f1", [f1(short, question.answers, empty=0.0 if self.measures.as_2023 else 1.0)])
            self._tally("answer_recall", [has_answer(cited_text, question.answers)])
            first = next((r for r, i in enumerate(ranking, 1) if _holds(answer, i, question)), None)
            for k in DEPTHS:
                self._tally(f"answer_hit@{k}", [first is not None and first <= k])
        if question.nuggets:
            occurrences = find_nuggets(answer.plain if answer else "", question.nuggets)
            for suffix, outcomes in (("", occurrences), ("_judged", item.nuggets)):
                self._tally(f"nugget_recall{suffix}", outcomes, macro=True)
                self._tally(f"all_nuggets{suffix}", [all_yes(outcomes)])
        if question.gold:
            for k in DEPTHS:
                share = len(set(question.gold).intersection(ranking[:k])) / len(set(question.gold))
                self._tally(f"Success@{k}", [share > 0])
                self._tally(f"R@{k}", [share])

    def _tally(self, name: str, values: Iterable[float | None], *, macro: bool = False) -> None:
        tally = self.tallies.setdefault(name, Tally("items"))
        tally.add(values, self._asked)
        self._scores[name] = tally.last(macro=macro)

    def _count_refusal(self, answer: CitedAnswer, question: Question) -> None:
        if answer.abstained and answer.extra.get("failed") is not True:
            self.refused += 1
            self.refused_right += not question.answerable or answer.extra.get("answerable") is False

    def _count_quotes(self, item: JudgedAnswer) -> None:
        if item.answer is None:
            return
        texts = {key: passage.text for key, passage in item.answer.passages.items()}
        for sentence, claim in zip(item.answer.sentences, item.claims, strict=True):
            if claim is not None and any(is_quoted(sentence.text, texts.get(key, "")) for key in sentence.cites):
                self.quoted += 1
                self.quoted_rejected += claim.union.verdict.ais is False

    def _check_quotes(self, answer: CitedAnswer | None) -> None:
        self.quotes = [] if answer is None else check_quotes(answer)
        if self.quotes:
            self.quotations.update(check.status for check in self.quotes)
            self.verbatim_quotes.add([check.status is QuoteStatus.VERBATIM for check in self.quotes], self._asked)

    def _outcome(self, ais: bool | None) -> bool | None:
        return ais is True if self.measures.as_2023 else ais

    def _add_citations(self, item: JudgedAnswer) -> None:
        if "alce" in self.measures.metrics:
            self._scores |= self.alce_answers.add(item.answer, item.reference_claims, self._asked)
        if item.answer and item.answer.whole_context:
            self.whole_context += 1
            return
        if item.answer:
            self.citing += bool(item.answer.unresolved or any(sentence.cites for sentence in item.answer.sentences))
        # A claim counts its own unresolved markers; these have no known sentence, or one that claims nothing.
        unresolved = (
            item.answer.unresolved - sum(c.claim.unresolved for c in item.applicable_claims) if item.answer else 0
        )
        if "alce" in self.measures.metrics:
            alce.add(self.alce, item.applicable_claims, unresolved, self._asked)
            self._scores |= self.alce.last("citation", empty=0.0)
            if item.strict is not None:
                self.strict = self.strict or alce.StrictScores()
                if self.strict.add(item.strict, self._asked):
                    self._scores |= self.strict.scores.last("citation", "_strict", empty=0.0)
        if "hagrid" in self.measures.metrics:
            self._tally("hagrid", [item.hagrid])
            self._tally("hagrid_sentences", [hagrid.attributable(claim) for claim in item.applicable_claims])
        if "liu" in self.measures.metrics:
            sentences = item.answer.sentences if item.answer else ()
            statements = [
                liu.as_statement(claim, worthy=sentence.worthy is not False)
                for sentence, claim in zip(sentences, item.claims, strict=True)
                if claim is not None
            ]
            liu.add(self.liu, statements, unresolved, self._asked)
            self._scores |= self.liu.last("liu") | self.liu.last("liu", "_averaged", macro=True)
        if "trec" in self.measures.metrics:
            levels = [trec.support_levels(claim) for claim in item.applicable_claims]
            trec.add(self.trec, levels, first_only=not self.measures.trec_all, question=self._asked)
            self._scores |= self.trec.last("trec") | self.trec.last("trec", "_averaged", empty=0.0)
            self.trec_levels.update(str(level or "undecided") for answer_levels in levels for level in answer_levels)

    def _citation_metrics(self) -> dict[str, Any]:
        metrics: dict[str, Any] = {}
        about_texts = self.alce_answers.records() if "alce" in self.measures.metrics else {}
        if "alce" in self.measures.metrics:
            strict = {} if self.strict is None else self.strict.records()
            for name, ratio in self.alce.macro_average(empty=0.0).items():
                metrics[f"citation_{name}"] = ratio.record()
                if strict:
                    metrics[f"citation_{name}_strict"] = strict[name] | {
                        "splitter": open_splitter(self.measures.splitter).name
                    }
            metrics |= about_texts
        if "hagrid" in self.measures.metrics:
            metrics |= {name: self._rate(name) for name in ("hagrid", "hagrid_sentences")}
        if "liu" in self.measures.metrics:
            metrics |= {f"liu_{name}": ratio.record() for name, ratio in self.liu.micro_average().items()}
            metrics |= {f"liu_{name}_averaged": ratio.record() for name, ratio in self.liu.macro_average().items()}
        if "trec" in self.measures.metrics:
            levels = {str(level): self.trec_levels[level] for level in [*Support, "undecided"]}
            details = {"levels": levels} | ({"citations": "all"} if self.measures.trec_all else {})
            for suffix, three in (("", self.trec.micro_average()), ("_averaged", self.trec.macro_average(empty=0.0))):
                metrics |= {f"trec_{name}{suffix}": three[name].record() for name in ("recall", "precision")}
            metrics = {name: record | (details if name.startswith("trec_") else {}) for name, record in metrics.items()}
        if self.whole_context and not self.citing:
            return {name: record if name in about_texts else _absent(_NO_CITATIONS) for name, record in metrics.items()}
        return metrics

    def _refusals(self) -> dict[str, Any]:
        record = self.attributed.rate().record()
        if record["value"] is None:
            record["reason"] = "no question was answered" if not record["total"] else "nothing was decided"
        return {"all": self.refused, "without_an_answer": self.refused_right, "attributed_answers": record}

    def _rate(self, name: str) -> dict[str, Any]:
        return self.tallies.get(name, Tally("items")).rate().record()

    def _mean(self, name: str) -> dict[str, Any]:
        return self.tallies[name].mean().record()

    def report(self, judge: str) -> dict[str, Any]:
        """Return the metrics by name, as JSON."""
        metrics: dict[str, Any] = {
            "autoais": self._rate("autoais"),
            "sentences": self._rate("sentences"),
            **self._citation_metrics(),
        }
        no_references = "no question has reference answers"
        if not self.with_references:
            metrics |= {name: _absent(no_references) for name in ("em", "f1", "answer_recall")}
        else:
            metrics["answer_recall"] = self._rate("answer_recall")
            if self.short_answers or not self.given:
                metrics |= {"em": self._rate("em"), "f1": self._mean("f1")}
            else:
                metrics |= {name: _absent("the system gives no short answers") for name in ("em", "f1")}
        for suffix in ("", "_judged"):
            if "nugget_recall" in self.tallies:
                metrics[f"nugget_recall{suffix}"] = self.tallies[f"nugget_recall{suffix}"].macro_average().record()
                metrics[f"all_nuggets{suffix}"] = self._rate(f"all_nuggets{suffix}")
        if self.quotations:
            metrics["verbatim_quotes"] = self.verbatim_quotes.rate().record()
        for k in DEPTHS:
            # Beyond the longest list, the value would only repeat.
            too_deep = f"no answer lists {k} passages" if k > self.depth else None
            for name, needs in _NEEDS.items():
                missing = too_deep or (None if f"{name}@{k}" in self.tallies else f"no question has {needs}")
                record = self._mean if name == "R" else self._rate
                metrics[f"{name}@{k}"] = _absent(missing) if missing else record(f"{name}@{k}")
        for metric in metrics.values():
            if metric["value"] is None:
                metric.setdefault("reason", "nothing was decided")
        return {
            "judge": judge,
            "questions": len(self._questions),
            **({"different_questions": len(self._different)} if len(self._different) < len(self._questions) else {}),
            **({"answers": self.items} if self.items > len(self._questions) else {}),
            "answered": self.answered,
            "unresolved_markers": self.unresolved,
            "not_applicable": self.not_applicable,
            "quoted": {"sentences": self.quoted, "rejected": self.quoted_rejected},
            **({"quotations": {kind.value: self.quotations[kind] for kind in QuoteStatus}} if self.quotations else {}),
            **({"without_citations": self.whole_context} if self.whole_context else {}),
            **({"refusals": self._refusals()} if self.refused_right else {}),
            "metrics": metrics,
        }


def _holds(answer: CitedAnswer | None, passage: str, question: Question) -> bool:
    return answer is not None and has_answer(answer.passages[passage].text, question.answers)


def _absent(reason: str) -> dict[str, Any]:
    return {"value": None, "reason": reason}


# --- runs ------------------------------------------------------------------------------------------------------


def answers_to_score(
    path: Path,
    format_name: str,
    questions: Sequence[Question] | None = None,
    corpus: Sequence[Path] = (),
    notes: Notes | None = None,
    *,
    skip_bad: bool = False,
) -> Iterator[CitedAnswer]:
    """Stream the answers of a file in any format, for `judge_answers`.

    With `questions`, answers in foreign formats get the benchmark's ids and references, matched by the exact text of
    the question. Answers to other questions are dropped and counted in `notes`; raises `UserError` if none is left.
    Those of `answers.jsonl` are joined by `judge_answers`: by id, then by text (`in_benchmark` drops the others).
    """
    notes = Notes() if notes is None else notes
    join = None if format_name == formats.ANSWERS.name else questions
    ids: dict[str, list[str]] = {}
    for question in join or ():
        ids.setdefault(question.text, []).append(question.id)
    has_answers = False
    for answer in formats.read(path, format_name, corpus=corpus, questions=join, notes=notes, skip_bad=skip_bad):
        has_answers = True
        _count(answer, notes, texts=not corpus)
        is_known = join is None or answer.id in ids[answer.question]
        yield answer if is_known else replace(answer, id=ids[answer.question][0])
    if join and notes and not has_answers:
        raise UserError(f"{path}: no answer has its question in the benchmark; do they belong together?")


def with_notes(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[CitedAnswer]:
    """Yield the answers; count those without sentences, and cited passages without texts, in `notes`."""
    for answer in answers:
        _count(answer, notes, texts=True)
        yield answer


def _count(answer: CitedAnswer, notes: Notes, *, texts: bool) -> None:
    if not (answer.sentences or answer.abstained):
        notes.tell(*_NO_SENTENCES)
    if texts:
        keys = {key for sentence in answer.sentences for key in sentence.cites}
        if missing := sum(not answer.passages[key].text.strip() for key in keys):
            notes.tell(*_NO_TEXT, missing)


def model_of(judge: str) -> str:
    """The model in a judge's name, with its revision: how a system names a part that is the same model.

    `minilm` is without: its trunk, as an encoder of passages, has a revision of its own.
    """
    model, separator, revision = judge.partition("@")
    if model == "minilm":
        return model
    return model.removeprefix("llm:") if model.startswith("llm:") else model + separator + revision.partition("/")[0]


def names_model(system: object, model: str) -> bool:
    """Whether the name of a system has a model as a part: not as the beginning or end of another name."""
    return isinstance(system, str) and bool(re.search(rf"(?<![\w.-]){re.escape(model)}(?![\w.-])", system))


@dataclass(frozen=True, slots=True)
class Scoring:
    """Settings of `score_answers`: format, benchmark, corpora with passage texts, and what is measured.

    `skip_bad` skips broken lines of the corpora. `keep_answers` keeps each answer with its outcome (`ScoreRun.kept`).
    """

    format: str
    questions: Sequence[Question] | None = None
    corpus: Sequence[Path] = ()
    measures: Measures = _DEFAULT
    skip_bad: bool = False
    keep_answers: bool = False


def score_answers(
    answers: Path | Iterable[CitedAnswer],
    judge: Judge,
    settings: Scoring,
    output: Path | list[dict[str, Any]] | None = None,
) -> "tuple[ScoreRun, Notes]":
    """Score the answers of a file or a list, streaming.

    `output` receives one judgement per sentence; a file is written only if all succeed. Raises `UserError` for answers
    that give nothing to judge (`check_rows`).
    """
    notes = Notes()
    as_2023 = settings.measures.as_2023
    if isinstance(answers, Path):
        skip_bad = settings.skip_bad or as_2023
        stream = answers_to_score(
            answers, settings.format, settings.questions, settings.corpus, notes, skip_bad=skip_bad
        )
    else:
        stream = with_notes(answers, notes)
    if settings.questions and settings.format == formats.ANSWERS.name:
        stream = in_benchmark(stream, settings.questions, notes)
    if as_2023:
        stream = as_read_in_2023(stream)
    run = ScoreRun(judge, settings.measures, keep_answers=settings.keep_answers)
    source = answers if isinstance(answers, Path) else "answers"
    records = check_rows(run.records(stream, settings.questions), run, source, corpus=bool(settings.corpus))
    rows = map(round_floats, records)
    if isinstance(output, Path):
        write_atomic(output, map(dumps, rows))
    elif output is None:
        deque(rows, maxlen=0)
    else:
        output.extend(rows)
    return run, notes


def check_rows(
    rows: Iterable[dict[str, Any]], run: "ScoreRun", source: str | Path, *, corpus: bool
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a run; raise `UserError` after the last one if its zeros would only say what was not given.

    That is: no row has an answer and none abstains, or no text is known for any cited passage, unless people's labels
    are there to report. `source` names the answers, `corpus` says that files with texts were given.
    """
    yield from rows
    summary = run.summary
    if summary.given and not (summary.answered or summary.abstained or summary.short_answers):
        raise UserError(
            f"{source}: none of its {summary.given:,} rows has an answer; score takes answers (`sentences`, or "
            "`output` with markers, in answers.jsonl), not questions; a system that answers nothing says `abstained`"
        )
    if summary.textless and summary.textless == summary.cited and run.human.report() is None:
        way_out = "the corpus is another than theirs" if corpus else "give a corpus with the texts (--corpus FILE)"
        if not isinstance(source, Path):
            way_out = "give each passage its `text`"
        raise UserError(f"{source}: no text is known for any passage that the answers cite; {way_out}")


class ScoreRun:
    """Judges answers and counts the outcomes.

    `keep_answers` keeps a pair (answer, whether it is attributable) for each answer in `kept`; otherwise a run keeps a
    few numbers per question and no text.
    """

    def __init__(self, judge: Judge, measures: Measures, *, keep_answers: bool = False) -> None:
        if measures.splitter is not None:
            open_splitter(measures.splitter)  # better refused before the work than after it
        if measures.mauve is not None:
            check_mauve(measures.mauve)
        self.judge, self.measures = judge, measures
        self.summary = Summary(measures)
        self.human = HumanSummary()
        self._model = model_of(judge.name)
        self.same_judge = 0  # answers of systems that have the judge as a part
        self.kept: list[tuple[CitedAnswer, bool | None]] = []
        self._keep_answers = keep_answers

    def records(
        self, answers: Iterable[CitedAnswer], questions: Iterable[Question] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield one JSON row per sentence (`JudgedAnswer.records`); `report` is complete after the last row.

        The first row of an answer also has its `scores` (`Summary.add`), for `compare`. A sentence in which quotations
        begin that are not verbatim has them as `quotes` (`QuoteCheck.record`).
        """
        metrics, splitter = self.measures.metrics, self.measures.splitter
        items = judge_answers(
            answers, self.judge, questions, per_citation=bool(metrics), strict="alce" in metrics, splitter=splitter
        )
        for item in items:
            scores: dict[str, Any] | None = self.summary.add(item)
            self.human.add(item)
            if item.answer is not None and names_model(item.answer.extra.get("system"), self._model):
                self.same_judge += 1
            if self._keep_answers and item.answer is not None:
                self.kept.append((item.answer, item.ais))
            quotes: dict[int, list[dict[str, Any]]] = {}
            for check in self.summary.quotes:
                if check.status is not QuoteStatus.VERBATIM:
                    quotes.setdefault(check.sentence, []).append(check.record())
            for row in item.records(self.judge.name):
                if row["sentence"] in quotes:
                    row["quotes"] = quotes[row["sentence"]]
                yield row if scores is None else row | {"scores": scores}
                scores = None

    def report(self) -> dict[str, Any]:
        """Return `Summary.report`, plus the human labels under `human` if there are any.

        `same_judge` counts the answers of systems that name the judge as a part: their scores by it are circular.
        """
        human, n_same_judge = self.human.report(), self.same_judge
        report = self.summary.report(self.judge.name) | ({"human": human} if human else {})
        return report | ({"same_judge": n_same_judge} if n_same_judge else {})
