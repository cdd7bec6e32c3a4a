"""The records of a study: people, their work, and the progress."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from rag.annotate.items import Item
from rag.annotate.schemes import Question

Role = Literal["annotator", "admin"]
Phase = Literal["training", "study", "gold"]

MAX_EVIDENCE = 100
"""The most pieces of evidence of a verdict."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Characters `start` to `end` (exclusive) of the text of a source of the item, by the source's id."""

    passage: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What a person enters about an item: a verdict on a question, and what belongs to it.

    `press` is a unique id of this press: the same one twice is recorded once. `comment` is on the item. `seconds` is
    the time for this question, at most that since it was `shown`, which is `Work.shown`; without it, the time since
    then, or since the person's last press.
    """

    question: str
    value: str
    _: KW_ONLY
    press: str
    evidence: Sequence[Evidence] = ()
    reason: str = ""
    comment: str = ""
    seconds: float | None = None
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class Annotator:
    """A person. `has_passed` is true after the training round, or if there is none.

    `block_reason` says why the person gets no more items; None if they do.
    """

    id: str
    role: Role
    has_passed: bool
    block_reason: str | None


@dataclass(frozen=True, slots=True)
class Work:
    """What a person's browser gets now.

    The id of `item` is made for this person, and reveals neither gold items nor the system. Its sources and table are
    empty while the question hides them; the expected verdicts, the explanation, the system and the id of the answer
    always are. `phase` is `training` or `study`; gold items say `study`. `verdicts` are this person's earlier verdicts
    on the item. `done_count` and `left_count` count this person's items (in training, of this attempt). `press` is a
    fresh id, which the form sends back: the same press twice is recorded once. `shown` says which question this is,
    for which press, and since when, signed: an answer with it is refused for another question, or sent too soon.
    `entered` is what this person last entered for the question, if that was taken back or is revised now; without its
    comment, which stays on the item.
    """

    item: Item
    question: Question
    verdicts: Mapping[str, str]
    phase: Literal["training", "study"]
    done_count: int
    left_count: int
    press: str
    can_undo: bool
    attempt: int = 0
    shown: str = ""
    entered: Entry | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person sees after a verdict in training."""

    right: bool
    expected: str
    explanation: str


@dataclass(frozen=True, slots=True)
class PersonProgress:
    """The progress of a person. Shares are None while there is nothing to count."""

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
    fast: int = 0
    """Verdicts in less than `fast_seconds` of the settings."""


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How many of the items of a batch a person has finished or flagged."""

    name: str
    annotator: str
    done: int
    items: int


@dataclass(frozen=True, slots=True)
class WorkWarning:
    """Why an admin should look at a person's verdicts, in one sentence."""

    annotator: str
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a study.

    `items` counts items by their number of finished ratings, `finished` those that need no more. `alpha` is
    Krippendorff's alpha so far by question, None where there are too few verdicts: ordinal for values from 1 to 5, else
    nominal.
    """

    total: int
    finished: int
    items: Mapping[int, int]
    flags: Mapping[str, int]
    ratings: int
    people: tuple[PersonProgress, ...]
    alpha: Mapping[str, float | None]
    ties: int  # of finished items
    batches: tuple[BatchProgress, ...] = ()
    warnings: tuple[WorkWarning, ...] = ()


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
    """A question on which the people who finished an item are split: votes and written reasons by value.

    These are for the admin who decides, and for no annotator's page.
    """

    item: Item
    question: Question
    votes: Mapping[str, int]
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastVerdict:
    """A person's own verdict on an item, and those that it replaced, with their times (seconds since 1970)."""

    question: Question
    value: str
    at: float
    earlier: tuple[tuple[str, float], ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PastItem:
    """An item that a person has finished, or flagged: then `flag` says why. `comment` is the last one, or empty.

    The id of `item` is as in `Work`, and so is what it leaves out.
    """

    item: Item
    verdicts: tuple[PastVerdict, ...]
    flag: str
    comment: str


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """A single verdict or flag, for an admin: also one that was taken back.

    `seconds` is the time that it took, None if unknown; `is_fast` says that this is less than `fast_seconds` of the
    settings. `at` is in seconds since 1970.
    """

    item: str
    annotator: str
    question: str
    value: str
    phase: Phase
    seconds: float | None
    is_fast: bool
    at: float
    reason: str
    taken_back: bool
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """What the judge of the triage says: whether the item is attributable, with its probability if it has one."""

    judge: str
    attributable: bool
    probability: float | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """An item with all that people said about it. `comments` are (person, text, time), in order.

    `judge` is None where no judge chose the items, and until people have finished the item and no tie is left.
    """

    item: Item
    verdicts: tuple[VerdictRecord, ...]
    comments: tuple[tuple[str, str, float], ...]
    judge: JudgeVerdict | None
