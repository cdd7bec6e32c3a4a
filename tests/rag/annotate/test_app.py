"""The application over HTTP: what it asks, records and hides, and what it refuses."""

import re
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

pytest.importorskip("itsdangerous")
pytest.importorskip("jinja2")
pytest.importorskip("python_multipart")
pytest.importorskip("sqlalchemy")
pytest.importorskip("starlette")

from selectolax.lexbor import LexborHTMLParser as HTMLParser
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from rag.annotate.app import create_app
from rag.annotate.items import Cell, Item, Source, Table, Turn
from rag.annotate.schemes import COMMAND_KEYS, KINDS, SCHEMES, Kind, Scheme, flags_for
from rag.annotate.shown import limit_seconds
from rag.annotate.study import Study
from rag.annotate.types import MAX_EVIDENCE
from rag.base.errors import LinkError, StudyError, UserError
from rag.web.pages import sentence
from tests.conftest import present
from tests.rag.annotate.web_study import (
    ANSWER,
    BRIDGE,
    CAPTION,
    CITATION,
    FERRY,
    PASSAGE,
    SENTENCE,
    SUMMARY,
    Person,
    fields,
    make_study,
    ratings,
    several,
    text_of,
)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return make_study(tmp_path)


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
    for token in (changed, other.token, gone.token, "x", "%00", "ada", ada.token + "x"):
        fresh = TestClient(create_app(study), base_url="http://localhost")
        found = fresh.get(f"/in/{token}")
        assert found.status_code == 401
        said.add(text_of(HTMLParser(found.text), "[role=alert]"))
        fresh.cookies.set(name, token)
        assert fresh.get("/").status_code == 401
        assert fresh.post("/press").status_code == 401
    assert len(said) == 1
    assert gone.client.get("/").status_code == 401  # at once, though the cookie was good
    nobody = TestClient(create_app(study), base_url="http://localhost").get("/")
    assert nobody.status_code == 401
    assert "open your personal link" in nobody.text


def test_guessing_is_slowed_down_and_stops_nobody_else(study: Study) -> None:
    ada = Person(study)
    for _ in range(20):
        assert ada.client.get("/in/guess").status_code == 401
    found = ada.client.get("/in/guess")
    assert found.status_code == 429
    assert 0 < int(found.headers["Retry-After"]) <= 61
    assert ada.client.get("/").status_code == 200
    assert ada.client.get(f"/in/{ada.token}").status_code == 200  # a right link of the same address
    assert ada.client.get(f"/in/{study.invite('bob')}").status_code == 200
    assert ada.client.get("/in/guess").status_code == 429


def test_the_token_is_not_in_what_a_server_would_log(study: Study) -> None:
    token = study.invite("ada")
    seen: list[str] = []
    inner = create_app(study)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def logged(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.append(scope["path"])  # when uvicorn writes its line
            await send(message)

        await inner(scope, receive, logged)

    client = TestClient(app, base_url="http://localhost")
    client.get(f"/in/{token}")
    client.get("/in/guess")
    assert seen == ["/in/...", "/in/..."]


def test_signing_out_ends_the_session(study: Study) -> None:
    ada = Person(study)
    csrf = ada.fields()["csrf"]
    assert ada.send("/out", {"csrf": "wrong"}).status_code == 403
    assert ada.client.get("/").status_code == 200
    assert ada.send("/out", {"csrf": csrf}).status_code == 200
    assert ada.client.get("/").status_code == 401


@pytest.mark.parametrize("address", ["study.example.org", "https://study.example.org/path"])
def test_a_base_url_that_is_none_is_refused(study: Study, address: str) -> None:
    with pytest.raises(UserError, match="should be like https://"):
        create_app(study, address)


# --- work -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "secret"),
    [
        (ANSWER, [BRIDGE[:20], FERRY[:20], "Ferries", "History", "p:2"]),
        (SUMMARY, [BRIDGE[:20], FERRY[:20], "Ferries", "History"]),
        (CAPTION, ["Eva Lund", "Aller Games", "400 metres", "June"]),
    ],
    ids=["qa", "summarization", "table"],
)
def test_the_source_is_not_sent_before_the_first_verdict(tmp_path: Path, item: Item, secret: list[str]) -> None:
    ada = Person(make_study(tmp_path, *several(item, 3)))
    first = ada.client.get("/").text
    assert "interpretable to you" in first
    for text in secret:
        assert text not in first
    ada.press("yes")
    second = ada.client.get("/").text
    assert "fully supported" in second
    for text in secret:
        assert text in second


