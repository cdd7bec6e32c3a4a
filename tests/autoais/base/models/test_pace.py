"""The limit of requests at once finds what a server bears: servers that share their speed, in virtual time."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from autoais.base.errors import UserError
from autoais.base.models import pace
from autoais.base.models.pace import MAX_AUTO, Limit, Pace, RequestTotals, Ticket

Speed = Callable[[int], float]
"""The tokens a second of each of so many replies at once."""


def batch(size: int) -> Speed:
    """A token takes 20 ms for up to `size` replies at once, and longer for more."""
    return lambda running: 50 / max(1, running / size) ** 1.1


def gpu(running: int) -> float:
    """Each reply slows the others down a little, while all together become faster."""
    return 50 / (1 + running / 64)


@dataclass
class Run:
    """What came of a run in virtual time."""

    seconds: float = 0.0
    tokens: int = 0
    refused: int = 0
    settled: list[int] = field(default_factory=list)  # after each reply

    @property
    def speed(self) -> float:
        return self.tokens / self.seconds


def run(speeds: list[Speed], questions: int, *, bears: int = 10_000, fixed: int | None = None) -> Run:
    """Ask a server that refuses more than it bears, and that has each of these speeds for a part of the questions."""
    rng, limit, found = random.Random(1), Limit(), Run()
    running: list[tuple[float, int, Ticket]] = []  # tokens to generate, tokens in all, and what was sent
    left, free_at, replies = questions, 0.0, 0
    while left or running:
        while left and found.seconds >= free_at and len(running) < (fixed or limit.now):
            sent = limit.send(found.seconds)
            if len(running) >= bears:
                limit.add_refusal(sent, found.seconds)
                found.refused += 1
                free_at = found.seconds + 1
                continue
            tokens = rng.randint(20, 60)
            running.append((tokens + 5, tokens, sent))
            left -= 1
        if not running:
            found.seconds = free_at
            continue
        speed = speeds[min(len(speeds) - 1, replies * len(speeds) // questions)](len(running))
        running.sort(key=lambda one: one[0])
        step = running[0][0] / speed
        if found.seconds < free_at < found.seconds + step:
            step = free_at - found.seconds
        found.seconds += step
        running = [(tokens - step * speed, whole, sent) for tokens, whole, sent in running]
        if running[0][0] <= 1e-9:
            _, tokens, sent = running.pop(0)
            limit.add_reply(sent, found.seconds, tokens)
            found.tokens += tokens
            found.settled.append(limit.settled)
            replies += 1
    return found


@pytest.mark.parametrize("size", [1, 4, 6, 24, 32])
def test_it_settles_where_more_at_once_is_no_faster(size: int) -> None:
    found, best = run([batch(size)], 120 * size), run([batch(size)], 120 * size, fixed=size)
    assert size <= found.settled[-1] <= 1.5 * size
    assert found.speed > 0.9 * best.speed


def test_it_goes_on_while_all_replies_together_become_faster() -> None:
    found = run([gpu], 8_000)
    assert found.settled[-1] > 100  # where a reply takes more than twice as long as alone
    assert max(found.settled) <= MAX_AUTO


def test_it_follows_a_server_that_has_less_or_more_time() -> None:
    less = run([batch(64), batch(16)], 6_000).settled
    assert less[2_900] >= 56
    assert less[-1] <= 24
    more = run([batch(8), batch(64)], 12_000).settled
    assert more[5_900] <= 12
    assert more[-1] >= 48


def test_few_requests_are_refused_where_a_server_bears_fewer_than_would_be_faster() -> None:
    found = run([batch(32)], 2_000, bears=12)
    assert 10 <= found.settled[-1] <= 12
    assert found.refused <= 30


def fill(limit: Limit, at: float) -> list[Ticket]:
    """Send as many requests as may run."""
    return [limit.send(at) for _ in range(limit.running, limit.now)]


def test_refused_requests_halve_a_settled_limit_once_a_round() -> None:
    limit, at = Limit(), 0.0
    while limit.now < 64:  # a server without bounds
        running = fill(limit, at)
        at += 1
        for sent in running:
            limit.add_reply(sent, at, 50)
    assert limit.settled == 32
    running = fill(limit, at)
    for sent in running:
        limit.add_refusal(sent, at)
    assert (limit.now, limit.settled, limit.running) == (32, 32, 0)  # the trial is undone
    for half in (16, 8):
        running = fill(limit, at)
        for sent in running:
            limit.add_refusal(sent, at)
        assert (limit.now, limit.settled) == (half, half)


def test_nothing_is_sent_before_the_time_that_a_server_named() -> None:
    async def asked() -> float:
        kept = Pace()
        first = await kept.send(is_retry=False)
        kept.add_failure(first, busy=True, wait=0.2)
        return (await kept.send(is_retry=True)).start - first.start

    assert asyncio.run(asked()) >= 0.2


def test_a_pace_is_that_of_the_code_inside_and_sums_up() -> None:
    kept = Pace("3")
    assert (kept.at_once, kept.totals, pace.current()) == (3, None, None)
    with kept.apply():
        assert pace.current() is kept
    assert pace.current() is None
    assert str(RequestTotals(1, 0, 50, 2.0, 1)) == "1 request, 25 tokens a second, 1 at once"
    assert str(RequestTotals(1_200, 3, 0, 0.0, 8)) == "1,200 requests (3 sent again), 8 at once"


@pytest.mark.parametrize("concurrency", [0, -1, 1_025, "many", "", "1.5"])
def test_what_is_no_concurrency_is_refused(concurrency: int | str) -> None:
    with pytest.raises(UserError, match="concurrency should be auto or a number from 1 to 1,024"):
        Pace(concurrency)
