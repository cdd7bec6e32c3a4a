"""Scoring of cited answers: one pass, one judgement per sentence, every question of the benchmark counted."""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoais import formats
from autoais.answers import CitedAnswer
from autoais.attributed_qa import as_read_in_2023
from autoais.errors import UserError
from autoais.formats import Notes
from autoais.io.jsonl import dumps, round_floats, write_atomic
from autoais.judged import JudgedAnswer, judge_answers
from autoais.markers.alce import open_splitter
from autoais.meta.human import HumanSummary
from autoais.metrics import alce, hagrid, liu, trec
from autoais.metrics.alce_answers import AlceAnswers, check_mauve
from autoais.metrics.claims import all_yes
from autoais.metrics.nuggets import nuggets_found
from autoais.metrics.rates import Mean, Rate
from autoais.metrics.scores import CitationScores
from autoais.metrics.short_answers import exact_match, f1, has_answer
from autoais.types import Judge, Question, Support

DEPTHS = (1, 5, 20, 100)
CITATION_METRICS = ("alce", "hagrid", "liu", "trec")  # they need judgements of single citations
DEFAULT_METRICS = ("alce", "hagrid")
_NEEDS = {"Success": "gold passages", "R": "gold passages", "answer_hit": "reference answers"}
_NO_SENTENCES = "answers without sentences, not attributable (set `abstained` if intended)"
_NO_TEXT = "cited passages without a text, not attributable (--corpus FILE adds texts)"


def choose_metrics(names: str) -> tuple[str, ...]:
    """Return the citation metrics of a comma-separated list, `all` or `none`; raises `UserError` for other names."""
    if names in ("all", "none"):
        return CITATION_METRICS if names == "all" else ()
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in chosen:
        if name not in CITATION_METRICS:
            raise UserError(f"no citation metrics called {name!r}; there are: {', '.join(CITATION_METRICS)}, all, none")
    return chosen


