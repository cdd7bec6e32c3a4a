"""Worker threads for an event loop, with a limit of requests that run, of those that wait, and of their time."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

from rag.base.errors import BusyError, TimeLimitError

P = ParamSpec("P")
T = TypeVar("T")

_END: Any = object()


class Workers:
    """Runs functions in daemon threads: at exit, Python waits for the threads of a `ThreadPoolExecutor` and of anyio.

    A function that exceeds the time limit cannot be stopped: it holds its worker until it returns.
    """

    def __init__(self, workers: int, waiting: int, seconds: float) -> None:
        self._most, self._seconds = workers + waiting, seconds
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = self._running = 0
        self._stopping = False
        self._threads = [threading.Thread(target=self._work, daemon=True, name=f"rag-{n}") for n in range(workers)]
        for thread in self._threads:
            thread.start()

    @property
    def running(self) -> int:
        """How many functions run."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many functions wait for a worker."""
        return max(0, self._unfinished - self._running)

    @property
    def full(self) -> bool:
        """Whether another function would be refused."""
        return self._stopping or self._unfinished >= self._most

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the function returns. A caller that is cancelled gives up its place among those that wait.

        Raises `BusyError` if too many wait, `TimeLimitError` after the time limit.
        """
        future = self._submit(lambda: work(*args, **kwargs))
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if limit.expired():
                raise self._late() from None
            raise

    def stream(self, work: Callable[P, Iterator[T]], *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        """Yield what the iterator yields. A consumer that stops ends the iterator before its next item.

        Items wait in a queue, so that a slow consumer holds no worker. Raises `BusyError` at once if
        too many wait, and `TimeLimitError` if an item takes longer than the time limit of the whole.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[T] = asyncio.Queue()
        stop_event = threading.Event()

        def put(item: T) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(queue.put_nowait, item)

        def produce() -> None:
            iterator = work(*args, **kwargs)
            try:
                for item in iterator:
                    if stop_event.is_set():
                        return
                    put(item)
            finally:
                if close := getattr(iterator, "close", None):
                    close()

        future = self._submit(produce)
        future.add_done_callback(lambda _: put(_END))
        return self._pieces(queue, future, stop_event, loop.time() + self._seconds)

    async def _pieces(
        self, queue: "asyncio.Queue[T]", future: "Future[None]", stop_event: threading.Event, deadline: float
    ) -> AsyncGenerator[T, None]:
        try:
            while True:
                try:
                    item = queue.get_nowait()
                except asyncio.QueueEmpty:
                    try:
                        async with asyncio.timeout_at(deadline):
                            item = await queue.get()
                    except TimeoutError:
                        raise self._late() from None
                if item is _END:
                    future.result()  # raises what the iterator raised
                    return
                yield item
        finally:
            stop_event.set()
            future.cancel()

    def stop(self) -> None:
        """Refuse waiting and further functions; running ones go on."""
        with self._lock:
            self._stopping = True
        with suppress(Empty):
            while True:
                if (job := self._jobs.get_nowait()) is not None and job[0].set_running_or_notify_cancel():
                    job[0].set_exception(_stopping())

    def close(self) -> None:
        """End the threads once nothing runs or waits."""
        for _ in self._threads:
            self._jobs.put(None)

    def _late(self) -> TimeLimitError:
        return TimeLimitError(f"it took longer than {self._seconds:g} seconds")

    def _submit(self, work: Callable[[], T]) -> "Future[T]":
        with self._lock:
            if self._stopping:
                raise _stopping()
            if self._unfinished >= self._most:
                raise BusyError("too many questions wait; try again in a few seconds")
            self._unfinished += 1
        future: Future[T] = Future()
        future.add_done_callback(self._release)
        self._jobs.put((future, work))
        return future

    def _release(self, _: "Future[Any]") -> None:
        with self._lock:
            self._unfinished -= 1

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, work = job
            if not future.set_running_or_notify_cancel():
                continue
            with self._lock:
                self._running += 1
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  (raised by future.result())
                self._finish(future, error=error)
            else:
                self._finish(future, result)
            del job, future, work  # hold nothing of a request while waiting for the next
            result = None

    def _finish(self, future: "Future[Any]", result: object = None, error: BaseException | None = None) -> None:
        with self._lock:
            self._running -= 1
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _stopping() -> BusyError:
    return BusyError("the server is stopping; ask again later")
