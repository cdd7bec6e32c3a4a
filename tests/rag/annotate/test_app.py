"""The application over HTTP: what it asks, records and hides, and what it refuses."""

import json
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("itsdangerous")
pytest.importorskip("jinja2")
pytest.importorskip("python_multipart")
pytest.importorskip("sqlalchemy")
pytest.importorskip("starlette")

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient

from rag.annotate.app import create_app
from rag.annotate.study import Study
from rag.errors import StudyError
from tests.rag.annotate.web_study import (
    CAPTION,
    Person,
    fields,
    make_study,
    text_of,
)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return make_study(tmp_path)


def ratings(study: Study, tmp_path: Path) -> list[dict[str, Any]]:
    study.export(tmp_path / "exported")
    return [json.loads(line) for line in (tmp_path / "exported/ratings.jsonl").read_text("utf-8").splitlines()]


# --- signing in -------------------------------------------------------------------------------------------------------


def test_a_personal_link_signs_in_and_its_token_is_in_no_page(study: Study) -> None:
    ada = Person(study)
    cookie = ada.signed_in.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert ada.signed_in.headers["Refresh"] == "0; url=/"
    for path in ("/", "/guidelines", "/healthz"):
        found = ada.client.get(path)
        assert found.status_code == 200
        assert ada.token not in found.text
        assert found.headers["Cache-Control"] == "no-store"
    assert ada.token not in ada.signed_in.text


def test_with_https_the_cookie_is_for_https_and_this_host_only(study: Study) -> None:
    ada = Person(study, base_url="https://study.example.org")
    assert re.match(
        r"__Host-study-\w+=.*; HttpOnly; Max-Age=\d+; Path=/; SameSite=strict; Secure",
        ada.signed_in.headers["Set-Cookie"],
    )
    assert ada.client.get("/").status_code == 200


