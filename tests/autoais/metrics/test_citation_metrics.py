import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoais.base import labels
from autoais.base.markers.alce import StrictSentence
from autoais.base.text.claims import is_applicable
from autoais.base.types import Attribution, Judgement, Support, Verdict
from autoais.metrics import alce, attrscore, hagrid, liu, trec
from autoais.metrics.alce import StrictScores, strict_claims
from autoais.metrics.claims import CitedClaim, JudgedClaim, judge_claims
from autoais.metrics.intervals import harmonic_mean
from autoais.metrics.liu import Statement
from autoais.metrics.rates import Tally
from autoais.metrics.scores import CitationScores
from tests.judges import OneByOne

FULL, PARTIAL, NONE = Support


class Table(OneByOne):
    """Looks up which sets of evidence support; the value None is undecided, what is not there a no."""

    name = "table@1"

    def __init__(self, supports: Mapping[frozenset[str], bool | None]) -> None:
        super().__init__()
        self.supports = supports

    def of(self, one: Attribution) -> Judgement:
        said = self.supports.get(frozenset(one.evidence), False)
        if said is None:
            return Judgement(Verdict.UNDECIDED)
        return Judgement(Verdict.ATTRIBUTABLE if said else Verdict.NOT_ATTRIBUTABLE)


def table(*supporting: str, undecided: Sequence[str] = ()) -> Table:
    """Each word is a set of evidence texts of one letter."""
    return Table({frozenset(s): True for s in supporting} | {frozenset(s): None for s in undecided})


def judged(judge: Table, *cited: str, unresolved: int = 0) -> list[JudgedClaim]:
    return judge_claims(judge, [CitedClaim("It is so.", tuple(letters), unresolved) for letters in cited])


def three(scores: dict[str, Any]) -> list[float | None]:
    return [scores[name].value for name in ("recall", "precision", "f1")]


# --- what is asked -------------------------------------------------------------------------------------------------


def test_only_what_a_rule_can_need_is_asked_and_nothing_twice() -> None:
    judge = table("ab", "a")
    judged(judge, "ab", "ab", "a", "")
    # together, each alone; leaving one of two out is the other one; nothing cited is nobody's question
    assert [a.evidence for a in judge.asked] == [("a", "b"), ("a",), ("b",)]
    judge = table("abc", "a")
    judged(judge, "abc")
    assert [a.evidence for a in judge.asked] == [("a", "b", "c"), ("a",), ("b",), ("c",), ("a", "c"), ("a", "b")]
    judge = table()
    judged(judge, "abc")
    assert len(judge.asked) == 4  # not supported together: the rest cannot matter
    judge = table("abc")
    judge_claims(judge, [CitedClaim("It is so.", ("a", "b", "c"))], per_citation=False)
    assert len(judge.asked) == 1


def test_a_sentence_may_cite_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [chr(0x4E00 + i) for i in range(40)]
    judge = table("".join(texts))
    whole = judged(judge, "".join(texts), "".join(texts[:1]))
    monkeypatch.setattr("autoais.metrics.claims._PAIRS", 7)
    assert judged(judge, "".join(texts), "".join(texts[:1])) == whole
    assert list(alce.precision_outcomes(whole[0])) == [True] * 40  # each is needed


# --- ALCE ----------------------------------------------------------------------------------------------------------


def normalised(judge: Table, *answers: Sequence[str], unresolved: int = 0) -> dict[str, Any]:
    scores = CitationScores()
    for answer in answers:
        alce.add(scores, judged(judge, *answer), unresolved)
    return scores.macro_average(empty=0.0)


