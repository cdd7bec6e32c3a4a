"""How a judge's agreement with people is measured, on labels small enough to count by hand."""

import json
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import dumps
from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution, Judgement, Support, Verdict
from autoais.formats import read_labels
from autoais.judges.lexical import LexicalJudge
from autoais.judges.options import parse_options
from autoais.meta import correlation
from autoais.meta.correlation import kendall_tau_b, pearson, spearman
from autoais.meta.evaluate import (
    calibration_error,
    estimates_of,
    evaluate,
    judge_labels,
    reliability,
    rows_by_set,
    without_texts,
)
from autoais.meta.plot import reliability_svg
from autoais.metrics.classification import balanced_accuracy, cohen_kappa, macro_f1, roc_auc, roc_curve
from autoais.metrics.intervals import clopper_pearson
from tests.chat_server import run_chat_server
from tests.conftest import Command, one_line_error, present
from tests.judges import OneByOne

EVIDENCE = "Warsaw is the capital of Poland."
YES, NO = Verdict.ATTRIBUTABLE, Verdict.NOT_ATTRIBUTABLE


class Told(OneByOne):
    """Says of every claim what it was told to; the name is its own."""

    name = "told@1"

    def __init__(self, says: dict[str, Judgement]) -> None:
        super().__init__()
        self.claims = says

    def of(self, one: Attribution) -> Judgement:
        return self.claims[one.claim]


def told(*items: tuple[bool, Judgement], dataset: str = "Told", system: str = "") -> tuple[list[LabelledClaim], Told]:
    """Labels of claims "0", "1" ... and a judge that says of them what stands beside."""
    labels = [
        LabelledClaim(dataset, str(i), Attribution(f"{dataset} {i}", (f"text {i}",)), truth, system)
        for i, (truth, _) in enumerate(items)
    ]
    return labels, Told({label.attribution.claim: one for label, (_, one) in zip(labels, items, strict=True)})


def bench(identifier: str, claim: str, label: str, references: list[str] | None = None) -> dict[str, Any]:
    return {
        "id": identifier,
        "claim": claim,
        "references": [f"[1] {EVIDENCE}"] if references is None else references,
        "attribution_label": label,
        "src_dataset": "Made",
    }


ROWS = [
    bench("1", "The capital of Poland is Warsaw.", "attributable"),
    bench("2", "Penguins swim in cold water.", "not attributable"),
    bench("3", "Warsaw is the capital of Poland and of Spain.", "not attributable"),
    bench("4", "Warsaw is in Poland.", "attributable", []),
    bench("5", "It is so.", "attributable"),
]


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_each_set_is_reported_with_undecided_apart_and_their_mean(tmp_path: Path) -> None:
    own = {"dataset": "Own", "id": 1, "claim": "Warsaw", "evidence": [EVIDENCE], "label": 1}
    path = write(tmp_path / "l.jsonl", *ROWS, own, own | {"id": 2, "claim": "Penguins", "label": 0})
    result = evaluate(read_labels(path), LexicalJudge())
    made = result["sets"]["Made"]
    # decided: 1 yes/yes, 2 no/no, 3 no/yes, 4 yes/no (nothing cited); 5 is undecided
    assert (made["n"], made["undecided"]) == (4, 1)
    assert made["macro_f1"] == made["balanced_accuracy"] == 0.5
    assert made["macro_f1_floor"] == pytest.approx((0.4 + 0.4) / 2)
    assert result["sets"]["Own"]["roc_auc"] == 1.0
    assert result["average"]["macro_f1"] == (0.5 + 1.0) / 2
    assert result["average"]["sets"]["macro_f1"] == 2
    # the claim without evidence is decided by rule, at probability 0, and so the furthest off
    assert [item["id"] for item in made["worst"]] == ["4", "3"]
    assert made["worst"][0]["probability"] == 0.0


def test_known_values() -> None:
    truth, said = np.array([True, True, False, False]), np.array([True, False, False, False])
    assert macro_f1(truth, said) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert balanced_accuracy(truth, said) == 0.75
    assert cohen_kappa(truth, said) == 0.5
    assert roc_auc(truth, np.array([0.9, 0.4, 0.4, 0.1])) == pytest.approx(3.5 / 4)
    assert roc_auc(np.array([True, True]), np.array([0.1, 0.2])) is None
    probability = np.array([1.0, 0.95, 0.0, 0.05])
    bins = reliability(truth, probability, np.array([1, 2, 3, 4]))
    assert [{key: value for key, value in one.items() if key != "interval95"} for one in bins] == [
        {"bin": 0, "n": 2, "probability": 0.025, "attributable": 0.0},
        {"bin": 9, "n": 2, "probability": 0.975, "attributable": 1.0},
    ]
    assert bins[1]["interval95"] == pytest.approx([0.1581, 1], abs=5e-5)  # Clopper and Pearson's for 2 of 2
    assert calibration_error(truth, probability) == pytest.approx(0.025)
    # one yes in front of all, one between the two no: half the yes at no false alarm, all from 0.5 on
    curve = present(roc_curve(truth, np.array([0.9, 0.4, 0.5, 0.1])))
    assert (curve[0], curve[9], curve[10], curve[20]) == (0.5, 0.5, 1.0, 1.0)


