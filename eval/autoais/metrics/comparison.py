"""Comparison of two systems question by question, on every metric: tests, intervals and Holm's correction."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import field as field_of
from autoais.base.io.jsonl import identifier, read_objects
from autoais.base.types import NOT_APPLICABLE, Verdict
from autoais.metrics import intervals, paired
from autoais.metrics.claims import all_yes
from autoais.metrics.intervals import Estimate, number_components, number_of
from autoais.metrics.mcnemar import McNemar, mcnemar_corrected, mcnemar_exact
from autoais.metrics.paired import Pairs
from autoais.metrics.rates import Rate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from autoais.metrics.intervals import Floats

MCNEMAR = "McNemar's exact test"
RANDOMISATION = "randomisation test"
_WRITE_HINT = "write judgements with: autoais score ANSWERS --out FILE"
_MICRO_AVERAGES = ("sentences", "hagrid_sentences", "trec_recall", "trec_precision")
_METADATA_FIELDS = ("question", "text", "passages", "short_answer")  # fields of the scores that are none
_SHORT = ("em", "f1")  # they need short answers
_WITH_F1 = ("citation", "liu")  # the metrics for which `score` prints F1

_T = TypeVar("_T")
Outcomes = Mapping[str, bool | None]
Scores = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Judgements:
    """The judgements of one system.

    All are by the id of an answer. `outcomes` says whether it is attributable (None: undecided). `scores` holds, by
    metric, the sum of the scores of its items and their number (`Summary.add`). `question_keys` is the key of its
    question (`JudgedAnswer.question_key`): answers with the same key are not independent; an answer without one has a
    question of its own. `texts` are the texts of the questions, where known. `depth` is the length of the longest list
    of passages.
    """

    judge: str
    outcomes: Outcomes
    scores: Mapping[str, Scores] = field(default_factory=dict)
    depth: int = 0
    question_keys: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def read_judgements(path: Path) -> Judgements:
    """Return the judgements of a file of `score --out`.

    An answer is attributable if every sentence is, or as the field `answer` says. Sentences that claim nothing are left
    out; a question without other sentences is a no. Raises `FormatError` for a broken row, `UserError` for several
    judges or an empty file.
    """
    return _judgements(read_objects(path), str(path))


def judgements_of(rows: Iterable[Mapping[str, Any]], name: str) -> Judgements:
    """As `read_judgements`, from rows in memory (`Report.judgements`); `name` replaces the path in errors."""
    return _judgements(((f"{name}, row {number}", row) for number, row in enumerate(rows, 1)), name)


def _judgements(rows: Iterable[tuple[str, Mapping[str, Any]]], name: str) -> Judgements:
    sentence_ids: set[tuple[str, int | None]] = set()
    outcomes: dict[str, list[bool | None]] = {}
    whole_answers: dict[str, bool | None] = {}  # of answers that people rated as one
    scores: dict[str, dict[str, tuple[float, float]]] = {}
    question_keys: dict[str, str] = {}
    texts: dict[str, str] = {}
    judge, depth, short = None, 0, False
    for location, row in rows:
        if "verdict" not in row:
            raise FormatError(f"{location}: field 'verdict' is missing; {_WRITE_HINT}")
        question, verdict = identifier(row, "id", location), field_of(row, "verdict", str, location)
        sentence = None if row.get("sentence") is None else field_of(row, "sentence", int, location)
        if (question, sentence) in sentence_ids:
            raise FormatError(
                f"{location}: sentence {sentence} of {question!r} occurs twice; every answer needs its own id"
            )
        sentence_ids.add((question, sentence))
        row_judge = field_of(row, "judge", str, location)
        if judge is not None and row_judge != judge:
            raise UserError(
                f"{location}: judged by {row_judge!r}, earlier rows by {judge!r}; score the file with one judge"
            )
        judge = row_judge
        if "answer" in row:
            whole_answers[question] = _ais(field_of(row, "answer", str, location), location)
        answer_outcomes = outcomes.setdefault(question, [])
        if verdict != NOT_APPLICABLE:
            answer_outcomes.append(_ais(verdict, location))
        if "scores" in row:
            row_scores = dict(field_of(row, "scores", dict, location))
            depth = max(depth, field_of(row_scores, "passages", int, location))
            short |= field_of(row_scores, "short_answer", bool, location)
            if "question" in row_scores:
                question_keys[question] = field_of(row_scores, "question", str, location)
                texts[question] = field_of(row_scores, "text" if "text" in row_scores else "question", str, location)
            scores[question] = {
                key: _score(row_scores, key, location) for key in row_scores if key not in _METADATA_FIELDS
            }
    if judge is None:
        raise UserError(f"{name}: no judgements in it; {_WRITE_HINT}")
    if not short:
        scores = {q: {key: pair for key, pair in row.items() if key not in _SHORT} for q, row in scores.items()}
    ais = {question: all_yes(values) for question, values in outcomes.items()} | whole_answers
    return Judgements(judge, ais, scores if scores.keys() == ais.keys() else {}, depth, question_keys, texts)


def _score(scores: Mapping[str, Any], name: str, location: str) -> tuple[float, float]:
    pair = scores[name]
    if isinstance(pair, list | tuple) and len(pair) == 2 and all(type(number) in (int, float) for number in pair):
        score_sum, items = pair
        if 0 <= score_sum <= items < float("inf"):
            return float(score_sum), float(items)
    raise FormatError(f"{location}: field 'scores', {name!r} should be two numbers, a sum of scores and their count")


def _ais(verdict: str, location: str) -> bool | None:
    try:
        return Verdict(verdict).ais
    except ValueError:
        names = ", ".join([*Verdict, NOT_APPLICABLE])
        raise FormatError(f"{location}: field 'verdict' should be one of {names}; found {verdict!r}") from None


def compare(
    a: Outcomes,
    b: Outcomes,
    scores: tuple[Mapping[str, Scores], Mapping[str, Scores]] = ({}, {}),
    *,
    depth: int = 0,
    metrics: Sequence[str] | None = None,
    question_keys: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> dict[str, Any]:
    """Compare A and B over the answers of either, matched by id; what one system did not answer is a no.

    `a` and `b` are rates (fractions). `difference` is A - B of the floors (undecided counts as no, so that both are
    over the same answers), with a 95 % interval and the p of `method`. `table` counts the answers that both, only A,
    only B or neither get right. `mcnemar` holds both variants of McNemar's test. `metrics` has the same difference for
    every metric of both `scores` (those named, if any are), and `p_holm` is corrected for their number. A metric is
    over the `n` questions in which both systems have a value of it: a system that says nothing has no sentences.
    `own` has the value and the number of questions of each system, as `score` gives them. `no_common` names the metrics
    that are left out because no question has a value in both.

    Intervals and tests are over questions: `question_keys` has the question of each answer, by default one of its own.
    Yes/no outcomes have McNemar's exact test if each question has one answer; everything else is tested by
    randomisation of the sums of each question, with a larger p if one side is all right, or all wrong
    (`_Metric.least_p`). Raises `UserError` without any answer.
    """
    answers = sorted(a.keys() | b.keys())
    if not answers:
        raise UserError("there is nothing to compare: neither side has an answer")
    units = _units(answers, *question_keys)
    questions = int(units.max()) + 1 if len(units) else 0
    pairs = [(a.get(answer, False), b.get(answer, False)) for answer in answers]
    only_a = sum(first is True and second is not True for first, second in pairs)
    only_b = sum(second is True and first is not True for first, second in pairs)
    n_both = sum(first is True and second is True for first, second in pairs)
    columns = [_sum_by_question(units, [(float(pair[side] is True), 1.0) for pair in pairs]) for side in (0, 1)]
    (difference,) = _test_metrics([_Metric(*columns)])
    metric_records, no_common = _metrics(answers, units, scores, depth, metrics)
    return {
        "rule": "an answer is attributable if every sentence is attributable to its citations together",
        "questions": questions,
        "answers": len(answers),
        "only_in_a": len(a.keys() - b.keys()),
        "only_in_b": len(b.keys() - a.keys()),
        "a": Rate.of((first for first, _ in pairs), units.tolist()).record(),
        "b": Rate.of((second for _, second in pairs), units.tolist()).record(),
        "difference": {name: value for name, value in difference.items() if name not in ("a", "b", "n", "own")},
        "table": {"both": n_both, "only_a": only_a, "only_b": only_b, "neither": len(pairs) - n_both - only_a - only_b},
        "mcnemar": {
            "exact": _test(mcnemar_exact(only_a, only_b)),
            "corrected": _test(mcnemar_corrected(only_a, only_b)),
        }
        if questions == len(answers)
        else {"reason": "some questions have several answers, which are not independent"},
        "metrics": metric_records,
        "no_common": no_common,
    }


def _units(answers: Sequence[str], *question_keys: Mapping[str, str]) -> "NDArray[np.int64]":
    """Number the questions of the answers; answers are of one question if either side has the same key for them."""
    import numpy as np

    keys = [
        [number_of(f"asked {side[answer]}" if answer in side else f"id {answer}") for answer in answers]
        for side in question_keys
    ]
    return number_components(*(np.array(side, np.int64) for side in keys))


def _sum_by_question(units: "NDArray[np.int64]", rows: "Sequence[tuple[float, float]] | Floats") -> "Floats":
    """Sum the rows (answers x 2) of each question."""
    import numpy as np

    return np.stack(intervals.by_question(units, *np.array(rows, np.float64).reshape(-1, 2).T), axis=1)


def _test(test: McNemar) -> dict[str, Any]:
    record = {name: value for name, value in asdict(test).items() if name in ("variant", "statistic", "p")}
    return record if test.p is not None else record | {"reason": "the systems differ on no question"}


def difference_of_means(a_values: "ArrayLike", b_values: "ArrayLike") -> dict[str, Any]:
    """Return the mean of ours - theirs over the same questions, with a 95 % interval and a two-sided p.

    McNemar's exact test for values 0 and 1, else a randomisation test. `better` and `worse` count questions.
    """
    record, changes = _means(a_values, b_values)
    if "p" not in record:
        import numpy as np

        ((p, swaps),) = paired.p_values([Pairs(changes[:, None], np.zeros((len(changes), 1)), paired.first_sum)])
        record |= {"p": p, "method": RANDOMISATION, "swaps": swaps}
    return record


def _means(a_values: "ArrayLike", b_values: "ArrayLike") -> "tuple[dict[str, Any], Floats]":
    """The difference of two means, without p unless the values are 0 and 1; and that of each question."""
    import numpy as np

    # Sorted, as the order of the questions must not matter; rounded, so that equal values cancel out.
    changes = np.sort(np.round(np.array(a_values, np.float64) - np.array(b_values, np.float64), 12))
    bound = max(1.0, float(np.abs(changes).max()))
    better, worse = int((changes > 0).sum()), int((changes < 0).sum())
    estimate = intervals.mean(changes, -bound, bound)
    record = {"value": estimate.value, "interval95": list(estimate.interval), "better": better, "worse": worse}
    if np.isin(changes, (-1.0, 0.0, 1.0)).all():
        # Of graded values, the same computation is the randomisation test: each change is a whole one, or none.
        is_graded = not (np.isin(a_values, (0.0, 1.0)).all() and np.isin(b_values, (0.0, 1.0)).all())
        method = RANDOMISATION if is_graded else MCNEMAR
        record |= {"p": mcnemar_exact(better, worse).p, "method": method, "swaps": None}
    return record, changes


def _metrics(
    answers: Sequence[str],
    units: "NDArray[np.int64]",
    scores: tuple[Mapping[str, Scores], Mapping[str, Scores]],
    depth: int,
    selection: Sequence[str] | None,
) -> tuple[dict[str, Any], list[str]]:
    """The differences of all metrics that both systems have, and the metrics of which no question has both values."""
    import numpy as np

    a_names, b_names = ({name for row in side.values() for name in row} for side in scores)
    names = [name for name in _in_order(scores[0]) if name in a_names & b_names and _deep_enough(name, depth)]
    sides = (scores, scores[::-1])
    columns = {name: [_sum_by_question(units, _columns(name, answers, *pair)) for pair in sides] for name in names}
    metrics: dict[str, _Metric] = {}
    for name, (a, b) in columns.items():
        metrics[name] = _Metric(a, b)
        recall = name.replace("precision", "recall")
        if name != recall and name.startswith(_WITH_F1) and recall in columns:
            f1_columns = [np.concatenate(side, axis=1) for side in zip(columns[recall], (a, b), strict=True)]
            metrics[name.replace("precision", "f1")] = _Metric(f1_columns[0], f1_columns[1])
    if selection is not None:
        if missing := [name for name in selection if name not in metrics]:
            raise UserError(f"no metric {missing[0]!r} in both; there are: {', '.join(metrics) or 'none'}")
        metrics = {name: metrics[name] for name in selection}
    metrics = {name: metric for name, metric in metrics.items() if None not in metric.own}
    common = {name: metric for name, metric in metrics.items() if None not in metric.values}
    records = dict(zip(common, _test_metrics(list(common.values())), strict=True))
    holm_p = paired.holm([record["p"] for record in records.values()])
    results = {name: record | {"p_holm": p} for (name, record), p in zip(records.items(), holm_p, strict=True)}
    return results, [name for name in metrics if name not in common]


class _Metric:
    """A metric of both systems: a ratio of two sums over questions, or the F1 of two ratios.

    `a` and `b` (questions x 2 or x 4) are what each question adds to the sums. `own` are the values of all questions
    of a system; `values` and `pairs` are over the questions in which both have a value (`paired.both_sides`).
    """

    def __init__(self, a: "Floats", b: "Floats") -> None:
        self.own = _value(a), _value(b)
        self.counts = _count_questions(a), _count_questions(b)
        a, b = paired.both_sides(a, b)
        self.values, self.n = (_value(a), _value(b)), _count_questions(a)
        self.pairs = Pairs(a, b, paired.ratio_of_sums if a.shape[1] == 2 else paired.f1_of_sums)

    def record(self) -> dict[str, Any]:
        """The difference; without p for means and ratios that are not of yes/no outcomes."""
        a_estimate, b_estimate = self.values
        assert a_estimate is not None
        assert b_estimate is not None
        values: dict[str, Any] = {"a": a_estimate.value, "b": b_estimate.value, "n": self.n}
        values["own"] = {
            side: {"value": estimate.value, "n": n}
            for side, estimate, n in zip("ab", self.own, self.counts, strict=True)
            if estimate is not None
        }
        a, b = self.pairs.a, self.pairs.b
        has_items = a[:, 1] > 0
        if a.shape[1] == 2 and (a[has_items, 1] == 1).all() and (b[has_items, 1] == 1).all():  # a mean over questions
            return values | _means(a[has_items, 0], b[has_items, 0])[0]
        difference = intervals.difference(a_estimate, b_estimate)
        return values | {"value": difference.value, "interval95": list(difference.interval)}

    def least_p(self) -> float:
        """The least p that is justified if everything of one side is right, or nothing; else 0.

        The swaps then know no error of that side, though some may be rare and large: half of the systems that fail as a
        whole on 2 % of the questions fail on none of 40. Its unseen error (`intervals.combine`) is added to the
        standard error, and p is that of a normal deviate.
        """
        a_estimate, b_estimate = self.values
        assert a_estimate is not None
        assert b_estimate is not None
        if (a_estimate.value in (0.0, 1.0)) == (b_estimate.value in (0.0, 1.0)):
            return 0.0
        difference = intervals.difference(a_estimate, b_estimate)
        if not difference.varies:
            return 0.0
        arm = difference.arms[0 if difference.value > 0 else 1]
        variance = math.fsum(difference.parts**2) * difference.n / (difference.n - 1)
        deviate = abs(difference.value) / math.sqrt(variance + arm / intervals.Z95**2)
        return math.erfc(deviate / math.sqrt(2))


def _value(columns: "Floats") -> Estimate | None:
    """The ratio or the F1 of the sums of columns; None if there is nothing to divide by."""
    ratios = [intervals.ratio(*columns[:, column : column + 2].T) for column in range(0, columns.shape[1], 2)]
    return ratios[0] if len(ratios) == 1 else intervals.harmonic_mean(*ratios)


def _count_questions(columns: "Floats") -> int:
    """The number of questions with items."""
    return int((columns[:, 1::2] > 0).any(axis=1).sum())


def _test_metrics(metrics: "Sequence[_Metric]") -> list[dict[str, Any]]:
    """The records of metrics that both systems have, with p; those tested by randomisation share their swaps."""
    records = [metric.record() for metric in metrics]
    open_indices = [index for index, record in enumerate(records) if "p" not in record]
    for index, (p, swaps) in zip(
        open_indices, paired.p_values([metrics[index].pairs for index in open_indices]), strict=True
    ):
        records[index] |= {"p": p, "method": RANDOMISATION, "swaps": swaps}
    for metric, record in zip(metrics, records, strict=True):
        if record["method"] == RANDOMISATION:
            record["p"] = max(record["p"], metric.least_p())
    return records


def _in_order(scores: Mapping[str, Scores]) -> list[str]:
    return list(dict.fromkeys(name for question in sorted(scores) for name in scores[question]))


def _deep_enough(name: str, depth: int) -> bool:
    _, separator, k = name.partition("@")
    return not separator or (
        k.isdecimal() and len(k) < 10 and int(k) <= depth
    )  # beyond the longest list, the value would only repeat


def _columns(
    name: str, answers: Sequence[str], own_scores: Mapping[str, Scores], other_scores: Mapping[str, Scores]
) -> "Floats":
    """Sums of scores and counts of items (answers x 2); an answer that is missing has the items of the other side.

    Pooled metrics, and means over answers (not questions), have no item there.
    """
    import numpy as np

    no_items = (0.0, 0.0)
    counts = name not in _MICRO_AVERAGES and not name.startswith("liu_") and not name.endswith("_strict")
    return np.array(
        [
            own_scores[answer].get(name, no_items)
            if answer in own_scores
            else (0.0, other_scores[answer].get(name, no_items)[1] if counts else 0.0)
            for answer in answers
        ]
    )


def compare_files(a: Path, b: Path, metrics: Sequence[str] | None = None) -> dict[str, Any]:
    """Compare two files of judgements; raises `UserError` if their judges differ."""
    result = compare_judgements(read_judgements(a), read_judgements(b), str(a), str(b), metrics)
    return result | {"notes": [f"A is {a}, B is {b}", *result["notes"]]}


def compare_judgements(
    a: Judgements, b: Judgements, name_a: str, name_b: str, metrics: Sequence[str] | None = None
) -> dict[str, Any]:
    """Compare two results of `read_judgements`.

    Answers are matched by id. An answer whose id is on one side only is matched by the text of its question, if each
    side has one answer to it. Raises `UserError` if the judges or the questions of one id differ, or no answer has a
    match.
    """
    if a.judge != b.judge:
        raise UserError(
            f"{name_a} was judged by {a.judge!r}, {name_b} by {b.judge!r}; score both with one judge to compare"
        )
    for answer in sorted(a.texts.keys() & b.texts.keys()):
        a_text, b_text = a.texts[answer], b.texts[answer]
        # The id stands for a text that is not known.
        has_texts = "" not in (a_text, b_text) and answer not in (a_text, b_text)
        if has_texts and _fold(a_text) != _fold(b_text):
            raise UserError(
                f"answer {answer!r}: its question is {a_text[:60]!r} in {name_a}, {b_text[:60]!r} in {name_b}; "
                "do they belong together?"
            )
    id_matches = _same_question(a, b)
    b = _rename_answers(b, id_matches)
    if not a.outcomes.keys() & b.outcomes.keys():
        raise UserError(
            f"{name_a} and {name_b} have no answer in common: neither an id (such as {min(a.outcomes)!r} and "
            f"{min(b.outcomes)!r}) nor the text of a question with one answer in each; score both with the same "
            "questions (--questions)"
        )
    scores = (a.scores, b.scores) if a.scores and b.scores else ({}, {})
    depth, question_keys = max(a.depth, b.depth), (a.question_keys, b.question_keys)
    result = compare(a.outcomes, b.outcomes, scores, depth=depth, metrics=metrics, question_keys=question_keys)
    ids_of_sides = (a.outcomes.keys() - b.outcomes.keys(), b.outcomes.keys() - a.outcomes.keys())
    warnings = [
        f"{'1 answer is' if len(ids) == 1 else f'{len(ids):,} answers are'} only in {Path(name).name} (such as "
        f"{min(ids)!r}) and counted as not attributable in the other"
        for ids, name in zip(ids_of_sides, (name_a, name_b), strict=True)
        if ids
    ]
    notes = []
    if id_matches:
        id_b, id_a = next(iter(id_matches.items()))
        notes.append(
            f"ids differ: {'1 answer was' if len(id_matches) == 1 else f'{len(id_matches):,} answers were'} matched by "
            f"the text of the question (such as {id_a!r} in A and {id_b!r} in B)"
        )
    for judgements, name in ((a, name_a), (b, name_b)):
        if not judgements.scores:
            notes.append(f"{Path(name).name} has no scores of other metrics; score it again with this version")
    notes += _notes(result)
    return {"judge": a.judge, **result, "matched_by_text": len(id_matches), "warnings": warnings, "notes": notes}


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _same_question(a: Judgements, b: Judgements) -> dict[str, str]:
    """Return the ids of A by those of B, of answers whose id is on one side only and whose question has no other.

    That is: each side has one answer to the question, so that nobody has to guess which answers belong together.
    """
    a_texts, b_texts = ({answer: _fold(text) for answer, text in side.texts.items()} for side in (a, b))
    counters = [Counter(side.values()) for side in (a_texts, b_texts)]
    by_text = {text: answer for answer, text in a_texts.items() if text and answer not in b.outcomes}
    return {
        answer: by_text[text]
        for answer, text in sorted(b_texts.items())
        if text in by_text and answer not in a.outcomes and all(counts[text] == 1 for counts in counters)
    }


def _rename_answers(judgements: Judgements, ids: Mapping[str, str]) -> Judgements:
    """Return the judgements with other ids of answers."""

    def rename_keys(by_id: Mapping[str, _T]) -> dict[str, _T]:
        return {ids.get(answer, answer): value for answer, value in by_id.items()}

    return replace(
        judgements,
        outcomes=rename_keys(judgements.outcomes),
        scores=rename_keys(judgements.scores),
        question_keys=rename_keys(judgements.question_keys),
        texts=rename_keys(judgements.texts),
    )


def _notes(result: Mapping[str, Any]) -> Iterable[str]:
    """What a reader of the table needs to know: on which questions a metric is, and where interval and test differ."""
    partly: dict[tuple[int, int, int], list[str]] = {}
    for name, record in result["metrics"].items():
        counts = record["n"], record["own"]["a"]["n"], record["own"]["b"]["n"]
        if len(set(counts)) > 1:
            partly.setdefault(counts, []).append(name)
    for (n, n_a, n_b), names in partly.items():
        yield (
            f"{', '.join(names)}: over the {n:,} questions in which both have a value (A has one in {n_a:,}, "
            f"B in {n_b:,}); see `own` in the JSON for the values over each system's own questions"
        )
    if result["no_common"]:
        yield f"{', '.join(result['no_common'])}: not compared, because no question has a value in both"
    if names := contradictions({"A - B": result["difference"], **result["metrics"]}):
        yield f"{', '.join(names)}: {CONTRADICTION}"


CONTRADICTION = "the interval and p disagree on whether there is a difference; the interval is approximate, go by p"
_LEVEL = 0.05


def contradictions(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the differences whose `interval95` leaves out 0 though p is 0.05 or more, or the reverse."""
    return [
        name
        for name, record in records.items()
        if (record["p"] < _LEVEL) != (not record["interval95"][0] <= 0 <= record["interval95"][1])
    ]
