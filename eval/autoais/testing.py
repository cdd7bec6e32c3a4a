"""`check_judge`, a contract test for custom judges. It needs no test framework.

from autoais.testing import check_judge

def test_my_judge() -> None:
    check_judge(MyJudge())
"""

from collections.abc import Sequence

from autoais.types import Attribution, Judge, Judgement, Verdict

SUPPORTED = Attribution("Warsaw is the capital of Poland.", ("Warsaw is the capital of Poland, on the Vistula.",))
UNRELATED = Attribution("Penguins swim well.", ("Warsaw is the capital of Poland.",))
_ODD = (
    Attribution("東京は首都", ("東京は首都",)),
    Attribution("\x00!?", ("x",)),
    Attribution("Warsaw lies on the Vistula.", ("", "Poland borders Germany. " * 500, "Warsaw lies on the Vistula.")),
    Attribution("the Vistula", ("Warsaw lies on the Vistula.",), "Which river does Warsaw lie on?"),
)
_EMPTY = (Attribution("a b"), Attribution("a b", ("",)), Attribution(" ", ("a b",)))


def check_judge(
    judge: Judge,
    *,
    supported: Attribution = SUPPORTED,
    unrelated: Attribution = UNRELATED,
    partial: Attribution | None = None,
) -> None:
    """Check that a judge keeps the contract; `AssertionError` names the violation.

    The judge has a name, on one line, that does not change. It returns one judgement per attribution, in order, the
    same on every call and in any batch. It accepts any script, any text, long evidence and a question. Its spans lie
    within the evidence, and its unsupported parts within the claim. An empty claim, or one without cited text, is not
    attributable. The judge must find `supported` attributable and `unrelated` not, and `partial`, if given, partially
    attributable. What is no list of judgements, one per attribution, raises `UserError`, as it does in every command.
    """
    name = judge.name
    assert isinstance(name, str), f"the name of a judge should be a string, found {type(name).__name__}"
    assert name.strip(), "a judge needs a name"
    assert name.isprintable(), f"the name of a judge should be one printable line: {name!r}"
    assert judge.judge([]) == [], "an empty list of attributions should give no judgements"
    partly = [] if partial is None else [partial]
    pairs: Sequence[Attribution] = [supported, unrelated, *partly, *_ODD, *_EMPTY, supported]
    judgements = judge.judge(pairs)
    assert len(judgements) == len(pairs), f"{len(pairs)} attributions gave {len(judgements)} judgements"
    assert judge.judge(pairs[::-1]) == judgements[::-1], "judgements should be in the order of the attributions"
    for pair, judgement in zip(pairs, judgements, strict=True):
        assert judge.judge([pair]) == [judgement], f"the judgement depends on the batch: {pair}"
        assert judge.support(pair.claim, pair.evidence, pair.question) == judgement, f"support and judge differ: {pair}"
        _check_spans(pair, judgement)
    assert judgements[0].verdict.ais is True, f"should be attributable: {supported}"
    assert judgements[1].verdict.ais is False, f"should not be attributable: {unrelated}"
    if partial is not None:
        assert judgements[2].verdict is Verdict.PARTIALLY_ATTRIBUTABLE, f"should be partially attributable: {partial}"
    for pair, judgement in zip(pairs[-4:-1], judgements[-4:-1], strict=True):
        assert judgement.verdict is Verdict.NOT_ATTRIBUTABLE, f"should not be attributable: {pair}"
    assert judge.name == name, f"the name of a judge should not change: {name!r}, then {judge.name!r}"


def _check_spans(pair: Attribution, judgement: Judgement) -> None:
    for span in judgement.evidence:
        assert 0 <= span.evidence < len(pair.evidence), f"no evidence text has the index {span.evidence}: {pair}"
        length = len(pair.evidence[span.evidence])
        assert 0 <= span.start <= span.end <= length, f"{span} is outside its text of {length} characters: {pair}"
    for start, end in judgement.unsupported:
        assert 0 <= start <= end <= len(pair.claim), f"characters {start} to {end} are outside the claim: {pair}"
