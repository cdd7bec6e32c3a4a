"""The reader's answers: whole units, verbatim and cited, in up to 120 words."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answer.generators.passage_reader import PassageReader
from rag.base.errors import RagError
from rag.base.types import Answer, Hit, Passage, Question
from rag.retrieval.reader import Reader, Reading, Span
from scripts.fragments import is_fragment


class Scripted(Reader):
    """A reader that keeps what contains one of the given words; the short answer is the given one, if any.

    `rest` is the probability that it keeps anything else.
    """

    def __init__(
        self, keep: Sequence[str], short: str | None = None, relevant: str = "", *, rest: float = 0.35
    ) -> None:
        self.words, self.short, self.relevant, self.rest = keep, short, relevant, rest
        self.relevance = 1.5  # of a passage with `relevant`
        self.folder = Path("nowhere")
        self.threads = 1
        self.name = "scripted"

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        return [self.reading(passage) for passage in passages]

    def reading(self, passage: Passage) -> Reading:
        text = passage.text
        offsets, keep = [], []
        at = 0
        for line in text.replace(". ", ".\n").split("\n"):
            offsets.append((at, at + len(line)))
            keep.append(0.9 if any(word in line for word in self.words) else self.rest)
            at += len(line) + 1
        start = text.find(self.short) if self.short else -1
        relevance = self.relevance if self.relevant and self.relevant in text else 0.0
        if start < 0:
            return Reading(
                relevance, 0 if text else None, 1 if text else None, -9.0, -0.01, tuple(offsets), tuple(keep)
            )
        end = start + len(self.short or "")
        return Reading(relevance, start, end, -0.1, -5.0, tuple(offsets), tuple(keep))


def answered(reader: Reader, *texts: str, question: str = "how do I build the shed") -> Answer:
    hits = [Hit(Passage(f"p{n}", "Shed", text), 2.0 - n / 10) for n, text in enumerate(texts)]
    return PassageReader(reader).generate(Question("q", question), hits)


class Counting(Scripted):
    """Notes the passages that it reads; the relevance of each stands at its end."""

    def __init__(self) -> None:
        super().__init__(["dear"])
        self.seen: list[str] = []

    def reading(self, passage: Passage) -> Reading:
        self.seen.append(passage.id)
        return replace(super().reading(passage), relevance=float(passage.text.split()[-1]))


def seen(*relevances: float, score: float = 0.0) -> list[str]:
    """The passages read if all after the first have a score (of at most 1), and these relevances."""
    reader = Counting()
    hits = [Hit(Passage(f"p{n:02}", "Shed", f"Wood {r}"), score if n else 1.0) for n, r in enumerate(relevances)]
    PassageReader(reader).generate(Question("q", "how do I build the shed"), hits)
    return sorted(reader.seen)


def test_hits_after_a_sure_one_are_not_read() -> None:
    # The best hit has 8 for its score. The next of score s has 8 s, and needs a relevance of 4.5 or more to be better.
    assert seen(*[0.0] * 12) == ["p00", "p01", "p02", "p03"]
    assert len(seen(*[0.0] * 12, score=0.5)) == 12
    assert len(seen(1.0, *[0.0] * 11, score=0.5)) == 4
    assert len(seen(*[0.0] * 6, 4.5, *[0.0] * 5, score=0.9)) == 8
    assert len(seen(*[0.0] * 20, score=0.9)) == 16


def test_a_hit_with_the_very_name_is_read_though_another_is_sure() -> None:
    def read(question: str) -> list[str]:
        reader = Counting()
        hits = [Hit(Passage(f"p{n:02}", "max_depth" if n == 11 else "", "Wood 0"), float(not n)) for n in range(12)]
        PassageReader(reader).generate(Question("q", question), hits)
        return sorted(reader.seen)

    assert len(read("how do I build the shed")) == 4
    assert len(read("What does max_depth do?")) == 12


# A sentence that fits into no window, so that a stretch ends before it.
FILL = "The yard is " + "wide and " * 65 + "green."


def between(*blocks: str) -> str:
    return "\n\n".join([FILL, *blocks, FILL])


def test_lines_of_a_text_stay_lines() -> None:
    text = "The shed is open in June.\nRing twice, please. Wood is dear.\n\nThe mill is closed in May."
    assert answered(Scripted(["June"]), text).text == text.replace("\n\n", "\n")


def test_sentences_of_an_item_stay_in_its_line_and_an_entry_of_another_passage_begins_one() -> None:
    text = "1. Ring twice. Wait.\n\n2. Go in."
    assert answered(Scripted(["twice"]), text).text == "1. Ring twice. Wait.\n2. Go in."
    found = answered(Scripted(["June", "winter"]), "The shed is open in June.", "Shed: It is closed in winter.").text
    assert found == "The shed is open in June.\nShed: It is closed in winter."


def test_a_sentence_is_quoted_and_cited() -> None:
    text = between("Wood is dear.")
    answer = answered(Scripted(["dear"]), text)
    assert answer.text == "Wood is dear."
    (citation,) = answer.citations
    assert (citation.passage, citation.quote, citation.origin) == ("p0", "Wood is dear.", "copied")
    assert answer.short_answer is None


def test_a_definition_is_quoted_first_and_begins_the_quote() -> None:
    asked = "What is a garden shed?"
    lines = ["Sheds are dear.", "A garden shed is a small house for tools.", "Some have doors."]
    other = "Garden sheds are dear."
    answer = answered(Scripted(["dear"]), between(other), between(*lines), question=asked)
    assert answer.text.startswith("A garden shed is a small house for tools.\nSome have doors.")
    assert answered(Scripted(["dear"]), between(*lines), question="Is a garden shed dear?").text.startswith(lines[0])


def test_a_name_in_a_hit_that_was_not_read_is_there() -> None:
    reader = Counting()
    hits = [Hit(Passage(f"p{n:02}", "", "In Peru 0" if n == 11 else "Wood 0"), float(not n)) for n in range(12)]
    signals = PassageReader(reader).signals(Question("q", "Is wood dear in Peru?"), hits)
    assert len(reader.seen) == 4
    assert signals["unmentioned"] == 0
    assert PassageReader(reader).signals(Question("q", "Is wood dear in Chile?"), hits)["unmentioned"] == 1


def test_signals_are_weighed_by_the_passages() -> None:
    hits = [Hit(Passage("a", "", "Oak is dear."), 1.0), Hit(Passage("b", "", "The shed is small."), 1.0)]
    hits.append(Hit(Passage("c", "", "The shed is old."), 1.0))
    signals = PassageReader(Scripted(["dear"], short="shed", relevant="Oak")).signals(
        Question("q", "how do I build the shed"), hits
    )
    oak = math.exp(1.5) / (math.exp(1.5) + 2)  # its weight; the others have no more relevance than 0
    assert signals["relevance"] == 1.5
    assert signals["agreement"] == pytest.approx(oak)  # with itself; the two others agree on "shed"
    same = PassageReader(Scripted(["dear"], short="shed")).signals(Question("q", "how do I build the shed"), hits)
    assert same["agreement"] == pytest.approx(2 / 3)


def test_a_stretch_has_neighbours_in_text_order() -> None:
    text = "The shed is small. Wood is dear. Planks split often."
    assert answered(Scripted(["dear"]), text).text == text


def test_code_keeps_its_lines_and_its_lead_in() -> None:
    text = between("To build the shed, run:", "    saw --all\n    nail")
    answer = answered(Scripted(["saw"]), text)
    assert answer.text == "To build the shed, run:\n    saw --all\n    nail"
    assert not any(is_fragment(answer, sentence) for sentence in answer.sentences)
    assert answered(Scripted(["To build"]), text).text == answer.text


def test_a_short_label_stays_above_what_it_introduces() -> None:
    text = between("Fish:", "    set saw 1", "Linux (old):", "    saw=1")
    assert answered(Scripted(["set"]), text).text.startswith("Fish:\n    set saw 1")
    other = "Build the shed of wood. " + FILL
    said = answered(Scripted(["wood", "set"], relevant="wood"), other, text).text
    assert said.startswith("Build the shed of wood.\nFish:\n    set saw 1")


def test_a_lead_in_whose_list_does_not_fit_is_left_out() -> None:
    text = between("Wood is dear.", "The steps to build the shed are:", "- " + "saw " * 130)
    assert answered(Scripted(["dear"]), text).text == "Wood is dear."


def test_a_list_item_brings_its_lead_in() -> None:
    text = between("Proceed as follows:", "- Cut the planks.", "- Sand them.", "- Paint.")
    assert answered(Scripted(["Sand"]), text).text.startswith("Proceed as follows:\n- Cut the planks.\n- Sand them.")


LONG = "- Leave the wood in the yard" + " and the rain" * 12 + "."
FORBIDDEN = ["The tenant shall not:", *[LONG] * 4, "- Paint the roof.", "- Sell the door."]


def test_a_lead_in_that_is_far_away_stands_before_the_item_as_a_span_of_its_own() -> None:
    answer = answered(Scripted(["Paint"], rest=0.01), between(*FORBIDDEN))
    assert answer.text == "The tenant shall not:\n- Paint the roof."
    assert [citation.quote for citation in answer.citations] == ["The tenant shall not:", "- Paint the roof."]
    certain = answered(Scripted(["roof"], short="roof", rest=0.01), between(*FORBIDDEN))
    assert (certain.short_answer, certain.text) == ("roof", answer.text)


def test_a_lead_in_that_turns_the_meaning_is_there_even_if_it_does_not_fit() -> None:
    for lead, begins in (("Never do this,", True), ("Always do this,", False)):
        long = f"{lead} whoever you are" + ", by day and by night" * 22 + ":"
        answer = answered(
            Scripted(["Paint"], rest=0.01), between(long, LONG, "- Paint the roof" + " and wall" * 10 + ".")
        )
        assert answer.text.startswith(lead) == begins
        assert "- Paint the roof" in answer.text


def test_items_of_another_list_than_the_answer_are_left_out() -> None:
    items = ["Bring:", LONG, "- A saw.", "The shed is built of oak. It stands in the yard."]
    answer = answered(Scripted(["oak", "A saw"], short="oak", rest=0.01), between(*items))
    assert answer.text == "The shed is built of oak."


def test_a_lead_in_that_answers_brings_the_items_that_fit() -> None:
    many = [f"- Plank {n} is cut by Ada in the yard of the mill." for n in range(40)]
    answer = answered(Scripted(["To build"], rest=0.01), between("To build the shed, cut:", *many))
    assert answer.text.startswith("To build the shed, cut:\n- Plank 0")
    assert 100 < len(answer.text.split()) <= 120


def test_a_list_of_single_words_is_quoted_to_its_end() -> None:
    text = "The shed has no:\n\n- light\n\n- running water\n\n- door"
    assert answered(Scripted(["shed"]), text).text == "The shed has no:\n- light\n- running water\n- door"


def test_a_sentence_that_leans_brings_the_one_before_it() -> None:
    first = "Wood " + "is dear and " * 20 + "good."
    second = "However, planks " + "split and " * 5 + "break."
    text = f"{FILL} {first} {second} {FILL}"
    assert answered(Scripted(["However"]), text).text == f"{first} {second}"


def test_an_answer_stops_before_what_the_reader_hardly_keeps() -> None:
    text = between("Build the shed of wood. It stands on stones. Dogs are not let in. It has a roof.")
    sure = Scripted(["wood", "stones", "roof"], rest=0.04)
    assert answered(sure, text).text == "Build the shed of wood. It stands on stones."
    assert answered(Scripted(["wood"], short="wood", rest=0.2), text).text == "Build the shed of wood."
    # Of a list it keeps more, but not what surely belongs to another matter.
    items = "- The roof is of wood.\n\n- The nails are of iron.\n\n- The saw is in the yard."
    assert answered(Scripted(["nails"], rest=0.05), items).text == items.replace("\n\n", "\n")
    assert answered(Scripted(["nails"], rest=0.01), items).text == "- The nails are of iron."


def test_a_passage_that_hardly_answers_is_not_quoted_beside_one_that_does() -> None:
    texts = ["Build the shed of wood.", "A shed is dear in the town."]
    assert answered(Scripted(["shed"]), *texts).text == " ".join(texts)
    sure = Scripted(["shed"], relevant="wood")
    sure.relevance = 4.0
    assert answered(sure, *texts).text == texts[0]


def test_a_certain_short_answer_brings_what_stands_around_it_in_50_words_and_no_other_passage() -> None:
    text = between("The shed was built in 1907. " + "It is of the best oak. " * 20)
    answer = answered(Scripted(["shed"], short="1907"), text, "Cut the planks of 1907 in the yard.")
    assert (answer.short_answer, answer.headline) == ("1907", "1907")
    assert answer.text.startswith("The shed was built in 1907. It is of the best oak.")
    assert 40 < len(answer.text.split()) <= 50
    assert {citation.passage for citation in answer.citations} == {"p0"}


def test_a_question_for_two_things_gets_more_than_the_sentence_of_one() -> None:
    text = "The shed was built in 1907. Ada drew the plans."
    answer = answered(Scripted(["shed"], short="1907"), text, question="When was the shed built, and who planned it?")
    assert "Ada drew the plans." in answer.text


@pytest.mark.parametrize("second", ["and does it stand?", "and has it a roof?"])
def test_a_second_question_may_begin_with_a_verb(second: str) -> None:
    text = "The shed was built in 1907. It stands, with a roof."
    answer = answered(Scripted(["shed"], short="1907"), text, question=f"When was the shed built, {second}")
    assert "It stands" in answer.text


SETTINGS = ["Depth: How deep a hole is. Default: 2.", "Width: How wide it is. At least 3. Default: 5.", "Dig it."]


def test_a_part_of_an_entry_brings_its_beginning_and_nothing_before_it() -> None:
    answer = answered(Scripted(["Default: 5"]), "\n\n".join(SETTINGS))
    assert answer.text.startswith("Width: How wide it is. At least 3. Default: 5.")
    certain = answered(Scripted(["Default: 5"], short="5"), between(*SETTINGS))
    assert certain.text == "Width: How wide it is. At least 3. Default: 5."


def test_the_beginning_of_an_entry_that_is_far_away_is_left_out() -> None:
    text = between("Width: How wide it is. " + "It may be wider. " * 20 + "Default: 5.")
    assert answered(Scripted(["Default"], short="5"), text).text == "It may be wider. " * 12 + "Default: 5."


def test_the_rest_of_an_entry_comes_before_neighbours_that_answer_better() -> None:
    rest, neighbour = "It may be " + "wider and " * 30 + "so on.", "Dig " + "deeper and " * 30 + "so on."
    answer = answered(Scripted(["How wide", "Dig"]), f"Width: How wide it is. {rest}\n\n{neighbour}")
    assert answer.text == f"Width: How wide it is. {rest}"


def test_a_stretch_does_not_grow_past_the_beginning_of_its_entry() -> None:
    text = "Depth: How deep.\n\nWidth: How wide it is. " + "It may be wider. " * 10 + "Default: 5."
    assert answered(Scripted(["Default: 5"]), text).text.startswith("Width: How wide it is.")


def test_a_short_answer_that_is_not_certain_brings_more() -> None:
    other = "The mill was built in 1912. Wood is dear."
    answer = answered(Scripted(["dear"], short="1907"), between("The shed was built in 1907."), other)
    assert (answer.short_answer, answer.headline) == ("1907", None)
    assert answer.text == f"The shed was built in 1907. {other}"


def test_three_passages_are_quoted_and_no_fourth() -> None:
    texts = ["Cut the planks in the yard.", "Buy oak at the mill.", "Paint it all green.", "Let it dry in the sun."]
    answer = answered(Scripted(["planks"]), *texts)
    assert answer.text == " ".join(texts[:3])
    assert [citation.passage for citation in answer.citations] == ["p0", "p1", "p2"]


def test_what_is_quoted_already_is_not_quoted_again() -> None:
    texts = ["Cut the planks in the yard.", "Cut the planks in the yard!", "Buy oak at the mill."]
    assert answered(Scripted(["planks"]), *texts).text == f"{texts[0]} {texts[2]}"


def test_an_answer_has_at_most_120_words_unless_a_unit_is_longer() -> None:
    many = [" ".join(f"Plank {n} is cut by {who} in the yard." for n in range(40)) for who in ("Ada", "Bob", "Carl")]
    assert 60 < len(answered(Scripted(["Plank"]), *many).text.split()) <= 120
    long = "plank " * 300
    assert len(answered(Scripted(["plank"]), long).text.split()) == 300


ENTRIES = between(
    "blade_list (default: empty): The blades, of at most blade_depth inches.",
    "blade_depth (default: 2): How deep it saws.",
)


def test_a_question_about_a_name_gets_the_entry_that_begins_with_it() -> None:
    other = "The blades are in the drawer. Old blade depth 7."
    answer = answered(Scripted(["blades"]), other, ENTRIES, question="What is the default of blade_depth?")
    assert answer.text.startswith("blade_depth (default: 2): How deep it saws.")
    assert answer.citations[0].passage == "p1"


def test_a_short_answer_is_said_of_the_name() -> None:
    def short(found: str, text: str = ENTRIES, question: str = "What is the default of blade_depth?") -> str | None:
        return answered(Scripted(["saws"], short=found), text, question=question).short_answer

    assert short("2") == "2"
    assert short("empty") is None  # of the entry before, which has the name after it
    assert short("blade_depth") is None
    assert short("6", between("blade_depth: How deep it saws. The best depends. If none is given, it is 6.")) == "6"
    assert short("6", between("blade_list: The blades. If none is given, blade 6.")) is None
    assert short("Ada", between("Ada maintains blade_depth."), "Who maintains blade_depth?") == "Ada"
    assert short("1907", between("Shed was built in 1907."), "When was the shed built?") == "1907"


def test_a_short_answer_is_no_half_of_a_path() -> None:
    text = between("The shed is in ~/.box/box-0.7.conf, if it is, by Oak/Elm, since 11/09/2001, in [0.0, 1.0).")
    for short, shown in (
        ("~/.box/box", "~/.box/box-0.7.conf"),
        ("in ~/.box/box", "in ~/.box/box-0.7.conf"),
        ("Oak", "Oak"),
        ("Elm", "Elm"),
        ("11", "11"),
        ("2001", "2001"),
        ("in [0.0, 1.0)", "in [0.0, 1.0)"),
    ):
        assert answered(Scripted(["shed"], short=short), text).short_answer == shown


def test_a_short_answer_has_no_bracket_or_quote_without_its_partner() -> None:
    text = between("The shed (built in 1907) stands.")
    assert answered(Scripted(["shed"], short="1907)"), text).short_answer == "1907"
    assert answered(Scripted(["shed"], short="(built in 1907"), text).short_answer == "built in 1907"
    named = 'The shed is called "the barn" by all, with a door of 7" and the name "old barn" on it.'
    assert answered(Scripted(["shed"], short='"the barn'), named).short_answer == "the barn"
    assert answered(Scripted(["shed"], short='"old barn"'), named).short_answer == '"old barn"'
    quoted = between("The shed is called 'the barn' by all, also the boys' barn.")
    for short, shown in (("barn'", "barn'"), ("the barn'", "the barn"), ("'the barn", "the barn"), ("boys'", "boys'")):
        assert answered(Scripted(["shed"], short=short), quoted).short_answer == shown
    assert answered(Scripted(["shed"], short="(built in 1907)"), text).short_answer == "(built in 1907)"
    assert answered(Scripted(["shed"], short="The shed (built"), text).short_answer == "The shed"
    for whole in ("1) saw(it)", "(a) or (b)"):
        assert answered(Scripted(["shed"], short=whole), between(f"The shed {whole} stands.")).short_answer is not None
    assert (
        answered(Scripted(["shed"], short="(a) or (b)"), between("The shed (a) or (b).")).short_answer == "(a) or (b)"
    )
    assert (
        answered(Scripted(["shed"], short="call saw()"), between("In the shed call saw().")).short_answer
        == "call saw()"
    )


def test_a_short_answer_that_is_of_another_name_is_no_vote() -> None:
    other = between("blade_list: The blades. If none is given, blade 6.")
    answer = answered(Scripted(["saws"], short="6"), other, ENTRIES, question="What is the default of blade_depth?")
    assert answer.short_answer is None
    assert "How deep it saws" in answer.text


def test_nothing_to_quote() -> None:
    for texts in ([], [""], ["", " \n "]):
        answer = answered(Scripted(["x"]), *texts)
        assert answer.abstained
        assert answer.text == ""


def test_a_minimum_confidence_needs_a_reader_with_confidence() -> None:
    with pytest.raises(RagError, match="between 0 and 1"):
        PassageReader(Scripted([]), min_confidence=2)
    with pytest.raises(RagError, match=r"no confidence\.json"):
        PassageReader(Scripted([]), min_confidence=0.5)


PIECES = st.sampled_from(
    [
        "Run it:",
        "    code",
        "    ",
        "",
        "- item one. Two.",
        "1. step",
        "a | b",
        "It is. So.",
        "However, no.",
        "東京。",
        "x",
    ]
)


@given(st.lists(st.lists(PIECES, max_size=12).map("\n".join), max_size=4), st.sampled_from([None, "step", "is"]))
def test_any_passages_give_whole_quotes(texts: list[str], short: str | None) -> None:
    answer = answered(Scripted(["i", "o"], short=short), *texts)  # an Answer checks its own quotes and places
    assert answer.abstained == (not any(text.strip() for text in texts))
    held = {hit.passage.id: hit.passage.text for hit in answer.hits}
    for sentence in answer.sentences:
        (citation,) = sentence.citations
        assert " ".join((citation.quote or "").split()) == " ".join(sentence.text.split())
        assert (citation.quote or "") in held[citation.passage]


class Mixing(Scripted):
    """Takes the short answer of a line for the more likely one, the earlier the line stands."""

    def reading(self, passage: Passage) -> Reading:
        spans: list[Span] = []
        at = 0
        for line in passage.text.split("\n"):
            if line:
                spans.append(Span(at + line.rindex(" ") + 1, at + len(line), -0.1 - len(spans)))
            at += len(line) + 1
        first = spans[0]
        found = super().reading(passage)
        return replace(found, start=first.start, end=first.end, answer=first.answer, no_short=-5.0, spans=tuple(spans))


@pytest.mark.parametrize(
    ("rows", "short"),
    [
        (["- Head of sales: Ann", "- Head of support: Bob", "- Head of staff: Cay"], "Bob"),
        (["Head of sales: Ann", "Head of support: Bob"], "Bob"),
        (["Role: sales | Name: Ann", "Role: support | Name: Bob"], "Bob"),
        (["1. Sales: Ann", "2. Support, its head: Bob"], "Bob"),
        (["Sales has Ann", "Support has Bob"], "Ann"),  # running text: what a sentence is about may stand before it
    ],
)
def test_the_short_answer_stands_in_the_row_that_has_the_words_of_the_question(rows: list[str], short: str) -> None:
    answer = answered(Mixing([]), "\n\n".join(rows), question="Who is the head of support?")
    assert answer.short_answer == short


def test_an_answer_that_ends_in_a_question_goes_on_with_what_answers_it() -> None:
    text = "Ponies live on the moor.\n\nWhat should you do if you meet one?\n\nCall Ann!\n\nThe moor is wide in May."
    answer = answered(Scripted(["What should"], rest=0.0), text, question="what do i do if i meet a pony")
    assert answer.text.split("\n") == ["What should you do if you meet one?", "Call Ann!"]
