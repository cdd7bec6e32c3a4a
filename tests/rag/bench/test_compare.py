"""Comparisons of runs: letters say what the tests say, and numbers of two metrics never share a column."""

import math
import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, read_objects, write_atomic
from autoais.metrics.paired import holm
from rag.bench.compare import compare_runs, compare_values, letters, smallest_difference
from rag.bench.items import read_items, write_items
from rag.commands.display_bench import show_comparison
from tests.conftest import present
from tests.rag.bench.folders import edit, make_run


@given(
    st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.sampled_from([*combinations(range(8), 2)]))))
)
def test_two_systems_share_a_letter_if_and_only_if_they_do_not_differ(case: tuple[int, set[tuple[int, int]]]) -> None:
    n, pairs = case
    names = [f"s{number}" for number in range(n)]
    different = {(names[a], names[b]) for a, b in pairs if b < n}
    given_letters = letters(names, different)
    assert list(given_letters) == names
    assert "a" in given_letters[names[0]]
    for a, b in combinations(names, 2):
        assert bool(set(given_letters[a]) & set(given_letters[b])) == ((a, b) not in different)


def test_letters_of_piephos_kind() -> None:
    assert letters("ABCD", [("A", "C"), ("A", "D"), ("B", "D")]) == {"A": "a", "B": "ab", "C": "bc", "D": "c"}
    assert letters("ABC", []) == {"A": "a", "B": "a", "C": "a"}
    assert letters("ABC", [("B", "A"), ("C", "A"), ("C", "B")]) == {"A": "a", "B": "b", "C": "c"}


@pytest.mark.slow
@pytest.mark.parametrize("graded", [False, True])
def test_equal_systems_are_told_apart_in_at_most_one_of_twenty_runs(graded: bool) -> None:
    rng, apart = random.Random(1), 0
    for _ in range(150):
        hard = [rng.random() for _ in range(60)]  # for all four systems

        def system(hard: list[float] = hard) -> list[float]:
            return [rng.random() * p if graded else float(rng.random() < p) for p in hard]

        found = compare_values({name: system() for name in "ABCD"})
        apart += len(set(found["letters"].values())) > 1
    assert apart / 150 <= 0.055 + 1.64 * math.sqrt(0.05 * 0.95 / 150)


def test_a_clearly_better_system_has_a_letter_of_its_own() -> None:
    rng = random.Random(2)
    good, *others = ([float(rng.random() < p) for _ in range(100)] for p in (0.9, 0.5, 0.5))
    found = compare_values({"good": good, "one": others[0], "other": others[1]})
    assert found["letters"] == {"good": "a", "one": "b", "other": "b"}
    assert found["n"] == 100


def test_the_smallest_difference_has_the_power_that_it_says() -> None:
    changes = [1.0] * 60 + [-1.0] * 40 + [0.0] * 400
    found = present(smallest_difference(changes))
    share, z = 0.2, NormalDist()
    reached = (found * math.sqrt(500) - z.inv_cdf(0.975) * math.sqrt(share)) / math.sqrt(share - found**2)
    assert z.cdf(reached) == pytest.approx(0.8, abs=1e-6)
    # Simulated: outcomes with that difference and that share of changes, McNemar's test with its normal approximation.
    rng, hits = random.Random(0), 0
    for _ in range(2000):
        draws = rng.choices((1, -1, 0), [(share + found) / 2, (share - found) / 2, 1 - share], k=500)
        better, worse = draws.count(1), draws.count(-1)
        hits += abs(better - worse) / math.sqrt(better + worse) > z.inv_cdf(0.975)
    assert 0.77 < hits / 2000 < 0.83


