"""Comparison of two systems question by question, on every metric: tests, intervals and Holm's correction."""

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
from autoais.metrics.intervals import Estimate, number_of, together
from autoais.metrics.mcnemar import McNemar, mcnemar_corrected, mcnemar_exact
from autoais.metrics.paired import Pairs
from autoais.metrics.rates import Rate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from autoais.metrics.intervals import Floats

MCNEMAR = "McNemar's exact test"
RANDOMISATION = "randomisation test"
_MADE_BY = "write judgements with: autoais score ANSWERS --out FILE"
_POOLED = ("sentences", "hagrid_sentences", "trec_recall", "trec_precision")
_ABOUT = ("question", "text", "passages", "short_answer")  # fields of the scores that are none
_SHORT = ("em", "f1")  # they need short answers
_WITH_F1 = ("citation", "liu")  # the metrics for which `score` prints F1

_T = TypeVar("_T")
Outcomes = Mapping[str, bool | None]
Scores = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Judgements:
    """The judgements of one system.

    All are by the id of an answer. `outcomes` says whether it is attributable (None: undecided). `scores` holds, by
    metric, the sum of the scores of its items and their number (`Summary.add`). `asked` is the key of its question
    (`JudgedAnswer.asked`): answers with the same key are not independent; an answer without one has a question of its
    own. `texts` are the texts of the questions, where known. `depth` is the length of the longest list of passages.
    """

    judge: str
    outcomes: Outcomes
    scores: Mapping[str, Scores] = field(default_factory=dict)
    depth: int = 0
    asked: Mapping[str, str] = field(default_factory=dict)
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
    seen: set[tuple[str, int | None]] = set()
    outcomes: dict[str, list[bool | None]] = {}
    wholes: dict[str, bool | None] = {}  # of answers that people rated as one
    scores: dict[str, dict[str, tuple[float, float]]] = {}
    asked: dict[str, str] = {}
    texts: dict[str, str] = {}
    judge, depth, short = None, 0, False
    for where, row in rows:
        if "verdict" not in row:
            raise FormatError(f"{where}: field 'verdict' is missing; {_MADE_BY}")
        question, verdict = identifier(row, "id", where), field_of(row, "verdict", str, where)
        sentence = None if row.get("sentence") is None else field_of(row, "sentence", int, where)
        if (question, sentence) in seen:
            raise FormatError(
                f"{where}: sentence {sentence} of {question!r} occurs twice; every answer needs its own id"
            )
        seen.add((question, sentence))
        by = field_of(row, "judge", str, where)
        if judge is not None and by != judge:
            raise UserError(f"{where}: judged by {by!r}, earlier rows by {judge!r}; score the file with one judge")
        judge = by
        if "answer" in row:
            wholes[question] = _ais(field_of(row, "answer", str, where), where)
        listed = outcomes.setdefault(question, [])
        if verdict != NOT_APPLICABLE:
            listed.append(_ais(verdict, where))
        if "scores" in row:
            given = dict(field_of(row, "scores", dict, where))
            depth = max(depth, field_of(given, "passages", int, where))
            short |= field_of(given, "short_answer", bool, where)
            if "question" in given:
                asked[question] = field_of(given, "question", str, where)
                texts[question] = field_of(given, "text" if "text" in given else "question", str, where)
            scores[question] = {key: _score(given, key, where) for key in given if key not in _ABOUT}
    if judge is None:
        raise UserError(f"{name}: no judgements in it; {_MADE_BY}")
    if not short:
        scores = {q: {key: pair for key, pair in row.items() if key not in _SHORT} for q, row in scores.items()}
    ais = {question: all_yes(listed) for question, listed in outcomes.items()} | wholes
    return Judgements(judge, ais, scores if scores.keys() == ais.keys() else {}, depth, asked, texts)


def _score(scores: Mapping[str, Any], name: str, where: str) -> tuple[float, float]:
    pair = scores[name]
    if isinstance(pair, list | tuple) and len(pair) == 2 and all(type(one) in (int, float) for one in pair):
        gained, items = pair
        if 0 <= gained <= items < float("inf"):
            return float(gained), float(items)
    raise FormatError(f"{where}: field 'scores', {name!r} should be two numbers, a sum of scores and their count")


