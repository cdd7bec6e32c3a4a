import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoais.base.errors import FormatError
from autoais.base.types import Question
from autoais.formats.questions import read_questions


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            '{"id": "q", "question": "Who?", "answers": ["A"], "gold": ["d#1"]}\n',
            Question("q", "Who?", ("A",), ("d#1",)),
        ),
        ('\ufeff{"id": "q", "question": "Who?"}\r\n\r\n', Question("q", "Who?")),
        ('{"question": "who", "answer": ["A", "B"]}\n', Question("1", "who", ("A", "B"))),
        ('{"query_id": 7, "question": "who"}\n', Question("7", "who")),
        ("30\tWho is it?\n", Question("30", "Who is it?")),
        ("who is it\t['A', 'B']\r\n", Question("1", "who is it", ("A", "B"))),
        ('"say ""it"""\t"[\'A\', ""B\'s""]"\n', Question("1", 'say "it"', ("A", "B's"))),
    ],
)
def test_formats(tmp_path: Path, content: str, expected: Question) -> None:
    path = tmp_path / "q"
    path.write_text(content, "utf-8", newline="")
    assert list(read_questions(path)) == [expected]


@pytest.mark.parametrize("begin", ["", "\ufeff", "\ufeff\n\n", "\n"])
def test_a_text_file_has_a_question_a_line(tmp_path: Path, begin: str) -> None:
    path = tmp_path / "q.TXT"
    path.write_text(f"{begin}Who built the shed?\r\n\n  When, {{and}} why?\t\n[1] or not?", "utf-8", newline="")
    first = begin.count("\n") + 1
    assert list(read_questions(path)) == [
        Question(str(first), "Who built the shed?"),
        Question(str(first + 2), "When, {and} why?"),
        Question(str(first + 3), "[1] or not?"),
    ]
    path.write_text("7\tWho built the shed?\n")
    assert list(read_questions(path)) == [Question("7", "Who built the shed?")]
    path.write_text('{"question": "Who?"}\n')
    assert list(read_questions(path)) == [Question("1", "Who?")]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\0\ufeff"), max_size=20), max_size=5))
def test_any_lines_of_a_text_file_are_questions(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_text("\n".join(["First?", *lines]), "utf-8", newline="")
    numbered = [(str(n), line.strip()) for n, line in enumerate(lines, 2) if line.encode().strip()]
    empty = next((n for n, text in numbered if not text), None)
    if empty is not None:  # only blanks that are not ASCII
        with pytest.raises(FormatError, match=f"any.txt:{empty}: the question is empty"):
            list(read_questions(path))
        return
    assert [(question.id, question.text) for question in read_questions(path)] == [("1", "First?"), *numbered]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"Who?\n\xe9t\xe9?\n", "q.txt:2: not UTF-8 at byte 0; save the file as UTF-8"),
        ("Who?\n".encode("utf-16"), "q.txt:1: not UTF-8 at byte 0; save the file as UTF-8"),
        (b"Who?\n\0\0\n", "q.txt:2: a zero byte, which no text has; save the questions as UTF-8, one a line"),
        (b"\n \n", "q.txt: holds no questions"),
        (b"1\tWho?\nAnd why?\n", "q.txt:2: neither JSON"),
    ],
)
def test_a_text_file_that_is_no_list_names_the_line_and_the_way_out(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "q.txt"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        list(read_questions(path))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"id": "a", "question": "x"}\n{"id": "a", "question": "y"}\n', "q:2: id 'a' occurs twice"),
        ('{"id": "a", "question": " "}\n', "q:1: the question is empty"),
        ('{"id": "a", "question": "x \\ud83d"}\n', "q:1: a lone surrogate"),
        ('{"id": "a"}\n', "q:1: field 'question' is missing"),
        ('{"id": "a", "question": "x", "answers": "A"}\n', "field 'answers' should be a list of strings"),
        ("1\tx\nonly one column\n", "q:2: neither JSON"),
        ("Who built the shed?\n", "a list of questions, one a line, is read from a .txt file"),
        ("x\t[1, 2]\n", "not a list of strings"),
        ("\"x\t['A']\n", "quotation marks"),
        ("a\rb\t['A']\n", "q:1: not a TSV row"),  # was a traceback of csv
        ("x\t[__import__('os')]\n", "not a list of answers"),
    ],
)
def test_broken_rows_name_file_and_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "q"
    path.write_text(content)
    with pytest.raises(FormatError) as caught:
        list(read_questions(path))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"question": "Who?", "ground_truth": "Ann"},
        {"question": "Who?", "ground_truths": ["Ann"]},
        {"user_input": "Who?", "reference": "Ann"},
    ],
)
def test_the_names_of_ragas_are_known(tmp_path: Path, fields: dict[str, object]) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(fields))
    assert list(read_questions(path)) == [Question("1", "Who?", ("Ann",))]


ALCE = [
    {"sample_id": "-4", "question": "When?", "qa_pairs": [{"short_answers": ["1931", "in 1931"]}], "docs": []},
    {"id": "3__x", "question": "Which?", "answers": [["Lorne", ""], ["Halvik", "Lorne"]], "docs": [{"text": "A."}]},
    {"question": "Why?", "answer": "Because.", "claims": ["It is so."], "docs": [{"text": "B.", "title": None}]},
]


@pytest.mark.parametrize("indent", [None, 4])
def test_a_list_of_json_objects_is_read_as_lines_are_and_alce_s_references_with_it(
    tmp_path: Path, indent: int | None
) -> None:
    path = tmp_path / "asqa.json"
    path.write_text(f"\ufeff{json.dumps(ALCE, indent=indent)}", "utf-8")
    assert list(read_questions(path)) == [
        Question("-4", "When?", ("1931", "in 1931")),
        Question("3__x", "Which?", ("Lorne", "Halvik")),
        Question("3", "Why?"),
    ]
    path.write_text(json.dumps([{"question": "Who?", "answers": ["A"]}], indent=indent), "utf-8")
    assert list(read_questions(path)) == [Question("1", "Who?", ("A",))]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[{"question": "Who?"}, 3]', r": \[1\].*"),
        ('[{"question": "Who?"}', ""),
        ('[\n{"question": "Who?", "docs": [{"text": 3}]}]', r".*docs\[0\]\.text.*string"),
        ('[{"question": "Who?", "docs": [], "qa_pairs": [{}]}]', r".*qa_pairs\[0\]\.short_answers.*missing"),
        ('[{"id": "1", "question": "Who?"}, {"id": "1", "question": "Why?"}]', r".*id '1' occurs twice"),
    ],
)
def test_a_broken_list_of_json_objects_is_one_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "q.json"
    path.write_text(content, "utf-8")
    with pytest.raises(FormatError, match=rf"q\.json:\d+{says}") as told:
        list(read_questions(path))
    assert "\n" not in str(told.value)
