"""People of crowd services: consent before the first item, questions about them, and the way back at the end."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("itsdangerous")
pytest.importorskip("jinja2")
pytest.importorskip("python_multipart")
pytest.importorskip("sqlalchemy")

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient

from rag.annotate import create_study
from rag.annotate.app import create_app
from rag.annotate.crowd import Crowd, write_participants
from rag.annotate.crowd_file import read_crowd
from rag.annotate.settings import Settings
from rag.annotate.study import Study
from rag.base.errors import UserError
from tests.conftest import Command, one_line_error
from tests.rag.annotate.web_study import ANSWER, Clock, Person, fields, several, text_of

OURS = """
consent = "# Taking part\\n\\nYou can stop at any time. <b>x</b>"
consent_version = "v1"
service = "prolific"
items = 2
completion_url = "https://app.prolific.com/submissions/complete?cc=C1A2"
screen_out_url = "https://app.prolific.com/submissions/complete?cc=OUT"

[[questions]]
name = "age"
text = "How old are you? <i>"
choices = ["18 to 29", "30 or more"]
required = true

[[questions]]
name = "language"
text = "Your first language"
"""
COMPLETION = 'completion_url = "https://app.prolific.com/submissions/complete?cc=C1A2"\n'
ADA = {"PROLIFIC_PID": "5f0aada", "STUDY_ID": "s1", "SESSION_ID": "t1"}


def make(folder: Path, text: str = OURS, n: int = 4, **settings: Any) -> Study:  # noqa: ANN401
    (folder / "crowd.toml").write_text(text, "utf-8")
    values = Settings(scheme="ais-direct", annotators=5, **settings)
    items = several(ANSWER, n)
    return create_study(folder / "study", items=items, settings=values, crowd=folder / "crowd.toml", clock=Clock())


class Worker:
    """Somebody who follows the link of a crowd service, without JavaScript."""

    def __init__(self, study: Study, parameters: dict[str, str] | None = None) -> None:
        assert isinstance(study.clock, Clock)
        self._clock = study.clock
        self.client = TestClient(
            create_app(study), base_url="http://localhost:8000", raise_server_exceptions=False, follow_redirects=False
        )
        self.joined = self.client.get(f"/join/{Crowd(study).key}", params=ADA if parameters is None else parameters)

    def page(self) -> HTMLParser:
        return HTMLParser(self.client.get("/").text)

    def send(self, action: str, **values: str) -> int:
        form = fields(self.page(), f"form[action='{action}']")
        self._clock.ahead += 5  # nobody answers at once
        return int(self.client.post(action, data=form | values).status_code)

    def begin(self) -> None:
        """Accept, answer, and come to the first item."""
        assert self.send("/consent", agree="yes", choice="accept") == 303
        assert self.send("/about-you", **{"about-age": "30 or more"}) == 303


def test_consent_and_questions_come_before_the_first_item(tmp_path: Path) -> None:
    study = make(tmp_path)
    ada = Worker(study)
    page = ada.page()
    assert text_of(page, "#consent-text h1") == "Taking part"
    assert "<b>x</b>" in text_of(page, "#consent-text p")
    assert page.css_first("#press") is None
    assert study.progress().people[0].done == 0
    assert ada.send("/consent", choice="accept") == 409  # without the tick
    assert (
        "tick the box"
        in ada.client.post(
            "/consent", data=fields(ada.page(), "form[action='/consent']") | {"choice": "accept"}
        ).text.lower()
    )
    assert ada.send("/consent", agree="yes", choice="accept", sha256="0" * 64) == 409  # another text
    assert ada.send("/consent", agree="yes", choice="accept") == 303
    page = ada.page()
    assert text_of(page, "label[for=about-age]").startswith("How old are you? <i>")
    assert ada.send("/about-you", **{"about-language": "Polish"}) == 409  # the age is required
    assert ada.send("/about-you", **{"about-age": "17"}) == 409  # no choice
    assert ada.send("/about-you", **{"about-age": "30 or more", "about-language": " Polish "}) == 303
    assert ada.page().css_first("#press") is not None
    study.close()


def test_whoever_declines_sees_no_item(tmp_path: Path) -> None:
    study = make(tmp_path)
    ada = Worker(study)
    form = fields(ada.page(), "form[action='/consent']")
    assert "do not take part" in ada.client.post("/consent", data=form | {"choice": "decline", "agree": "yes"}).text
    assert ada.page().css_first("#press") is None
    study.close()


def test_a_new_text_is_asked_again(tmp_path: Path) -> None:
    study = make(tmp_path)
    Worker(study).begin()
    (tmp_path / "study/crowd.toml").write_text(OURS.replace("at any time", "whenever you like").replace("v1", "v2"))
    again = Worker(study)
    assert "whenever you like" in text_of(again.page(), "#consent-text p")
    assert again.send("/consent", agree="yes", choice="accept") == 303
    assert again.page().css_first("#press") is not None
    (row,) = Crowd(study).rows()
    assert [(one["version"], "whenever" in one["text"]) for one in row["consent"]] == [("v1", False), ("v2", True)]
    study.close()


def test_after_the_items_comes_the_way_back_to_prolific(tmp_path: Path) -> None:
    study = make(tmp_path)
    ada = Worker(study)
    ada.begin()
    assert text_of(ada.page(), ".where") == "0 done, 2 left"
    assert ada.send("/press", value="yes") == 303
    assert ada.send("/press", value="yes") == 303
    page = ada.page()
    link = page.css_first("#complete")
    assert link is not None
    assert link.attributes["href"] == "https://app.prolific.com/submissions/complete?cc=C1A2"
    assert ada.send("/undo") == 303  # the last press can be taken back here too
    assert ada.page().css_first("#press") is not None
    assert ada.send("/press", value="no") == 303
    bob = Worker(study, ADA | {"PROLIFIC_PID": "bob"})
    bob.begin()
    assert bob.send("/press", value="yes") == 303
    study.close()


def test_who_is_who_is_in_a_file_of_its_own_and_not_in_the_export(tmp_path: Path, database: str) -> None:
    study = make(tmp_path, database=database)
    ada = Worker(study)
    ada.begin()
    ada.send("/press", value="yes")
    study.export(tmp_path / "out")
    exported = "".join(path.read_text("utf-8") for path in (tmp_path / "out").iterdir())
    assert "5f0aada" not in exported
    assert "30 or more" not in exported
    assert write_participants(study, tmp_path / "who.jsonl") == 1
    assert (tmp_path / "who.jsonl").stat().st_mode & 0o777 == 0o600
    row = json.loads((tmp_path / "who.jsonl").read_text("utf-8"))
    assert (row["service"], row["participant"], row["answers"]) == (
        "prolific", "5f0aada", {"age": "30 or more", "language": ""},
    )  # fmt: skip
    assert [(one["task"], one["session"]) for one in row["sessions"]] == [("s1", "t1")]
    assert re.fullmatch(r"2\d{3}-\d\d-\d\dT.*Z", row["consent"][0]["at"])
    ratings = [json.loads(line) for line in (tmp_path / "out/ratings.jsonl").read_text("utf-8").splitlines()]
    assert {rating["annotator"] for rating in ratings} == {row["annotator"]}
    study.close()


def test_the_same_participant_comes_back_as_the_same_person(tmp_path: Path) -> None:
    study = make(tmp_path)
    Worker(study).begin()
    again = Worker(study, ADA | {"SESSION_ID": "t2"})
    assert again.page().css_first("#press") is not None
    (row,) = Crowd(study).rows()
    assert [one["session"] for one in row["sessions"]] == ["t1", "t2"]
    study.revoke(row["annotator"])
    assert Worker(study).joined.status_code == 401  # a revoked person does not come back
    study.close()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "PROLIFIC_PID is missing"),
        (ADA | {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}, "PROLIFIC_PID is no id"),
        (ADA | {"SESSION_ID": "a b"}, "SESSION_ID is no id"),
        (ADA | {"STUDY_ID": "x" * 101}, "STUDY_ID is no id"),
        (ADA | {"STUDY_ID": "a\0"}, "STUDY_ID is no id"),
    ],
)
def test_a_link_without_ids_is_refused(tmp_path: Path, parameters: dict[str, str], words: str) -> None:
    study = make(tmp_path)
    joined = Worker(study, parameters).joined
    assert joined.status_code == 400
    assert words in joined.text
    assert "Set-Cookie" not in joined.headers
    study.close()


def test_a_wrong_link_and_a_study_without_a_service_let_nobody_in(tmp_path: Path) -> None:
    study = make(tmp_path)
    ada = Worker(study)
    assert ada.client.get("/join/0123", params=ADA).status_code == 404
    (tmp_path / "study/crowd.toml").unlink()
    assert Worker(study).joined.status_code == 404
    study.close()


def test_a_name_of_an_admin_is_out_of_reach(tmp_path: Path) -> None:
    study = make(tmp_path)
    study.invite("5f0aada", "admin")
    ada = Worker(study)
    assert ada.client.get("/admin").status_code == 403
    study.close()


def test_mturk_has_a_preview_and_a_code_for_each_worker(tmp_path: Path) -> None:
    text = OURS.replace('"prolific"', '"mturk"').replace("completion_url", "# completion_url").replace("items = 2", "")
    study = make(tmp_path, text, n=1)
    ids = {"workerId": "A1", "hitId": "H1", "assignmentId": "S1"}
    preview = Worker(study, ids | {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}).joined
    assert "Accept the task first" in preview.text
    codes = set()
    for name in ("A1", "A2"):
        worker = Worker(study, ids | {"workerId": name})
        worker.begin()
        assert worker.send("/press", value="yes") == 303
        codes.add(text_of(worker.page(), "#code"))
        assert worker.page().css_first("#complete") is None
    assert codes == {row["code"] for row in Crowd(study).rows()}
    assert len(codes) == 2
    study.close()


def test_a_participant_who_is_blocked_gets_the_link_for_that(tmp_path: Path) -> None:
    study = make(tmp_path)
    ada = Worker(study)
    ada.begin()
    (row,) = Crowd(study).rows()
    study.block(row["annotator"], "not read")
    link = ada.page().css_first("#complete")
    assert link is not None
    assert str(link.attributes["href"]).endswith("cc=OUT")
    study.close()


def test_people_with_a_personal_link_consent_too_and_get_all_items(tmp_path: Path) -> None:
    study = make(tmp_path)
    ada = Person(study)
    assert text_of(ada.page(), "#consent-text h1") == "Taking part"
    form = fields(ada.page(), "form[action='/consent']")
    ada.send("/consent", form | {"agree": "yes", "choice": "accept"})
    ada.send("/about-you", fields(ada.page(), "form[action='/about-you']") | {"about-age": "18 to 29"})
    for _ in range(4):
        ada.press("yes")
    assert "There is nothing left for you" in text_of(ada.page(), "main")
    study.close()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('service = "prolific"', 'service = "x"', "service should be one of , prolific, mturk, found 'x'"),
        ('consent_version = "v1"\n', "", "consent_version is missing"),
        ("items = 2", "items = -1", "items should be from 0 (all) to 1,000,000, found -1"),
        ("items = 2", "items = true", "items should be an integer, found true"),
        ("https://app.prolific.com/submissions/complete?cc=C1A2", "javascript:alert(1)", "begins with https://"),
        ("https://app.prolific.com/submissions/complete?cc=C1A2", "https://", "begins with https://"),
        (COMPLETION, "", "completion_url is missing; copy it from Prolific, or set completion_code"),
        (COMPLETION, 'completion_code = " "\n', "completion_url is missing"),
        ('"18 to 29", "30 or more"', '"18 to 29"', "questions[0]: choices should be 2 to 60 different texts"),
        ('"18 to 29", "30 or more"', "18, 30", "questions[0]: choices should be texts of 1 to 200 characters"),
        ('name = "language"', 'name = "age"', "questions[1]: name 'age' is taken"),
        ("required = true", "must = true", "questions[0]: unknown key 'must'"),
    ],
)
def test_a_fault_of_the_file_is_said_in_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in OURS
    path = tmp_path / "crowd.toml"
    path.write_text(OURS.replace(old, new, 1), "utf-8")
    with pytest.raises(UserError) as caught:
        read_crowd(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


def test_the_commands(rag: Command, tmp_path: Path) -> None:
    study = make(tmp_path)
    key = Crowd(study).key
    study.close()
    made = rag("annotate", "crowd-link", tmp_path / "study", "--base-url", "https://study.example.org/")
    assert made.stdout.strip() == (
        f"https://study.example.org/join/{key}?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&STUDY_ID={{{{%STUDY_ID%}}}}"
        "&SESSION_ID={{%SESSION_ID%}}"
    )
    shown = rag("annotate", "participants", tmp_path / "study", tmp_path / "who.jsonl")
    assert shown.stdout == f"{tmp_path / 'who.jsonl'}: 0 participants\n"
    (tmp_path / "study/crowd.toml").write_text("items = 3")
    one_line_error(rag("annotate", "crowd-link", tmp_path / "study"), "service is missing; name prolific or mturk")
    (tmp_path / "study/crowd.toml").unlink()
    one_line_error(rag("annotate", "participants", tmp_path / "study", tmp_path / "o"), "crowd.toml is missing")
    one_line_error(rag("annotate", "crowd-link", tmp_path / "study"), "crowd.toml is missing")