def test_the_golden_example_of_alce() -> None:
    """Spec F2: S1 cites 1 and 2, is entailed by both and by 1, not by 2; S2 cites nothing."""
    assert three(normalised(table("ab", "a"), ["ab", ""])) == [0.5, 0.5, 0.5]
    strict = StrictScores()
    sentences = [StrictSentence("S1.", (0, 1)), StrictSentence("S2.", ())]
    strict.add(judge_claims(table("ab", "a"), strict_claims(sentences, ["a", "b"])))
    records = strict.records()
    assert [records[name]["value"] for name in ("recall", "precision", "f1")] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("judge", "cited", "counts"),
    [
        (table("a"), "a", [True]),
        (table(), "a", [False]),
        (table("ab"), "ab", [True, True]),  # needed together
        (table("ab", "a", "b"), "ab", [True, True]),  # either suffices: both support alone
        (table("a"), "ab", [False, False]),  # not together: all count as wrong
        (table("abc", "ab"), "abc", [True, True, False]),
        (table("abc", "ab", "bc"), "abc", [False, True, False]),
        (table(undecided=["ab"]), "ab", [None, None]),
        (table("ab", undecided=["a"]), "ab", [True, None]),  # b may not be needed, if a supports alone
        (table("ab", "b", undecided=["a"]), "ab", [None, True]),
        (table("abc", undecided=["bc"]), "abc", [None, True, True]),
    ],
)
def test_which_citations_count(judge: Table, cited: str, counts: list[bool | None]) -> None:
    (claim,) = judged(judge, cited)
    assert list(alce.precision_outcomes(claim)) == counts
    for counted, strictly in zip(counts, alce._strict_citations(claim), strict=True):
        assert counted is None or strictly == counted


def test_a_marker_that_points_nowhere_is_a_wrong_citation_and_an_empty_answer_scores_0() -> None:
    assert three(normalised(table("a"), ["a"], unresolved=1)) == [1.0, 0.5, pytest.approx(2 / 3)]
    assert three(normalised(table("a"), ["a"], [])) == [0.5, 0.5, 0.5]
    assert three(normalised(table("a"), ["a"], [""])) == [0.5, 0.5, 0.5]
    assert three(normalised(table("a"))) == [None, None, None]
    scores = CitationScores()
    alce.add(scores, judged(table("a"), "a", unresolved=3))
    assert scores.micro_average()["precision"].value == 0.25


def test_undecided_stands_beside_the_value_and_in_the_floor() -> None:
    scores = normalised(table("a", undecided=["b"]), ["a", "b"], ["b"])
    recall = scores["recall"]
    assert (recall.value, recall.floor, recall.n, recall.total, recall.undecided) == (1.0, 0.25, 1, 2, 1)
    assert "reason" not in recall.record()
    assert normalised(table(undecided=["b"]), ["b"])["f1"].record()["reason"] == "nothing was decided"


@pytest.mark.parametrize(
    ("refs", "cited"),
    [
        ((0, 1), "ab"),
        ((), ""),
        ((0, 3), ""),  # out of range: the whole sentence cites nothing
        ((-1,), "c"),  # [0] is the last document
        ((0, 0), "aa"),  # duplicates stay
        ((0, 1, 2, 0), "abc"),  # at most three,
        ((0, 1, 2, 9), ""),  # after the check of the range
    ],
)
def test_strict_reads_citations_as_the_script_does(refs: tuple[int, ...], cited: str) -> None:
    (claim,) = strict_claims([StrictSentence("S.", refs)], ["a", "b", "c"])
    assert claim.evidence == tuple(cited)


def test_strict_without_documents_cites_nothing() -> None:
    assert strict_claims([StrictSentence("S.", (-1,))], [])[0].evidence == ()


def strictly(judge: Table, *answers: Sequence[str]) -> list[float | None]:
    scores = StrictScores()
    for answer in answers:
        scores.add(judged(judge, *answer))
    records: Any = scores.records()
    assert {record["left_out"] for record in records.values()} == {answers.count([])}
    return [records["recall"]["value"], records["precision"]["value"]]


def test_strict_averages_as_the_script_does() -> None:
    assert strictly(table("a"), ["a"], []) == [1.0, 1.0]  # an answer without sentences is left out
    assert strictly(table("a"), ["a"], [""]) == [0.5, 0.5]  # without citations precision is 0
    # [1][1]: counted twice; the rest without one still holds the document
    assert strictly(table("a"), ["aa"]) == [1.0, 1.0]
    # out of range (nothing cited) leaves the denominator of precision alone
    assert strictly(table("a"), ["a", ""]) == [0.5, 1.0]
    assert strictly(table("a", undecided=["b"]), ["a", "b"]) == [0.5, 0.5]  # undecided is not entailed
    assert strictly(table()) == [None, None]


# --- Liu et al. ----------------------------------------------------------------------------------------------------

GOLDEN = [  # spec D3
    Statement(True, (FULL, PARTIAL)),
    Statement(True, (PARTIAL, PARTIAL)),
    Statement(False),
    Statement(None, (FULL,), worthy=False),
]


def test_the_golden_example_of_the_verifiability_study() -> None:
    scores = CitationScores()
    liu.add(scores, GOLDEN)
    for way in (scores.micro_average(), scores.macro_average()):
        assert three(way) == [pytest.approx(2 / 3), 0.75, pytest.approx(12 / 17)]


