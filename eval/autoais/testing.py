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
from autoais.answers import CitedAnswer
from autoais.errors import FormatError
from autoais.io.files import records
from autoais.io.jsonl import write_atomic
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


def check_format(name: str, example: Path) -> None:
    """Check that a registered format keeps the contract on an example file; `AssertionError` names the violation.

    The file is detected and has no faults. Its answers are the same at every reading, have ids of their own and
    survive our own format. What is written is read back with the same sentences and citations, and written the same
    again. A record without a required field is refused with the file, the line and the field.
    """
    one = formats.by_name(name)
    assert one.name == name, f"the format calls itself {one.name!r}"
    assert formats.detect(example) == name, f"{example} is taken for {formats.detect(example)}"
    faults = [str(fault) for fault in formats.validate(example, name) if not fault.warning]
    assert not faults, f"faults in the example: {faults[0]}"
    with TemporaryDirectory() as folder:
        if one.read is not None:
            answers = list(formats.read(example, name))
            assert answers == list(formats.read(example, name)), "a second reading gives other answers"
            assert _again(answers, "answers", Path(folder)) == answers, "our own format does not hold its answers"
            if one.write is not None:
                _check_written(answers, name, Path(folder))
        _check_refusals(name, example, Path(folder))


def _again(answers: Sequence[CitedAnswer], name: str, folder: Path) -> list[CitedAnswer]:
    path = folder / "written"
    write_atomic(path, formats.write(answers, name))
    return list(formats.read(path, name))


def _check_written(answers: Sequence[CitedAnswer], name: str, folder: Path) -> None:
    again = _again(answers, name, folder)
    written = (folder / "written").read_bytes()
    for before, after in zip(answers, again, strict=True):
        if "sentences" in formats.by_name(name).supports:
            texts = [[(s.text, len(s.cites)) for s in answer.sentences] for answer in (before, after)]
            assert texts[0] == texts[1], f"answer {before.id!r} comes back with other sentences or citations"
    _again(again, name, folder)
    assert (folder / "written").read_bytes() == written, "what was read back is written differently"


def _check_refusals(name: str, example: Path, folder: Path) -> None:
    """Leave out each required field of each record in turn; the record becomes a line of JSON."""
    schema, path = formats.by_name(name).schema, folder / "broken.jsonl"
    for _, row in islice(records(example), 100):
        assert not isinstance(row, FormatError), str(row)
        for missing in schema["required"]:
            kept = {key: value for key, value in row.items() if key != missing}
            path.write_text(f"\n{json.dumps(kept)}\n", "utf-8")
            found = [str(fault) for fault in formats.validate(path, name)]
            expected = f"{path}:2: field {missing!r} is missing"
            assert any(fault.startswith(expected) for fault in found), f"not refused: {expected} (found: {found})"
