"""The AutoAIS that Attributed QA's ratings come with, as a judge."""

import csv
from pathlib import Path

import pytest

import autoais
from autoais.base.types import CONTRADICT
from autoais.judges import open_judge
from tests.conftest import Command, one_line_error

COLUMNS = "system_name question answer attribution passage human_rating auto_ais nli_score".split()


def ratings(path: Path, *rows: tuple[str, str, str, str, str, str]) -> Path:
    """Rows of system, question, answer, human_rating, auto_ais and nli_score; each cites a passage of its own."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for system, question, answer, human, *auto in rows:
            writer.writerow([system, question, answer, f"u#{question}", f"Title: T\n\nOn {question}.", human, *auto])
    return path


def test_the_published_correlation_needs_no_model(tmp_path: Path) -> None:
    """Shares of four systems by people and by AutoAIS, over four questions: 1, 3/4, 1/2, 0 and 1, 1/2, 3/4, 1/4."""
    human = {"RTR-1": "YYYY", "RTR-2": "YYYN", "Post-1": "YYNN", "Post-4": "NNNN"}
    auto = {"RTR-1": "YYYY", "RTR-2": "YYNN", "Post-1": "YYNY", "Post-4": "NNNY"}
    rows = [
        (system, f"why {n}", f"as {system} says", human[system][n], auto[system][n], "0.75" if n else "0.9814687")
        for system in human
        for n in range(4)
    ]
    path = ratings(tmp_path / "ratings.csv", *rows)
    found = autoais.evaluate_judge(path, f"released:{path}")["sets"]["AttributedQA"]
    # Of the six pairs of systems five are in the same order.
    assert found["systems"]["kendall_tau_b"]["value"] == pytest.approx(4 / 6, abs=1e-6)
    shares = {one["system"]: (one["human"], one["judge"]) for one in found["systems"]["systems"]}
    assert shares == {"RTR-1": (1.0, 1.0), "RTR-2": (0.75, 0.5), "Post-1": (0.5, 0.75), "Post-4": (0.0, 0.25)}
    means = 9 / 16, 5 / 8
    products = sum((h - means[0]) * (j - means[1]) for h, j in shares.values())
    squares = [sum((one[side] - means[side]) ** 2 for one in shares.values()) for side in (0, 1)]
    expected = products / (squares[0] * squares[1]) ** 0.5
    assert found["systems"]["pearson"]["value"] == pytest.approx(expected, abs=1e-6)
    assert autoais.score(path, judge=f"released:{path}").metrics["autoais"].value == pytest.approx(10 / 16)


def test_scores_without_a_verdict_are_cut_at_a_half_and_others_are_undecided(tmp_path: Path) -> None:
    path = ratings(
        tmp_path / "r.csv",
        ("a", "one", "1", "Y", "", "0.5"),
        ("a", "two", "2", "Y", "", "0.51"),
        ("a", "three", "3", "Y", "", ""),
        ("a", "four", "4", "Y", "Y", "0.9"),
        ("b", "four", "4", "Y", "N", "0.1"),
    )
    rows = autoais.score(path, judge=f"released:{path}", metrics="none").judgements
    assert [row["verdict"] for row in rows] == ["not_attributable", "attributable", *["undecided"] * 3]
    assert [row["reason"] for row in rows[2:]] == ["the file has no verdict on this pair", CONTRADICT, CONTRADICT]
    assert rows[1]["probability"] == 0.51


def test_what_has_no_verdicts_is_refused(tmp_path: Path, autoais: Command) -> None:
    path = ratings(tmp_path / "r.csv", ("a", "one", "1", "Y", "", ""))
    one_line_error(autoais("evaluate-judge", path, "--judge", f"released:{path}"), "no row has a verdict of AutoAIS")
    bad = ratings(tmp_path / "b.csv", ("a", "one", "1", "Y", "Y", "7"))
    one_line_error(autoais("evaluate-judge", path, "--judge", f"released:{bad}"), "'a: one'", "from 0 to 1, found '7'")
    gone = tmp_path / "gone.csv"
    one_line_error(autoais("evaluate-judge", path, "--judge", f"released:{gone}"), "there is no file")
    other = tmp_path / "o.jsonl"
    other.write_text('{"id": "1", "question": "q", "output": "a"}\n', "utf-8")
    one_line_error(
        autoais("evaluate-judge", path, "--judge", f"released:{other}"), "is answers; released: reads aqa-ratings"
    )
    one_line_error(autoais("evaluate-judge", path, "--judge", "released"), "released:<file>")
    name = open_judge(f"released:{ratings(path, ('a', 'one', '1', 'Y', 'Y', ''))}").name
    assert name.startswith("released@")
