"""Types that both packages share: questions, passages, citations, judgements and the `Judge` interface."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from operator import index
from types import NoneType

from autoais.base.errors import UsageError, UserError, check_list, check_type, tuple_of

# --- questions and passages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its reference answers (strings), gold passages (ids) and nuggets; each is empty if unknown.

    A nugget is something that a right answer must contain: a tuple of phrases, any of which is enough. `answerable` is
    false if no passage answers the question. Lists become tuples; type checkers ask for tuples. Raises `UsageError` for
    one string in place of several.
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    nuggets: tuple[tuple[str, ...], ...] = ()
    answerable: bool = True

    def __post_init__(self) -> None:
        check_type("the id of a question", self.id, "a string", str)
        check_type("the text of a question", self.text, "a string", str)
        references_as_tuples(self, "a question")


def references_as_tuples(record: object, owner: str, *names: str) -> None:
    """Make tuples of the answers, gold passages, nuggets and the named fields of a frozen record.

    Raises `UsageError` unless they are lists of strings, and the nuggets lists of lists of strings.
    """
    for name in ("answers", "gold", *names):
        value = getattr(record, name)
        if type(value) is not tuple or value:
            object.__setattr__(record, name, tuple_of(str, f"the {name} of {owner}", value, "a list of strings"))
    value = getattr(record, "nuggets")  # noqa: B009  (a field of any record)
    if type(value) is not tuple or value:
        name, expected = f"the nuggets of {owner}", "a list of lists of strings"
        check_list(name, value, expected)
        object.__setattr__(record, "nuggets", tuple(tuple_of(str, name, nugget, expected) for nugget in value))


@dataclass(frozen=True, slots=True)
class Passage:
    """A citable piece of a corpus. `text` is empty if only the id is known.

    `section` holds the headings below the title, joined by ", ". `headings` defaults to title and section on one line;
    a few passages of Attributed QA's Wikipedia have headings that lack the title. `page` is the page that the text
    begins on, in documents that have pages.
    """

    id: str
    title: str = ""
    text: str = ""
    section: str = ""
    headings: str = None  # type: ignore[assignment]  # a string after __post_init__
    page: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            check_type("the text of a passage", self.text, "a string, empty if it is not known", str)
        if self.headings is None:
            object.__setattr__(self, "headings", self.default_headings)

    @property
    def default_headings(self) -> str:
        """Title and section on one line; empty if both are empty."""
        return ", ".join(part for part in (self.title, self.section) if part)

    @property
    def contents(self) -> str:
        """Headings and text, as retrievers index and encode them."""
        return f"{self.headings} {self.text}".strip()

    @property
    def evidence(self) -> str:
        """The text that a judge reads: `{headings}. {text}`, the premise of AutoAIS (Bohnet et al. 2022).

        The headings resolve pronouns. Without headings it is the text alone; without a text it is empty.
        """
        return f"{self.headings}. {self.text}" if self.headings and self.text else self.text


# --- citations -------------------------------------------------------------------------------------------------


class Support(StrEnum):
    """The level of support that a passage gives a sentence (Liu et al. 2023; TREC RAG track)."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Citation:
    """A pointer from a sentence to a passage.

    `start` and `end` (exclusive) are character offsets into the passage's text, and `quote` is the text of that span;
    a quote may come without offsets. `origin` names how the system made the citation, in its own vocabulary: `copied`,
    `cited`, `moved` or `attached` in `rag`. `support` is the human label.
    """

    passage: str
    start: int | None = None
    end: int | None = None
    quote: str | None = None
    origin: str | None = None
    support: Support | None = None

    @property
    def span(self) -> tuple[int, int]:
        """`(start, end)`; raises `ValueError` if the offsets are unknown."""
        if self.start is None or self.end is None:
            raise ValueError(f"the citation of {self.passage!r} has no span")
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of an answer, without citation markers, and its citations.

    A passage may occur twice in `citations`, with two quotes. `start` and `end` are character offsets into the
    answer's text, if known. `output` is the sentence as the system wrote it, with its markers. `informative`,
    `attributable` and `worthy` (it makes a claim about the world that needs a source) are human labels, None if
    missing.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    start: int | None = None
    end: int | None = None
    output: str | None = None
    informative: bool | None = None
    attributable: bool | None = None
    worthy: bool | None = None

    @property
    def cites(self) -> tuple[str, ...]:
        """Ids of the cited passages, without duplicates, in order of mention."""
        return tuple(dict.fromkeys(citation.passage for citation in self.citations))

    @property
    def support(self) -> dict[str, Support]:
        """The human support label of each labelled passage; the better one of two labels."""
        best_first = list(Support)
        levels: dict[str, Support] = {}
        for citation in self.citations:
            if citation.support is not None:
                labels = levels.get(citation.passage, citation.support), citation.support
                levels[citation.passage] = min(labels, key=best_first.index)
        return levels


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A marker, or a part of one, that resolves to no passage; as written, with the reason.

    Reasons: `code-like`, `empty`, `interval`, `malformed`, `no-statement`, `out-of-range`, `reversed-range`,
    `unknown-id`, `year-like`, `zero`. `sentence` is the index of its sentence (0-based), `position` its character
    offset in the clean text; None if unknown.
    """

    marker: str
    reason: str
    sentence: int | None = None
    position: int | None = None

    @property
    def is_citation(self) -> bool:
        """False for text that only looks like a marker and is kept: `[1998]`, an interval, code."""
        return self.reason not in ("year-like", "interval", "code-like")


# --- judgements ------------------------------------------------------------------------------------------------


class Verdict(StrEnum):
    """The outcome of judging one claim against its evidence (AttrScore's three labels, AIS's no, and undecided).

    `NOT_ATTRIBUTABLE` is for binary judges, which do not tell extrapolatory from contradictory.
    `PARTIALLY_ATTRIBUTABLE` says that the evidence supports a part of the claim; for AIS that is a no.
    """

    ATTRIBUTABLE = "attributable"
    PARTIALLY_ATTRIBUTABLE = "partially_attributable"
    NOT_ATTRIBUTABLE = "not_attributable"
    EXTRAPOLATORY = "extrapolatory"
    CONTRADICTORY = "contradictory"
    UNDECIDED = "undecided"

    @property
    def ais(self) -> bool | None:
        """Whether the verdict is attributable (AIS); None if undecided."""
        return None if self is Verdict.UNDECIDED else self is Verdict.ATTRIBUTABLE

    @property
    def support(self) -> Support | None:
        """The level of support (Liu et al. 2023; TREC RAG track); None if undecided."""
        return {
            Verdict.ATTRIBUTABLE: Support.FULL,
            Verdict.PARTIALLY_ATTRIBUTABLE: Support.PARTIAL,
            Verdict.UNDECIDED: None,
        }.get(self, Support.NONE)


@dataclass(frozen=True, slots=True)
class Attribution:
    """A claim and the texts it cites, each a whole passage; empty evidence means no citations.

    `question` is the question that the claim answers, for judges and templates that read it; empty if there is none.
    A list of texts becomes a tuple; type checkers ask for a tuple.
    """

    claim: str
    evidence: tuple[str, ...] = ()
    question: str = ""

    def __post_init__(self) -> None:
        check_type("claim", self.claim, "a string", str)
        object.__setattr__(self, "evidence", tuple_of(str, "evidence", self.evidence, "a list of texts"))


@dataclass(frozen=True, slots=True)
class Place:
    """The ids of a pair: its answer, its sentence (0-based) and its passages.

    `sentence` is None for the whole answer. Only labels of people depend on it (`Judge.of_place`).
    """

    answer: str
    sentence: int | None = None
    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of the evidence text with index `evidence` (0-based)."""

    evidence: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, the probability of `attributable` (0 to 1; None if the judge gives none) and the reason.

    `evidence` holds the spans that the verdict rests on, in order, if the judge read only part of the evidence or can
    point to them. `unsupported` holds the parts of the claim (character offsets, end exclusive) without support.
    Raises `UsageError` for a value of another type, and for a probability outside 0 to 1.
    """

    verdict: Verdict
    probability: float | None = None
    reason: str | None = None
    evidence: tuple[Span, ...] = ()
    unsupported: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        # A plain string equals its verdict, but is not it: the metrics would silently count it as a no.
        check_type("the verdict of a judgement", self.verdict, "a Verdict such as Verdict.ATTRIBUTABLE", Verdict)
        if self.probability is not None:
            check_type("the probability of a judgement", self.probability, "a number from 0 to 1 or None", Real)
            if not 0 <= self.probability <= 1:
                raise UsageError(f"the probability of a judgement should be from 0 to 1, found {self.probability}")
            object.__setattr__(self, "probability", float(self.probability))  # may be a number of numpy
        check_type("the reason of a judgement", self.reason, "a string or None", str, NoneType)
        if self.evidence:
            spans = tuple_of(Span, "the evidence of a judgement", self.evidence, "a list of Spans")
            object.__setattr__(self, "evidence", spans)
        if self.unsupported:
            try:
                object.__setattr__(self, "unsupported", tuple((index(a), index(b)) for a, b in self.unsupported))
            except (TypeError, ValueError):
                raise UsageError(
                    f"unsupported should be a list of (start, end), found {self.unsupported!r:.60}"
                ) from None


NOT_APPLICABLE = "not_applicable"  # verdict of a sentence that claims nothing
NO_TEXT = "no text is known for what was cited"
NOT_JUDGED = "no person judged it against this evidence"
SPLIT = "people are split"
CONTRADICT = "labels of people contradict each other"
NOT_WORTHY = "people find nothing in it to verify"
UNSETTLED_REASONS = frozenset({NOT_JUDGED, SPLIT, CONTRADICT})
"""Reasons of undecided judgements by people. An answer with such a part has no outcome, even where another is a no.

