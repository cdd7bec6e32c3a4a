import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoais.base.errors import FormatError, UserError
from autoais.metrics.comparison import (
    Judgements,
    _deep_enough,
    compare,
    compare_files,
    compare_judgements,
    difference_of_means,
    read_judgements,
)
from autoais.metrics.intervals import clopper_pearson
from autoais.metrics.mcnemar import mcnemar_corrected, mcnemar_exact
from scripts.bench.coverage_clusters import false_positives_of_whole_answers
from tests.autoais.metrics.test_scoring import WRONG, YES, row, write
from tests.conftest import Command, one_line_error


@pytest.mark.parametrize(
    ("table", "corrected", "exact"),
    [
        ([[21, 6], [5, 18]], 1.0, 1.0),
        ([[23, 4], [4, 19]], 0.7237, 1.0),
        ([[24, 3], [7, 16]], 0.3428, 0.3438),
        ([[24, 3], [5, 18]], 0.7237, 0.7266),
    ],
)
def test_mcnemar_on_the_tables_of_the_ais_paper(table: list[list[int]], corrected: float, exact: float) -> None:
    """Spec E7: the four variants of Table 15."""
    (_, b), (c, _) = table
    assert mcnemar_corrected(b, c).p == pytest.approx(corrected, abs=5e-5)
    assert mcnemar_exact(b, c).p == pytest.approx(exact, abs=5e-5)


def test_a_rank_of_thousands_of_digits_is_no_metric_to_compare() -> None:
    assert not _deep_enough("R@" + "9" * 5_000, 10)
    assert _deep_enough("R@5", 10)


def test_the_test_is_that_of_the_metric_where_no_question_differs() -> None:
    for values, method in (([0.0, 1.0], "McNemar's exact test"), ([0.5, 1.0], "randomisation test")):
        found = difference_of_means(values, values)
        assert (found["p"], found["method"], found["swaps"]) == (1.0, method, None)


def test_mcnemar_of_few_and_of_many_differences() -> None:
    assert mcnemar_exact(12, 12).variant == "exact binomial"
    assert mcnemar_corrected(13, 12).variant == "chi-squared with continuity correction"
    assert (mcnemar_exact(0, 0).p, mcnemar_corrected(0, 0).p) == (1.0, None)
    assert mcnemar_corrected(30, 10).statistic == pytest.approx(19**2 / 40)
    assert mcnemar_exact(20_000, 19_000).p == pytest.approx(mcnemar_corrected(20_000, 19_000).p, rel=0.01)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_a_probability_and_knows_no_sides(b: int, c: int) -> None:
    for test in (mcnemar_exact, mcnemar_corrected):
        p = test(b, c).p
        assert p is None or 0 <= p <= 1
        assert p == test(c, b).p


def outcomes(*counts: int) -> tuple[dict[str, bool | None], dict[str, bool | None]]:
    """Both right, only the first, only the second, neither."""
    pairs = [
        p
        for p, n in zip([(True, True), (True, False), (False, True), (False, False)], counts, strict=True)
        for _ in range(n)
    ]
    return {str(i): a for i, (a, _) in enumerate(pairs)}, {str(i): b for i, (_, b) in enumerate(pairs)}


