"""`--judge package.module:Class`: a judge of one's own, by name, and every way in which it can be wrong."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import autoais
from autoais.judges import JUDGES
from tests.conftest import Command, one_line_error

ROOT = Path(__file__).parents[3]
HEAD = "import autoais\nfrom autoais import Judge, Judgement, Verdict\n\n\n"
YEARS = (
    HEAD
    + '''class Years(Judge):
    """Full support if the evidence has all years of the claim, partial if it has some."""

    def __init__(self, digits: int = 4, strict: bool = False):
        self.digits, self.strict = digits, strict

    @property
    def name(self):
        return f"years.v1/{self.digits}{self.strict}"

    def decide(self, attributions):
        return [self.one(pair.claim.split(), " ".join(pair.evidence).split()) for pair in attributions]

    def one(self, claim, evidence):
        there = [word in evidence for word in claim if word.isdigit() and len(word) == self.digits]
        if all(there):
            return Judgement(Verdict.ATTRIBUTABLE, 1.0)
        return Judgement(Verdict.PARTIALLY_ATTRIBUTABLE if any(there) else Verdict.NOT_ATTRIBUTABLE, 0.0)
'''
)


def row(number: int, *claims: str) -> str:
    sentences = [{"text": claim, "citations": [{"passage": "p"}]} for claim in claims]
    passages = [{"id": "p", "text": "The tower was built in 1990 and painted in 2001 ."}]
    return json.dumps({"id": str(number), "question": "When?", "sentences": sentences, "passages": passages}) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_judges").mkdir()
    (tmp_path / "my_judges" / "years.py").write_text(YEARS)
    (tmp_path / "answers.jsonl").write_text(
        row(1, "Built in 1990 , painted in 2001 .", "Built in 1990 , closed in 2020 .", "Closed in 2020 .")
    )
    labels = [
        {"dataset": "towers", "id": n, "claim": claim, "evidence": ["Built in 1990 ."], "label": int(level == "full")}
        | {"support": level}
        for n, (claim, level) in enumerate(
            [
                ("Built in 1990 .", "full"),
                ("From 1990 to 2020 .", "partial"),
                ("In 2020 .", "none"),
                ("2021", "partial"),
            ]
        )
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    return tmp_path


def command(folder: Path, *arguments: str, program: str = "autoais") -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, as its installed script does: the current folder is not on Python's path."""
    code = f"import sys; sys.argv[0] = {program!r}; from {program}.__main__ import main; main()"
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}", "PYTHONSAFEPATH": "1", "PATH": "/usr/bin:/bin"}
    call = [sys.executable, "-c", code, *arguments]
    return subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_score_reads_a_judge_of_the_current_folder_and_keeps_partial_everywhere(folder: Path) -> None:
    options = ("--judge", "my_judges.years:Years", "--metrics", "trec,liu", "--cache", "c.jsonl", "--out", "o.jsonl")
    result = command(folder, "score", "answers.jsonl", *options, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["judge"] == "years.v1/4False"
    assert report["metrics"]["sentences"]["value"] == pytest.approx(1 / 3)
    assert report["metrics"]["trec_precision"]["value"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert report["metrics"]["trec_precision"]["levels"] == {"full": 1, "partial": 1, "none": 1, "undecided": 0}
    code = report["provenance"]["judge"]["code"]
    assert code["class"] == "my_judges.years:Years"
    assert len(code["sha256"]) == 64
    verdicts = [json.loads(line)["alone"] for line in (folder / "o.jsonl").read_text().splitlines()]
    assert verdicts == [["attributable"], ["partially_attributable"], ["not_attributable"]]
    again = command(folder, "score", "answers.jsonl", *options)  # from the cache
    assert "support of all citations (trec): 1 full, 1 partial, 1 none, 0 undecided" in again.stdout
    written = (folder / "c.jsonl").read_text()
    assert written.count('"partially_attributable"') == 1


def test_meta_puts_its_levels_beside_those_of_people(folder: Path) -> None:
    result = command(folder, "evaluate-judge", "labels.jsonl", "--judge", "my_judges.years:Years", "--json")
    assert result.returncode == 0, result.stderr
    levels = json.loads(result.stdout)["sets"]["towers"]["levels"]
    assert levels["classes"] == ["full", "partial", "none"]
    assert levels["confusion"] == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    assert levels["overall"]["value"] == 0.75
    printed = command(folder, "evaluate-judge", "labels.jsonl", "--judge", "my_judges.years:Years").stdout
    assert "towers: levels of support, n 4, 0 undecided" in printed
    two = json.loads(command(folder, "evaluate-judge", "labels.jsonl", "--judge", "lexical", "--json").stdout)["sets"][
        "towers"
    ]
    assert two["levels"] is None
    assert two["reasons"]["levels"] == "the judge never says partial, only attributable or not"


def test_levels_of_cited_answers_that_people_labelled_are_printed_beside_the_judges(folder: Path) -> None:
    answer = json.loads(row(1, "Built in 1990 .", "Built in 1990 , closed in 2020 .", "Closed in 2020 ."))
    for sentence, level in zip(answer["sentences"], ("full", "partial", "partial"), strict=True):
        sentence["citations"][0]["support"] = level
    (folder / "labelled.jsonl").write_text(json.dumps(answer) + "\n")
    options = ("--judge", "my_judges.years:Years", "--metrics", "trec")
    result = command(folder, "score", "labelled.jsonl", *options, "--json")
    levels = json.loads(result.stdout)["human"]["levels"]
    assert levels["confusion"] == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    assert "on 3 levels of support, macro-F1" in command(folder, "score", "labelled.jsonl", *options).stdout
    two = json.loads(command(folder, "score", "labelled.jsonl", "--judge", "lexical", "--json").stdout)
    assert "levels" not in two["human"]


def test_calibrate_and_options_work_with_it(folder: Path) -> None:
    judge = ("--judge", "my_judges.years:Years", "--judge-option")
    scored = command(folder, "score", "answers.jsonl", *judge, "strict=true", "--judge-option", "digits=4", "--json")
    assert json.loads(scored.stdout)["judge"] == "years.v1/4True"
    wrong = command(folder, "score", "answers.jsonl", *judge, "digits=four")
    assert "error: judge 'my_judges.years:Years': option 'digits' should be int, found 'four'" in wrong.stderr
    wrong = command(folder, "score", "answers.jsonl", *judge, "digit=4")
    assert "has no option 'digit'; there are: digits, strict" in wrong.stderr
    lines = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]
    many = [{**line, "id": f"{n}-{line['id']}", "question": f"When, {n}?"} for n in range(8) for line in lines]
    (folder / "many.jsonl").write_text("".join(json.dumps(line) + "\n" for line in many))
    fitted = command(folder, "calibrate", "many.jsonl", *judge[:2], "--out", "k.json", "--folds", "2")
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads((folder / "k.json").read_text())["judge"] == "years.v1/4False"
    scored = command(folder, "score", "answers.jsonl", *judge[:2], "--calibration", "k.json", "--json")
    assert json.loads(scored.stdout)["judge"].startswith("years.v1/4False+")


@pytest.mark.slow
def test_rag_attribute_takes_it_too(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "tower.md").write_text("# Tower\n\nThe tower was built in 1990 and painted in 2001 .\n")
    assert command(folder, "index", "build", "docs", "--to", "docs.index", program="rag").returncode == 0
    options = ("--index", "docs.index", "--out", "with.jsonl", "--judge", "my_judges.years:Years")
    result = command(folder, "attribute", "answers.jsonl", *options, program="rag")
    assert result.returncode == 0, result.stderr
    assert "1 answer" in result.stderr
    missing = command(folder, "attribute", "answers.jsonl", *options[:5], "my_judges.years:Nope", program="rag")
    assert missing.returncode == 2
    assert "has no 'Nope'; it has: Years" in missing.stderr


NAME = '    name = "x"\n'
DECIDE = "    def decide(self, attributions):\n        return [Judgement(Verdict.ATTRIBUTABLE)] * len(attributions)\n"


@pytest.mark.parametrize(
    ("judge", "code", "says"),
    [
        ("gone:Judge", "", "judge 'gone:Judge': no module called 'gone' is installed or in the current folder"),
        ("wrong.gone:Judge", "", "no module called 'wrong.gone'"),
        ("wrong:Gone", "", r"module wrong \(.*wrong.py\) has no 'Gone'; it has no subclass of autoais.Judge"),
        ("wrong:Gone", f"class Here(Judge):\n{NAME}{DECIDE}", "has no 'Gone'; it has: Here"),
        ("wrong:Mine", "Mine = 3", "Mine should be a subclass of autoais.Judge, found int"),
        ("wrong:Mine", "def Mine(): ...", "found function"),
        ("wrong:Mine", f"class Mine:\n{NAME}{DECIDE}", "found a class without that base"),
        ("wrong:Mine", f"class Mine(Judge):\n{NAME}", "class Mine lacks decide; a judge defines name and decide"),
        ("wrong:Mine", f"class Mine(Judge):\n{DECIDE}", "class Mine lacks name"),
        ("wrong:Mine", "import nothing_like_this", r"wrong cannot be imported: ModuleNotFoundError: .*\(wrong.py:5\)"),
        ("wrong:Mine", "x = 1 / 0", r"cannot be imported: ZeroDivisionError: division by zero \(wrong.py:5\)"),
        ("wrong:Mine", "def broken(:", r"cannot be imported: SyntaxError: .*\(wrong.py:5\)"),
        ("wrong:Mine", "raise SystemExit(0)", r"cannot be imported: SystemExit: 0 \(wrong.py:5\)"),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n    def name(self): return 'x'\n{DECIDE}",
            "name is a method; put @property",
        ),
        ("wrong:Mine", f"class Mine(Judge):\n    name = 7\n{DECIDE}", "name should be a line of text, found 7"),
        ("wrong:Mine", f"class Mine(Judge):\n    name = ' '\n{DECIDE}", "name should be a line of text, found ' '"),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n{NAME}    def decide(self, claim, evidence): ...\n",
            r"decide should take one list of Attributions, found decide\(claim, evidence\)",
        ),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n{NAME}    def __init__(self, model): ...\n{DECIDE}",
            "needs judge options: model=...",
        ),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n{NAME}    def __init__(self): self.x = {{}}['key']\n{DECIDE}",
            r"cannot be opened: KeyError: 'key' \(wrong.py:7\)",
        ),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n{NAME}    def decide(self, attributions): return 'attributable'\n",
            "what judge 'x' returned should be a list of Judgements, found str",
        ),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n{NAME}    async def decide(self, attributions): ...\n",
            "decide should be a plain function, found an async one",
        ),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n{NAME}    def decide(self, attributions): return [True for _ in attributions]\n",
            "should be a list of Judgements, found bool in it",
        ),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n{NAME}    def decide(self, them): return [Judgement('attributable') for _ in them]\n",
            "the verdict of a judgement should be a Verdict such as Verdict.ATTRIBUTABLE, found str",
        ),
        (
            "wrong:Mine",
            f"class Mine(Judge):\n{NAME}    def decide(self, pairs): return []\n",
            "judge 'x' returned 0 judgements for 3 pairs",
        ),
    ],
)
def test_a_judge_that_is_wrong_is_one_line(
    folder: Path, autoais: Command, monkeypatch: pytest.MonkeyPatch, judge: str, code: str, says: str
) -> None:
    (folder / "wrong.py").write_text(HEAD + code + "\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "wrong", raising=False)
    result = autoais("score", folder / "answers.jsonl", "--judge", judge)
    one_line_error(result)
    assert re.search(says, result.stderr), result.stderr


def test_a_class_of_the_running_script_is_a_judge(folder: Path) -> None:
    (folder / "script.py").write_text(YEARS + "\n\nprint(autoais.open_judge('__main__:Years').name)\n")
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    call = [sys.executable, "script.py"]
    ran = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout == "years.v1/4False\n"


class Unnamed(autoais.Judge):
    name = None  # type: ignore[assignment]

    def decide(self, attributions: Sequence[autoais.Attribution]) -> list[autoais.Judgement]:
        return [autoais.Judgement(autoais.Verdict.UNDECIDED) for _ in attributions]


def test_what_is_registered_must_open_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JUDGES, "_known", dict(JUDGES._known))
    register: Any = JUDGES.register
    with pytest.raises(autoais.UsageError, match="judge 'mine' should be a class of judges or a function that"):
        register("mine", Unnamed())
    register("three", lambda: 3)
    with pytest.raises(autoais.UsageError, match="judge 'three' should be a Judge, found int"):
        autoais.open_judge("three")
    register("mine", Unnamed)
    with pytest.raises(autoais.UserError, match="judge 'mine': its name should be a line of text, found None"):
        autoais.open_judge("mine")


