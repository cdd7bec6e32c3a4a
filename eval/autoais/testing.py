"""`check_judge`, a contract test for custom judges. It needs no test framework.

from autoais.testing import check_judge

def test_my_judge() -> None:
    check_judge(MyJudge())
"""

from collections.abc import Sequence

from autoais.types import Attribution, Judge, Verdict

SUPPORTED = Attribution("Warsaw is the capital of Poland.", ("Warsaw is the capital of Poland, on the Vistula.",))
UNRELATED = Attribution("Penguins swim well.", ("Warsaw is the capital of Poland.",))
_ODD = (Attribution("東京は首都", ("東京は首都",)), Attribution("\x00!?", ("x",)))
_EMPTY = (Attribution("a b"), Attribution("a b", ("",)), Attribution(" ", ("a b",)))


def check_judge(judge: Judge, *, supported: Attribution = SUPPORTED, unrelated: Attribution = UNRELATED) -> None:
    """Check that a judge keeps the contract; `AssertionError` names the violation.

    The judge has a name. It returns one judgement per attribution, in order, the same on every call and in any batch.
    It accepts any script and any text. A probability is None or between 0 and 1. An empty claim, or one without cited
    text, is not attributable. The judge must find `supported` attributable and `unrelated` not.
    """
    assert judge.name, "a judge needs a name"
    assert judge.judge([]) == [], "an empty list of attributions should give no judgements"
    pairs: Sequence[Attribution] = [supported, unrelated, *_ODD, *_EMPTY, supported]
    judgements = judge.judge(pairs)
    assert len(judgements) == len(pairs), f"{len(pairs)} attributions gave {len(judgements)} judgements"
    assert judge.judge(pairs[::-1]) == judgements[::-1], "judgements should be in the order of the attributions"
    for pair, judgement in zip(pairs, judgements, strict=True):
        assert judge.judge([pair]) == [judgement], f"the judgement depends on the batch: {pair}"
        assert judge.support(pair.claim, pair.evidence, pair.question) == judgement, f"support and judge differ: {pair}"
        probability = judgement.probability
        assert probability is None or 0 <= probability <= 1, f"not a probability: {probability}"
    assert judgements[0].verdict.ais is True, f"should be attributable: {supported}"
    assert judgements[1].verdict.ais is False, f"should not be attributable: {unrelated}"
    for pair, judgement in zip(pairs[-4:-1], judgements[-4:-1], strict=True):
        assert judgement.verdict is Verdict.NOT_ATTRIBUTABLE, f"should not be attributable: {pair}"