def test_a_judge_without_probabilities_has_no_curve_and_the_reason_stands_there() -> None:
    labels, judge = told((True, Judgement(YES)), (False, Judgement(NO)), (False, Judgement(YES)))
    uncited = LabelledClaim("Told", "9", Attribution("uncited"), False)
    one = evaluate([*labels, uncited], judge)["sets"]["Told"]
    assert (one["n"], one["with_probability"]) == (4, 0)
    for name in ("roc_auc", "calibration_error", "reliability", "roc"):
        assert one[name] is None
        assert one["reasons"][name] == "the judge gave no probabilities"
    assert one["interval95"]["roc_auc"] is None
    assert one["macro_f1"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert [(item["id"], item["probability"]) for item in one["worst"]] == [("2", None)]


def test_both_kinds_of_error_have_a_rate() -> None:
    said = [(True, NO), (True, YES), (True, YES), (True, YES), (False, YES), (False, NO), (True, Verdict.UNDECIDED)]
    labels, judge = told(*((label, Judgement(verdict)) for label, verdict in said))
    one = evaluate(labels, judge)["sets"]["Told"]
    assert (one["false_positive_rate"], one["false_negative_rate"]) == (1 / 2, 1 / 4)
    assert one["interval95"]["false_negative_rate"] == pytest.approx(clopper_pearson(1, 4))
    assert one["interval95"]["false_positive_rate"] == pytest.approx(clopper_pearson(1, 2))


def test_only_verdicts_with_a_probability_enter_what_needs_one() -> None:
    labels, judge = told((True, Judgement(YES, 0.8)), (False, Judgement(NO, 0.3)), (True, Judgement(NO)))
    uncited = LabelledClaim("Told", "9", Attribution("uncited"), True)
    one = evaluate([*labels, uncited], judge)["sets"]["Told"]
    # of 4, one has none; the uncited one is a no by rule, at 0
    assert (one["n"], one["with_probability"]) == (4, 3)
    assert one["roc_auc"] == 0.5
    assert one["calibration_error"] == pytest.approx((0.2 + 0.3 + 1) / 3)


def test_a_set_with_one_kind_of_label_has_reasons_and_the_average_leaves_it_out() -> None:
    labels, judge = told((True, Judgement(YES, 0.8)), (True, Judgement(YES, 0.9)))
    other, second = told((True, Judgement(YES, 0.8)), (False, Judgement(NO, 0.9)), dataset="Other")
    judge.claims |= second.claims
    result = evaluate([*labels, *other], judge)
    one = result["sets"]["Told"]
    assert one["reasons"]["roc_auc"] == one["reasons"]["balanced_accuracy"] == "all labels are the same"
    assert one["reasons"]["cohen_kappa"] == "labels and verdicts are all the same"
    assert result["average"]["roc_auc"] == 0.0
    assert result["average"]["sets"] == {
        "macro_f1": 1, "macro_f1_floor": 1, "balanced_accuracy": 1, "false_positive_rate": 1, "false_negative_rate": 2,
        "roc_auc": 1, "cohen_kappa": 1, "calibration_error": 2,
    }  # fmt: skip
    assert (one["one_class"], one["macro_f1"], result["sets"]["Other"]["one_class"]) == (True, 1.0, False)
    assert result["average"]["macro_f1"] == result["sets"]["Other"]["macro_f1"] == 1.0
    alone = evaluate(labels, judge)["average"]
    assert (alone["macro_f1"], alone["reasons"]["macro_f1"]) == (None, "no data set has labels of both classes")


def test_nothing_decided_is_null_with_reasons() -> None:
    labels, judge = told((True, Judgement(Verdict.UNDECIDED)))
    result = evaluate(labels, judge)
    one = result["sets"]["Told"]
    assert (one["n"], one["undecided"], one["macro_f1"], one["attributable"]) == (0, 1, None, None)
    assert one["reasons"]["macro_f1"] == "nothing was decided"
    assert result["average"]["macro_f1"] is None
    assert result["average"]["reasons"]["macro_f1"] == "no data set has it"
    dumps(result)  # refuses NaN


def test_order_and_batches_change_nothing() -> None:
    random_ = random.Random(3)
    items = [(random_.random() < 0.5, Judgement(random_.choice([YES, NO]), random_.random())) for _ in range(1100)]
    labels, judge = told(*items)
    labels = [replace(label, system=f"s{i % 5}") for i, label in enumerate(labels)]
    before = dumps(evaluate(labels, judge))
    random_.shuffle(labels)
    assert dumps(evaluate(labels, judge)) == before


def systems(*rates: tuple[int, int]) -> tuple[list[LabelledClaim], Told]:
    """Ten claims a system, of which people find the first number attributable and the judge the second."""
    labels: list[LabelledClaim] = []
    says: dict[str, Judgement] = {}
    for number, (people, judge) in enumerate(rates):
        one, its = told(
            *((i < people, Judgement(YES if i < judge else NO, float(i < judge))) for i in range(10)),
            dataset=f"of {number}",
            system=f"system {number}",
        )
        labels += [replace(label, dataset="Ratings", id=f"{number}/{label.id}") for label in one]
        says |= its.claims
    return labels, Told(says)


def test_systems_are_ranked_by_people_and_by_the_judge() -> None:
    labels, judge = systems((2, 1), (4, 5), (6, 5), (8, 9))
    one = evaluate(labels, judge)["sets"]["Ratings"]["systems"]
    assert one["n"] == 4
    assert [(row["system"], row["human"], row["judge"]) for row in one["systems"]] == [
        ("system 0", 0.2, 0.1), ("system 1", 0.4, 0.5), ("system 2", 0.6, 0.5), ("system 3", 0.8, 0.9),
    ]  # fmt: skip
    assert one["kendall_tau_b"]["value"] == pytest.approx(5 / np.sqrt(6 * 5))
    # ranks 1 2 3 4 against 1 2.5 2.5 4
    assert one["spearman"]["value"] == pytest.approx(4.5 / np.sqrt(5 * 4.5))
    assert one["pearson"]["value"] == pytest.approx(0.24 / np.sqrt(0.2 * 0.32))
    low, high = one["kendall_tau_b"]["interval95"]
    assert -1 <= low <= one["kendall_tau_b"]["value"] <= high <= 1


def test_two_systems_have_no_rank_correlation() -> None:
    labels, judge = systems((2, 1), (4, 5))
    one = evaluate(labels, judge)["sets"]["Ratings"]
    assert one["systems"] is None
    assert one["reasons"]["systems"] == "2 systems are named; at least 3 are needed"


def test_a_judge_that_rates_all_systems_alike_has_no_correlation_and_says_why() -> None:
    labels, judge = systems((2, 5), (4, 5), (6, 5))
    one = evaluate(labels, judge)["sets"]["Ratings"]["systems"]
    for name in ("kendall_tau_b", "spearman", "pearson"):
        assert one[name] == {
            "value": None,
            "interval95": None,
            "reason": "all systems have the same human or judge rate",
        }


def test_a_system_with_nothing_decided_is_listed_and_left_out() -> None:
    labels, judge = systems((2, 1), (4, 5), (6, 5))
    judge.claims |= {claim: Judgement(Verdict.UNDECIDED) for claim in judge.claims if claim.startswith("of 2")}
    one = evaluate(labels, judge)["sets"]["Ratings"]["systems"]
    assert one["n"] == 2
    assert one["systems"][2] == {"system": "system 2", "n": 0, "undecided": 10, "human": None, "judge": None}
    assert one["pearson"]["reason"] == "2 systems have decided claims; at least 3 are needed"


SERIES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=12)


