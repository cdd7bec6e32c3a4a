"""Paths that people write."""

import os.path
from pathlib import Path


def user_path(path: str | Path) -> Path:
    """A path in which `~` is the user's home; `~name` of an unknown user stays as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  (that raises RuntimeError for an unknown user)
