"""Units: the pieces of a passage that an answer quotes whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answer.generators.units import CODE, ITEM, ROW, SENTENCE, split_units

TEXT = """To build the garden shed, run:

    saw --all
    
    nail

- Cut the planks. Mind the knots.

- Sand them.

However, wet wood splits. See the shelf.

Tool: saw | Use: planks

plank: a long flat piece of wood."""  # noqa: W293  (an empty line of code has its indentation)


def test_the_blocks_of_a_document_are_told_apart() -> None:
    found = [(unit.kind, TEXT[unit.start : unit.end]) for unit in split_units(TEXT)]
    assert found == [
        (SENTENCE, "To build the garden shed, run:"),
        (CODE, "    saw --all\n    \n    nail"),
        (ITEM, "- Cut the planks."),
        (ITEM, "Mind the knots."),
        (ITEM, "- Sand them."),
        (SENTENCE, "However, wet wood splits."),
        (SENTENCE, "See the shelf."),
        (ROW, "Tool: saw | Use: planks"),
        (SENTENCE, "plank: a long flat piece of wood."),
    ]


def test_what_leads_and_what_leans() -> None:
    found = {TEXT[unit.start : unit.end]: unit for unit in split_units(TEXT)}
    assert [text for text, unit in found.items() if unit.leads] == ["To build the garden shed, run:"]
    assert [text for text, unit in found.items() if unit.leans] == ["However, wet wood splits."]


def test_the_units_of_an_entry_know_its_beginning() -> None:
    text = "Prose comes first. So.\n\nwidth: How wide it is. At least 3.\n\n- depth: an item. Two."
    assert [unit.entry for unit in split_units(text)] == [None, None, 0, 1, None, None]


def test_yes_and_no_stay_with_what_follows() -> None:
    text = "No. It runs on Linux alone. Yes! It may. No one knows. No."
    pieces = [text[unit.start : unit.end] for unit in split_units(text)]
    assert pieces == ["No. It runs on Linux alone.", "Yes! It may.", "No one knows.", "No."]


def test_a_passage_without_structure_is_its_sentences() -> None:
    text = "Arlen lies on the Finch. It has a mill."
    assert [(text[u.start : u.end], u.leans) for u in split_units(text)] == [
        ("Arlen lies on the Finch.", False),
        ("It has a mill.", True),
    ]


@pytest.mark.parametrize(
    "sentence",
    ["Run ./configure now.", "Save foo.C and .First there.", "!W writes, ?V shows.", "1. Install it.", "(2) Start it."],
)
def test_names_and_numbers_are_not_cut_from_their_sentence(sentence: str) -> None:
    text = f"This is one. {sentence} This is another."
    assert [text[u.start : u.end] for u in split_units(text)] == ["This is one.", sentence, "This is another."]


LINES = st.lists(
    st.sampled_from(
        ["Run it:", "    code", "    ", "", "- item one. Two.", "1. step", "a | b", "It is. So.", "\x00", "東京。", " "]
    )
    | st.text(max_size=30),
    max_size=20,
)


@given(LINES.map("\n".join))
def test_units_are_in_order_and_hold_all_text(text: str) -> None:
    found = split_units(text)
    end = 0
    for unit in found:
        assert end <= unit.start < unit.end <= len(text)
        assert not text[end : unit.start].strip()
        assert text[unit.start : unit.end].strip()
        end = unit.end
    assert not text[end:].strip()