@pytest.mark.parametrize("name", ["nope", "lm:gpt-4o", "a.b", ":X", "x:", "x:y:z", "a b:C", "./x.py:C"])
def test_what_is_no_import_path_is_not_imported(name: str) -> None:
    with pytest.raises(autoais.UserError, match=r"no judge called .*and your own package.module:Class"):
        autoais.open_judge(name)


def test_files_of_the_current_folder_do_not_take_the_place_of_installed_modules(folder: Path) -> None:
    for name in ("numpy", "typer", "colorsys"):
        (folder / f"{name}.py").write_text(f"raise SystemExit('{name} of the current folder was imported')\n")
    result = command(folder, "score", "answers.jsonl", "--judge", "my_judges.years:Years")
    assert result.returncode == 0, result.stderr
    missing = command(folder, "score", "answers.jsonl", "--judge", "colorsys:Years")
    assert "has no 'Years'" in missing.stderr


def test_the_current_folder_is_searched_for_the_judge_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "here_only.py").write_text(YEARS)
    (folder / "here_broken.py").write_text("import nothing_of_that_name\n")
    before = list(sys.path)
    assert autoais.open_judge("here_only:Years").name == "years.v1/4False"
    assert sys.path == before
    with pytest.raises(autoais.UserError, match="cannot be imported"):
        autoais.open_judge("here_broken:Years")
    assert sys.path == before
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "here_only")
    autoais.open_judge("here_only:Years")
    assert str(folder) in sys.path


