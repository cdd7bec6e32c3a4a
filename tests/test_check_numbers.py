"""Numbers of the documentation are those of the files named beside them."""

import json
from pathlib import Path

import pytest

from scripts.check_numbers import wrong_numbers

VALUES = {"rate": 0.8146, "interval95": [0.776, 0.8526], "n": 2000, "seconds": 212.8, "right@60": {"10": -0.25}}


def page(root: Path, text: str, name: str = "README.md") -> list[str]:
    (root / "eval/results").mkdir(parents=True, exist_ok=True)
    (root / "eval/results/a.json").write_text(json.dumps(VALUES))
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    return wrong_numbers(root)[0]


def test_the_documentation_says_what_its_files_hold() -> None:
    faults, checked = wrong_numbers()
    assert faults == []
    assert checked > 1500


@pytest.mark.parametrize(
    "text",
    [
        "It is right on 81 % (78 to 85; n = 2,000; `eval/results/a.json`).",
        "| part | value |\n|---|---|\n| `x9` | 81.5 |",  # no file is named
        "The table (`eval/results/a.json`):\n\n| part | value |\n|---|---|\n| `x9` | 81.5 (77.6 to 85.3) |",
        "It takes 3.5 minutes (`eval/results/a.json`).",
        "The lowest is -25 % or \u221225 % (`eval/results/a.json`). With 7 others, it is 99 %.",
        "Of 2024-05-06, in March 2025, in 90 words (`eval/results/a.json`), with intervals of 95 %.",
        "```\n99 `eval/results/a.json`\n```",
        "- 42 items\n- 81 % (`eval/results/a.json`)\n- 43 items",
    ],
)
def test_what_is_right_or_names_no_file_passes(tmp_path: Path, text: str) -> None:
    assert page(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("First.\nIt is right on 82 % (`eval/results/a.json`).", "README.md:2: 82 is not in eval/results/a.json"),
        ("It is right on 81.4 % (`eval/results/a.json`).", "README.md:1: 81.4 is not in eval/results/a.json"),
        ("The table (`eval/results/a.json`):\n\n| a | b |\n|---|---|\n| x | 84 |", "README.md:5: 84 is not in"),
        ("It takes 3.4 minutes (`eval/results/a.json`).", "README.md:1: 3.4 is not in"),
        ("It is right on 81 % (`eval/results/b.json`).", "README.md:1: eval/results/b.json is missing"),
    ],
)
def test_a_number_that_its_file_does_not_hold_is_told_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    (told,) = page(tmp_path, text)
    assert told.startswith(fault)


def test_a_card_names_files_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "rag/data/reader"
    folder.mkdir(parents=True)
    (folder / "training.json").write_text("[0.5]")
    text = "It is 50 % (`training.json`, `unknown.json`). It is 60 % (`training.json`)."
    assert page(tmp_path, text, "rag/data/reader/CARD.md") == [
        "rag/data/reader/CARD.md:1: 60 is not in rag/data/reader/training.json"
    ]
