"""People's labels of answers by the rules of HAGRID and Liu et al., counted by hand."""

from typing import Any

import pytest

from autoais.base.answers import CitedAnswer
from autoais.base.types import Attribution, Citation, CitedSentence, Judge, Judgement, Passage, Support, Verdict
from autoais.metrics.human import HumanSummary
from autoais.metrics.judged import judge_answers
from tests.conftest import present
from tests.judges import OneByOne

FULL, PARTIAL, NONE = Support.FULL, Support.PARTIAL, Support.NONE
PASSAGES = {key: Passage(key, text=f"text {key}") for key in "abc"} | {"empty": Passage("empty")}


class Levels(OneByOne):
    """Attributable by a, partly by b, undecided by both a and c, else not."""

    name = "levels"

    def of(self, one: Attribution) -> Judgement:
        by_text = {
            ("text a",): Verdict.ATTRIBUTABLE,
            ("text b",): Verdict.PARTIALLY_ATTRIBUTABLE,
            ("text a", "text c"): Verdict.UNDECIDED,
        }
        return Judgement(by_text.get(one.evidence, Verdict.NOT_ATTRIBUTABLE))


class Binary(Levels):
    """The same without partial support."""

    def of(self, one: Attribution) -> Judgement:
        found = super().of(one)
        return Judgement(Verdict.NOT_ATTRIBUTABLE) if found.verdict is Verdict.PARTIALLY_ATTRIBUTABLE else found


def sentence(*citations: tuple[str, Support | None], number: int = 0, **labels: Any) -> CitedSentence:  # noqa: ANN401
    cited = tuple(Citation(passage, support=level) for passage, level in citations)
    return CitedSentence(f"Towers are {number} metres tall.", cited, **labels)


def answer(key: str, *sentences: CitedSentence, **fields: Any) -> CitedAnswer:  # noqa: ANN401
    return CitedAnswer(key, f"How tall is {key}?", sentences, PASSAGES, **fields)


def report(*answers: CitedAnswer, judge: Judge | None = None) -> dict[str, Any] | None:
    summary = HumanSummary()
    for item in judge_answers(answers, judge or Levels()):
        summary.add(item)
    return summary.report()


# Liu et al.'s example, by hand: statements 1 and 2 are supported, 3 is worthy and cites nothing, 4 makes no claim.
LIU = (
    sentence(("a", FULL), ("b", PARTIAL), number=1, worthy=True, attributable=True),
    sentence(("b", PARTIAL), ("c", PARTIAL), number=2, worthy=True, attributable=True),
    sentence(number=3, worthy=True),
    sentence(("c", NONE), number=4, worthy=False),
)


def test_liu_recall_and_precision_are_those_counted_by_hand() -> None:
    found = present(report(answer("q", *LIU)))
    values = {name: one["value"] for name, one in found["metrics"].items()}
    assert values == {
        "liu_recall": pytest.approx(2 / 3),
        "liu_precision": pytest.approx(3 / 4),
        "liu_f1": pytest.approx(12 / 17),
        "liu_recall_averaged": pytest.approx(2 / 3),
        "liu_precision_averaged": pytest.approx(3 / 4),
        "liu_f1_averaged": pytest.approx(12 / 17),
    }
    counts = {name: (one["yes"], one["no"], one["n"], one["value"]) for name, one in found["labels"].items()}
    assert counts["full_support"] == (1, 4, 5, 0.2)
    assert counts["partial_support"] == (3, 2, 5, 0.6)
    assert counts["none_support"] == (1, 4, 5, 0.2)


def test_an_uncited_statement_is_not_supported_whatever_its_label_says() -> None:  # Liu et al. 2023, section 2.2
    uncited = sentence(worthy=True, attributable=True, number=7)
    found = present(report(answer("q", uncited, sentence(("a", None), worthy=True, number=8))))
    # The second has a citation and no label: it is unknown, not unsupported.
    assert (found["metrics"]["liu_recall"]["value"], found["metrics"]["liu_recall"]["n"]) == (0.0, 1)


def test_answers_questions_and_citations_are_counted_as_in_hagrids_tables() -> None:
    first = answer("q/1", sentence(("a", None), informative=True, attributable=True), extra={"query_id": "q"})
    second = answer(
        "q/2",
        sentence(("a", None), ("b", None), informative=False, attributable=False),
        sentence(("c", None), number=1, informative=True, attributable=True),
        extra={"query_id": "q"},
    )
    other = answer("r/1", sentence(informative=False), extra={"query_id": "r"}, informative=True)
    found = present(report(first, second, other))
    assert found["data"] == {
        "questions": 2,
        "answers": 3,
        "citations": 4,
        "quotes_per_question": 4,
        "answers_per_question": 1.5,
        "citations_per_answer": pytest.approx(4 / 3),
    }
    counts = {name: (one["yes"], one["no"], one["n"]) for name, one in found["labels"].items()}
    assert counts == {
        "informative": (3, 0, 3),  # the label of the answer counts before its sentences
        "attributable": (1, 1, 2),
        "informative_sentences": (2, 2, 4),
        "attributable_sentences": (2, 1, 3),
    }
    assert found["metrics"] == {}