def test_the_difference_has_an_interval_and_a_p() -> None:
    result = compare(*outcomes(400, 80, 30, 490))
    difference = result["difference"]
    assert difference["value"] == pytest.approx(0.05)
    # standard error of the mean of wins minus losses: sqrt((110/1000 - 0.05^2) / 1000)
    low, high = difference["interval95"]
    assert (low, high) == (
        pytest.approx(0.05 - 1.96 * 0.01037, abs=0.002),
        pytest.approx(0.05 + 1.96 * 0.01037, abs=0.002),
    )
    assert difference["p"] < 0.001
    assert (difference["better"], difference["worse"], difference["method"]) == (80, 30, "McNemar's exact test")
    assert difference["p"] == mcnemar_exact(80, 30).p
    assert result["mcnemar"]["exact"]["p"] == difference["p"]
    assert result["mcnemar"]["corrected"]["p"] == mcnemar_corrected(80, 30).p
    assert result["table"] == {"both": 400, "only_a": 80, "only_b": 30, "neither": 490}
    assert compare(*outcomes(5, 2, 2, 1))["difference"]["p"] == 1.0
    same = compare(*outcomes(3, 0, 0, 3))
    # Of six questions none differs: of others, up to 46 % may.
    assert same["difference"]["interval95"] == pytest.approx([-0.4593, 0.4593], abs=5e-5)
    assert same["mcnemar"]["corrected"]["reason"] == "the systems differ on no question"
    assert (same["mcnemar"]["exact"]["p"], same["difference"]["p"]) == (1.0, 1.0)


verdicts = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([True, False, None]), min_size=1)


@settings(max_examples=40)
@given(verdicts, verdicts)
def test_every_question_counts_once_and_order_changes_nothing(
    a: dict[str, bool | None], b: dict[str, bool | None]
) -> None:
    result = compare(a, b)
    assert result["questions"] == len(a.keys() | b.keys()) == sum(result["table"].values())
    assert result["a"]["total"] == result["b"]["total"] == result["questions"]
    assert result["difference"]["value"] == pytest.approx(result["a"]["floor"] - result["b"]["floor"])
    assert 0 < result["difference"]["p"] <= 1
    assert compare(dict(reversed(a.items())), b) == result
    assert compare(b, a)["difference"]["value"] == -result["difference"]["value"]
    assert compare(b, a)["mcnemar"] == result["mcnemar"]


def test_four_to_nothing_is_no_evidence() -> None:
    result = compare(*outcomes(0, 4, 0, 0))
    assert result["difference"]["p"] == result["mcnemar"]["exact"]["p"] == 0.125
    low, high = result["difference"]["interval95"]
    assert (low, high) == (pytest.approx(-0.2047, abs=5e-5), 1.0)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 60))
def test_the_interval_and_the_test_say_much_the_same(wins: int, losses: int, ties: int) -> None:
    if not wins + losses + ties:
        return
    found = compare(*outcomes(ties, wins, losses, 0))["difference"]
    low, high = found["interval95"]
    assert low <= found["value"] <= high
    # At a few questions the interval is a little wider than the exact test needs.
    if found["p"] > 0.1:
        assert low < 0 < high
    if found["p"] < 0.003:
        assert not low < 0 < high


Row = dict[str, tuple[float, float]]


def scored(**rows: Row) -> tuple[dict[str, bool | None], dict[str, Row]]:
    return {name: row["autoais"][0] == 1 for name, row in rows.items()}, rows


def both(a: dict[str, Row], b: dict[str, Row], **settings: Any) -> dict[str, Any]:  # noqa: ANN401  (settings of `compare`)
    (ours, our_scores), (theirs, their_scores) = scored(**a), scored(**b)
    metrics: dict[str, Any] = compare(ours, theirs, (our_scores, their_scores), **settings)["metrics"]
    return metrics