@given(SERIES)
def test_correlations_stay_in_range_and_do_not_see_order_or_scale(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    for measure in (kendall_tau_b, spearman, pearson):
        value = measure(x, y)
        assert (value is None) == (len(set(x)) == 1 or len(set(y)) == 1)
        if value is not None:
            assert -1 <= value <= 1
            assert measure(y, x) == pytest.approx(value)
            assert measure(3 * x[::-1] + 1, y[::-1]) == pytest.approx(value)
            assert measure(-x, y) == pytest.approx(-value)
            assert measure(x, x) == pytest.approx(1)
    if (tau := kendall_tau_b(x, y)) is not None and len(set(x)) == len(x) and len(set(y)) == len(y):
        # without ties tau-b is (in order - out of order) / pairs
        signs = [np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in product(range(len(x)), repeat=2) if i < j]
        assert tau == pytest.approx(np.mean(signs))


@given(SERIES)
def test_correlations_are_scipys(pairs: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    x, y = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert kendall_tau_b(x, y) == pytest.approx(stats.kendalltau(x, y).statistic)
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)


def three_way(*pairs: tuple[Verdict, Verdict]) -> tuple[list[LabelledClaim], Told]:
    labels, judge = told(*((label is YES, Judgement(said)) for label, said in pairs))
    return [replace(one, verdict=label) for one, (label, _) in zip(labels, pairs, strict=True)], judge


def test_a_judge_that_is_always_right_has_f1_1_where_all_labels_are_the_same() -> None:
    labels, judge = told(*[(True, Judgement(YES, 0.9))] * 20)
    assert evaluate(labels, judge)["sets"]["Told"]["macro_f1"] == 1.0


def test_three_way_labels_give_attrscores_figures() -> None:
    a, e, c = YES, Verdict.EXTRAPOLATORY, Verdict.CONTRADICTORY
    labels, judge = three_way((a, a), (a, e), (e, e), (c, e), (c, c), (c, Verdict.UNDECIDED))
    one = evaluate(labels, judge)["sets"]["Told"]["three_way"]
    assert one["confusion"] == [[1, 0, 1], [0, 1, 1], [0, 0, 1]]
    assert one["overall"]["value"] == 3 / 5
    assert one["per_class"]["extrapolatory"]["f1"]["value"] == 0.5
    assert one["macro"]["value"] == pytest.approx((2 / 3 + 1 / 2 + 2 / 3) / 3)


def test_a_two_way_judge_is_not_held_against_three_way_labels() -> None:
    labels, judge = three_way((YES, YES), (Verdict.EXTRAPOLATORY, NO), (Verdict.CONTRADICTORY, NO))
    one = evaluate(labels, judge)["sets"]["Told"]
    assert one["three_way"] is None
    assert one["reasons"]["three_way"].startswith("the judge never returns extrapolatory or contradictory")


CLAIMS = st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30)


