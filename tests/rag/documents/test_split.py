import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.base.types import Passage
from rag.documents import read_document
from rag.documents.blocks import Block, Kind, code, entry, heading, item
from rag.documents.split import count_words, passages


def sentences(words: int, name: str = "word") -> str:
    """Text of about so many words, in sentences of ten."""
    return " ".join(f"{name.title()}{n} {' '.join([name] * 8)} end." for n in range(words // 10))


def cut(*blocks: Block) -> list[tuple[str, str]]:
    return [(passage.section, passage.text) for passage in passages(blocks, "d", "Title")]


def lengths(*blocks: Block) -> list[int]:
    return [len(text.split()) for _, text in cut(*blocks)]


def test_short_paragraphs_of_a_section_are_joined_and_long_sections_cut_evenly() -> None:
    paragraph = Block(sentences(40))
    assert lengths(*[Block(sentences(40, f"w{n}")) for n in range(3)]) == [120]
    assert lengths(*[Block(sentences(40, f"w{n}")) for n in range(9)]) == [120] * 3
    assert lengths(heading("One", 2), paragraph, heading("Two", 2), paragraph) == [40, 40]


def test_sections_of_a_few_words_are_joined_under_their_common_heading() -> None:
    blocks = [heading("Files", 2)]
    for name in ("Open", "Close", "Print"):
        blocks += [heading(name, 3), Block(f"{name}s the file that is shown.")]
    assert cut(*blocks) == [
        (
            "Files",
            "Open: Opens the file that is shown.\n\nClose: Closes the file that is shown.\n\n"
            "Print: Prints the file that is shown.",
        ),
    ]


def test_no_passage_runs_over_into_another_document_part() -> None:
    found = cut(Block("Short."), heading("A", 1), Block("Also short."))
    assert found == [("", "Short."), ("A", "Also short.")]


def test_code_stays_with_the_sentence_before_it() -> None:
    run = code("$ make\n\n$ make install")
    assert run is not None
    blocks = [Block(sentences(150)), Block("Now run:"), run, Block(sentences(150, "next"))]
    texts = [text for _, text in cut(*blocks)]
    (with_code,) = (text for text in texts if "$ make" in text)
    assert "Now run:\n\n    $ make\n    \n    $ make install" in with_code
    assert not any(text.endswith(":") for text in texts)


def test_long_code_is_cut_between_lines_with_its_lead_in_first() -> None:
    lines = code("\n".join(f"call number {n} with five words" for n in range(100)))
    assert lines is not None
    texts = [text for _, text in cut(Block("Here it is:"), lines)]
    assert texts[0].startswith("Here it is:\n\n    call number 0")
    assert all(line.startswith("    ") for text in texts[1:] for line in text.split("\n"))
    assert max(len(text.split()) for text in texts) <= 200


def test_a_list_stays_with_its_lead_in() -> None:
    items = [item(sentences(10, f"i{n}"), 0, "-") for n in range(6)]
    texts = [text for _, text in cut(Block(sentences(110)), Block("There are these kinds"), *items)]
    assert texts[1].startswith("There are these kinds\n\n- ")
    assert texts[1].count("\n\n- ") == 6


def test_a_list_that_is_too_long_is_cut_between_items() -> None:
    texts = [text for _, text in cut(Block("Kinds:"), *[item(sentences(30, f"i{n}"), 0, "-") for n in range(20)])]
    assert len(texts) > 3
    assert all(text.startswith(("Kinds:", "- ")) and text.endswith(".") for text in texts)


def test_a_long_paragraph_is_cut_at_sentence_ends() -> None:
    text = sentences(900)
    found = [text for _, text in cut(Block(text))]
    assert len(found) > 4
    assert all(part.endswith(".") and 60 <= len(part.split()) <= 200 for part in found)
    assert " ".join(found) == text


def test_a_sentence_without_end_is_cut_at_words() -> None:
    found = [text for _, text in cut(Block(" ".join(map(str, range(1000)))))]
    assert max(len(part.split()) for part in found) <= 200
    assert " ".join(found).split() == [*map(str, range(1000))]


def test_a_definition_that_is_cut_keeps_its_term_in_front() -> None:
    found = [text for _, text in cut(entry("-f, --force", sentences(300)))]
    assert found[0].startswith("-f, --force: Word0")
    assert len(found) > 1


def test_a_passage_that_repeats_is_kept_once() -> None:
    text = Block(sentences(80))
    assert len(cut(heading("A", 2), text, heading("A", 2), text)) == 1


def test_the_page_of_a_passage_is_where_it_begins() -> None:
    blocks = [Block(sentences(100), page=1), Block(sentences(100, "b"), Kind.TEXT, 0, 2)]
    assert [passage.page for passage in passages(blocks, "d", "T")] == [1, 2]


def test_a_line_of_many_words_without_an_end_is_cut_between_words() -> None:
    words = [f"word{number}" for number in range(20_000)]
    assert [word for _, text in cut(Block(" ".join(words))) for word in text.split()] == words


def test_an_item_that_is_the_title_of_a_paragraph_stays_with_it() -> None:
    parts = [(item(f"Part {number}", 0, "-"), Block(sentences(70, f"w{number}"))) for number in range(4)]
    found = cut(*(block for part in parts for block in part))
    assert [text.split("\n\n")[::2] for _, text in found] == [["- Part 0", "- Part 1"], ["- Part 2", "- Part 3"]]


def test_an_answer_stays_with_its_question() -> None:
    for question, answer, kind in (("Q. ", "A. ", Kind.TEXT), ("- Q: ", "- A: ", Kind.ITEM)):
        blocks = []
        for number in range(6):
            blocks += [
                Block(f"{question}Question {number} {sentences(20)}", kind),
                Block(f"{answer}Answer {number} {sentences(60)}", kind),
            ]
        for _, text in cut(*blocks):
            assert text.count("Question") == text.count("Answer") > 0
            assert text.startswith(question)


ENDLESS = {
    "a word": "a1" * 9_000,
    "words": "mill " * 4_000,
    "long words": f"{'x' * 90} " * 400,
    "Chinese": "图书馆每天早上九点开门，晚上六点关门。" * 300,
    "Chinese without sentences": "图书馆每天早上九点开门" * 500,
    "Thai": "ห้องสมุดเปิดเก้าโมงเช้า" * 300,
    "Hindi": "क्षि" * 3_000,
    "letters with marks": "e\u0301\u0323" * 4_000,
    "families": "Mill: \U0001f468\u200d\U0001f469\u200d\U0001f467" * 1_500,
    "blanks": f"a{' ' * 9_000}b",
    "lines": "x = 1\n" * 3_000,
}
FORMATS = {
    "a.csv": "Name,Story\nMill,{}\nWell,deep\n",
    "a.html": "<title>Mill</title><h1>Mill</h1><p>{}</p><table><tr><td>{}<td>x</table><ul><li>{}</ul><pre>{}</pre>",
    "long title.html": "<title>{}</title><h1>{}</h1><h2>{}</h2><p>The mill is old.",
    "a.md": "# {}\n\n{}\n\n- {}\n\n```\n{}\n```\n\n{}: one\n",
    "a.txt": "The mill\n\n{}\n\n  {}\n",
    "a.rst": "Mill\n====\n\n{}\n\n{}::\n\n   {}\n",
    "a.eml": "Subject: {}\nContent-Type: text/plain; charset=utf-8\n\n{}\n",
    "a.ics": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20250101T100000Z\nSUMMARY:{}\nEND:VEVENT\nEND:VCALENDAR\n",
    "a.ipynb": '{"cells": [{"cell_type": "markdown", "source": [{}]}], "metadata": {}, "nbformat": 4}',
}


def fits(passage: Passage) -> bool:
    lengths = len(passage.text.split()), count_words(passage.text), len(passage.text) / 10
    return max(lengths) <= 200 and len(passage.title) <= 300


@pytest.mark.parametrize("name", FORMATS)
def test_no_passage_is_longer_than_the_limits_whatever_a_file_holds(name: str, tmp_path: Path) -> None:
    for kind, text in ENDLESS.items():
        content = FORMATS[name].replace("{}", json.dumps(text) if name.endswith(".ipynb") else text)
        (tmp_path / name).write_text(content)
        passages_of_file = read_document(tmp_path / name, name)
        assert passages_of_file, kind
        assert all(map(fits, passages_of_file)), kind


LETTERS = st.sampled_from(
    [*"ab.,;- \n", *"图书。，", *"かタ", *"ห้้า", *"क्षि", "e\u0301", "\U0001f468\u200d\U0001f469", "\u1112\u1161"]
)
TEXTS = st.builds(
    lambda parts: "".join(part * count for part, count in parts).strip(),
    st.lists(
        st.tuples(st.lists(LETTERS, min_size=1, max_size=8).map("".join), st.integers(1, 2_000)), min_size=1, max_size=4
    ),
)


@given(st.lists(st.builds(Block, TEXTS, st.sampled_from(Kind), st.integers(1, 6)), max_size=8))
def test_passages_of_any_blocks_fit_and_hold_their_texts(blocks: list[Block]) -> None:
    blocks = [block for block in blocks if any(map(str.isalnum, block.text))]
    result = [*passages(blocks, "d", "Title")]
    assert all(map(fits, result))
    texts = [block.text for block in blocks if block.kind is not Kind.HEADING]
    letters = {letter for text in texts for letter in text if letter.isalnum()}
    assert letters <= {letter for passage in result for letter in passage.text}


@pytest.mark.parametrize("kind", ["Thai", "Hindi", "letters with marks", "families"])
def test_a_cut_parts_no_character_from_its_marks(kind: str) -> None:
    parts = [text for _, text in cut(Block(f"{ENDLESS[kind]}end."))]
    assert len(parts) > 2
    assert not any(unicodedata.category(part[0]).startswith("M") or part[0] == "\u200d" for part in parts)
    assert not any(part.endswith("\u200d") for part in parts)


def test_text_without_blanks_is_cut_at_its_sentence_ends() -> None:
    found = [text for _, text in cut(Block(ENDLESS["Chinese"] + "好"))]
    assert all(part.endswith("。") for part in found[:-1])
    assert all(100 <= len(part) <= 400 for part in found[:-1])
    clauses = [text for _, text in cut(Block("图书馆每天早上九点开门，晚上六点关门；" * 300))]
    assert all(part[-1] in "，；" for part in clauses)


def test_sections_without_blanks_are_not_taken_for_a_few_words() -> None:
    blocks = [b for n in range(3) for b in (heading(f"第{n}章", 2), Block(f"第{n}个图书馆每天早上九点开门。" * 8))]
    assert [section for section, _ in cut(*blocks)] == ["第0章", "第1章", "第2章"]


def test_each_part_of_a_long_row_says_what_the_row_is_about_though_other_cells_have_its_letters() -> None:
    cells = ["B2", *(f"Note B2{n}: {sentences(20, f'w{n}')}" for n in range(10, 22))]
    texts = [text for _, text in cut(Block(" | ".join(cells), Kind.ROW))]
    assert len(texts) > 1
    assert all(text.startswith("B2 | ") for text in texts)
    assert "B2 | B2" not in " ".join(texts)
