"""What `autoais calibrate` fits, keeps and refuses."""

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from autoais.base.errors import FormatError, UserError
from autoais.base.io.jsonl import dumps, write_atomic
from autoais.base.labels import LabelledClaim
from autoais.base.types import Attribution, Judgement, Verdict
from autoais.formats.human_ratings.ratings import Rating, write_ratings
from autoais.judges.lexical import LexicalJudge
from autoais.meta.calibrate import (
    CalibratedJudge,
    Calibration,
    calibrate,
    collect,
    fit,
    open_calibrated_judge,
    read_calibration,
)
from autoais.meta.evaluate import evaluate
from autoais.meta.logistic import fit_logistic
from autoais.metrics.classification import balanced_accuracy, macro_f1
from tests.autoais.meta.test_meta import EVIDENCE, NO, YES, Told, told, write
from tests.conftest import Command, one_line_error

FIT = Calibration("told@1", 0.3, 2.0, -1.0)


def noisy(n: int, *, slope: float, intercept: float, cut: float = 0.5) -> tuple[list[LabelledClaim], Told]:
    """Claims of which the share logistic(slope * logit(p) + intercept) is attributable; the judge cuts at `cut`."""
    drawn = random.Random(7)
    items = []
    for _ in range(n):
        p = drawn.uniform(0.02, 0.98)
        share = 1 / (1 + math.exp(-(slope * math.log(p / (1 - p)) + intercept)))
        items.append((drawn.random() < share, Judgement(YES if p >= cut else NO, p)))
    return told(*items)


def test_the_fit_finds_the_curve_the_labels_came_from() -> None:
    labels, judge = noisy(4000, slope=0.8, intercept=-1.0)
    result = calibrate(labels, judge)
    assert result["slope"] == pytest.approx(0.8, abs=0.08)
    assert result["intercept"] == pytest.approx(-1.0, abs=0.12)
    assert 0.55 < result["threshold"] < 0.8
    one = result["cross_validation"]["sets"]["Told"]
    assert one["gain"] == one["calibrated"]["macro_f1"] - one["default"]["macro_f1"] > 0
    assert one["calibrated"]["calibration_error"] < 0.05 < one["default"]["calibration_error"]
    assert result["cross_validation"]["average"]["gain"] == one["gain"]


def test_the_gain_has_an_interval_over_questions_that_the_fit_did_not_see() -> None:
    labels, judge = noisy(4000, slope=0.8, intercept=-1.0)
    one = calibrate(labels, judge)["cross_validation"]["sets"]["Told"]
    ends = one["interval95"]
    assert ends["default"][0] < one["default"]["macro_f1"] < ends["default"][1]
    assert ends["calibrated"][0] < one["calibrated"]["macro_f1"] < ends["calibrated"][1]
    assert 0 < ends["gain"][0] < one["gain"] < ends["gain"][1]
    # The same verdicts on both sides cancel out: the difference is known better than either side.
    assert ends["gain"][1] - ends["gain"][0] < ends["default"][1] - ends["default"][0]
    assert one["questions"] == len({label.attribution.question or label.attribution.claim for label in labels})


def test_claims_about_one_text_share_a_fold_and_count_once() -> None:
    labels, judge = noisy(360, slope=1.0, intercept=0.0)
    shared = [
        replace(one, attribution=replace(one.attribution, evidence=(f"text {n % 12}",))) for n, one in enumerate(labels)
    ]
    one = calibrate(shared, judge)["cross_validation"]["sets"]["Told"]
    assert one["questions"] == evaluate(shared, judge)["sets"]["Told"]["questions"] == 12


def test_a_gain_by_chance_has_an_interval_that_holds_zero() -> None:
    labels, judge = noisy(300, slope=1.0, intercept=0.0)
    low, high = calibrate(labels, judge)["cross_validation"]["average"]["interval95"]["gain"]
    assert low < 0 < high