def test_pooled_and_averaged_differ_and_nothing_to_count_is_absent_with_a_reason() -> None:
    scores = CitationScores()
    liu.add(scores, GOLDEN)
    liu.add(scores, [Statement(True, (FULL,))])
    liu.add(scores, [Statement(True, worthy=False)])
    assert three(scores.micro_average())[:2] == [0.75, 0.8]
    assert three(scores.macro_average())[:2] == [pytest.approx(5 / 6), 0.875]
    assert scores.macro_average()["recall"].total == 2
    empty = CitationScores()
    liu.add(empty, [Statement(False)])
    record = empty.micro_average()["precision"].record()
    assert record == {
        "value": None, "floor": None, "n": 0, "total": 0, "undecided": 0, "interval95": None,
        "reason": "there are no citations",
    }  # fmt: skip
    assert empty.micro_average()["f1"].record()["reason"] == "there are no citations"
    assert three(empty.macro_average()) == [0.0, None, None]


@pytest.mark.parametrize(
    ("supported", "levels", "precise"),
    [
        (True, (PARTIAL,), [True]),
        (False, (PARTIAL, FULL), [False, True]),
        (None, (PARTIAL, FULL), [False, True]),
        (None, (PARTIAL, NONE), [None, False]),
        (True, (PARTIAL, None), [None, None]),
        (False, (PARTIAL, None), [False, None]),
    ],
)
def test_partial_support_is_precise_only_where_nothing_is_full(
    supported: bool | None, levels: tuple[Support | None, ...], precise: list[bool | None]
) -> None:
    assert list(liu.precise(Statement(supported, levels))) == precise


def test_each_verdict_has_a_level_of_support_and_partial_is_no_attribution() -> None:
    levels = {verdict: verdict.support for verdict in Verdict}
    assert [verdict for verdict, level in levels.items() if level is FULL] == [Verdict.ATTRIBUTABLE]
    assert [verdict for verdict, level in levels.items() if level is PARTIAL] == [Verdict.PARTIALLY_ATTRIBUTABLE]
    assert [verdict for verdict, level in levels.items() if level is None] == [Verdict.UNDECIDED]
    assert Verdict.PARTIALLY_ATTRIBUTABLE.ais is False


def partly_judged() -> list[JudgedClaim]:
    """Two sentences: one with a partial citation, one with a partial and a full citation."""
    full, partial = Judgement(Verdict.ATTRIBUTABLE), Judgement(Verdict.PARTIALLY_ATTRIBUTABLE)
    two = CitedClaim("b", ("x", "y"))
    return [JudgedClaim(CitedClaim("a", ("x",)), partial, (partial,)), JudgedClaim(two, full, (partial, full))]


def test_partial_support_of_a_judge_has_half_the_weight_in_trec_and_lius_rule_in_liu() -> None:
    of_trec, of_liu = CitationScores(), CitationScores()
    trec.add(of_trec, [trec.support_levels(claim) for claim in partly_judged()])
    assert three(of_trec.micro_average())[:2] == [0.5, 0.5]  # the first citations: partial and partial
    liu.add(of_liu, map(liu.as_statement, partly_judged()))
    assert three(of_liu.micro_average())[:2] == [1 / 2, 1 / 3]  # only the full one is precise


def test_a_judge_gives_liu_statements() -> None:
    (claim,) = judged(table("ab", "a"), "ab", unresolved=1)
    assert liu.as_statement(claim) == Statement(True, (FULL, NONE, NONE))


# --- TREC, HAGRID --------------------------------------------------------------------------------------------------


def test_trec_weighs_the_first_citation_or_all() -> None:
    answer = [[PARTIAL, FULL], [FULL], [], [NONE]]
    first, every, own = CitationScores(), CitationScores(), CitationScores()
    trec.add(first, answer)
    trec.add(every, answer, first_only=False)
    trec.add(own, answer, weights={FULL: 1.0, PARTIAL: 0.0, NONE: 0.0})
    assert three(first.micro_average())[:2] == [1.5 / 4, 1.5 / 3]
    assert three(every.micro_average())[:2] == [2 / 4, 2.5 / 4]
    assert three(own.micro_average())[:2] == [1 / 4, 1 / 3]
    undecided = CitationScores()
    trec.add(undecided, [[None, FULL], [None, PARTIAL]], first_only=False)
    recall = undecided.micro_average()["recall"]
    assert (recall.value, recall.floor, recall.undecided) == (1.0, 0.5, 1)