def test_no_ends_the_item_and_the_source_never_comes(study: Study) -> None:
    ada = Person(study)
    item = ada.fields()["item"]
    found = ada.send("/press", ada.fields() | {"value": "no"}, headers={"X-Requested-With": "fetch"})
    assert found.status_code == 200
    assert fields(HTMLParser(found.text))["item"] != item
    assert BRIDGE[:20] not in found.text


def test_a_study_from_the_first_item_to_the_thanks(study: Study, tmp_path: Path) -> None:
    ada = Person(study)
    for value in ("yes", "no", "yes", "yes", "no"):
        found = ada.press(value)
        assert (found.status_code, found.headers["Location"]) == (303, "/")
    assert "Thank you" in ada.client.get("/").text
    rows = [row for row in ratings(study, tmp_path) if row["annotator"] == "ada"]
    assert sorted((row["question"], row["value"]) for row in rows) == [
        ("attributable", "no"),
        ("attributable", "yes"),
        ("interpretable", "no"),
        ("interpretable", "yes"),
        ("interpretable", "yes"),
    ]
    assert all(row["seconds"] >= 0 for row in rows)


@pytest.mark.parametrize(
    ("scheme", "items"),
    [
        ("ais", [ANSWER, SUMMARY, CAPTION]),
        ("ais-direct", [ANSWER, CAPTION]),
        ("ais-likert", [ANSWER]),
        ("ais-sentences", [SENTENCE]),
        ("hagrid", [SENTENCE]),
        ("liu", [SENTENCE, CITATION]),
        ("trec", [CITATION]),
        ("words", [PASSAGE]),
    ],
)
def test_each_scheme_is_rendered_from_its_data(tmp_path: Path, scheme: str, items: list[Item]) -> None:
    ada = Person(make_study(tmp_path, *items, scheme=scheme))
    questions = {question.name: question for question in SCHEMES[scheme].questions}
    asked = set()
    for _ in range(20):
        page = ada.page()
        if page.css_first("#press") is None:
            break
        question = questions[fields(page)["question"]]
        asked.add(question.name)
        buttons = page.css(".verdicts button")
        assert [one.attributes["value"] for one in buttons] == list(question.values)
        for button, option in zip(buttons, question.options, strict=True):
            assert button.attributes["data-key"] == option.key
            assert button.text().split()[0] == option.key
        ada.press(question.values[0], **({"evidence": "0:3:p1"} if question.words_for else {}))
    assert asked == set(questions)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=list(SCHEMES))
def test_no_key_means_two_things(scheme: Scheme, kind: Kind) -> None:
    commands = [*COMMAND_KEYS]
    flags = [flag.key for flag in flags_for(kind)]
    for question in scheme.questions:
        options = [option.key for option in question.options]
        assert len({*commands, *flags, *options}) == len(commands) + len(flags) + len(options)


def test_the_sentence_judged_is_marked_in_its_answer(tmp_path: Path) -> None:
    page = Person(make_study(tmp_path, SENTENCE, scheme="ais-sentences")).page()
    assert text_of(page, ".answer") == "The Aller bridge is a brick bridge. It opened in 1931. A ferry ran before."
    assert text_of(page, "mark.judged") == "It opened in 1931."


def test_what_is_expected_and_which_system_wrote_is_never_sent(tmp_path: Path) -> None:
    gold = replace(
        ANSWER,
        id="gold-1",
        answer="gold-1",
        expected={"interpretable": "yes", "attributable": "no"},
        explanation="Because of the moon.",
    )
    ada = Person(make_study(tmp_path, *several(ANSWER, 4), gold=[gold], gold_share=0.5))
    for _ in range(20):
        sent = ada.client.get("/").text
        for secret in ("moon", "model-x", "gold"):
            assert secret not in sent
        if ada.page().css_first("#press") is None:
            break
        ada.press("yes")
    assert "Thank you" in sent


def test_labels_of_others_are_in_no_page(study: Study, tmp_path: Path) -> None:
    def clean(person: Person) -> str:
        return re.sub(r'(name="(?:csrf|press|shown|item)" value=)"[^"]*"', r"\1", person.client.get("/").text)

    ada, bob = Person(study), Person(study, "bob")
    before = clean(bob)
    ada.press("yes")
    ada.press("no", reason="Nothing about arches,\r\nnor brick.")
    assert clean(bob) == before
    (row,) = [row for row in ratings(study, tmp_path) if row["question"] == "attributable"]
    assert row["reason"] == "Nothing about arches,\nnor brick."


