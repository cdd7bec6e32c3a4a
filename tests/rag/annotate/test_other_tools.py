"""Export to Label Studio and Potato: the structure that their documentation asks for, and texts that stay texts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("sqlalchemy")

from rag.annotate import create_study
from rag.annotate.items import Item
from rag.annotate.settings import settings_of
from rag.annotate.study import Study
from rag.annotate.types import Entry, Evidence
from rag.base.errors import UsageError, UserError
from tests.conftest import Command, one_line_error
from tests.rag.annotate.made import given, press
from tests.rag.annotate.web_study import ANSWER, BRIDGE, CAPTION, CITATION, FERRY, PASSAGE, SENTENCE

EVIL = '<img src=x onerror=alert(1)> "quoted" & \x01'


def make(folder: Path, *items: Item, scheme: str = "ais", people: tuple[str, ...] = ("ada", "bob")) -> Study:
    settings = settings_of({"scheme": scheme, "annotators": len(people), "title": "Bridges & ferries"})
    study = create_study(folder / "study", items=items, settings=settings)
    for person in people:
        study.invite(person)
    return study


def answer(study: Study, person: str, value: str, *evidence: Evidence, reason: str = "") -> None:
    work = given(study, person)
    study.verdict(
        person,
        work.item.id,
        Entry(work.question.name, value, press=press(), evidence=evidence, reason=reason, seconds=2),
    )


def exported(study: Study, folder: Path, tool: str) -> Path:
    study.export(folder / tool, to=tool)
    study.close()
    return folder / tool


@pytest.fixture
def answered(tmp_path: Path) -> Study:
    """Ada says yes with evidence in both sources, bob flags."""
    study = make(tmp_path, replace(ANSWER, text=ANSWER.text + EVIL))
    answer(study, "ada", "yes")
    start = FERRY.index("Lund")
    answer(study, "ada", "yes", Evidence("p1", 0, 9), Evidence("p:2", start, start + 4), reason="Both say so.")
    study.flag("bob", given(study, "bob").item.id, "expert", press=press())
    return study


# --- Label Studio: labelstud.io/guide/task_format and /tags -----------------------------------------------------------


def controls_of(config: Path) -> dict[str, ET.Element]:
    """The control tags by name; each names an object tag that the configuration has."""
    root = ET.fromstring(config.read_text("utf-8"))
    assert root.tag == "View"
    objects = {str(one.get("name")): str(one.get("value")) for one in root.iter("Text")}
    assert all(value == f"${name}" for name, value in objects.items())
    controls = {str(one.get("name")): one for one in root.iter() if one.get("toName")}
    assert {one.get("toName") for one in controls.values()} <= set(objects)
    return controls


def check_task(task: dict[str, Any], config: Path) -> None:
    """Every result belongs to a control of the configuration, with a value of its type."""
    controls = controls_of(config)
    root = ET.fromstring(config.read_text("utf-8"))
    assert {str(one.get("name")) for one in root.iter("Text")} <= task["data"].keys()
    for annotation in task["annotations"]:
        ids = [result["id"] for result in annotation["result"]]
        assert len(ids) == len(set(ids))
        for result in annotation["result"]:
            control = controls[result["from_name"]]
            assert control.get("toName") == result["to_name"]
            assert control.tag.lower() == result["type"]
            value, allowed = result["value"], [one.get("value") for one in control]
            if result["type"] == "choices":
                assert set(value["choices"]) <= set(allowed)
            elif result["type"] == "labels":
                assert set(value["labels"]) <= set(allowed)
                assert task["data"][result["to_name"]][value["start"] : value["end"]] == value["text"]
            else:
                assert isinstance(value["text"], list)


def test_label_studio_gets_a_labeling_interface_and_tasks_with_annotations(answered: Study, tmp_path: Path) -> None:
    folder = exported(answered, tmp_path, "label-studio")
    (task,) = json.loads((folder / "answer/tasks.json").read_text("utf-8"))
    check_task(task, folder / "answer/config.xml")
    assert task["data"]["claim"] == ANSWER.text + EVIL
    assert task["data"]["annotators"] == ["ada", "bob"]
    ada, bob = task["annotations"]
    assert (bob["was_cancelled"], bob["result"]) == (True, [])
    assert (ada["was_cancelled"], ada["lead_time"]) == (False, 4)
    results = [(one["from_name"], one["type"], one["value"]) for one in ada["result"]]
    assert results[0] == ("interpretable", "choices", {"choices": ["yes"]})
    assert [value["text"] for _, kind, value in results if kind == "labels"] == ["The Aller", "Lund"]
    assert results[-1] == ("attributable-reason", "textarea", {"text": ["Both say so."]})
    later = [one for one in ET.parse(folder / "answer/config.xml").iter("View") if one.get("visibleWhen")]
    assert [(one.get("whenTagName"), one.get("whenChoiceValue")) for one in later] == [("interpretable", "yes")]


def test_each_unit_is_a_project_and_the_decision_of_an_admin_is_ground_truth(tmp_path: Path) -> None:
    study = make(tmp_path, SENTENCE, CITATION, scheme="liu")
    study.invite("boss", "admin")
    for person, value in (("ada", "no"), ("bob", "yes")):
        for _ in range(2):
            answer(study, person, value if given(study, person).question.name == "worthy" else "none")
            if given_question(study, person) == "supported":
                answer(study, person, "no")
    (tie,) = study.ties()
    study.adjudicate("boss", tie.item.id, tie.question.name, "yes", press=press())
    folder = exported(study, tmp_path, "label-studio")
    assert sorted(path.name for path in folder.iterdir()) == ["citation", "sentence"]
    (task,) = json.loads((folder / "sentence/tasks.json").read_text("utf-8"))
    check_task(task, folder / "sentence/config.xml")
    assert [one["ground_truth"] for one in task["annotations"]] == [False, False, True]
    assert task["data"]["annotators"] == ["ada", "bob", "boss"]
    (task,) = json.loads((folder / "citation/tasks.json").read_text("utf-8"))
    check_task(task, folder / "citation/config.xml")
    assert [one["result"][0]["value"] for one in task["annotations"]] == [{"choices": ["none"]}] * 2


def given_question(study: Study, person: str) -> str:
    work = study.next(person)
    return "" if work is None else work.question.name


def test_marked_words_are_labels_at_their_code_points(tmp_path: Path) -> None:
    study = make(tmp_path, PASSAGE, scheme="words", people=("ada",))
    start = BRIDGE.index("ferry")  # after a character outside of the basic plane
    answer(study, "ada", "words", Evidence("p1", start, start + 5))
    folder = exported(study, tmp_path, "label-studio")
    (task,) = json.loads((folder / "passage/tasks.json").read_text("utf-8"))
    check_task(task, folder / "passage/config.xml")
    assert task["data"]["passage"] == BRIDGE
    assert "claim" not in task["data"]
    assert task["annotations"][0]["result"][1]["value"] == {
        "start": start, "end": start + 5, "text": "ferry", "labels": ["evidence"],
    }  # fmt: skip


def test_a_table_is_text(tmp_path: Path) -> None:
    folder = exported(make(tmp_path, CAPTION), tmp_path, "label-studio")
    (task,) = json.loads((folder / "answer/tasks.json").read_text("utf-8"))
    assert "*1* | *Ida Brandt* | *61*" in task["data"]["passage"]
    assert task["annotations"] == []


# --- Potato: potatoannotator.readthedocs.io ---------------------------------------------------------------------------


def test_potato_gets_its_configuration_items_and_the_state_of_each_user(answered: Study, tmp_path: Path) -> None:
    folder = exported(answered, tmp_path, "potato") / "answer"
    config = json.loads((folder / "config.yaml").read_text("utf-8"))
    assert {"item_properties", "task_dir", "output_annotation_dir", "annotation_task_name"} <= config.keys()
    schemes = {scheme["name"]: scheme for scheme in config["annotation_schemes"]}
    assert all({"annotation_type", "name", "description"} <= scheme.keys() for scheme in schemes.values())
    assert schemes["attributable"]["display_logic"]["show_when"] == [
        {"schema": "interpretable", "operator": "equals", "value": ["yes"]}
    ]
    (item,) = [json.loads(line) for line in (folder / config["data_files"][0]).read_text("utf-8").splitlines()]
    assert {config["item_properties"]["id_key"], config["item_properties"]["text_key"]} <= item.keys()
    assert {field["key"] for field in config["instance_display"]["fields"]} <= item.keys()
    states = folder / config["output_annotation_dir"]
    ada = json.loads((states / "ada/user_state.json").read_text("utf-8"))
    labels = {(label["schema"], label["name"]): value for label, value in ada["instance_id_to_label_to_value"]["q1"]}
    assert labels == {
        ("attributable", "yes"): "true",
        ("interpretable", "yes"): "true",
        ("attributable-reason", "text_box"): "Both say so.",
    }
    for schema, name in labels:
        scheme = schemes[schema]
        assert scheme["annotation_type"] == "text" or name in [label["name"] for label in scheme["labels"]]
    spans = [span for span, _ in ada["instance_id_to_span_to_value"]["q1"]]
    page = (
        item["passage"].replace("\n", "").encode("utf-16-le")
    )  # JavaScript's text of Potato's page, whose lines end in <br>
    quotes = [page[2 * span["start"] : 2 * span["end"]].decode("utf-16-le") for span in spans]
    assert ("\n" in item["passage"], "\U0001f600" in item["passage"], quotes) == (True, True, ["The Aller", "Lund"])
    assert {span["target_field"] for span in spans} == {"passage"}
    assert {span["schema"] for span in spans} == {"attributable-evidence"}
    bob = json.loads((states / "bob/user_state.json").read_text("utf-8"))
    assert bob["instance_id_to_label_to_value"] == {"q1": [[{"schema": "flagged", "name": "flagged"}, "true"]]}


@pytest.mark.parametrize("name", ["../../evil", "..", "a/b", "\u00e9.x"])
def test_a_name_of_a_person_leads_to_no_other_folder(tmp_path: Path, name: str) -> None:
    study = make(tmp_path, PASSAGE, scheme="words", people=(name,))
    answer(study, name, "none")
    folder = exported(study, tmp_path, "potato") / "passage"
    (state,) = (folder / "annotation_output").rglob("user_state.json")
    assert state.parent.parent == folder / "annotation_output"
    assert json.loads(state.read_text("utf-8"))["user_id"] == name
    assert not (tmp_path / "evil").exists()


def test_the_configuration_is_yaml(answered: Study, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    folder = exported(answered, tmp_path, "potato") / "answer"
    text = (folder / "config.yaml").read_text("utf-8")
    assert yaml.safe_load(text) == json.loads(text)


# --- the command ------------------------------------------------------------------------------------------------------


def test_what_cannot_be_exported_is_said_in_one_line(rag: Command, answered: Study, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no annotation tool called 'x'; there are: label-studio, potato"):
        answered.export(tmp_path / "out", to="x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    with pytest.raises(UserError, match="is not an empty folder"):
        answered.export(tmp_path / "full", to="potato")
    answered.close()
    one_line_error(rag("annotate", "export", tmp_path / "study", tmp_path / "o", "--to", "x"), "no annotation tool")
    done = rag("annotate", "export", tmp_path / "study", tmp_path / "o", "--to", "potato", "--without", "bob")
    assert [line.split(":")[0].removeprefix(f"{tmp_path}/o/answer/") for line in done.stdout.splitlines()] == [
        "config.yaml", "items.jsonl", "annotation_output/ada/user_state.json",
    ]  # fmt: skip
    assert "potato shows the sources from the first question on" in done.stderr
    one_line_error(
        rag("annotate", "export", tmp_path / "study", tmp_path / "p", "--to", "potato", "--without", "x"), "no person"
    )