@given(CLAIMS)
def test_roc_auc_is_the_share_of_pairs_in_order(pairs: list[tuple[bool, float]]) -> None:
    truth, probability = np.array([t for t, _ in pairs]), np.array([p for _, p in pairs])
    yes, no = probability[truth], probability[~truth]
    auc = roc_auc(truth, probability)
    if not len(yes) or not len(no):
        assert auc is None
        assert roc_curve(truth, probability) is None
        return
    assert auc == pytest.approx(np.mean([(y > n) + 0.5 * (y == n) for y in yes for n in no]))
    assert roc_auc(~truth, -probability) == pytest.approx(auc)
    curve = present(roc_curve(truth, probability))
    assert curve == sorted(curve)
    assert curve[-1] == 1


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_agreement_stays_in_range_and_does_not_see_which_class_is_called_yes(pairs: list[tuple[bool, bool]]) -> None:
    truth, said = (np.array(side) for side in zip(*pairs, strict=True))
    kappa = cohen_kappa(truth, said)
    assert kappa is None or -1 <= kappa <= 1
    assert 0 <= macro_f1(truth, said) <= 1
    for measure in (cohen_kappa, macro_f1, balanced_accuracy):
        value, turned = measure(truth, said), measure(~truth, ~said)
        assert value == turned if value is None or turned is None else value == pytest.approx(turned)
    if kappa is not None:
        assert cohen_kappa(said, truth) == pytest.approx(kappa)
        assert (kappa == pytest.approx(1)) == bool((truth == said).all())