def test_the_consensus_of_a_study_calibrates_a_judge(tmp_path: Path, autoais: Command) -> None:
    rows, rated = [], []
    for n in range(60):
        supported = n % 2 == 0
        text = "Warsaw lies on the Vistula river." if supported else "Warsaw lies near seven big old hills today."
        sentence = {"text": text, "citations": [{"passage": "p"}]}
        passage = {"id": "p", "text": f"In {n} words: Warsaw is a big old city that lies on the Vistula, a river."}
        rows.append({"id": f"{n}", "question": f"Where is {n}?", "sentences": [sentence], "passages": [passage]})
        rated += [Rating(f"{n}", who, "attributable", "yes" if supported or n == 1 else "no") for who in "abc"]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_atomic(tmp_path / "ratings.jsonl", write_ratings(rated))
    labelled = tmp_path / "labelled.jsonl"
    done = autoais(
        "ratings", tmp_path / "ratings.jsonl", labelled, "--to", "answers", "--answers", tmp_path / "answers.jsonl"
    )
    assert done.returncode == 0, done.stderr
    done = autoais("calibrate", labelled, "--judge", "lexical", "--out", tmp_path / "c.json", "--json")
    result = json.loads(done.stdout)
    one = result["cross_validation"]["sets"]["answers"]
    assert (result["n"], one["questions"], result["cross_validation"]["folds"]) == (60, 60, 5)
    assert one["gain"] == pytest.approx(one["calibrated"]["macro_f1"] - one["default"]["macro_f1"], abs=1e-6)
    shown = autoais("calibrate", labelled, "--judge", "lexical", "--out", tmp_path / "d.json").stdout
    assert "95 %" in shown
    gain, (low, _) = result["cross_validation"]["average"]["gain"], one["interval95"]["gain"]
    assert ("no gain: keep the judge as it is" in shown) == (gain <= 0)
    assert ("the interval of the gain holds 0: keep the judge as it is" in shown) == (low <= 0 < gain)


def test_the_threshold_is_the_best_one_by_hand() -> None:
    said = [(False, 0.1), (False, 0.2), (True, 0.3), (True, 0.4), (False, 0.5), (True, 0.6)] * 4
    labels, judge = told(*((truth, Judgement(NO, p)) for truth, p in said))
    for by in ("macro_f1", "balanced_accuracy"):
        assert calibrate(labels, judge, by=by)["threshold"] == pytest.approx(0.25)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), min_size=4, max_size=20), st.sampled_from([0, 1]))
def test_no_threshold_is_better_than_the_one_chosen(pairs: list[tuple[bool, int]], aim: int) -> None:
    labels, judge = told(*((truth, Judgement(NO, p / 10)) for truth, p in pairs))
    claims = collect(labels, judge, 5)
    figure = (macro_f1, balanced_accuracy)[aim]
    try:
        chosen = fit(claims, judge.name, ("macro_f1", "balanced_accuracy")[aim]).threshold
    except UserError:
        return  # one class, or a judge that is right less often the surer it is
    seen = sorted({p / 10 for _, p in pairs})
    values = [figure(claims.truth, claims.probability >= cut) or 0 for cut in seen[1:]]
    assert figure(claims.truth, claims.probability >= chosen) == pytest.approx(max(values))


def test_each_aim_has_its_own_threshold() -> None:
    said = [(True, 0.9), (True, 0.4), *((False, p) for p in (0.1, 0.2, 0.25, 0.3, 0.5, 0.6))] * 4
    labels, judge = told(*((truth, Judgement(NO, p)) for truth, p in said))
    # At .35, .67 and .80 are the F1 of the classes and 1 and 4/6 their recalls; at .75, .67 and .92, and 1/2 and 1.
    assert calibrate(labels, judge)["threshold"] == calibrate(labels, judge, by="macro_f1")["threshold"] == 0.75
    assert calibrate(labels, judge, by="balanced_accuracy")["threshold"] == 0.35


def test_of_equally_good_thresholds_the_middle_one_is_chosen() -> None:
    said = [(n % 2 == 1, p) for n, p in enumerate((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9))] * 4
    labels, judge = told(*((truth, Judgement(NO, p)) for truth, p in said))
    # Balanced accuracy is 5/8 at .15, .35, .55 and .8.
    assert calibrate(labels, judge, by="balanced_accuracy")["threshold"] == 0.55


def test_each_fold_is_judged_by_a_fit_to_the_others() -> None:
    labels, judge = noisy(60, slope=0.8, intercept=-1.0)
    claims = collect(labels, judge, 5)
    said = np.zeros(len(claims.truth), np.bool_)
    for fold in range(5):
        fitted = fit(claims.select(claims.fold != fold), judge.name, "macro_f1")
        said[claims.fold == fold] = claims.probability[claims.fold == fold] >= fitted.threshold
    result = calibrate(labels, judge)["cross_validation"]
    assert (result["folds"], result["sets"]["Told"]["n"]) == (5, 60)
    assert result["sets"]["Told"]["calibrated"]["macro_f1"] == pytest.approx(macro_f1(claims.truth, said))


