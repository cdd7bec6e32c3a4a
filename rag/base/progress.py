"""Progress callbacks."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of the step, the amount done and the total (bytes of a corpus, files, pages, passages, ...)."""

Count = Callable[[int, int], None]
"""Called with the number done and the total."""


def no_progress(step: str, count: int, total: int) -> None:
    """Show nothing."""
