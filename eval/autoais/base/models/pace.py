"""How many requests a model server gets at once: a fixed number, or as many as make it faster (`auto`)."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from autoais.base.errors import UserError

AUTO = "auto"
MAX_AUTO = 256  # requests at once that `auto` may try
MAX_FIXED = 1_024  # requests at once that a person may ask for
_EXTRA_TOKENS = 16  # tokens: what a reply takes besides its own, as the prompt is read too
_MIN_REPLIES = 4  # replies that a round waits for, but in the slow start
_STEP = 8  # a change of the limit begins with this part of it
_DECREASE = 2  # a refused limit is divided by this
_WORTH = 0.25  # the part of a proportional gain that a higher limit has to bring
_PATIENCE = 8  # rounds between two trials of another limit, at most
_POLL = 0.05  # seconds between two looks for room, after the limit has fallen


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request on its way: when it was sent, in which round, and as which of its requests."""

    start: float
    round: int
    number: int


class Limit:
    """A limit that climbs while throughput grows, and falls by half when requests are refused.

    It goes in rounds. A round waits for its first requests, about as many as the limit. Their tokens per second, times
    the requests that ran at once on average, are the throughput (Little's law), whatever the length of replies. A round
    tries a limit above the settled one, which stays if throughput grew by at least a quarter as much as the limit; or
    one below, which stays if throughput fell by less than that. A step is an eighth of the limit and doubles with each
    success, so that a run begins by doubling; after a failure, some rounds pass before the next trial. A refused
    request undoes the trial, or else halves the limit, once a round.

    Doubling at first and halving are those of TCP (slow start and multiplicative decrease: Chiu and Jain 1989, RFC
    5681). Latency alone does not decide, as it does in TCP Vegas and the Gradient limiter of Netflix: on a GPU each
    reply slows the others down a little, while all together become faster.
    """

    def __init__(self) -> None:
        self.settled = self.now = 1
        self._throughput: float | None = None  # at the settled limit
        self._up, self._step = True, 1
        self._rest = self._patience = 0  # rounds until the next trial, and after the next failure
        self._running, self._area, self._changed = 0, 0.0, 0.0  # requests, their integral over time, its last change
        self._round = 0
        self._begin(0.0)

    @property
    def running(self) -> int:
        """The number of requests on their way."""
        return self._running

    def send(self, now: float) -> Ticket:
        """Enter a request that is sent now."""
        self._count(now, 1)
        if not self._sent:
            self._area, self._changed, self._since = 0.0, now, now
        self._sent += 1
        return Ticket(now, self._round, self._sent)

    def add_reply(self, ticket: Ticket, now: float, tokens: int) -> None:
        """Enter a reply with its number of tokens."""
        self._count(now, -1)
        if self._counts(ticket):
            self._tokens += _EXTRA_TOKENS + tokens
            self._seconds += now - ticket.start
            self._missing -= 1
            self._end_round(now)

    def add_refusal(self, ticket: Ticket, now: float) -> None:
        """Enter that the server had too much to do: 429, 503, no reply in time."""
        self._count(now, -1)
        if ticket.round != self._round:
            return
        if self.now <= self.settled:
            self.settled, self._throughput = max(1, self.now // _DECREASE), None
        self._up = True
        self._fail(now)

    def add_failure(self, ticket: Ticket, now: float) -> None:
        """Enter a request without a reply, which says nothing about the load of the server."""
        self._count(now, -1)
        if self._counts(ticket):
            self._missing -= 1
            self._end_round(now)

    def _counts(self, ticket: Ticket) -> bool:
        return ticket.round == self._round and ticket.number <= self._size

    def _count(self, now: float, change: int) -> None:
        self._area += self._running * (now - self._changed)
        self._running, self._changed = self._running + change, now

    def _begin(self, now: float) -> None:
        """Begin a round; a rise is judged by the requests that it adds, if they are many."""
        rise = self.now - self.settled
        if 2 * rise >= self.now:
            self._size = rise
        else:
            self._size = self.now if self._throughput is None else max(_MIN_REPLIES, self.now)
        self._round += 1
        self._sent, self._missing = 0, self._size
        self._tokens, self._seconds = 0, 0.0
        self._area, self._changed, self._since = 0.0, now, now

    def _end_round(self, now: float) -> None:
        if self._missing:
            return
        if not self._seconds or now <= self._since:
            self._begin(now)
            return
        throughput = self._area / (now - self._since) * self._tokens / self._seconds
        if self._throughput is None or self.now == self.settled:
            before = self._throughput or throughput
            self._throughput = (before + throughput) / 2
            self._rest -= 1
        elif throughput / self._throughput - 1 >= _WORTH * (self.now / self.settled - 1):
            self.settled, self._throughput = self.now, throughput
            self._step, self._patience = 2 * self._step, 0
        else:
            self._up = not self._up
            self._fail(now)
            return
        self._try()
        self._begin(now)

    def _fail(self, now: float) -> None:
        self.now = self.settled
        self._step = max(1, self.now // _STEP)
        self._patience = min(_PATIENCE, 2 * self._patience + 1)
        self._rest = self._patience
        self._begin(now)

    def _try(self) -> None:
        """Set the limit of the next round."""
        if self._rest > 0:
            return
        if self.settled == 1:
            self._up = True
        elif self.settled == MAX_AUTO:
            self._up = False
        higher, lower = self.settled + self._step, max(self.settled - self._step, self.settled // _DECREASE)
        self.now = min(higher, MAX_AUTO) if self._up else lower


class Pace:
    """The requests of a run to model servers: their limit at once, and their outcomes.

    `concurrency` is a number, or `auto`: one request at a time at first, then as many as make the server faster
    (`Limit`), and none before the time that a server named in Retry-After. Threads share a pace; a `ChatClient` keeps
    to the one of the code that calls it (`apply`).
    """

    def __init__(self, concurrency: int | str = AUTO) -> None:
        self._limit = Limit() if concurrency == AUTO else None
        self._fixed = 1
        if self._limit is None:
            if not str(concurrency).isdecimal() or not 1 <= int(concurrency) <= MAX_FIXED:
                raise UserError(f"concurrency should be {AUTO} or a number from 1 to {MAX_FIXED:,}: {concurrency!r}")
            self._fixed = int(concurrency)
        self._lock = threading.Lock()
        self._requests = self._again = self._tokens = 0
        self._first = self._last = self._until = 0.0

    @property
    def at_once(self) -> int:
        """How many requests may run at once now."""
        return self._fixed if self._limit is None else self._limit.now

    @property
    def totals(self) -> "RequestTotals | None":
        """The totals so far; None if no server was asked."""
        if not self._requests:
            return None
        at_once = self._fixed if self._limit is None else self._limit.settled
        return RequestTotals(self._requests, self._again, self._tokens, self._last - self._first, at_once)

    @contextmanager
    def apply(self) -> Iterator[None]:
        """Let the clients that are called inside keep to this pace."""
        before = _current.set(self)
        try:
            yield
        finally:
            _current.reset(before)

    async def send(self, *, is_retry: bool) -> Ticket:
        """Wait for room, and enter a request that is sent now."""
        import asyncio  # only for who asks a server

        while isinstance(ticket := self._try_to_enter(is_retry=is_retry), float):
            await asyncio.sleep(ticket)
        return ticket

    def _try_to_enter(self, *, is_retry: bool) -> Ticket | float:
        """Return the request, or the seconds after which there may be room for it."""
        with self._lock:
            now = time.monotonic()
            if self._limit is not None:
                if now < self._until:
                    return self._until - now
                if self._limit.running >= self._limit.now:
                    return _POLL
            self._first = self._first or now
            self._requests += 1
            self._again += is_retry
            return Ticket(now, 0, 0) if self._limit is None else self._limit.send(now)

    def add_reply(self, ticket: Ticket, tokens: int) -> None:
        """Enter a reply with the number of its tokens."""
        with self._lock:
            self._tokens += tokens
            self._last = time.monotonic()
            if self._limit is not None:
                self._limit.add_reply(ticket, self._last, tokens)

    def add_failure(self, ticket: Ticket, *, busy: bool = False, wait: float = 0.0) -> None:
        """Enter a request without a reply: whether the server was busy, and the seconds that it asked to wait."""
        with self._lock:
            self._last = time.monotonic()
            if self._limit is not None:
                self._until = max(self._until, self._last + wait)
                (self._limit.add_refusal if busy else self._limit.add_failure)(ticket, self._last)


_current: ContextVar[Pace | None] = ContextVar("pace", default=None)


def current() -> Pace | None:
    """Return the pace that the calling code has set (`Pace.apply`), or None."""
    return _current.get()


@dataclass(frozen=True, slots=True)
class RequestTotals:
    """Totals of a run: requests, those of them that were sent again, tokens written by servers, and seconds.

    `at_once` is the number of requests at once, for `auto` the one that it settled at.
    """

    requests: int
    retries: int
    tokens: int
    seconds: float
    at_once: int

    def __str__(self) -> str:
        retries = f" ({self.retries:,} sent again)" if self.retries else ""
        rate = f"{self.tokens / self.seconds:,.0f} tokens a second, " if self.seconds else ""
        return f"{self.requests:,} request{'' if self.requests == 1 else 's'}{retries}, {rate}{self.at_once:,} at once"
