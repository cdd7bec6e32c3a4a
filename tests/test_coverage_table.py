"""The simulation of the intervals: its result, and that the page Limits shows it."""

import json
from pathlib import Path

import pytest

from autoais.base.io.jsonl import dumps
from scripts.coverage import LEVEL, SIZES, covers, exact_coverage, simulate, table, wilson

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "eval/results/coverage.json"


def test_the_page_shows_the_table_of_the_simulation() -> None:
    report = json.loads(RESULT.read_text())
    assert table(report) in (ROOT / "docs/limits.md").read_text()


def test_intervals_hold_the_truth_and_comparisons_find_nothing_where_nothing_is() -> None:
    report = json.loads(RESULT.read_text())
    low = {
        (name, n): value
        for group, rows in report["coverage"].items()
        if "before" not in group
        for name, row in rows.items()
        for n, value in row.items()
        if value < 0.93
    }
    assert all(int(n) <= 20 for _, n in low), low
    assert len(low) <= 4, low
    for name, rates in report["false_positives"].items():
        assert max(rate for metric, rate in rates.items() if metric != "any") <= 0.055, name


def test_exact_coverage_by_hand() -> None:
    # One question, right with .9: an interval that holds .9 only after a yes.
    assert exact_coverage(1, 0.9, lambda x, n: (0.5, 1.0) if x else (0.0, 0.5)) == 0.9
    assert wilson(826, 1157) == pytest.approx((0.6872, 0.7392), abs=5e-5)
    assert covers(0.5, (0.5, 0.6))
    assert not covers(0.5, (0.51, 0.6))
    assert not covers(0.5, None)
    assert LEVEL == 0.05
    assert max(SIZES) == 1000


@pytest.mark.slow
def test_a_simulation_in_small_is_the_same_each_time_also_if_it_was_stopped(tmp_path: Path) -> None:
    journal = tmp_path / "kept.jsonl"
    first = simulate(2, 1, keep=journal)
    rows = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(rows[: len(rows) // 2]))  # as if it had been stopped
    assert dumps(simulate(2, 1, keep=journal)) == dumps(first)
    assert len(journal.read_text().splitlines()) == len(rows)
    assert all(
        0 <= value <= 1 for rows in first["coverage"].values() for row in rows.values() for value in row.values()
    )