def test_hagrid_asks_that_every_quote_supports() -> None:
    claims = judged(table("ab", "a", undecided=["c"]), "ab", "a", "", "ac", "bc")
    assert [hagrid.attributable(claim) for claim in claims] == [False, True, False, None, False]
    assert hagrid.attributable(judged(table("a"), "a", unresolved=1)[0]) is False


def test_hagrid_rolls_labels_up() -> None:
    assert [labels.answer_attributable(x) for x in ([True, True], [True, False], [False, None], [])] == [
        True, False, None, None,
    ]  # fmt: skip
    assert [labels.answer_informative(x) for x in ([False, True], [None, True], [False, None], [False], [])] == [
        True, True, None, False, None,
    ]  # fmt: skip


# --- AttrScore -----------------------------------------------------------------------------------------------------

A, C, E = attrscore.CLASSES


def test_attrscore_by_hand() -> None:
    truth = [A, A, A, E, E, C, C]
    said = [A, A, E, E, C, Verdict.UNDECIDED, Verdict.NOT_ATTRIBUTABLE]
    result = attrscore.evaluate(truth, said)
    assert result["classes"] == ["attributable", "contradictory", "extrapolatory"]
    assert result["confusion"] == [[2, 0, 1], [0, 0, 0], [0, 1, 1]]
    assert (result["n"], result["undecided"], result["two_way"]) == (5, 1, 1)
    assert (result["overall"]["value"], result["overall"]["floor"]) == (3 / 5, 3 / 7)
    one = result["per_class"]["attributable"]
    assert (one["precision"]["value"], one["recall"]["value"], one["f1"]["value"]) == (1.0, 2 / 3, 0.8)
    none = result["per_class"]["contradictory"]
    assert none["recall"] | {"interval95": 0} == {
        "value": None, "floor": 0.0, "n": 0, "total": 2, "undecided": 2, "interval95": 0,
        "reason": "no verdict on a label of this class",
    }  # fmt: skip
    assert none["f1"]["value"] == 0
    assert result["macro"]["value"] == pytest.approx((0.8 + 0.5 + 0) / 3)


def test_not_attributable_is_wrong_for_what_is_attributable() -> None:
    result = attrscore.evaluate([A] * 10 + [E] * 2, [A] * 5 + [Verdict.NOT_ATTRIBUTABLE] * 5 + [E] * 2)
    assert (result["n"], result["two_way"], result["overall"]["value"]) == (12, 5, 7 / 12)
    recall = result["per_class"]["attributable"]["recall"]
    assert (recall["value"], recall["n"], recall["undecided"]) == (0.5, 10, 0)
    assert result["per_class"]["attributable"]["f1"]["value"] == pytest.approx(2 / 3)


def test_a_class_that_was_never_decided_counts_in_the_macro_average() -> None:
    undecided = Verdict.UNDECIDED
    result = attrscore.evaluate([A, A, C, C, E, E], [A, A, C, C, undecided, undecided])
    assert result["macro"]["value"] == pytest.approx(2 / 3)
    assert result["per_class"]["extrapolatory"]["f1"]["value"] is None
    assert attrscore.evaluate([A], [undecided])["macro"] | {"interval95": None} == {
        "value": None, "n": 0, "interval95": None, "reason": "nothing was decided",
    }  # fmt: skip


def test_attrscore_without_anything_is_absent_with_reasons() -> None:
    result = attrscore.evaluate([], [])
    assert (result["overall"]["value"], result["overall"]["reason"]) == (None, "nothing was decided")
    assert (result["macro"]["value"], result["macro"]["reason"]) == (None, "no class occurs")
    with pytest.raises(ValueError, match="labels must be among"):
        attrscore.evaluate([Verdict.UNDECIDED], [A])


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from([A, E, C]), st.sampled_from(list(Verdict))), max_size=12), st.randoms())
def test_attrscore_is_a_fraction_in_any_order(pairs: list[tuple[Verdict, Verdict]], random: Random) -> None:
    result = attrscore.evaluate([t for t, _ in pairs], [s for _, s in pairs])
    random.shuffle(pairs)
    assert attrscore.evaluate([t for t, _ in pairs], [s for _, s in pairs]) == result
    for figure in (result["overall"], result["macro"], *(f for c in result["per_class"].values() for f in c.values())):
        check_figure(figure)