class Summary:
    """All metrics over the benchmark's questions, as fractions; a metric without a value is null with a reason.

    - `autoais`: answers with every sentence attributable, of all questions. `sentences`: attributable sentences.
    - `citation_recall`, `citation_precision`, `citation_f1` (alce): ALCE's rules, normalised, means over questions; a
      question without an answer scores 0. With `_strict`: the values of ALCE's script, for answers whose output is
      known; it leaves out answers without sentences (`left_out`) and counts undecided as no. `splitter` names what
      split the sentences: ALCE uses NLTK.
    - `str_em`, `str_hit`, `qampari_*`, `claims_nli`, `rougeLsum`, `mauve` (alce): `metrics.alce_answers`, for answers
      that come with ALCE's references.
    - `hagrid`, `hagrid_sentences`: every citation supports the sentence by itself.
    - `liu_*`, `liu_*_averaged`: pooled, and averaged over responses; every sentence counts as worth verifying.
    - `trec_precision`, `trec_recall`: the first citation of a sentence; full 1, partial 0.5, none 0. `levels` counts
      all citations; binary judges never give partial.
    - `em`, `f1`: SQuAD's, on `short_answer`. `answer_recall`: a reference string occurs in the cited sentences.
    - `nugget_recall`: the share of a question's nuggets whose phrase the answer contains, mean over questions;
      `all_nuggets`: answers with all of them. With `_judged`: also nuggets that the judge finds supported.
    - `Success@k`, `R@k` (ir_measures): gold passages in the first k; `answer_hit@k`: a reference in the first k texts.

    Keeps a few numbers per question and no text. With `undecided_is_no` (google-2023), undecided counts as no in
    `autoais` and `sentences`.
    """

    def __init__(
        self,
        metrics: Collection[str] = DEFAULT_METRICS,
        *,
        undecided_is_no: bool = False,
        splitter: str | None = None,
        mauve: Path | None = None,
    ) -> None:
        self.metrics = metrics
        self.splitter, self.alce_answers = splitter, AlceAnswers(splitter, mauve)
        self.undecided_is_no = undecided_is_no
        self.questions = self.given = self.answered = self.unresolved = self.short_answers = self.with_references = 0
        self.not_applicable = 0  # sentences
        self.depth = 0  # of the longest list of passages
        self.answer_ais: list[bool | None] = []
        self.sentence_ais: list[bool | None] = []
        self.answer_hagrid: list[bool | None] = []
        self.sentence_hagrid: list[bool | None] = []
        self.alce, self.liu, self.trec = CitationScores(), CitationScores(), CitationScores()
        self.strict: alce.StrictScores | None = None
        self.trec_levels: Counter[str] = Counter()
        self.em: list[float] = []
        self.f1: list[float] = []
        self.answer_recall: list[bool | None] = []
        self.nuggets: list[list[bool | None]] = []  # of each question that has nuggets, as said by its phrases
        self.nuggets_judged: list[list[bool | None]] = []
        self.success: dict[int, list[bool | None]] = {k: [] for k in DEPTHS}
        self.recall: dict[int, list[float]] = {k: [] for k in DEPTHS}
        self.answer_hit: dict[int, list[bool | None]] = {k: [] for k in DEPTHS}

    def add(self, item: JudgedAnswer) -> None:
        """Count one question of the benchmark."""
        question, answer = item.question, item.answer
        self.questions += 1
        self.answer_ais.append(self._outcome(item.ais))
        self.sentence_ais.extend(self._outcome(claim.union.verdict.ais) for claim in item.judged)
        self.not_applicable += item.claims.count(None)
        self._cited(item)
        ranking = answer.ranking if answer else ()
        if answer:
            self.given += 1
            self.answered += bool(answer.sentences)
            self.unresolved += answer.unresolved
            self.short_answers += answer.short_answer is not None
            self.depth = max(self.depth, len(ranking))
        if question.answers:
            self.with_references += 1
            short = (answer.short_answer if answer else None) or ""
            self.em.append(exact_match(short, question.answers))
            self.f1.append(f1(short, question.answers))
            cited = " ".join(s.text for s in answer.sentences if s.cites) if answer else ""
            self.answer_recall.append(has_answer(cited, question.answers))
            first = next((r for r, i in enumerate(ranking, 1) if _holds(answer, i, question)), None)
            for k in DEPTHS:
                self.answer_hit[k].append(first is not None and first <= k)
        if question.nuggets:
            self.nuggets.append([*nuggets_found(answer.plain if answer else "", question.nuggets)])
            self.nuggets_judged.append([*item.nuggets])
        if question.gold:
            for k in DEPTHS:
                found = len(set(question.gold).intersection(ranking[:k]))
                self.success[k].append(found > 0)
                self.recall[k].append(found / len(set(question.gold)))

    def _outcome(self, ais: bool | None) -> bool | None:
        return ais is True if self.undecided_is_no else ais

    @staticmethod
    def _share(found: Sequence[bool | None]) -> float:
        return sum(one is True for one in found) / len(found)

    def _cited(self, item: JudgedAnswer) -> None:
        # A claim counts its own unresolved markers; these have no known sentence, or one that claims nothing.
        unresolved = item.answer.unresolved - sum(c.claim.unresolved for c in item.judged) if item.answer else 0
        if "alce" in self.metrics:
            alce.add(self.alce, item.judged, unresolved)
            if item.strict is not None:
                self.strict = self.strict or alce.StrictScores()
                self.strict.add(item.strict)
            self.alce_answers.add(item.answer, item.reference_claims)
        if "hagrid" in self.metrics:
            self.answer_hagrid.append(item.hagrid)
            self.sentence_hagrid.extend(map(hagrid.attributable, item.judged))
        if "liu" in self.metrics:
            liu.add(self.liu, map(liu.judged_statement, item.judged), unresolved)
        if "trec" in self.metrics:
            levels = [trec.judged_levels(claim) for claim in item.judged]
            trec.add(self.trec, levels)
            self.trec_levels.update(str(level or "undecided") for listed in levels for level in listed)

    def _citation_metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if "alce" in self.metrics:
            strict = {} if self.strict is None else self.strict.records()
            for name, ratio in self.alce.averaged(empty=0.0).items():
                found[f"citation_{name}"] = ratio.record()
                if strict:
                    found[f"citation_{name}_strict"] = strict[name] | {"splitter": open_splitter(self.splitter).name}
            found |= self.alce_answers.records()
        if "hagrid" in self.metrics:
            found["hagrid"] = Rate.of(self.answer_hagrid).record()
            found["hagrid_sentences"] = Rate.of(self.sentence_hagrid).record()
        if "liu" in self.metrics:
            found |= {f"liu_{name}": ratio.record() for name, ratio in self.liu.pooled().items()}
            found |= {f"liu_{name}_averaged": ratio.record() for name, ratio in self.liu.averaged().items()}
        if "trec" in self.metrics:
            pooled = self.trec.pooled()
            levels = {str(level): self.trec_levels[level] for level in [*Support, "undecided"]}
            found |= {f"trec_{name}": pooled[name].record() | {"levels": levels} for name in ("recall", "precision")}
        return found

    def report(self, judge: str) -> dict[str, Any]:
        """Return the metrics by name, as JSON."""
        metrics: dict[str, Any] = {
            "autoais": Rate.of(self.answer_ais).record(),
            "sentences": Rate.of(self.sentence_ais).record(),
            **self._citation_metrics(),
        }
        no_references = "no question has reference answers"
        if not self.with_references:
            metrics |= {name: _absent(no_references) for name in ("em", "f1", "answer_recall")}
        else:
            metrics["answer_recall"] = Rate.of(self.answer_recall).record()
            if self.short_answers or not self.given:
                metrics["em"] = Rate.of(bool(value) for value in self.em).record()
                metrics["f1"] = Mean.of(self.f1).record()
            else:
                metrics |= {name: _absent("the system gives no short answers") for name in ("em", "f1")}
        for suffix, held in (("", self.nuggets), ("_judged", self.nuggets_judged)):
            if held:
                shares = [self._share(one) for one in held]
                metrics[f"nugget_recall{suffix}"] = Mean.of(shares).record()
                metrics[f"all_nuggets{suffix}"] = Rate.of(map(all_yes, held)).record()
        for k in DEPTHS:
            # Beyond the longest list, the value would only repeat.
            too_deep = f"no answer lists {k} passages" if k > self.depth else None
            for name, values in (("Success", self.success[k]), ("answer_hit", self.answer_hit[k])):
                missing = too_deep or (None if values else f"no question has {_NEEDS[name]}")
                metrics[f"{name}@{k}"] = _absent(missing) if missing else Rate.of(values).record()
            missing = too_deep or (None if self.recall[k] else f"no question has {_NEEDS['R']}")
            metrics[f"R@{k}"] = _absent(missing) if missing else Mean.of(self.recall[k]).record()
        for metric in metrics.values():
            if metric["value"] is None:
                metric.setdefault("reason", "nothing was decided")
        return {
            "judge": judge,
            "questions": self.questions,
            "answered": self.answered,
            "unresolved_markers": self.unresolved,
            "not_applicable": self.not_applicable,
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
    `answers.jsonl` already has the benchmark's ids: there `judge_answers` rejects answers to other questions.
    """
    notes = Notes() if notes is None else notes
    join = None if format_name == formats.ANSWERS.name else questions
    ids = {question.text: question.id for question in join or ()}
    some = False
    for answer in formats.read(path, format_name, corpus=corpus, questions=join, notes=notes, skip_bad=skip_bad):
        some = True
        _count(answer, notes, texts=not corpus)
        yield answer if join is None else replace(answer, id=ids[answer.question])
    if join and notes and not some:
        raise UserError(f"{path}: no answer has its question in the benchmark; do they belong together?")


def with_notes(answers: Iterable[CitedAnswer], notes: Notes) -> Iterator[CitedAnswer]:
    """Yield the answers; count those without sentences, and cited passages without texts, in `notes`."""
    for answer in answers:
        _count(answer, notes, texts=True)
        yield answer


def _count(answer: CitedAnswer, notes: Notes, *, texts: bool) -> None:
    if not (answer.sentences or answer.abstained):
        notes[_NO_SENTENCES] += 1
    if texts:
        cited = {key for sentence in answer.sentences for key in sentence.cites}
        if missing := sum(not answer.passages[key].text.strip() for key in cited):
            notes[_NO_TEXT] += missing


def model_of(judge: str) -> str:
    """The model in a judge's name, with its revision: how a system names a part that is the same model."""
    model, at, rest = judge.partition("@")
    return model.removeprefix("llm:") if model.startswith("llm:") else model + at + rest.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Scoring:
    """Settings of `score_file`: format, benchmark, corpora with passage texts, and citation metrics.

    `as_2023` scores as Attributed QA's released script does. `skip_bad` skips broken lines of the corpora.
    `keep_answers` keeps each answer with its outcome (`ScoreRun.kept`). `splitter` (`markers.alce.open_splitter`) is
    for ALCE's strict metrics, `mauve` the folder of GPT-2 large for its MAUVE.
    """

    format: str
    questions: Sequence[Question] | None = None
    corpus: Sequence[Path] = ()
    metrics: Collection[str] = DEFAULT_METRICS
    as_2023: bool = False
    skip_bad: bool = False
    keep_answers: bool = False
    splitter: str | None = None
    mauve: Path | None = None


def score_file(path: Path, judge: Judge, how: Scoring, out: Path | None = None) -> "tuple[ScoreRun, Notes]":
    """Score the answers of a file, streaming; `out` receives one judgement per sentence, and only if all succeed."""
    notes = Notes()
    answers = answers_to_score(path, how.format, how.questions, how.corpus, notes, skip_bad=how.skip_bad or how.as_2023)
    if how.as_2023:
        answers = as_read_in_2023(answers)
    run = ScoreRun(
        judge,
        how.metrics,
        as_2023=how.as_2023,
        keep_answers=how.keep_answers,
        splitter=how.splitter,
        mauve=how.mauve,
    )
    rows = (dumps(round_floats(row)) for row in run.records(answers, how.questions))
    if out is None:
        deque(rows, maxlen=0)
    else:
        write_atomic(out, rows)
    return run, notes


class ScoreRun:
    """Judges answers and counts the outcomes.

    `keep_answers` keeps a pair (answer, whether it is attributable) for each answer in `kept`; otherwise a run keeps a
    few numbers per question and no text. `as_2023` scores as Attributed QA's script does.
    """

    def __init__(
        self,
        judge: Judge,
        metrics: Collection[str],
        *,
        as_2023: bool = False,
        keep_answers: bool = False,
        splitter: str | None = None,
        mauve: Path | None = None,
    ) -> None:
        if splitter is not None:
            open_splitter(splitter)  # better refused before the work than after it
        if mauve is not None:
            check_mauve(mauve)
        self.judge = judge
        self.summary = Summary(metrics, undecided_is_no=as_2023, splitter=splitter, mauve=mauve)
        self.human = HumanSummary()
        self._splitter = splitter
        self._as_2023 = as_2023
        self._model = model_of(judge.name)
        self.same_judge = 0  # answers of systems that have the judge as a part
        self.kept: list[tuple[CitedAnswer, bool | None]] = []
        self._keep_answers = keep_answers

    def records(
        self, answers: Iterable[CitedAnswer], questions: Iterable[Question] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield one JSON row per sentence (`JudgedAnswer.records`); `report` is complete after the last row."""
        measured = self.summary.metrics
        strict = "alce" in measured
        items = judge_answers(
            answers, self.judge, questions, each=bool(measured), strict=strict, splitter=self._splitter
        )
        for item in items:
            self.summary.add(item)
            if self._as_2023 and item.question.answers:
                short = (item.answer.short_answer if item.answer else None) or ""
                self.summary.f1[-1] = f1(short, item.question.answers, nothing=0.0)
            self.human.add(item)
            if item.answer is not None and self._model in str(item.answer.extra.get("system")):
                self.same_judge += 1
            if self._keep_answers and item.answer is not None:
                self.kept.append((item.answer, item.ais))
            yield from item.records(self.judge.name)

    def report(self) -> dict[str, Any]:
        """Return `Summary.report`, plus the human labels under `human` if there are any.

        `same_judge` counts the answers of systems that name the judge as a part: their scores by it are circular.
        """
        human, same = self.human.report(), self.same_judge
        found = self.summary.report(self.judge.name) | ({"human": human} if human else {})
        return found | ({"same_judge": same} if same else {})