def test_intervals_are_over_questions() -> None:
    def ends(questions: int) -> list[list[float]]:
        made = [
            answer(
                str(n),
                sentence(
                    ("a", FULL if n % 2 else NONE), number=n, worthy=True, attributable=n % 2 > 0, informative=True
                ),
                extra={"query_id": n % questions, "fluency": "Agree" if n % 3 else "Neutral"},
            )
            for n in range(24)
        ]
        found = present(report(*made))
        places = (
            found["labels"]["attributable_sentences"], found["labels"]["full_support"], found["metrics"]["liu_recall"],
            found["labels"]["informative_sentences"], found["metrics"]["fluency"],
        )  # fmt: skip
        return [one["interval95"] for one in places]

    apart, together = ends(24), ends(6)
    for one, other in zip(apart, together, strict=True):
        assert one != other
        assert 0 <= other[0] < other[1] <= 5


def test_fluency_and_utility_are_means_from_1_to_5() -> None:
    given = [
        {"fluency": "Strongly Disagree"},
        {"fluency": "Agree", "perceived_utility": "Strongly Agree"},
        {"fluency": 4},
    ]
    found = present(report(*(answer(str(n), sentence(("a", None)), extra=one) for n, one in enumerate(given))))
    assert (found["metrics"]["fluency"]["value"], found["metrics"]["fluency"]["n"]) == (2.5, 2)
    low, high = found["metrics"]["perceived_utility"]["interval95"]
    assert (found["metrics"]["perceived_utility"]["value"], high) == (5.0, 5.0)
    assert 1 <= low < 5


def test_a_judge_is_compared_on_sentences_and_on_single_citations() -> None:
    made = (
        sentence(("a", FULL), number=1, attributable=True),  # yes, yes
        sentence(("b", FULL), number=2, attributable=True),  # the judge says partial: no
        sentence(("c", NONE), number=3, attributable=False),  # no, no
        sentence(("a", PARTIAL), ("c", NONE), number=4, attributable=False),  # undecided; a yes, and a no
        sentence(("empty", FULL), number=5, attributable=True),  # its passage has no text: left out
        sentence(number=6, attributable=False),  # cites nothing: no, no
        sentence(("a", None), number=7),  # nobody labelled it
    )
    found = present(report(answer("q", *made)))
    sentences, citations = found["agreement"]["sentences"], found["agreement"]["citations"]
    # yes yes, yes no, no no, no no: F1 of yes 2/3, of no 4/5; kappa (3/4 - 1/2) / (1/2)
    assert (sentences["n"], sentences["undecided"]) == (4, 1)
    assert sentences["macro_f1"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert sentences["cohen_kappa"] == pytest.approx(0.5)
    # full full, full partial, none none, partial full, none none; full support alone is a yes
    assert (citations["n"], citations["undecided"]) == (5, 0)
    assert citations["cohen_kappa"] == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    assert found["levels"]["confusion"] == [[1, 1, 0], [1, 0, 0], [0, 0, 2]]
    two = present(report(answer("q", *made), judge=Binary()))
    assert "levels" not in two


def test_levels_have_intervals_over_questions() -> None:
    def levels(asked: str) -> Any:  # noqa: ANN401
        made = (
            answer(str(n), sentence((key, level), number=n), extra={"query_id": asked or str(n)})
            for n, (key, level) in enumerate([("a", FULL), ("b", PARTIAL), ("c", NONE), ("a", NONE)] * 3)
        )
        found = present(report(*made))
        return found["levels"]

    assert levels("")["confusion"] == levels("one")["confusion"]
    assert levels("") != levels("one")


def test_without_a_decided_item_or_a_label_there_is_a_reason_or_nothing() -> None:
    found = present(report(answer("q", sentence(("a", None), ("c", None), attributable=True))))
    assert found["agreement"]["sentences"] == {
        "n": 0, "undecided": 1, "macro_f1": None, "cohen_kappa": None, "reason": "nothing was decided",
    }  # fmt: skip
    assert report(answer("q", sentence(("a", None)))) is None