def test_a_press_that_comes_twice_is_recorded_once(study: Study, tmp_path: Path) -> None:
    ada = Person(study)
    values = ada.fields() | {"value": "yes"}
    assert ada.send("/press", values).status_code == 303
    found = ada.send("/press", values, headers={"X-Requested-With": "fetch"})
    assert found.status_code == 200
    assert fields(HTMLParser(found.text))["question"] == "attributable"
    assert len(ratings(study, tmp_path)) == 1


def test_the_older_of_two_tabs_is_told_and_gets_what_is_asked_now(study: Study, tmp_path: Path) -> None:
    ada = Person(study)
    older = ada.fields()
    ada.press("yes")
    found = ada.send("/press", older | {"value": "no"})
    assert found.status_code == 409
    page = HTMLParser(found.text)
    assert "is not asked now" in text_of(page, "[role=alert]")
    assert fields(page)["question"] == "attributable"
    assert len(ratings(study, tmp_path)) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"value": "maybe"},
        {"value": ""},
        {"item": "q1-1"},
        {"item": "'; DROP TABLE presses; --"},
        {"question": "x\x00"},
        {"press": ""},
    ],
    ids=str,
)
def test_presses_that_do_not_fit_are_refused_in_one_line(study: Study, tmp_path: Path, values: dict[str, str]) -> None:
    ada = Person(study)
    found = ada.send("/press", ada.fields() | {"value": "yes"} | values)
    assert found.status_code == 409
    assert "\n" not in text_of(HTMLParser(found.text), "[role=alert]").strip()
    assert ratings(study, tmp_path) == []


def test_undo_takes_back_the_last_press(study: Study) -> None:
    ada = Person(study)
    assert "disabled" in ada.page().css_first("#undo button").attributes  # type: ignore[union-attr]
    first = ada.fields()["item"]
    ada.press("no")
    assert ada.send("/undo", ada.fields("#undo")).status_code == 303
    assert ada.fields()["item"] == first
    assert ada.fields()["question"] == "interpretable"
    assert ada.send("/undo", ada.fields("#undo")).status_code == 409


def test_undo_brings_back_the_evidence_and_the_reason(study: Study) -> None:
    ada = Person(study)
    ada.press("yes")
    boxes = [str(box.attributes["value"]) for box in ada.page().css("input[name=evidence]")]
    assert "You took back" not in text_of(ada.page(), ".dock")
    ada.press("yes", evidence=boxes[0], reason="It says <b>so</b>.")
    ada.send("/undo", ada.fields("#undo"))
    page = ada.page()
    assert "You took back: Yes, fully attributable." in text_of(page, ".dock")
    assert text_of(page, "textarea[name=reason]") == "It says <b>so</b>."
    checked = [box for box in page.css("input[name=evidence]") if "checked" in box.attributes]
    assert [box.attributes["value"] for box in checked] == boxes[:1]


def test_the_very_last_press_can_be_undone(tmp_path: Path) -> None:
    ada = Person(make_study(tmp_path, ANSWER))
    ada.press("no")
    ada.send("/undo", ada.fields("#undo"))
    assert ada.fields()["question"] == "interpretable"


def test_a_flag_takes_the_item_away(study: Study, tmp_path: Path) -> None:
    ada = Person(study)
    page = ada.page()
    reasons = {str(one.attributes["value"]) for one in page.css("#flags form button")}
    assert reasons == {"missing", "malformed", "expert"}  # nothing is known of the source yet
    ada.press("yes")
    assert "underspecified-source" in {str(one.attributes["value"]) for one in ada.page().css("#flags form button")}
    ada.send("/undo", ada.fields("#undo"))
    page = ada.page()
    assert ada.send("/flag", fields(page, "#flags") | {"value": "malformed"}).status_code == 303
    assert ada.fields()["item"] != fields(page)["item"]
    (row,) = ratings(study, tmp_path)
    assert (row["question"], row["value"]) == ("flag", "malformed")
    assert ada.send("/flag", ada.fields("#flags") | {"value": "boring"}).status_code == 409
    assert len(ratings(study, tmp_path)) == 1
    caption = Person(make_study(tmp_path / "tables", CAPTION)).page()
    assert len(caption.css("#flags form button")) == 3