def test_the_curve_minimises_the_log_loss_to_platts_targets_with_even_sets() -> None:
    first, judge = noisy(12, slope=1.0, intercept=0.0)
    second, more = told(*[(p > 0.5, Judgement(NO, p)) for p in (0.3, 0.45, 0.55, 0.8)], dataset="Second")
    judge.claims |= more.claims
    claims = collect([*first, *second], judge, 5)
    yes = int(claims.truth.sum())
    no = len(claims.truth) - yes
    targets = np.where(claims.truth, (yes + 1) / (yes + 2), 1 / (no + 2))
    weights = np.where(claims.dataset == claims.names.index("Second"), 1 / 4, 1 / 12)
    scores = np.log(claims.probability / (1 - claims.probability))

    def loss(numbers: NDArray[np.float64]) -> float:
        z = numbers[0] * scores + numbers[1]
        return float((weights * (np.logaddexp(0, z) - targets * z)).sum())

    best = minimize(loss, [1.0, 0.0], tol=1e-10).x
    found = fit(claims, judge.name, "macro_f1")
    assert [found.slope, found.intercept] == pytest.approx(best, abs=0.01)  # probabilities are moved 0.001 inside


@given(st.integers(0, 10**6))
def test_the_regression_is_the_least_of_loss_and_ridge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, targets = rng.normal(size=(30, 3)) * 3, rng.random(30).round()
    weights, ridge, start = rng.random(30), rng.uniform(0.1, 2, 3), rng.normal(size=3) * 5
    found = fit_logistic(features, targets, weights, ridge, start)
    gradient = features.T @ (weights * (1 / (1 + np.exp(-features @ found)) - targets)) + ridge * (found - start)
    assert gradient == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("folds", [1, 101])
def test_folds_are_2_to_100(folds: int) -> None:
    labels, judge = noisy(300, slope=1.0, intercept=0.0)
    with pytest.raises(UserError, match=f"folds should be 2 to 100, found {folds}"):
        calibrate(labels, judge, folds=folds)
    assert calibrate(labels, judge, folds=2)["cross_validation"]["folds"] == 2


def test_the_numbers_do_not_depend_on_the_order_of_the_labels() -> None:
    labels, judge = noisy(300, slope=1, intercept=0)
    before = dumps(calibrate(labels, judge))
    random.Random(1).shuffle(labels)
    assert dumps(calibrate(labels, judge)) == before


def test_the_default_of_cross_validation_is_what_meta_reports() -> None:
    labels, judge = noisy(200, slope=1, intercept=-1)
    one = calibrate(labels, judge)["cross_validation"]["sets"]["Told"]["default"]
    reported = evaluate(labels, judge)["sets"]["Told"]
    assert one == {name: pytest.approx(reported[name]) for name in one}


def test_every_data_set_weighs_the_same() -> None:
    labels, judge = noisy(400, slope=1, intercept=0)
    steep, second = told(*[(p > 0.7, Judgement(NO, p)) for p in (0.3, 0.5, 0.65, 0.8)] * 50, dataset="steep")
    judge.claims |= second.claims
    once, often = (calibrate([*labels, *steep * times], judge) for times in (1, 10))
    assert once["threshold"] == often["threshold"]
    assert once["slope"] == pytest.approx(often["slope"], rel=0.02)
    assert often["n"] == 2400


def test_what_a_calibration_cannot_change_is_left_out_and_counted() -> None:
    labels, judge = noisy(100, slope=1, intercept=0)
    more, second = told((True, Judgement(Verdict.UNDECIDED)), (True, Judgement(YES)), dataset="More")
    judge.claims |= second.claims
    uncited = LabelledClaim("More", "9", Attribution("uncited"), False)
    result = calibrate([*labels, *more, uncited], judge)
    assert result["n"] == 100
    assert result["left_out"] == {"undecided": 1, "by_rule": 1, "without_probability": 1}


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([], "no labels are left to fit"),
        ([(True, Judgement(Verdict.UNDECIDED))], "no labels are left to fit"),
        ([(True, Judgement(YES)), (False, Judgement(NO))], "gives no probabilities"),
        ([(True, Judgement(YES, 0.8)), (True, Judgement(NO, 0.1))], "labels are all the same"),
        ([(True, Judgement(YES, 0.8)), (False, Judgement(YES, 0.8))], "the same probability"),
        ([(True, Judgement(NO, 0.1)), (False, Judgement(YES, 0.8))] * 9, "does not increase with the labels"),
        ([(True, Judgement(YES, 0.8)), (False, Judgement(NO, 0.1))], "too few questions for cross-validation"),
    ],
)
def test_labels_that_do_not_do_are_refused(items: list[tuple[bool, Judgement]], says: str) -> None:
    labels, judge = told(*items)
    with pytest.raises(UserError, match=says):
        calibrate(labels, judge)


