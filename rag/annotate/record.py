"""What reviews, guidelines and exports read of a study."""

from pathlib import Path
from typing import Protocol

from rag.annotate.items import Item
from rag.annotate.schemes import Scheme
from rag.annotate.settings import Settings
from rag.annotate.store import Database


class StudyRecord(Protocol):
    """A study to read from; `rag.annotate.study.Study` is one. It lies below the study, which calls all three."""

    @property
    def folder(self) -> Path:
        """The folder of the study."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings that the study was made with."""
        ...

    @property
    def scheme(self) -> Scheme:
        """The questions that people answer."""
        ...

    @property
    def database(self) -> Database:
        """The answers of people."""
        ...

    def item(self, id: str) -> Item:  # noqa: A002
        """Return an item by its id."""
        ...