def test_every_metric_is_compared_and_corrected() -> None:
    yes, no = (1.0, 1.0), (0.0, 1.0)
    good = {"autoais": yes, "sentences": (3.0, 3.0), "citation_recall": yes, "citation_precision": (0.5, 1.0)}
    poor = {"autoais": no, "sentences": (1.0, 2.0), "citation_recall": (0.5, 1.0), "citation_precision": (0.5, 1.0)}
    fair = good | {"sentences": (2.0, 3.0), "citation_recall": (0.5, 1.0)}
    found = both({str(i): good if i else fair for i in range(8)}, {str(i): poor if i else fair for i in range(8)})
    assert list(found) == ["autoais", "sentences", "citation_recall", "citation_precision", "citation_f1"]
    assert (found["autoais"]["a"], found["autoais"]["b"], found["autoais"]["n"]) == (1.0, 0.125, 8)
    assert found["sentences"]["b"] == pytest.approx(9 / 17)
    assert found["citation_f1"]["a"] == pytest.approx(2 * 0.9375 * 0.5 / 1.4375)
    assert found["citation_f1"]["b"] == pytest.approx(0.5)
    for one in found.values():
        assert one["value"] == pytest.approx(one["a"] - one["b"])
        assert one["interval95"][0] <= one["value"] <= one["interval95"][1]
    # Seven of eight questions differ, always to A's favour: 2 / 2^7. Precision never differs.
    assert {name: one["p"] for name, one in found.items()} == {
        **dict.fromkeys(found, 2 / 2**7),
        "citation_precision": 1.0,
    }
    assert found["autoais"]["method"] == "McNemar's exact test"
    assert found["sentences"]["method"] == "randomisation test"
    assert {one["p_holm"] for name, one in found.items() if name != "citation_precision"} == {5 * 2 / 2**7}
    assert both({"1": good}, {"1": poor}, metrics=["sentences"]).keys() == {"sentences"}
    with pytest.raises(UserError, match="no metric 'f1' in both; there are: autoais, sentences"):
        both({"1": good}, {"1": poor}, metrics=["f1"])


def test_a_side_without_an_error_may_fail_on_questions_that_were_not_asked() -> None:
    whole: Row = {"autoais": (1.0, 1.0), "sentences": (5.0, 5.0), "recall": (1.0, 1.0)}
    slip: Row = {"autoais": (0.0, 1.0), "sentences": (4.0, 5.0), "recall": (0.8, 1.0)}
    rows = {str(n): slip if n < 6 else whole for n in range(40)}
    for sign, found in ((1, both(dict.fromkeys(rows, whole), rows)), (-1, both(rows, dict.fromkeys(rows, whole)))):
        assert found["sentences"]["value"] == pytest.approx(sign * 6 / 200)
        # All swaps of six questions: 2 / 2^6. Up to 9 % of the questions may be such that A fails as a whole.
        assert found["sentences"]["p"] == pytest.approx(found["recall"]["p"])
        assert 0.4 < found["sentences"]["p"] < 0.7
        assert found["autoais"]["p"] == 2 / 2**6  # of yes and no, swaps are all there is
    many = both(dict.fromkeys(rows, whole), dict.fromkeys(rows, slip) | {"39": whole})
    assert many["sentences"]["p"] < 1e-3


def test_equal_systems_differ_no_more_often_than_said_where_one_fails_as_a_whole() -> None:
    rates = false_positives_of_whole_answers(40, 200, rate=0.98)
    assert rates["sentences"] <= 0.05
    assert rates["recall"] <= 0.05
    assert rates["sentences, swaps alone (before)"] > 0.05


def test_a_missing_question_counts_where_a_mean_is_over_questions() -> None:
    row: Row = {"autoais": (1.0, 1.0), "sentences": (2.0, 2.0), "liu_recall_averaged": (1.0, 1.0), "f1": (0.5, 1.0)}
    row |= {"trec_recall": (2.0, 2.0), "trec_recall_averaged": (1.0, 1.0), "citation_recall_strict": (1.0, 1.0)}
    found = both({"1": row, "2": row}, {"1": row})
    assert {name: (one["b"], one["n"]) for name, one in found.items()} == {
        "autoais": (0.5, 2),
        "sentences": (1.0, 1),
        "liu_recall_averaged": (1.0, 1),
        "f1": (0.25, 2),
        "trec_recall": (1.0, 1),
        "trec_recall_averaged": (0.5, 2),
        "citation_recall_strict": (1.0, 1),
    }
    assert found["sentences"]["own"] == {"a": {"value": 1.0, "n": 2}, "b": {"value": 1.0, "n": 1}}
    # Only what both have is compared, and no depth that no answer reaches.
    deep = {"R@1": (1.0, 1.0), "R@4": (1.0, 1.0), "R@5": (1.0, 1.0)}
    assert both({"1": row | deep}, {"1": row | deep}, depth=4).keys() == {*row, "R@1", "R@4"}
    assert "R@1" not in both({"1": row | deep}, {"1": row | deep})
    assert "R@1" not in both({"1": row | deep}, {"1": row}, depth=4)
    assert both({"1": row | {"em": (0.0, 0.0)}}, {"1": row | {"em": (1.0, 1.0)}}).keys() == set(row)


