"""Annotation schemes as data: which questions people answer about an item, in which order, with which keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rag.base.errors import UsageError

Kind = Literal["qa", "summarization", "table"]
Unit = Literal["answer", "sentence", "citation", "passage"]
Part = Literal["question", "claim"]

KINDS: tuple[Kind, ...] = ("qa", "summarization", "table")

COMMAND_KEYS = {
    "u": "undo",
    "g": "guidelines",
    "x": "flag",
    "r": "reason",
    "w": "comment",
    "h": "earlier items",
    "z": "pause",
    "?": "keys",
}
"""Keys that every page has; no option of a question and no reason for a flag uses them."""

_WORDS = {
    "qa": {"output": "response", "source": "source document"},
    "summarization": {"output": "summary", "source": "source article"},
    "table": {"output": "caption", "source": "source table"},
}


def _with_words(text: str, kind: Kind) -> str:
    """Return a text with the words for a kind of task; other braces stay, as people write texts of their own."""
    for name, word in _WORDS[kind].items():
        text = text.replace(f"{{{name}}}", word)
    return text


@dataclass(frozen=True, slots=True)
class Option:
    """An answer that can be chosen: its key on the keyboard, the value that is stored, and the label of its button."""

    key: str
    value: str
    label: str

    def label_for(self, kind: Kind) -> str:
        """Return the label, with the words for this kind of task."""
        return _with_words(self.label, kind)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about an item.

    `source` says whether the sources are on the page when it is asked; a question that shows them is not asked about an
    item without sources, as nothing can support it. `asked_if` gives, by an earlier question, the values after which
    this one is asked. `evidence_for` are the values for which people select the evidence in the source; for those in
    `words_for`, they have to mark words of it, whatever the settings of the study say. `hides` are the parts of the
    item that are not on the page, and `help` is shown below the question.
    """

    name: str
    text: str
    options: tuple[Option, ...]
    unit: Unit
    source: Literal["hidden", "shown"] = "shown"
    asked_if: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    evidence_for: tuple[str, ...] = ()
    words_for: tuple[str, ...] = ()
    hides: tuple[Part, ...] = ()
    help: str = ""

    @property
    def is_ordinal(self) -> bool:
        """Whether the values are numbers, such as the scale from 1 to 5."""
        return self.values[0].isdecimal()

    @property
    def values(self) -> tuple[str, ...]:
        """The values that can be chosen."""
        return tuple(option.value for option in self.options)

    def text_for(self, kind: Kind) -> str:
        """Return the text, with the words for this kind of task."""
        return _with_words(self.text, kind)


@dataclass(frozen=True, slots=True)
class Flag:
    """A reason to take an item out of one's queue: key (after `x`), stored value, label, and the kinds that have it.

    A flag `about_source` is not offered while the source is hidden.
    """

    key: str
    value: str
    label: str
    kinds: tuple[Kind, ...] = KINDS
    about_source: bool = False


FLAGS = (
    Flag("m", "missing", "Something is missing"),
    Flag("t", "malformed", "The text is malformed"),
    Flag("e", "expert", "It needs expert knowledge"),
    Flag("b", "underspecified-source", "The source does not say what it is about", ("qa",), about_source=True),
)
"""Reasons for a flag (Rashkin et al. 2023): four for conversational QA, three for the other kinds.

Their keys are letters that no option of a question has.
"""


def flags_for(kind: Kind, source: Literal["hidden", "shown"] = "shown") -> tuple[Flag, ...]:
    """Return the reasons for a flag of this kind of task, while the source is shown or hidden."""
    return tuple(flag for flag in FLAGS if kind in flag.kinds and not (flag.about_source and source == "hidden"))


@dataclass(frozen=True, slots=True)
class Scheme:
    """The questions of a study, and the paper they come from. Items are answers, sentences, citations or passages.

    `guidelines` are in Markdown; None for those of a scheme of ours.
    """

    name: str
    description: str
    questions: tuple[Question, ...]
    guidelines: str | None = None

    @property
    def units(self) -> tuple[Unit, ...]:
        """What an item can be, in the order of the questions."""
        return tuple(dict.fromkeys(question.unit for question in self.questions))

    @property
    def revealing(self) -> frozenset[tuple[str, str]]:
        """Question and value of the verdicts after which a source that was hidden is shown."""
        return frozenset(
            (question.name, value)
            for question in self.questions
            for value in question.values
            if question.source == "hidden"
            and (after := self.next_question(question.unit, {question.name: value}, has_source=True)) is not None
            and after.source == "shown"
        )

    def questions_of(self, unit: Unit) -> tuple[Question, ...]:
        """Return the questions about items of this unit."""
        return tuple(question for question in self.questions if question.unit == unit)

    def question_of(self, unit: Unit, name: str) -> Question:
        """Return a question about items of this unit by name; raises `UsageError`."""
        for question in self.questions_of(unit):
            if question.name == name:
                return question
        names = ", ".join(question.name for question in self.questions_of(unit))
        raise UsageError(f"scheme {self.name!r} has no question {name[:60]!r} about one {unit}; there are: {names}")

    def next_question(self, unit: Unit, verdicts: Mapping[str, str], *, has_source: bool) -> Question | None:
        """Return the question to ask after these verdicts on an item; None if the item is finished."""
        for question in self.questions_of(unit):
            if question.name in verdicts or (question.source == "shown" and not has_source):
                continue
            if all(verdicts.get(name) in values for name, values in question.asked_if.items()):
                return question
        return None