def test_evidence_is_kept_exactly_also_after_astral_and_combining_characters(study: Study, tmp_path: Path) -> None:
    ada = Person(study)
    ada.press("yes")
    page = ada.page()
    values = [str(one.attributes["value"]) for one in page.css("input[name=evidence]")]
    texts = {"p1": BRIDGE, "p:2": FERRY}
    spans = [(value.split(":", 2)[2], int(value.split(":")[0]), int(value.split(":")[1])) for value in values]
    chosen = [texts[passage][start:end] for passage, start, end in spans]
    assert "\U0001f600 A ferry crossed the river before." in chosen
    assert "Cafe\u0301 Lund sold the tickets." in chosen
    assert [
        text_of(one, "label") for one in map(HTMLParser, re.findall("<label class=.*?</label>", page.html or ""))
    ] == chosen
    ada.press("yes", evidence=[values[-1], values[0], values[0]])
    (row,) = [one for one in ratings(study, tmp_path) if one["question"] == "attributable"]
    assert row["evidence"] == [
        {"passage": passage, "start": start, "end": end} for passage, start, end in sorted([spans[0], spans[-1]])
    ]


@pytest.mark.parametrize(
    "value",
    ["", "0:1", "a:b:p1", "-1:3:p1", "0:9999:p1", "5:5:p1", "0:3:p9", "²:3:p1", "1e3:9:p1", "9" * 2000],
    ids=lambda v: v[:9],
)
def test_evidence_that_is_not_in_the_sources_is_refused(study: Study, tmp_path: Path, value: str) -> None:
    ada = Person(study)
    ada.press("yes")
    found = ada.press("yes", evidence=[value])
    assert found.status_code == 409
    assert "evidence" in text_of(HTMLParser(found.text), "[role=alert]")
    assert len(ratings(study, tmp_path)) == 1


def test_a_verdict_has_so_much_evidence_and_no_more(study: Study, tmp_path: Path) -> None:
    ada = Person(study)
    ada.press("yes")
    spans = [f"{n}:{n + 1}:p:2" for n in range(len(FERRY))] + [f"{n}:{n + 1}:p1" for n in range(len(BRIDGE))]
    found = ada.press("yes", evidence=spans[: MAX_EVIDENCE + 1])
    assert found.status_code == 409
    assert "at most 100 pieces of evidence, found 101." in text_of(HTMLParser(found.text), "[role=alert]")
    assert ada.press("yes", evidence=spans[:MAX_EVIDENCE]).status_code == 303


def test_a_message_ends_with_one_full_stop() -> None:
    assert sentence(UserError("this is so")) == sentence(UserError("This is so.")) == "This is so."
    assert not sentence(LinkError()).endswith("..")


def test_evidence_and_reasons_can_be_required(tmp_path: Path) -> None:
    ada = Person(make_study(tmp_path, evidence="required", reasons="required"))
    assert "required" in ada.page().css_first("textarea").attributes  # type: ignore[union-attr]
    assert ada.press("yes").status_code == 409
    assert ada.press("yes", reason="All is clear.").status_code == 303
    assert ada.press("yes", reason="It says so.").status_code == 409
    assert ada.press("yes", reason="It says so.", evidence="0:10:p1").status_code == 303


def test_evidence_and_reasons_can_be_off(tmp_path: Path) -> None:
    ada = Person(make_study(tmp_path, evidence="off", reasons="off"))
    ada.press("yes")
    page = ada.page()
    assert not page.css("input[name=evidence], #reason")
    assert text_of(page, ".passage") == BRIDGE


def test_shared_words_are_marked_only_if_the_study_says_so(tmp_path: Path) -> None:
    (tmp_path / "off").mkdir()
    for folder, highlight in ((tmp_path, True), (tmp_path / "off", False)):
        ada = Person(make_study(folder, highlight=highlight))
        ada.press("yes")
        found = [one.text() for one in ada.page().css(".hint")]
        assert found[:4] == (["bridge", "opened", "1931", "three"] if highlight else [])


def test_a_page_of_no_javascript_has_all_that_is_needed(study: Study) -> None:
    page = Person(study).page()
    for form, action in (("#press", "/press"), ("#undo", "/undo"), ("#flags form", "/flag")):
        found = present(page.css_first(form))
        assert (found.attributes["method"], found.attributes["action"]) == ("post", action)
        assert not [one for one in found.css("button") if one.attributes.get("type") not in (None, "submit")][1:]
    assert not re.search(r"\son\w+=|style=|<style|<script(?![^>]*src=)", page.html or "")


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "age", "expected"),
    [
        (3.5, 10, 3.5),
        (99, 10, 10),
        (None, 10, 10),
        (-1, 10, None),
        (float("nan"), 10, None),
        (float("inf"), 10, 10),
        (3, None, None),
    ],
)
def test_seconds_of_a_browser_are_bounded_by_the_servers(
    seconds: float | None, age: float | None, expected: float | None
) -> None:
    assert limit_seconds(seconds, age) == expected