# --- what holds for all --------------------------------------------------------------------------------------------


def check_figure(figure: dict[str, Any]) -> None:
    """A fraction with an interval, or null with a reason; never NaN."""
    if figure["value"] is None:
        assert figure["reason"]
        return
    assert 0 <= figure["value"] <= 1
    low, high = figure["interval95"]
    assert 0 <= low <= high <= 1
    assert all(math.isfinite(value) for value in figure.values() if isinstance(value, float))


claims = st.lists(st.lists(st.sampled_from("abcd"), max_size=4, unique=True).map("".join), max_size=3)
verdicts = st.dictionaries(
    st.frozensets(st.sampled_from("abcd"), min_size=1), st.sampled_from([True, False, None]), max_size=15
)


@settings(max_examples=15)
@given(st.lists(claims, max_size=5), verdicts, st.randoms())
def test_every_metric_is_a_fraction_and_the_order_of_answers_changes_nothing(
    answers: list[list[str]], supports: dict[frozenset[str], bool | None], random: Random
) -> None:
    def figures(listed: list[list[str]]) -> dict[str, Any]:
        ours, theirs, weighed, strict = CitationScores(), CitationScores(), CitationScores(), StrictScores()
        for answer in listed:
            found = judged(Table(supports), *answer)
            alce.add(ours, found)
            liu.add(theirs, map(liu.as_statement, found))
            trec.add(weighed, map(trec.support_levels, found), first_only=False)
            strict.add(found)
        ratios = {
            "alce": ours.macro_average(0.0),
            "liu": theirs.micro_average(),
            "liu_mean": theirs.macro_average(),
            "trec": weighed.micro_average(),
        }
        named = {f"{name}.{part}": r.record() for name, three in ratios.items() for part, r in three.items()}
        return named | {f"strict.{name}": value for name, value in strict.records().items()}

    before = figures(answers)
    for name, figure in before.items():
        check_figure(figure)
        if figure["value"] is not None and not name.endswith("f1"):
            assert figure["floor"] <= figure["value"] + 1e-12
            assert figure["n"] + figure["undecided"] == figure["total"]
    random.shuffle(answers)
    assert figures(answers) == before


@given(claims, verdicts)
def test_liu_and_alce_agree_where_nothing_is_partial_or_redundant(
    cited: list[str], supports: dict[frozenset[str], bool | None]
) -> None:
    for claim in judged(Table(supports), *cited):
        for alone, counted in zip(claim.per_citation, alce.precision_outcomes(claim), strict=True):
            if claim.union.verdict.ais and alone.verdict.ais:
                assert counted is True


def test_a_tally_pools_items_or_averages_answers() -> None:
    tally = Tally("sentences")
    for values in ([1.0, 1.0], [0.0], [1.0, None], [0.5, 0.0, 0.0]):
        tally.add(values)
    pooled = tally.micro_average()
    assert (pooled.value, pooled.floor, pooled.n, pooled.undecided) == (3.5 / 7, 3.5 / 8, 7, 1)
    assert pooled == tally.micro_average()
    assert pooled.interval95 is not None
    assert pooled.interval95[0] < 0.5 < pooled.interval95[1]
    assert tally.macro_average().value == pytest.approx((1 + 0 + 1 + 0.5 / 3) / 4)


def test_strict_scores_count_what_they_leave_out_and_what_was_undecided() -> None:
    judge, scores = table("a", undecided=["b"]), StrictScores()
    assert [scores.add(answer) for answer in ([], judged(judge, "a", "b"), [], judged(judge, "b", ""))] == [
        False, True, False, True,
    ]  # fmt: skip
    for record in scores.records().values():
        assert (record["left_out"], record["undecided_as_no"]) == (2, 2)
    assert three(scores.macro_average())[:2] == [0.25, 0.25]


def test_strict_scores_of_pairs_that_were_all_undecided_have_no_value() -> None:
    judge, scores = table(undecided=["a", "b"]), StrictScores()
    scores.add(judged(judge, "a", ""))
    scores.add(judged(judge, "b"))
    for record in scores.records().values():
        assert (record["value"], record["reason"], record["undecided_as_no"]) == (None, "nothing was decided", 2)