def _yes_no(yes: str, no: str) -> tuple[Option, ...]:
    return Option("y", "yes", yes), Option("n", "no", no)


def _interpretable(unit: Unit) -> Question:
    return Question(
        "interpretable",
        "Is all of the information relayed by the system {output} interpretable to you?",
        _yes_no("Yes, I understand it.", "No, the {output} is unclear."),
        unit,
        source="hidden",
    )


def _attributable(unit: Unit, *, after_interpretable: bool = True) -> Question:
    return Question(
        "attributable",
        "Is all of the information provided by the system {output} fully supported by the {source}?",
        _yes_no("Yes, fully attributable.", "No, not fully attributable."),
        unit,
        asked_if={"interpretable": ("yes",)} if after_interpretable else {},
        evidence_for=("yes",),
    )


_LIKERT = (
    Option("5", "5", "Fully attributable"),
    Option("4", "4", "Mostly attributable"),
    Option("3", "3", "Somewhat attributable"),
    Option("2", "2", "Mostly not attributable"),
    Option("1", "1", "Not at all attributable"),
)
_SUPPORT = (
    Option("f", "full", "Full support"),
    Option("p", "partial", "Partial support"),
    Option("n", "none", "No support"),
)

SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme(
            "ais",
            "Whole answer: interpretable with the source hidden, then fully supported (Rashkin et al. 2023)",
            (_interpretable("answer"), _attributable("answer")),
        ),
        Scheme(
            "ais-direct",
            "Whole answer: fully supported, without the question before it (Rashkin et al. 2023, variant A1)",
            (_attributable("answer", after_interpretable=False),),
        ),
        Scheme(
            "ais-likert",
            "Whole answer: interpretable, then supported from 1 (not at all) to 5 (fully) (Rashkin et al. 2023, A2)",
            (
                _interpretable("answer"),
                Question(
                    "attributable",
                    "How much of the information provided by the system {output} is supported by the {source}?",
                    _LIKERT,
                    "answer",
                    asked_if={"interpretable": ("yes",)},
                    evidence_for=("2", "3", "4", "5"),
                ),
            ),
        ),
        Scheme(
            "ais-sentences",
            "Sentence: interpretable with the source hidden, then fully supported (Rashkin et al. 2023, A3)",
            (_interpretable("sentence"), _attributable("sentence")),
        ),
        Scheme(
            "hagrid",
            "Sentence: informative, then supported by every quote that it cites (Kamalloo et al. 2023)",
            (
                Question(
                    "informative",
                    "Is this sentence a useful response to the question?",
                    _yes_no("Yes, informative.", "No, not informative."),
                    "sentence",
                    source="hidden",
                ),
                Question(
                    "attributable",
                    "Is all of this sentence supported by each of the quotes that it cites?",
                    _yes_no("Yes, attributable.", "No, not attributable."),
                    "sentence",
                    evidence_for=("yes",),
                ),
            ),
        ),
        Scheme(
            "liu",
            "Sentence: worth verifying, then supported by its citations together; citation: support (Liu et al. 2023)",
            (
                Question(
                    "worthy",
                    "Does this sentence make a claim about the world that should be verified?",
                    _yes_no("Yes, worth verifying.", "No, nothing to verify."),
                    "sentence",
                    source="hidden",
                ),
                Question(
                    "supported",
                    "Do the cited sources together support all of this sentence?",
                    (*_yes_no("Yes.", "No."), Option("c", "contradict", "The citations contradict each other.")),
                    "sentence",
                    asked_if={"worthy": ("yes",)},
                    evidence_for=("yes",),
                ),
                Question(
                    "support",
                    "How far does this source support the sentence?",
                    (
                        *_SUPPORT,
                        Option("i", "inaccessible", "The source cannot be read"),
                        Option("c", "contradict", "It supports the sentence, and refutes it too"),
                        Option("s", "unclear", "The sentence is unclear"),
                    ),
                    "citation",
                    evidence_for=("full", "partial"),
                ),
            ),
        ),
        Scheme(
            "trec",
            "Citation: full, partial or no support of its sentence (TREC RAG track)",
            (
                Question(
                    "support",
                    "How far does this source support the sentence?",
                    _SUPPORT,
                    "citation",
                    evidence_for=("full", "partial"),
                ),
            ),
        ),
        Scheme(
            "words",
            "Passage: the words that answer the question, or none (gold spans for `autoais evaluate-spans`)",
            (
                Question(
                    "words",
                    "Which words of the passage answer the question?",
                    (Option("y", "words", "The marked words answer it."), Option("n", "none", "No words answer it.")),
                    "passage",
                    words_for=("words",),
                    hides=("claim",),
                ),
            ),
        ),
    )
}


def scheme_of(name: str) -> Scheme:
    """Return a scheme by name; raises `UsageError`."""
    if name not in SCHEMES:
        raise UsageError(f"no scheme called {name[:60]!r}; there are: {', '.join(SCHEMES)}")
    return SCHEMES[name]
