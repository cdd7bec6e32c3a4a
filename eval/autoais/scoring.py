"""Scores a file of cited answers: one pass, one judgement a sentence, every question of the benchmark counted."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from autoais.answers import CitedAnswer, Support
from autoais.errors import UserError
from autoais.judges import NO_TEXT
from autoais.markers.alce import strict_sentences
from autoais.metrics import alce, hagrid, liu, trec
from autoais.metrics.claims import CitedClaim, JudgedClaim, all_yes, judge_claims
from autoais.metrics.rates import Mean, Rate
from autoais.metrics.scores import CitationScores
from autoais.metrics.short_answers import exact_match, f1, has_answer
from autoais.questions import Question
from autoais.text.claims import applicable
from autoais.types import Judge, Verdict

DEPTHS = (1, 5, 20, 100)
CITATION_METRICS = ("alce", "hagrid", "liu", "trec")  # they need judgements of single citations
DEFAULT_METRICS = ("alce", "hagrid")
NOT_APPLICABLE = "not_applicable"  # the verdict of a row whose sentence claims nothing
_NEEDS = {"Success": "gold passages", "R": "gold passages", "answer_hit": "reference answers"}
_BATCH = 256  # answers judged together: bounds memory, changes no result


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A question of the benchmark, its answer (None if it was never answered) and a judged claim a sentence.

    The claim is None where a sentence claims nothing (a question, an instruction): it is not judged and not counted.
    `strict` are the claims as ALCE's script would parse them from the output (spec F2), None where that is not known.
    """

    question: Question
    answer: CitedAnswer | None
    claims: tuple[JudgedClaim | None, ...]
    strict: tuple[JudgedClaim, ...] | None = None

    @property
    def judged(self) -> list[JudgedClaim]:
        """The sentences that claim something."""
        return [claim for claim in self.claims if claim is not None]

    @property
    def ais(self) -> bool | None:
        """Whether the whole answer is attributable: every sentence is, to all it cites together (rule `union`).

        No answer is a no; one sentence that is not attributable decides; else one undecided leaves it undecided.
        """
        return all_yes(claim.union.verdict.ais for claim in self.judged)

    @property
    def hagrid(self) -> bool | None:
        """The same with HAGRID's rule for sentences: every citation supports by itself."""
        return all_yes(map(hagrid.attributable, self.judged))

    def records(self, judge: str) -> Iterator[dict[str, Any]]:
        """One JSON row a sentence, or one without a sentence (null) for a question without an answer.

        id, sentence (0-based), text, cites, verdict, probability, reason, judge; `alone`, the verdict on each citation
        by itself, in the order of `cites`; `evidence`, what the verdict rests on, as characters of what the judge read
        of a passage (headings, then text); `unsupported`, characters of the sentence without support.
        """
        sentences = self.answer.sentences if self.answer else ()
        if not sentences:
            yield _row(self.question.id, judge, Verdict.NOT_ATTRIBUTABLE, "nothing was said")
        for number, (sentence, claim) in enumerate(zip(sentences, self.claims, strict=True)):
            said = {"sentence": number, "text": sentence.text, "cites": list(sentence.cites)}
            if claim is None:
                yield _row(self.question.id, judge, NOT_APPLICABLE, "a question or an instruction") | said
                continue
            union = claim.union
            # All that a sentence cites may be ids that are not among the passages of its row.
            reason = NO_TEXT if not claim.claim.cited and claim.claim.unresolved else union.reason
            yield _row(self.question.id, judge, union.verdict, reason) | said | {
                "probability": union.probability,
                "alone": [judgement.verdict.value for judgement in claim.alone],
                "evidence": [
                    {"passage": sentence.cites[span.evidence], "start": span.start, "end": span.end}
                    for span in union.evidence
                    if span.evidence < len(sentence.cites)
                ],
                "unsupported": [list(part) for part in union.unsupported],
            }  # fmt: skip


def _row(question: str, judge: str, verdict: str, reason: str | None) -> dict[str, Any]:
    return {
        "id": question, "sentence": None, "text": "", "cites": [], "verdict": str(verdict), "probability": None,
        "reason": reason, "judge": judge, "alone": [], "evidence": [], "unsupported": [],
    }  # fmt: skip


def judge_answers(
    answers: Iterable[CitedAnswer],
    judge: Judge,
    questions: Iterable[Question] | None = None,
    *,
    each: bool = True,
    strict: bool = False,
) -> Iterator[JudgedAnswer]:
    """Judge each answer's sentences against the passages they cite, together and with `each` also singly; streaming.

    With `strict` also the sentences that ALCE's script would see. With `questions` (the whole benchmark), references
    come from there, a question without an answer is yielded with None, and a second answer to a question, or one to
    a question that is not among them, is a `UserError`. Without, the answers' own rows are taken for the benchmark.
    """
    benchmark = None if questions is None else {question.id: question for question in questions}
    left = dict(benchmark or {})
    stream = iter(answers)
    while batch := list(islice(stream, _BATCH)):
        claims = [_claims(answer) for answer in batch]
        as_alce = [_strict_claims(answer) if strict else None for answer in batch]
        listed = [claim for row in claims for claim in row if claim is not None]
        listed += [claim for row in as_alce for claim in row or ()]
        judged = iter(judge_claims(judge, listed, each=each))
        rows = [tuple(None if claim is None else next(judged) for claim in row) for row in claims]
        for answer, row, strictly in zip(batch, rows, as_alce, strict=True):
            question = _own_question(answer) if benchmark is None else _asked(answer, benchmark, left)
            as_judged = None if strictly is None else tuple(islice(judged, len(strictly)))
            yield JudgedAnswer(question, answer, row, as_judged)
    for question in left.values():
        yield JudgedAnswer(question, None, ())


