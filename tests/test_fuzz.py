"""A few of the cases of `make long-tests`, and that it notices what it looks for."""

import time
from collections import Counter

import pytest

from scripts.fuzz import Limits, run, run_target
from scripts.fuzzing.targets import TARGETS, Case, Target

pytestmark = pytest.mark.slow
SEEDS = (("good", b"ok"),)


def test_broken_inputs_are_refused_or_read() -> None:
    results = list(run(240, seed=7))
    assert [result for result in results if result.is_finding] == []
    assert set(Counter(result.target for result in results).values()) <= {240 // len(TARGETS), 240 // len(TARGETS) + 1}
    assert {result.outcome for result in results} == {"accepted", "refused"}


def fail(case: Case) -> None:
    if case.data != b"ok":
        raise KeyError("it is broken")


def hang(case: Case) -> None:
    if case.data != b"ok":
        time.sleep(60)


def fill_memory(case: Case) -> None:
    if case.data != b"ok":
        assert len(b"x" * (300 << 20)) > 0


def refuse_in_two_lines(case: Case) -> None:
    from autoais.base.errors import UserError

    if case.data != b"ok":
        raise UserError("one line\nand another")


@pytest.mark.parametrize(
    ("feed", "limits", "message"),
    [
        (fail, Limits(), "KeyError: "),
        (hang, Limits(seconds=0.3), "takes longer than 0.3 s"),
        (fill_memory, Limits(memory=200 << 20), "takes "),
        (fill_memory, Limits(addresses=300 << 20), "MemoryError"),
        (refuse_in_two_lines, Limits(), "an error of 2 lines"),
    ],
    ids=["raises", "hangs", "takes much memory", "takes all memory", "says much"],
)
def test_a_target_that_fails_is_noticed_and_the_run_goes_on(feed: object, limits: Limits, message: str) -> None:
    target = Target("bad", SEEDS, feed)  # type: ignore[arg-type]
    outcomes = [result.outcome for result in run_target(target, [0, 1], 1, limits)]
    assert len(outcomes) == 2
    assert all(outcome.startswith(message) for outcome in outcomes), outcomes


def test_a_valid_input_that_is_not_accepted_stops_the_run() -> None:
    with pytest.raises(SystemExit, match=r"bad: the valid seed 'other' is not accepted: KeyError"):
        list(run_target(Target("bad", (*SEEDS, ("other", b"")), fail), [0], 1))