def test_labels_of_one_kind_say_what_was_left_out() -> None:
    labels, judge = told((True, Judgement(YES, 0.8)))
    uncited = LabelledClaim("More", "9", Attribution("uncited"), False)
    with pytest.raises(
        UserError,
        match=r"labels are all the same \(left out: 1 decided without the judge \(nothing said or cited\)\); a",
    ):
        calibrate([*labels, uncited], judge)


def test_a_question_of_two_data_sets_is_in_one_fold() -> None:
    labels, judge = noisy(60, slope=1, intercept=0)
    asked = [replace(one, attribution=replace(one.attribution, question=f"Q {n}?")) for n, one in enumerate(labels)]
    both = [*asked, *(replace(one, dataset="Other") for one in asked)]
    claims = collect(both, judge, 5)
    assert len(np.unique(claims.fold)) == 5
    for question in np.unique(claims.question):
        there = claims.question == question
        assert sorted(claims.dataset[there]) == [0, 1]
        assert len(np.unique(claims.fold[there])) == 1


def test_a_set_with_labels_of_one_class_is_not_in_fit_and_average() -> None:
    labels, judge = noisy(200, slope=1, intercept=0)
    single, second = told(*[(False, Judgement(YES, p)) for p in (0.6, 0.7, 0.8, 0.9)] * 9, dataset="Single")
    judge.claims |= second.claims
    alone, together = calibrate(labels, judge), calibrate([*labels, *single], judge)
    assert together["threshold"] == alone["threshold"]
    cross = together["cross_validation"]
    assert (cross["sets"]["Single"]["one_class"], cross["sets"]["Told"]["one_class"]) == (True, False)
    assert cross["average"]["gain"] == cross["sets"]["Told"]["gain"]
    assert cross["average"]["calibrated"]["macro_f1"] == cross["sets"]["Told"]["calibrated"]["macro_f1"]
    assert cross["average"]["interval95"]["gain"] == pytest.approx(cross["sets"]["Told"]["interval95"]["gain"])


def test_labels_that_the_judge_tells_apart_cleanly_still_give_finite_numbers() -> None:
    labels, judge = told(*[(True, Judgement(YES, 1.0)), (False, Judgement(NO, 0.0))] * 20)
    result = calibrate(labels, judge)
    assert result["threshold"] == 0.5
    assert 0 < result["slope"] < 10
    assert result["cross_validation"]["average"]["calibrated"]["macro_f1"] == 1


def test_a_calibrated_judge_moves_the_cut_and_keeps_the_rest() -> None:
    contradictory = Judgement(Verdict.CONTRADICTORY, 0.1, "why", unsupported=((0, 2),))
    says = {
        "over": Judgement(NO, 0.3),
        "under": Judgement(YES, 0.29),
        "against": contradictory,
        "lost": Judgement(Verdict.UNDECIDED, 0.9, "prose"),
        "bare": Judgement(YES),
    }
    judge = CalibratedJudge(Told(says), FIT)
    over, under, against, lost, bare = judge.judge([Attribution(claim, ("text",)) for claim in says])
    assert (over.verdict, under.verdict, against.verdict) == (YES, NO, Verdict.CONTRADICTORY)
    assert (against.reason, against.unsupported) == ("why", ((0, 2),))
    assert (lost, bare) == (says["lost"], says["bare"])
    p = 0.001 + 0.998 * 0.3
    assert over.probability == pytest.approx(1 / (1 + math.exp(-(2 * math.log(p / (1 - p)) - 1))))
    assert judge.name == f"told@1+{FIT.digest}"
    assert len(FIT.digest) == 8
    assert Calibration("told@1", 0.3, 2.0, -1.1).digest != FIT.digest