@pytest.mark.parametrize(
    "called", ["minilm@d07a8b3c/512/v1", "lexical@2/0.7/v1", "llm:gpt@host/1", "minilm", "lexical+"]
)
def test_the_name_of_another_judge_is_refused(
    folder: Path, autoais: Command, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    (folder / "named.py").write_text(YEARS.replace('f"years.v1/{self.digits}{self.strict}"', repr(called)))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "named", raising=False)
    one_line_error(
        autoais("score", folder / "answers.jsonl", "--judge", "named:Years"),
        f"judge 'named:Years': its name {called!r} is one of the judge",
    )


def test_the_example_of_the_handbook_keeps_the_contract_and_scores(folder: Path) -> None:
    page = (ROOT / "docs/handbook/reference/evaluation.md").read_text("utf-8")
    (block,) = [one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "(Judge)" in one]
    assert sum(bool(line.strip()) for line in block.splitlines()) <= 10
    (folder / "my_own.py").write_text(block)
    (checked,) = re.findall(r'python -c "(.*check_judge.*)"', page)
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'eval'}"}
    call = [sys.executable, "-c", checked.replace("my_judges", "my_own")]
    subprocess.run(call, cwd=folder, env=environment, check=True, timeout=120)
    result = command(folder, "score", "answers.jsonl", "--judge", "my_own:Overlap", "--json")
    assert json.loads(result.stdout)["judge"] == "overlap.v1"


def test_only_the_command_line_and_calls_of_a_program_name_a_judge() -> None:
    sources = [*(ROOT / "rag").rglob("*.py"), *(ROOT / "eval/autoais").rglob("*.py")]
    opening = {path.relative_to(ROOT).as_posix() for path in sources if "open_judge(" in path.read_text("utf-8")}
    assert opening == {
        "eval/autoais/api.py", "eval/autoais/commands/main.py", "eval/autoais/integrations/__init__.py",
        "eval/autoais/integrations/autojudge.py", "eval/autoais/judges/__init__.py",
        "eval/autoais/judges/engine.py", "eval/autoais/meta/leaderboard.py", "rag/api.py",
        "rag/annotate/triage.py", "rag/commands/bench.py", "rag/bench/run.py", "rag/bench/stages.py",
        "rag/commands/main.py",
        "rag/bench/collections/report/__init__.py", "rag/serve/judging.py",
    }  # fmt: skip