def test_questions_without_a_label_are_not_counted() -> None:
    row: Row = {"autoais": (1.0, 1.0), "sentences": (2.0, 4.0)}
    labelled: Row = row | {"em": (1.0, 1.0), "liu_recall": (1.0, 2.0), "liu_precision": (1.0, 2.0)}
    a = {**{str(n): labelled for n in range(4)}, "4": row, "5": row}
    b = {name: one | {"em": (0.0, 1.0)} if "em" in one else one for name, one in a.items()}
    found = both(a, b)
    assert {name: one["n"] for name, one in found.items()} == {
        "autoais": 6, "sentences": 6, "em": 4, "liu_recall": 4, "liu_precision": 4, "liu_f1": 4,
    }  # fmt: skip
    assert (found["em"]["value"], found["em"]["p"], found["em"]["better"]) == (1.0, 0.125, 4)
    assert found["em"]["interval95"] == pytest.approx([-0.2047, 1.0], abs=5e-5)
    # A missing question has the items of the other side, where that has any.
    assert both(a, {name: one for name, one in b.items() if name not in "35"})["em"]["n"] == 4


def test_a_missing_answer_is_decided() -> None:
    result = compare({"1": True}, {"1": True, "2": None})
    assert (result["a"]["n"], result["a"]["undecided"], result["a"]["value"]) == (2, 0, 0.5)
    assert (result["b"]["n"], result["b"]["undecided"], result["only_in_b"]) == (1, 1, 1)
    assert compare({"1": True, "2": True}, {"1": True})["b"]["n"] == 2
    assert result["rule"] == "an answer is attributable if every sentence is attributable to its citations together"
    corrected = compare(*outcomes(0, 3, 5, 0))["mcnemar"]["corrected"]
    assert corrected["statistic"] == pytest.approx(1 / 8)


def test_scores_count_only_if_both_files_have_them_for_all_questions(tmp_path: Path) -> None:
    whole = {"scores": {"passages": 3, "short_answer": True, "autoais": [1, 1], "R@1": [1, 1], "R@5": [1, 1]}}
    rows = [judgement("1", 0, "attributable") | whole, judgement("2", 0, "attributable")]
    with_scores = write(tmp_path / "a.jsonl", *[row | whole for row in rows])
    partly = write(tmp_path / "b.jsonl", *rows)
    assert read_judgements(with_scores).scores["1"] == {"autoais": (1.0, 1.0), "R@1": (1.0, 1.0), "R@5": (1.0, 1.0)}
    assert read_judgements(with_scores).depth == 3
    assert read_judgements(partly).scores == {}
    assert list(compare_files(with_scores, with_scores)["metrics"]) == ["autoais", "R@1"]
    # As in `score`, exact match is absent if the system gives no short answers.
    for has, metrics in ((True, ["em", "f1"]), (False, [])):
        scores = {"scores": {"passages": 0, "short_answer": has, "em": [0, 1], "f1": [0, 1]}}
        path = write(tmp_path / "c.jsonl", judgement("1", 0, "attributable") | scores)
        assert list(compare_files(path, path)["metrics"]) == metrics
    for pair in ((with_scores, partly), (partly, with_scores)):
        result = compare_files(*pair)
        assert result["metrics"] == {}
        assert result["notes"] == [
            f"A is {pair[0]}, B is {pair[1]}",
            "b.jsonl has no scores of other metrics; score it again with this version",
        ]


def judgement(question: str, sentence: int | None, verdict: str, judge: str = "j@1") -> dict[str, Any]:
    return {"id": question, "sentence": sentence, "verdict": verdict, "judge": judge}


