"""The report of a study: consensus, agreement, the AIS paper's rates, times, people, experts and other designs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import autoais
from autoais.base.errors import UserError
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.formats.human_ratings.convert import convert_ratings
from autoais.formats.human_ratings.ratings import FLAG, Rating, write_ratings
from autoais.meta.ais_report import read_release as read_csv
from autoais.meta.ais_report import report as ais_report
from tests.autoais.meta.test_ais_report import AGREEMENT, GOLDEN
from tests.conftest import Command, one_line_error

NAMES = "abcdefgh"


def rate(item: str, question: str, values: str, **fields: Any) -> list[Rating]:  # noqa: ANN401
    """One rating per word of `values`, by annotators a, b, c, ...; `-` for none."""
    return [
        Rating(item, name, question, value, **fields)
        for name, value in zip(NAMES, values.split(), strict=False)
        if value != "-"
    ]


def written(path: Path, ratings: Iterable[Rating]) -> Path:
    write_atomic(path, write_ratings(ratings))
    return path


STUDY = [
    *rate("q1/1", "interpretable", "yes yes yes", system="s", seconds=10.0),
    *rate("q1/1", "attributable", "yes yes no", system="s", seconds=20.0),
    *rate("q1/2", "interpretable", "yes no no", system="t", seconds=10.0),
    *rate("q1/2", "attributable", "yes", system="t", seconds=60.0),
    *rate("q2/1", "interpretable", "yes yes yes", system="s", seconds=10.0),
    *rate("q2/1", "attributable", "yes no -", system="s", seconds=20.0),
    *rate("q2/2", FLAG, "missing malformed -", system="t"),
    Rating("q2/2", "c", "interpretable", "yes", system="t", seconds=10.0),
    Rating("q2/2", "c", "attributable", "yes", system="t", seconds=20.0),
]


def test_rates_have_the_papers_denominators() -> None:
    first, second, total = autoais.agreement(STUDY)["ais"]
    assert [first["model"], second["model"], total["model"]] == ["s", "t", "all systems"]
    found = {
        name: (total[name]["value"], total[name]["n"], total[name]["undecided"])
        for name in ("flagged", "interpretable", "ais", "ais_of_unflagged")
    }
    # q2/2 is flagged by two of three, q1/2 not interpretable, and people are split on q2/1.
    assert found == {
        "flagged": (0.25, 4, 0),
        "interpretable": (pytest.approx(2 / 3), 3, 0),
        "ais": (1.0, 1, 1),
        "ais_of_unflagged": (0.5, 2, 1),
    }
    assert second["flagged"]["value"] == 0.5
    assert autoais.agreement(STUDY)["flags"] == {"malformed": 1, "missing": 1}


def test_what_cites_nothing_is_not_attributable_and_sentences_are_called_so() -> None:
    sentence: dict[str, Any] = {"answer": "q/1", "sentence": 0}
    ratings = [
        *rate("s", "interpretable", "yes yes", **sentence),
        *rate("s", "attributable", "yes no", **sentence),
        *rate("t", "interpretable", "yes yes", **sentence),  # nobody was asked: nothing is cited
        *rate("u", "interpretable", "yes", **sentence),  # the annotator has not come to the next question
        *rate("c", "support", "full full", citation="p", **sentence),
        *rate("d", FLAG, "missing missing", citation="p", **sentence),
        *rate("e", "informative", "yes yes", **sentence),
        *rate("f", FLAG, "missing missing", **sentence),
    ]
    (row,) = autoais.agreement(ratings)["ais"]
    assert row["unit"] == "sentences"
    assert (row["flagged"]["total"], row["flagged"]["value"]) == (5, 0.2)
    found = [
        (row[name]["total"], row[name]["undecided"], row[name]["value"])
        for name in ("interpretable", "ais", "ais_of_unflagged")
    ]
    assert found == [(3, 0, 1.0), (3, 1, 0.0), (3, 1, 0.0)]
    (before,) = autoais.agreement([one for one in ratings if one.question != "attributable"])["ais"]
    assert before["ais"]["total"] == 0  # a study without the question says nothing of it


def test_consensus_ties_and_agreement_of_a_question() -> None:
    result = autoais.agreement(STUDY)
    assert (result["ratings"], result["items"], result["annotators"]) == (17, 4, 3)
    one = result["questions"]["attributable"]
    assert one["ties"] == ["q2/1"]
    assert (one["items"], one["flagged"], one["ratings"], one["not_interpretable"]) == (2, 1, 6, 1)
    assert one["ratings_per_item"] == {"1": 1, "2": 1, "3": 1}
    assert one["consensus"]["yes"]["value"] == 1.0
    assert one["consensus"]["yes"]["undecided"] == 1
    # (2, 1) and (1, 1): observed 2 * 2 / 2 + 2; expected, of 3 yes and 2 no: 2 * 3 * 2 / 4
    assert one["agreement"]["krippendorff_alpha"]["value"] == pytest.approx(1 - 4 / 3)
    assert one["agreement"]["pairwise_agreement"]["value"] == pytest.approx((1 / 3 + 0) / 2, abs=1e-6)
    assert one["agreement"]["f1_to_majority"] == {"value": 0.4, "n": 1, "interval95": None}


def test_the_consensus_leaves_out_flagged_items_as_the_rates_do(tmp_path: Path, autoais: Command) -> None:
    """Rashkin et al. 2023: rates are over outputs that are not flagged."""
    path = written(tmp_path / "r.jsonl", STUDY)
    said = " ".join(autoais("agreement", path).stdout.split())
    assert "17 ratings of 4 items by 3 annotators" in said
    assert "consensus of 3 items, without 1 flagged item: yes 66.7%" in said  # of interpretable
    assert "consensus of 1 item without a tie (1 tie), without 1 flagged item: yes 100.0%" in said
    (path.parent / "one.jsonl").write_text(path.read_text().partition("\n")[0])
    assert "1 rating of 1 item by 1 annotator" in autoais("agreement", path.parent / "one.jsonl").stdout


def test_support_is_a_question_of_statements_worth_verifying() -> None:
    """Liu et al. 2023: what is not worth verifying has no label of support, whatever a minority said."""
    first: dict[str, Any] = {"answer": "q", "sentence": 0}
    second: dict[str, Any] = {"answer": "q", "sentence": 1}
    study = [
        *rate("q#0", "worthy", "yes yes no", **first),
        *rate("q#0", "supported", "yes yes", **first),
        *rate("q#0@p", "support", "full full partial", citation="p", **first),
        *rate("q#1", "worthy", "no no yes", **second),
        Rating("q#1", "c", "supported", "no", **second),
        *rate("q#1@p", "support", "none none none", citation="p", **second),
    ]
    found = autoais.agreement(study)
    worthy, supported, support = (found["questions"][name] for name in ("worthy", "supported", "support"))
    assert (worthy["items"], "not_worthy" in worthy) == (2, False)
    assert (supported["items"], supported["not_worthy"], supported["ratings"]) == (1, 1, 2)
    assert (support["items"], support["not_worthy"]) == (1, 1)
    assert support["consensus"]["full"]["value"] == 1.0
    (row,) = found["ais"]
    assert (row["ais"]["value"], row["ais"]["total"], row["flagged"]["total"]) == (1.0, 1, 2)
    tied = [*study, Rating("q#1", "d", "worthy", "yes", **second)]
    (row,) = autoais.agreement(tied)["ais"]
    assert (row["ais"]["value"], row["ais"]["undecided"]) == (1.0, 1)


def test_the_command_says_what_is_not_worth_verifying(tmp_path: Path, autoais: Command) -> None:
    study = [*rate("q", "worthy", "no no yes"), Rating("q", "c", "supported", "no"), *rate("r", "supported", "yes yes")]
    said = autoais("agreement", written(tmp_path / "r.jsonl", study)).stdout
    assert "without 1 item that is not worth verifying, or tied" in said


def test_a_study_has_the_same_agreement_in_the_papers_format(tmp_path: Path) -> None:
    """In the CSV of the release, those who found an output unclear are not among the raters of its support."""
    both = {
        "1": ("yes yes yes yes yes", "yes yes yes yes no"),
        "2": ("yes yes yes no no", "yes yes yes"),
        "3": ("no no no yes yes", "- - - yes no"),
        "4": ("yes yes yes yes no", "no no yes yes"),
        "5": ("yes yes yes yes yes", "no no no yes yes"),
        "6": ("yes yes yes no no", "no no yes"),
    }
    study = [
        one
        for item, values in both.items()
        for question, said in zip(("interpretable", "attributable"), values, strict=True)
        for one in rate(item, question, said, system="s")
    ]
    answers = tmp_path / "answers.jsonl"
    cited: dict[str, Any] = {"sentences": [{"text": "So.", "citations": [{"passage": "p"}]}]}
    passages = [{"id": "p", "text": "So it is."}]
    write_atomic(answers, (dumps({"id": one, "question": "Why?", **cited, "passages": passages}) for one in both))
    table = tmp_path / "ais.csv"
    write_atomic(table, convert_ratings(study, "ais-csv", answers=answers))
    found, questions = ais_report(read_csv(table))["agreement"], autoais.agreement(study)["questions"]
    for name, part in (("interpretable", "interpretable"), ("attributable", "attributable_of_asked")):
        for figure in ("krippendorff_alpha", "pairwise_agreement", "f1_to_majority"):
            assert questions[name]["agreement"][figure]["value"] == pytest.approx(found[part][figure], abs=1e-6)


def test_two_adjudications_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    def decided(who: str, value: str) -> Rating:
        return Rating("i", who, "informative", value, phase="adjudication")

    study = rate("i", "informative", "yes no")
    path = written(tmp_path / "r.jsonl", [*study, decided("x", "no"), decided("y", "no")])
    assert autoais.agreement(path)["questions"]["informative"]["consensus"]["no"]["value"] == 1.0
    written(path, [*study, decided("x", "no"), decided("y", "yes")])
    with pytest.raises(UserError, match=r"r\.jsonl:4: item 'i' was adjudicated before.* \(.*r\.jsonl:3\)"):
        autoais.agreement(path)
    first, second = (written(tmp_path / name, [decided(name, "no")]) for name in ("a.jsonl", "b.jsonl"))
    with pytest.raises(
        UserError, match=r"b\.jsonl: item 'i', question 'informative', was adjudicated in .*a\.jsonl too"
    ):
        autoais.agreement([written(tmp_path / "c.jsonl", study), first, second])


def test_two_scales_of_one_question_are_refused(tmp_path: Path) -> None:
    adjudicated = Rating("i", "x", "attributable", "yes", phase="adjudication")
    path = written(tmp_path / "r.jsonl", [*rate("i", "attributable", "4 5 2"), adjudicated])
    assert autoais.agreement(path)["questions"]["attributable"]["consensus"]["yes"]["value"] == 1.0
    written(path, rate("i", "attributable", "4 yes 2"))
    with pytest.raises(
        UserError, match=r"r\.jsonl:2: question 'attributable' has the value 'yes', .*\(.*r\.jsonl:1 has"
    ):
        autoais.agreement(path)


@pytest.mark.parametrize("five", ["5.0", "5,0", "5.00"])
def test_a_whole_number_is_the_same_with_a_zero_after_the_point(tmp_path: Path, five: str) -> None:
    ratings = [*rate("i", "attributable", f"5 {five} 4"), *rate("i", "topic", f"5 {five} {five}")]
    questions = autoais.agreement(written(tmp_path / "r.jsonl", ratings))["questions"]
    assert questions["topic"]["agreement"]["pairwise_agreement"]["value"] == 1.0
    with pytest.raises(UserError, match=r"has yes, no, 1, 2, 3, 4, 5, found '4\.5'"):
        autoais.agreement(written(tmp_path / "r.jsonl", rate("i", "attributable", "4.5 4")))


def test_a_gold_value_that_the_question_does_not_have_is_refused(tmp_path: Path) -> None:
    ratings = rate("g", "informative", "no yes", phase="gold") + rate("i", "informative", "no yes")
    gold = tmp_path / "gold.jsonl"
    gold.write_text(dumps({"id": "g", "expected": {"informative": "maybe"}}))
    with pytest.raises(UserError, match=r"gold\.jsonl:1: field 'expected.informative': .*has yes, no, found 'maybe'"):
        autoais.agreement(ratings, gold=gold)


def test_times_of_stages_and_tasks() -> None:
    time = autoais.agreement(STUDY)["time"]
    assert time["questions"]["interpretable"] == {"n": 10, "mean": 10.0, "median": 10.0, "sd": 0.0}
    assert time["tasks"]["n"] == 10
    assert time["tasks"]["mean"] == pytest.approx((100 + 6 * 20 + 60) / 10)
    a, _, c = autoais.agreement(STUDY)["people"]
    assert a["time"]["questions"]["attributable"] == {"n": 3, "mean": pytest.approx(100 / 3, abs=1e-6), "median": 20.0,
                                                      "sd": pytest.approx(23.094011)}  # fmt: skip
    assert (c["time"]["tasks"]["n"], c["time"]["questions"]["attributable"]["n"]) == (4, 2)
    assert autoais.agreement(rate("i", "informative", "yes no"))["time"]["tasks"] == {
        "n": 0, "mean": None, "median": None, "sd": None,
    }  # fmt: skip


def test_people_beside_the_others_on_gold_items_and_in_audits(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    write_atomic(gold, [dumps({"id": "g", "expected": {"informative": "no"}}), dumps({"id": "other"})])
    ratings = [
        *rate("1", "informative", "yes yes no", answer="x"),
        *rate("2", "informative", "no no no", answer="x"),
        *rate("g", "informative", "no yes -", phase="gold"),
        *rate("h", "informative", "no", phase="gold"),
        Rating("1", "z", "informative", "yes", phase="audit"),
        Rating("2", "z", "informative", "yes", phase="audit", audited="b"),
    ]
    result = autoais.agreement(ratings, gold=gold)
    a, b, c = result["people"]
    assert [one["agrees_with_others"]["value"] for one in (a, b, c)] == [1.0, 1.0, 0.5]
    assert [one["gold"]["value"] for one in (a, b, c)] == [1.0, 0.0, None]
    assert (result["gold"]["value"], result["gold"]["undecided"]) == (0.5, 1)
    # a and c were audited on item 1, b on both items; b is wrong on item 2, c on item 1.
    assert [(one["audits"]["yes"] if "yes" in one["audits"] else one["audits"]["value"]) for one in (a, b, c)] == [
        1.0, 0.5, 0.0,
    ]  # fmt: skip
    audits = result["audits"]
    assert (audits["tasks"], audits["audited"], audits["quality"]["value"]) == (6, 4, 0.5)
    assert audits["share"] == pytest.approx(4 / 6)


def test_who_rated_gold_items_only_is_listed(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    write_atomic(gold, [dumps({"id": "g", "expected": {"informative": "no"}})])
    ratings = [*rate("1", "informative", "yes yes"), *rate("g", "informative", "- - yes", phase="gold")]
    people = autoais.agreement(ratings, gold=gold)["people"]
    assert [(one["annotator"], one["items"], one["gold"]["value"]) for one in people] == [
        ("a", 1, None), ("b", 1, None), ("c", 0, 0.0),
    ]  # fmt: skip


def test_a_rating_is_compared_with_those_of_the_others_only() -> None:
    # a agrees with the consensus of all three, and not with either of the others, who are split
    people = autoais.agreement(rate("1", "support", "full full none", sentence=0, citation="p"))["people"]
    assert [one["agrees_with_others"]["n"] for one in people] == [0, 0, 1]
    assert people[2]["agrees_with_others"]["value"] == 0.0


def test_only_the_paper_s_scale_is_said_to_end_at_five(tmp_path: Path, autoais: Command) -> None:
    ratings = [*rate("1", "freshness", "1 1 2"), *rate("1", "attributable", "4 5 5")]
    shown = autoais("agreement", written(tmp_path / "r.jsonl", ratings)).stdout
    assert "  mean 1.333, sd 0.577" in shown
    assert "  mean 4.667 of 1 to 5, sd 0.577" in shown


def test_rates_say_how_many_items_have_no_tie(tmp_path: Path, autoais: Command) -> None:
    two = [one for n, said in enumerate(["yes yes"] * 3 + ["yes no"] * 2 + ["no no"]) for one in
           rate(str(n), "informative", said)]  # fmt: skip
    shown = autoais("agreement", written(tmp_path / "r.jsonl", two)).stdout
    assert "consensus of 4 items without a tie (2 ties): yes 75.0%" in shown
    assert "of all 6 items at least 50.0% yes (a tie counted as no)" in shown
    assert "F1 to majority" not in shown  # two that agree are their own majority
    three = autoais("agreement", written(tmp_path / "s.jsonl", rate("1", "informative", "yes yes no"))).stdout
    assert "consensus of 1 item: yes 100.0%" in three
    assert "a tie counted as no" not in three
    assert "F1 to majority" in three


def test_a_task_is_right_if_all_its_audited_values_are() -> None:
    ratings = [*rate("1", "interpretable", "yes"), *rate("1", "attributable", "yes"), *rate("2", "informative", "no")]
    checks = [Rating("1", "lead", "interpretable", "no", phase="audit")]
    checks += [Rating("1", "lead", "attributable", "yes", phase="audit")]
    found = autoais.agreement(ratings + checks)["audits"]
    assert (found["tasks"], found["audited"], found["quality"]["value"]) == (2, 1, 0.0)


def test_audits_cut_values_from_1_to_5_as_gold_items_do() -> None:
    ratings = rate("1", "attributable", "4 3", phase="study")
    lead = Rating("1", "lead", "attributable", "5", phase="audit")
    relaxed, strict = (autoais.agreement([*ratings, lead], likert=cut) for cut in (4, 5))
    assert [one["audits"]["value"] for one in relaxed["people"]] == [1.0, 0.0]
    assert [one["audits"]["value"] for one in strict["people"]] == [0.0, 0.0]
    assert relaxed["audits"]["quality"]["value"] == 0.5


def test_outcomes_on_one_item_are_not_independent(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    names = ("informative", "worthy")
    write_atomic(gold, [dumps({"id": str(n), "expected": dict.fromkeys(names, "yes")}) for n in range(20)])
    rows = [Rating(str(n), "a", name, "yes" if n % 4 else "no", phase="gold") for n in range(20) for name in names]
    checks = [replace(one, annotator="lead", value="yes", phase="audit") for one in rows]
    study = [replace(one, annotator=name, phase="study") for one in rows for name in "ab"]

    def width(record: dict[str, Any]) -> float:
        low, high = record["interval95"]
        return float(high - low)

    twice = autoais.agreement([*rows, *study, *checks], gold=gold)
    once = autoais.agreement([one for one in [*rows, *study, *checks] if one.question == "worthy"], gold=gold)
    assert (twice["gold"]["n"], once["gold"]["n"]) == (40, 20)
    assert width(twice["gold"]) == pytest.approx(width(once["gold"]), abs=0.02)
    assert width(twice["people"][0]["gold"]) == pytest.approx(width(once["people"][0]["gold"]), abs=0.02)
    # two people on each of 20 items: about as much as one person on each
    one_person = autoais.agreement([one for one in [*study, *checks] if one.annotator != "b"])
    assert width(twice["audits"]["quality"]) == pytest.approx(width(one_person["audits"]["quality"]), abs=0.02)


def test_who_is_left_out_counts_for_nothing(tmp_path: Path, autoais: Command) -> None:
    others = [one for one in STUDY if one.annotator != "c"]
    both = [written(tmp_path / "1.jsonl", STUDY[:9]), written(tmp_path / "2.jsonl", STUDY[9:])]
    found = json.loads(autoais("agreement", *both, "--without", "c", "--json").stdout)
    assert found["without"] == ["c"]
    assert found["annotators"] == 2
    alone = json.loads(autoais("agreement", written(tmp_path / "o.jsonl", others), "--json").stdout)
    assert found["questions"] == alone["questions"]
    one_line_error(autoais("agreement", *both, "--without", "eve"), "no annotator 'eve'; there are: a, b, c")
    names = [part for name in "abc" for part in ("--without", name)]
    one_line_error(autoais("agreement", *both, *names), "all annotators are left out")


def test_experts_are_many_names(tmp_path: Path, autoais: Command) -> None:
    names = [f"expert-{number}@example.org" for number in range(20)]
    crowd = written(tmp_path / "r.jsonl", [*rate("1", "informative", "yes yes no")])
    one_line_error(autoais("agreement", crowd, "--experts", ",".join(names)), "no annotator 'expert-0@example.org'")


def test_experts_are_a_file_names_or_ratings(tmp_path: Path) -> None:
    crowd = [
        *rate("1", "informative", "yes yes no"),
        *rate("2", "informative", "no no no"),
        *rate("3", "informative", "yes no -"),
        *rate("4", "informative", "yes yes yes"),
    ]
    expert = [Rating(str(n), "ex", "informative", "yes" if n != 4 else "no") for n in range(1, 5)]
    expected = autoais.agreement(crowd, experts=expert)
    one = expected["experts"]["informative"]
    assert (one["agreement"]["n"], one["agreement"]["undecided"]) == (3, 1)
    assert one["agreement"]["value"] == pytest.approx(1 / 3)
    assert one["single_ratings"]["n"] == 11
    assert one["single_ratings"]["pairwise_agreement"] == pytest.approx((2 / 3 + 0 + 1 / 2 + 0) / 4, abs=1e-6)
    assert one["cohen_kappa"]["value"] == pytest.approx((1 / 3 - 5 / 9) / (1 - 5 / 9))
    assert autoais.agreement([*crowd, *expert], experts=["ex"]) == expected
    assert autoais.agreement(crowd, experts=written(tmp_path / "e.jsonl", expert)) == expected
    with pytest.raises(UserError, match="no annotator 'eve'; there are: a, b, c"):
        autoais.agreement(crowd, experts=["eve"])
    with pytest.raises(UserError, match="nobody to compare"):
        autoais.agreement(expert, experts=["ex"])


def test_attributability_is_compared_with_experts_where_the_text_is_interpretable() -> None:
    crowd = [
        *rate("1", "interpretable", "yes yes yes"),
        *rate("1", "attributable", "yes yes no"),
        *rate("2", "interpretable", "no no yes"),
        *rate("2", "attributable", "- - yes"),
    ]
    expert = [Rating(item, "ex", name, "yes") for item in "12" for name in ("interpretable", "attributable")]
    found = autoais.agreement(crowd, experts=expert)["experts"]
    assert (found["interpretable"]["agreement"]["total"], found["attributable"]["agreement"]["total"]) == (2, 1)
    assert found["attributable"]["single_ratings"]["n"] == 3


# The paper's Table 15: both right, only the original, only the variant, neither; p corrected and exact (spec E7)
TABLE_15 = [
    ((21, 6, 5, 18), 1.0, 1.0), ((23, 4, 4, 19), 0.7237, 1.0), ((24, 3, 7, 16), 0.3428, 0.3438),
    ((24, 3, 5, 18), 0.7237, 0.7266),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "corrected", "exact"), TABLE_15)
def test_two_designs_against_experts_give_table_15(
    cells: tuple[int, int, int, int], corrected: float, exact: float
) -> None:
    outcomes = [pair for pair, n in zip(((1, 1), (1, 0), (0, 1), (0, 0)), cells, strict=True) for _ in range(n)]
    experts = [Rating(f"{n}", "e", "attributable", "no" if n % 3 else "yes") for n in range(50)]

    def side(place: int) -> list[Rating]:
        turned = {"yes": "no", "no": "yes"}
        return [
            replace(one, annotator="a", value=one.value if right[place] else turned[one.value])
            for one, right in zip(experts, outcomes, strict=True)
        ]

    one = autoais.agreement(side(0), variant=side(1), experts=experts)["variant"]["attributable"]
    assert tuple(one[name] for name in ("both", "only_original", "only_variant", "neither")) == cells
    assert (round(one["corrected"], 4), round(one["exact"], 4)) == (corrected, exact)
    assert (one["test"], one["p"]) == ("exact binomial", one["exact"])
    assert (one["n"], one["outcome"]) == (50, "as the experts")


def test_a_design_by_sentence_is_rolled_up_to_answers() -> None:
    original = [*rate("x", "attributable", "yes"), *rate("y", "attributable", "yes"), *rate("z", "attributable", "no")]
    sentences = [
        *rate("x#0", "interpretable", "yes", answer="x", sentence=0),
        *rate("x#0", "attributable", "yes", answer="x", sentence=0),
        *rate("x#1", "interpretable", "no", answer="x", sentence=1),
        *rate("y#0", "attributable", "yes", answer="y", sentence=0),
        *rate("z#0", "attributable", "yes no", answer="z", sentence=0),
    ]
    one = autoais.agreement(original, variant=sentences)["variant"]["attributable"]
    assert (one["both"], one["only_original"], one["n"], one["undecided"]) == (1, 1, 2, 1)


def test_sentences_of_one_answer_are_not_taken_for_independent() -> None:
    def side(value: str) -> list[Rating]:
        return [one for n in range(12) for one in rate(f"x#{n}", "attributable", value, answer="x", sentence=n)]

    one = autoais.agreement(side("no"), variant=side("yes"))["variant"]["attributable"]
    assert (one["n"], one["only_variant"]) == (12, 12)
    assert (one["exact"], one["corrected"], one["test"], one["p"]) == (None, None, "randomisation over questions", 1.0)


def test_likert_ratings_are_cut_strictly_or_relaxed() -> None:
    ratings = [*rate("1", "attributable", "4 5 4"), *rate("2", "attributable", "1 2 4"), *rate("3", "quality", "2 4 3")]
    relaxed, strict = (autoais.agreement(ratings, likert=cut)["questions"]["attributable"] for cut in (4, 5))
    assert (relaxed["consensus"]["yes"]["value"], strict["consensus"]["no"]["value"]) == (0.5, 1.0)
    assert relaxed["mean"]["mean"] == pytest.approx(20 / 6, abs=1e-6)
    assert relaxed["agreement"]["krippendorff_alpha_ordinal"] == strict["agreement"]["krippendorff_alpha_ordinal"]
    quality = autoais.agreement(ratings)["questions"]["quality"]
    assert (quality["mean"]["mean"], quality["mean"]["sd"], quality["ties"]) == (3.0, 1.0, ["3"])
    with pytest.raises(UserError, match="likert 3"):
        autoais.agreement(ratings, likert=3)


def test_the_same_answer_everywhere_has_no_alpha_but_a_reason() -> None:
    found = autoais.agreement([*rate("1", "informative", "yes yes"), *rate("2", "informative", "yes yes")])
    agreement = found["questions"]["informative"]["agreement"]
    assert agreement["krippendorff_alpha"] == {
        "value": None, "n": 2, "interval95": None, "reason": "all ratings have the same value",
    }  # fmt: skip
    assert agreement["pairwise_agreement"]["value"] == 1.0
    alone = autoais.agreement(rate("1", "informative", "yes"))["questions"]["informative"]["agreement"]
    assert {one.get("reason") for one in alone.values()} == {"no item has two ratings"}


def test_simulated_annotators_are_called_so(tmp_path: Path, autoais: Command) -> None:
    ratings = [Rating("i", f"simulated-{n}", "informative", "yes") for n in range(2)]
    path = written(tmp_path / "r.jsonl", [*ratings, Rating("i", "ada", "informative", "no")])
    assert autoais("agreement", path).stdout.startswith("SIMULATION: ratings of 2 simulated annotators\n")
    assert json.loads(autoais("agreement", path, "--json").stdout)["simulated"] == ["simulated-0", "simulated-1"]
    path = written(tmp_path / "p.jsonl", [Rating("i", "ada", "informative", "no")])
    assert "simulated" not in json.loads(autoais("agreement", path, "--json").stdout)


def test_free_text_has_no_figures() -> None:
    ratings = [Rating(str(n), "a", "why", f"because {n}") for n in range(30)]
    assert autoais.agreement(ratings)["questions"]["why"]["reason"] == "more than 20 different values"


def test_answers_to_one_question_are_one_unit(tmp_path: Path) -> None:
    ratings = [
        one for n in range(40) for one in rate(f"q{n // 4}/{n % 4}", "informative", "yes yes no" if n < 20 else "no no")
    ]
    rows = [{"id": f"q{n // 4}/{n % 4}", "question": "?", "query_id": n // 4} for n in range(40)]
    answers = tmp_path / "answers.jsonl"
    write_atomic(answers, map(dumps, rows))
    alone, together = autoais.agreement(ratings), autoais.agreement(ratings, answers=answers)
    assert (alone["units"], together["units"]) == ("answers", "questions")

    def width(result: dict[str, Any]) -> float:
        low, high = result["questions"]["informative"]["agreement"]["krippendorff_alpha"]["interval95"]
        return float(high - low)

    assert width(together) > 1.3 * width(alone)
    assert autoais.agreement(ratings, answers=rows) == together
    with pytest.raises(UserError, match="answer 'q0/0' has ratings, but is not among the answers"):
        autoais.agreement(ratings, answers=rows[1:])
    # Items of the training round and gold items are not among the answers.
    others = [Rating("t1", "a", "informative", "yes", phase=phase) for phase in ("training", "gold")]
    assert autoais.agreement([*ratings, *others], answers=answers)["questions"] == together["questions"]


def test_systems_and_batches(tmp_path: Path, autoais: Command) -> None:
    first, second = STUDY[:10], STUDY[10:]
    files = [written(tmp_path / "1.jsonl", first), written(tmp_path / "2.jsonl", second)]
    result = json.loads(autoais("agreement", *files, "--by", "system", "--json").stdout)
    assert [one["tasks"] for one in result["batches"]] == [6, 6]
    assert set(result["systems"]) == {"s", "t"}
    assert result["systems"]["s"]["interpretable"]["items"] == 2
    shown = autoais("agreement", *files, "--by", "system").stdout
    assert "17 ratings of 4 items by 3 annotators" in shown
    one_line_error(autoais("agreement", files[0], files[0]), "named twice")
    again = written(tmp_path / "3.jsonl", first[:1])
    one_line_error(autoais("agreement", files[0], again), "3.jsonl: annotator 'a' rated item 'q1/1'", "1.jsonl too")
    one_line_error(autoais("agreement", files[0], "--experts", "nobody"), "no annotator 'nobody'")
    one_line_error(autoais("agreement", files[0], "--experts", ""), "no annotator ''")
    one_line_error(autoais("agreement", files[0], "--experts", '"Doe, J.", a'), "no annotator 'Doe, J.'")
    one_line_error(autoais("agreement", files[0], "--by", "colour"), "by 'colour'")
    (tmp_path / "empty.jsonl").write_text("")
    one_line_error(autoais("agreement", tmp_path / "empty.jsonl"), "empty.jsonl: holds no ratings")


def test_hostile_names_are_printed_clean(tmp_path: Path, autoais: Command) -> None:
    ratings = [Rating("i\x1b[31m", "a\x07\n[red]", "q\x1b]0;x", "v\x00", system="[bold]\x1b[2J", seconds=1.0)]
    shown = autoais("agreement", written(tmp_path / "r.jsonl", ratings), "--by", "system").stdout
    assert not {"\x1b", "\x07", "\x00"} & set(shown)
    assert "[red]" in shown


# Tables 8 and 9 of the AIS paper, table-to-text (spec E10): tasks, share and quality of each snapshot, mean seconds.
# The paper prints no counts; audited and right are the smallest that give the printed share and quality.
AUDITS = [
    (261, "0.08", "1.00", 20, 20, 324.72), (2518, "0.19", "0.96", 466, 446, 238.40),
    (2463, "0.30", "0.97", 727, 702, 193.95), (1151, "0.34", "0.96", 386, 369, 193.95),
    (849, "0.30", "0.94", 251, 235, 193.95),
]  # fmt: skip


def test_audits_and_times_by_batch_give_tables_8_and_9(tmp_path: Path) -> None:
    # The paper's data are not released: these are made to its figures, to test that the same table comes out.
    files = []
    for number, (tasks, _, _, audited, right, seconds) in enumerate(AUDITS):
        items = [f"{number}/{n}" for n in range(tasks)]
        rows = [Rating(item, "a", "attributable", "yes", seconds=seconds) for item in items]
        rows += [
            Rating(item, "lead", "attributable", "yes" if n < right else "no", phase="audit")
            for n, item in enumerate(items[:audited])
        ]
        files.append(written(tmp_path / f"{number}.jsonl", rows))
    result = autoais.agreement(files)
    for one, (tasks, share, quality, audited, _, seconds) in zip(result["batches"], AUDITS, strict=True):
        audits = one["audits"]
        assert (one["tasks"], audits["audited"], one["seconds"]["mean"]) == (tasks, audited, pytest.approx(seconds))
        assert (f"{audits['share']:.2f}", f"{audits['quality']['value']:.2f}") == (share, quality)
    total = result["audits"]
    assert total["tasks"] == 7242
    assert (f"{total['share']:.2f}", f"{total['quality']['value']:.2f}") == ("0.26", "0.96")  # as printed


# Tables 14 and 16 of the AIS paper (spec E10): mean, median and sd of seconds; difficulty, understood and confident
ABLATIONS = {
    "A1": ((210.3, 199.8, 124.8), (2.1, 3.9, 4.5)),
    "A2": ((223.3, 186.3, 160.2), (1.9, 4.4, 4.5)),
    "A3": ((258.1, 248.3, 115.7), (2.8, 4.4, 4.2)),
    "original": ((203.7, 176.9, 136.7), (2.4, 4.5, 4.2)),
}


@pytest.mark.parametrize("design", ABLATIONS)
def test_times_and_surveys_give_tables_14_and_16(design: str) -> None:
    # Made to the paper's figures, as its data are not released: three tasks, and a survey of ten annotators.
    (mean, median, sd), survey = ABLATIONS[design]
    middle = (3 * mean - median) / 2  # of the other two
    apart = (sd**2 - (median - mean) ** 2 / 2 - (middle - mean) ** 2) ** 0.5
    seconds = (median, middle - apart, middle + apart)
    rows = [Rating(str(n), "a", "attributable", "yes", seconds=took) for n, took in enumerate(seconds)]
    asked = dict(zip(("difficulty", "understood", "confident"), survey, strict=True))
    for question, wanted in asked.items():
        higher = round(10 * wanted) % 10  # so many say one more
        values = [int(wanted) + (n < higher) for n in range(10)]
        rows += [Rating("survey", f"p{n}", question, str(value)) for n, value in enumerate(values)]
    result = autoais.agreement(rows)
    time = result["time"]["tasks"]
    assert [round(time[name], 1) for name in ("mean", "median", "sd")] == [mean, median, sd]
    assert {name: round(result["questions"][name]["mean"]["mean"], 1) for name in asked} == asked


@pytest.mark.parametrize("name", GOLDEN)
def test_ratings_with_the_released_counts_give_the_golden_tables(shared_data: Path, name: str) -> None:
    """Spec E7 and E9: five ratings an item, as many of the majority as the release says."""
    ratings: list[Rating] = []
    counted = {"interpretable": 0, "attributable": 0}
    for number, row in enumerate(read_csv(shared_data / f"ais/ann_{name}.csv")):
        item = str(number)
        if row.is_flagged:
            ratings += [Rating(item, who, FLAG, "missing", system=row.model) for who in NAMES[:5]]
            continue
        labels = {"interpretable": (row.interpretable, row.interpretable_agree)}
        if row.interpretable:
            labels["attributable"] = (row.attributable, row.attributable_agree)
        for question, (label, agreed) in labels.items():
            usable = agreed if agreed is not None and 3 <= agreed <= 5 else None
            counted[question] += usable is not None
            said = ["yes" if label else "no"] * (usable or 1) + ["no" if label else "yes"] * (
                5 - usable if usable else 0
            )
            ratings += [
                Rating(item, who, question, value, system=row.model) for who, value in zip(NAMES, said, strict=False)
            ]
    result = autoais.agreement(ratings)
    for question, golden in zip(("interpretable", "attributable"), AGREEMENT[name], strict=True):
        found = result["questions"][question]["agreement"]
        values = [found[key]["value"] for key in ("krippendorff_alpha", "pairwise_agreement", "f1_to_majority")]
        assert (counted[question], *(round(value, 3) for value in values)) == golden
        assert found["fleiss_kappa"]["value"] == pytest.approx(values[0], abs=0.001)
    rates = {row["model"]: row for row in result["ais"]}
    for model, (total, flagged, clear, attributable) in GOLDEN[name].items():
        row = rates[model]
        assert row["flagged"]["total"] == total
        assert round(row["flagged"]["value"] * total) == flagged
        assert (row["interpretable"]["total"], row["ais"]["total"]) == (total - flagged, clear)
        assert round(row["ais"]["value"] * clear) == attributable


ratings_of_anything = st.lists(
    st.builds(
        Rating,
        st.sampled_from("123"),
        st.sampled_from("abc"),
        st.sampled_from(["interpretable", "attributable", "informative", FLAG]),
        st.sampled_from(["yes", "no"]),
        seconds=st.none() | st.floats(0, 1000),
        phase=st.sampled_from(["study", "study", "study", "gold", "audit", "adjudication"]),
        system=st.sampled_from(["", "s"]),
    ),
    min_size=1,
    max_size=30,
    unique_by=lambda one: (one.item, one.question, one.phase) if one.phase == "adjudication" else one.key,
)


@given(ratings_of_anything, ratings_of_anything)
def test_any_study_has_a_report_without_nan(ratings: Sequence[Rating], others: Sequence[Rating]) -> None:
    result = autoais.agreement(ratings, experts=others, variant=others, by="system")
    assert json.loads(dumps(result)) == result  # `dumps` refuses NaN