def test_the_time_of_a_verdict_is_at_most_that_since_the_page_was_served(study: Study, tmp_path: Path) -> None:
    ada = Person(study)
    for seconds in ("2.5", "999", "x"):
        ada.send("/press", ada.fields() | {"value": "yes", "seconds": seconds}, after=7)
    assert [round(row["seconds"], 1) for row in sorted(ratings(study, tmp_path), key=lambda row: row["at"])][:2] == [
        2.5,
        7.0,
    ]


@pytest.mark.parametrize("after", [0.0, 0.04, 0.25, 0.45])
def test_the_second_click_of_a_double_click_is_no_verdict_on_the_next_question(
    study: Study, tmp_path: Path, after: float
) -> None:
    ada = Person(study)
    ada.press("yes")
    values = ada.fields() | {"value": "yes"}  # the next question, as served
    found = ada.send("/press", values, after=after)
    assert found.status_code == 409
    page = HTMLParser(found.text)
    assert "less than half a second" in text_of(page, "[role=alert]")
    assert fields(page)["question"] == "attributable"
    flagged = ada.send("/flag", ada.fields("#flags") | {"value": "malformed"}, after=after)
    assert flagged.status_code == 409
    assert [row["question"] for row in ratings(study, tmp_path)] == ["interpretable"]
    assert ada.press("yes").status_code == 303  # the page that came with the refusal can be answered


@pytest.mark.parametrize("name", ["shown", "press", "question", "item"])
def test_an_answer_counts_for_the_question_that_was_shown_only(study: Study, tmp_path: Path, name: str) -> None:
    ada, bob = Person(study), Person(study, "bob")
    ada.press("yes")
    first, other = ada.fields(), bob.fields()
    for value in (other[name], "", "1.x", "\ud800.x.y", "x"):
        sent = first | {"value": "yes", name: value.encode("utf-8", "replace").decode()}
        assert ada.send("/press", sent).status_code == 409
    assert [row["question"] for row in ratings(study, tmp_path)] == ["interpretable"]


def test_an_admin_answers_no_tie_by_a_double_click(tmp_path: Path) -> None:
    study = make_study(tmp_path, CITATION, scheme="trec", annotators=2)
    boss = Person(study, "boss", role="admin")
    for name, value in {"ada": "full", "bob": "none"}.items():
        Person(study, name).press(value)
    form = boss.fields("#press", "/admin/ties") | {"value": "full"}
    assert boss.send("/admin/ties", form, after=0.2).status_code == 409
    assert len(study.ties()) == 1
    assert boss.send("/admin/ties", form).status_code == 303


# --- training ---------------------------------------------------------------------------------------------------------

TRAINING = [
    replace(
        ANSWER,
        id=f"training-{n}",
        answer=f"training-{n}",
        expected={"interpretable": "yes", "attributable": value},
        explanation="The arches are counted.",
    )
    for n, value in enumerate(("yes", "no"))
]


def test_training_gives_feedback_and_lets_pass(tmp_path: Path) -> None:
    ada = Person(make_study(tmp_path, training=TRAINING, pass_mark=1.0))
    seen = []
    for value in ("yes", "yes", "yes", "no"):
        assert "Training" in text_of(ada.page(), ".where")
        found = ada.press(value)
        assert found.status_code == 200
        seen.append(HTMLParser(found.text))
    assert all("Right." in text_of(page, "#question") for page in seen)
    told = ["arches are counted" in text_of(page, ".feedback") for page in seen]
    assert told == [False, True, False, True]  # once the item is finished
    assert BRIDGE[:20] not in (seen[0].html or "")
    assert BRIDGE[:20] in (seen[1].html or "")
    assert "Training" not in text_of(ada.page(), ".where")


def test_feedback_says_what_was_expected_and_can_be_asked_for_again(tmp_path: Path) -> None:
    ada = Person(make_study(tmp_path, training=TRAINING, pass_mark=1.0))
    ada.press("yes")
    values = ada.fields() | {"value": "no"}
    first = HTMLParser(ada.send("/press", values).text)
    again = HTMLParser(ada.send("/press", values).text)
    for page in (first, again):
        assert "Not what we expect" in text_of(page, "#question")
        assert "Yes, fully attributable." in text_of(page, ".feedback") or page is again
        assert "arches are counted" in text_of(page, ".feedback")


def test_who_fails_the_training_is_told_and_gets_nothing_more(tmp_path: Path) -> None:
    ada = Person(make_study(tmp_path, training=TRAINING, pass_mark=1.0, training_attempts=1))
    for _ in range(2):
        ada.press("no")
    assert "did not pass the training" in text_of(ada.page(), "[role=alert]")
    assert ada.press("yes").status_code in (403, 409)


