from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.errors import UsageError, UserError
from autoais.base.text.words import content_stems, idf, words
from autoais.base.types import Attribution, Judgement, Span, Verdict
from autoais.judges import open_judge
from autoais.judges.lexical import LexicalJudge
from autoais.judges.partial import with_partial
from autoais.testing import check_judge


@pytest.mark.parametrize("name", ["lexical", "minilm"])
def test_every_judge_keeps_the_contract(name: str) -> None:
    check_judge(open_judge(name))


def test_an_unknown_judge_is_named_with_those_there_are() -> None:
    with pytest.raises(UserError, match="no judge called 'nope'; there are: lexical"):
        open_judge("nope")


def test_lexical_weighs_rare_words_more() -> None:
    claim = "The Vistula is a river"
    (rare,) = LexicalJudge().judge([Attribution(claim, ("Vistula",))])
    (common,) = LexicalJudge().judge([Attribution(claim, ("river",))])
    assert rare.probability is not None
    assert common.probability is not None
    assert rare.probability > 0.6 > common.probability
    assert rare.probability + common.probability == pytest.approx(1)


def test_lexical_reads_the_template_and_says_where_the_words_stand() -> None:
    judge = LexicalJudge(template="question-answer.v1")
    evidence = ("Nobody knows.", "The bridge was opened in 1891.")
    (right,) = judge.judge([Attribution("1891", evidence, "when was the bridge opened")])
    assert judge.name.endswith("/question-answer.v1")
    assert right.verdict is Verdict.ATTRIBUTABLE
    assert Span(1, 0, 30) in right.evidence
    (wrong,) = judge.judge([Attribution("1891", ("It was sold in 1891.",), "when was the bridge opened")])
    assert (wrong.verdict, wrong.evidence) == (Verdict.NOT_ATTRIBUTABLE, ())


def test_characters_of_a_script_without_spaces_are_words() -> None:
    assert words("東京タワー is 333 m") == ["東", "京", "タ", "ワ", "ー", "is", "333", "m"]
    (one,) = LexicalJudge().judge([Attribution("华沙是波兰的首都。", ("华沙是波兰的首都和最大城市。",))])
    assert one.verdict is Verdict.ATTRIBUTABLE


def test_nothing_said_or_cited_is_a_no_and_no_words_is_undecided() -> None:
    pairs = [
        Attribution("", ("x",)),
        Attribution("A claim", ()),
        Attribution("A claim", (" ",)),
        Attribution("of", ("x",)),
    ]
    verdicts = [judgement.verdict for judgement in LexicalJudge().judge(pairs)]
    assert verdicts == [Verdict.NOT_ATTRIBUTABLE] * 3 + [Verdict.UNDECIDED]
    assert [verdict.ais for verdict in verdicts] == [False, False, False, None]


class Listening(LexicalJudge):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[Attribution]] = []

    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        self.asked.append(list(attributions))
        return super().decide(attributions)


def test_each_different_pair_is_asked_for_once_and_what_a_rule_decides_never() -> None:
    judge = Listening()
    first, second, uncited = Attribution("Warsaw", ("Warsaw",)), Attribution("Paris", ("x",)), Attribution("Warsaw")
    verdicts = [judgement.verdict.ais for judgement in judge.judge([first, uncited, second, first])]
    assert verdicts == [True, False, False, True]
    assert judge.asked == [[first, second]]
    assert judge.judge([uncited])[0].reason == "nothing was cited"
    assert judge.judge([]) == []
    assert len(judge.asked) == 1


def test_one_claim_is_judged_by_its_texts_together_and_a_bare_text_is_refused() -> None:
    judge = LexicalJudge()
    assert judge.support("Warsaw lies on the Vistula.", ["Warsaw it is.", "lies on the Vistula"]).verdict.ais is True
    assert judge.support("Warsaw lies on the Vistula.", []).verdict is Verdict.NOT_ATTRIBUTABLE
    with pytest.raises(UsageError, match="evidence should be a list of texts"):
        judge.support("Warsaw", "Warsaw")


def test_words_keep_numbers_and_names_whole() -> None:
    assert words("Röntgen’s 150,782 SEK (3.5%) didn't") == ["röntgen", "150,782", "sek", "3.5", "didn't"]
    assert content_stems("The rivers of Poland") == ["river", "poland"]
    assert idf("the-word-nobody-wrote") > idf("vistula") > idf("river") > 0


def test_support_below_the_threshold_is_partial_from_a_share_on() -> None:
    evidence = ("Warsaw is the capital of Poland.",)
    claims = ("Warsaw is the capital of Poland.", "Warsaw has 7 zeppelins.", "Penguins swim.")
    judge = open_judge("lexical", partial_from=0.1)
    judged = judge.judge([Attribution(claim, evidence) for claim in claims])
    assert [one.verdict for one in judged] == [
        Verdict.ATTRIBUTABLE, Verdict.PARTIALLY_ATTRIBUTABLE, Verdict.NOT_ATTRIBUTABLE,
    ]  # fmt: skip
    plain = open_judge("lexical").judge([Attribution(claim, evidence) for claim in claims])
    assert [one.probability for one in judged] == [one.probability for one in plain]
    assert Verdict.PARTIALLY_ATTRIBUTABLE not in {one.verdict for one in plain}
    assert judge.name == open_judge("lexical").name + "+partial0.1"
    for value in (0, 0.7, -1, 2):
        with pytest.raises(UserError, match=rf"partial_from {value}: must be above 0 and below 0.7"):
            open_judge("lexical", partial_from=value)


@given(st.sampled_from(Verdict), st.none() | st.floats(0, 1), st.none() | st.floats(0.01, 0.99))
def test_partial_from_changes_only_a_no_without_contradiction(
    verdict: Verdict, probability: float | None, partial_from: float | None
) -> None:
    before = Judgement(verdict, probability, "why")
    after = with_partial(before, partial_from)
    assert (after.probability, after.reason, after.verdict.ais) == (probability, "why", verdict.ais)
    if after != before:
        assert after.verdict is Verdict.PARTIALLY_ATTRIBUTABLE
        assert verdict in (Verdict.NOT_ATTRIBUTABLE, Verdict.EXTRAPOLATORY)
        assert probability is not None
        assert partial_from is not None
        assert probability >= partial_from