def test_two_studies_on_one_host_have_cookies_of_two_names(study: Study, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one, other = Person(study), Person(make_study(tmp_path / "other"))
    assert set(one.client.cookies) != set(other.client.cookies)


def test_wrong_links_and_cookies_are_refused_with_one_message(study: Study, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    ada, other = Person(study), Person(make_study(tmp_path / "other"))
    (name,) = ada.client.cookies
    gone = Person(study, "bob")
    study.revoke("bob")
    said = set()
    changed = ada.token[:-2] + ("aa" if ada.token[-2:] != "aa" else "bb")
    theirs = fields(boss.page("/admin"), ".row") if person is bob else bob.fields()
    for token in ("", "x", theirs["csrf"]):
        assert person.send(action, values | {"csrf": token}).status_code == 403
    assert ratings(study, tmp_path) == []
    assert bob.client.get("/").status_code == 200


@pytest.mark.parametrize("action", ["/admin", "/admin/audit", "/admin/ties"])
def test_admin_pages_are_for_admins(study: Study, action: str) -> None:
    assert Person(study).client.get(action).status_code == 403
    assert Person(study, "boss", role="admin").client.get(action).status_code == 200


@pytest.mark.parametrize("action", ADMIN_POSTS)
def test_admin_actions_are_for_admins(study: Study, action: str) -> None:
    ada = Person(study)
    found = ada.send(action, {"csrf": ada.fields()["csrf"], "id": "eve", "role": "admin"})
    assert found.status_code == 403
    assert [one.id for one in study.progress().people] == ["ada"]


def test_other_hosts_large_bodies_and_unknown_pages_are_refused(study: Study) -> None:
    ada = Person(study)
    assert ada.client.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert ada.send("/press", ada.fields() | {"value": "yes", "reason": "x" * 300_000}).status_code == 413
    assert ada.client.get("/nothing").status_code == 404
    assert ada.client.get("/press").status_code == 405
    many: dict[str, str | list[str]] = {**ada.fields(), "value": "yes", "evidence": ["0:1:p1"] * 2000}
    assert ada.send("/press", many).status_code in (400, 413)
    broken = ada.client.post(
        "/press", content=b"--x\r\nbroken", headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert broken.status_code in (400, 403)


def test_a_database_that_is_gone_is_told_in_one_line_and_comes_back(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = Person(study)
    values = ada.fields() | {"value": "yes"}

    def gone(*_: object, **__: object) -> None:
        raise StudyError("study.db: the database cannot be reached; nothing was recorded")

    with monkeypatch.context() as patch:
        for name in ("next", "verdict", "ready"):
            patch.setattr(study, name, gone)
        for found in (ada.client.get("/"), ada.send("/press", values), ada.client.get("/healthz")):
            assert found.status_code == 503
            assert found.headers["Retry-After"] == "2"
            assert "cannot be reached" in text_of(HTMLParser(found.text), "[role=alert]")
    assert ada.send("/press", values).status_code == 303


def test_a_fault_is_told_without_what_it_is(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = Person(study)

    def fault(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(study, "next", fault)
    found = ada.client.get("/")
    assert found.status_code == 500
    assert "secret" not in found.text
    assert found.headers["X-Content-Type-Options"] == "nosniff"


# --- admin ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def boss(study: Study) -> Person:
    return Person(study, "boss", role="admin")


def admin_form(boss: Person, **values: str) -> dict[str, str]:
    return {"csrf": boss.fields(".row", "/admin")["csrf"], **values}


def test_an_admin_starts_at_the_progress(study: Study, boss: Person) -> None:
    ada = Person(study)
    ada.press("no")
    found = boss.client.get("/", follow_redirects=False)
    assert (found.status_code, found.headers["Location"]) == (303, "/admin")
    page = boss.page("/admin")
    assert "3 items" in text_of(page, "main")
    (row,) = [one for one in page.css("tbody tr") if one.css_first("th").text() == "ada"]  # type: ignore[union-attr]
    assert "working" in row.text()


def test_an_admin_invites_and_revokes(study: Study, boss: Person) -> None:
    found = boss.send("/admin/invite", admin_form(boss, id="eve", role="annotator"))
    assert found.status_code == 200
    link = HTMLParser(found.text).css_first("#link")
    assert link is not None
    address = str(link.attributes["value"])
    assert address.startswith("http://localhost:8000/in/")
    eve = TestClient(create_app(study), base_url="http://localhost:8000")
    assert eve.get(address).status_code == 200
    assert eve.get("/").status_code == 200
    assert boss.send("/admin/revoke", admin_form(boss, id="eve")).status_code == 303
    assert eve.get("/").status_code == 401
    assert "revoked" in boss.client.get("/admin").text
    for values in (
        {"id": "", "role": "annotator"},
        {"id": "x" * 1000, "role": "annotator"},
        {"id": "eve", "role": "root"},
    ):
        assert boss.send("/admin/invite", admin_form(boss, **values)).status_code == 400
    assert boss.send("/admin/revoke", admin_form(boss, id="nobody")).status_code == 400


def test_links_begin_with_the_public_address(study: Study) -> None:
    boss = Person(study, "boss", role="admin", base_url="https://study.example.org/")
    found = boss.send("/admin/invite", admin_form(boss, id="eve", role="annotator"))
    assert 'value="https://study.example.org/in/' in found.text


def test_an_admin_blocks_and_unblocks(study: Study, boss: Person) -> None:
    ada = Person(study)
    assert boss.send("/admin/block", admin_form(boss, id="ada", reason="Too fast <b>.")).status_code == 303
    assert "Too fast <b>." in text_of(ada.page(), "[role=alert]")
    assert boss.send("/admin/unblock", admin_form(boss, id="ada")).status_code == 303
    assert ada.page().css_first("#press") is not None


def test_an_admin_audits_without_seeing_what_was_said(study: Study, boss: Person, tmp_path: Path) -> None:
    assert "no rating left" in boss.client.get("/admin/audit").text
    ada = Person(study)
    ada.press("yes")
    ada.press("no", reason="Nothing about arches.")
    for _ in range(2):
        page = boss.page("/admin/audit")
        assert "arches." not in text_of(page, ".dock")
        assert boss.send("/admin/audit", fields(page) | {"value": "yes"}).status_code == 303
    assert "no rating left" in boss.client.get("/admin/audit").text
    audits = [row for row in ratings(study, tmp_path) if row["phase"] == "audit"]
    assert sorted(row["question"] for row in audits) == ["attributable", "interpretable"]


def test_an_admin_decides_ties_with_the_reasons_of_both_sides(tmp_path: Path) -> None:
    study = make_study(tmp_path, CAPTION, scheme="ais-direct", annotators=3)
    boss = Person(study, "boss", role="admin")
    people = [Person(study, name) for name in ("ada", "bob", "eve")]
    people[0].press("yes", reason="Second row.")
    people[1].press("no", reason="Not the year <b>.")
    people[2].send("/flag", people[2].fields("#flags") | {"value": "expert"})
    if not study.ties():
        pytest.skip("an item with a flag is not finished by two people")
    page = boss.page("/admin/ties")
    votes = [one.text() for one in page.css(".vote")]
    assert len(votes) == 2
    assert any("Second row." in one for one in votes)
    assert any("Not the year <b>." in one for one in votes)
    assert not any(name in text_of(page, ".dock") for name in ("ada", "bob"))
    assert boss.send("/admin/ties", fields(page) | {"value": "yes"}).status_code == 303
    assert "no tie" in boss.client.get("/admin/ties").text


def test_an_admin_downloads_the_export(study: Study, boss: Person) -> None:
    Person(study).press("no")
    found = boss.send("/admin/export", admin_form(boss))
    assert found.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(BytesIO(found.content)) as archive:
        names = archive.namelist()
        assert "export/ratings.jsonl" in names
        assert not any("key" in name for name in names)
