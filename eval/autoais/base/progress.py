"""The progress callback."""

from typing import Protocol


class Progress(Protocol):
    """Shows how far a piece of work is."""

    def __call__(self, step: str, done: int, total: int, /) -> None:
        """Show that of the work `step`, `done` of `total` are done: bytes, files, pages, passages, questions, pairs."""
        ...


def no_progress(step: str, done: int, total: int) -> None:
    """Show nothing."""