def _own_question(answer: CitedAnswer) -> Question:
    return Question(answer.id, answer.question, answer.answers, answer.gold)


def _asked(answer: CitedAnswer, benchmark: Mapping[str, Question], left: dict[str, Question]) -> Question:
    """The benchmark's question of an answer, which is taken from those `left` to be answered."""
    question = benchmark.get(answer.id)
    if question is None:
        raise UserError(f"answer {answer.id!r} is to no question of the benchmark; are these its answers?")
    if question.text.split() != answer.question.split():
        raise UserError(
            f"answer {answer.id!r} is to {answer.question[:60]!r}, the benchmark's question of that id is "
            f"{question.text[:60]!r}; are these its answers?"
        )
    if left.pop(answer.id, None) is None:
        raise UserError(
            f"question {answer.id!r} ({question.text[:60]!r}) has two answers; give one a question, or no --questions"
        )
    return question


def choose_metrics(names: str) -> tuple[str, ...]:
    """The citation metrics of a list with commas; `all` and `none` are short for theirs. `UserError` on other names."""
    if names in ("all", "none"):
        return CITATION_METRICS if names == "all" else ()
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in chosen:
        if name not in CITATION_METRICS:
            raise UserError(f"no citation metrics called {name!r}; there are: {', '.join(CITATION_METRICS)}, all, none")
    return chosen


def _claims(answer: CitedAnswer) -> list[CitedClaim | None]:
    unresolved = Counter(one.sentence for one in answer.unresolved_markers if one.is_citation)
    return [
        CitedClaim(
            sentence.text,
            tuple(answer.passages[cited].evidence for cited in sentence.cites),
            unresolved[number],
            answer.question,
        )
        if applicable(sentence.text, answer.short_answer)
        else None
        for number, sentence in enumerate(answer.sentences)
    ]


def _strict_claims(answer: CitedAnswer) -> list[CitedClaim] | None:
    """What ALCE's script would judge of the output; None without an output or the texts of what it cites."""
    if answer.output is None or not any(passage.text.strip() for passage in answer.passages.values()):
        return None
    documents = [f"Title: {passage.title}\n{passage.text}" for passage in answer.passages.values()]
    return alce.strict_claims(strict_sentences(answer.output), documents)


class Summary:
    """All metrics over the benchmark's questions, as fractions; what cannot be computed is null with a reason.

    `autoais`: answers whose every sentence is attributable, of all questions. `sentences`: attributable sentences.
    By `metrics`: `citation_recall`, `citation_precision`, `citation_f1` (alce: ALCE's rules, normalised, means over
    questions, a question without an answer 0), beside them with `_strict` what ALCE's script gives, from the answers
    whose output is known (it leaves out those without a sentence, `left_out`, and takes undecided as no); `hagrid`,
    `hagrid_sentences` (every citation supports by itself);
    `liu_*` and `liu_*_averaged` (pooled, and a mean over responses; every sentence counts as worth verifying);
    `trec_precision`, `trec_recall` (first citation of a sentence; full 1, partial 0.5, none 0; `levels` counts all
    citations, and a judge of two verdicts never says partial).
    `em`, `f1`: SQuAD, on `short_answer`. `answer_recall`: a reference string stands in the cited sentences.
    `Success@k`, `R@k` (ir_measures): gold passages in the first k; `answer_hit@k`: a reference in the first k texts.
    Per question it keeps a few numbers and no text. With `undecided_is_no` (google-2023, spec A7) nothing is
    undecided in `autoais` and `sentences`.
    """

    def __init__(self, metrics: Collection[str] = DEFAULT_METRICS, *, undecided_is_no: bool = False) -> None:
        self.metrics = metrics
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
        if question.gold:
            for k in DEPTHS:
                found = len(set(question.gold).intersection(ranking[:k]))
                self.success[k].append(found > 0)
                self.recall[k].append(found / len(set(question.gold)))

    def _outcome(self, ais: bool | None) -> bool | None:
        return ais is True if self.undecided_is_no else ais

    def _cited(self, item: JudgedAnswer) -> None:
        # Those of a claim are counted with it; here are the others, whose sentence is not known or claims nothing.
        unresolved = item.answer.unresolved - sum(c.claim.unresolved for c in item.judged) if item.answer else 0
        if "alce" in self.metrics:
            alce.add(self.alce, item.judged, unresolved)
            if item.strict is not None:
                self.strict = self.strict or alce.StrictScores()
                self.strict.add(item.strict)
        if "hagrid" in self.metrics:
            self.answer_hagrid.append(item.hagrid)
            self.sentence_hagrid.extend(map(hagrid.attributable, item.judged))
        if "liu" in self.metrics:
            liu.add(self.liu, map(liu.judged_statement, item.judged), unresolved)
        if "trec" in self.metrics:
            levels = [trec.judged_levels(claim) for claim in item.judged]
            trec.add(self.trec, levels)
            self.trec_levels.update(str(level or "undecided") for of_sentence in levels for level in of_sentence)

    def _citation_metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if "alce" in self.metrics:
            strict = {} if self.strict is None else self.strict.records()
            for name, ratio in self.alce.averaged(empty=0.0).items():
                found[f"citation_{name}"] = ratio.record()
                found |= {f"citation_{name}_strict": strict[name]} if strict else {}
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
        """The metrics by name, as JSON."""
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
        for k in DEPTHS:
            # A depth beyond what the system returned would only repeat the value at the last one.
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