@given(CLAIMS)
def test_the_calibration_error_is_the_weighted_gap_of_the_bins(pairs: list[tuple[bool, float]]) -> None:
    truth, probability = np.array([t for t, _ in pairs]), np.array([p for _, p in pairs])
    bins = reliability(truth, probability, np.arange(len(pairs)))
    assert sum(item["n"] for item in bins) == len(pairs)
    gaps = sum(item["n"] * abs(item["probability"] - item["attributable"]) for item in bins) / len(pairs)
    assert calibration_error(truth, probability) == pytest.approx(gaps)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"attribution_label": "maybe"}, "found 'maybe'"),
        ({"references": "text"}, "field 'references' should be a list of strings"),
        ({"claim": None}, "field 'claim' should be a string"),
    ],
)
def test_broken_labels_name_line_and_field(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = write(tmp_path / "l.jsonl", ROWS[0], ROWS[1] | change)
    with pytest.raises(FormatError, match=r"l\.jsonl:2: ") as caught:
        list(read_labels(path))
    assert says in str(caught.value)


HOSTILE = "<script>&\"'\x00\x1b[31m[red]" + "long" * 20


@pytest.mark.parametrize("probability", [0.7, None])
def test_the_plot_is_xml_whatever_a_data_set_is_called(probability: float | None) -> None:
    sets = [told(*[(i % 2 == 0, Judgement(YES, probability)) for i in range(9)], dataset=f"{n}{HOSTILE}") for n in "ab"]
    judge = Told(sets[0][1].claims | sets[1][1].claims)
    result = evaluate([*sets[0][0], *sets[1][0]], judge)
    drawn = "\n".join(reliability_svg(result))
    root = ET.fromstring(drawn)
    words = [element.text or "" for element in root.iter() if element.tag.endswith(("text", "title"))]
    assert any(word.startswith("a<script>&\"'\ufffd\ufffd[31m") for word in words)
    expected = {"n = 9, ECE 0.144", "9", "AUC 0.500"} if probability else {"n = 9", "the judge gave no probabilities"}
    assert expected <= set(words)
    assert "nan" not in drawn.lower()
    assert "\n".join(reliability_svg(result)) == drawn


def test_the_command(tmp_path: Path, autoais: Command) -> None:
    path = write(tmp_path / "l.jsonl", *ROWS)
    card, plot = tmp_path / "card.json", tmp_path / "card.svg"
    outputs = ("--report", card, "--plot", plot, "--cache", tmp_path / "cache")
    done = autoais("evaluate-judge", path, "--judge", "lexical", "--json", *outputs)
    printed, kept = json.loads(done.stdout), json.loads(card.read_text())
    assert printed["judge"] == LexicalJudge().name
    assert printed["sets"]["Made"]["n"] == 4
    assert printed["sets"]["Made"]["worst"][0]["claim"] == "Warsaw is in Poland."
    # the card says nothing of the data's words
    assert kept == without_texts(printed)
    assert "Warsaw" not in card.read_text()
    ET.fromstring(plot.read_bytes())
    autoais("evaluate-judge", path, "--judge", "lexical", "--report", card, "--texts")
    assert "Warsaw" in card.read_text()
    one_line_error(autoais("evaluate-judge", write(tmp_path / "e.jsonl"), "--judge", "lexical"), "no labels in it")
    one_line_error(autoais("evaluate-judge", path, "--judge", "lexical", "--report", path), "would be overwritten")
    one_line_error(autoais("evaluate-judge", path, path, "--judge", "lexical"), "l.jsonl is named twice")
    one_line_error(autoais("evaluate-judge", path, "--judge", "lexical", "--plot", tmp_path / "m.png"), "m.png", ".svg")


def test_people_read_figures_reliability_systems_and_the_worst_disagreements(tmp_path: Path, autoais: Command) -> None:
    own = [
        {"dataset": "[red]Own", "id": f"{s}{i}", "claim": claim, "evidence": [EVIDENCE], "label": i % 2, "system": s}
        for s in "abc"
        for i, claim in enumerate(["Warsaw", "Warsaw\x1b[2J", "Penguins"][: 2 + (s == "b")])
    ]
    path = write(tmp_path / "l.jsonl", *ROWS, *own)
    shown = autoais("evaluate-judge", path, "--judge", "lexical", "--worst", "1").stdout
    assert "[red]Own" in shown
    assert "[red]Own: 3 systems" in shown
    assert "Kendall tau-b" in shown
    assert "Made 4: human label attributable, judge not_attributable (0.000)\n  claim: Warsaw is in Poland." in shown
    assert shown.count("human label") == 2
    assert "\x1b" not in shown
    assert "█ 1.00" in shown or "▁ 0.00" in shown
    plain = autoais("evaluate-judge", path, "--judge", "lexical", "--worst", "0", PYTHONIOENCODING="ascii")
    assert (plain.returncode, "worst" in plain.stdout) == (0, False)


def test_no_width_of_terminal_cuts_a_name_or_a_figure(tmp_path: Path, autoais: Command) -> None:
    name = "a data set of " + 20 * "many words "
    path = write(tmp_path / "l.jsonl", *(row | {"src_dataset": name.strip()} for row in ROWS))
    shown = autoais("evaluate-judge", path, "--judge", "lexical", COLUMNS="40").stdout
    (figures,) = (line for line in shown.splitlines() if line.startswith("average"))
    assert f"\n{name.strip()} " in shown
    assert figures.count("[") == 2
    assert "…" not in shown


def test_options_reach_the_judge(tmp_path: Path, autoais: Command) -> None:
    path = write(tmp_path / "l.jsonl", *ROWS)
    done = autoais("evaluate-judge", path, "--judge", "lexical", "--judge-option", "threshold=0.9", "--json")
    assert json.loads(done.stdout)["judge"] == LexicalJudge(0.9).name
    one_line_error(
        autoais("evaluate-judge", path, "--judge", "lexical", "--judge-option", "speed=1"), "no option 'speed'"
    )
    one_line_error(
        autoais("evaluate-judge", path, "--judge", "lexical", "--judge-option", "threshold"), "should be KEY=VALUE"
    )


def test_options_are_numbers_where_they_look_like_it() -> None:
    parsed = parse_options(["a=1", "max-length=-2", "c=.5", "url=http://x/?a=b", "empty="])
    assert parsed == {"a": 1, "max_length": -2, "c": 0.5, "url": "http://x/?a=b", "empty": ""}
    assert parse_options([]) == {}


@pytest.mark.parametrize("options", [["a"], ["=1"], ["a=1", "a=2"], ["a=nan"], ["a=-inf"], ["a b=1"], ["a=1e999"]])
def test_options_that_make_no_sense_are_refused(options: list[str]) -> None:
    with pytest.raises(UserError, match="judge option"):
        parse_options(options)


def test_counting_words_does_on_attributionbench_what_the_notes_say(shared_data: Path) -> None:
    files = [shared_data / f"labels/attributionbench_{part}.jsonl" for part in ("dev", "test500")]
    result = evaluate((label for file in files for label in read_labels(file)), LexicalJudge())
    assert sum(one["n"] + one["undecided"] for one in result["sets"].values()) == 1698
    # the data notes give 70.4 and .766 for a similar count of words with the same threshold
    assert result["average"]["macro_f1"] == pytest.approx(0.704, abs=0.02)
    assert result["average"]["roc_auc"] == pytest.approx(0.766, abs=0.02)


def test_reports_say_how_the_judge_was_asked(tmp_path: Path, autoais: Command) -> None:
    rows = [
        {"dataset": "Own", "id": n, "claim": f"{claim} {n}", "evidence": [f"{EVIDENCE} {n}"], "label": label}
        for n, (claim, label) in enumerate([("Warsaw capital Poland", 1), ("Warsaw penguins swim", 0)] * 12)
    ]
    labels, out, cache = write(tmp_path / "l.jsonl", *rows), tmp_path / "out.json", tmp_path / "c.jsonl"
    with run_chat_server() as server:
        base_url = server.script({"say": "Extrapolatory", "without": ["seed"]})
        records = []
        for _ in range(2):
            options = ("--judge", "llm:tiny", "--cache", cache, "--report", out, "--json")
            done = autoais("evaluate-judge", labels, *options, OPENAI_BASE_URL=base_url)
            assert done.returncode == 0, done.stderr
            records.append(json.loads(done.stdout)["provenance"]["judge"])
            assert json.loads(out.read_text())["provenance"]["judge"] == records[-1]
    first, again = records
    assert first["name"] == json.loads(out.read_text())["judge"]
    assert first["prompt"]["name"] == "attrscore-attribution-with-definition.v1"
    assert (first["served"], first["refused"]) == (["tiny-1 fp_9"], ["seed"])
    assert first["usage"] == {"requests": 25, "prompt_tokens": 7 * 24, "completion_tokens": 2 * 24}
    assert again["usage"] == {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0}
    assert autoais("calibrate", labels, "--judge", "lexical", "--out", out).returncode == 0
    assert json.loads(out.read_text())["provenance"]["judge"] == {"name": LexicalJudge().name}


def test_claims_of_one_question_are_no_independent_ones() -> None:
    def found(*questions: str) -> dict[str, Any]:
        items = [(n % 3 > 0, Judgement(YES if n % 5 else NO, (n % 10 + n // 6) / 20)) for n in range(60)]
        labels, judge = told(*items)
        asked = [
            replace(label, attribution=replace(label.attribution, question=question))
            for label, question in zip(labels, questions, strict=True)
        ]
        return evaluate(asked, judge, worst=0)["sets"]["Told"]  # type: ignore[no-any-return]

    apart, named = found(*[""] * 60), found(*map(str, range(60)))
    assert apart == named
    assert apart["questions"] == 60
    few = found(*(str(n // 6) for n in range(60)))
    assert few["questions"] == 10
    for name, ends in apart["interval95"].items():
        assert few[name] == apart[name]
        assert few["interval95"][name] != ends
        assert ends[0] < apart[name] < ends[1]
    assert few["reliability"][5]["interval95"] != apart["reliability"][5]["interval95"]


def test_a_judge_that_is_always_right_has_no_interval_of_no_width() -> None:
    labels, judge = told(*[(n % 2 > 0, Judgement(YES if n % 2 else NO, 0.9 if n % 2 else 0.1)) for n in range(20)])
    ends = evaluate(labels, judge)["sets"]["Told"]["interval95"]
    # The yeses are ten questions, and so are the noes; F1 and kappa are over all twenty.
    assert ends["roc_auc"] == ends["balanced_accuracy"] == pytest.approx([0.6915, 1], abs=5e-5)
    assert ends["macro_f1"][1] == ends["cohen_kappa"][1] == 1.0
    assert ends["macro_f1"][0] < 0.9


def test_without_a_question_claims_that_share_text_or_evidence_are_one_unit() -> None:
    def units(*pairs: tuple[str, str]) -> int:
        labels = [
            LabelledClaim("D", str(n), Attribution(*pair[:1], tuple(pair[1:])), n % 2 > 0)
            for n, pair in enumerate(pairs)
        ]
        judge = Told({claim: Judgement(YES, 0.5) for claim, _ in pairs})
        found: int = evaluate(labels, judge)["sets"]["D"]["questions"]
        return found

    assert units(("a", "1"), ("b", "2"), ("c", "3")) == 3
    assert units(("a", "1"), ("a", "2"), ("b", "3")) == 2
    assert units(("a", "1"), ("b", "1"), ("c", "3")) == 2
    assert units(("a", "1"), ("b", "1"), ("b", "2"), ("c", "2"), ("1", "a")) == 2


def test_the_interval_of_a_correlation_holds_the_percentile_and_the_basic_one() -> None:
    rng = np.random.default_rng(4)
    # Eight systems that differ in how often they are right, on 60 questions; the judge errs on one in five.
    truth = rng.random((60, 8)) < np.linspace(0.2, 0.9, 8)
    said = np.where(rng.random((60, 8)) < 0.2, ~truth, truth)
    cells = np.eye(4, dtype=np.int64)[2 * truth + said]
    found = correlation.over_systems(list("abcdefgh"), cells, [0] * 8)
    assert found["systems"][0]["human"] == truth[:, 0].mean()
    drawn = []
    for _ in range(4000):
        rows = rng.integers(0, 60, 60)
        value = present(pearson(truth[rows].mean(axis=0), said[rows].mean(axis=0)))
        drawn.append(value)
    value, (first, last) = found["pearson"]["value"], np.percentile(drawn, [2.5, 97.5])
    assert first < value < last < 1 < 2 * value - first
    assert found["pearson"]["interval95"] == pytest.approx([min(first, 2 * value - last), 1], abs=0.01)
    assert (
        correlation.over_systems(list("abcdefgh"), cells[::-1], [0] * 8)["pearson"]["value"]
        == found["pearson"]["value"]
    )
    assert correlation.over_systems(list("abcdefgh"), cells, [0] * 8) == found


def test_resamples_without_a_claim_of_a_system_are_left_out() -> None:
    cells = np.zeros((12, 3, 4), np.int64)
    cells[:4, 0, 3] = cells[4:8, 1, 0] = cells[8:, 2, 1] = 1  # every system answered four questions of its own
    found = correlation.over_systems(["a", "b", "c"], cells, [0, 0, 0])
    assert found["pearson"]["interval95_reason"].startswith("nearly all resamples")


def test_a_correlation_over_few_questions_has_no_interval() -> None:
    def found(questions: int) -> dict[str, Any]:
        cells = np.zeros((questions, 3, 4), np.int64)
        cells[:, 0], cells[:, 1], cells[:, 2] = [8, 0, 0, 2], [5, 0, 0, 5], [2, 0, 0, 8]
        empty = np.zeros((20, 3, 4), np.int64)  # no claim was decided
        result = correlation.over_systems(["a", "b", "c"], np.concatenate([cells, empty]), [0, 0, 0])
        return dict(result["kendall_tau_b"])

    reason = "questions have decided claims; at least 10 are needed"
    assert found(1) == {"value": 1.0, "interval95": None, "interval95_reason": f"1 {reason}"}
    assert found(9)["interval95_reason"] == f"9 {reason}"
    # The order of these three is the same in every resample: no interval of no width.
    assert found(40)["value"] == 1.0
    assert found(40)["interval95"] is None
    assert found(40)["interval95_reason"].startswith("nearly all resamples of the questions have the same correlation")
    # One system was asked once: a third of the resamples lack it.
    rare = np.zeros((30, 3, 4), np.int64)
    rare[:, 0], rare[:, 1], rare[0, 2] = [8, 0, 0, 2], [5, 0, 0, 5], [2, 0, 0, 8]
    one = correlation.over_systems(["a", "b", "c"], rare, [0, 0, 0])["pearson"]
    assert one["value"] is not None
    assert one["interval95"] is None
    assert one["interval95_reason"].startswith("the correlation is undefined in ")


def test_the_variance_of_each_figure_is_that_of_the_jackknife_over_questions() -> None:
    rng = np.random.default_rng(7)
    n = 900
    asked = rng.integers(0, 300, n)
    truth = rng.random(n) < 0.35 + 0.3 * (asked % 2)
    probability = np.round(np.clip(rng.normal(0.35 + 0.3 * truth, 0.25), 0, 1), 1)  # with many ties
    items = [(bool(t), Judgement(YES if p > 0.5 else NO, float(p))) for t, p in zip(truth, probability, strict=True)]
    labels, judge = told(*items)
    named = [
        replace(one, attribution=replace(one.attribution, question=str(question)))
        for one, question in zip(labels, asked, strict=True)
    ]
    rows = rows_by_set(judge_labels(named, judge))["Told"]
    figures: dict[str, Callable[[Any], float | None]] = {
        "macro_f1": lambda there: macro_f1(rows.truth[there], rows.prediction[there]),
        "balanced_accuracy": lambda there: balanced_accuracy(rows.truth[there], rows.prediction[there]),
        "roc_auc": lambda there: roc_auc(rows.truth[there], rows.probability[there]),
        "cohen_kappa": lambda there: cohen_kappa(rows.truth[there], rows.prediction[there]),
        "calibration_error": lambda there: calibration_error(rows.truth[there], rows.probability[there]),
    }
    estimates, questions = estimates_of(rows), np.unique(rows.question)
    for name, figure in figures.items():
        left_out = np.array([figure(rows.question != one) for one in questions])
        wanted = (len(questions) - 1) / len(questions) * ((left_out - left_out.mean()) ** 2).sum()
        found = present(estimates[name])
        assert found.value == figure(np.ones(n, np.bool_))
        assert (found.parts**2).sum() == pytest.approx(wanted, rel=0.05), name


def test_the_interval_of_the_average_is_over_all_sets() -> None:
    rng = np.random.default_rng(2)
    sets = []
    for name in "abcd":
        truth = rng.random(80) < 0.5
        said = truth ^ (rng.random(80) < 0.25)
        sets.append(
            told(*((bool(t), Judgement(YES if s else NO)) for t, s in zip(truth, said, strict=True)), dataset=name)
        )
    judge = Told({claim: one for _, judge in sets for claim, one in judge.claims.items()})
    result = evaluate([label for labels, _ in sets for label in labels], judge)
    low, high = result["average"]["interval95"]["macro_f1"]
    assert low < result["average"]["macro_f1"] < high
    widths = [one["interval95"]["macro_f1"][1] - one["interval95"]["macro_f1"][0] for one in result["sets"].values()]
    assert high - low == pytest.approx(np.sqrt(np.square(widths).sum()) / 4, rel=0.05)  # four independent sets
    assert result["average"]["interval95"]["roc_auc"] is None  # no probabilities


def test_levels_of_support_are_compared_where_people_gave_them() -> None:
    full, partial, none = Support.FULL, Support.PARTIAL, Support.NONE
    some = Verdict.PARTIALLY_ATTRIBUTABLE
    pairs = [(full, YES), (full, some), (partial, some), (partial, NO), (none, NO), (none, YES), (None, some)]
    labels, judge = told(*((level is full, Judgement(said)) for level, said in pairs))
    named = [replace(one, support=level) for one, (level, _) in zip(labels, pairs, strict=True)]
    one = evaluate(named, judge)["sets"]["Told"]
    assert one["levels"]["confusion"] == [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    assert one["levels"]["n"] == 6
    asked = [replace(label, attribution=replace(label.attribution, question="one for all")) for label in named]
    together = evaluate(asked, judge)["sets"]["Told"]["levels"]
    assert together["confusion"] == one["levels"]["confusion"]
    assert together != one["levels"]  # the intervals are over questions
    assert evaluate(labels, judge)["sets"]["Told"]["reasons"]["levels"] == "the labels have no levels of support"


def test_the_table_says_which_levels_it_leaves_out_and_which_sets_have_one_class(
    tmp_path: Path, autoais: Command
) -> None:
    same = [
        {"dataset": "Same", "id": n, "claim": f"Warsaw {n}", "evidence": [f"{EVIDENCE} {n}"], "label": 1}
        for n in range(3)
    ]
    levels = [
        {"dataset": "Levels", "id": n, "claim": f"Warsaw {n}", "evidence": [EVIDENCE], "label": n, "support": support}
        for n, support in enumerate(["partial", "full"])
    ]
    shown = autoais("evaluate-judge", write(tmp_path / "l.jsonl", *ROWS, *same, *levels), "--judge", "lexical").stdout
    assert "labels all the same, so macro-F1 says little and is not in the average: Same\n" in shown
    said = "levels of support not compared: the judge never says partial, only attributable or not"
    assert f"Levels: {said}" in shown
    assert shown.count("not compared") == 1


def test_disagreements_come_with_the_most_certain_first() -> None:
    items = [
        (True, Judgement(NO, 0.4)), (False, Judgement(YES, 0.9)), (True, Judgement(NO)), (True, Judgement(NO, 0.05)),
        (False, Judgement(YES, 0.9)), (True, Judgement(YES, 0.8)), (False, Judgement(YES, 0.6)),
    ]  # fmt: skip
    labels, judge = told(*items)
    texts = replace(labels[3].attribution, evidence=("e" * 400, "f" * 400), question="q" * 30)
    labels[3] = replace(labels[3], attribution=texts)
    result = evaluate(labels, judge)
    worst = result["sets"]["Told"]["worst"]
    assert [one["id"] for one in worst] == ["2", "3", "1", "4", "0"]  # without a probability first, then by id
    assert worst[1]["evidence"] == f"{'e' * 400} {'f' * 400}"[:400] + "..."
    assert (worst[1]["question"], worst[1]["claim"]) == ("q" * 30, "Told 3")
    assert evaluate(labels, judge, worst=1)["sets"]["Told"]["worst"] == worst[:1]
    kept = without_texts(result)["sets"]["Told"]["worst"]
    assert kept[1] == {"id": "3", "attributable": True, "verdict": "not_attributable", "probability": 0.05}
    assert {key: value for key, value in without_texts(result)["sets"]["Told"].items() if key != "worst"} == {
        key: value for key, value in result["sets"]["Told"].items() if key != "worst"
    }


def test_undecided_claims_are_counted_for_each_system() -> None:
    labels, judge = systems((2, 1), (4, 5), (6, 5))
    unknown = [claim for claim in judge.claims if claim.startswith("of 1")][:3]
    judge.claims |= {claim: Judgement(Verdict.UNDECIDED) for claim in unknown}
    nobody = replace(labels[0], system="", id="x", attribution=Attribution("nobody's", ("t",)))
    judge.claims["nobody's"] = Judgement(Verdict.UNDECIDED)
    one = evaluate([*labels, nobody], judge)["sets"]["Ratings"]["systems"]
    assert [(row["n"], row["undecided"]) for row in one["systems"]] == [(10, 0), (7, 3), (10, 0)]
    few = systems((2, 1), (4, 5))
    assert evaluate(*few)["sets"]["Ratings"]["systems"] is None