Else of the answers with such parts, only those that are wrong would be decided, and the rate would be too low.
"""


def nothing_to_judge(attribution: Attribution) -> str | None:
    """The reason to judge a pair without a model: no claim, no citations, or no cited text; else None."""
    if not attribution.claim.strip():
        return "nothing was said"
    if not any(text.strip() for text in attribution.evidence):
        return NO_TEXT if attribution.evidence else "nothing was cited"
    return None


class Judge(ABC):
    """Judges whether evidence supports claims. Subclasses define `name` and `decide`; callers use `judge`.

    A claim without evidence is not attributable, whatever the judge: a system must supply the passages (AIS), and a
    sentence without citations has recall 0 (ALCE). `judge` decides such pairs itself and passes each other pair to
    `decide` once.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Identifies everything that changes a verdict: `model@revision/length or threshold/template`."""

    @abstractmethod
    def decide(self, attributions: Sequence[Attribution]) -> list[Judgement]:
        """Judge distinct attributions, each with a claim and evidence; return the judgements in the same order.

        A judgement must not depend on the other attributions of the call.
        """

    def by_rule(self, attribution: Attribution) -> Judgement | None:
        """Return the judgement of a pair that is not passed to `decide`; None for all others."""
        reason = nothing_to_judge(attribution)
        return None if reason is None else Judgement(Verdict.NOT_ATTRIBUTABLE, None, reason)

    def judge(self, attributions: Iterable[Attribution]) -> list[Judgement]:
        """Return one judgement per attribution, in order; raises `UsageError` unless they are Attributions."""
        pairs = tuple_of(Attribution, "attributions", attributions, "a list of Attributions")
        judgements = {pair: judgement for pair in pairs if (judgement := self.by_rule(pair)) is not None}
        open_pairs = list(dict.fromkeys(pair for pair in pairs if pair not in judgements))
        if open_pairs:
            decisions = self.decide(open_pairs)
            check_type(f"what judge {self.name!r} returned", decisions, "a list of Judgements", list, tuple)
            tuple_of(Judgement, f"what judge {self.name!r} returned", decisions, "a list of Judgements")
            if len(decisions) != len(open_pairs):
                raise UserError(f"judge {self.name!r} returned {len(decisions)} judgements for {len(open_pairs)} pairs")
            judgements.update(zip(open_pairs, decisions, strict=True))
        return [judgements[attribution] for attribution in pairs]

    def of_answer(self, attribution: Attribution) -> Judgement | None:
        """Return the judgement of a whole answer against all that it cites; None if it follows from its sentences."""
        return None

    def of_place(self, position: Place, attribution: Attribution) -> Judgement | None:
        """Return the judgement that people gave the pair with these ids; None if the texts decide, as for all models.

        Two passages may have the same text, or none, and two answers the same sentence, but people label each.
        """
        return None

    def support(self, claim: str, evidence: Sequence[str], question: str = "") -> Judgement:
        """Judge whether the texts together support the claim; raises `UsageError` if `evidence` is one string."""
        return self.judge([Attribution(claim, evidence, question)])[0]  # type: ignore[arg-type]  # Attribution makes it a tuple
