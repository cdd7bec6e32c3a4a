import json
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"id": "a", "question": "x"}\n{"id": "a", "question": "y"}\n', "q:2: id 'a' occurs twice"),
        ('{"id": "a", "question": " "}\n', "q:1: the question is empty"),
        ('{"id": "a", "question": "x \\ud83d"}\n', "q:1: a lone surrogate"),
        ('{"id": "a"}\n', "q:1: field 'question' is missing"),
        ('{"id": "a", "question": "x", "answers": "A"}\n', "field 'answers' should be a list of strings"),
        ("1\tx\nonly one column\n", "q:2: neither JSON"),
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