def test_sentences_are_rolled_up_to_questions(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        judgement("1", 0, "attributable"),
        judgement("2", 0, "attributable"),
        judgement("1", 1, "not_applicable"),
        judgement("2", 1, "undecided"),
        judgement("3", 0, "undecided"),
        judgement("3", 1, "contradictory"),
        judgement("4", None, "not_attributable"),
        judgement("5", 0, "not_applicable"),
    )
    found = read_judgements(path)
    assert (found.judge, found.scores, found.depth) == ("j@1", {}, 0)
    assert found.outcomes == {"1": True, "2": None, "3": False, "4": False, "5": False}


def test_a_question_in_one_file_only_counts_and_is_noted(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", judgement("1", 0, "attributable"), judgement("2", 0, "attributable"))
    b = write(tmp_path / "b.jsonl", judgement("1", 0, "attributable"))
    result = compare_files(a, b)
    assert result["warnings"] == [
        "1 answer is only in a.jsonl (such as '2') and counted as not attributable in the other"
    ]
    assert (result["questions"], result["only_in_a"], result["only_in_b"]) == (2, 1, 0)
    assert (result["a"]["value"], result["b"]["value"]) == (1.0, 0.5)
    assert result["notes"] == [
        f"A is {a}, B is {b}",
        "a.jsonl has no scores of other metrics; score it again with this version",
        "b.jsonl has no scores of other metrics; score it again with this version",
    ]
    assert result["metrics"] == {}


def with_text(identifier: str, text: str, verdict: str = "attributable") -> dict[str, Any]:
    gained = float(verdict == "attributable")
    scores = {"question": text, "passages": 1, "short_answer": False, "autoais": [gained, 1.0]}
    return judgement(identifier, 0, verdict) | {"scores": scores}


def test_answers_with_other_ids_are_matched_by_the_text_of_their_question(tmp_path: Path, autoais: Command) -> None:
    asked = ["What is the capital of Poland?", "What has Krakow?", "Who was Curie?"]
    a = write(tmp_path / "a.jsonl", *(with_text(str(n), text) for n, text in enumerate(asked)))
    named = [with_text(f"q{n}", text.upper().replace(" ", "  ")) for n, text in enumerate(reversed(asked))]
    b = write(tmp_path / "b.jsonl", *named)
    for pair in ((a, b), (b, a)):
        result = compare_files(*pair)
        assert (result["a"]["floor"], result["b"]["floor"]) == (1.0, 1.0)
        assert (result["questions"], result["answers"], result["matched_by_text"]) == (3, 3, 3)
        assert (result["only_in_a"], result["only_in_b"], result["warnings"]) == (0, 0, [])
        assert result["metrics"]["autoais"]["n"] == 3
    assert "ids differ: 3 answers were matched by the text of the question (such as '2' in A and 'q0' in B)" in (
        autoais("compare", a, b).stdout
    )


def test_only_a_question_with_one_answer_in_each_file_is_matched_by_its_text(tmp_path: Path, autoais: Command) -> None:
    a = write(tmp_path / "a.jsonl", with_text("1", "One?"), with_text("2", "Two?"), with_text("3", "Two?"))
    b = write(tmp_path / "b.jsonl", with_text("x", "one?"), with_text("2", "Two?"), with_text("z", "Two?"))
    result = compare_files(a, b)
    assert (result["matched_by_text"], result["only_in_a"], result["only_in_b"]) == (1, 1, 1)
    shown = autoais("compare", a, b).stdout
    warning = "warning: 1 answer is only in b.jsonl (such as 'z') and counted as not attributable in the other"
    assert warning in shown
    assert shown.index(warning) < shown.index("95 % interval")


def test_files_without_a_common_answer_are_not_compared(tmp_path: Path, autoais: Command) -> None:
    a = write(tmp_path / "a.jsonl", with_text("1", "One?"))
    for other in (with_text("x", "Two?"), judgement("x", 0, "attributable")):
        found = autoais("compare", a, write(tmp_path / "b.jsonl", other))
        one_line_error(
            found, "a.jsonl", "have no answer in common", "'1' and 'x'", "with the same questions (--questions)"
        )


def test_bad_files_are_refused(tmp_path: Path) -> None:
    one = judgement("1", 0, "attributable")

    def refused(*rows: dict[str, Any]) -> str:
        with pytest.raises(UserError) as caught:
            read_judgements(write(tmp_path / "a.jsonl", *rows))
        assert "a.jsonl" in str(caught.value)
        return str(caught.value)

    assert "no judgements in it" in refused()
    assert "a.jsonl:2: sentence 0 of '1' occurs twice" in refused(one, one)
    assert "a.jsonl:2: judged by 'k', earlier rows by 'j@1'" in refused(one, judgement("1", 1, "attributable", "k"))
    assert "field 'verdict' should be one of attributable, " in refused(judgement("1", 0, "maybe"))
    assert "field 'judge' is missing" in refused({"id": "1", "sentence": 0, "verdict": "attributable"})
    assert "field 'sentence' should be an integer" in refused(one | {"sentence": "0"})
    with pytest.raises(FormatError):
        read_judgements(write(tmp_path / "a.jsonl", one | {"verdict": None}))
    assert "field 'passages' is missing" in refused(one | {"scores": {"f1": [1, 1]}})
    assert "field 'short_answer' is missing" in refused(one | {"scores": {"passages": 1}})
    assert "field 'scores' should be" in refused(one | {"scores": [1]})
    for pair in (1, [1], [1, 2, 3], ["1", 1], [2, 1], [-1, 1], [True, True]):
        assert "'f1' should be two numbers" in refused(
            one | {"scores": {"passages": 1, "short_answer": True, "f1": pair}}
        ), pair


def asked(identifier: str, *sentences: tuple[str, list[str]], **fields: object) -> dict[str, Any]:
    return row(identifier, *sentences, **{"question": f"What is the capital of land {identifier}?"} | fields)


def test_answers_to_one_question_are_one_unit(tmp_path: Path, autoais: Command) -> None:
    """Eight questions with five identical answers each: A is right on six, B on one of them."""

    def judged(name: str, right: int, of: int = 5) -> Path:
        rows = [asked(f"{q}/{n}", YES if q < right else WRONG, query_id=q) for q in range(8) for n in range(of)]
        out = tmp_path / f"{name}.out"
        result = autoais("score", write(tmp_path / name, *rows), "--metrics", "alce", "--out", out)
        assert result.returncode == 0, result.stderr
        return out

    a, b = judged("a", 6), judged("b", 1)
    result = compare_files(a, b)
    assert (result["questions"], result["answers"], result["table"]["only_a"]) == (8, 40, 25)
    assert result["a"]["interval95"] == pytest.approx(clopper_pearson(6, 8))
    assert (result["difference"]["p"], result["difference"]["method"]) == (2 / 2**5, "randomisation test")
    assert result["mcnemar"] == {"reason": "some questions have several answers, which are not independent"}
    assert result["metrics"]["citation_f1"]["p"] == result["metrics"]["sentences"]["p"] == 2 / 2**5
    assert {one["n"] for one in result["metrics"].values()} == {8}
    shown = autoais("compare", a, b).stdout
    assert "8 questions, 40 answers" in shown
    assert "McNemar: some questions have several answers" in shown
    once = compare_files(judged("a", 6, 1), judged("b", 1, 1))
    assert once["difference"]["p"] == once["mcnemar"]["exact"]["p"] == 2 / 2**5


def test_the_answer_metrics_of_alce_are_compared_over_questions(tmp_path: Path, autoais: Command) -> None:
    def judged(name: str, right: int) -> tuple[dict[str, Any], Path]:
        rows = [
            asked(f"{q}/{n}", YES, query_id=q, qa_pairs=[{"short_answers": ["Warsaw" if q < right else "Krakow"]}])
            for q in range(8)
            for n in range(5)
        ]
        out = tmp_path / f"{name}.out"
        result = autoais("score", write(tmp_path / name, *rows), "--json", "--out", out)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)["metrics"]["str_em"], out

    (ours, a), (theirs, b) = judged("a", 6), judged("b", 1)
    assert (ours["value"], ours["n"], theirs["value"]) == (0.75, 40, 0.125)
    assert ours["interval95"] == pytest.approx(clopper_pearson(6, 8), abs=1e-6)
    found = compare_files(a, b, ["str_em", "str_hit"])["metrics"]
    assert {(one["value"], one["n"], one["p"]) for one in found.values()} == {(0.625, 8, 2 / 2**5)}