# --- guidelines -------------------------------------------------------------------------------------------------------


def test_guidelines_are_those_of_the_scheme_and_kind(study: Study) -> None:
    ada = Person(study)
    link = present(ada.page().css_first("#guidelines"))
    assert link.attributes["data-key"] == "g"
    found = ada.client.get(str(link.attributes["href"])).text
    assert "Can you understand the response?" in found
    assert "Can you understand the summary?" not in found
    assert "Can you understand the summary?" in ada.client.get("/guidelines?kind=other").text


def test_guidelines_of_the_study_replace_ours_and_are_escaped(tmp_path: Path) -> None:
    study = make_study(tmp_path, guidelines="ours.md")
    (study.folder / "ours.md").write_text("# Ours\n\n<script>alert(1)</script> *so*\n", "utf-8")
    found = Person(study).client.get("/guidelines").text
    assert "<h1>Ours</h1>" in found
    assert "<script>alert" not in found
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in found
    (study.folder / "ours.md").unlink()
    assert Person(study, "bob").client.get("/guidelines").status_code == 503


# --- past items -------------------------------------------------------------------------------------------------------


def test_a_past_verdict_is_revised_without_javascript(study: Study, tmp_path: Path) -> None:
    ada, bob = Person(study), Person(study, "bob")
    assert "no item yet" in ada.client.get("/past").text
    ada.press("yes")
    ada.press("no", comment="Which <b>bridge</b>?")
    bob.press("no")
    page = ada.page("/past")
    assert len(page.css("article")) == 1
    assert "Which <b>bridge</b>?" in text_of(page, "textarea")
    links = [str(one.attributes["href"]) for one in page.css("article a")]
    assert [link.partition("question=")[2] for link in links] == ["interpretable", "attributable"]
    assert BRIDGE[:20] not in ada.client.get(links[0]).text
    page = ada.page(links[1])
    assert "You said: No, not fully attributable." in text_of(page, ".dock")
    assert BRIDGE[:20] in text_of(page, ".sources")
    assert page.css_first("#undo, #flags") is None
    refused = ada.send("/revise", fields(page) | {"value": "yes"}, after=0.2)
    assert refused.status_code == 409
    assert fields(HTMLParser(refused.text))["item"] == fields(page)["item"]  # the same question again, to answer it
    assert "less than half a second" in text_of(HTMLParser(refused.text), ".dock [role=alert]")
    found = ada.send("/revise", fields(page) | {"value": "yes", "evidence": "0:5:p1"})
    assert (found.status_code, found.headers["Location"]) == (303, "/past")
    assert "before: No, not fully attributable." in text_of(ada.page("/past"), "article")
    assert [row["value"] for row in ratings(study, tmp_path) if row["question"] == "attributable"] == ["yes"]
    found = ada.send("/revise", ada.fields("#press", links[0]) | {"value": "no"})
    assert [row["value"] for row in ratings(study, tmp_path) if row["annotator"] == "ada"] == ["no"]
    again = ada.fields("#press", links[0]) | {"value": "yes"}
    assert ada.send("/revise", again).headers["Location"] == "/"  # the next question is asked
    assert ada.fields()["question"] == "attributable"
    assert ada.client.get(links[0]).status_code == 404
    for other in ("/past/x?question=interpretable", links[0].replace("interpretable", "x"), links[0].split("?")[0]):
        assert bob.client.get(other).status_code == 404


def test_a_flag_is_taken_back_and_a_comment_changed_among_past_items(study: Study) -> None:
    ada = Person(study)
    page = ada.page()
    ada.send("/flag", fields(page, "#flags") | {"value": "malformed"})
    past = ada.page("/past")
    assert "Something" not in text_of(past, "article")
    assert "The text is malformed" in text_of(past, "article")
    comment = fields(past, "details form") | {"comment": "Half of it."}
    assert ada.send("/comment", comment).status_code == 303
    assert text_of(ada.page("/past"), "textarea") == "Half of it."
    form = fields(ada.page("/past"), "article > form")
    assert ada.send("/unflag", form).headers["Location"] == "/"
    assert ada.fields()["item"] == fields(page)["item"]


# --- security ---------------------------------------------------------------------------------------------------------

EVIL = "</p></label><script>window.broken=1</script><img src=x onerror=window.broken=1>\"'&\u202e\x1b[2J{{7*7}}"


