"""Schemes that people write in TOML: read strictly, shown as text, fixed once a study has begun."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("itsdangerous")
pytest.importorskip("jinja2")
pytest.importorskip("python_multipart")
pytest.importorskip("sqlalchemy")

from rag.annotate import create_study, open_study
from rag.annotate.crowd_file import read_crowd
from rag.annotate.guidelines import guidelines
from rag.annotate.scheme_file import open_scheme, read_scheme
from rag.annotate.settings import Settings
from rag.base.errors import UserError
from tests.conftest import Command, one_line_error
from tests.rag.annotate.web_study import ANSWER, BRIDGE, SENTENCE, Clock, Person, several, text_of

OURS = """
name = "freshness"
description = "Sentence: is it up to date?"
unit = "sentence"
guidelines = "# Ours\\n\\n<script>alert(1)</script> Look at the date."

[[questions]]
name = "dated"
text = "Does the {output} name a date? {0.__class__} <b>"
help = "A year is a date. <i>"
shows = ["claim"]
choices = [
  {key = "y", value = "yes", label = "Yes <u>"},
  {key = "n", value = "no", label = "No"},
]

[[questions]]
name = "fresh"
text = "How fresh is it?"
choices = [
  {key = "1", value = "1", label = "Old"},
  {key = "2", value = "2", label = "New"},
]
evidence_for = ["2"]
[questions.asked_if]
dated = ["yes"]
"""


def write(folder: Path, text: str = OURS) -> Path:
    path = folder / "freshness.toml"
    path.write_text(text, "utf-8")
    return path


def test_questions_choices_and_what_is_shown_come_from_the_file(tmp_path: Path) -> None:
    study = create_study(
        tmp_path / "study", items=[SENTENCE], settings=Settings(scheme=str(write(tmp_path))), clock=Clock()
    )
    assert study.settings.scheme == "scheme.toml"
    ada = Person(study)
    page = ada.page()
    assert text_of(page, "#question") == "Does the response name a date? {0.__class__} <b>"
    assert text_of(page, ".hintline") == "A year is a date. <i>"
    assert [button.text().split(" ", 1)[1] for button in page.css(".verdicts button")] == ["Yes <u>", "No"]
    html = ada.client.get("/").text
    assert BRIDGE[:20] not in html  # neither the passage nor the question is shown
    assert ANSWER.query not in html
    assert SENTENCE.text in html
    ada.press("yes")
    html = ada.client.get("/").text
    assert BRIDGE[:20] in html
    assert ANSWER.query in html
    ada.press("2", evidence="0:3:p1")
    assert ada.page().css_first("#press") is None
    shown = ada.client.get("/guidelines").text
    assert "<h1>Ours</h1>" in shown
    assert "<script>alert" not in shown
    progress = study.progress()
    assert (progress.ratings, sorted(progress.alpha)) == (2, ["dated", "fresh"])
    manifest = study.export(tmp_path / "out")
    assert (tmp_path / "out/scheme.toml").read_text("utf-8") == OURS
    assert "scheme.toml" in manifest["files"]
    rows = [json.loads(line) for line in (tmp_path / "out/ratings.jsonl").read_text("utf-8").splitlines()]
    assert [(row["question"], row["value"]) for row in rows] == [("dated", "yes"), ("fresh", "2")]
    study.close()


def test_a_no_ends_the_item_and_a_changed_file_is_refused(tmp_path: Path) -> None:
    study = create_study(
        tmp_path / "study", items=[SENTENCE], settings=Settings(scheme=str(write(tmp_path))), clock=Clock()
    )
    ada = Person(study)
    ada.press("no")
    assert ada.page().css_first("#press") is None
    study.close()
    open_study(tmp_path / "study").close()
    (tmp_path / "study/scheme.toml").write_text(OURS.replace("How fresh", "How new"))
    with pytest.raises(
        UserError, match=r"study/scheme\.toml: the scheme of a study is fixed, and the file has changed"
    ):
        open_study(tmp_path / "study")
    (tmp_path / "study/scheme.toml").unlink()
    with pytest.raises(UserError, match=r"study/scheme\.toml"):
        open_study(tmp_path / "study")


def test_without_guidelines_the_questions_are_the_guidelines(tmp_path: Path) -> None:
    text = OURS.replace('guidelines = "# Ours\\n\\n<script>alert(1)</script> Look at the date."\n', "")
    shown = guidelines(read_scheme(write(tmp_path, text)))
    assert "## How fresh is it\\?" in shown
    assert "- `y`: Yes \\<u\\>" in shown


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "freshness"', 'name = "Fresh ness"', ": name should be a name such as 'up-to-date'"),
        ('name = "freshness"\n', "", ": name is missing; add it"),
        ('unit = "sentence"', 'unit = "page"', ": unit should be one of answer, sentence, citation, passage, found"),
        ('unit = "sentence"', "unit = 3", ": unit should be a string, found an integer"),
        ('unit = "sentence"', 'colour = "red"', ": unknown key 'colour'; there are: name, description, unit"),
        ('name = "dated"', 'name = "flag"', ": questions[0]: name 'flag' is taken"),
        ('name = "fresh"', 'name = "dated"', ": questions[1]: name 'dated' is taken"),
        ('name = "fresh"', 'name = "support"', "'support' has the values full, partial, none"),
        ('text = "How fresh is it?"', 'text = " "', ": questions[1]: text is empty; write it"),
        ('text = "How fresh is it?"', 'text = "a\\u0000"', ": questions[1]: text holds a NUL character"),
        ('text = "How fresh is it?"', f'text = "{"x" * 501}"', ": questions[1]: text has 501 characters"),
        ('shows = ["claim"]', 'shows = ["page"]', ": questions[0]: shows should hold some of question, claim, passage"),
        ('shows = ["claim"]', "shows = [[1]]", "found [1]"),
        ('shows = ["claim"]', "shows = []", ": questions[0]: shows is an empty list"),
        ('shows = ["claim"]', 'shows = ["claim"]\nwords_for = ["yes"]', "needs the passage on the page"),
        ('{key = "n", value = "no", label = "No"}', '{key = "y", value = "no", label = "No"}', "the key 'y'"),
        (
            '{key = "n", value = "no", label = "No"}',
            '{key = "u", value = "no", label = "No"}',
            "but not u, g, x, r, w, h, z, ?",
        ),
        ('{key = "n", value = "no", label = "No"}', '{key = "n", value = "yes", label = "No"}', "the value 'yes'"),
        ('{key = "n", value = "no", label = "No"}', '{key = "n", value = "7", label = "No"}', "all digits (a scale)"),
        ('{key = "n", value = "no", label = "No"}', '{key = "n", value = "<b>", label = "No"}', "letters, digits"),
        ('{key = "n", value = "no", label = "No"}', '{key = "n", value = "no"}', "choices[1]: label is missing"),
        ('  {key = "n", value = "no", label = "No"},\n', "", ": questions[0]: choices should have 2 to 12 entries"),
        ('dated = ["yes"]', 'dated = ["maybe"]', "asked_if: dated should hold some of yes, no, found 'maybe'"),
        ('dated = ["yes"]', 'other = ["yes"]', "asked_if: unknown key 'other'; there are: dated"),
        ('evidence_for = ["2"]', 'evidence_for = "2"', ": questions[1]: evidence_for should be a list, found a string"),
        ('name = "freshness"', "name = ", ": cannot be read as a scheme: "),
    ],
)
def test_a_fault_is_said_in_one_line_with_file_key_and_what_was_there(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in OURS
    path = write(tmp_path, OURS.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        open_scheme(path.name, tmp_path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"\xff", b"a = " + b"[" * 5_000, b"#" * (1 << 21)])
def test_a_file_that_is_no_toml_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(UserError, match=r"x\.toml: ") as caught:
        open_scheme("x.toml", tmp_path)
    assert "\n" not in str(caught.value)


def test_the_command_takes_a_file(rag: Command, tmp_path: Path) -> None:
    from autoais.base.io.jsonl import write_atomic
    from rag.annotate.items import write_items

    write_atomic(tmp_path / "items.jsonl", write_items(several(SENTENCE, 2)))
    arguments: list[Any] = ["annotate", "init", tmp_path / "study", "--items", tmp_path / "items.jsonl", "--scheme"]
    one_line_error(
        rag(*arguments, tmp_path / "none.toml"), "none.toml: cannot be read as a scheme: No such file or directory"
    )
    assert rag(*arguments, write(tmp_path)).returncode == 0
    assert 'scheme = "scheme.toml"' in (tmp_path / "study/study.toml").read_text("utf-8")
    rag_checks = rag(*arguments[:2], tmp_path / "s2", *arguments[3:], write(tmp_path), "--attention-checks", "1")
    one_line_error(rag_checks, "attention checks need a last question whose first value is one of yes, full, 5, words")


def test_the_examples_of_the_handbook_are_read(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs/handbook/reference/annotating.md"
    scheme, crowd = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert [question.name for question in read_scheme(write(tmp_path, scheme)).questions] == ["dated", "fresh"]
    (tmp_path / "crowd.toml").write_text(crowd, "utf-8")
    assert (read_crowd(tmp_path / "crowd.toml").items, read_crowd(tmp_path / "crowd.toml").service) == (20, "prolific")