def test_the_question_of_an_answer_may_be_known_to_one_side_only() -> None:
    a: dict[str, bool | None] = {str(n): True for n in range(6)}
    b: dict[str, bool | None] = {str(n): False for n in range(6)}
    first, second = {str(n): "one" for n in range(4)}, {"3": "two", "4": "two"}
    assert compare(a, b)["questions"] == 6
    assert compare(a, b, question_keys=(first, {}))["questions"] == 3
    result = compare(a, b, question_keys=(first, second))  # 0 to 3 by the first, 3 and 4 by the second
    assert (result["questions"], result["difference"]["p"]) == (2, 0.5)
    assert compare(b, a, question_keys=(second, first))["questions"] == 2


def test_the_command(tmp_path: Path, autoais: Command) -> None:
    files = []
    for name, rows in {
        "a": [asked("1", YES), asked("2", YES), asked("3")],
        "b": [asked("1", YES), asked("2", WRONG), asked("3")],
    }.items():
        files.append(tmp_path / f"{name}.out.jsonl")
        assert autoais("score", write(tmp_path / f"{name}.jsonl", *rows), "--out", files[-1]).returncode == 0
    result = autoais("compare", *files, "--json")
    assert result.returncode == 0, result.stderr
    printed = json.loads(result.stdout)
    assert printed["questions"] == 3
    assert printed["difference"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert printed["mcnemar"]["exact"]["variant"] == "exact binomial"
    assert printed["provenance"]["inputs"]["a"]["sha256"]
    assert printed["metrics"]["autoais"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert {"sentences", "citation_f1", "hagrid", "answer_recall", "Success@1"} < printed["metrics"].keys()
    assert printed["notes"] == [f"A is {files[0]}, B is {files[1]}"]
    some = json.loads(autoais("compare", *files, "--metrics", "citation_f1, answer_recall", "--json").stdout)
    assert list(some["metrics"]) == ["citation_f1", "answer_recall"]
    one_line_error(autoais("compare", *files, "--metrics", "bleu"), "no metric 'bleu' in both; there are: autoais, ")
    shown = autoais("compare", *files).stdout
    assert "citation_f1" in shown
    assert "corrected for" in shown
    assert "A - B (floors): +0.333" in shown
    assert "p = 1.0000 (McNemar's exact test)" in shown
    assert "McNemar, exact binomial: p = 1.0000" in shown
    assert "report this one" not in shown
    assert "--metrics" in shown
    other = write(tmp_path / "c.jsonl", judgement("1", 0, "attributable"))
    one_line_error(autoais("compare", files[0], other), "c.jsonl by 'j@1'", "score both with one judge")
    one_line_error(autoais("compare", files[0], tmp_path / "gone"), "gone", "cannot be read")
    answers = autoais("compare", files[0], tmp_path / "a.jsonl")
    one_line_error(
        answers, "a.jsonl:1: field 'verdict' is missing", "write judgements with: autoais score ANSWERS --out FILE"
    )


def test_a_test_says_what_it_counted() -> None:
    for test in (mcnemar_exact(3, 2), mcnemar_corrected(3, 2)):
        assert (test.b, test.c) == (3, 2)
    assert (mcnemar_corrected(0, 0).b, mcnemar_corrected(0, 0).variant) == (0, mcnemar_corrected(1, 0).variant)


def judgements(rows: dict[str, Row]) -> Judgements:
    return Judgements("j@1", {name: row["autoais"][0] == 1 for name, row in rows.items()}, rows)


def test_a_system_that_answers_half_of_the_questions_is_compared_on_those() -> None:
    yes, none = (1.0, 1.0), (0.0, 0.0)
    a = {str(n): {"autoais": yes, "sentences": yes, "liu_recall": yes, "liu_precision": yes} for n in range(30)}
    b = {
        name: dict(row) if int(name) < 15 else dict.fromkeys(row, none) | {"autoais": (0.0, 1.0)}
        for name, row in a.items()
    }
    b["0"] |= {"sentences": (0.0, 1.0), "liu_recall": (0.0, 1.0)}
    result = compare_judgements(judgements(a), judgements(b), "a", "b")
    for name in ("sentences", "liu_recall", "liu_precision", "liu_f1"):
        one = result["metrics"][name]
        assert (one["n"], one["p"], one["own"]["a"]["n"], one["own"]["b"]["n"]) == (15, 1.0, 30, 15), name
    assert result["metrics"]["autoais"]["p"] < 0.001  # what is not answered is a no
    assert result["metrics"]["sentences"]["b"] == result["metrics"]["sentences"]["own"]["b"]["value"] == 14 / 15
    (note,) = result["notes"]
    assert note.startswith(
        "sentences, liu_recall, liu_precision, liu_f1: over the 15 questions in which both have a value"
    )
    assert "(A has one in 30, B in 15)" in note


def test_the_values_that_are_compared_are_over_the_same_questions() -> None:
    a: dict[str, Row] = {str(n): {"autoais": (1.0, 1.0), "sentences": (float(n < 2), 1.0)} for n in range(4)}
    b = {name: row | ({} if int(name) < 2 else {"sentences": (0.0, 0.0)}) for name, row in a.items()}
    one = both(a, b)["sentences"]
    assert (one["a"], one["b"], one["value"], one["n"]) == (1.0, 1.0, 0.0, 2)
    assert (one["own"]["a"]["value"], one["own"]["b"]["value"]) == (0.5, 1.0)


def test_a_metric_without_a_common_question_is_named_and_not_compared() -> None:
    a: dict[str, Row] = {str(n): {"autoais": (1.0, 1.0), "sentences": (float(n < 2), float(n < 2))} for n in range(4)}
    b: dict[str, Row] = {str(n): {"autoais": (1.0, 1.0), "sentences": (float(n > 1), float(n > 1))} for n in range(4)}
    result = compare_judgements(judgements(a), judgements(b), "a", "b")
    assert list(result["metrics"]) == ["autoais"]
    assert result["no_common"] == ["sentences"]
    assert result["notes"] == ["sentences: not compared, because no question has a value in both"]


def test_an_interval_and_a_test_that_disagree_are_explained() -> None:
    # Six of six changes to A's favour would be p .03; five are p .0625, and the interval is above 0.
    a = {str(n): {"autoais": (1.0, 1.0)} for n in range(30)}
    b = {str(n): {"autoais": (float(n > 4), 1.0)} for n in range(30)}
    result = compare_judgements(judgements(a), judgements(b), "a", "b")
    assert result["difference"]["p"] == 0.0625
    assert result["difference"]["interval95"][0] > 0
    assert result["notes"] == [
        "A - B, autoais: the interval and p disagree on whether there is a difference; the interval is approximate, "
        "go by p"
    ]
    b["5"] = {"autoais": (0.0, 1.0)}
    assert compare_judgements(judgements(a), judgements(b), "a", "b")["notes"] == []


def test_nothing_is_not_compared() -> None:
    with pytest.raises(UserError, match="there is nothing to compare: neither side has an answer"):
        compare({}, {})