def evil_item(kind: str) -> Item:
    return Item(
        "evil",
        f"text {EVIL}",
        answer="evil",
        kind=kind,  # type: ignore[arg-type]
        query=f"query {EVIL}",
        turns=(Turn(f"speaker {EVIL}", f"turn {EVIL}"),),
        before=f"before {EVIL}",
        after=f"after {EVIL}",
        sources=(Source(f"id {EVIL}", f"source {EVIL}", f"title {EVIL}", f"section {EVIL}"),),
        table=Table(((Cell(f"cell {EVIL}", is_highlighted=True), Cell(EVIL, is_header=True)),), EVIL, EVIL, EVIL)
        if kind == "table"
        else None,
    )


@pytest.mark.parametrize("kind", ["qa", "summarization", "table"])
@pytest.mark.parametrize("highlight", [True, False])
def test_hostile_texts_are_shown_as_text(tmp_path: Path, kind: str, highlight: bool) -> None:
    study = make_study(tmp_path, evil_item(kind), title=f"title {EVIL.replace(chr(27), '')}", highlight=highlight)
    ada = Person(study)
    for verdict in ("yes", "yes", None):
        text = ada.client.get("/").text
        page = HTMLParser(text)
        assert len(page.css("script")) == 1
        assert not page.css("img")
        assert "49" not in text_of(page, "#view")
        assert "\u202e" not in text
        assert "\x1b" not in text
        if verdict:
            assert "<script>window.broken=1</script>" in text_of(page, ".answer")
            ada.press(verdict, reason=EVIL)
    boss = Person(study, "boss", role="admin")
    past = ada.page("/past")
    assert not past.css("img")
    for path in ("/admin", "/admin/verdicts", "/admin/item?id=evil", "/admin/audit", "/admin/ties"):
        page = boss.page(path)
        assert len(page.css("script")) == 1
        assert not page.css("img")


POSTS = ["/press", "/flag", "/undo", "/revise", "/unflag", "/comment", "/out"]
ADMIN_POSTS = [f"/admin/{name}" for name in ("invite", "revoke", "block", "unblock", "audit", "ties", "export")]


@pytest.mark.parametrize("action", [*POSTS, *ADMIN_POSTS])
def test_a_form_of_another_site_is_refused(study: Study, tmp_path: Path, action: str) -> None:
    boss, bob = Person(study, "boss", role="admin"), Person(study, "bob")
    person = boss if action.startswith("/admin") else bob
    values = bob.fields() | {"value": "yes", "id": "bob", "role": "admin"}
    theirs = fields(boss.page("/admin"), ".row") if person is bob else bob.fields()
    for token in ("", "x", theirs["csrf"]):
        assert person.send(action, values | {"csrf": token}).status_code == 403
    assert ratings(study, tmp_path) == []
    assert bob.client.get("/").status_code == 200


@pytest.mark.parametrize("action", ["/admin", "/admin/verdicts", "/admin/item?id=q1", "/admin/audit", "/admin/ties"])
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
    other = ada.client.get("/", headers={"Host": "evil.example:80", "Accept": "application/json"})
    assert (other.status_code, other.json()["error"]["type"]) == (400, "HTTPError")
    says = "his server does not answer to the name 'evil.example'; rag annotate serve --base-url http://NAME allows it"
    assert says in other.json()["error"]["message"]
    other = ada.client.get("/", headers={"Host": "evil.example", "Accept": "text/html"})
    assert says in text_of(HTMLParser(other.text), "[role=alert]")
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


def test_the_work_page_says_who_is_signed_in(study: Study) -> None:
    assert text_of(Person(study).page(), "#me") == "Signed in as ada"


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
    link = present(HTMLParser(found.text).css_first("#link"))
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


def test_the_form_refuses_a_name_that_exists_and_a_new_link_keeps_the_role(study: Study, boss: Person) -> None:
    form = boss.fields(".row", "/admin")
    found = boss.send("/admin/invite", form | {"id": "boss", "role": "annotator"})
    assert found.status_code == 400
    assert "New link" in found.text
    assert boss.client.get("/admin").status_code == 200  # their link and role are as before
    assert boss.send("/admin/invite", form | {"id": "eve", "role": "annotator"}).status_code == 200
    study.invite("boss")
    assert study.annotator("boss").role == "admin"


def test_names_of_people_are_shown_as_text(study: Study, boss: Person) -> None:
    name = '<img src=x onerror="window.broken=1">'
    found = boss.send("/admin/invite", admin_form(boss, id=name, role="annotator"))
    for text in (found.text, boss.client.get("/admin").text):
        assert not HTMLParser(text).css("img")
    if found.status_code == 200:
        assert name in text_of(boss.page("/admin"), "table")


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