def test_the_smallest_difference_grows_with_the_number_of_systems_and_falls_with_n() -> None:
    changes = [1.0, -1.0, 0.0, 0.0, 0.0] * 20
    two, five = smallest_difference(changes), smallest_difference(changes, 5)
    more = smallest_difference(changes * 4)
    assert two is not None
    assert five is not None
    assert more is not None
    assert more < two < five
    assert smallest_difference([0.0] * 10) is None
    assert smallest_difference([1.0, -1.0]) is None  # two questions show nothing
    means = present(smallest_difference([0.5, -0.25, 0.125] * 50))
    assert 0 < means < 1


def test_systems_of_two_runs_are_compared(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", n=300, systems=["reader"], hostile=False, words=5)
    b = make_run(tmp_path / "b", n=300, systems=["extractive", "llm"], hostile=False, words=5)
    (group,) = compare_runs(a, b)["groups"]
    assert list(group["systems"]) == ["reader", "extractive", "llm"]
    metric = group["metrics"]["right_attributed"]
    items = {label: read_items(run / label / "items.jsonl") for run, label in ((a, "reader"), (b, "llm"))}
    wins = {label: {i.id for i in listed if i.way == "right_attributed"} for label, listed in items.items()}
    pair = next(one for one in metric["pairs"] if (one["a"], one["b"]) == ("reader", "llm"))
    assert pair["better"] == len(wins["reader"] - wins["llm"])
    assert pair["worse"] == len(wins["llm"] - wins["reader"])
    assert pair["value"] == pytest.approx((len(wins["reader"]) - len(wins["llm"])) / 300)
    assert [one["p_holm"] for one in metric["pairs"]] == holm([one["p"] for one in metric["pairs"]])
    for one in metric["pairs"]:
        apart = not set(metric["letters"][one["a"]]) & set(metric["letters"][one["b"]])
        assert apart == (one["p_holm"] < 0.05)
    assert {"em", "f1", "autoais", "citation_recall"} <= set(group["metrics"])
    assert group["metrics"]["em"]["n"] == sum(item.answerable for item in items["reader"])
    assert all(len(set(one["ways"].values())) > 1 for one in group["differences"])
    assert group["correlation"]["em and autoais"]["kendall_tau_b"] is not None
    assert group["correlation"]["em and human"]["reason"] == "0 systems have both; at least 3 are needed"


def test_a_system_that_says_nothing_is_compared_on_the_questions_that_both_answer(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=40, hostile=False)
    for label in ("reader", "extractive"):
        path = run / label / "judgements.jsonl"
        rows = [row for _, row in read_objects(path)]
        scored = [row["scores"] for row in rows if "scores" in row]
        for place, scores in enumerate(scored):
            scores["sentences"] = [0, 0] if label == "reader" and place < 15 else [1, 1]
        write_atomic(path, [dumps(row) + "\n" for row in rows])
    group = compare_runs(run)["groups"][0]
    metric = group["metrics"]["sentences"]
    (pair,) = metric["pairs"]
    assert (pair["n"], metric["n"], pair["p"]) == (len(scored) - 15, len(scored) - 15, 1.0)
    assert metric["values"] == {"reader": 1.0, "extractive": 1.0}
    assert "own" not in pair


def test_an_interval_and_a_test_that_disagree_are_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=40, hostile=False)
    for label, wrong in (("reader", 0), ("extractive", 5)):
        items = read_items(run / label / "items.jsonl")
        em = {item.id: float(place >= wrong) for place, item in enumerate(one for one in items if one.answerable)}
        write_items(run / label / "items.jsonl", [replace(item, em=em.get(item.id)) for item in items])
    group = compare_runs(run)["groups"][0]
    (pair,) = group["metrics"]["em"]["pairs"]
    assert pair["p"] == 0.0625
    assert pair["interval95"][0] * pair["interval95"][1] > 0
    (note,) = group["notes"]
    assert f"em ({pair['a']} - {pair['b']})" in note
    assert "go by p" in note


