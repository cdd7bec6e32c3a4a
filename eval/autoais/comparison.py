"""Comparison of two systems question by question: paired bootstrap and McNemar's test."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autoais.errors import FormatError, UserError
from autoais.io.jsonl import field, identifier, read_objects
from autoais.judged import NOT_APPLICABLE
from autoais.meta.agreement import McNemar, mcnemar, mcnemar_corrected, mcnemar_exact
from autoais.metrics.bootstrap import PAIRED_RESAMPLES, interval95, paired_draws_of_outcomes, two_sided_p
from autoais.metrics.claims import all_yes
from autoais.metrics.rates import Rate
from autoais.types import Verdict

_MADE_BY = "write judgements with: autoais score ANSWERS --out FILE"

Outcomes = Mapping[str, bool | None]


def read_judgements(path: Path) -> tuple[str, Outcomes]:
    """Return the judge's name and, by question, whether the answer is attributable, from a file of `score --out`.

    An answer is attributable if every sentence is. Sentences that claim nothing are left out; a question without
    other sentences is a no. Raises `FormatError` for a broken row, `UserError` for several judges or an empty file.
    """
    return _outcomes(read_objects(path), str(path))


def judgements_of(rows: Iterable[Mapping[str, Any]], name: str) -> tuple[str, Outcomes]:
    """As `read_judgements`, from rows in memory (`Report.judgements`); `name` replaces the path in errors."""
    return _outcomes(((f"{name}, row {number}", row) for number, row in enumerate(rows, 1)), name)


def _outcomes(rows: Iterable[tuple[str, Mapping[str, Any]]], name: str) -> tuple[str, Outcomes]:
    seen: set[tuple[str, int | None]] = set()
    outcomes: dict[str, list[bool | None]] = {}
    judge = None
    for where, row in rows:
        if "verdict" not in row:
            raise FormatError(f"{where}: field 'verdict' is missing; {_MADE_BY}")
        question, verdict = identifier(row, "id", where), field(row, "verdict", str, where)
        sentence = None if row.get("sentence") is None else field(row, "sentence", int, where)
        if (question, sentence) in seen:
            raise FormatError(
                f"{where}: sentence {sentence} of {question!r} occurs twice; every answer needs its own id"
            )
        seen.add((question, sentence))
        by = field(row, "judge", str, where)
        if judge is not None and by != judge:
            raise UserError(f"{where}: judged by {by!r}, earlier rows by {judge!r}; score the file with one judge")
        judge = by
        listed = outcomes.setdefault(question, [])
        if verdict != NOT_APPLICABLE:
            listed.append(_ais(verdict, where))
    if judge is None:
        raise UserError(f"{name}: no judgements in it; {_MADE_BY}")
    return judge, {question: all_yes(listed) for question, listed in outcomes.items()}


def _ais(verdict: str, where: str) -> bool | None:
    try:
        return Verdict(verdict).ais
    except ValueError:
        names = ", ".join([*Verdict, NOT_APPLICABLE])
        raise FormatError(f"{where}: field 'verdict' should be one of {names}; found {verdict!r}") from None


def compare(a: Outcomes, b: Outcomes) -> dict[str, Any]:
    """Compare A and B over the questions of either; a question that a system did not answer is a no.

    `a` and `b` are rates (fractions). `difference` is A - B of the floors (undecided counts as no, so that both are
    over the same questions), with a 95 % interval and a two-sided p from a paired bootstrap over questions. `table`
    counts the questions that both, only A, only B or neither get right. `mcnemar` holds both variants of McNemar's
    test; `used` names the one to report.
    """
    questions = sorted(a.keys() | b.keys())
    pairs = [(a.get(question, False), b.get(question, False)) for question in questions]
    only_a, only_b = (
        sum(ours is True and theirs is not True for ours, theirs in side) for side in (pairs, _swap(pairs))
    )
    both = sum(ours is True and theirs is True for ours, theirs in pairs)
    test = mcnemar(only_a, only_b)
    return {
        "rule": "an answer is attributable if every sentence is attributable to its citations together",
        "questions": len(questions),
        "only_in_a": len(a.keys() - b.keys()),
        "only_in_b": len(b.keys() - a.keys()),
        "a": Rate.of(ours for ours, _ in pairs).record(),
        "b": Rate.of(theirs for _, theirs in pairs).record(),
        "difference": _bootstrap(only_a, only_b, len(questions)),
        "table": {"both": both, "only_a": only_a, "only_b": only_b, "neither": len(pairs) - both - only_a - only_b},
        "mcnemar": {
            "used": test.variant,
            "p": test.p,
            "exact": _test(mcnemar_exact(only_a, only_b)),
            "corrected": _test(mcnemar_corrected(only_a, only_b)),
        },
    }


def _swap(pairs: Iterable[tuple[bool | None, bool | None]]) -> list[tuple[bool | None, bool | None]]:
    return [(theirs, ours) for ours, theirs in pairs]


def _test(test: McNemar) -> dict[str, Any]:
    record = {name: value for name, value in asdict(test).items() if name in ("variant", "statistic", "p")}
    return record if test.p is not None else record | {"reason": "the systems differ on no question"}


def _bootstrap(only_a: int, only_b: int, n: int, *, seed: int = 0) -> dict[str, Any]:
    draws = paired_draws_of_outcomes(only_a, only_b, n, seed=seed)
    low, high = interval95(draws) or (0.0, 0.0)
    return {
        "value": (only_a - only_b) / n,
        "interval95": [low, high],
        "p": two_sided_p(draws),
        "method": "paired bootstrap over questions, undecided counted as no",
        "resamples": PAIRED_RESAMPLES,
        "seed": seed,
    }


def compare_files(a: Path, b: Path) -> dict[str, Any]:
    """Compare two files of judgements; raises `UserError` if their judges differ."""
    return compare_judgements(read_judgements(a), read_judgements(b), str(a), str(b))


def compare_judgements(a: tuple[str, Outcomes], b: tuple[str, Outcomes], name_a: str, name_b: str) -> dict[str, Any]:
    """Compare two results of `read_judgements`; raises `UserError` if their judges differ."""
    (judge_a, ours), (judge_b, theirs) = a, b
    if judge_a != judge_b:
        raise UserError(
            f"{name_a} was judged by {judge_a!r}, {name_b} by {judge_b!r}; score both with one judge to compare"
        )
    result = compare(ours, theirs)
    notes = [
        f"{result[f'only_in_{side}']:,} questions are only in {Path(name).name}; in the other they count as not "
        "attributable"
        for side, name in (("a", name_a), ("b", name_b))
        if result[f"only_in_{side}"]
    ]
    return {"judge": judge_a, **result, "notes": notes}
