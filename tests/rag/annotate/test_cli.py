"""`rag annotate`, as people type it."""

import json
import re
from pathlib import Path

import pytest

from autoais.base.answers import write_answers
from autoais.base.io.jsonl import write_atomic
from rag.annotate.create import open_study
from rag.annotate.items import write_items
from tests.conftest import Command, one_line_error
from tests.rag.annotate.made import finish, make_items
from tests.rag.annotate.test_export import cited


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    write_atomic(tmp_path / "answers.jsonl", write_answers(cited(n) for n in range(4)))
    return tmp_path / "answers.jsonl"


def test_a_study_from_answers_to_export(rag: Command, answers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    made = rag("annotate", "init", folder, "--answers", answers, "--annotators", "1", "--scheme", "ais-sentences")
    assert (made.returncode, made.stdout.splitlines()[0]) == (0, "8 items: to judge")
    invited = rag("annotate", "invite", folder, "ada", "bob", "--base-url", "https://study.example.org/")
    links = dict(line.split("\t") for line in invited.stdout.splitlines())
    assert list(links) == ["ada", "bob"]
    token = re.fullmatch(r"https://study\.example\.org/in/(\S+)", links["ada"])
    assert token is not None
    study = open_study(folder)
    assert study.sign_in(token[1]).id == "ada"
    finish(study, "ada")
    study.close()
    assert rag("annotate", "revoke", folder, "bob").stdout == "bob: the link is revoked\n"
    shown = rag("annotate", "progress", folder).stdout
    assert shown.splitlines()[0] == "1 of 8 items finished, 2 verdicts, 0 ties of finished items"
    assert shown.splitlines()[1] == "7 items with 0 ratings, 1 item with 1 rating"
    assert "revoked" in shown
    assert not re.search("[\u2500-\u257f]", shown)  # no boxes
    told = json.loads(rag("annotate", "progress", folder, "--json").stdout)
    assert (told["total"], told["finished"], told["people"][0]["done"]) == (8, 1, 1)
    exported = rag("annotate", "export", folder, tmp_path / "none", "--without", "ada")
    assert (exported.returncode, (tmp_path / "none" / "ratings.jsonl").read_bytes()) == (0, b"")
    one_line_error(rag("annotate", "export", folder, tmp_path / "no", "--without", "x"), "no person called 'x'")
    exported = rag("annotate", "export", folder, tmp_path / "out")
    assert exported.returncode == 0
    assert len((tmp_path / "out" / "ratings.jsonl").read_text("utf-8").splitlines()) == 2


def test_items_with_attention_checks(rag: Command, tmp_path: Path) -> None:
    write_atomic(tmp_path / "items.jsonl", write_items(make_items(6)))
    folder = tmp_path / "study"
    made = rag("annotate", "init", folder, "--items", tmp_path / "items.jsonl", "--attention-checks", "2")
    assert made.stdout.splitlines()[:3] == [
        "2 items: not judged, as attention checks use their texts",
        "2 items: gold",
        "4 items: to judge",
    ]


def test_schemes_are_listed(rag: Command) -> None:
    names = [line.split()[0] for line in rag("annotate", "schemes").stdout.splitlines()]
    assert names == ["ais", "ais-direct", "ais-likert", "ais-sentences", "hagrid", "liu", "trec", "words"]


def test_an_even_number_of_people_is_taken_with_a_note(rag: Command, answers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    made = rag("annotate", "init", folder, "--answers", answers, "--annotators", "2")
    assert made.returncode == 0
    assert "note: 2 people can tie; an admin decides ties" in made.stderr
    assert rag("annotate", "progress", folder).returncode == 0


def test_what_cannot_be_done_is_said_in_one_line(rag: Command, answers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    one_line_error(rag("annotate", "init", folder), "either items or answers")
    one_line_error(rag("annotate", "init", folder, "--answers", answers, "--scheme", "x"), "no scheme called 'x'")
    one_line_error(rag("annotate", "init", folder, "--answers", answers, "--kind", "x"), "--kind should be one of")
    one_line_error(rag("annotate", "init", folder, "--answers", answers, "--attention-checks", "9"), "need more items")
    one_line_error(rag("annotate", "init", folder, "--answers", tmp_path / "none.jsonl"), "none.jsonl")
    one_line_error(rag("annotate", "progress", folder), "no study here")
    assert not folder.exists()
    assert rag("annotate", "init", folder, "--answers", answers).returncode == 0
    one_line_error(rag("annotate", "init", folder, "--answers", answers), "not an empty folder")
    one_line_error(rag("annotate", "revoke", folder, "eve"), "no person called 'eve'")
    one_line_error(rag("annotate", "invite", folder, "a\nb"), "printable characters")
    one_line_error(rag("annotate", "invite", folder, "ada", "--days", "0"), "days should be more than 0")
    token = rag("annotate", "invite", folder, "ada").stdout.split("/in/")[1].strip()
    for address in ("foo", "javascript:alert(1)", "ftp://study.example.org", "http://", "https://a.example.org/b"):
        one_line_error(rag("annotate", "invite", folder, "ada", "--base-url", address), "should be like https://study")
    study = open_study(folder)
    assert study.sign_in(token).id == "ada"  # the earlier link holds
    study.close()
    one_line_error(rag("annotate", "export", folder, answers), "cannot be written")
    one_line_error(rag("annotate", "serve", folder, "--host", "0.0.0.0"), "needs --base-url")
    settings = folder / "study.toml"
    settings.write_text(settings.read_text().replace('guidelines = ""', 'guidelines = "ours.md"'))
    one_line_error(rag("annotate", "serve", folder, "--port", "0"), "ours.md: the guidelines cannot be read")


def test_items_are_added_and_given_to_named_people(rag: Command, answers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    assert rag("annotate", "init", folder, "--answers", answers).returncode == 0
    more = tmp_path / "more.jsonl"
    more.write_text(answers.read_text("utf-8").replace('"id": "', '"id": "more-'), "utf-8")
    added = rag("annotate", "add", folder, "--answers", more)
    assert added.stdout == "4 items added to judge\n"
    one_line_error(rag("annotate", "add", folder, "--answers", more), "is in the study already")
    one_line_error(rag("annotate", "add", folder, "--items", more), "made of answers")
    rag("annotate", "invite", folder, "ada")
    rag("annotate", "export", folder, tmp_path / "out")
    ids = [json.loads(line)["id"] for line in (tmp_path / "out/items.jsonl").read_text("utf-8").splitlines()]
    batches = tmp_path / "batches.jsonl"
    batches.write_text(json.dumps({"name": "first", "items": ids[:2], "people": ["ada"]}) + "\n", "utf-8")
    assert rag("annotate", "assign", folder, batches).stdout == "first: 2 items for ada\n"
    assert "batch first, ada: 0 of 2 items done" in rag("annotate", "progress", folder).stdout
    for row, words in (
        ({"name": "b", "items": ["x"], "people": ["ada"]}, "no item called 'x'"),
        ({"name": "b", "items": ids, "people": ["eve"]}, "no person called 'eve'"),
        ({"name": "b", "items": [1], "people": ["ada"]}, "lists of strings"),
        ({"name": "b", "items": ids}, "'people' is missing"),
    ):
        batches.write_text(json.dumps(row) + "\n", "utf-8")
        one_line_error(rag("annotate", "assign", folder, batches), words)