def test_an_unresolved_marker_is_a_wrong_citation_of_liu_and_support_may_be_partial() -> None:
    scores = CitationScores()
    liu.add(scores, map(liu.as_statement, judged(table("a"), "a")), unresolved=1)
    assert scores.micro_average()["precision"].value == 0.5
    near = Judgement(Verdict.PARTIALLY_ATTRIBUTABLE, 0.4)
    claim = JudgedClaim(CitedClaim("It is so.", ("x",)), near, (near,))
    assert liu.as_statement(claim).citations == tuple(trec.support_levels(claim)) == (PARTIAL,)


def test_every_metric_takes_the_answers_to_one_question_together() -> None:
    def intervals_of(questions: Sequence[int | None]) -> list[Any]:
        ours, theirs, weighed, strict = CitationScores(), CitationScores(), CitationScores(), StrictScores()
        for number, question in enumerate(questions):
            claims = judged(table("a"), "a" if number % 3 else "b")
            alce.add(ours, claims, 0, question)
            liu.add(theirs, map(liu.as_statement, claims), 0, question)
            trec.add(weighed, [trec.support_levels(claim) for claim in claims], question=question)
            strict.add(claims, question)
        every = (
            ours.macro_average(0.0),
            theirs.micro_average(),
            theirs.macro_average(),
            weighed.micro_average(),
            strict.macro_average(),
        )
        return [ratio.interval95 for three_of in every for ratio in three_of.values()]

    apart, together = intervals_of([None] * 12), intervals_of([number // 4 for number in range(12)])
    assert intervals_of(range(12)) == apart
    assert all(one != other for one, other in zip(apart, together, strict=True))


def test_f1_is_that_of_its_recall_and_precision() -> None:
    scores = CitationScores()
    scores.add([1.0, None], [1.0, 0.0, None])
    scores.add([1.0, 0.0, 0.0], [0.5])
    scores.add([0.0], [None])
    for ratios, averaged in ((scores.micro_average(), False), (scores.macro_average(), True)):
        f1, recall, precision = ratios["f1"], ratios["recall"], ratios["precision"]
        assert recall.value is not None
        assert precision.value is not None
        assert f1.value == pytest.approx(2 / (1 / recall.value + 1 / precision.value))
        for count in ("n", "total", "undecided"):
            assert getattr(f1, count) == max(getattr(recall, count), getattr(precision, count)) > 0
        found = harmonic_mean(*(tally.estimate(macro=averaged) for tally in (scores.recall, scores.precision)))
        assert found is not None
        assert f1.interval95 == found.interval
    assert CitationScores().micro_average()["recall"].reason == "there are no sentences"
    assert scores.last("x") == {"x_recall": (0.0, 1.0), "x_precision": (0.0, 1.0)}
    assert scores.last("x", "_mean", macro=True) == {"x_recall_mean": (0.0, 1.0), "x_precision_mean": (0.0, 1.0)}
    scores.add([], [])
    assert scores.last("x", macro=True) == {"x_recall": (0.0, 0.0), "x_precision": (0.0, 0.0)}
    assert scores.last("x", empty=0.5) == {"x_recall": (0.5, 1.0), "x_precision": (0.5, 1.0)}
    scores.add([1.0, 0.5], [None, 1.0])
    assert scores.last("x", empty=0.5) == {"x_recall": (0.75, 1.0), "x_precision": (0.5, 1.0)}


# --- questions and instructions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "claims_something"),
    [
        ("Warsaw is the capital of Poland.", True),
        ("What do you mean by capital?", False),
        ("  Is it Warsaw? ", False),
        ("Could you say more (for instance, when?)", False),
        ("Who Framed Roger Rabbit is a film.", True),
        ("O Brother, Where Art Thou?", True),
        ("Warsaw is the capital?", True),
        ("Note that Warsaw is the capital.", True),
        ("Please Please Me is the first album.", True),
        ("See is a television series.", True),
        ("Visit Britain was founded in 1969.", True),
        ("See the Sea is a film of 1997.", True),
        ("Let Me Know is a song.", True),
        ("See also the article on Poland.", False),
        ("For more details, please refer to the documentation.", False),
        ("Let me know if you need more.", False),
        ("Please consult a doctor.", False),
        ("", True),
    ],
)
def test_only_plain_questions_and_instructions_claim_nothing(sentence: str, claims_something: bool) -> None:
    assert is_applicable(sentence) is claims_something


def test_a_short_answer_is_an_answer_though_it_looks_like_a_question() -> None:
    assert is_applicable("Who Framed Roger Rabbit?", "Who Framed Roger Rabbit?")
    assert not is_applicable("Who Framed Roger Rabbit?")