def test_a_system_that_is_slower_and_worse_is_not_on_the_front(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=200, hostile=False, words=5)
    points = {one["system"]: one for one in compare_runs(run)["groups"][0]["pareto"]}
    assert points["reader"]["best_for"] == ["seconds", "tokens"]
    assert points["extractive"]["best_for"] == []


def test_a_run_does_not_differ_from_itself(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, systems=["reader"]) for name in "ab"]
    (group,) = compare_runs(*runs)["groups"]
    assert group["differences"] == []
    for metric in group["metrics"].values():
        assert set(metric["letters"].values()) == {"a"}
        assert all(pair["value"] == 0 and pair["p_holm"] == 1 for pair in metric["pairs"])


def test_less_refusing_is_better(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=400, hostile=False, words=5)
    group = compare_runs(run)["groups"][0]
    metric = group["metrics"]["answerable_refused"]
    best, worst = sorted(metric["values"], key=lambda label: metric["values"][label])
    assert metric["letters"] == {best: "a", worst: "b"}


def test_what_is_right_is_not_compared_where_the_benchmark_has_no_rule(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", n=20, hostile=False)
    assert "right" in compare_runs(run)["groups"][0]["metrics"]
    for label in ("reader", "extractive"):
        items = [replace(item, right=None) for item in read_items(run / label / "items.jsonl")]
        write_items(run / label / "items.jsonl", items)
    assert "right" not in compare_runs(run)["groups"][0]["metrics"]


def test_people_enter_the_correlation(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", systems=["reader", "extractive", "llm"], human=True)
    assert compare_runs(run)["groups"][0]["correlation"]["autoais and human"]["systems"] == 3


def test_other_runs_are_refused_or_in_groups_of_their_own(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", judge="other/template.v2")]
    with pytest.raises(UserError, match="--allow-different"):
        compare_runs(*runs)
    groups = compare_runs(*runs, allow_different=True)["groups"]
    assert [group["judge"] for group in groups] == ["lexical@1/full.v1", "other/template.v2"]
    assert not set(groups[0]["systems"]) & set(groups[1]["systems"])


def test_a_single_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="name another run"):
        compare_runs(make_run(tmp_path / "run", systems=["reader"]))
    with pytest.raises(UserError, match="at least one"):
        compare_runs()


def test_broken_judgements_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    edit(run / "reader/judgements.jsonl", verdict="<script>")
    with pytest.raises(UserError, match=r"judgements\.jsonl:1"):
        compare_runs(run)
    for label in ("reader", "extractive"):
        (run / label / "judgements.jsonl").unlink()
    assert "citation_recall" not in compare_runs(run)["groups"][0]["metrics"]


def test_answers_that_hold_all_nuggets_in_their_first_words_are_compared(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", hostile=False)
    (group,) = compare_runs(run)["groups"]
    (pair,) = group["metrics"]["right@60"]["pairs"]
    reader, extractive = (read_items(run / label / "items.jsonl") for label in ("reader", "extractive"))
    asked = [(a, b) for a, b in zip(reader, extractive, strict=True) if a.answerable]
    held = [[not one.abstained and one.nuggets[0][0] in one.answer for one in both] for both in asked]
    assert group["metrics"]["right@60"]["n"] == len(asked)
    assert (pair["better"], pair["worse"]) == (sum(a > b for a, b in held), sum(a < b for a, b in held))


def test_the_terminal_names_three_of_the_pairs_whose_interval_and_p_disagree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (group,) = compare_runs(make_run(tmp_path / "run", hostile=False))["groups"]
    for name, metric in group["metrics"].items():
        (pair,) = metric["pairs"]
        wrong = name in ("em", "f1", "right", "right@60", "autoais")
        pair |= {"p": 0.01 if wrong else 1.0, "interval95": [-0.5, 0.5]}
    show_comparison(group)
    shown = " ".join(capsys.readouterr().out.split())
    assert "right (reader - extractive), right@60 (reader - extractive), em (reader - extractive), and 2 more" in shown