@given(st.floats(1e-6, 1e300), st.floats(-1e300, 1e300), st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted))
def test_calibrated_probabilities_stay_in_range_and_in_order(slope: float, shift: float, pair: list[float]) -> None:
    low, high = Calibration("j", 0.5, slope, shift).scale(np.array(pair))
    assert 0 <= low <= high <= 1


def test_a_calibration_is_kept_read_and_used(tmp_path: Path, autoais: Command) -> None:
    rows = [
        {"dataset": "Own", "id": n, "claim": claim + f" {n}", "evidence": [f"{EVIDENCE} {n}"], "label": label}
        for n, (claim, label) in enumerate([("Warsaw capital Poland", 1), ("Warsaw penguins swim", 0)] * 12)
    ]
    labels, out = write(tmp_path / "l.jsonl", *rows), tmp_path / "fit.json"
    done = autoais("calibrate", labels, "--judge", "lexical", "--out", out)
    assert re.search(r"^Own +24 .* 1\.000 .*[+-]0\.000 ", done.stdout, re.MULTILINE), done.stdout
    assert "no gain: keep the judge as it is" in done.stdout  # the judge has no error
    kept = json.loads(out.read_text())
    assert kept["judge"] == LexicalJudge().name
    assert kept["provenance"]["inputs"]["labels1"]["file"] == "l.jsonl"
    judge = open_calibrated_judge(LexicalJudge(), out)
    assert judge.name == kept["name"] in done.stdout
    report = json.loads(autoais("evaluate-judge", labels, "--judge", "lexical", "--calibration", out, "--json").stdout)
    assert report["judge"] == kept["name"]
    assert report["provenance"]["inputs"]["calibration"]["file"] == "fit.json"
    assert json.loads(autoais("calibrate", labels, "--judge", "lexical", "--out", out, "--json").stdout) == json.loads(
        out.read_text()
    )
    other = autoais(
        "evaluate-judge", labels, "--judge", "lexical", "--judge-option", "threshold=0.5", "--calibration", out
    )
    one_line_error(other, "fit.json", LexicalJudge().name, LexicalJudge(0.5).name)
    one_line_error(
        autoais("calibrate", labels, "--judge", "lexical", "--out", out, "--by", "f1"),
        "by should be macro_f1 or balanced_accuracy, found 'f1'",
    )
    one_line_error(autoais("calibrate", labels, "--judge", "lexical", "--out", out, "--folds", "1"), "2 to 100")
    one_line_error(autoais("calibrate", labels, "--judge", "lexical", "--out", labels), "would be overwritten")
    one_line_error(autoais("evaluate-judge", labels, "--judge", "lexical", "--calibration", tmp_path / "no"), "no")


GOOD = {"autoais_calibration": 1, "judge": "told@1", "threshold": 0.3, "slope": 2.0, "intercept": -1}


def test_a_file_says_what_it_said(tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", GOOD)
    assert read_calibration(path) == FIT
    assert open_calibrated_judge(Told({}), path).name == f"told@1+{FIT.digest}"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"autoais_calibration": 2}, "not a calibration of this version"),
        ({"judge": 3}, "field 'judge' should be a string"),
        ({"threshold": None}, "field 'threshold' should be a number"),
        ({"threshold": 0}, "threshold 0.0: must be above 0"),
        ({"threshold": True}, "field 'threshold' should be a number"),
        ({"slope": -1}, "slope -1.0: must be above 0"),
        ({"slope": 10**400}, "of 401 digits is too large"),
        ({"intercept": "0"}, "field 'intercept' should be a number"),
    ],
)
def test_broken_calibrations_name_the_field(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    with pytest.raises(FormatError, match=r"c\.json") as caught:
        read_calibration(write(tmp_path / "c.json", GOOD | change))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (json.dumps(GOOD)[:40].encode(), "not JSON"),
        (json.dumps(GOOD | {"slope": math.nan}).encode(), "NaN is not a JSON number"),
        (json.dumps(GOOD).replace("2.0", "1e999").encode(), "the number 1e999 is too large"),
        (json.dumps(GOOD).replace("-1", "-1e999").encode(), "the number -1e999 is too large"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "expected a JSON object"),
        (b"", "not JSON"),
    ],
)
def test_files_that_are_no_calibration_are_refused(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "c.json").write_bytes(data)
    with pytest.raises(FormatError, match=r"c\.json") as caught:
        read_calibration(tmp_path / "c.json")
    assert says in str(caught.value)