def _ais(verdict: str, where: str) -> bool | None:
    try:
        return Verdict(verdict).ais
    except ValueError:
        names = ", ".join([*Verdict, NOT_APPLICABLE])
        raise FormatError(f"{where}: field 'verdict' should be one of {names}; found {verdict!r}") from None


def compare(
    a: Outcomes,
    b: Outcomes,
    scores: tuple[Mapping[str, Scores], Mapping[str, Scores]] = ({}, {}),
    *,
    depth: int = 0,
    metrics: Sequence[str] | None = None,
    asked: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> dict[str, Any]:
    """Compare A and B over the answers of either, matched by id; what one system did not answer is a no.

    `a` and `b` are rates (fractions). `difference` is A - B of the floors (undecided counts as no, so that both are
    over the same answers), with a 95 % interval and the p of `method`. `table` counts the answers that both, only A,
    only B or neither get right. `mcnemar` holds both variants of McNemar's test. `metrics` has the same difference for
    every metric of both `scores` (those named, if any are), and `p_holm` is corrected for their number. A metric is
    over the `n` questions in which both systems have a value of it: a system that says nothing has no sentences.
    `own` has the value and the number of questions of each system, as `score` gives them. `no_common` names the metrics
    that are left out because no question has a value in both.

    Intervals and tests are over questions: `asked` has the question of each answer, by default one of its own. Yes/no
    outcomes have McNemar's exact test if each question has one answer; everything else is tested by randomisation of
    the sums of each question. Raises `UserError` without any answer.
    """
    answers = sorted(a.keys() | b.keys())
    if not answers:
        raise UserError("there is nothing to compare: neither side has an answer")
    units = _units(answers, *asked)
    questions = int(units.max()) + 1 if len(units) else 0
    pairs = [(a.get(answer, False), b.get(answer, False)) for answer in answers]
    only_a = sum(ours is True and theirs is not True for ours, theirs in pairs)
    only_b = sum(theirs is True and ours is not True for ours, theirs in pairs)
    both = sum(ours is True and theirs is True for ours, theirs in pairs)
    columns = [_summed(units, [(float(pair[side] is True), 1.0) for pair in pairs]) for side in (0, 1)]
    (difference,) = _tested([_Metric(*columns)])
    tested, no_common = _metrics(answers, units, scores, depth, metrics)
    return {
        "rule": "an answer is attributable if every sentence is attributable to its citations together",
        "questions": questions,
        "answers": len(answers),
        "only_in_a": len(a.keys() - b.keys()),
        "only_in_b": len(b.keys() - a.keys()),
        "a": Rate.of((ours for ours, _ in pairs), units.tolist()).record(),
        "b": Rate.of((theirs for _, theirs in pairs), units.tolist()).record(),
        "difference": {name: value for name, value in difference.items() if name not in ("a", "b", "n", "own")},
        "table": {"both": both, "only_a": only_a, "only_b": only_b, "neither": len(pairs) - both - only_a - only_b},
        "mcnemar": {
            "exact": _test(mcnemar_exact(only_a, only_b)),
            "corrected": _test(mcnemar_corrected(only_a, only_b)),
        }
        if questions == len(answers)
        else {"reason": "some questions have several answers, which are not independent"},
        "metrics": tested,
        "no_common": no_common,
    }


def _units(answers: Sequence[str], *asked: Mapping[str, str]) -> "NDArray[np.int64]":
    """Number the questions of the answers; answers are of one question if either side has the same key for them."""
    import numpy as np

    keys = [[number_of(f"asked {side[one]}" if one in side else f"id {one}") for one in answers] for side in asked]
    return together(*(np.array(side, np.int64) for side in keys))


def _summed(units: "NDArray[np.int64]", rows: "Sequence[tuple[float, float]] | Floats") -> "Floats":
    """Sum the rows (answers x 2) of each question."""
    import numpy as np

    return np.stack(intervals.by_question(units, *np.array(rows, np.float64).reshape(-1, 2).T), axis=1)


def _test(test: McNemar) -> dict[str, Any]:
    record = {name: value for name, value in asdict(test).items() if name in ("variant", "statistic", "p")}
    return record if test.p is not None else record | {"reason": "the systems differ on no question"}


def difference_of_means(ours: "ArrayLike", theirs: "ArrayLike") -> dict[str, Any]:
    """Return the mean of ours - theirs over the same questions, with a 95 % interval and a two-sided p.

    McNemar's exact test for values 0 and 1, else a randomisation test. `better` and `worse` count questions.
    """
    found, changes = _means(ours, theirs)
    if "p" not in found:
        import numpy as np

        ((p, swaps),) = paired.p_values([Pairs(changes[:, None], np.zeros((len(changes), 1)), paired.first_sum)])
        found |= {"p": p, "method": RANDOMISATION, "swaps": swaps}
    return found


def _means(ours: "ArrayLike", theirs: "ArrayLike") -> "tuple[dict[str, Any], Floats]":
    """The difference of two means, without p unless the values are 0 and 1; and that of each question."""
    import numpy as np

    # Sorted, as the order of the questions must not matter; rounded, so that equal values cancel out.
    changes = np.sort(np.round(np.array(ours, np.float64) - np.array(theirs, np.float64), 12))
    bound = max(1.0, float(np.abs(changes).max()))
    better, worse = int((changes > 0).sum()), int((changes < 0).sum())
    one = intervals.mean(changes, -bound, bound)
    found = {"value": one.value, "interval95": list(one.interval), "better": better, "worse": worse}
    if np.isin(changes, (-1.0, 0.0, 1.0)).all():
        # Of graded values, the same computation is the randomisation test: each change is a whole one, or none.
        graded = not (np.isin(ours, (0.0, 1.0)).all() and np.isin(theirs, (0.0, 1.0)).all())
        method = RANDOMISATION if graded else MCNEMAR
        found |= {"p": mcnemar_exact(better, worse).p, "method": method, "swaps": None}
    return found, changes


def _metrics(
    answers: Sequence[str],
    units: "NDArray[np.int64]",
    scores: tuple[Mapping[str, Scores], Mapping[str, Scores]],
    depth: int,
    wanted: Sequence[str] | None,
) -> tuple[dict[str, Any], list[str]]:
    """The differences of all metrics that both systems have, and the metrics of which no question has both values."""
    import numpy as np

    ours, theirs = ({name for row in side.values() for name in row} for side in scores)
    names = [name for name in _in_order(scores[0]) if name in ours & theirs and _deep_enough(name, depth)]
    sides = (scores, scores[::-1])
    columns = {name: [_summed(units, _columns(name, answers, *both)) for both in sides] for name in names}
    found: dict[str, _Metric] = {}
    for name, (a, b) in columns.items():
        found[name] = _Metric(a, b)
        recall = name.replace("precision", "recall")
        if name != recall and name.startswith(_WITH_F1) and recall in columns:
            both = [np.concatenate(side, axis=1) for side in zip(columns[recall], (a, b), strict=True)]
            found[name.replace("precision", "f1")] = _Metric(both[0], both[1])
    if wanted is not None:
        if missing := [name for name in wanted if name not in found]:
            raise UserError(f"no metric {missing[0]!r} in both; there are: {', '.join(found) or 'none'}")
        found = {name: found[name] for name in wanted}
    found = {name: one for name, one in found.items() if None not in one.own}
    kept = {name: one for name, one in found.items() if None not in one.values}
    records = dict(zip(kept, _tested(list(kept.values())), strict=True))
    corrected = paired.holm([record["p"] for record in records.values()])
    tested = {name: record | {"p_holm": p} for (name, record), p in zip(records.items(), corrected, strict=True)}
    return tested, [name for name in found if name not in kept]


class _Metric:
    """A metric of both systems: a ratio of two sums over questions, or the F1 of two ratios.

    `a` and `b` (questions x 2 or x 4) are what each question adds to the sums. `own` are the values of all questions
    of a system; `values` and `pairs` are over the questions in which both have a value (`paired.both_sides`).
    """

    def __init__(self, a: "Floats", b: "Floats") -> None:
        self.own = _value(a), _value(b)
        self.counts = _counted(a), _counted(b)
        a, b = paired.both_sides(a, b)
        self.values, self.n = (_value(a), _value(b)), _counted(a)
        self.pairs = Pairs(a, b, paired.ratio_of_sums if a.shape[1] == 2 else paired.f1_of_sums)

    def record(self) -> dict[str, Any]:
        """The difference; without p for means and ratios that are not of yes/no outcomes."""
        ours, theirs = self.values
        assert ours is not None
        assert theirs is not None
        values: dict[str, Any] = {"a": ours.value, "b": theirs.value, "n": self.n}
        values["own"] = {
            side: {"value": one.value, "n": n}
            for side, one, n in zip("ab", self.own, self.counts, strict=True)
            if one is not None
        }
        a, b = self.pairs.a, self.pairs.b
        counted = a[:, 1] > 0
        if a.shape[1] == 2 and (a[counted, 1] == 1).all() and (b[counted, 1] == 1).all():  # a mean over questions
            return values | _means(a[counted, 0], b[counted, 0])[0]
        found = intervals.difference(ours, theirs)
        return values | {"value": found.value, "interval95": list(found.interval)}


def _value(columns: "Floats") -> Estimate | None:
    """The ratio or the F1 of the sums of columns; None if there is nothing to divide by."""
    ratios = [intervals.ratio(*columns[:, place : place + 2].T) for place in range(0, columns.shape[1], 2)]
    return ratios[0] if len(ratios) == 1 else intervals.harmonic_mean(*ratios)


def _counted(columns: "Floats") -> int:
    """The number of questions with items."""
    return int((columns[:, 1::2] > 0).any(axis=1).sum())


def _tested(metrics: "Sequence[_Metric]") -> list[dict[str, Any]]:
    """The records of metrics that both systems have, with p; those tested by randomisation share their swaps."""
    records = [one.record() for one in metrics]
    open_ones = [place for place, record in enumerate(records) if "p" not in record]
    for place, (p, swaps) in zip(open_ones, paired.p_values([metrics[one].pairs for one in open_ones]), strict=True):
        records[place] |= {"p": p, "method": RANDOMISATION, "swaps": swaps}
    return records


def _in_order(scores: Mapping[str, Scores]) -> list[str]:
    return list(dict.fromkeys(name for question in sorted(scores) for name in scores[question]))


def _deep_enough(name: str, depth: int) -> bool:
    _, at, k = name.partition("@")
    return not at or (
        k.isdecimal() and len(k) < 10 and int(k) <= depth
    )  # beyond the longest list, the value would only repeat


def _columns(name: str, answers: Sequence[str], ours: Mapping[str, Scores], others: Mapping[str, Scores]) -> "Floats":
    """Sums of scores and counts of items (answers x 2); an answer that is missing has the items of the other side.

    Pooled metrics, and means over answers (not questions), have no item there.
    """
    import numpy as np

    nothing = (0.0, 0.0)
    counts = name not in _POOLED and not name.startswith("liu_") and not name.endswith("_strict")
    return np.array(
        [
            ours[answer].get(name, nothing)
            if answer in ours
            else (0.0, others[answer].get(name, nothing)[1] if counts else 0.0)
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
        ours, theirs = a.texts[answer], b.texts[answer]
        known = "" not in (ours, theirs) and answer not in (ours, theirs)  # the id stands for a text that is not known
        if known and _folded(ours) != _folded(theirs):
            raise UserError(
                f"answer {answer!r}: its question is {ours[:60]!r} in {name_a}, {theirs[:60]!r} in {name_b}; "
                "do they belong together?"
            )
    matched = _same_question(a, b)
    b = _renamed(b, matched)
    if not a.outcomes.keys() & b.outcomes.keys():
        raise UserError(
            f"{name_a} and {name_b} have no answer in common: neither an id (such as {min(a.outcomes)!r} and "
            f"{min(b.outcomes)!r}) nor the text of a question with one answer in each; score both with the same "
            "questions (--questions)"
        )
    scores = (a.scores, b.scores) if a.scores and b.scores else ({}, {})
    depth, asked = max(a.depth, b.depth), (a.asked, b.asked)
    result = compare(a.outcomes, b.outcomes, scores, depth=depth, metrics=metrics, asked=asked)
    alone = (a.outcomes.keys() - b.outcomes.keys(), b.outcomes.keys() - a.outcomes.keys())
    warnings = [
        f"{'1 answer is' if len(ids) == 1 else f'{len(ids):,} answers are'} only in {Path(name).name} (such as "
        f"{min(ids)!r}) and counted as not attributable in the other"
        for ids, name in zip(alone, (name_a, name_b), strict=True)
        if ids
    ]
    notes = []
    if matched:
        theirs, ours = next(iter(matched.items()))
        notes.append(
            f"ids differ: {'1 answer was' if len(matched) == 1 else f'{len(matched):,} answers were'} matched by the "
            f"text of the question (such as {ours!r} in A and {theirs!r} in B)"
        )
    for one, name in ((a, name_a), (b, name_b)):
        if not one.scores:
            notes.append(f"{Path(name).name} has no scores of other metrics; score it again with this version")
    notes += _notes(result)
    return {"judge": a.judge, **result, "matched_by_text": len(matched), "warnings": warnings, "notes": notes}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _same_question(a: Judgements, b: Judgements) -> dict[str, str]:
    """Return the ids of A by those of B, of answers whose id is on one side only and whose question has no other.

    That is: each side has one answer to the question, so that nobody has to guess which answers belong together.
    """
    ours, theirs = ({answer: _folded(text) for answer, text in side.texts.items()} for side in (a, b))
    times = [Counter(side.values()) for side in (ours, theirs)]
    by_text = {text: answer for answer, text in ours.items() if text and answer not in b.outcomes}
    return {
        answer: by_text[text]
        for answer, text in sorted(theirs.items())
        if text in by_text and answer not in a.outcomes and all(counted[text] == 1 for counted in times)
    }


def _renamed(one: Judgements, ids: Mapping[str, str]) -> Judgements:
    """Return the judgements with other ids of answers."""

    def named(by_id: Mapping[str, _T]) -> dict[str, _T]:
        return {ids.get(answer, answer): value for answer, value in by_id.items()}

    return replace(
        one,
        outcomes=named(one.outcomes),
        scores=named(one.scores),
        asked=named(one.asked),
        texts=named(one.texts),
    )


def _notes(result: Mapping[str, Any]) -> Iterable[str]:
    """What a reader of the table needs to know: on which questions a metric is, and where interval and test differ."""
    partly: dict[tuple[int, int, int], list[str]] = {}
    for name, one in result["metrics"].items():
        counts = one["n"], one["own"]["a"]["n"], one["own"]["b"]["n"]
        if len(set(counts)) > 1:
            partly.setdefault(counts, []).append(name)
    for (n, ours, theirs), names in partly.items():
        yield (
            f"{', '.join(names)}: over the {n:,} questions in which both have a value (A has one in {ours:,}, "
            f"B in {theirs:,}); see `own` in the JSON for the values over each system's own questions"
        )
    if result["no_common"]:
        yield f"{', '.join(result['no_common'])}: not compared, because no question has a value in both"
    if names := contradictions({"A - B": result["difference"], **result["metrics"]}):
        yield f"{', '.join(names)}: {CONTRADICTION}"


CONTRADICTION = "the interval and p disagree on whether there is a difference; the interval is approximate, go by p"
_LEVEL = 0.05


def contradictions(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the differences whose `interval95` leaves out 0 though p is 0.05 or more, or the reverse."""
    return [
        name
        for name, one in found.items()
        if (one["p"] < _LEVEL) != (not one["interval95"][0] <= 0 <= one["interval95"][1])
    ]
