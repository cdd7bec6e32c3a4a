"""An annotation study: what each person is asked next, and what they answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rag.annotate.items import Item
from rag.annotate.schemes import Question, Scheme
from rag.annotate.settings import Settings

Role = Literal["annotator", "admin"]
Phase = Literal["training", "study", "gold"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Characters `start` to `end` (exclusive) of the text of a source of the item, by the source's id."""

    passage: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Annotator:
    """A person: `passed` the training round (or there is none); `blocked` gives the reason if they are."""

    id: str
    role: Role
    passed: bool
    blocked: str | None


@dataclass(frozen=True, slots=True)
class Work:
    """All that may be sent to a person's browser now.

    `item` has an id of its own for this person, by which neither gold items nor the system can be told. Its sources and
    table are empty while the question hides them; the expected verdicts, the explanation, the system and the id of the
    answer always are. `phase` is `training` or `study`; gold items say `study`. `verdicts` are this person's earlier
    verdicts on the item. `done` and `left` count this person's items (in training, of this attempt); `left` is None if
    it cannot be known. `press` is a fresh id, which the form sends back: the same press twice is recorded once.
    """

    item: Item
    question: Question
    verdicts: Mapping[str, str]
    phase: Literal["training", "study"]
    done: int
    left: int | None
    press: str
    can_undo: bool
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person is told after a verdict in training."""

    right: bool
    expected: str
    explanation: str


@dataclass(frozen=True, slots=True)
class PersonProgress:
    """How far a person is. Shares are None while there is nothing to count."""

    id: str
    role: Role
    passed: bool
    blocked: str | None
    revoked: bool
    done: int
    flagged: int
    median_seconds: float | None
    gold: int
    gold_right: float | None
    audited: int
    audit_right: float | None
    agreement: float | None
    """Share of pairs of this verdict and another person's, on the same item and question, that agree."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a study is.

    `items` counts items by their number of finished ratings, `finished` those that need no more. `alpha` is
    Krippendorff's alpha so far by question (nominal), None where there is too little to say.
    """

    total: int
    finished: int
    items: Mapping[int, int]
    flags: Mapping[str, int]
    ratings: int
    people: tuple[PersonProgress, ...]
    alpha: Mapping[str, float | None]
    ties: int


@dataclass(frozen=True, slots=True)
class Audit:
    """A finished rating of one person, for an admin to check; `item` has its own id and all its sources."""

    item: Item
    question: Question
    annotator: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tie:
    """A question on which the people who finished an item are split; `votes` are not for other annotators' eyes."""

    item: Item
    question: Question
    votes: Mapping[str, int]


class Study:
    """A study; made by `open_study`. Thread-safe. Methods raise `StudyError` if the database cannot be reached."""

    folder: Path
    settings: Settings
    scheme: Scheme

    def sign_in(self, token: str) -> Annotator:
        """Return the person of a link; raises `LinkError`, whatever is wrong with it."""
        raise NotImplementedError

    def annotator(self, id: str) -> Annotator:  # noqa: A002
        """Return a person by id; raises `LinkError` if there is none, or their link is revoked or has expired."""
        raise NotImplementedError

    def next(self, annotator: str) -> Work | None:
        """Return what the person does now: the item they hold, else one leased to them; None if nothing is left."""
        raise NotImplementedError

    def verdict(
        self,
        annotator: str,
        item: str,
        question: str,
        value: str,
        *,
        press: str,
        evidence: Sequence[Evidence] = (),
        reason: str = "",
        seconds: float | None = None,
    ) -> Feedback | None:
        """Record a verdict on `Work.item.id`; returns after the commit, in training with feedback.

        Raises `PressError` if the person never held the item, the question is not the one asked now (as in a second
        tab), the value is not among the options, or evidence or a reason is required and missing. A verdict after the
        lease has expired is recorded.
        """
        raise NotImplementedError

    def flag(self, annotator: str, item: str, reason: str, *, press: str) -> None:
        """Take an item out of this person's queue, with a reason of `flags_for(item.kind)`; others still rate it."""
        raise NotImplementedError

    def undo(self, annotator: str, *, press: str) -> None:
        """Take back this person's last press; it stays in the log. Raises `PressError` if there is none."""
        raise NotImplementedError

    # --- admin -----------------------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """Return how far the study and its people are."""
        raise NotImplementedError

    def invite(self, id: str, role: Role = "annotator", *, days: float | None = None) -> str:  # noqa: A002
        """Add a person, or replace the link of one; return the token of their link, which is stored nowhere."""
        raise NotImplementedError

    def revoke(self, id: str) -> None:  # noqa: A002
        """End a person's link at once; their ratings stay. Raises `UsageError` for an unknown id."""
        raise NotImplementedError

    def block(self, id: str, reason: str) -> None:  # noqa: A002
        """Give a person no more items."""
        raise NotImplementedError

    def unblock(self, id: str) -> None:  # noqa: A002
        """Let a person go on; who failed the training round gets its attempts again."""
        raise NotImplementedError

    def audit_sample(self, n: int) -> list[Audit]:
        """Return up to n finished ratings that nobody has audited, drawn with the study's seed."""
        raise NotImplementedError

    def record_audit(
        self, admin: str, item: str, question: str, annotator: str, value: str, *, press: str, reason: str = ""
    ) -> None:
        """Record what an admin would have answered in the place of `annotator`."""
        raise NotImplementedError

    def ties(self) -> list[Tie]:
        """Return the ties that nobody has adjudicated."""
        raise NotImplementedError

    def adjudicate(self, admin: str, item: str, question: str, value: str, *, press: str, reason: str = "") -> None:
        """Decide a question about an item (by its own id) instead of the majority."""
        raise NotImplementedError

    def export(self, out: str | Path) -> Mapping[str, Any]:
        """Write ratings, answers with consensus and the manifest to a folder; return the manifest."""
        raise NotImplementedError

    def ready(self) -> None:
        """Raise `StudyError` if the database cannot be reached."""
        raise NotImplementedError


Clock = Callable[[], float]
