"""Training recipes that cannot be used are refused when they are read, not in the middle of the training."""

from pathlib import Path

import pytest

from autoais.base.errors import UserError
from autoais.training.recipe import TrainingRecipe

RECIPE = Path(__file__).parents[3] / "eval" / "recipes" / "minilm.toml"


def test_the_recipe_that_ships_is_read() -> None:
    assert TrainingRecipe.read(RECIPE).sources["nli"].times == 2


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        # These were accepted, and a TypeError later.
        ("seed = 13", 'seed = "13"', "seed should be an integer, found '13'"),
        ("seed = 13", "seed = true", "seed should be an integer, found True"),
        ("rate = 2e-4", 'rate = "2e-4"', r"\[schedule\]: rate should be a finite number, found '2e-4'"),
        ("rate = 2e-4", "rate = nan", "rate should be a finite number, found nan"),
        ("share = 0.13", "share = [0.13]", r"\[sources.pages\]: share should be a finite number"),
        ('base = "gt', 'base = 5\nx = "gt', "unknown setting 'x'"),
        (
            'threshold = ["labels/attributionbench_dev.jsonl"]',
            "threshold = [5]",
            "threshold should be a list of strings",
        ),
        ('["SummEdits"]]', "[5]]", "folds should be a list of lists of strings"),
        # These were tracebacks of tomllib.
        ("seed = 13", f"seed = {'9' * 5000}", "not a training recipe"),
        ("seed = 13", f"seed = {'[' * 5000}", "not a training recipe"),
    ],
)
def test_a_setting_of_another_type_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "r.toml"
    text = RECIPE.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(UserError, match=says):
        TrainingRecipe.read(path)


def test_a_recipe_that_is_missing_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"not a training recipe: No such file or directory$"):
        TrainingRecipe.read(tmp_path / "none.toml")