@pytest.mark.parametrize("page", ["audit", "ties"])
def test_a_verdict_of_an_admin_on_an_unknown_item_is_refused_in_one_line(study: Study, boss: Person, page: str) -> None:
    values = admin_form(boss, item="q9", question="attributable", value="yes", press="p1")
    found = boss.send(f"/admin/{page}", values)
    assert found.status_code == 409
    assert text_of(HTMLParser(found.text), "[role=alert]").strip() == "No item called 'q9'."


def test_an_admin_is_told_which_alpha_it_is(tmp_path: Path) -> None:
    boss = Person(make_study(tmp_path, scheme="ais-likert"), "boss", role="admin")
    text = text_of(boss.page("/admin"), "main")
    assert "attributable – (ordinal), interpretable – (nominal). None (–) while verdicts are few" in text


def test_an_admin_sees_no_source_where_the_question_hides_it(study: Study, boss: Person) -> None:
    Person(study).press("no")
    page = boss.page("/admin/audit")
    assert fields(page)["question"] == "interpretable"
    assert page.css_first(".sources") is None


def test_an_admin_decides_ties_with_the_reasons_of_both_sides(tmp_path: Path) -> None:
    study = make_study(tmp_path, CITATION, scheme="trec")
    boss = Person(study, "boss", role="admin")
    given = {"ada": ("full", "It is all there."), "bob": ("none", "Not the year <b>."), "eve": ("partial", "")}
    for name, (value, reason) in given.items():
        Person(study, name).press(value, reason=reason)
    page = boss.page("/admin/ties")
    votes = sorted(one.text() for one in page.css(".vote"))
    assert votes == [
        "1 said: Full supportIt is all there.",
        "1 said: No supportNot the year <b>.",
        "1 said: Partial support",
    ]
    assert not any(name in text_of(page, ".dock") for name in given)
    assert boss.send("/admin/ties", fields(page) | {"value": "partial"}).status_code == 303
    assert "no tie" in boss.client.get("/admin/ties").text


def test_an_admin_filters_verdicts_and_inspects_an_item(study: Study, boss: Person) -> None:
    ada = Person(study)
    ada.send("/press", ada.fields() | {"value": "yes", "seconds": "0.7"}, after=2)
    ada.press("no", reason="Nothing <b> about arches.", comment="Which bridge?", evidence="4:16:p1")
    page = boss.page("/admin/verdicts")
    assert len(page.css("tbody tr")) == 2
    fast = boss.page("/admin/verdicts?annotator=ada&fast=yes")
    (row,) = fast.css("tbody tr")
    assert "too fast" in row.text()
    assert "checked" in present(fast.css_first("[name=fast]")).attributes
    assert "no such verdict" in text_of(boss.page("/admin/verdicts?annotator=bob"), "main")
    assert "no such verdict" in text_of(boss.page("/admin/verdicts?page=9"), "main")
    link = str(present(page.css_first("tbody a")).attributes["href"])
    inspected = boss.page(link)
    assert "Nothing <b> about arches." in text_of(inspected, "main")
    assert "Which bridge?" in text_of(inspected, "main")
    assert "“Aller bridge”" in text_of(inspected, "tbody")
    assert "2 items judged by 0 people, 1 item judged by 1 person" in text_of(boss.page("/admin"), "main")
    assert BRIDGE[:20] in text_of(inspected, "main")
    assert boss.client.get("/admin/item?id=q9").status_code == 404
    assert boss.client.get("/admin/item?id=%00").status_code == 404
    assert boss.client.get("/admin/verdicts?value=%00").status_code == 400
    assert "too-fast" not in boss.client.get("/admin").text


def test_an_admin_sees_batches_and_warnings(tmp_path: Path) -> None:
    study = make_study(tmp_path, *several(CITATION, 10), scheme="trec")
    boss, ada = Person(study, "boss", role="admin"), Person(study)
    study.assign("first <b>", items=["q1#1@p1"], people=["ada"])
    for _ in range(10):
        ada.send("/press", ada.fields() | {"value": "full", "seconds": "0.9"})
    page = boss.page("/admin")
    assert "first <b>" in page.text()
    assert "Half of 10 verdicts took less than 0.9 seconds each; fast_seconds is 1.5." in text_of(page, "main li")


def test_an_admin_downloads_the_export(study: Study, boss: Person) -> None:
    Person(study).press("no")
    found = boss.send("/admin/export", admin_form(boss))
    assert found.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(BytesIO(found.content)) as archive:
        names = archive.namelist()
        assert "export/ratings.jsonl" in names
        assert not any("key" in name for name in names)
