"""`check_judge` and `check_format`, contract tests for custom judges and formats. They need no test framework.

from autoais.testing import check_judge

def test_my_judge() -> None:
    check_judge(MyJudge())
"""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from autoais import formats
from autoais.base.answers import CitedAnswer
from autoais.base.errors import FormatError
from autoais.base.io.files import records
from autoais.base.io.jsonl import write_atomic
from autoais.base.types import Attribution, Judge, Judgement, Verdict

SUPPORTED_CLAIM = Attribution("Warsaw is the capital of Poland.", ("Warsaw is the capital of Poland, on the Vistula.",))
UNRELATED_CLAIM = Attribution("Penguins swim well.", ("Warsaw is the capital of Poland.",))
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
    supported: Attribution = SUPPORTED_CLAIM,
    unrelated: Attribution = UNRELATED_CLAIM,
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


def check_format(name: str, example: Path) -> None:
    """Check that a registered format keeps the contract on an example file; `AssertionError` names the violation.

    The file is detected and has no faults. Its answers are the same at every reading, have ids of their own and
    survive our own format. What is written is read back with the same sentences and citations, and written the same
    again. A record without a required field is refused with the file, the line and the field.
    """
    answer_format = formats.get_format(name)
    assert answer_format.name == name, f"the format calls itself {answer_format.name!r}"
    assert formats.detect(example) == name, f"{example} is taken for {formats.detect(example)}"
    faults = [str(fault) for fault in formats.validate(example, name) if not fault.warning]
    assert not faults, f"faults in the example: {faults[0]}"
    with TemporaryDirectory() as folder:
        if answer_format.read is not None:
            answers = list(formats.read(example, name))
            assert answers == list(formats.read(example, name)), "a second reading gives other answers"
            assert _again(answers, "answers", Path(folder)) == answers, "our own format does not hold its answers"
            if answer_format.write is not None:
                _check_writer(answers, name, Path(folder))
        _check_refusals(name, example, Path(folder))


def _again(answers: Sequence[CitedAnswer], name: str, folder: Path) -> list[CitedAnswer]:
    path = folder / "written"
    write_atomic(path, formats.write(answers, name))
    return list(formats.read(path, name))


def _check_writer(answers: Sequence[CitedAnswer], name: str, folder: Path) -> None:
    second_answers = _again(answers, name, folder)
    content = (folder / "written").read_bytes()
    for before, after in zip(answers, second_answers, strict=True):
        if "sentences" in formats.get_format(name).supports:
            texts = [[(s.text, len(s.cites)) for s in answer.sentences] for answer in (before, after)]
            assert texts[0] == texts[1], f"answer {before.id!r} comes back with other sentences or citations"
    _again(second_answers, name, folder)
    assert (folder / "written").read_bytes() == content, "what was read back is written differently"


def _check_refusals(name: str, example: Path, folder: Path) -> None:
    """Leave out each required field of each record in turn; the record becomes a line of JSON."""
    schema, path = formats.get_format(name).schema, folder / "broken.jsonl"
    for _, row in islice(records(example), 100):
        assert not isinstance(row, FormatError), str(row)
        for missing in schema["required"]:
            fields = {key: value for key, value in row.items() if key != missing}
            path.write_text(f"\n{json.dumps(fields)}\n", "utf-8")
            faults = [str(fault) for fault in formats.validate(path, name)]
            expected = f"{path}:2: field {missing!r} is missing"
            assert any(fault.startswith(expected) for fault in faults), f"not refused: {expected} (found: {faults})"
