"""Paths with `~`, the size of a folder, and the disk space that is free."""

import os.path
import shutil
from pathlib import Path


def user_path(path: str | Path) -> Path:
    """A path in which `~` is the user's home; `~name` of an unknown user stays as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  (that raises RuntimeError for an unknown user)


def is_file(path: str) -> bool:
    """Whether a text is the path of a file; a text that is too long for a path is not."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def folder_size(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def existing_place(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())


def free_space(folder: Path) -> int:
    """The bytes that are free on the disk of a folder, which need not exist yet."""
    return shutil.disk_usage(existing_place(folder)).free
