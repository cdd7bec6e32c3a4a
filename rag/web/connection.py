"""A connection with time limits for slow requests and slow readers, which uvicorn's own lacks."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_REQUEST_SECONDS = 20.0
"""From the first byte of a request to its last, and until the first request; a body gets more (`BYTES_PER_SECOND`)."""
BYTES_PER_SECOND = 16 << 10
"""Bytes of a body that add a second."""
MAX_UNREAD_SECONDS = 60.0
"""Seconds that a client may leave what is sent to it unread, once the buffers are full."""


class Connection(H11Protocol):
    """Closes connections whose client sends or reads too slowly. The time of answering does not count."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (uvicorn's)
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._since, self._received = 0.0, 0
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        if self._timer is None and not self._complete:
            self._expect()
        self._received += len(data)
        super().data_received(data)
        if self._complete:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._stop()
        self._read()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._unread = self.loop.call_later(MAX_UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._read()
        super().resume_writing()

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    @property
    def _complete(self) -> bool:
        """Whether a request has come whole and is being answered."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def _expect(self) -> None:
        self._since, self._received = self.loop.time(), 0
        self._timer = self.loop.call_later(MAX_REQUEST_SECONDS, self._late)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        """Close the connection, unless a long body is on its way quickly enough."""
        self._timer = None
        remaining = self._since + MAX_REQUEST_SECONDS + self._received / BYTES_PER_SECOND - self.loop.time()
        if self.cycle is not None and not self.cycle.response_complete and remaining > 0:
            self._timer = self.loop.call_later(remaining, self._late)
        elif not self.transport.is_closing():
            self.transport.close()
