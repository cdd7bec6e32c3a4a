"""Compares two systems question by question: paired bootstrap and McNemar's test (spec I5, E7)."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autoais.errors import FormatError, UserError
from autoais.io.jsonl import field, identifier, read_objects
from autoais.meta.agreement import McNemar, mcnemar, mcnemar_corrected, mcnemar_exact
from autoais.metrics.claims import all_yes
from autoais.metrics.rates import Rate
from autoais.scoring import NOT_APPLICABLE
from autoais.types import Verdict

RESAMPLES = 10_000
_MADE_BY = "judgements are made with: autoais score ANSWERS --out FILE"

Outcomes = Mapping[str, bool | None]


def read_judgements(path: Path) -> tuple[str, Outcomes]:
    """The judge, and whether each question's answer is attributable (every sentence is), from `score --out`.

    Sentences that claim nothing are left out; a question with no other has nothing said, which is a no.
    `FormatError` names line and field; `UserError` where the rows are not all by one judge, or there are none.
    """
    seen: set[tuple[str, int | None]] = set()
    outcomes: dict[str, list[bool | None]] = {}
    judge = None
    for where, row in read_objects(path):
        if "verdict" not in row:
            raise FormatError(f"{where}: field 'verdict' is missing; {_MADE_BY}")
        question, verdict = identifier(row, "id", where), field(row, "verdict", str, where)
        sentence = None if row.get("sentence") is None else field(row, "sentence", int, where)
        if (question, sentence) in seen:
            raise FormatError(f"{where}: sentence {sentence} of {question!r} occurs twice")
        seen.add((question, sentence))
        by = field(row, "judge", str, where)
        if judge is not None and by != judge:
            raise UserError(f"{where}: judged by {by!r}, the rows before by {judge!r}; score the file with one judge")
        judge = by
        listed = outcomes.setdefault(question, [])
        if verdict != NOT_APPLICABLE:
            listed.append(_ais(verdict, where))
    if judge is None:
        raise UserError(f"{path}: no judgements in it; {_MADE_BY}")
    return judge, {question: all_yes(listed) for question, listed in outcomes.items()}


def _ais(verdict: str, where: str) -> bool | None:
    try:
        return Verdict(verdict).ais
    except ValueError:
        names = ", ".join([*Verdict, NOT_APPLICABLE])
        raise FormatError(f"{where}: field 'verdict' should be one of {names}; found {verdict!r}") from None


def compare(a: Outcomes, b: Outcomes) -> dict[str, Any]:
    """A against B over the questions of either, as fractions; a question that one did not answer is a no there.

    `difference` is A - B of the floors (undecided taken as no, so that both are over the same questions), with a
    95 % interval and a two-sided p from a paired bootstrap over questions. `discordant` counts the questions that
    only A, or only B, gets right. Both forms of McNemar's test are given, and which of them is meant (E7).
    """
    questions = sorted(a.keys() | b.keys())
    pairs = [(a.get(question, False), b.get(question, False)) for question in questions]
    only_a, only_b = (
        sum(ours is True and theirs is not True for ours, theirs in side) for side in (pairs, _swap(pairs))
    )
    both = sum(ours is True and theirs is True for ours, theirs in pairs)
    test = mcnemar(only_a, only_b)
    return {
        "rule": "an answer is attributable if every sentence is, to all it cites together",
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
    """Questions drawn with replacement: a draw is its numbers of wins, of losses and of ties (a multinomial)."""
    import numpy as np

    rng = np.random.default_rng(seed)
    wins, losses, _ = rng.multinomial(n, np.array([only_a, only_b, n - only_a - only_b]) / n, RESAMPLES).T
    differences = (wins - losses) / n
    low, high = np.percentile(differences, [2.5, 97.5])
    # The observed sample counts as one draw, so that p is never 0.
    tail = 1 + min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return {
        "value": (only_a - only_b) / n,
        "interval95": [float(low), float(high)],
        "p": min(1.0, 2 * tail / (RESAMPLES + 1)),
        "method": "paired bootstrap over questions, undecided taken as no",
        "resamples": RESAMPLES,
        "seed": seed,
    }


def compare_files(a: Path, b: Path) -> dict[str, Any]:
    """`compare` on two files of judgements; `UserError` where they are by different judges."""
    (judge_a, ours), (judge_b, theirs) = read_judgements(a), read_judgements(b)
    if judge_a != judge_b:
        raise UserError(f"{a} was judged by {judge_a!r}, {b} by {judge_b!r}; score both with one judge to compare")
    result = compare(ours, theirs)
    notes = [
        f"{result[f'only_in_{side}']:,} questions are only in {path.name}; in the other they count as not attributable"
        for side, path in (("a", a), ("b", b))
        if result[f"only_in_{side}"]
    ]
    return {"judge": judge_a, **result, "notes": notes}
